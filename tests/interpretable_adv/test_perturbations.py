"""perturbations.py against upstream's recordings, NumPy references and its own promises."""
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpretable_adv import perturbations
from tests.interpretable_adv.codes import CODES, running


def load(golden, name):
    arrays = dict(np.load(golden / f'{name}.npz'))
    arrays['meta'] = json.loads(str(arrays['meta']))
    return arrays


def reviews(array, lengths):
    return np.split(array, np.cumsum(lengths)[:-1])


@st.composite
def batches(draw, k=None):
    """Lengths, raw perturbations and unit directions of a random batch."""
    lengths = draw(st.lists(st.integers(1, 12), min_size=1, max_size=5))
    dimension = draw(st.integers(1, 6))
    k = k or draw(st.integers(1, 5))
    random = np.random.RandomState(draw(st.integers(0, 2**31)))
    n = sum(lengths)
    raw = random.normal(size=(n, dimension)).astype('f')
    words = random.normal(size=(n, dimension)).astype('f')
    neighbors = random.normal(size=(n, k, dimension)).astype('f')
    return lengths, raw, perturbations.directions(words, neighbors)


# Norms ----------------------------------------------------------------------------------

@given(batches())
def test_normalize_sentence(batch):
    lengths, raw, _ = batch
    expected = np.concatenate([
        d / np.sqrt(1e-6 + np.sum(d.astype('d') ** 2)) for d in reviews(raw, lengths)])
    np.testing.assert_allclose(perturbations.normalize(raw, lengths), expected, atol=1e-6)


@pytest.mark.parametrize('scale', [1, 1e-8, 0])
def test_normalize_word_reaches_unit_length_however_small(scale):
    raw = scale * np.random.RandomState(0).normal(size=(6, 4)).astype('f')
    norms = np.linalg.norm(perturbations.normalize(raw, [6], 'word'), axis=1)
    np.testing.assert_allclose(norms, 1 if scale else 0, atol=1e-4)


def test_normalize_sentence_leaves_a_tiny_gradient_short():
    raw = np.full((2, 1), 1e-4, 'f')
    np.testing.assert_allclose(
        perturbations.normalize(raw, [2]), 1e-4 / np.sqrt(1e-6 + 2e-8), rtol=1e-5)


def test_normalize_refuses_another_level():
    with pytest.raises(ValueError, match='level'):
        perturbations.normalize(np.zeros((1, 1), 'f'), [1], 'review')


# Upstream's recordings --------------------------------------------------------------------

@pytest.mark.parametrize('name', ['classifier_adv', 'classifier_adv_2layers', 'classifier_vat'])
def test_advt_matches_upstream(golden, name):
    recorded = load(golden, name)
    perturbation = perturbations.advt(
        recorded['d'], recorded['lengths'], recorded['meta']['xi_var'])
    np.testing.assert_allclose(perturbation, recorded['perturbation'], atol=1e-5)


@pytest.mark.parametrize('name', ['classifier_iadv', 'classifier_ivat'])
def test_iadvt_matches_upstream(golden, name):
    recorded = load(golden, name)
    embeddings, ids = recorded['param/word_embed/W'], recorded['x']
    directions = perturbations.directions(
        embeddings[ids], embeddings[recorded['nearest_ids'][ids]])
    np.testing.assert_allclose(directions, recorded['dir_normed'], atol=1e-6)
    perturbation = perturbations.iadvt(
        recorded['attn_grad'], directions, recorded['lengths'], recorded['meta']['xi_var'])
    np.testing.assert_allclose(perturbation, recorded['perturbation'], atol=1e-5)


def test_ivat_start_matches_upstream(golden):
    recorded = load(golden, 'classifier_ivat')
    np.testing.assert_allclose(
        perturbations.ivat_start(recorded['dir_normed']), recorded['first_noise'], atol=1e-6)


@pytest.mark.parametrize('m, toward_only', [(1, False), (2, False), (3, False), (1, True)])
@pytest.mark.parametrize('sigma', [0.0, 0.25, 0.5, 0.75, 1.0])
def test_spgd_matches_the_independent_reading(golden, m, sigma, toward_only):
    recorded = load(golden, 'spgd')
    key = f'toward_only_M{m}_sigma{sigma}' if toward_only else f'perturbation_M{m}_sigma{sigma}'
    ids = recorded['x']
    embeddings = load(golden, 'classifier_adv')['param/word_embed/W']
    directions = perturbations.directions(
        embeddings[ids], embeddings[recorded['nearest_ids'][ids]])
    perturbation, chosen = perturbations.spgd(
        recorded[f'raw_M{m}'], directions, recorded['lengths'], sigma, toward_only)
    np.testing.assert_allclose(perturbation, recorded[key], atol=1e-4)
    if m == 1:
        targets = recorded['nearest_ids'][ids, chosen]
        np.testing.assert_array_equal(targets, recorded['target_ids_M1'])


