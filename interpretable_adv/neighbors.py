"""Exact nearest neighbours of words, by the cosine of their embeddings."""
import numpy as np
from chainer import backend

from interpretable_adv import device_neighbors

BLOCK_BYTES = 64 * 2**20  # scores held at a time


def nearest(embeddings, k, limit=None, rows=None):
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
    xp = backend.get_array_module(embeddings)
    n_vocab = len(embeddings)
    limit = n_vocab if limit is None else min(limit, n_vocab)
    if not 0 < k < limit:
        raise ValueError(f'{k} neighbours cannot be chosen among {limit} words')
    unit = _unit_rows(embeddings)
    if xp is not np:
        rows = np.arange(n_vocab) if rows is None else backend.CpuDevice().send(rows)
        return device_neighbors.nearest(unit, k, limit, rows)
    rows = xp.arange(n_vocab) if rows is None else xp.asarray(rows)
    candidates = unit[:limit].T
    result = xp.empty((len(rows), k), np.int32)
    block = max(1, BLOCK_BYTES // (4 * limit))
    for start in range(0, len(rows), block):
        ids = rows[start:start + block]
        scores = unit[ids] @ candidates
        inside = xp.nonzero(ids < limit)[0]
        scores[inside, ids[inside]] = -xp.inf
        result[start:start + block] = _top(xp, scores, k)
    return result


def _unit_rows(embeddings):
    xp = backend.get_array_module(embeddings)
    norm = xp.sqrt((embeddings * embeddings).sum(axis=1, keepdims=True))
    return embeddings / xp.where(norm > 0, norm, 1)


def _top(xp, scores, k):
    """Columns of each row's k largest scores: falling score, then rising column."""
    threshold = -xp.partition(-scores, k - 1, axis=1)[:, k - 1:k]
    result = xp.empty((len(scores), k), np.int32)
    # Of the columns at the threshold itself the lowest ones are taken: a stable sort of the
    # candidates in column order does both.
    for row, (score, least) in enumerate(zip(scores, threshold)):
        columns = xp.nonzero(score >= least)[0]
        result[row] = columns[xp.argsort(-score[columns], kind='stable')[:k]]
    return result
