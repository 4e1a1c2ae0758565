"""What upstream lacks on a CPU, put in place around it; upstream itself is not changed."""
import contextlib
import importlib.abc
import importlib.machinery
import sys
import types

import chainer
import numpy as np


@contextlib.contextmanager
def replaced(owner, name, value):
    """Replaces an attribute for a while; one that was not there is removed again."""
    missing = object()
    old = getattr(owner, name) if name in dir(owner) else missing
    setattr(owner, name, value)
    try:
        yield
    finally:
        if old is missing:
            delattr(owner, name)
        else:
            setattr(owner, name, old)


@contextlib.contextmanager
def cpu():
    """`to_gpu` is the identity, NumPy's normal takes a dtype, removed NumPy names are back."""
    numpy_normal = np.random.normal

    def normal(loc=0.0, scale=1.0, size=None, dtype=None):
        drawn = numpy_normal(loc, scale, size)
        return drawn if dtype is None else np.asarray(drawn).astype(dtype)

    def stay(array, *_, **__):
        return array

    with contextlib.ExitStack() as stack:
        for module in {id(m): m for m in (chainer.cuda, chainer.backends.cuda)}.values():
            stack.enter_context(replaced(module, 'to_gpu', stay))
        stack.enter_context(replaced(np.random, 'normal', normal))
        for name, kind in (('int', int), ('float', float), ('bool', bool), ('object', object)):
            if name not in np.__dict__:
                stack.enter_context(replaced(np, name, kind))
        yield


class _Nothing(types.ModuleType):
    """A module that has every attribute, and whose attributes can be called."""

    __path__ = []

    def __getattr__(self, name):
        if name.startswith('__'):
            raise AttributeError(name)
        return _Nothing(name)

    def __call__(self, *_, **__):
        return _Nothing('result')


class MissingModules(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Lets a program import what is not installed, as far as its flags."""

    def find_spec(self, fullname, path=None, target=None):
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec):
        return _Nothing(spec.name)

    def exec_module(self, module):
        pass

    def __enter__(self):
        sys.meta_path.append(self)  # last: only what nobody else finds

    def __exit__(self, *_):
        sys.meta_path.remove(self)
        for name in [name for name, module in sys.modules.items()
                     if isinstance(module, _Nothing)]:
            del sys.modules[name]
