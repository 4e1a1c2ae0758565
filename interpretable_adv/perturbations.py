"""Adversarial perturbations of word embeddings, as pure array functions.

The reviews of a batch follow one another: an array `(N, D)` holds one row per word of all
reviews, and `lengths` (host integers that sum to N) says where each review ends. Directions
are `(N, K, D)`: for each word the unit vectors towards its K nearest neighbours.
NumPy in, NumPy out; CuPy in, CuPy out.

Paper: Barham and Feizi (2019), Algorithm 1 and Section 4; AdvT is Miyato et al. (2017), iAdvT
and iVAT are Sato et al. (2018).
"""
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from chainer import backend

from interpretable_adv.nn import kernels, products

Array = Any  # of NumPy or CuPy
Lengths = Sequence[int] | np.ndarray  # words per review, on the host
Directions = Array | Callable[[Array], Array]

LEVELS = ('sentence', 'word')
RANKS = ('raw', 'projected')
NORM_EPSILON = 1e-6  # upstream's: a tiny gradient does not reach unit length
WEIGHT_EPSILON = 1e-5  # the default of chainer.functions.normalize, which upstream calls


# Norms ----------------------------------------------------------------------------------

def normalize(d: Array, lengths: Lengths, level: str = 'sentence') -> Array:
    """Scales perturbations to unit length.

    At `sentence` level, for each review, over all its words i and dimensions::

        d_i / sqrt(1e-6 + sum_j |d_j|²)

    At `word` level each word has its own norm, and is first divided by its largest
    component, so that a tiny gradient does reach unit length, as upstream does there::

        d̃_i / sqrt(1e-6 + |d̃_i|²)     with d̃_i = d_i / (1e-12 + max |d_i|)
    """
    xp = backend.get_array_module(d)
    if level == 'sentence':
        squares = _sum_of_squares(d)
        totals = products.segment_totals(squares[:, 0], lengths)
        return d / xp.sqrt(NORM_EPSILON + totals)[_review_of_word(xp, lengths), None]
    if level == 'word':
        d = d / (1e-12 + xp.abs(d).max(axis=1, keepdims=True))
        return _unit(d)
    raise ValueError(f"level is 'sentence' or 'word', not {level!r}")


def norms(perturbation: Array) -> Array:
    """Length of each word's perturbation: `(N, D) → (N,)`."""
    xp = backend.get_array_module(perturbation)
    return xp.sqrt(_sum_of_squares(perturbation)[:, 0])


def _unit(d: Array) -> Array:
    """`d / sqrt(1e-6 + |d|²)` along the last axis."""
    xp = backend.get_array_module(d)
    return d / xp.sqrt(NORM_EPSILON + _sum_of_squares(d))


def _sum_of_squares(d: Array) -> Array:
    return products.square_sums(d)[..., None]


def _review_of_word(xp: Any, lengths: Lengths) -> Array:
    return xp.asarray(np.repeat(np.arange(len(lengths)), lengths))


# Neighbour directions ---------------------------------------------------------------------

def directions(words: Array, neighbors: Array) -> Array:
    """Unit vectors from each word to its neighbours: `u_k = norm(e(neighbour k) − e(word))`.

    Args:
        words: embeddings `(N, D)`.
        neighbors: embeddings `(N, K, D)`.
    """
    return _unit(neighbors - words[:, None])


def table_directions(table: Array, ids: Array, neighbors: Array) -> Array:
    """`directions(table[ids], table[neighbors])`, on a CPU without the copies.

    Args:
        table: embeddings `(n_vocab, D)`.
        ids, neighbors: words `(N,)` and theirs `(N, K)`.
    """
    if kernels.takes(table):
        return kernels.directions(table, ids, neighbors, NORM_EPSILON)
    return directions(table[ids], table[neighbors])


# AdvT and VAT -----------------------------------------------------------------------------

def advt(gradient: Array, lengths: Lengths, epsilon: float, level: str = 'sentence') -> Array:
    """AdvT, and VAT's final step: `r = ε g / |g|`, with g the gradient of the loss."""
    return epsilon * normalize(gradient, lengths, level)


def vat_start(noise: Array, lengths: Lengths) -> Array:
    """VAT's random start: normally distributed noise, scaled to unit length per word."""
    return normalize(noise, lengths, 'word')


# iAdvT and iVAT ---------------------------------------------------------------------------

def iadvt(attention_gradient: Array, directions: Array, lengths: Lengths, epsilon: float,
          level: str = 'sentence') -> Array:
    """iAdvT, and iVAT's final step::

        r = ε d / |d|    with d_i = sum_k α_ik u_ik,  α_i = g_i / (|g_i| + 1e-5)

    Args:
        attention_gradient: `(N, K)` or `(N, K, 1)`, the gradient g of the loss with respect to
            the weights α of the first step; `attention_gradient()` gives it.
    """
    weights = _normalize_weights(attention_gradient.reshape(directions.shape[:2]))
    return epsilon * normalize(products.combine(weights, directions), lengths, level)