# Attention gradients ------------------------------------------------------------------------

@pytest.mark.parametrize('virtual', [False, True])
def test_attention_gradient_is_the_derivative(virtual):
    """Central differences in double precision of loss = s(α) · g at the start α."""
    random = np.random.RandomState(1)
    directions = perturbations.directions(
        random.normal(size=(3, 5)), random.normal(size=(3, 4, 5)))
    gradient = random.normal(size=(3, 5))
    k = directions.shape[1]

    def loss(weights):
        if virtual:
            norm = np.linalg.norm(weights, axis=1, keepdims=True)
            weights = weights / (norm + 1e-5)
        d = np.einsum('nk,nkd->nd', weights, directions)
        start = d / np.sqrt(1e-6 + (d ** 2).sum(axis=1, keepdims=True))
        return (start * gradient).sum()

    weights = np.full((3, k), 1 / k if virtual else 0.)
    step = 1e-6
    expected = np.empty_like(weights)
    for index in np.ndindex(weights.shape):
        change = np.zeros_like(weights)
        change[index] = step
        expected[index] = (loss(weights + change) - loss(weights - change)) / (2 * step)
    actual = perturbations.attention_gradient(gradient, directions, virtual)
    np.testing.assert_allclose(actual, expected, rtol=1e-4, atol=1e-5)


# SPGD's promises ----------------------------------------------------------------------------

@given(batches())
def test_project_takes_the_best_direction(batch):
    _, raw, directions = batch
    projected, chosen = perturbations.project(raw, directions)
    for r, units, result, k in zip(raw, directions, projected, chosen):
        products = units @ r
        assert products[k] >= products.max() - 1e-5
        np.testing.assert_allclose(result, products[k] * units[k], atol=1e-5)


@given(batches(k=2))
def test_toward_only_never_moves_away(batch):
    _, raw, directions = batch
    projected, chosen = perturbations.project(raw, directions, toward_only=True)
    along = (projected * directions[np.arange(len(raw)), chosen]).sum(axis=1)
    assert (along >= 0).all()


@settings(max_examples=200)
@given(batches(), st.sampled_from([0, 0.1, 0.25, 0.3, 0.5, 0.75, 0.9, 1]))
def test_exactly_the_promised_words_are_kept(batch, sparsity):
    lengths, raw, directions = batch
    kept = perturbations.kept_words(raw, lengths, sparsity)
    for mask, r, n in zip(reviews(kept, lengths), reviews(raw, lengths), lengths):
        n_kept = int(np.floor((100 - round(100 * sparsity)) * n / 100))
        assert mask.sum() == n_kept
        norms = (r * r).sum(axis=1)
        order = sorted(range(n), key=lambda i: (-norms[i], i))  # noqa: B023
        np.testing.assert_array_equal(np.flatnonzero(mask), sorted(order[:n_kept]))
    perturbation, _ = perturbations.spgd(raw, directions, lengths, sparsity)
    assert not perturbation[~kept].any()


def test_ties_go_to_the_earlier_word():
    raw = np.ones((6, 2), 'f')
    np.testing.assert_array_equal(
        perturbations.kept_words(raw, [4, 2], 0.5), [True, True, False, False, True, False])


@given(batches())
def test_sparsity_zero_keeps_all_and_one_keeps_none(batch):
    lengths, raw, directions = batch
    projected, _ = perturbations.project(raw, directions)
    np.testing.assert_array_equal(
        perturbations.spgd(raw, directions, lengths, 0)[0], projected)
    assert not perturbations.spgd(raw, directions, lengths, 1)[0].any()


@given(batches())
def test_order_of_sparsifying_and_projecting_does_not_matter(batch):
    lengths, raw, directions = batch
    first = perturbations.sparsify(raw, raw, lengths, 0.5)
    other = perturbations.project(first, directions)[0]
    np.testing.assert_allclose(
        perturbations.spgd(raw, directions, lengths, 0.5)[0], other, atol=1e-6)


