"""Ways to damage a file. Each takes a `random.Random` and a path, and changes the file.

A mutation returns True where a reader must refuse the file, and None where it may also accept it,
provided that what it read is right.
"""
import json
import os
import socket
import struct
import zipfile

import h5py
import numpy as np

# Any file -----------------------------------------------------------------------------------

def flip(random, path):
    content = bytearray(path.read_bytes())
    for _ in range(random.choice([1, 1, 1, 2, 8])):
        if content:
            content[random.randrange(len(content))] ^= 1 << random.randrange(8)
    path.write_bytes(content)


def overwrite(random, path):
    content = bytearray(path.read_bytes())
    start, size = random.randrange(len(content) + 1), random.choice([1, 2, 4, 8, 64, 512])
    content[start:start + size] = random.choice([
        b'\0' * size, b'\xff' * size, random.randbytes(size), struct.pack('<q', 2 ** 62)])
    path.write_bytes(content)


def insert(random, path):
    content = bytearray(path.read_bytes())
    start = random.randrange(len(content) + 1)
    content[start:start] = random.choice([
        b'\0', b'\r\n', b'\xef\xbb\xbf', b'\xff', b'"', b'\n', b',', random.randbytes(9)])
    path.write_bytes(content)


def remove(random, path):
    content = bytearray(path.read_bytes())
    start = random.randrange(len(content) + 1)
    del content[start:start + random.choice([1, 2, 16, 1000])]
    path.write_bytes(content)


def truncate(random, path):
    os.truncate(path, random.randrange(path.stat().st_size + 1))


def repeat(random, path):
    content = path.read_bytes()
    start = random.randrange(len(content) + 1)
    size = random.choice([1, 10, 300, len(content)])
    path.write_bytes(content[:start] + content[start:start + size] + content[start:])


def windows_line_ends(random, path):
    path.write_bytes(path.read_bytes().replace(b'\n', b'\r\n'))


BYTES = (flip, flip, overwrite, overwrite, insert, remove, truncate, repeat)


def special(random, path):
    """Something other than a file in the place of one."""
    path.unlink()
    random.choice([
        lambda: os.mkfifo(path), path.mkdir, lambda: path.symlink_to('/dev/zero'),
        lambda: path.symlink_to('/dev/full'), lambda: path.symlink_to(path),
        lambda: os.symlink(path.with_name('missing'), path), lambda: _bind(path)])()
    return True if path.exists() else None  # a link to nothing is a missing file


def _bind(path):
    here = os.getcwd()
    os.chdir(path.parent)  # the names of sockets are short
    socket.socket(socket.AF_UNIX).bind(path.name)
    os.chdir(here)


# JSON ---------------------------------------------------------------------------------------

DEEP = '[' * 100_000 + ']' * 100_000
RAW = ('null', 'true', 'false', '-1', '0', '1', '2', '1e400', '-1e400', '1e308', '-0.0', '1e-320',
       '10' * 9, str(2 ** 63), '1' + '0' * 400, '9' * 5000, 'NaN', 'Infinity', '""', '"x"',
       '"\\u0000"',
       '"\\ud800"', '"\\ufeff"', '"../../x"', '"/dev/zero"', '"a/b"', '[]', '{}', '[[]]', '[null]',
       '{"a": 1}', '1000000000', '2147483648', '0.5', '"1"', '"' + 'x' * 100_000 + '"', DEEP,
       '{"a":' * 200 + '1' + '}' * 200)
PLACE = '@place@'


def json_value(random, path):
    """Another value somewhere in a JSON file, or in a line of a file of JSON lines."""
    text = path.read_text(encoding='utf-8')
    lines = text.split('\n') if path.suffix == '.jsonl' else [text]
    number = random.randrange(len([line for line in lines if line.strip()]))
    lines[number] = change_json(random, lines[number])
    path.write_text('\n'.join(lines), encoding='utf-8')


