"""The embedding's gradient, whole and as rows, against Chainer's own link."""
import copy

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpretable_adv.nn import embedding
from interpretable_adv.nn.adam import Adam
from tests.interpretable_adv.codes import CODES, running


def pair(n_vocab=11, size=5, keeps_rows=True):
    """Chainer's link and ours with the same parameter."""
    np.random.seed(4)
    stock = L.EmbedID(n_vocab, size)
    np.random.seed(4)
    own = embedding.EmbedID(n_vocab, size)
    own.W.keeps_rows = keeps_rows
    for link in (stock, own):
        link.cleargrads()
    return stock, own


def backward(link, batches, separately=False):
    """Gradient of a sum over several lookups, in one or in several backward passes."""
    random = np.random.RandomState(0)
    losses = [F.sum(F.square(link(ids)) * random.randn(*ids.shape, 1).astype('f'))
              for ids in batches]
    if separately:
        for loss in losses:
            loss.backward()
    else:
        sum(losses).backward()


def test_same_initialisation():
    stock, own = pair()
    np.testing.assert_array_equal(own.W.array, stock.W.array)
    assert [name for name, _ in own.namedparams()] == ['/W']
    assert np.isnan(embedding.EmbedID(2, 3).W.grad).all()  # as Chainer has it


@pytest.mark.parametrize('code', CODES)
@pytest.mark.parametrize('keeps_rows', [False, True])
@settings(deadline=None, max_examples=20, derandomize=True)
@given(sizes=st.lists(st.integers(1, 30), min_size=1, max_size=3), columns=st.integers(1, 20),
       separately=st.booleans(), seed=st.integers(0, 99))
def test_gradient(code, keeps_rows, sizes, columns, separately, seed):
    random = np.random.RandomState(seed)
    batches = [random.randint(0, 11, n).astype('i') for n in sizes]
    stock, own = pair(size=columns, keeps_rows=keeps_rows)
    backward(stock, batches, separately)
    with running(code):
        backward(own, batches, separately)
        np.testing.assert_allclose(own.W.grad, stock.W.grad, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize('code', CODES)
def test_rows(code):
    """The gradient by rows: ascending ids; the kernel adds in the order of the batch, so its
    sums are Chainer's to the last bit."""
    stock, own = pair(n_vocab=300, size=40)
    ids = np.random.RandomState(1).randint(0, 60, 500).astype('i')
    backward(stock, [ids])
    with running(code):
        backward(own, [ids])
        touched, rows = own.W.row_gradient()
    np.testing.assert_array_equal(touched, np.unique(ids))
    if code != 'numpy':
        np.testing.assert_array_equal(rows, stock.W.grad[touched])
    np.testing.assert_allclose(own.W.grad, stock.W.grad, rtol=1e-5, atol=1e-5)


def test_many_dimensional_ids():
    stock, own = pair()
    ids = np.array([[1, 2, 2], [10, 1, 0]], 'i')
    assert own(ids).shape == (2, 3, 5)
    np.testing.assert_array_equal(own(ids).array, stock(ids).array)
    backward(stock, [ids])
    backward(own, [ids])
    np.testing.assert_allclose(own.W.grad, stock.W.grad, rtol=1e-6)


def test_rows_and_whole_gradient_add_up():
    stock, own = pair()
    ids = np.array([1, 1, 3], 'i')
    for link in (stock, own):
        (F.sum(link(ids) ** 2) + F.sum(link.W ** 3)).backward()
    np.testing.assert_allclose(own.W.grad, stock.W.grad, rtol=1e-5, atol=1e-6)
    own.W.cleargrad()
    assert own.W.grad is None and own.W.row_gradient() is None


def test_no_rows_without_the_optimiser():
    _, own = pair(keeps_rows=False)
    gradient, = chainer.grad([F.sum(own(np.array([1, 1], 'i')))], [own.W])
    np.testing.assert_array_equal(gradient.array[1], np.full(5, 2))
    Adam().setup(own)
    backward(own, [np.array([1, 1], 'i')])
    assert own.W.row_gradient()[0].tolist() == [1]


def test_differentiates_twice():
    stock, own = pair(keeps_rows=False)
    results = []
    for link in (stock, own):
        loss = F.sum(link(np.array([1, 1, 4], 'i')) ** 3)
        first, = chainer.grad([loss], [link.W], enable_double_backprop=True)
        second, = chainer.grad([F.sum(first ** 2)], [link.W])
        results.append(second.array)
    np.testing.assert_allclose(results[1], results[0], rtol=1e-5)


def test_copies():
    stock, own = pair()
    ids = np.array([1, 2, 1], 'i')
    backward(own, [ids])
    backward(stock, [ids])
    double = copy.deepcopy(own)
    np.testing.assert_allclose(double.W.grad, stock.W.grad, rtol=1e-6)
    for link in (double, own.copy()):
        np.testing.assert_array_equal(link(ids).array, stock(ids).array)


def test_ignore_label_and_other_types():
    own = embedding.EmbedID(4, 2, ignore_label=-1)
    assert not own(np.array([-1], 'i')).array.any()
    with chainer.using_config('dtype', np.float64):
        assert embedding.EmbedID(4, 2)(np.array([1], 'i')).dtype == np.float64
