"""Dropout is Chainer's, bit for bit, whatever draws its masks."""
import chainer
import chainer.functions as F
import numpy as np
import pytest

from interpretable_adv.nn.dropout import dropout
from tests.interpretable_adv.codes import CODES, running


@pytest.mark.parametrize('code', CODES)
@pytest.mark.parametrize('train', [True, False])
@pytest.mark.parametrize('kind', ['f', 'd'])
def test_dropout_is_chainers(code, train, kind):
    x = np.random.RandomState(0).randn(70, 50).astype(kind)
    results = []
    with chainer.using_config('train', train), running(code):
        for drop in (F.dropout, dropout):
            np.random.seed(4)
            variable = chainer.Variable(x)
            y = drop(variable, 0.3)
            F.sum(y * y).backward()
            results.append((y.array, variable.grad, np.random.rand()))
    for expected, actual in zip(*results):
        np.testing.assert_array_equal(actual, expected)
