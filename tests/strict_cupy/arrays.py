"""`cupy.ndarray`: a NumPy array that refuses whatever CuPy refuses."""
import functools

import numpy as np

from . import transfers
from .api import API, check_keywords

IMPLICIT = ('Implicit conversion to a NumPy array is not allowed. Please use `.get()` to '
            'construct a NumPy array explicitly.')
_SCALARS = (int, float, complex, bool, np.generic)


class MemoryPointer:
    """Where an array's values are; kernels that take raw pointers read `ptr`."""

    def __init__(self, address):
        self.ptr = address

    def __int__(self):
        return self.ptr


class ndarray:  # noqa: N801  (CuPy's name)
    """A device array. Its values are in `_values`, which only this package touches."""

    __slots__ = ('_values', '__weakref__')
    __array_priority__ = 100
    __hash__ = None

    def __init__(self, shape, dtype=float, memptr=None, strides=None, order='C'):
        if memptr is not None or strides is not None:
            raise NotImplementedError('strict_cupy makes no arrays from memory pointers')
        self._values = np.empty(shape, dtype, order)
        transfers.allocated(self._values.nbytes)

    # What CuPy refuses

    def __array__(self, dtype=None, copy=None):
        raise TypeError(IMPLICIT)

    def __array_function__(self, function, types, args, kwargs):
        raise TypeError(f'numpy.{function.__name__} was called with a device array; '
                        'use the function of the array\'s own module')

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        # `numpy.float32(2) * x` arrives here and is legal. So is `numpy.sqrt(x)` in CuPy, but
        # not here: it would not survive the day x is a list of arrays.
        if method != '__call__' or not any(isinstance(value, np.generic) for value in inputs):
            for value in inputs:
                unwrap(value)
            raise TypeError(f'numpy.{ufunc.__name__} was called with a device array; '
                            'use the function of the array\'s own module')
        return call_ufunc(ufunc, inputs, kwargs)

    # Between host and device

    def get(self, stream=None, order='C', out=None, blocking=True):
        transfers.to_host('get')
        if out is not None:
            out[...] = self._values
            return out
        return self._values.copy(order)

    def set(self, arr, stream=None):
        if not isinstance(arr, np.ndarray):
            raise TypeError('Only numpy.ndarray can be set to cupy.ndarray')
        if arr.dtype != self.dtype or arr.shape != self.shape:
            raise ValueError('dtype or shape mismatch')
        transfers.to_device('set')
        self._values[...] = arr

    def item(self):
        transfers.to_host('item')
        return self._values.item()

    def tolist(self):
        transfers.to_host('tolist')
        return self._values.tolist()

    def tobytes(self, order='C'):
        transfers.to_host('tobytes')
        return self._values.tobytes(order)

    def __float__(self):
        transfers.to_host('float')
        return float(self._values)

    def __int__(self):
        transfers.to_host('int')
        return int(self._values)

    def __complex__(self):
        transfers.to_host('complex')
        return complex(self._values)

    def __bool__(self):
        transfers.to_host('bool')
        return bool(self._values)

    def __repr__(self):
        transfers.to_host('repr')
        return repr(self._values)

    def __str__(self):
        transfers.to_host('str')
        return str(self._values)

    def __format__(self, specification):
        transfers.to_host('format')
        return format(self._values.item() if self.ndim == 0 else self._values, specification)

    def __copy__(self):
        return wrap(self._values.copy())

    def __deepcopy__(self, memo):
        return wrap(self._values.copy())

    def __reduce__(self):
        transfers.to_host('pickle')
        return _restore, (self._values,)

    # Elements

    def __len__(self):
        return len(self._values)

    def __iter__(self):
        if self.ndim == 0:
            raise TypeError('iteration over a 0-d array')
        return (self[position] for position in range(len(self)))

    def __getitem__(self, index):
        if any(part.dtype == bool for part in _index_arrays(index)):
            transfers.to_host('boolean index')
        return wrap(self._values[unwrap_index(index)])

    def __setitem__(self, index, value):
        self._values[unwrap_index(index)] = unwrap(value)

    def scatter_add(self, slices, value):
        np.add.at(self._values, unwrap_index(slices), unwrap(value))

    def scatter_max(self, slices, value):
        np.maximum.at(self._values, unwrap_index(slices), unwrap(value))

    def scatter_min(self, slices, value):
        np.minimum.at(self._values, unwrap_index(slices), unwrap(value))

    # Properties

    @property
    def shape(self):
        return self._values.shape

    @shape.setter
    def shape(self, shape):
        self._values.shape = shape

    @property
    def device(self):
        from .devices import Device
        return Device()

    @property
    def data(self):
        return MemoryPointer(self._values.ctypes.data)

    def reduced_view(self, dtype=None):
        return wrap(self._values.reshape(-1) if self._values.flags.c_contiguous
                    else self._values)

    def repeat(self, repeats, axis=None):
        check_repeats(repeats)
        return wrap(self._values.repeat(repeats, axis))

    def nonzero(self):
        transfers.to_host('nonzero')
        return wrap(self._values.nonzero())

    def view(self, dtype=None, type=None):
        if type is not None:
            raise NotImplementedError('strict_cupy has no views of other types')
        return wrap(self._values.view() if dtype is None else self._values.view(dtype))

    def astype(self, dtype, order='K', casting=None, subok=None, copy=True):
        return wrap(self._values.astype(dtype, order, casting or 'unsafe', copy=copy))

    def __getattr__(self, name):
        if name.startswith('__') or name not in API['ndarray']:
            raise AttributeError(f'\'cupy.ndarray\' object has no attribute {name!r}')
        if name in ('_c_contiguous', '_f_contiguous'):
            return bool(self._values.flags[name[1:].upper()])
        value = getattr(self._values, name)
        if not callable(value):
            return wrap(value)
        return functools.partial(_call_method, name, value)


