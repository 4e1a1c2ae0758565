"""Exact nearest neighbours of words, by the cosine of their embeddings."""
from collections.abc import Sequence
from typing import Any

import numpy as np
from chainer import backend

from interpretable_adv.neighbors import device
from interpretable_adv.nn import kernels, products

Array = Any  # of NumPy or CuPy

# Words and candidates whose scores are held at a time on the host. They stay in the
# processor's cache between the product that makes them and the search for the best.
QUERIES, CANDIDATES = 512, 4096
GROUP = 32  # candidates that share one maximum, on NumPy


def nearest(embeddings: Array, k: int, limit: int | None = None,
            rows: Array | Sequence[int] | None = None) -> Array:
    """The k nearest words of each word.

    Neighbours are ordered by falling cosine, ties by rising id. A word is never its own
    neighbour, whatever else shares its embedding. A zero vector has cosine 0 with everything.

    Args:
        embeddings: `(n_vocab, D)`.
        limit: neighbours come from the first `limit` ids only; None: from all.
        rows: ids whose neighbours are wanted; None: all.

    Returns:
        int32 `(len(rows), k)`.
    """
    return Index(embeddings, limit).nearest(k, rows)


class Index:
    """Embeddings made ready for many searches.

    Args:
        embeddings, limit: see `nearest`. The embeddings are copied.
    """

    def __init__(self, embeddings: Array, limit: int | None = None):
        self._unit = _unit_rows(embeddings)
        self._limit = len(embeddings) if limit is None else min(limit, len(embeddings))

    def nearest(self, k: int, rows: Array | Sequence[int] | None = None) -> Array:
        """See `nearest`."""
        unit, limit = self._unit, self._limit
        if not 0 < k < limit:
            raise ValueError(f'{k} neighbours cannot be chosen among {limit} words')
        rows = np.arange(len(unit)) if rows is None else backend.CpuDevice().send(rows)
        rows = np.asarray(rows, np.int64)
        if not isinstance(unit, np.ndarray):
            return device.nearest(unit, k, limit, rows)
        use_kernel = kernels.available and unit.dtype == np.float32
        search = _search_streaming if use_kernel else _search_groups
        result = np.empty((len(rows), k), np.int32)
        for start in range(0, len(rows), QUERIES):
            part = slice(start, start + QUERIES)
            result[part] = search(unit[rows[part]], unit[:limit], rows[part], k)
        return result


def _unit_rows(embeddings: Array) -> Array:
    xp = backend.get_array_module(embeddings)
    norm = xp.sqrt(products.square_sums(embeddings))[:, None]
    return embeddings / xp.where(norm > 0, norm, 1)


def _search_streaming(queries: np.ndarray, candidates: np.ndarray, own_ids: np.ndarray,
                      k: int) -> np.ndarray:
    """The k best of each query with the C kernel, which keeps them while scores stream by."""
    best = np.full((len(queries), k), -np.inf, np.float32)
    ids = np.zeros((len(queries), k), np.int32)
    own_ids = own_ids.astype(np.int32)
    buffer = np.empty(len(queries) * min(CANDIDATES, len(candidates)), np.float32)
    for start in range(0, len(candidates), CANDIDATES):
        block = candidates[start:start + CANDIDATES]
        scores = buffer[:len(queries) * len(block)].reshape(len(queries), len(block))
        products.product(queries, block, transpose_b=True, out=scores)
        kernels.top_k(scores, best, ids, own_ids, start)
    return ids


def _search_groups(queries: np.ndarray, candidates: np.ndarray, own_ids: np.ndarray,
                   k: int) -> np.ndarray:
    """The k best of each query, on NumPy.

    Neighbouring candidates form groups. The k-th largest of the groups' maxima is a bound: k
    scores are at least as large. So only groups whose maximum reaches it are looked into.
    """
    n, limit = len(queries), len(candidates)
    n_groups = -(-limit // GROUP)
    scores = np.full((n, n_groups * GROUP), -np.inf, queries.dtype)
    scores[:, :limit] = queries @ candidates.T
    inside = np.flatnonzero(own_ids < limit)
    scores[inside, own_ids[inside]] = -np.inf
    groups = scores.reshape(n, n_groups, GROUP)
    maxima = groups.max(axis=2)
    # With fewer groups than k there is no bound but that a score must be one.
    bound = (np.full((n, 1), -np.inf) if n_groups < k
             else np.partition(maxima, n_groups - k, axis=1)[:, n_groups - k, None])
    query, group = np.nonzero(maxima >= bound)
    values = groups[query, group]
    place, within = np.nonzero((values >= bound[query]) & (values > -np.inf))
    query, column, value = query[place], group[place] * GROUP + within, values[place, within]
    # By query, then falling score, then rising id; each query's first k are its result.
    order = np.lexsort((column, -value, query))
    first = np.searchsorted(query[order], np.arange(n))
    return column[order[first[:, None] + np.arange(k)]]