def test_rank_by_projected_norm():
    raw = np.array([[3, 0], [0, 2]], 'f')
    directions = np.array([[[0, 1]], [[0, 1]]], 'f')  # nothing is left of the larger one
    perturbation, _ = perturbations.spgd(raw, directions, [2], 0.5, rank='projected')
    np.testing.assert_array_equal(perturbation, [[0, 0], [0, 2]])
    perturbation, _ = perturbations.spgd(raw, directions, [2], 0.5)
    np.testing.assert_array_equal(perturbation, [[0, 0], [0, 0]])


# SPGD's two forms ---------------------------------------------------------------------------

SIGMAS = [0, 0.25, 0.5, 0.75, 1]


class Asked:
    """Directions as a function of positions, which remembers what it was asked for."""

    def __init__(self, directions):
        self.directions, self.calls = directions, []

    def __call__(self, words):
        self.calls.append(np.array(words))
        return self.directions[words]


def case_with_ties_and_zeros(seed=0):
    """Reviews with words of equal norm, words that do not move, directions of length 0, and words
    all of whose neighbours lie behind, as vectors of few values have them."""
    random = np.random.RandomState(seed)
    lengths = [1, 7, 12, 4, 20]
    raw = random.randint(-2, 3, (44, 3)).astype('f')
    raw[[3, 9, 30]] = 0
    raw[12] = -0.0
    directions = perturbations.directions(
        random.randint(-2, 3, (44, 3)).astype('f'), random.randint(-2, 3, (44, 4, 3)).astype('f'))
    directions[20:24] = -np.abs(directions[20:24])
    raw[20:24] = np.abs(raw[20:24]) + 1  # away from all neighbours
    return lengths, raw, directions


def assert_same_bits(actual, expected):
    assert actual.dtype == expected.dtype == np.float32
    assert np.array_equal(actual.view(np.int32), expected.view(np.int32))  # −0.0 is not 0.0


@pytest.mark.parametrize('sigma', SIGMAS)
@pytest.mark.parametrize('toward_only', [False, True])
@pytest.mark.parametrize('rank', perturbations.RANKS)
def test_directions_as_array_and_as_function_give_equal_bits(rank, toward_only, sigma):
    for seed in range(20):
        lengths, raw, directions = case_with_ties_and_zeros(seed)
        whole, _ = perturbations.spgd(raw, directions, lengths, sigma, toward_only, rank)
        asked = Asked(directions)
        part, _ = perturbations.spgd(raw, asked, lengths, sigma, toward_only, rank)
        assert_same_bits(part, whole)
        assert whole.any() == (sigma < 1)


@settings(max_examples=100)
@given(batches(), st.sampled_from(SIGMAS), st.booleans(), st.sampled_from(perturbations.RANKS))
def test_both_forms_give_equal_bits_on_any_batch(batch, sigma, toward_only, rank):
    lengths, raw, directions = batch
    whole, _ = perturbations.spgd(raw, directions, lengths, sigma, toward_only, rank)
    part, _ = perturbations.spgd(raw, Asked(directions), lengths, sigma, toward_only, rank)
    assert_same_bits(part, whole)


@pytest.mark.parametrize('sigma', SIGMAS)
@pytest.mark.parametrize('toward_only', [False, True])
@pytest.mark.parametrize('rank', perturbations.RANKS)
def test_words_that_stay_are_zero_and_not_minus_zero(rank, toward_only, sigma):
    lengths, raw, directions = case_with_ties_and_zeros()
    perturbation, chosen = perturbations.spgd(
        raw, Asked(directions), lengths, sigma, toward_only, rank)
    assert not perturbation[chosen < 0].view(np.int32).any()


@pytest.mark.parametrize('sigma', SIGMAS)
@pytest.mark.parametrize('toward_only', [False, True])
@pytest.mark.parametrize('rank', perturbations.RANKS)
def test_the_function_is_asked_once_and_for_no_more_than_it_must(rank, toward_only, sigma):
    lengths, raw, directions = case_with_ties_and_zeros()
    asked = Asked(directions)
    perturbations.spgd(raw, asked, lengths, sigma, toward_only, rank)
    words, = asked.calls
    if rank == 'projected':
        np.testing.assert_array_equal(words, np.arange(len(raw)))
    else:
        kept = perturbations.kept_words(raw, lengths, sigma)
        np.testing.assert_array_equal(words, np.flatnonzero(kept))
        assert len(words) == sum(int((1 - sigma) * n) for n in lengths)


