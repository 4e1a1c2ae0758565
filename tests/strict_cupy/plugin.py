"""Pytest plugin (`-p strict_cupy.plugin`): installs the stand-in before Chainer is imported."""
from . import install

install()
