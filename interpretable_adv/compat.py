"""Lets Chainer 7.8.1 import and run on today's Python, NumPy and CuPy.

Importing this module is all there is to it; `interpretable_adv/__init__.py` does so before
anything can import Chainer. No other file knows about these repairs.

What Chainer asks for at import time, and where it went:

* `numpy.distutils.system_info` — gone from Python 3.12 on. Chainer only uses it to warn
  about Accelerate on macOS, so an answer of "nothing known" is enough.
* `numpy.sctypes` — gone from NumPy 2.
* `pkg_resources` — gone from setuptools 82. Chainer only uses it to warn about CuPy
  packages installed side by side.
"""
import importlib.util
import sys
import types
import warnings

import numpy


def _stand_in(name, **members):
    module = types.ModuleType(name)
    vars(module).update(members)
    sys.modules[name] = module
    return module


def _is_missing(name):
    try:
        return importlib.util.find_spec(name) is None
    except ImportError:  # the parent package is missing
        return True


def _import_quietly(name):
    """Imports a deprecated module once, so that its warnings do not reach the user."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore')
        importlib.import_module(name)


def _repair_numpy_distutils():
    if _is_missing('numpy.distutils'):
        system_info = _stand_in('numpy.distutils.system_info', get_info=lambda name: {})
        numpy.distutils = _stand_in('numpy.distutils', system_info=system_info)
    else:
        _import_quietly('numpy.distutils.system_info')


def _repair_pkg_resources():
    if _is_missing('pkg_resources'):
        missing = type('DistributionNotFound', (Exception,), {})
        conflict = type('VersionConflict', (Exception,), {})

        def require(requirement):
            raise missing(requirement)

        _stand_in('pkg_resources', DistributionNotFound=missing, VersionConflict=conflict,
                  require=require)
    else:
        _import_quietly('pkg_resources')


def _repair_numpy_names():
    if not hasattr(numpy, 'sctypes'):
        numpy.sctypes = {
            'int': [numpy.int8, numpy.int16, numpy.int32, numpy.int64],
            'uint': [numpy.uint8, numpy.uint16, numpy.uint32, numpy.uint64],
            'float': [numpy.float16, numpy.float32, numpy.float64, numpy.longdouble],
            'complex': [numpy.complex64, numpy.complex128, numpy.clongdouble],
            'others': [bool, object, bytes, str, numpy.void],
        }


def _silence_missing_libraries():
    """cuDNN and NCCL are optional; CuPy and Chainer warn at import when they are absent."""
    for message in ('cuDNN is not enabled', r'\s*(nccl|cudnn) library could not be loaded'):
        warnings.filterwarnings('ignore', message, UserWarning)


_silence_missing_libraries()
_repair_numpy_distutils()
_repair_pkg_resources()
_repair_numpy_names()
