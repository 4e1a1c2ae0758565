"""Files of arrays, npz and HDF5: what they claim to hold is checked before memory is taken.

`read_headers` gives names, shapes and types without reading data, so that a caller can refuse a
file that does not fit. Pickles, references to other files and types other than plain numbers and
text are never read.
"""
import math
import os
import re
import struct
import zipfile
import zlib
from typing import NamedTuple

import h5py
import numpy as np

from interpretable_adv.errors import UserError
from interpretable_adv.runs.reading import brief, open_regular

ADVICE = 'check the path, or use another copy'
# Arrays may be this many times larger than their file. Floats of a trained model hardly shrink; a
# file that unpacks to more was made to fill the memory.
LARGEST_RATIO = 20
SMALL = 1 << 24  # bytes that any file may unpack to
_MAGIC_NPZ, _MAGIC_HDF5 = b'PK', b'\x89HDF\r\n\x1a\n'
_HEADER = re.compile(rb"\{'descr': '([<>|=]?[fiubUS]\d{1,9})', 'fortran_order': (True|False), "
                     rb"'shape': \(((?:\d{1,18}L?, ?)*(?:\d{1,18}L?)?)\),? *\} *\n")
_DAMAGES = (OSError, ValueError, KeyError, RuntimeError, EOFError, TypeError, OverflowError,
            AttributeError, struct.error, zipfile.BadZipFile, zlib.error)


class Header(NamedTuple):
    """What a file says of one of its arrays."""

    shape: tuple
    dtype: np.dtype

    @property
    def size(self):
        """In bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


def read_headers(path, advice=ADVICE):
    """`{'word_embed/W': Header, …}` of an HDF5 or npz file."""
    return _read(path, advice, lambda names: ())[0]


def read_arrays(path, only=None, advice=ADVICE):
    """Arrays of an HDF5 or npz file by name; they may be read-only.

    Args:
        only: names of the arrays to read; None: all.
    """
    return _read(path, advice, lambda names: names if only is None else
                 [name for name in names if name in only])[1]


def _read(path, advice, choose):
    with open_regular(path, advice) as stream:
        try:
            magic = stream.read(8)
            reader = (_read_npz if magic.startswith(_MAGIC_NPZ) else
                      _read_hdf5 if magic == _MAGIC_HDF5 else None)
            if reader is not None:
                stream.seek(0)
                return reader(stream, choose)
        except MemoryError as error:
            raise UserError(f'{path} holds more than fits into memory; {advice}') from error
        except _DAMAGES as error:
            raise UserError(f'{path} is damaged or truncated ({brief(error)}); {advice}') from error
    raise UserError(f'{path} is neither an HDF5 nor an npz file; give a trained model')


def _refuse_bomb(stream, sizes):
    total, size = sum(sizes), os.fstat(stream.fileno()).st_size
    if total > max(SMALL, LARGEST_RATIO * size):
        raise ValueError(f'its {size:,} bytes claim to hold {total:,}')


# npz ----------------------------------------------------------------------------------------

def _read_npz(stream, choose):
    with zipfile.ZipFile(stream) as file:
        members = file.infolist()
        if len({member.filename for member in members}) != len(members):
            raise ValueError('an array occurs twice')
        _refuse_bomb(stream, (member.file_size for member in members))
        headers, places = {}, {}
        for member in members:
            name = member.filename.removesuffix('.npy')
            if name == member.filename or member.compress_type not in (
                    zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED):
                raise ValueError(f'{member.filename} is no array')
            with file.open(member) as content:
                headers[name], fortran, start = _parse_header(content, name)
            if start + headers[name].size != member.file_size:
                raise ValueError(f'{name} has {member.file_size} bytes where its shape needs '
                                 f'{start + headers[name].size}')
            places[name] = member, fortran, start
        arrays = {name: _read_member(file, *places[name], headers[name])
                  for name in choose(list(headers))}
    return headers, arrays


def _parse_header(content, name):
    """The header of an npy file, whether it is in Fortran's order, and where its data begin.

    NumPy's own parser evaluates the header as Python; this one knows what NumPy writes.
    """
    start = content.read(8)
    if start[:6] != b'\x93NUMPY' or start[6:] not in (b'\x01\x00', b'\x02\x00'):
        raise ValueError(f'{name} is no array')
    form = '<H' if start[6] == 1 else '<I'
    length, = struct.unpack(form, content.read(struct.calcsize(form)))
    match = _HEADER.fullmatch(content.read(min(length, 10_000)))
    if match is None:
        raise ValueError(f'{name} is of no plain type')
    shape = tuple(int(size.strip(b' L')) for size in match[3].split(b',') if size.strip())
    if len(shape) == 1 and b',' not in match[3] or len(shape) > 32:
        raise ValueError(f'{name} has no shape')
    header = Header(shape, np.dtype(match[1].decode()))
    return header, match[2] == b'True', 8 + struct.calcsize(form) + length


def _read_member(file, member, fortran, start, header):
    # The whole member: only its last byte shows whether the checksum is right.
    content = file.read(member)
    array = np.frombuffer(content, header.dtype, offset=start)
    if header.dtype.kind == 'b' and not (array.view(np.uint8) <= 1).all():
        raise ValueError(f'{member.filename} holds something other than booleans')
    return array.reshape(header.shape, order='F' if fortran else 'C')


# HDF5 ---------------------------------------------------------------------------------------

def _read_hdf5(stream, choose):
    headers, datasets = {}, {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset):
            headers[name] = _header_of(name, item)
            datasets[name] = item

    with h5py.File(stream.name, 'r') as file:
        file.visititems(visit)
        _refuse_bomb(stream, (header.size for header in headers.values()))
        arrays = {name: datasets[name][()] for name in choose(list(headers))}
    for name, array in arrays.items():
        if array.shape != headers[name].shape:
            raise ValueError(f'{name} changes its shape')
    return headers, arrays


def _header_of(name, dataset):
    if dataset.is_virtual or dataset.external:
        raise ValueError(f'{name} lies in another file')
    if dataset.shape is None or dataset.dtype.kind not in 'fiub':
        raise ValueError(f'{name} is no array of numbers')
    if dataset.compression not in (None, 'gzip', 'lzf', 'szip'):
        raise ValueError(f'{name} is compressed in an unknown way')
    return Header(dataset.shape, dataset.dtype)
