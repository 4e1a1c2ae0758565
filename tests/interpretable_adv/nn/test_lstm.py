"""The fast LSTM against Chainer's own `NStepLSTM`: forward, every gradient, random stream."""
import os
import subprocess
import sys
from unittest import mock

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
from chainer.links.rnn import n_step_rnn
from hypothesis import Phase, given, settings
from hypothesis import strategies as st

from interpretable_adv.nn import lstm
from tests.interpretable_adv.codes import CODES, running


def stock_forward(link, x, lengths, hx=None, cx=None):
    """`LSTM.forward` by the stock link; `link` shares its parameters.

    Stock sorts by `numpy.argsort`, whose order of equal lengths depends on its version and on the
    processor, and with it the dropout masks that they meet. Here the order is ours.
    """
    xs = F.split_axis(chainer.as_variable(x), np.cumsum(lengths)[:-1], axis=0)
    order = lstm.longest_first(lengths).astype('i')
    with mock.patch.object(n_step_rnn, 'argsort_list_descent', lambda reviews: order):
        hy, cy, ys = L.NStepLSTM.forward(link, hx, cx, xs)
    return hy, cy, F.concat(ys, axis=0)


def make(n_layers, in_size, out_size, dropout=0.0, seed=0):
    """A link with random biases too, as zeros would hide errors."""
    random = np.random.RandomState(seed)
    link = lstm.LSTM(n_layers, in_size, out_size, dropout)
    for parameter in link.params():
        parameter.array[...] = random.randn(*parameter.shape) * 0.4
    return link


def run(forward, link, x, lengths, hx, cx, outputs, seed=3):
    """All results and gradients of one forward and backward pass as a list of arrays."""
    x = chainer.Variable(x)
    hx, cx = (None if state is None else chainer.Variable(state) for state in (hx, cx))
    link.cleargrads()
    np.random.seed(seed)
    results = forward(link, x, lengths, hx, cx)
    weights = np.random.RandomState(9)
    loss = sum(F.sum(result * weights.randn(*result.shape).astype('f'))
               for result in results[:3 if outputs else 2])
    loss.backward()
    stream = np.random.rand()
    states = [state for state in (x, hx, cx) if state is not None]
    gradients = [variable.grad for variable in states + [p for _, p in sorted(link.namedparams())]]
    return [result.array for result in results[:3 if outputs else 2]] + gradients, stream


def fast_forward(link, x, lengths, hx, cx):
    return link(x, lengths, hx, cx)


@pytest.mark.parametrize('code', CODES)
@settings(deadline=None, max_examples=25, derandomize=True, phases=[Phase.generate])
@given(lengths=st.lists(st.integers(1, 12), min_size=1, max_size=14),
       in_size=st.integers(1, 9), out_size=st.integers(1, 40), n_layers=st.integers(1, 2),
       states=st.sampled_from(['none', 'h', 'c', 'both']), outputs=st.booleans(),
       dropout=st.sampled_from([0.0, 0.3]), train=st.booleans())
def test_equals_stock(code, lengths, in_size, out_size, n_layers, states, outputs, dropout, train):
    random = np.random.RandomState(1)
    link = make(n_layers, in_size, out_size, dropout)
    x = random.randn(sum(lengths), in_size).astype('f')
    hx, cx = (random.randn(n_layers, len(lengths), out_size).astype('f') * 0.5
              if states in (name, 'both') else None for name in 'hc')
    with chainer.using_config('train', train):
        expected, stream = run(stock_forward, link, x, lengths, hx, cx, outputs)
        with running(code):
            actual, own_stream = run(fast_forward, link, x, lengths, hx, cx, outputs)
    assert own_stream == stream
    for one, other in zip(actual, expected):
        scale = max(np.abs(other).max(), 0.1)  # small numbers that are what large ones left over
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5 * scale)


@pytest.mark.parametrize('code', CODES)
@pytest.mark.parametrize('units', [96, 130, 256])
def test_large(code, units):
    """Sizes that several threads share, and more rows than a tile of the kernel has."""
    random = np.random.RandomState(2)
    link, lengths = make(1, 7, units), random.randint(1, 9, 33)
    x = random.randn(lengths.sum(), 7).astype('f')
    for parameter in link.params():
        parameter.array *= 0.2
    expected, _ = run(stock_forward, link, x, lengths, None, None, True)
    with running(code):
        actual, _ = run(fast_forward, link, x, lengths, None, None, True)
    for one, other in zip(actual, expected):
        np.testing.assert_allclose(one, other, rtol=1e-5, atol=1e-5 * np.abs(other).max())


