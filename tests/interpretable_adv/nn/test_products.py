"""Products and sums by the kernels and by NumPy: the same numbers, whatever the layout."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpretable_adv.nn import kernels, products
from tests.interpretable_adv.codes import CODES, running


def numbers(*shape, seed=0):
    return np.random.RandomState(seed).randn(*shape).astype('f')


@pytest.mark.parametrize('code', CODES)
@settings(deadline=None, max_examples=20, derandomize=True)
@given(rows=st.integers(1, 9), columns=st.integers(1, 9), depth=st.integers(0, 9),
       transpose_a=st.booleans(), transpose_b=st.booleans(), order=st.sampled_from('CF'),
       dtype=st.sampled_from(['f', 'd']), given_out=st.booleans())
def test_product(code, rows, columns, depth, transpose_a, transpose_b, order, dtype, given_out):
    a = numbers(*((depth, rows) if transpose_a else (rows, depth))).astype(dtype, order=order)
    b = numbers(*((columns, depth) if transpose_b else (depth, columns)), seed=1).astype(
        dtype, order=order)
    out = np.empty((rows, columns), dtype) if given_out else None
    with running(code):
        result = products.product(a, b, transpose_a, transpose_b, out)
    assert result.dtype == dtype and (out is None or result is out)
    np.testing.assert_allclose(
        result, (a.T if transpose_a else a) @ (b.T if transpose_b else b), atol=1e-5)


@pytest.mark.parametrize('code', CODES)
@pytest.mark.parametrize('dtype', ['f', 'd'])
def test_sums(code, dtype):
    x = numbers(5, 4, 33).astype(dtype)
    lengths = [1, 3, 1]
    with running(code):
        results = [products.row_sums(x), products.square_sums(x), products.column_sums(x[:, 0]),
                   products.total(x), products.mean(x),
                   products.segment_totals(x[:, 0, 0], lengths), products.dots(x, x[:, 1]),
                   products.combine(x[:, :, 2], x)]
    expected = [x.sum(axis=-1), (x * x).sum(axis=-1), x[:, 0].sum(axis=0), x.sum(), x.mean(),
                np.add.reduceat(x[:, 0, 0], [0, 1, 4]), np.einsum('nkd,nd->nk', x, x[:, 1]),
                np.einsum('nk,nkd->nd', x[:, :, 2], x)]
    for one, other in zip(results, expected):
        assert one.dtype == dtype and one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=1e-4, atol=1e-5)


def test_a_review_by_itself_has_the_same_total():
    if not kernels.available:
        pytest.skip('the C kernels are not built')
    values = numbers(1000)
    lengths = [300, 1, 699]
    whole = products.segment_totals(values, lengths)
    assert whole[2] == products.segment_totals(values[301:], [699])[0]
