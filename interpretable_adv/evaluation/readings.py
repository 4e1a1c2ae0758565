"""Perturbed word vectors read as words.

A language model reads words, an attack moves vectors. Three readings of a perturbed review:

* continuous: the perturbation is added to the language model's own input vectors; the words to
  be predicted stay the original ones.
* nearest: each word is replaced by the one nearest to its perturbed vector.
* direction: each word that moved is replaced by the neighbour along whose direction it moved, the
  one of highest cosine; a word whose cosines are all negative has moved away from it.
"""
import numpy as np
from chainer import backend

from interpretable_adv import perturbations
from interpretable_adv.neighbors import NeighborTable
from interpretable_adv.nn import products
from interpretable_adv.perturbations import Array

READINGS = ('continuous', 'nearest', 'direction')
BLOCK_BYTES = 64 * 2**20  # scores held at a time
ANGLE_MARGIN = 1e-3  # far more than float32 rounding can turn a vector


class NearestWords:
    """Finds the word whose embedding has the largest cosine with a perturbed vector.

    The search is exact, over the whole vocabulary and including the word itself, which wins
    ties; other ties go to the lower id. Few words need the comparison with all others: let β
    be the angle between a word and its nearest neighbour. The angle to any other word is at
    least β − α when the perturbation turns the vector by α, so with α < β / 2 the word itself
    remains nearest.

    Args:
        embeddings: `(n_vocab, D)`.
    """

    def __init__(self, embeddings: Array):
        xp = backend.get_array_module(embeddings)
        norm = perturbations.norms(embeddings)[:, None]
        self._embeddings = embeddings
        self._unit = embeddings / xp.where(norm > 0, norm, 1)
        self._neighbors = NeighborTable(embeddings, 1) if len(embeddings) > 1 else None

    def __call__(self, ids: Array, perturbation: Array) -> Array:
        """Nearest words, int32 `(N,)`, to `e(ids) + perturbation` `(N, D)`."""
        xp = backend.get_array_module(perturbation)
        result = ids.astype(np.int32)
        moved = xp.nonzero((perturbation != 0).any(axis=1))[0]
        if self._neighbors is None or not len(moved):
            return result
        vectors = self._embeddings[ids[moved]] + perturbation[moved]
        neighbor = self._neighbors[ids[moved]][:, 0]
        turned = _angle(vectors, self._embeddings[ids[moved]])
        room = _angle(self._embeddings[neighbor], self._embeddings[ids[moved]])
        open_ = xp.nonzero(turned + ANGLE_MARGIN >= room / 2)[0]
        block = max(1, BLOCK_BYTES // (4 * len(self._unit)))
        for start in range(0, len(open_), block):
            part = open_[start:start + block]
            words = ids[moved[part]]
            scores = products.product(vectors[part], self._unit, transpose_b=True)
            best = scores.argmax(axis=1)
            rows = xp.arange(len(part))
            stays = scores[rows, words] >= scores[rows, best]
            result[moved[part]] = xp.where(stays, words, best).astype(np.int32)
        return result


def _angle(a: Array, b: Array) -> Array:
    """Angle in radians between the rows of two arrays; a right angle for zero vectors."""
    xp = backend.get_array_module(a)
    a, b = a.astype('d'), b.astype('d')
    product = (a * b).sum(axis=1)
    size = xp.sqrt((a * a).sum(axis=1) * (b * b).sum(axis=1))
    return xp.arccos(xp.clip(product / xp.where(size > 0, size, 1), -1, 1))


def neighbor_cosines(embeddings: Array, ids: Array, neighbors: Array, direction: Array) -> Array:
    """Cosines between each word's perturbation and the directions to its neighbours.

    As upstream: `u_k · norm(d_i)` with `norm(d) = d / sqrt(1e-6 + |d|²)`, d being the perturbation
    of a review in units of ε. So the cosines of a word that hardly moves (|d_i| ≲ 1e-3) go to 0.

    Args:
        embeddings: `(n_vocab, D)`.
        ids: words `(N,)`.
        neighbors: ids `(N, K)`, the same for each occurrence of a word.
        direction: perturbation divided by ε, `(N, D)`.

    Returns:
        `(N, K)`.
    """
    xp = backend.get_array_module(direction)
    # Words repeat within a batch; the directions to a word's neighbours are computed once.
    unique, first, inverse = xp.unique(ids, return_index=True, return_inverse=True)
    units = perturbations.directions(embeddings[unique], embeddings[neighbors[first]])
    size = xp.sqrt(perturbations.NORM_EPSILON + products.square_sums(direction))
    return products.dots(units[inverse], direction / size[:, None])