def test_many_reviews_of_equal_length_meet_stocks_dropout_masks():
    """More than 16 equal lengths do not keep their order."""
    random = np.random.RandomState(4)
    link, lengths = make(2, 3, 5, dropout=0.5), random.randint(1, 4, 40)
    assert (lstm.longest_first(lengths) != np.argsort(-lengths, kind='stable')).any()
    x = random.randn(lengths.sum(), 3).astype('f')
    expected, _ = run(stock_forward, link, x, lengths, None, None, True)
    actual, _ = run(fast_forward, link, x, lengths, None, None, True)
    for one, other in zip(actual, expected):
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_only_the_input_gradient(monkeypatch):
    """Asked for the gradient of x alone, no product for the weights is made."""
    link, lengths = make(1, 3, 5), [4, 2]
    x = chainer.Variable(np.random.RandomState(0).randn(6, 3).astype('f'))
    link.cleargrads()
    asked = []
    backward = lstm.Layer.backward
    monkeypatch.setattr(lstm.Layer, 'backward', lambda self, indexes, grads: (
        asked.append(indexes) or backward(self, indexes, grads)))
    hy, _, _ = link(x, lengths, outputs=False)
    gradient, = chainer.grad([F.sum(hy * hy)], [x])
    assert asked == [(0,)]
    assert all(p.grad is None for p in link.params())
    hy, _, _ = stock_forward(link, x, lengths)
    expected, = chainer.grad([F.sum(hy * hy)], [x])
    np.testing.assert_allclose(gradient.array, expected.array, rtol=1e-5, atol=1e-6)


def test_without_backprop_keeps_nothing():
    link = make(1, 3, 5)
    x = np.ones((6, 3), 'f')
    with chainer.no_backprop_mode():
        hy, cy, ys = link(x, [4, 2])
    assert all(result.creator is None for result in (hy, cy, ys))
    np.testing.assert_allclose(ys.array, link(x, [4, 2])[2].array, rtol=1e-6)


def test_no_outputs():
    hy, _, ys = make(2, 3, 5)(np.ones((6, 3), 'f'), [4, 2], outputs=False)
    assert ys is None and hy.shape == (2, 2, 5)


def test_other_types_take_the_stock_path():
    link = make(1, 3, 5)
    for parameter in link.params():
        parameter.array = parameter.array.astype(np.float64)
    x = np.random.RandomState(0).randn(6, 3)
    expected = stock_forward(link, x, [2, 4])
    for one, other in zip(link(x, [2, 4]), expected):
        assert one.dtype == np.float64
        np.testing.assert_array_equal(one.array, other.array)


@pytest.mark.parametrize('lengths', [[], [3, 0], [2, 5], [[3, 3]]])
def test_wrong_lengths(lengths):
    with pytest.raises(ValueError, match='lengths'):
        make(1, 3, 5)(np.ones((6, 3), 'f'), lengths)


@pytest.mark.parametrize('lengths', [[1], [3, 3, 3], [1, 5, 2, 5]])
def test_packing(lengths):
    packing = lstm.Packing(np.array(lengths))
    words = [(review, step) for review, n in enumerate(lengths) for step in range(n)]
    packed = [words[row] for row in packing.rows]
    order = sorted(range(len(lengths)), key=lambda review: -lengths[review])
    rank = {review: position for position, review in enumerate(order)}
    assert packing.order.tolist() == order
    assert packed == sorted(words, key=lambda word: (word[1], rank[word[0]]))
    assert [packed[row] for row in packing.inverse_rows] == words
    assert [packed[row] for row in packing.last] == [(r, lengths[r] - 1) for r in order]
    assert packing.offsets.tolist() == [
        sum(min(n, step) for n in lengths) for step in range(max(lengths) + 1)]
    assert [packed[row] for row in packing.previous] == [
        (review, step - 1) for review, step in packed[len(lengths):]]


@given(st.lists(st.integers(1, 12), min_size=1, max_size=80))
def test_reviews_are_sorted_from_long_to_short(lengths):
    order = lstm.longest_first(np.array(lengths))
    assert sorted(order.tolist()) == list(range(len(lengths)))
    assert [lengths[i] for i in order] == sorted(lengths, reverse=True)


RECORDED_ORDER = [
    20, 29, 17, 11, 12, 34, 4, 39, 16, 9, 15, 10, 14, 25, 19, 0, 6, 8, 38, 21, 33, 32, 31, 2,
    3, 28, 22, 5, 24, 40, 27, 7, 13, 30, 18, 36, 26, 23, 1, 35, 37]


def test_equal_lengths_have_the_recorded_order_everywhere():
    """`numpy.argsort` orders them by version and processor; ours is that of its scalar code."""
    lengths = np.random.RandomState(0).randint(1, 10, 41)
    assert lstm.longest_first(lengths).tolist() == RECORDED_ORDER
    short = np.array([3, 1, 3, 2, 2, 3, 1])
    assert lstm.longest_first(short).tolist() == [0, 2, 5, 3, 4, 1, 6]


SORTED_BY_NUMPY = """
import numpy as np
for seed in range(30):
    random = np.random.RandomState(seed)
    lengths = random.randint(1, random.choice([3, 10, 1000]), random.randint(1, 200))
    print(*np.argsort(-lengths))
"""


@pytest.mark.skipif(not np.__version__.startswith('1.'), reason='NumPy 2 sorts otherwise')
def test_the_order_is_that_of_numpys_scalar_code():
    """Where NumPy sorts by vectors, it is told not to."""
    environment = {**os.environ, 'NPY_DISABLE_CPU_FEATURES': 'AVX512F AVX512CD AVX512_SKX'}
    found = subprocess.run([sys.executable, '-c', SORTED_BY_NUMPY], capture_output=True, text=True,
                           check=True, env=environment).stdout.splitlines()
    assert len(found) == 30
    for seed, expected in enumerate(found):
        random = np.random.RandomState(seed)
        lengths = random.randint(1, random.choice([3, 10, 1000]), random.randint(1, 200))
        assert ' '.join(map(str, lstm.longest_first(lengths))) == expected
