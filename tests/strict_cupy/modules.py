"""Puts the stand-in where `import cupy` and `import cupyx` find it."""
import functools
import sys
import types

import numpy as np

from . import devices, generators, kernels
from .api import API
from .arrays import call, ndarray
from .functions import OWN, Ufunc, strict


def _refuse_unknown(module, names):
    """Names CuPy lacks raise `AttributeError`; those only we lack say so."""
    def missing(name):
        if name in names and not name.startswith('__'):
            raise NotImplementedError(f'strict_cupy does not stand in for {module.__name__}.{name}')
        raise AttributeError(f'module {module.__name__!r} has no attribute {name!r}')
    module.__getattr__ = missing


def _fill(module, names, source):
    for name, parameters in names.items():
        value = getattr(source, name, None)
        if name in OWN and source is np:
            setattr(module, name, OWN[name])
        elif isinstance(value, np.ufunc):
            setattr(module, name, Ufunc(name))
        elif value is None or isinstance(value, types.ModuleType):
            if name == 'newaxis':
                module.newaxis = None
        elif parameters is not None:
            setattr(module, name, strict(name, value, parameters))
        elif not callable(value) or isinstance(value, type):
            setattr(module, name, value)


def memoize(for_each_device=False):
    def decorate(function):
        return functools.lru_cache(None)(function)
    return decorate


def fuse(*args, **kwargs):
    """Fusion changes speed only, so a fused function is the function."""
    if args and callable(args[0]):
        return args[0]
    return lambda function: function


def get_array_module(*args):
    return sys.modules['cupy'] if any(isinstance(value, ndarray) for value in args) else np


def _cupy():
    cupy = types.ModuleType('cupy')
    cupy.__version__ = API['version']
    cupy.__path__ = []
    _fill(cupy, API['cupy'], np)
    cupy.ndarray = ndarray
    cupy.ElementwiseKernel = kernels.ElementwiseKernel
    cupy.ReductionKernel = kernels.ReductionKernel
    cupy.memoize, cupy.fuse, cupy.get_array_module = memoize, fuse, get_array_module
    cupy.clear_memo = lambda: None
    cupy.is_available = lambda: True
    pool, pinned = devices.MemoryPool(), devices.PinnedMemoryPool()
    cupy.get_default_memory_pool = lambda: pool
    cupy.get_default_pinned_memory_pool = lambda: pinned
    _refuse_unknown(cupy, API['cupy'])
    return cupy


def _cupyx():
    cupyx = types.ModuleType('cupyx')
    cupyx.__path__ = []
    cupyx.rsqrt = lambda x, **kwargs: call(lambda values: 1 / np.sqrt(values), (x,), {})
    cupyx.scatter_add = lambda a, slices, value: a.scatter_add(slices, value)
    cupyx.scatter_max = lambda a, slices, value: a.scatter_max(slices, value)
    cupyx.scatter_min = lambda a, slices, value: a.scatter_min(slices, value)
    scipy = types.ModuleType('cupyx.scipy')
    scipy.__path__ = []
    modules = {'cupyx': cupyx, 'cupyx.scipy': scipy}
    for name in ('linalg', 'special'):
        modules['cupyx.scipy.' + name] = types.ModuleType('cupyx.scipy.' + name)
        setattr(scipy, name, modules['cupyx.scipy.' + name])
    cupyx.scipy = scipy
    _refuse_unknown(cupyx, API['cupyx'])
    return modules


def install():
    """Makes `import cupy` give the stand-in. Call it before the first import of Chainer."""
    if 'chainer' in sys.modules:
        raise RuntimeError('install the stand-in before Chainer is imported')
    if 'cupy' in sys.modules:
        raise RuntimeError('a CuPy is already imported')
    cupy = _cupy()
    modules = {'cupy': cupy, **devices.modules(), **_cupyx()}
    modules['cupy.random'] = generators.module()
    _refuse_unknown(modules['cupy.random'], API['random'])
    modules['cupy.linalg'] = types.ModuleType('cupy.linalg')
    _fill(modules['cupy.linalg'], API['linalg'], np.linalg)
    _refuse_unknown(modules['cupy.linalg'], API['linalg'])
    modules['cupy._util'] = types.ModuleType('cupy._util')
    modules['cupy._util'].PerformanceWarning = type('PerformanceWarning', (RuntimeWarning,), {})
    for name in ('cuda', 'random', 'linalg', '_util'):
        setattr(cupy, name, modules['cupy.' + name])
    sys.modules.update(modules)
    return cupy
