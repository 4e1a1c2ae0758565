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
    described = [[name, array.dtype.str, array.size] for name, array in arrays.items()]
    content = [key, described, values]
    header = json.dumps([_checksum(content, arrays), *content])
    with files.atomic_write(path, 'wb') as stream:
        stream.write(header.encode() + b'\n')
        for array in arrays.values():
            stream.write(array.data)


def read(path, key):
    """Returns `(arrays, values)`, or None if the file is absent, damaged or has another key."""
    try:
        with open(path, 'rb') as stream:
            checksum, *content = json.loads(stream.readline())
            found, described, values = content
            layout = [(name, np.dtype(dtype), size) for name, dtype, size in described]
            expected = stream.tell() + sum(dtype.itemsize * size for _, dtype, size in layout)
            # the size is checked first: a damaged header must not ask for terabytes
            if found != key or os.fstat(stream.fileno()).st_size != expected:
                return None
            arrays = {name: np.fromfile(stream, dtype, size) for name, dtype, size in layout}
            return (arrays, values) if checksum == _checksum(content, arrays) else None
    except (OSError, ValueError, TypeError):
        return None


def _checksum(content, arrays):
    digest = hashlib.sha256(json.dumps(content).encode())
    for array in arrays.values():
        digest.update(array.data)
    return digest.hexdigest()
