"""Numbered corpora kept beside the text as npz files, so that the second load takes a moment."""
import io
import zipfile
import zlib

import numpy as np

from interpretable_adv.runs.files import ForZip, atomic_write


def write(path, key, **arrays):
    """Stores arrays under `key`, the hash of what they were made from."""
    with atomic_write(path, 'wb') as stream:
        np.savez(ForZip(stream), key=np.array([key, *arrays]), **arrays)


def read(path, key):
    """The arrays by name, or None if the file is absent, damaged or has another key."""
    try:
        with zipfile.ZipFile(path) as file:
            # Whole members first: the zip's checksums then vouch for NumPy's headers, too.
            arrays = {name.removesuffix('.npy'): np.lib.format.read_array(
                io.BytesIO(file.read(name)), allow_pickle=False) for name in file.namelist()}
    except (OSError, ValueError, EOFError, RuntimeError, zipfile.BadZipFile, zlib.error):
        return None
    found = arrays.pop('key', np.array([])).tolist()
    return arrays if found == [key, *arrays] else None