def change_json(random, text):
    value = [json.loads(text)]
    places = list(_places(value))
    parent, key = random.choice(places)
    kind = random.randrange(10)
    if kind == 0 and parent is not value:
        del parent[key]
    elif kind == 1 and isinstance(parent, dict):
        parent[random.choice(['', 'é', 'a\0b', 'words', PLACE])] = parent[key]
    else:
        parent[key] = PLACE
    raw = random.choice(RAW)
    text = json.dumps(value[0] if value else None).replace(f'"{PLACE}"', raw)
    if random.random() < 0.05:
        text = random.choice([text * 2, text[:-1], f'[{text}]', f'{text}\n{text}', DEEP, '', '[',
                              text.replace('{', '{"twice": 1, "twice": 2, ', 1)])
    return text


def _places(value):
    entries = value.items() if isinstance(value, dict) else enumerate(value)
    for key, item in list(entries):
        yield value, key
        if isinstance(item, dict | list):
            yield from _places(item)


# Arrays: what both formats may hold in place of an array ----------------------------------------

def other_arrays(random, array):
    """An array that cannot be meant, instead of a float array with a shape."""
    array = np.asarray(array)
    if array.dtype.kind in 'US':
        return random.choice([np.zeros(3, 'f'), array[..., None], np.array('{}'), np.array(b'x')])
    broken = array.astype(np.float64) if array.dtype.kind == 'f' else array.astype('f')
    if broken.size:
        broken.reshape(-1)[random.randrange(broken.size)] = random.choice(
            [np.nan, np.inf, -np.inf, 1e300, -1e39])
    return random.choice([
        lambda: broken, lambda: np.zeros(1, 'f'), lambda: np.zeros((), 'f'),
        lambda: np.zeros((0, *array.shape[1:]), 'f'), lambda: array.reshape(-1, 1, 1),
        lambda: np.concatenate([np.atleast_1d(array)] * 2), lambda: array.astype('c8'),
        lambda: np.zeros((*array.shape, 1), array.dtype), lambda: np.atleast_1d(array)[:-1],
        lambda: array.astype('S8'), lambda: np.atleast_1d(array)[None], lambda: array > 0])()


# npz ----------------------------------------------------------------------------------------

def npz_array(random, path, names=None):
    """Another array, none, or one too many."""
    arrays = dict(np.load(path))
    name = random.choice(sorted(names or arrays))
    kind = random.randrange(8)
    if kind == 0:
        del arrays[name]
    elif kind == 1:
        arrays[random.choice(['unknown', name + '/W', 'trainer/updater/x', '../x', 'é'])] = \
            arrays[name]
    else:
        arrays[name] = other_arrays(random, arrays[name])
    np.savez(path.with_suffix('.tmp.npz'), **arrays)
    os.replace(path.with_suffix('.tmp.npz'), path)
    return True


HEADERS = (b"'(2,f4'", b"'O'", b"'<f3'", b"'|V8'", b"[('a', '<f4')]", b"'<M8[s]'", b"'<f4\\n'",
           b"'<U999999999'", b"'>f4'", b"'<i4'", b"'<f8'")
SHAPES = (b'(1000000, 1000000)', b'()', b'(-1,)', b'(4)', b'(1' + b'0' * 300 + b',)',
          b'(' + b'1, ' * 70 + b')', b'(None,)', b'(0,)', b'__import__("os")', b'(((((' * 1000)


