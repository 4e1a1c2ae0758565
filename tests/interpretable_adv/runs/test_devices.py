"""The choice of a device where CuPy is missing, broken or without a GPU.

How CuPy 13.6.0 fails was looked up on a machine without a GPU: with the package alone, and
with its CUDA libraries. What needs a device runs in `tests/strict_cupy/test_devices.py`.
"""
import types

import numpy as np
import pytest
from chainer.backends import cuda

from interpretable_adv.errors import UserError
from interpretable_adv.runs import devices


@pytest.mark.parametrize('gpu, name', [(-1, None), (-1, '@numpy'), (0, '@numpy')])
def test_cpu(gpu, name):
    assert devices.choose(gpu, name).name == '@numpy'


@pytest.mark.parametrize('name', ['cpu', 'cuda:0', '@cupy', '@cupy:', '@cupy:x', '@cupy:-1',
                                  '@chainerx:0', '@intel64'])
def test_unknown_name(name):
    with pytest.raises(UserError, match='@cupy:N'):
        devices.choose(-1, name)


def test_cupy_missing(monkeypatch):
    monkeypatch.setattr(cuda, 'available', False)
    monkeypatch.setattr(cuda, '_resolution_error', ModuleNotFoundError("No module named 'cupy'"),
                        raising=False)
    with pytest.raises(UserError, match='pip install') as raised:
        devices.choose(0)
    assert 'name no GPU' in str(raised.value)


def test_libraries_missing(monkeypatch):
    error = ImportError('libcublas.so.12: cannot open shared object file: No such file')
    monkeypatch.setattr(cuda, 'available', False)
    monkeypatch.setattr(cuda, '_resolution_error', error, raising=False)
    with pytest.raises(UserError, match='libcublas.so.12.*LD_LIBRARY_PATH'):
        devices.choose(1)


@pytest.mark.parametrize('count, advice', [(0, 'no GPU that CUDA can use'), (1, 'only GPU 0'),
                                           (4, 'numbered 0 to 3')])
def test_device_fails(monkeypatch, count, advice):
    def fail():
        raise RuntimeError('cudaErrorInvalidDevice: invalid device ordinal\nmore')

    def get_device_count():
        if not count:
            raise RuntimeError('cudaErrorInsufficientDriver: …')
        return count

    runtime = types.SimpleNamespace(getDeviceCount=get_device_count)
    cupy = types.SimpleNamespace(cuda=types.SimpleNamespace(runtime=runtime))
    monkeypatch.setattr(cuda, 'available', True)
    monkeypatch.setattr(cuda, 'cupy', cupy)
    monkeypatch.setattr(devices.chainer, 'get_device',
                        lambda name: types.SimpleNamespace(use=fail))
    with pytest.raises(UserError, match='invalid device ordinal') as raised:
        devices.choose(7)
    assert advice in str(raised.value) and '\n' not in str(raised.value)


def test_seed():
    device = devices.choose()
    devices.seed(device, 3)
    assert np.random.rand() == np.random.RandomState(3).rand()


@pytest.mark.parametrize('available', [True, False])
def test_one_line_says_when_there_are_no_kernels(available, monkeypatch, capsys):
    monkeypatch.setattr(devices.kernels, 'available', available)
    devices.say_what_is_missing(devices.choose())
    assert ('NumPy is used' in capsys.readouterr().err) == (not available)
