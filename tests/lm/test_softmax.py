import chainer
import chainer.functions as F
import numpy as np
import pytest
from chainer import gradient_check

from lm import softmax
from lm.softmax import SoftmaxNLL, softmax_nll


def _inputs(rows, vocabulary, units, dtype=np.float32, seed=0):
    random = np.random.RandomState(seed)
    return (random.normal(size=(rows, units)).astype(dtype),
            random.normal(size=(vocabulary, units)).astype(dtype),
            random.normal(size=vocabulary).astype(dtype),
            random.randint(0, vocabulary, rows))


def _reference(hidden, weight, bias, targets):
    scores = hidden.astype(np.float64) @ weight.T + (0 if bias is None else bias)
    scores -= scores.max(axis=1, keepdims=True)
    return np.log(np.exp(scores).sum(axis=1)) - scores[np.arange(len(targets)), targets]


@pytest.mark.parametrize('rows,vocabulary,units', [(1, 2, 1), (7, 30, 5), (4, 1, 3)])
@pytest.mark.parametrize('with_bias', [True, False])
@pytest.mark.parametrize('block_elements', [1, 40, 1 << 24])
def test_agrees_with_numpy_in_blocks_of_any_size(
        rows, vocabulary, units, with_bias, block_elements, monkeypatch):
    monkeypatch.setattr(softmax, 'BLOCK_ELEMENTS', block_elements)
    hidden, weight, bias, targets = _inputs(rows, vocabulary, units)
    bias = bias if with_bias else None
    nll = softmax_nll(hidden, targets, weight, bias)
    np.testing.assert_allclose(nll.array, _reference(hidden, weight, bias, targets), rtol=2e-5,
                               atol=1e-6)


@pytest.mark.parametrize('with_bias', [True, False])
@pytest.mark.parametrize('block_elements', [10, 1 << 24])
def test_gradients(with_bias, block_elements, monkeypatch):
    monkeypatch.setattr(softmax, 'BLOCK_ELEMENTS', block_elements)
    hidden, weight, bias, targets = _inputs(5, 11, 4, np.float64)
    gradient = np.random.RandomState(1).normal(size=5)
    inputs = (hidden, weight, bias) if with_bias else (hidden, weight)
    gradient_check.check_backward(
        lambda h, w, b=None: softmax_nll(h, targets, w, b), inputs, gradient,
        dtype=np.float64, rtol=1e-5, atol=1e-6)


def test_gradients_equal_chainers_in_float32():
    hidden, weight, bias, targets = _inputs(20, 50, 8)

    def gradients(function):
        variables = [chainer.Variable(a) for a in (hidden, weight, bias)]
        function(*variables).backward()
        return [v.grad for v in variables]

    ours = gradients(lambda h, w, b: F.sum(softmax_nll(h, targets, w, b)) / 7)
    chainers = gradients(lambda h, w, b: F.sum(F.softmax_cross_entropy(
        F.linear(h, w, b), targets.astype(np.int32), reduce='no')) / 7)
    for a, b in zip(ours, chainers):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-6)


def test_scores_of_a_thousand_do_not_overflow():
    hidden, weight, bias, targets = _inputs(6, 12, 3)
    with np.errstate(all='raise', under='ignore'):
        nll = softmax_nll(hidden * 1000, targets, weight, bias).array
        blocked = SoftmaxNLL(hidden * 1000, weight, bias, targets, block_elements=12).forward()
    np.testing.assert_allclose(nll, _reference(hidden * 1000, weight, bias, targets), rtol=1e-4,
                               atol=1e-3)
    np.testing.assert_allclose(nll, blocked, rtol=1e-4, atol=1e-3)


@pytest.mark.parametrize('wrong', [-1, 12])
def test_targets_outside_the_vocabulary_are_refused(wrong):
    hidden, weight, bias, targets = _inputs(6, 12, 3)
    targets[2] = wrong
    with pytest.raises(ValueError, match='targets must lie in'):
        softmax_nll(hidden, targets, weight, bias)
