"""A stand-in for CuPy that runs on the CPU and is as strict as CuPy, or stricter.

It is an API-strictness test, not a GPU test: it finds code that a CPU forgives and CuPy does
not, on a machine without a GPU. It says nothing about speed, memory, cuDNN, races or the
rounding of a real device.

What it enforces

* Only names, methods and keywords that CuPy 13.6.0 has exist (`api.json`, read off a real
  installation).
* Nothing converts between NumPy and device arrays by itself: `numpy.asarray(x)`, a mixed
  operator, a NumPy array handed to a function or kernel, a NumPy function on a device array
  raise `TypeError`. (The last is stricter than CuPy, which dispatches some of them.)
* Reductions give 0-d device arrays. `float()`, `int()`, `bool()`, `.item()`, `.get()` and
  what needs a size from the device work and are counted, see `count_transfers`.
* 0-d device arrays promote dtypes as arrays, not as scalars.
* Chainer's CUDA element-wise and reduction kernels are compiled as C++ from their source.
* Random numbers come from a generator of the device; its state cannot be read out.

`install()` must run before the first import of Chainer, so tests that use it live in this
folder and run in a process of their own, started by `tests/test_strict_cupy.py`.
`python -m strict_cupy MODULE ARGUMENTS…` runs a command the same way.
"""
from .generators import shared_random_stream
from .modules import install
from .transfers import count_transfers, device_memory

__all__ = ['count_transfers', 'device_memory', 'install', 'shared_random_stream']
