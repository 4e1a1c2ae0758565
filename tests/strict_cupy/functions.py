"""CuPy's functions, made from NumPy's of the same name with CuPy's signatures."""
import functools

import numpy as np

from . import transfers
from .api import API, check_keywords
from .arrays import call, call_ufunc, ndarray, unwrap, wrap

# Functions that take a sequence of arrays, or none at all, as their first argument; every other
# one wants a device array there.
_NO_ARRAY_FIRST = {
    'arange', 'array2string', 'bartlett', 'base_repr', 'binary_repr', 'blackman',
    'broadcast_arrays', 'broadcast_shapes', 'can_cast', 'choose', 'column_stack', 'common_type',
    'concatenate', 'diag_indices', 'dstack', 'einsum', 'empty', 'eye', 'find_common_type', 'full',
    'hamming', 'hanning', 'hstack', 'identity', 'indices', 'isscalar', 'issctype', 'issubdtype',
    'iterable', 'ix_', 'kaiser', 'linspace', 'logspace', 'mask_indices', 'meshgrid',
    'mintypecode', 'ndim', 'ones', 'promote_types', 'ravel_multi_index', 'result_type',
    'row_stack', 'select', 'shape', 'size', 'stack', 'tri', 'vstack', 'zeros',
    'get_printoptions', 'set_printoptions', 'printoptions', 'tril_indices', 'triu_indices',
    'unravel_index', 'min_scalar_type', 'iscomplexobj', 'isrealobj'}

# What they return depends on values, so the host waits for the device.
_WAITS = {'argwhere', 'bincount', 'compress', 'extract', 'flatnonzero', 'in1d', 'intersect1d',
          'isin', 'nonzero', 'setdiff1d', 'setxor1d', 'union1d', 'unique', 'allclose',
          'array_equal', 'array_equiv'}

# Functions CuPy writes as ufuncs: 0-d device arrays promote there as arrays.
_LIKE_UFUNCS = {'clip', 'where'}

_SCATTER = {'add': 'scatter_add', 'maximum': 'scatter_max', 'minimum': 'scatter_min'}


class Ufunc:
    """A ufunc with the methods CuPy has for it."""

    def __init__(self, name):
        self._ufunc = getattr(np, name)
        self.__name__ = self.name = name

    def __call__(self, *args, **kwargs):
        return call_ufunc(self._ufunc, args, kwargs)

    def at(self, a, indices, b=None):
        if self.name not in _SCATTER:
            raise NotImplementedError(f'`{self.name}.at` is not supported yet')
        getattr(a, _SCATTER[self.name])(indices, b)

    def _method(self, method, supported, args, kwargs):
        if self.name not in supported:
            raise NotImplementedError(f'`{self.name}.{method}` is not supported yet')
        check_keywords(method, API['ufunc'][method], kwargs)
        return call(getattr(self._ufunc, method), args, kwargs)

    def reduce(self, *args, **kwargs):
        return self._method('reduce', ('add', 'multiply'), args, kwargs)

    def accumulate(self, *args, **kwargs):
        return self._method('accumulate', ('add', 'multiply'), args, kwargs)

    def reduceat(self, *args, **kwargs):
        return self._method('reduceat', ('add',), args, kwargs)

    def outer(self, a, b, **kwargs):
        return call_ufunc(self._ufunc, (a[(...,) + (None,) * b.ndim], b), kwargs)


def strict(name, function, parameters):
    """`function` behind CuPy's signature and demands."""
    array_first = name not in _NO_ARRAY_FIRST

    @functools.wraps(function)
    def checked(*args, **kwargs):
        check_keywords(name, parameters, kwargs)
        if args and array_first and not isinstance(args[0], (ndarray, int, float, np.generic)):
            raise TypeError(f'cupy.{name} needs a cupy.ndarray, got {type(args[0])}')
        if name in _WAITS or name == 'where' and len(args) == 1:
            transfers.to_host(name)
        if name in _LIKE_UFUNCS and len(args) == 3:
            return _like_ufunc(function, args, kwargs)
        return call(function, args, kwargs)
    return checked


