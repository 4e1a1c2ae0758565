"""arrays.py: nothing is read that a file should not hold, and nothing is allocated for it."""
import struct
import tracemalloc
import zipfile

import h5py
import numpy as np
import pytest

from interpretable_adv.errors import UserError
from interpretable_adv.runs import arrays

VALUES = {'a/W': np.arange(6, dtype='f').reshape(2, 3), 'n': np.array(7), 't': np.array('é'),
          'f': np.asfortranarray(np.arange(6.0).reshape(2, 3)), 'e': np.zeros((0, 3), 'i4')}


@pytest.mark.parametrize('save', [np.savez, np.savez_compressed])
def test_npz_files_are_read_as_numpy_reads_them(tmp_path, save):
    save(tmp_path / 'x.npz', **VALUES)
    found = arrays.read_arrays(tmp_path / 'x.npz')
    headers = arrays.read_headers(tmp_path / 'x.npz')
    assert found.keys() == headers.keys() == VALUES.keys()
    for name, value in VALUES.items():
        np.testing.assert_array_equal(found[name], value)
        assert found[name].dtype == value.dtype
        assert headers[name] == (value.shape, value.dtype)
    assert list(arrays.read_arrays(tmp_path / 'x.npz', only=['n', 'absent'])) == ['n']


def write_member(path, header, data=b'', **options):
    with zipfile.ZipFile(path, 'w', **options) as file:
        length = struct.pack('<H', len(header))
        file.writestr('a.npy', b'\x93NUMPY\x01\x00' + length + header + data)


@pytest.mark.parametrize('descr, shape', [
    ("'(2,f4'", '(1,)'), ("'O'", '(1,)'), ("[('a', '<f4')]", '(1,)'), ("'<f3'", '(1,)'),
    ("'<f4'", '(1000000, 1000000)'), ("'<f4'", '(-1,)'), ("'<f4'", '(1)'), ("'<f4'", '(None,)'),
    ("'<f4'", '(' * 5000), ("'<f4'", '__import__("os")'), ("'<U999999999'", '(1,)'),
    ("'<f4'", '(2,)'), ("'<f4'", '()' + ' ' * 20_000), ("'<f4'", '(1' + '0' * 30 + ',)')])
def test_impossible_headers_are_refused(tmp_path, descr, shape):
    header = f"{{'descr': {descr}, 'fortran_order': False, 'shape': {shape}, }}\n".encode()
    write_member(tmp_path / 'x', header, bytes(4))
    with pytest.raises(UserError, match='damaged or truncated'):
        arrays.read_arrays(tmp_path / 'x')


def test_a_small_file_cannot_fill_the_memory(tmp_path):
    np.savez_compressed(tmp_path / 'x.npz', a=np.zeros(10_000_000, 'f'))
    tracemalloc.start()
    with pytest.raises(UserError, match='claim to hold 40,000,'):
        arrays.read_arrays(tmp_path / 'x.npz')
    assert tracemalloc.get_traced_memory()[1] < 1 << 22
    tracemalloc.stop()
    with h5py.File(tmp_path / 'x.h5', 'w') as file:
        file.create_dataset('a', shape=(10 ** 6, 10 ** 6), dtype='f', chunks=(1000, 1000))
    with pytest.raises(UserError, match='claim to hold 4,000,000,000,000'):
        arrays.read_headers(tmp_path / 'x.h5')


def test_a_changed_byte_is_noticed(tmp_path):
    np.savez(tmp_path / 'x.npz', a=np.arange(50.0))
    content = bytearray((tmp_path / 'x.npz').read_bytes())
    content[content.index(b'NUMPY') + 200] ^= 1
    (tmp_path / 'x.npz').write_bytes(content)
    with pytest.raises(UserError, match='CRC'):
        arrays.read_arrays(tmp_path / 'x.npz')


@pytest.mark.parametrize('compression', [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_other_compressions_are_refused(tmp_path, compression):
    write_member(tmp_path / 'x', b"{'descr': '<f4', 'fortran_order': False, 'shape': (1,), }\n",
                 bytes(4), compression=compression)
    with pytest.raises(UserError, match='no array'):
        arrays.read_arrays(tmp_path / 'x')


def test_hdf5_never_leads_to_another_file(tmp_path):
    (tmp_path / 'secret').write_bytes(bytes(24))
    layout = h5py.VirtualLayout((6,), 'f')
    layout[...] = h5py.VirtualSource(str(tmp_path / 'other'), 'x', (6,))
    for make in (lambda file: file.create_dataset('a', (6,), 'f', external=[
            (str(tmp_path / 'secret'), 0, 24)]),
            lambda file: file.create_virtual_dataset('a', layout)):
        with h5py.File(tmp_path / 'x.h5', 'w') as file:
            make(file)
        with pytest.raises(UserError, match='lies in another file'):
            arrays.read_arrays(tmp_path / 'x.h5')
    with h5py.File(tmp_path / 'x.h5', 'w') as file:
        file['a'] = h5py.ExternalLink(str(tmp_path / 'other'), 'x')
    assert arrays.read_arrays(tmp_path / 'x.h5') == {}


@pytest.mark.parametrize('value', [h5py.Empty('f'), 'text', np.zeros(2, [('a', 'f')]),
                                   np.zeros(2, 'c8')])
def test_hdf5_holds_numbers_only(tmp_path, value):
    with h5py.File(tmp_path / 'x.h5', 'w') as file:
        file['a'] = value
    with pytest.raises(UserError, match='a is no array of numbers'):
        arrays.read_arrays(tmp_path / 'x.h5')