def npz_header(random, path):
    """Another type or shape than the data have, with right checksums."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    name = random.choice(sorted(members))
    content = members[name]
    end = content.index(b'\n') + 1
    descr, _, rest = content[10:end].partition(b", 'fortran_order'")
    if random.random() < 0.5:
        header = b"{'descr': " + random.choice(HEADERS) + b", 'fortran_order'" + rest
    else:
        header = descr + b", 'fortran_order': False, 'shape': " + random.choice(SHAPES) + b', }\n'
    if header == content[10:end]:
        return None
    members[name] = content[:8] + struct.pack('<H', len(header) % 65536) + header + content[end:]
    with zipfile.ZipFile(path, 'w') as file:
        for other, data in members.items():
            file.writestr(other, data)
    # A byte order or type of the same size that the data may as well have.
    return None if b"'>f4'" in header or b"'<i4'" in header else True


def npz_zip(random, path):
    """What zip files allow, and no writer of arrays does."""
    with zipfile.ZipFile(path) as file:
        members = {name: file.read(name) for name in file.namelist()}
    name = random.choice(sorted(members))
    kind = random.randrange(5)
    with zipfile.ZipFile(path, 'w', random.choice([
            zipfile.ZIP_LZMA, zipfile.ZIP_BZIP2]) if kind == 0 else zipfile.ZIP_DEFLATED) as file:
        for other, data in members.items():
            file.writestr(other, data)
        if kind == 1:
            file.writestr('twice.npy', members[name])
            file.writestr('twice.npy', members[name])
        elif kind == 2:
            file.writestr('readme.txt', 'no array')
        elif kind == 3:
            _write_bomb(file, 'bomb.npy')
        elif kind == 4:
            file.writestr('folder/', b'')
    return True


def _write_bomb(file, name, size=64 << 20):
    """An array of zeros that takes a thousandth of its size in the file."""
    header = b"{'descr': '<f4', 'fortran_order': False, 'shape': (%d,), }" % (size // 4)
    header = header.ljust(117) + b'\n'
    with file.open(name, 'w', force_zip64=True) as stream:
        stream.write(b'\x93NUMPY\x01\x00' + struct.pack('<H', len(header)) + header)
        for _ in range(size >> 20):
            stream.write(bytes(1 << 20))


NPZ = (npz_array, npz_array, npz_header, npz_zip)


# HDF5 ---------------------------------------------------------------------------------------

def _any_dataset(random, file):
    names = []
    file.visititems(lambda name, item: names.append(name)
                    if isinstance(item, h5py.Dataset) else None)
    name = random.choice(sorted(names))
    return name, file[name][()]


def hdf5(random, path):
    """What HDF5 allows, and no writer of models does."""
    with h5py.File(path, 'r+') as file:
        name, array = _any_dataset(random, file)
        kind = random.randrange(14)
        if kind == 0:
            file[random.choice(['unknown', 'uni_lstm/9/w0', 'uni_lstm/x'])] = array
            return True
        del file[name]
        if kind == 1:
            return True
        if kind == 2:
            file[name] = h5py.Empty('f')
        elif kind == 3:
            file.create_dataset(name, shape=(10 ** 6, 10 ** 6), dtype='f', chunks=(1000, 1000))
        elif kind == 4:
            file.create_dataset(name, shape=array.shape, dtype='f',
                                external=[('/etc/passwd', 0, h5py.h5f.UNLIMITED)])
        elif kind == 5:
            layout = h5py.VirtualLayout(array.shape, 'f')
            layout[...] = h5py.VirtualSource(str(path.with_name('other')), 'x', array.shape)
            file.create_virtual_dataset(name, layout)
        elif kind == 6:
            file[name] = random.choice([h5py.SoftLink('/word_embed/W'),
                                        h5py.ExternalLink('/etc/passwd', '/x'),
                                        h5py.SoftLink('/nowhere')])
        elif kind == 7:
            file.create_group(name)
        elif kind == 8:
            file[name] = random.choice([np.array(['a', 'b'], h5py.string_dtype()), 'text'])
        elif kind == 9:
            file[name] = np.zeros(array.shape, [('a', 'f'), ('b', 'i')])
        else:
            file[name] = other_arrays(random, array)
    return True


def hdf5_neutral(random, path):
    """The same model, stored in another way."""
    with h5py.File(path, 'r+') as file:
        name, array = _any_dataset(random, file)
        del file[name]
        file.create_dataset(name, data=array.astype(random.choice(['>f4', 'f8', '<f4'])),
                            **random.choice([{}, {'compression': 'gzip'}, {'chunks': True}]))


def hdf5_classes(random, path):
    """A classifier for another number of classes."""
    count = random.choice([1, 3, 10 ** 6])
    with h5py.File(path, 'r+') as file:
        units = file['output_layer/W'].shape[1]
        for name, shape in (('W', (count, units)), ('b', (count,))):
            del file[f'output_layer/{name}']
            file[f'output_layer/{name}'] = np.zeros(shape, 'f')
    return True


HDF5 = (hdf5, hdf5, hdf5, hdf5_neutral, hdf5_classes)
