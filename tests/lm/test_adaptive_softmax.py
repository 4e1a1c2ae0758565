import chainer
import chainer.functions as F
import numpy as np
import pytest
from chainer import gradient_check
from hypothesis import given, settings
from hypothesis import strategies as st

from interpretable_adv.errors import UserError
from lm.adaptive_softmax import AdaptiveSoftmax, default_cutoff


def _layer(n_units, n_vocab, cutoff, dtype=np.float32, seed=0):
    layer = AdaptiveSoftmax(n_units, n_vocab, cutoff)
    random = np.random.RandomState(seed)
    for _, parameter in sorted(layer.namedparams()):
        parameter.array = random.normal(size=parameter.shape).astype(dtype)
    return layer


def _log_softmax(scores):
    scores = scores - scores.max(axis=1, keepdims=True)
    return scores - np.log(np.exp(scores).sum(axis=1, keepdims=True))


def _reference(layer, hidden):
    """log p(w) of all words in float64, one word at a time."""
    parameters = {name[1:]: p.array.astype(np.float64) for name, p in layer.namedparams()}
    bounds = layer.bounds
    hidden = hidden.astype(np.float64)
    head = _log_softmax(hidden @ parameters['head'].T)
    result = np.empty((len(hidden), bounds[-1]))
    for word in range(bounds[-1]):
        if word < bounds[1]:
            result[:, word] = head[:, word]
            continue
        cluster = max(i for i in range(len(bounds)) if bounds[i] <= word)
        tail = _log_softmax(
            hidden @ parameters[f'reduce{cluster}'].T @ parameters[f'tail{cluster}'].T)
        result[:, word] = head[:, bounds[1] + cluster - 1] + tail[:, word - bounds[cluster]]
    return result


@st.composite
def _cases(draw):
    n_vocab = draw(st.integers(2, 40))
    cutoff = draw(st.lists(st.integers(1, n_vocab - 1), min_size=1, max_size=4, unique=True))
    n_units = draw(st.integers(1, 9))
    targets = draw(st.lists(st.integers(0, n_vocab - 1), min_size=1, max_size=12))
    return n_vocab, sorted(cutoff), n_units, np.array(targets), draw(st.integers(0, 999))


@settings(max_examples=60, deadline=None)
@given(_cases())
def test_agrees_with_numpy_for_any_cutoffs(case):
    n_vocab, cutoff, n_units, targets, seed = case
    layer = _layer(n_units, n_vocab, cutoff, seed=seed)
    hidden = np.random.RandomState(seed).normal(size=(len(targets), n_units)).astype(np.float32)
    reference = _reference(layer, hidden)
    np.testing.assert_allclose(np.exp(reference).sum(axis=1), 1)
    log_p = layer.log_probabilities(hidden).array
    np.testing.assert_allclose(np.exp(log_p.astype(np.float64)).sum(axis=1), 1, rtol=1e-5)
    np.testing.assert_allclose(log_p, reference, rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(
        layer(hidden, targets).array, -reference[np.arange(len(targets)), targets],
        rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize('targets', [
    [0, 3, 9, 4, 5, 8],     # all clusters
    [0, 1, 2, 3, 1, 0],     # head only
    [8, 9, 9, 8, 8, 9],     # last tail only
    [0, 4, 5, 6, 1, 7],     # one tail missing
    [4],
])
def test_gradients_also_without_words_of_a_cluster(targets):
    layer = _layer(6, 10, [4, 8], np.float64)
    random = np.random.RandomState(3)
    hidden = random.normal(size=(len(targets), 6))
    gradient = random.normal(size=len(targets))
    gradient_check.check_backward(
        lambda h: layer(h, np.array(targets)), hidden, gradient, params=list(layer.params()),
        dtype=np.float64, rtol=1e-5, atol=1e-6)
    layer.cleargrads()
    F.sum(layer(hidden, np.array(targets))).backward()
    assert all(p.grad is not None for p in layer.params())  # an optimiser needs them all


def test_loss_and_log_probabilities_have_the_same_gradients():
    random = np.random.RandomState(5)
    hidden = random.normal(size=(30, 8)).astype(np.float32)
    targets = random.randint(0, 50, 30)

    def gradients(loss_of):
        layer = _layer(8, 50, [10, 30])
        variable = chainer.Variable(hidden)
        loss_of(layer, variable).backward()
        return [variable.grad] + [p.grad for _, p in sorted(layer.namedparams())]

    ours = gradients(lambda layer, h: F.sum(layer(h, targets)))
    full = gradients(lambda layer, h: -F.sum(
        F.select_item(layer.log_probabilities(h), targets.astype(np.int32))))
    for a, b in zip(ours, full):
        np.testing.assert_allclose(a, b, rtol=1e-3, atol=1e-5)


def test_parameters_are_upstreams():
    layer = AdaptiveSoftmax(32, 15000, [2000, 10000])
    assert {name: p.shape for name, p in layer.namedparams()} == {
        '/head': (2002, 32), '/reduce1': (8, 32), '/tail1': (8000, 8),
        '/reduce2': (2, 32), '/tail2': (5000, 2)}
    assert layer.cutoff.dtype == np.float32
    assert layer.cutoff.tolist() == [0, 2000, 10000, 15000]


def test_cutoffs_come_back_with_the_checkpoint(tmp_path):
    path = str(tmp_path / 'layer.npz')
    chainer.serializers.save_npz(path, _layer(8, 30, [5, 12]))
    layer = AdaptiveSoftmax(8, 30, [5, 12])
    chainer.serializers.load_npz(path, layer)
    assert layer.bounds == (0, 5, 12, 30)
    assert all(isinstance(bound, int) for bound in layer.bounds)


@pytest.mark.parametrize('n_vocab,cutoff', [
    (87008, (2000, 10000)), (10001, (2000, 10000)), (10000, (2000,)), (4000, (2000,)),
    (690, (345,)), (3, (1,)), (2, (1,))])
def test_default_cutoffs_fit_the_vocabulary(n_vocab, cutoff):
    assert default_cutoff(n_vocab) == cutoff
    assert AdaptiveSoftmax(4, n_vocab).n_vocab == n_vocab


@pytest.mark.parametrize('cutoff', [[], [0], [10], [5, 5], [6, 5], [3, 11], [-2]])
def test_impossible_cutoffs_are_refused_in_one_line(cutoff):
    with pytest.raises(UserError, match='from 1 to 9'):
        AdaptiveSoftmax(4, 10, cutoff)