def ivat_start(directions: Array) -> Array:
    """iVAT's start, equal weights: per word the unit vector along the mean direction."""
    xp = backend.get_array_module(directions)
    weights = xp.full(directions.shape[:2], 1 / directions.shape[1], directions.dtype)
    return _unit(products.combine(_normalize_weights(weights), directions))


def attention_gradient(gradient: Array, directions: Array, virtual: bool = False) -> Array:
    """Gradient with respect to the weights α, given the gradient with respect to the start.

    The start of a word is `s = norm(d)` with `norm(d) = d / sqrt(1e-6 + |d|²)` and `d` a sum
    of directions with weights α. By the chain rule::

        iAdvT (α = 0, d = sum α_k u_k):         g_k = 1000 u_k·g
        iVAT  (α = 1/K, d = sum α̂_k u_k):      g_d = (g − s (s·g)) / n,   n = sqrt(1e-6 + |d|²)
                                                g_α̂ = u_k·g_d
                                                g_α = (g_α̂ − α̂ (ᾱ·g_α̂)) / (|α| + 1e-5)

    with `α̂ = α / (|α| + 1e-5)` and `ᾱ = α / |α|`. The 1000 is `1 / sqrt(1e-6)`, the slope of
    norm() at zero; it matters because of the 1e-5 that `iadvt` adds to the norm.

    Args:
        gradient: `(N, D)`, of the first-step loss with respect to the added start s.
        directions: `(N, K, D)`.
        virtual: whether α starts at 1/K (iVAT) instead of 0 (iAdvT).

    Returns:
        `(N, K)`.
    """
    xp = backend.get_array_module(gradient)
    if not virtual:
        return products.dots(directions, gradient) / NORM_EPSILON ** 0.5
    k = directions.shape[1]
    weights = xp.full(directions.shape[:2], 1 / k, directions.dtype)
    normalized = _normalize_weights(weights)
    combined = products.combine(normalized, directions)
    norm = xp.sqrt(NORM_EPSILON + _sum_of_squares(combined))
    start = combined / norm
    along = products.row_sums(start * gradient)[:, None]
    g_weights = products.dots(directions, (gradient - start * along) / norm)
    length = k ** -0.5  # |α|
    mean = products.row_sums(weights * g_weights)[:, None] / length
    return (g_weights - normalized * mean) / (length + WEIGHT_EPSILON)


def _normalize_weights(weights: Array) -> Array:
    xp = backend.get_array_module(weights)
    return weights / (xp.sqrt(_sum_of_squares(weights)) + WEIGHT_EPSILON)


# SPGD: Algorithm 1 ------------------------------------------------------------------------

def project(raw: Array, directions: Array, toward_only: bool = False) -> tuple[Array, Array]:
    """Projects each word's perturbation onto its best neighbour direction::

        r̂_i = (r_i · u*_i) u*_i    with u*_i = argmax over u_i1 … u_iK of r_i · u_ik

    Where r_i points away from all K neighbours, the formula moves the word away from the
    least bad one; `toward_only` leaves such a word in place instead.

    Returns:
        The projections `(N, D)` and the index k of the chosen neighbour `(N,)`.
    """
    xp = backend.get_array_module(raw)
    lengths_along = products.dots(directions, raw)
    chosen = lengths_along.argmax(axis=1)
    words = xp.arange(len(raw))
    size = lengths_along[words, chosen]
    if toward_only:
        size = xp.maximum(size, 0)
    return size[:, None] * directions[words, chosen], chosen


def n_kept(lengths: Any, sparsity: float) -> np.ndarray:
    """⌊(1 − σ) N⌋, how many of N words are kept; elementwise for several reviews."""
    # Rounding first: (1 − 0.9) · 10 is 0.99999… in floating point, but keeps one word.
    return np.floor(np.round((1 - sparsity) * np.asarray(lengths), 6)).astype(np.int64)


def kept_positions(raw: Array, lengths: Lengths, sparsity: float) -> Array:
    """Which words keep their perturbation: per review the ⌊(1 − σ) N⌋ of largest `|r_i|²`.

    Ties go to the earlier word.

    Returns:
        Their positions, rising. How many they are is known on the host, so that a device
        need not be waited for.
    """
    if not 0 <= sparsity <= 1:
        raise ValueError(f'sparsity is a share between 0 and 1, not {sparsity}')
    return largest(_sum_of_squares(raw)[:, 0], lengths, n_kept(lengths, sparsity))


