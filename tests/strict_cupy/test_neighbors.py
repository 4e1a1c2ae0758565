"""Neighbours on the device: the same ids, in blocks that fit its memory, without waiting."""
import cupy
import numpy as np
import pytest
import strict_cupy

from interpretable_adv import neighbors
from interpretable_adv.neighbors import NeighborTable

EMBEDDINGS = np.random.RandomState(3).randn(300, 6).astype('f')
EMBEDDINGS[7] = 0
EMBEDDINGS[20] = EMBEDDINGS[19] = EMBEDDINGS[5]  # ties


@pytest.mark.parametrize('k, limit, rows', [
    (1, None, None), (7, None, None), (7, 120, None), (299, None, None),
    (5, 100, np.array([3, 250, 99, 100, 7])), (5, 6, np.array([], np.int64))])
def test_ids_are_those_of_numpy(k, limit, rows):
    got = neighbors.nearest(cupy.asarray(EMBEDDINGS), k, limit, rows)
    expected = neighbors.nearest(EMBEDDINGS, k, limit, rows)
    assert isinstance(got, cupy.ndarray) and got.dtype == np.int32
    np.testing.assert_array_equal(got.get(), expected)


def test_blocks_fit_the_free_memory():
    device = cupy.asarray(EMBEDDINGS)
    whole = neighbors.nearest(device, 5).get()
    with strict_cupy.device_memory(free=100_000), strict_cupy.count_transfers() as counts:
        result = neighbors.nearest(device, 5)
    assert counts.largest < 50_000
    np.testing.assert_array_equal(result.get(), whole)


def test_search_does_not_wait_for_the_device():
    device = cupy.asarray(EMBEDDINGS)
    with strict_cupy.count_transfers() as counts:
        neighbors.nearest(device, 5)
        neighbors.nearest(device, 5, 100, np.arange(50))
    assert counts.to_host == []


def test_table():
    ids = np.array([5, 0, 299, 5])
    on_device = NeighborTable(cupy.asarray(EMBEDDINGS), 4)[cupy.asarray(ids)]
    np.testing.assert_array_equal(on_device.get(), NeighborTable(EMBEDDINGS, 4)[ids])


def test_the_first_neighbours_of_a_table():
    ids = np.array([5, 0, 299, 5])
    on_device = NeighborTable(cupy.asarray(EMBEDDINGS), 9).first(4)[cupy.asarray(ids)]
    np.testing.assert_array_equal(on_device.get(), NeighborTable(EMBEDDINGS, 4)[ids])
