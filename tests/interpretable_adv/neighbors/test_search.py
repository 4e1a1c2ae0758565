"""neighbors.py against a full stable sort in double precision."""
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpretable_adv import neighbors
from interpretable_adv.neighbors import search
from tests.interpretable_adv.codes import CODES, running


def reference(embeddings, k, limit=None, rows=None):
    """Sorts all cosines; exact for the small whole numbers the tests use."""
    embeddings = np.asarray(embeddings, 'd')
    rows = range(len(embeddings)) if rows is None else rows
    norms = np.linalg.norm(embeddings, axis=1, keepdims=True)
    unit = (embeddings / np.where(norms > 0, norms, 1)).astype('f')
    result = []
    for row in rows:
        scores = unit[:limit] @ unit[row]
        order = sorted((i for i in range(len(scores)) if i != row), key=lambda i: -scores[i])
        result.append(order[:k])
    return np.array(result)


@given(st.integers(3, 60), st.integers(1, 8), st.integers(0, 2**31))
def test_nearest_is_exact(n, dimension, seed):
    random = np.random.RandomState(seed)
    embeddings = random.normal(size=(n, dimension)).astype('f')
    k = random.randint(1, min(n, 20))
    actual = neighbors.nearest(embeddings, k)
    assert actual.dtype == np.int32 and actual.shape == (n, k)
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    scores = unit @ unit.T
    np.fill_diagonal(scores, -2)
    best = -np.sort(-scores, axis=1)[:, :k]
    np.testing.assert_allclose(np.take_along_axis(scores, actual, axis=1), best, atol=1e-6)
    assert all(len(set(row)) == k and i not in row for i, row in enumerate(actual.tolist()))


def test_ties_go_to_the_lower_id_and_a_word_is_never_its_own_neighbour():
    embeddings = np.repeat(np.eye(3, dtype='f'), 4, axis=0)  # twelve words, three directions
    np.testing.assert_array_equal(
        neighbors.nearest(embeddings, 5), reference(embeddings, 5))


def test_zero_vectors():
    embeddings = np.eye(5, dtype='f')
    embeddings[2] = 0
    actual = neighbors.nearest(embeddings, 2)
    np.testing.assert_array_equal(actual, reference(embeddings, 2))
    np.testing.assert_array_equal(actual[2], [0, 1])


def test_limit_gives_words_outside_it_neighbours_from_inside():
    embeddings = np.random.RandomState(0).normal(size=(30, 4)).astype('f')
    actual = neighbors.nearest(embeddings, 3, limit=10)
    assert actual.shape == (30, 3) and actual.max() < 10
    np.testing.assert_array_equal(actual, reference(embeddings, 3, limit=10))


def test_rows_gives_the_rows_asked_for():
    embeddings = np.random.RandomState(0).normal(size=(30, 4)).astype('f')
    rows = [7, 3, 29, 3]
    np.testing.assert_array_equal(
        neighbors.nearest(embeddings, 4, rows=rows), neighbors.nearest(embeddings, 4)[rows])


def test_blocks_do_not_change_the_result(monkeypatch):
    embeddings = np.random.RandomState(0).normal(size=(50, 4)).astype('f')
    whole = neighbors.nearest(embeddings, 6)
    monkeypatch.setattr(search, 'QUERIES', 7)
    monkeypatch.setattr(search, 'CANDIDATES', 11)
    monkeypatch.setattr(search, 'GROUP', 3)
    np.testing.assert_array_equal(neighbors.nearest(embeddings, 6), whole)


@pytest.mark.parametrize('code', CODES)
@pytest.mark.parametrize('n, k, limit', [(3, 1, None), (40, 39, None), (700, 15, 500),
                                         (5000, 7, None)])
def test_all_codes_find_the_same(code, n, k, limit):
    """Vectors of length 1 or 2 with one or four numbers ±1: there are many ties, and no score
    is ever rounded."""
    random = np.random.RandomState(n)
    signs = random.choice([-1, 1], (n, 4))
    single = np.eye(4)[random.randint(0, 4, n)]
    embeddings = np.where(random.rand(n, 1) < 0.5, signs, signs * single).astype('f')
    rows = random.permutation(n)[:60]
    with running(code, threads=3):
        actual = neighbors.nearest(embeddings, k, limit, rows)
    np.testing.assert_array_equal(actual, reference(embeddings, k, limit, rows))


@pytest.mark.parametrize('k, limit', [(0, None), (5, None), (3, 3)])
def test_too_many_neighbours_are_refused(k, limit):
    with pytest.raises(ValueError, match='neighbours'):
        neighbors.nearest(np.eye(5, dtype='f'), k, limit=limit)