@pytest.mark.parametrize('sigma', SIGMAS)
@pytest.mark.parametrize('toward_only', [False, True])
@pytest.mark.parametrize('rank', perturbations.RANKS)
def test_indices_of_both_forms(rank, toward_only, sigma):
    lengths, raw, directions = case_with_ties_and_zeros()
    projected, best = perturbations.project(raw, directions, toward_only)
    _, whole = perturbations.spgd(raw, directions, lengths, sigma, toward_only, rank)
    np.testing.assert_array_equal(whole, best)
    _, part = perturbations.spgd(raw, Asked(directions), lengths, sigma, toward_only, rank)
    kept = perturbations.kept_words(raw if rank == 'raw' else projected, lengths, sigma)
    np.testing.assert_array_equal(part, np.where(kept, best, -1))
    assert (part >= 0).sum() == sum(int((1 - sigma) * n) for n in lengths)
    assert len(set(best.tolist())) == 4  # so that an index could be another's


def test_spgd_refuses_another_rank():
    with pytest.raises(ValueError, match='rank'):
        perturbations.spgd(np.zeros((1, 1), 'f'), np.zeros((1, 1, 1), 'f'), [1], 0.5, rank='norm')


@pytest.mark.parametrize('sparsity', [-0.1, 1.1, float('nan')])
def test_impossible_sparsity_is_refused(sparsity):
    with pytest.raises(ValueError, match='sparsity'):
        perturbations.kept_words(np.ones((2, 2), 'f'), [2], sparsity)


@pytest.mark.parametrize('code', CODES)
@pytest.mark.parametrize('columns', [1, 5, 64, 100])
def test_directions_in_a_table(code, columns):
    random = np.random.RandomState(0)
    table = random.randn(50, columns).astype('f')
    table[7] = table[8]  # no direction between equal vectors
    ids, nearest = random.randint(0, 50, 300), random.randint(0, 50, (300, 6))
    ids[0], nearest[0, 0] = 7, 8
    with running(code, threads=3):
        actual = perturbations.table_directions(table, ids, nearest)
    expected = perturbations.directions(table[ids], table[nearest])
    np.testing.assert_allclose(actual, expected, rtol=2e-6, atol=1e-7)
    assert not actual[0, 0].any()


def test_directions_in_a_table_need_ids_of_it():
    with pytest.raises(IndexError):
        perturbations.table_directions(np.ones((3, 2), 'f'), np.array([3]), np.array([[0]]))


# HotFlip ----------------------------------------------------------------------------------

@given(batches(), st.sampled_from([0, 0.25, 0.5, 0.9, 1]))
def test_hotflip_takes_the_swaps_of_largest_positive_gain(batch, sparsity):
    lengths, gradient, neighbors = batch  # any vectors will do
    words = np.random.RandomState(0).normal(size=gradient.shape).astype('f')
    gains = perturbations.swap_gains(gradient, words, neighbors)
    counts = perturbations.n_kept(lengths, sparsity)
    chosen = perturbations.hotflip(gains, lengths, counts)
    start = 0
    for length, count in zip(lengths, counts):
        assert count == int((1 - sparsity) * length + 1e-9)
        swaps = []  # of each word the best: gain, position, neighbour
        for i in range(start, start + length):
            values = [float((neighbors[i, k].astype('d') - words[i]) @ gradient[i])
                      for k in range(neighbors.shape[1])]
            np.testing.assert_allclose(gains[i], values, atol=1e-4)
            best = max(range(len(values)), key=lambda k: gains[i, k])
            swaps.append((-gains[i, best], i, best))
        taken = {i: k for gain, i, k in sorted(swaps)[:count] if gain < 0}
        assert chosen[start:start + length].tolist() == [
            taken.get(i, -1) for i in range(start, start + length)]
        start += length


def test_hotflip_never_takes_what_is_not_allowed():
    gains = np.float32([[3, 2], [-np.inf, 1], [-np.inf, -np.inf], [0, -1]])
    assert perturbations.hotflip(gains, [4], np.array([4])).tolist() == [0, 1, -1, -1]
    assert perturbations.hotflip(gains, [2, 2], np.array([1, 1])).tolist() == [0, -1, -1, -1]
