"""Numbered corpora kept beside the text as npz files, so that the second load takes a moment."""
import numpy as np

from interpretable_adv.errors import UserError
from interpretable_adv.runs.arrays import read_arrays
from interpretable_adv.runs.files import ForZip, atomic_write


def write(path, key, **arrays):
    """Stores arrays under `key`, the hash of what they were made from."""
    with atomic_write(path, 'wb') as stream:
        np.savez(ForZip(stream), key=np.array([key, *arrays]), **arrays)


def read(path, key):
    """The arrays by name, or None if the file is absent, damaged or has another key."""
    try:
        arrays = read_arrays(path)
    except UserError:
        return None
    found = arrays.pop('key', np.array([])).tolist()
    return arrays if found == [key, *arrays] else None
