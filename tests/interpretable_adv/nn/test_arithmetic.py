"""Every kernel against float64, and its bits: the same in all variants, threads and batches."""
import hashlib

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpretable_adv.nn import kernels
from tests.interpretable_adv.codes import VARIANTS, running
from tests.interpretable_adv.nn.test_kernels import batch

pytestmark = pytest.mark.skipif(not kernels.available, reason='the C kernels are not built')
few = settings(deadline=None, max_examples=30, derandomize=True)


def numbers(*shape, seed=0, scale=1.0):
    # Whole numbers of MT19937 are the same everywhere; its normal numbers need a logarithm.
    random = np.random.RandomState(seed)
    return ((random.randint(-(1 << 20), 1 << 20, shape) / (1 << 20)) * scale).astype(np.float32)


def everywhere(function):
    """The result in every variant with several numbers of threads; all must be equal."""
    results, small = [], (kernels._PARALLEL_VALUES, kernels._PARALLEL_PRODUCTS,
                          kernels._PARALLEL_UNITS)
    kernels._PARALLEL_VALUES = kernels._PARALLEL_PRODUCTS = kernels._PARALLEL_UNITS = 0
    try:
        for variant in VARIANTS:
            for threads in (1, 2, 3, 4):
                try:
                    with running(variant, threads):
                        results.append(function())
                except pytest.skip.Exception:
                    continue
    finally:
        (kernels._PARALLEL_VALUES, kernels._PARALLEL_PRODUCTS,
         kernels._PARALLEL_UNITS) = small
    for result in results[1:]:
        assert_same(result, results[0])
    return results[0]


def assert_same(one, other):
    """To the bit, but for the bits of a NaN."""
    for a, b in zip(as_list(one), as_list(other), strict=True):
        nan = np.isnan(a)
        np.testing.assert_array_equal(nan, np.isnan(b))
        np.testing.assert_array_equal(np.where(nan, 0, a).view(np.uint8),
                                      np.where(nan, 0, b).view(np.uint8))


def as_list(result):
    return [np.atleast_1d(a) for a in (result if isinstance(result, (tuple, list)) else [result])]


def chain(a, b, start=0):
    """The definition of a product: a float32 is exact in float64, a product of two as well."""
    c = np.zeros((len(a), b.shape[1]), np.float32) + np.float32(start)
    for k in range(a.shape[1]):
        c = fma(a[:, k, None], b[k], c)
    return c


def fma(a, b, c):
    """a b + c rounded once, by way of extended precision where float64 would round twice."""
    return (a.astype(np.longdouble) * b + c).astype(np.float32)


# Products -----------------------------------------------------------------------------------

@few
@given(rows=st.integers(0, 40), columns=st.integers(0, 70), depth=st.integers(0, 30),
       transpose_a=st.booleans(), transpose_b=st.booleans(), gap=st.integers(0, 3),
       seed=st.integers(0, 9))
def test_products_are_chains_of_fma(rows, columns, depth, transpose_a, transpose_b, gap, seed):
    def matrix(rows, columns, seed):
        return numbers(rows, columns + gap, seed=seed)[:, :columns]

    a = matrix(*((depth, rows) if transpose_a else (rows, depth)), seed)
    b = matrix(*((columns, depth) if transpose_b else (depth, columns)), seed + 1)
    result = everywhere(lambda: kernels.product(a, b, None, transpose_a, transpose_b))
    assert_same(result, chain(a.T if transpose_a else a, b.T if transpose_b else b))


@pytest.mark.parametrize('rows, columns, depth', [
    (1, 1, 1), (6, 16, 4), (7, 17, 513), (145, 33, 1025), (300, 70, 600), (13, 300, 700),
    (289, 4100, 3), (3, 129, 1500), (300, 64, 70), (12, 32, 512), (0, 5, 5), (5, 0, 5), (5, 5, 0)])
