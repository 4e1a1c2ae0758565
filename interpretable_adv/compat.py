"""Lets Chainer 7.8.1 import and run on today's Python, NumPy and CuPy.

Importing this module is all there is to it; `interpretable_adv/__init__.py` does so before
anything can import Chainer. No other file knows about these repairs.

* `chainer._environment_check` imports `numpy.distutils`, gone from Python 3.12 on, and
  `pkg_resources`, gone from setuptools 82. All it does is warn about Accelerate on macOS and about
  CuPy packages that are installed twice, so Chainer does without it.
* `numpy.sctypes` is gone from NumPy 2.
"""
import sys
import types
import warnings

import numpy


def _skip_environment_check():
    check = types.ModuleType('chainer._environment_check')
    check.check = lambda: None
    sys.modules[check.__name__] = check


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
_skip_environment_check()
_repair_numpy_names()