def _like_ufunc(function, args, kwargs):
    arrays = [value for value in args if isinstance(value, ndarray)]
    values = [value._values.reshape(1) if isinstance(value, ndarray) and value.ndim == 0
              else unwrap(value) for value in args]
    result = call(lambda *_, **keywords: function(*values, **keywords), (), kwargs)
    return result.reshape(()) if all(array.ndim == 0 for array in arrays) else result


# The functions below are not NumPy's.

def _host_values(value):
    if isinstance(value, ndarray):
        return value._values
    if isinstance(value, (list, tuple)):
        return [_host_values(element) for element in value]
    return value


def _has_host_values(value):
    if isinstance(value, (list, tuple)):
        return any(map(_has_host_values, value))
    return not isinstance(value, ndarray)


def array(obj, dtype=None, copy=True, order='K', subok=False, ndmin=0, *, blocking=False):
    if _has_host_values(obj):
        transfers.to_device('array')
    values = np.asarray(_host_values(obj), dtype, order)
    if copy:
        values = values.copy(order)
    values = values.reshape((1,) * (ndmin - values.ndim) + values.shape)
    if values.dtype == object:
        raise ValueError('Unsupported dtype object')
    return wrap(values)


def asarray(a, dtype=None, order=None, *, blocking=False):
    if isinstance(a, ndarray) and (dtype is None or a.dtype == dtype):
        return a
    return array(a, dtype, copy=not isinstance(a, ndarray), order=order or 'K')


def ascontiguousarray(a, dtype=None):
    values = asarray(a, dtype)._values
    return wrap(np.ascontiguousarray(values).reshape(values.shape))


def asnumpy(a, stream=None, order='C', out=None, *, blocking=True):
    return a.get(stream, order, out) if isinstance(a, ndarray) else np.asarray(a, order=order)


def split(ary, indices_or_sections, axis=0):
    """The places to split at stay on the host."""
    if isinstance(indices_or_sections, ndarray):
        raise TypeError('indices_or_sections must be on the host')
    return [wrap(part) for part in np.split(unwrap(ary), indices_or_sections, axis)]


def array_split(ary, indices_or_sections, axis=0):
    """As `split`, with parts of unequal size."""
    if isinstance(indices_or_sections, ndarray):
        raise TypeError('indices_or_sections must be on the host')
    return [wrap(part) for part in np.array_split(unwrap(ary), indices_or_sections, axis)]


def repeat(a, repeats, axis=None):
    return a.repeat(repeats, axis)


def take(a, indices, axis=None, out=None):
    if isinstance(indices, (np.ndarray, list, tuple)):
        transfers.to_device('host index')
        indices = array(indices)
    return call(np.take, (a, indices, axis), {'out': out})


def lexsort(keys):
    if not isinstance(keys, ndarray):
        raise TypeError('keys must be one cupy.ndarray, a row per key')
    return call(np.lexsort, (keys,), {})


def sort(a, axis=-1, kind=None):
    if kind not in (None, 'stable'):
        raise ValueError(f'kind must be None or \'stable\', not {kind}')
    return call(np.sort, (a, axis, 'stable'), {})


def argsort(a, axis=-1, kind=None):
    if kind not in (None, 'stable'):
        raise ValueError(f'kind must be None or \'stable\', not {kind}')
    return call(np.argsort, (a, axis, 'stable'), {})


def searchsorted(a, v, side='left', sorter=None):
    if not isinstance(a, ndarray) or not isinstance(v, ndarray):
        raise NotImplementedError('Only int or ndarray are supported for a')
    return call(np.searchsorted, (a, v, side, sorter), {})


OWN = {function.__name__: function for function in (
    array, asarray, ascontiguousarray, asnumpy, split, array_split, repeat, take, lexsort, sort,
    argsort, searchsorted)}
OWN['asanyarray'] = asarray