def largest(scores: Array, lengths: Lengths, counts: np.ndarray) -> Array:
    """Positions, rising, of each review's `counts` words of largest score `(N,)`; ties go to the
    earlier word."""
    xp = backend.get_array_module(scores)
    # Sorted by review, then by falling score, then by position (the last key counts most).
    order = xp.lexsort(xp.stack([
        xp.arange(len(scores), dtype='d'), -scores.astype('d'),
        _review_of_word(xp, lengths).astype('d')]))
    starts = np.cumsum(lengths) - lengths
    first = np.concatenate([np.arange(start, start + n) for start, n in zip(starts, counts)])
    return xp.sort(order[xp.asarray(first)])


def kept_words(raw: Array, lengths: Lengths, sparsity: float) -> Array:
    """As `kept_positions`, but as a boolean array `(N,)`."""
    kept = backend.get_array_module(raw).zeros(len(raw), bool)
    kept[kept_positions(raw, lengths, sparsity)] = True
    return kept


def sparsify(perturbation: Array, raw: Array, lengths: Lengths, sparsity: float) -> Array:
    """Zeroes the perturbation of all words but the ⌊(1 − σ) N⌋ of largest raw norm."""
    xp = backend.get_array_module(raw)
    return xp.where(kept_words(raw, lengths, sparsity)[:, None], perturbation,
                    perturbation.dtype.type(0))


def spgd(raw: Array, directions: Directions, lengths: Lengths, sparsity: float,
         toward_only: bool = False, rank: str = 'raw') -> tuple[Array, Array]:
    """SPGD's perturbation from the raw one, lines 5 to 15 of Algorithm 1.

    Args:
        raw: `(N, D)`, AdvT's perturbation (M steps of it).
        directions: `(N, K, D)`; or a function of word positions `(n,)` that returns theirs,
            `(n, K, D)`. The function is asked once, and only for the words that are kept: ranked
            by their raw norm, these are known before the projection. The result is the same, with
            a quarter of the work at σ = 0.75. With rank `projected` it is asked for all words.
        sparsity: σ, the share of words that stay in place.
        toward_only: see `project`.
        rank: `raw` ranks words by their norm before the projection, as the paper does,
            `projected` by their norm after it.

    Returns:
        The perturbation `(N, D)` and the index of each word's chosen neighbour `(N,)`; with a
        function of positions, −1 for words that stay.
    """
    if rank not in RANKS:
        raise ValueError(f'rank is one of {", ".join(RANKS)}, not {rank!r}')
    xp = backend.get_array_module(raw)
    words = xp.arange(len(raw))
    if rank == 'raw':  # then Algorithm 1's TopK is known before the projection
        kept = kept_positions(raw, lengths, sparsity)
        words = kept if callable(directions) else words

    # Project: r̂_i ← (r_i · u*_i) u*_i
    u = directions(words) if callable(directions) else directions
    perturbation, chosen = xp.zeros_like(raw), xp.full(len(raw), -1, np.int64)
    perturbation[words], chosen[words] = project(raw[words], u, toward_only)

    # Sparsify: zero the words outside of TopK
    if rank == 'projected':
        kept = kept_positions(perturbation, lengths, sparsity)
    stays = xp.ones(len(raw), bool)
    stays[kept] = False
    perturbation[stays] = 0
    if callable(directions):
        chosen[stays] = -1
    return perturbation, chosen


# HotFlip ------------------------------------------------------------------------------------

def swap_gains(gradient: Array, words: Array, neighbors: Array) -> Array:
    """By how much the loss rises, to first order, when a word becomes a neighbour::

        (e_k − e_i) · g_i

    Args:
        gradient: of the loss with respect to the words' vectors, `(N, D)`.
        words: embeddings `(N, D)`.
        neighbors: embeddings `(N, K, D)`.

    Returns:
        `(N, K)`.
    """
    return products.dots(neighbors - words[:, None], gradient)


def hotflip(gains: Array, lengths: Lengths, counts: np.ndarray) -> Array:
    """HotFlip's choice: per review the words of largest best gain, if that gain is positive.

    Args:
        gains: `(N, K)`, as of `swap_gains`; −∞ for swaps that are not allowed.
        counts: how many words of each review may be swapped, on the host; see `n_kept`.

    Returns:
        Which neighbour each word becomes `(N,)`, −1 where it stays. Ties go to the earlier word
        and to the nearer neighbour.
    """
    xp = backend.get_array_module(gains)
    words = xp.arange(len(gains))
    neighbor = gains.argmax(axis=1)
    gain = gains[words, neighbor]
    chosen = xp.full(len(gains), -1, np.int64)
    best = largest(gain, lengths, counts)
    chosen[best] = xp.where(gain[best] > 0, neighbor[best], -1)
    return chosen
