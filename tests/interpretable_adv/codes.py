"""Runs a test on NumPy and on each variant of the C kernels."""
import contextlib

import pytest

from interpretable_adv.nn import kernels

VARIANTS = ['plain', 'avx2', 'avx512']
CODES = ['numpy'] + VARIANTS


@contextlib.contextmanager
def running(code, threads=None):
    """Uses NumPy or the given variant, with so many threads; skips what is not here."""
    if code != 'numpy' and not kernels.available:
        pytest.skip('the C kernels are not built')
    if code != 'numpy' and not kernels.select(code):
        pytest.skip(f'this processor has no {code}')
    before = kernels.available, kernels.threads
    kernels.available, kernels.threads = code != 'numpy', threads or kernels.threads
    try:
        yield
    finally:
        kernels.available, kernels.threads = before
        if kernels.available:
            kernels.select()