def _restore(values):
    return wrap(values)


def _call_method(name, method, *args, **kwargs):
    check_keywords(name, API['ndarray'][name], kwargs)
    return call(method, args, kwargs)


def check_repeats(repeats):
    """CuPy takes an int or a list or tuple of ints, no array of either kind."""
    if not isinstance(repeats, (int, np.integer, list, tuple)):
        raise ValueError(f'\'repeats\' should be int or sequence: {type(repeats)}')


def wrap(value):
    """Turns NumPy results into device arrays; scalars become 0-d, tuples and lists follow."""
    if isinstance(value, (np.ndarray, np.generic)):
        array = object.__new__(ndarray)
        array._values = np.asarray(value)
        if array._values.base is None:
            transfers.allocated(array._values.nbytes)
        return array
    if type(value) in (tuple, list):
        if any(isinstance(element, (np.ndarray, np.generic)) for element in value):
            return type(value)(map(wrap, value))
    return value


def unwrap(value):
    """The NumPy values behind an argument; raises `TypeError` for a host array."""
    if isinstance(value, ndarray):
        return value._values
    if isinstance(value, np.ndarray):
        raise TypeError(f'Unsupported type {type(value)}')
    if type(value) in (tuple, list):
        return type(value)(map(unwrap, value))
    return value


def _index_arrays(index):
    parts = index if isinstance(index, tuple) else (index,)
    return [part for part in parts if isinstance(part, (ndarray, np.ndarray))]


def unwrap_index(index):
    """An index for NumPy. CuPy takes host arrays here: a copy to the device, so counted."""
    if isinstance(index, tuple):
        return tuple(map(unwrap_index, index))
    if isinstance(index, ndarray):
        return index._values
    if isinstance(index, (np.ndarray, list)):
        transfers.to_device('host index')
    return index


def call(function, args, kwargs):
    """Calls a NumPy function on device arguments; its result is on the device."""
    result = function(*map(unwrap, args), **{key: unwrap(value) for key, value in kwargs.items()})
    out = kwargs.get('out')
    return out if isinstance(out, ndarray) else wrap(result)


def call_ufunc(ufunc, args, kwargs):
    """Calls a ufunc with CuPy's dtypes: a 0-d device array counts as an array, not a scalar."""
    for keyword in kwargs:
        if keyword not in ('out', 'dtype', 'casting'):
            raise TypeError(f'Wrong arguments {kwargs}')
    arrays = [value for value in args if isinstance(value, ndarray)]
    for value in args:
        if not isinstance(value, (ndarray,) + _SCALARS):
            raise TypeError(f'Unsupported type {type(value)}')
    values = [value._values.reshape(1) if isinstance(value, ndarray) and value.ndim == 0
              else unwrap(value) for value in args]
    out = kwargs.get('out')
    if isinstance(out, tuple):
        out, = out
    keywords = {key: value for key, value in kwargs.items() if key != 'out'}
    result = ufunc(*values, **keywords)
    if all(array.ndim == 0 for array in arrays):
        result = (tuple(part.reshape(()) for part in result) if isinstance(result, tuple)
                  else np.asarray(result).reshape(()))
    if out is None:
        return wrap(result)
    if not isinstance(out, ndarray):
        raise TypeError(f'return arrays must be of cupy.ndarray, not {type(out)}')
    if out.shape != result.shape:
        raise ValueError(f'Out shape is mismatched: {out.shape} != {result.shape}')
    np.copyto(out._values, result, casting=kwargs.get('casting', 'same_kind'))
    return out


_OPERATORS = {
    'add': np.add, 'sub': np.subtract, 'mul': np.multiply, 'truediv': np.true_divide,
    'floordiv': np.floor_divide, 'mod': np.remainder, 'pow': np.power, 'and': np.bitwise_and,
    'or': np.bitwise_or, 'xor': np.bitwise_xor, 'lshift': np.left_shift,
    'rshift': np.right_shift, 'lt': np.less, 'le': np.less_equal, 'gt': np.greater,
    'ge': np.greater_equal, 'eq': np.equal, 'ne': np.not_equal, 'neg': np.negative,
    'pos': np.positive, 'abs': np.absolute, 'invert': np.invert}


def _operator(ufunc, reverse=False, in_place=False):
    def operate(self, *others):
        for other in others:
            if isinstance(other, np.ndarray):
                raise TypeError(f'Unsupported type {type(other)}')
            if not isinstance(other, (ndarray,) + _SCALARS):
                return NotImplemented
        args = (others[0], self) if reverse else (self,) + others
        return call_ufunc(ufunc, args, {'out': self} if in_place else {})
    return operate


def _matrix_operator(reverse=False):
    def operate(self, other):
        if isinstance(other, np.ndarray):
            raise TypeError(f'Unsupported type {type(other)}')
        if not isinstance(other, ndarray):
            return NotImplemented
        args = (other, self) if reverse else (self, other)
        return wrap(np.matmul(*map(unwrap, args)))
    return operate


def _add_operators():
    for name, ufunc in _OPERATORS.items():
        for prefix, options in (('', {}), ('r', {'reverse': True}), ('i', {'in_place': True})):
            method = f'__{prefix}{name}__'
            if method in API['ndarray']:
                setattr(ndarray, method, _operator(ufunc, **options))
    ndarray.__matmul__ = _matrix_operator()
    ndarray.__rmatmul__ = _matrix_operator(reverse=True)


_add_operators()
ndarray.__module__ = 'cupy'
