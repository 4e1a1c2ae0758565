"""Numbered corpora kept beside the text, so that the second load takes a moment.

A cache file is one line of JSON (the header) followed by raw little-endian arrays. The header
holds the key of the texts and flags it was made from, and a checksum of all that follows.
"""
import hashlib
import json
import os

import numpy as np

from interpretable_adv import files


def write(path, key, arrays, **values):
    """Stores `arrays` (name → 1-d array) and `values` (anything JSON can hold) under `key`."""
    arrays = {name: np.ascontiguousarray(array, array.dtype.newbyteorder('<'))
              for name, array in arrays.items()}
    header = {'key': key, 'sha256': _checksum(arrays, values), 'values': values,
              'arrays': [[name, a.dtype.str, a.size] for name, a in arrays.items()]}
    with files.atomic_write(path, 'wb') as stream:
        stream.write(json.dumps(header).encode() + b'\n')
        for array in arrays.values():
            stream.write(array.data)


def read(path, key):
    """Returns `(arrays, values)`, or None if the file is absent, damaged or has another key."""
    try:
        with open(path, 'rb') as stream:
            header = json.loads(stream.readline())
            described = [(name, np.dtype(dtype), size) for name, dtype, size in header['arrays']]
            expected = stream.tell() + sum(dtype.itemsize * size for _, dtype, size in described)
            # the size is checked first: a damaged header must not ask for terabytes
            if header['key'] != key or os.fstat(stream.fileno()).st_size != expected:
                return None
            arrays = {name: np.fromfile(stream, dtype, size) for name, dtype, size in described}
            values = header['values']
            if header['sha256'] != _checksum(arrays, values):
                return None
            return arrays, values
    except (OSError, ValueError, KeyError, TypeError):
        return None


def _checksum(arrays, values):
    digest = hashlib.sha256(json.dumps(values, sort_keys=True).encode())
    for name, array in arrays.items():
        digest.update(f'{name} {array.dtype.str} {array.size}'.encode())
        digest.update(array.data)
    return digest.hexdigest()
