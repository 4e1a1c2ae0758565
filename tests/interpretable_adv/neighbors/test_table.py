"""neighbor_table.py: rows of the time of the last refresh, whenever they are asked for."""
import numpy as np
import pytest

from interpretable_adv import neighbors
from interpretable_adv.neighbors import NeighborTable


@pytest.fixture
def embeddings():
    return np.random.RandomState(0).normal(size=(40, 5)).astype('f')


def test_rows_are_those_of_the_refresh(embeddings):
    expected = neighbors.nearest(embeddings, 4)
    table = NeighborTable(embeddings, 4)
    np.testing.assert_array_equal(table[np.array([3, 7, 3])], expected[[3, 7, 3]])
    embeddings += np.random.RandomState(1).normal(size=embeddings.shape)
    np.testing.assert_array_equal(table[np.arange(40)], expected)
    table.refresh(embeddings)
    np.testing.assert_array_equal(table[np.arange(40)], neighbors.nearest(embeddings, 4))


@pytest.mark.parametrize('offset', [0, 1, 3])
def test_the_first_neighbours_of_a_larger_table(embeddings, offset):
    embeddings[7] = embeddings[9]  # a tie
    table = NeighborTable(embeddings, 9, 30, offset)
    for k in (1, 4, 9):
        first = table.first(k)[np.arange(40)]
        np.testing.assert_array_equal(
            first, NeighborTable(embeddings, k, 30, offset)[np.arange(40)])
        assert first.flags.c_contiguous


def test_only_rows_asked_for_are_computed(embeddings, monkeypatch):
    asked = []
    nearest = neighbors.Index.nearest

    def watched(index, k, rows=None):
        asked.append(list(rows))
        return nearest(index, k, rows)

    monkeypatch.setattr(neighbors.Index, 'nearest', watched)
    table = NeighborTable(embeddings, 4)
    for ids in ([5, 2, 5], [2, 5], [2, 9]):
        table[np.array(ids)]
    assert asked == [[2, 5], [9]]


def test_offset_is_the_rank_of_the_first_neighbour(embeddings):
    expected = neighbors.nearest(embeddings, 6)
    ids = np.arange(40)
    np.testing.assert_array_equal(NeighborTable(embeddings, 4, offset=3)[ids], expected[:, 2:6])
    with_itself = NeighborTable(embeddings, 4, offset=0)[ids]
    np.testing.assert_array_equal(with_itself[:, 0], ids)
    np.testing.assert_array_equal(with_itself[:, 1:], expected[:, :3])
    np.testing.assert_array_equal(NeighborTable(embeddings, 1, offset=0)[ids], ids[:, None])


def test_limit(embeddings):
    np.testing.assert_array_equal(
        NeighborTable(embeddings, 4, limit=10)[np.arange(40)],
        neighbors.nearest(embeddings, 4, limit=10))
