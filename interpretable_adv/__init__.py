"""Interpretable adversarial training for text: AdvT, iAdvT, VAT, iVAT and SPGD."""
import os

# Before NumPy is loaded, for its OpenBLAS: a thread of it that has nothing to do spins for 2^n
# cycles before it sleeps. By default these are some 20 ms, on a core that the C kernels need.
os.environ.setdefault('OPENBLAS_THREAD_TIMEOUT', '20')

from interpretable_adv import compat  # noqa: E402, F401  (before the first import of Chainer)

__version__ = '1.0.0'