@pytest.mark.parametrize('transpose_a', [False, True])
@pytest.mark.parametrize('transpose_b', [False, True])
def test_products_at_the_edges_of_tiles(rows, columns, depth, transpose_a, transpose_b):
    a = numbers(*((depth, rows) if transpose_a else (rows, depth)))
    b = numbers(*((columns, depth) if transpose_b else (depth, columns)), seed=1)
    result = everywhere(lambda: kernels.product(a, b, None, transpose_a, transpose_b))
    exact = (a.T if transpose_a else a).astype('d') @ (b.T if transpose_b else b).astype('d')
    np.testing.assert_allclose(result, exact, rtol=0, atol=1e-6 * max(depth, 1))
    # Rows and columns by themselves have the same bits, and so have sums in two parts.
    left = a.T.copy() if transpose_a else a
    right = b.T.copy() if transpose_b else b
    for row in {0, rows // 2, rows - 1} if rows and columns else ():
        assert_same(kernels.product(left[row:row + 1], right)[0], result[row])
        assert_same(kernels.product(left[row:], right[:, columns // 3:]),
                    result[row:, columns // 3:])
    half = depth // 2
    parts = kernels.product(left[:, :half].copy(), right[:half])
    kernels.product(left[:, half:].copy(), right[half:], parts, accumulate=True)
    assert_same(parts, result)


def test_products_round_once():
    """Cases in which two roundings differ from one, and numbers at the ends of the range."""
    random = np.random.RandomState(5)
    a = random.randint(1 << 23, 1 << 24, (1, 4000)).astype('f') * np.float32(2 ** -23)
    b = random.randint(1 << 23, 1 << 24, (1, 4000)).astype('f') * np.float32(2 ** -23)
    size = random.randint(-30, 50, 4000)
    c = (random.randint(1 << 23, 1 << 24, 4000) * 2.0 ** (size - 23)
         * random.choice([-1, 1], 4000)).astype('f')
    c[:1000] = -(a[0, :1000].astype('d') * b[0, :1000]).astype('f')  # nearly all cancels
    # Halfway between two floats, but for a bit far below: 2^24 + 1 + tiny.
    a[0, -1], b[0, -1], c[-1] = 2.0 ** -20, 2.0 ** -20, 1

    def run():
        result = []
        for i in range(4000):
            row = np.array([[c[i], a[0, i]]])
            result.append(kernels.product(row, np.array([[1], [b[0, i]]], 'f'))[0, 0])
        return np.array(result)

    with running('plain', 1):
        plain = run()
    assert_same(plain, fma(a[0], b[0], c))
    for variant in ('avx2', 'avx512'):
        try:
            with running(variant, 1):
                assert_same(run(), plain)
        except pytest.skip.Exception:
            continue


def test_products_of_special_values():
    a = numbers(9, 40)
    b = numbers(40, 35, seed=1)
    a[1, 3], a[2, 4], a[3, 5], a[4, :] = np.inf, -np.inf, np.nan, 3e38
    a[5, :], a[6, :] = 1e-30, 1e-42
    b[7, 3], b[8, 8] = np.inf, np.nan
    b[:, 9] = 1e-12
    with np.errstate(all='ignore'):
        result = everywhere(lambda: kernels.product(a, b))
    assert np.isnan(result[3]).all() and np.isnan(result[:, 8]).all()
    assert np.isinf(result[4, 0]) and not result[5, 9] and not result[6, 0]


# Functions ----------------------------------------------------------------------------------

def ulps(result, exact):
    return np.abs(result.astype('d') - exact) / np.spacing(np.abs(exact.astype('f')))


@pytest.mark.parametrize('name, function, low, high, bound', [
    ('exp', np.exp, -87.3, 88.7, 1.1), ('exp', np.exp, -1, 1, 1.1),
    ('log', lambda x: np.log(x), 1.2e-38, 3e38, 1.1), ('log', np.log, 0.5, 2, 1.1),
    ('tanh', np.tanh, -10, 10, 1.5), ('tanh', np.tanh, -0.01, 0.01, 1.1),
    ('sigmoid', lambda x: 1 / (1 + np.exp(-x)), -87, 87, 2.6)])
def test_functions_against_float64(name, function, low, high, bound):
    if low > 1e-39 and high > 1e30:
        x = np.exp(np.linspace(np.log(low), np.log(high), 300001)).astype('f')
    else:
        x = np.linspace(low, high, 300001).astype('f')
    result = everywhere(lambda: getattr(kernels, name)(x))
    assert ulps(result, function(x.astype('d'))).max() <= bound


def test_functions_of_special_values():
    inf, nan = np.inf, np.nan
    x = np.array([inf, -inf, nan, 0, -0.0, 1e-40, -1e-40, 88.73, 88.72, -87.4, -1], 'f')
    expected = {
        'exp': [inf, 0, nan, 1, 1, 1, 1, inf, np.exp(88.72), 0, np.exp(-1)],
        'log': [inf, nan, nan, -inf, -inf, -inf, -inf, np.log(88.73), np.log(88.72), nan, nan],
        'tanh': [1, -1, nan, 0, 0, 0, 0, 1, 1, -1, np.tanh(-1)],
        'sigmoid': [1, 0, nan, 0.5, 0.5, 0.5, 0.5, 1, 1, 0, 1 / (1 + np.exp(1))]}
    for name, values in expected.items():
        result = everywhere(lambda name=name: getattr(kernels, name)(x))
        np.testing.assert_allclose(result, values, rtol=1e-5)


@few
@given(rows=st.integers(0, 20), columns=st.integers(1, 70), bias=st.booleans(),
       scale=st.sampled_from([1.0, 30.0]), seed=st.integers(0, 9))
def test_softmax(rows, columns, bias, scale, seed):
    scores = numbers(rows, columns, seed=seed, scale=scale)
    added = numbers(columns, seed=seed + 1) if bias else None

    def run():
        result = scores.copy()
        return [result, *kernels.softmax(result, added)]

    exponentials, peaks, totals = everywhere(run)
    z = scores + (added if bias else np.float32(0))
    np.testing.assert_array_equal(peaks, z.max(axis=1) if rows else peaks)
    exact = np.exp((z - peaks[:, None]).astype('d'))
    np.testing.assert_allclose(exponentials, exact, rtol=3e-7)
    np.testing.assert_allclose(totals, exact.sum(axis=1), rtol=1e-6)
    if rows:
        last = scores[-1:].copy()
        kernels.softmax(last, added)
        assert_same(last[0], exponentials[-1])


def test_softmax_of_special_values():
    scores = numbers(6, 21)
    scores[0, 20], scores[1, 2], scores[2, 20] = np.nan, np.inf, -np.inf
    scores[3], scores[4], scores[5] = -np.inf, -0.0, 3e38

    def run():
        result = scores.copy()
        return [result, *kernels.softmax(result)]

    exponentials, peaks, totals = everywhere(run)
    assert np.isnan(totals[[0, 1, 3]]).all() and exponentials[2, 20] == 0
    assert totals[4] == 21 and totals[5] == 21 and not np.signbit(peaks[4])


# Sums ---------------------------------------------------------------------------------------

def lane_sum(row, squares):
    """The definition in lanes.h."""
    lanes = np.zeros(16, np.float32)
    padded = np.append(row, np.zeros(-len(row) % 16, 'f')).reshape(-1, 16)
    for x in padded:
        lanes = fma(x, x, lanes) if squares else lanes + x
    for width in (8, 4, 2, 1):
        lanes = lanes[:width] + lanes[width:]
    return lanes[0]


@few
@given(rows=st.integers(0, 9), columns=st.integers(0, 90), gap=st.integers(0, 2),
       seed=st.integers(0, 9))
def test_sums_are_those_of_the_definition(rows, columns, gap, seed):
    x = numbers(rows, columns + gap, seed=seed)[:, :columns]
    for squares in (False, True):
        sums = everywhere(lambda squares=squares: kernels.row_sums(x, squares))
        assert_same(sums, np.array([lane_sum(row, squares) for row in x], 'f'))
    columns_summed = np.zeros(columns, np.float32)
    for row in x:
        columns_summed = columns_summed + row
    assert_same(everywhere(lambda: kernels.column_sums(x)), columns_summed)


@pytest.mark.parametrize('count', [0, 1, 15, 4096, 4097, 70001])
def test_square_sum(count):
    x = numbers(count)
    result = everywhere(lambda: np.array(kernels.square_sum(x)))
    np.testing.assert_allclose(result, (x.astype('d') ** 2).sum(), rtol=1e-6)
    if 0 < count < 16:
        assert float(result[()]) == sum(float(lane_sum(v[None], True)) for v in x)


@few
@given(words=st.integers(0, 9), k=st.integers(1, 8), columns=st.integers(1, 70))
def test_dots_and_combine(words, k, columns):
    directions, vectors = numbers(words, k, columns), numbers(words, columns, seed=1)
    weights = numbers(words, k, seed=2)
    products = everywhere(lambda: kernels.dots(directions, vectors))
    np.testing.assert_allclose(products, np.einsum('nkd,nd->nk', directions.astype('d'), vectors),
                               atol=1e-5)
    sums = everywhere(lambda: kernels.combine(weights, directions))
    for i in range(words):
        assert_same(sums[i], chain(weights[i:i + 1], directions[i])[0])


@few
@given(words=st.integers(0, 9), k=st.integers(1, 8), columns=st.integers(1, 70))
def test_directions_are_differences_over_their_length(words, k, columns):
    table = numbers(20, columns)
    random = np.random.RandomState(0)
    ids, neighbors = random.randint(0, 20, words), random.randint(0, 20, (words, k))
    result = everywhere(lambda: kernels.directions(table, ids, neighbors, 1e-6))
    d = table[neighbors] - table[ids][:, None]
    squares = kernels.row_sums(d.reshape(-1, columns), True).reshape(words, k, 1)
    assert_same(result, d / np.sqrt(np.float32(1e-6) + squares))


@few
@given(sizes=st.lists(st.integers(1, 9), max_size=9), columns=st.integers(1, 40))
def test_segment_sums_go_from_first_to_last(sizes, columns):
    rows = numbers(50, columns)
    order = np.random.RandomState(0).randint(0, 50, sum(sizes))
    starts = np.cumsum([0] + sizes)
    sums = everywhere(lambda: kernels.segment_sum([rows[:20], rows[20:]], order, starts))
    for segment, total in enumerate(sums):
        picked = rows[order[starts[segment]:starts[segment + 1]]]
        expected = picked[0]
        for row in picked[1:]:
            expected = expected + row
        assert_same(total, expected)


def test_adam_is_elementwise():
    def run(part=slice(None)):
        arrays = [a[part].copy() for a in numbers(4, 70001)]
        arrays[2] = np.abs(arrays[2])
        kernels.adam(*arrays, 0.1, 0.001, 0.01, 1e-8, 1.0)
        return arrays[:3]

    whole = everywhere(run)
    for one, other in zip(run(slice(3, 500)), whole):
        assert_same(one, other[3:500])


# The LSTM -----------------------------------------------------------------------------------

@pytest.mark.parametrize('units', [1, 5, 16, 37, 64, 112, 300])
def test_lstm_in_all_variants(units):
    """For sizes that fill no variant's vectors, too: what fills them up must not matter."""
    def run():
        (gates, bias, weights, h0, c0, offsets), gradients = batch(units)
        forward = kernels.lstm_forward(gates, bias, weights, h0, c0, offsets)
        tiny = [g * np.float32(1e-37) for g in gradients]  # their products are denormal
        return [gates, *forward] + [
            result for given in (gradients, tiny) for result in kernels.lstm_backward(
                gates, *forward[:2], weights, c0, *given, offsets)]

    everywhere(run)


@pytest.mark.parametrize('units', [5, 64])
def test_lstm_rows_do_not_depend_on_each_other(units):
    (gates, bias, weights, h0, c0, offsets), _ = batch(units, reviews=13, steps=1)
    alone = gates[7:8].copy()
    cells, _, hidden = kernels.lstm_forward(gates, bias, weights, h0, c0, offsets)
    own = kernels.lstm_forward(alone, bias, weights, h0[7:8], c0[7:8], np.array([0, 1]))
    assert_same([own[0][0], own[2][0], alone[0]], [cells[7], hidden[7], gates[7]])


# Digests ------------------------------------------------------------------------------------

def results():
    """Name → arrays of every kernel on fixed inputs."""
    a, b = numbers(67, 530), numbers(530, 45, seed=1)
    x = np.concatenate([numbers(1000, scale=90), numbers(1000)])
    scores = numbers(9, 100, scale=20)
    peaks_and_totals = kernels.softmax(scores, numbers(100, seed=1))
    table, ids = numbers(40, 37), np.arange(30)
    neighbors = (ids[:, None] * 7 + np.arange(5)) % 40
    directions = kernels.directions(table, ids, neighbors, 1e-6)
    adam = [part.copy() for part in numbers(4, 333)]
    adam[2] = np.abs(adam[2])
    kernels.adam(*adam, 0.1, 0.001, 0.01, 1e-8, 1.0)
    units, offsets = 37, np.array([0, 6, 11, 14])
    weights = [numbers(units, units, seed=i, scale=0.3) for i in range(4)]
    gates, states = numbers(14, 4 * units, scale=3), numbers(3, 6, units)
    forward = kernels.lstm_forward(gates, numbers(4 * units), weights, *states[:2], offsets)
    backward = kernels.lstm_backward(gates, *forward[:2], weights, states[1],
                                     numbers(14, units), *states[1:], offsets)
    best, found = np.full((5, 4), -np.inf, 'f'), np.zeros((5, 4), np.int32)
    kernels.top_k(kernels.product(table[:5], table, transpose_b=True), best, found,
                  np.arange(5, dtype=np.int32), 0)
    np.random.seed(3)
    return {
        'product': [kernels.product(a, b), kernels.product(b, a, None, True, True)],
        'exp': [kernels.exp(x)], 'log': [kernels.log(np.abs(x) + np.float32(1e-3))],
        'tanh': [kernels.tanh(x)], 'sigmoid': [kernels.sigmoid(x)],
        'softmax': [scores, *peaks_and_totals],
        'row_sums': [kernels.row_sums(a), kernels.row_sums(a, True)],
        'column_sums': [kernels.column_sums(a)],
        'square_sum': [np.array(kernels.square_sum(a))],
        'segment_sum': [kernels.segment_sum([a], np.arange(67)[::-1].copy(),
                                            np.array([0, 3, 50, 67]))],
        'directions': [directions], 'dots': [kernels.dots(directions, table[:30])],
        'combine': [kernels.combine(numbers(30, 5), directions)], 'top_k': [best, found],
        'adam': adam, 'lstm_forward': [gates, *forward], 'lstm_backward': list(backward),
        'dropout': [kernels.dropout_mask((1000,), 0.3)]}


def digest(arrays):
    return hashlib.sha256(b''.join(array.tobytes() for array in arrays)).hexdigest()


DIGESTS = {
    'product': '8f37f1aaa8812967', 'exp': '50002299c8713c2d', 'log': '903e41a9d84d816c',
    'tanh': '126edadec2f092bf', 'sigmoid': '94ba3cff09b3ad20', 'softmax': '0cc49968fc1003b2',
    'row_sums': '3de9d5d83095859e', 'column_sums': 'ce181bfe8acab2bf',
    'square_sum': '3c99190b284998a7', 'segment_sum': '53d538c31932deec',
    'directions': 'c828911f0421914e', 'dots': 'e44e1dd96793062b', 'combine': 'a51b99285e6e2d45',
    'top_k': 'b23273f18717bd81', 'adam': '452381183028a413', 'lstm_forward': '3fed58021781acf8',
    'lstm_backward': 'ad513c8c30e3b8bd', 'dropout': 'f2854e8581d94fa2',
}


@pytest.mark.parametrize('variant', VARIANTS)
@pytest.mark.parametrize('threads', [1, 3])
def test_bits_are_the_recorded_ones(variant, threads):
    with running(variant, threads):
        assert {name: digest(arrays)[:16] for name, arrays in results().items()} == DIGESTS


# Arguments ----------------------------------------------------------------------------------

def f(*shape):
    return np.zeros(shape, np.float32)


@pytest.mark.parametrize('call', [
    lambda: kernels.product(f(2, 3), f(2, 3)),
    lambda: kernels.product(f(2, 3).astype('d'), f(3, 2)),
    lambda: kernels.product(f(3, 2).T, f(3, 2)),
    lambda: kernels.product(f(2, 3), f(3, 2), f(3, 3)),
    lambda: kernels.product(f(2, 3), f(3, 2), accumulate=True),
    lambda: kernels.product([[1.0]], f(1, 1)),
    lambda: (lambda a: kernels.product(a, a, a))(f(3, 3)),
    lambda: kernels.softmax(f(3, 0)),
    lambda: kernels.softmax(f(3, 4)[:, :2]),
    lambda: kernels.softmax(f(3, 4), f(3)),
    lambda: kernels.exp(f(4)[::2]),
    lambda: kernels.row_sums(f(4)),
    lambda: kernels.column_sums(f(4, 4).T[1:]),
    lambda: kernels.square_sum(f(4, 4).T[1:]),
    lambda: kernels.segment_sum([], np.zeros(0, int), np.zeros(1, int)),
    lambda: kernels.segment_sum([f(3, 2)], np.array([3]), np.array([0, 1])),
    lambda: kernels.segment_sum([f(3, 2)], np.array([-1]), np.array([0, 1])),
    lambda: kernels.segment_sum([f(3, 2)], np.array([0]), np.array([0, 2])),
    lambda: kernels.segment_sum([f(3, 2)], np.array([0]), np.array([0, 0, 1])),
    lambda: kernels.segment_sum([f(3, 2), f(3, 3)], np.array([0]), np.array([0, 1])),
    lambda: kernels.dots(f(2, 3, 4), f(2, 3)),
    lambda: kernels.combine(f(2, 4), f(2, 3, 4)),
    lambda: kernels.directions(f(3, 2), np.array([3]), np.array([[0]]), 1e-6),
    lambda: kernels.directions(f(3, 2), np.array([0]), np.array([[-1]]), 1e-6),
    lambda: kernels.directions(f(3, 2), np.array([0]), np.array([[0], [1]]), 1e-6),
    lambda: kernels.top_k(f(2, 3), f(2, 1), np.zeros((2, 1), int), np.zeros(2, np.int32), 0),
    lambda: kernels.top_k(f(2, 3), f(2, 0), np.zeros((2, 0), np.int32), np.zeros(2, np.int32), 0),
    lambda: kernels.top_k(f(2, 3), f(2, 1), np.zeros((2, 1), np.int32), np.zeros(2, np.int32),
                          2 ** 31),
    lambda: kernels.adam(f(3), f(3), f(2), f(3), 0.1, 0.1, 0.1, 0.1, 1.0),
    lambda: kernels.adam(f(3, 2), f(3, 2), f(3, 2), f(1, 2), 0.1, 0.1, 0.1, 0.1, 1.0,
                         np.array([3]), np.zeros(3, np.uint8)),
    lambda: kernels.adam(f(3, 2), f(3, 2), f(3, 2), f(2, 2), 0.1, 0.1, 0.1, 0.1, 1.0,
                         np.array([1, 1]), np.zeros(3, np.uint8)),
    lambda: kernels.lstm_forward(f(3, 8), f(8), [f(2, 2)] * 4, f(2, 2), f(2, 2),
                                 np.array([0, 1, 3])),  # more rows than before
    lambda: kernels.lstm_forward(f(3, 8), f(8), [f(2, 2)] * 4, f(2, 2), f(2, 2),
                                 np.array([0, 3])),  # more than there are states
    lambda: kernels.lstm_forward(f(2, 8), f(8), [f(2, 3)] * 4, f(2, 2), f(2, 2),
                                 np.array([0, 2])),
    lambda: kernels.lstm_backward(f(2, 8), f(2, 2), f(2, 2), [f(2, 2)] * 4, f(2, 2), f(1, 2),
                                  None, None, np.array([0, 2])),
    lambda: kernels.dropout_mask((3,), 1.0),
])
def test_wrong_arguments_do_not_reach_the_kernels(call):
    with pytest.raises((ValueError, IndexError)):
        call()
