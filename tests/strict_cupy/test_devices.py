"""The choice of a device, and the device's random stream."""
import types

import chainer
import chainer.functions as F
import cupy
import numpy as np
import pytest

from interpretable_adv import nets
from interpretable_adv.errors import UserError
from interpretable_adv.nn.dropout import dropout
from interpretable_adv.runs import devices


@pytest.mark.parametrize('gpu, name', [(0, None), (-1, '@cupy:0'), (3, '@cupy:0')])
def test_gpu(gpu, name):
    device = devices.choose(gpu, name)
    assert device.name == '@cupy:0' and device.xp is cupy


def test_gpu_that_is_not_there():
    with pytest.raises(UserError, match='@cupy:1 cannot be used.*only GPU 0'):
        devices.choose(1)


def test_seed():
    device = devices.choose(0)
    devices.seed(device, 5)
    first = cupy.random.rand(3).get(), np.random.rand(3)
    devices.seed(device, 5)
    np.testing.assert_array_equal(first, [cupy.random.rand(3).get(), np.random.rand(3)])


class Draws(chainer.training.Updater):
    """Stands in for a run: its only work is to draw on the device."""

    is_new_epoch = False
    epoch = epoch_detail = previous_epoch_detail = 0

    def __init__(self, iteration=0):
        self.iteration, self.drawn = iteration, []

    def update(self):
        self.drawn.append(cupy.random.rand(2).tolist())
        self.iteration += 1

    def get_all_optimizers(self):
        return {}

    get_all_iterators = get_all_optimizers

    def connect_trainer(self, trainer):
        pass

    def finalize(self):
        pass


def draw(first, last, out, worker=0):
    updater = Draws(first)
    trainer = chainer.training.Trainer(updater, (last, 'iteration'), out)
    trainer.extend(devices.StepStream(11, worker))
    trainer.run()
    return updater.drawn


def test_resumed_run_draws_what_an_undisturbed_one_does(tmp_path):
    whole = draw(0, 6, tmp_path)
    assert len(set(map(str, whole))) == 6
    cupy.random.seed(99)
    assert draw(4, 6, tmp_path) == whole[4:]
    assert draw(0, 6, tmp_path, worker=1) != whole


def test_generator_is_philox(tmp_path, monkeypatch):
    methods = []
    monkeypatch.setattr(cupy.random, 'RandomState', lambda seed, method: methods.append(method)
                        or types.SimpleNamespace(seed=lambda seed: None))
    monkeypatch.setattr(cupy.random, 'set_random_state', lambda state: None)
    draw(0, 1, tmp_path)
    assert methods == [cupy.cuda.curand.CURAND_RNG_PSEUDO_PHILOX4_32_10]


def test_dropout_leaves_cudnn_alone(monkeypatch):
    """With cuDNN, Chainer's dropout draws from a generator that no seed of ours reaches."""
    monkeypatch.setattr(chainer, 'should_use_cudnn',
                        lambda level, *_: chainer.config.use_cudnn != 'never')
    x = cupy.ones((40, 50), 'f')
    with pytest.raises(RuntimeError, match='cuDNN'):
        F.dropout(x)
    dropped = dropout(x, 0.25).array
    assert set(np.unique(dropped.get())) == {0, np.float32(1 / 0.75)}
    model = nets.Classifier(5, 3, 4)
    model.to_device('@cupy:0')
    model.embed(cupy.arange(5))
