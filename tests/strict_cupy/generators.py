"""`cupy.random`: a generator per device, seeded but never read out."""
import contextlib
import types

import numpy as np

from .api import API, check_keywords
from .arrays import call, ndarray, wrap


class RandomState:
    """Draws on the host with NumPy's generator, in float64, and rounds to the dtype asked for.

    As in CuPy there is no `get_state`: a snapshot can hold a seed, never a state.
    """

    def __init__(self, seed=None, method=None):
        self._generator = np.random.RandomState()
        self.seed(seed)

    def seed(self, seed=None):
        if seed is None:
            self._generator.seed()
            return
        if np.asarray(seed).dtype.kind not in 'biu':
            raise TypeError('Seed must be an integer.')
        self._generator.seed(np.array([int(seed) & 0xffffffff, int(seed) >> 32 & 0xffffffff]))

    def rand(self, *size, **kwarg):
        dtype = _dtype_only('rand', kwarg)
        return wrap(np.asarray(self._generator.rand(*size), dtype))

    def randn(self, *size, **kwarg):
        dtype = _dtype_only('randn', kwarg)
        return wrap(np.asarray(self._generator.randn(*size), dtype))

    def shuffle(self, a):
        if not isinstance(a, ndarray):
            raise TypeError('The array must be cupy.ndarray')
        self._generator.shuffle(a._values)

    def permutation(self, a):
        return call(self._generator.permutation, (a,), {})

    def choice(self, a, size=None, replace=True, p=None):
        return call(self._generator.choice, (a, size, replace, p), {})

    def randint(self, low, high=None, size=None, dtype='l'):
        return wrap(np.asarray(self._generator.randint(low, high, size), dtype))

    def __getattr__(self, name):
        if name not in API['RandomState']:
            raise AttributeError(f'\'RandomState\' object has no attribute {name!r}')

        def draw(*args, **kwargs):
            check_keywords(name, API['RandomState'][name], kwargs)
            dtype = _floating(kwargs.pop('dtype', float))
            values = call(getattr(self._generator, name), args, kwargs)
            return wrap(np.asarray(values._values if isinstance(values, ndarray) else values,
                                   dtype))
        return draw


def _floating(dtype):
    if np.dtype(dtype).char not in 'fd':
        raise TypeError('cupy.random only supports float32 and float64')
    return dtype


def _dtype_only(name, keywords):
    dtype = keywords.pop('dtype', float)
    if keywords:
        raise TypeError(f'{name}() got unexpected keyword arguments {set(keywords)}')
    return _floating(dtype)


_current = [None]


def get_random_state():
    if _current[0] is None:
        _current[0] = RandomState()
    return _current[0]


def set_random_state(rs):
    if not isinstance(rs, RandomState):
        raise TypeError(f'Random state must be an instance of RandomState. Actual: {type(rs)}')
    if not isinstance(_current[0], _Shared):
        _current[0] = rs


@contextlib.contextmanager
def shared_random_stream():
    """Lets the device draw from NumPy's global stream while the block runs.

    A run on the device and one with NumPy that draw in the same order then see the same
    numbers, dropout masks included. Seeding the device, or giving it another generator, is
    without effect meanwhile.
    """
    before = _current[0]
    _current[0] = _Shared()
    try:
        yield
    finally:
        _current[0] = before


class _Shared(RandomState):

    def __init__(self):
        self._generator = np.random.mtrand._rand

    def seed(self, seed=None):
        pass


def module():
    """The module `cupy.random`."""
    random = types.ModuleType('cupy.random')
    random.RandomState = RandomState
    random.get_random_state = get_random_state
    random.set_random_state = set_random_state

    def delegate(name, parameters):
        def draw(*args, **kwargs):
            check_keywords(name, parameters, kwargs)
            return getattr(get_random_state(), method)(*args, **kwargs)
        method = {'random': 'random_sample', 'ranf': 'random_sample',
                  'sample': 'random_sample'}.get(name, name)
        draw.__name__ = name
        return draw

    for name, parameters in API['random'].items():
        if parameters is not None and not hasattr(random, name):
            setattr(random, name, delegate(name, parameters))
    return random
