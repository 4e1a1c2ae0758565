"""Exact nearest neighbours on a GPU, without the host waiting for it."""
from typing import Any

import numpy as np
from chainer import backend
from chainer.backends import cuda

MEMORY_SHARE = 0.5  # of the free memory, for one block of scores and what sorting it takes


def nearest(unit: Any, k: int, limit: int, rows: np.ndarray, block: int | None = None) -> Any:
    """The k nearest words of each word; see `neighbors.nearest`, which checks its arguments.

    Sorting all scores would take far longer than computing them. So the columns are put into
    groups, and only the k groups of largest maximum are looked into: an element outside of
    them is no larger than k others, the maxima of these groups. A stable sort settles ties
    in favour of the lower id, among the groups as among their elements.

    Args:
        unit: embeddings of length 1 (or 0), `(n_vocab, D)`.
        rows: ids whose neighbours are wanted, int64 on the host.
        block: rows at a time; None: what fits the device's free memory.

    Returns:
        int32 `(len(rows), k)`, on the device.
    """
    xp = backend.get_array_module(unit)
    size = max(1, round((limit / k) ** 0.5))  # least columns to sort: maxima, then elements
    n_groups = -(-limit // size)
    n_chosen = min(k, n_groups)
    candidates = xp.zeros((n_groups * size, unit.shape[1]), unit.dtype)
    candidates[:limit] = unit[:limit]
    within = xp.arange(size)
    result = xp.empty((len(rows), k), np.int32)
    if block is None:
        sorting = 64 * (n_groups + n_chosen * size)  # bytes: scores, indices, CuPy's copies
        block = max(1, int(MEMORY_SHARE * _free_memory()) // (4 * len(candidates) + sorting))
    for start in range(0, len(rows), block):
        ids = rows[start:start + block]
        inside = np.flatnonzero(ids < limit)
        scores = unit[xp.asarray(ids)] @ candidates.T
        scores[:, limit:] = -np.inf
        scores[xp.asarray(inside), xp.asarray(ids[inside])] = -np.inf
        groups = scores.reshape(len(ids), n_groups, size)
        chosen = xp.sort(xp.argsort(-groups.max(axis=2), axis=1)[:, :n_chosen], axis=1)
        columns = (chosen[:, :, None] * size + within).reshape(len(ids), -1)
        values = xp.take_along_axis(scores, columns, axis=1)
        best = xp.argsort(-values, axis=1)[:, :k]  # CuPy's sorts are stable
        result[start:start + block] = xp.take_along_axis(columns, best, axis=1)
    return result


def _free_memory() -> int:
    """Bytes that the device can still give, those held back by CuPy's pool included."""
    return cuda.cupy.cuda.Device().mem_info[0] + cuda.cupy.get_default_memory_pool().free_bytes()
