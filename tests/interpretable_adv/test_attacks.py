"""attacks.py: what every attack promises, on random models."""
import chainer
import chainer.functions as F
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpretable_adv import attacks, neighbors, nets, perturbations

N_VOCAB, K = 40, 5
ATTACKS = {
    'adv': lambda table: attacks.AdvT(1.0),
    'iadv': lambda table: attacks.IAdvT(1.0, table),
    'spgd': lambda table: attacks.SPGD(1.0, table, sparsity=0.5),
}


def random_case(seed, lengths, dropout=0.0):
    random = np.random.RandomState(seed)
    np.random.seed(seed)
    model = nets.Classifier(N_VOCAB, 6, 7, 4, n_class=3, dropout=dropout)
    ids = random.randint(2, N_VOCAB, sum(lengths)).astype('i')
    ids[np.cumsum(lengths) - 1] = 0
    labels = random.randint(0, 3, len(lengths)).astype('i')
    return model, ids, labels, neighbors.nearest(model.word_embed.W.array, K)


def losses(model, ids, lengths, labels, perturbation):
    with chainer.using_config('train', False):
        logits = model(np.split(ids, np.cumsum(lengths)[:-1]), perturbation)
    return F.softmax_cross_entropy(logits, labels, reduce='no').array


@pytest.mark.parametrize('name', ATTACKS)
def test_the_loss_rises(name):
    """Choice 1 of the paper's reading: along +∇loss, not +∇p(y)."""
    rises = []
    for seed in range(20):
        lengths = [4, 9, 6]
        model, ids, labels, table = random_case(seed, lengths)
        attacked = ATTACKS[name](table)(model, ids, lengths, attacks.own_losses(labels))
        rises += list(losses(model, ids, lengths, labels, attacked.perturbation)
                      - losses(model, ids, lengths, labels, 0 * attacked.perturbation))
    # A review whose hidden layer is all zero has no gradient, and its loss stays.
    assert np.mean(rises) > 0.02 and np.mean(np.array(rises) >= 0) > 0.95


@pytest.mark.parametrize('name', ATTACKS)
def test_a_reviews_own_loss_makes_it_independent_of_its_batch(name):
    lengths = [4, 9, 6]
    model, ids, labels, table = random_case(0, lengths)
    attack = ATTACKS[name](table)
    together = attack(model, ids, lengths, attacks.own_losses(labels)).perturbation
    for words, label, expected in zip(
            np.split(ids, np.cumsum(lengths)[:-1]), labels,
            np.split(together, np.cumsum(lengths)[:-1])):
        alone = attack(model, words, [len(words)], attacks.own_losses(np.array([label])))
        np.testing.assert_allclose(alone.perturbation, expected, atol=1e-5)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.lists(st.integers(1, 9), min_size=1, max_size=4),
       st.sampled_from([0, 0.25, 0.5, 0.75, 1]))
def test_spgd_keeps_its_promises(seed, lengths, sparsity):
    """⌊(1−σ)N⌋ words per review move, each along one direction to one of its neighbours."""
    model, ids, labels, table = random_case(seed, lengths)
    attacked = attacks.SPGD(5.0, table, sparsity)(
        model, ids, lengths, attacks.mean_loss(labels))
    moves = attacked.chosen >= 0
    for review, n in zip(np.split(moves, np.cumsum(lengths)[:-1]), lengths):
        assert review.sum() == int((1 - sparsity) * n + 1e-9)
    assert not attacked.perturbation[~moves].any()
    embeddings = model.word_embed.W.array
    assert attacked.chosen.min() >= -1 and attacked.chosen.max() < K
    for word, chosen, vector in zip(ids, attacked.chosen, attacked.perturbation):
        if chosen >= 0:
            direction = embeddings[table[word, chosen]] - embeddings[word]
            cosine = direction @ vector / (
                np.linalg.norm(direction) * np.linalg.norm(vector) + 1e-12)
            assert np.linalg.norm(vector) < 1e-4 or abs(abs(cosine) - 1) < 1e-3


@pytest.mark.parametrize('rank', ['raw', 'projected'])
@pytest.mark.parametrize('toward_only', [False, True])
def test_spgd_is_algorithm_1_of_perturbations(rank, toward_only):
    """The attack computes directions of kept words only; the result is the formula's."""
    lengths = [8, 3, 12]
    model, ids, labels, table = random_case(3, lengths)
    loss = attacks.mean_loss(labels)
    raw = attacks.AdvT(7.0)(model, ids, lengths, loss).perturbation
    embeddings = model.word_embed.W.array
    directions = perturbations.directions(embeddings[ids], embeddings[table[ids]])
    expected, _ = perturbations.spgd(raw, directions, lengths, 0.5, toward_only, rank)
    attack = attacks.SPGD(7.0, table, 0.5, toward_only=toward_only, rank=rank)
    attacked = attack(model, ids, lengths, loss)
    np.testing.assert_allclose(attacked.perturbation, expected, atol=1e-5)
    assert not (toward_only and attacked.away.any())


def test_each_of_m_steps_starts_where_the_last_one_ended():
    lengths = [8, 3]
    model, ids, labels, table = random_case(4, lengths)
    loss = attacks.mean_loss(labels)
    raw = 0
    for _ in range(3):
        start = chainer.Variable(np.zeros((11, 6), 'f') + raw)
        value = loss(model.classify(model.word_embed.W.array[ids] + start, lengths))
        gradient = chainer.grad([value], [start])[0].array
        raw = raw + perturbations.advt(gradient, lengths, 2.0)
    attack = attacks.SPGD(9.0, table, sparsity=0, iterations=3, step=2.0)
    directions = perturbations.directions(
        model.word_embed.W.array[ids], model.word_embed.W.array[table[ids]])
    np.testing.assert_allclose(attack(model, ids, lengths, loss).perturbation,
                               perturbations.project(raw, directions)[0], atol=1e-5)


@pytest.mark.parametrize('name', ATTACKS)
def test_the_end_of_a_review_can_be_left_in_place(name):
    lengths = [4, 9]
    model, ids, labels, table = random_case(5, lengths)
    attack = ATTACKS[name](table)
    attack.mask_eos = True
    perturbation = attack(model, ids, lengths, attacks.mean_loss(labels)).perturbation
    assert not perturbation[ids == 0].any() and perturbation[ids != 0].any()


def test_the_gradient_of_the_weights_is_not_computed():
    lengths = [4, 9]
    model, ids, labels, _ = random_case(6, lengths)
    model.cleargrads()
    attacks.AdvT(1.0)(model, ids, lengths, attacks.mean_loss(labels))
    assert all(parameter.grad is None for parameter in model.params())


def test_divergence_is_zero_at_its_own_logits_and_positive_elsewhere():
    logits = np.random.RandomState(0).normal(size=(4, 3)).astype('f')
    loss = attacks.divergence(logits)
    assert abs(float(loss(chainer.Variable(logits)).array)) < 1e-6
    other = logits + np.random.RandomState(1).normal(size=(4, 3)).astype('f')
    p, q = F.softmax(logits).array, F.softmax(other).array
    np.testing.assert_allclose(
        loss(chainer.Variable(other)).array, (p * np.log(p / q)).sum() / 4, rtol=1e-5)


# Controls -------------------------------------------------------------------------------------

def test_controls():
    lengths = [14, 3, 1, 30, 9, 9, 2, 22]
    model, ids, labels, _ = random_case(8, lengths)
    loss = attacks.own_losses(labels)

    def attack(kind, *arguments):
        return kind(*arguments)(model, ids, lengths, loss).perturbation

    adv = attack(attacks.AdvT, 2.0)
    sparse = attack(attacks.SparseAdvT, 2.0, 0.75)
    noise = attack(attacks.RandomDirections, 2.0, 7)
    again = attack(attacks.RandomDirections, 2.0, 7)
    other = attack(attacks.RandomDirections, 2.0, 8)
    norms = np.linalg.norm(adv, axis=1)
    np.testing.assert_allclose(np.linalg.norm(noise, axis=1), norms, rtol=1e-5)
    np.testing.assert_array_equal(noise, again)
    assert (noise != other).any()
    end = 0
    for length in lengths:
        part = slice(end, end + length)
        kept = np.flatnonzero(sparse[part].any(axis=1))
        assert len(kept) == length // 4
        largest = np.argsort(-norms[part], kind='stable')[:len(kept)]
        np.testing.assert_array_equal(kept, np.sort(largest))
        np.testing.assert_array_equal(sparse[part][kept], adv[part][kept])
        end += length


def test_random_directions_of_a_review_do_not_depend_on_its_batch():
    lengths = [5, 9]
    model, ids, labels, _ = random_case(9, lengths)
    attack = attacks.RandomDirections(2.0, seed=7)
    together = attack(model, ids, lengths, attacks.own_losses(labels)).perturbation
    alone = attack(model, ids[5:], [9], attacks.own_losses(labels[1:])).perturbation
    np.testing.assert_allclose(together[5:], alone, atol=1e-5)
    directions = together / np.linalg.norm(together, axis=1, keepdims=True)
    assert np.abs(directions @ directions.T - np.eye(14)).max() < 0.999  # each its own


def test_random_directions_of_reviews_of_one_length_differ_by_their_words():
    model, ids, labels, _ = random_case(9, [6, 6, 6])
    ids[12:] = ids[:6]  # the third review is the first again
    labels[2] = labels[0]
    moved = attacks.RandomDirections(2.0, seed=7)(
        model, ids, [6, 6, 6], attacks.own_losses(labels)).perturbation
    first, second, third = np.split(moved / np.linalg.norm(moved, axis=1, keepdims=True), 3)
    np.testing.assert_allclose(first, third, atol=1e-5)
    assert ((first * second).sum(axis=1) < 0.999).all()


def test_no_attack_leaves_every_word_where_it_is():
    model, ids, labels, _ = random_case(9, [5, 9])
    attacked = attacks.NoAttack(3.0)(model, ids, [5, 9], attacks.own_losses(labels))
    assert attacked.perturbation.shape == (14, 6) and attacked.perturbation.dtype == np.float32
    assert not attacked.perturbation.any()
    assert attacked.first_loss is None and attacked.chosen is None


# What SPGD says of its words ------------------------------------------------------------------

@pytest.mark.parametrize('rank', ['raw', 'projected'])
def test_spgd_tells_which_words_move_away_from_what_they_chose(rank):
    lengths = [8, 3, 12]
    model, ids, labels, table = random_case(3, lengths)
    attacked = attacks.SPGD(7.0, table, 0.25, rank=rank)(
        model, ids, lengths, attacks.mean_loss(labels))
    embeddings = model.word_embed.W.array
    moves = np.flatnonzero(attacked.chosen >= 0)
    assert not attacked.away[attacked.chosen < 0].any()
    steps = embeddings[table[ids[moves], attacked.chosen[moves]]] - embeddings[ids[moves]]
    along = (attacked.perturbation[moves] * steps).sum(axis=1)
    np.testing.assert_array_equal(attacked.away[moves], along < 0)
    assert attacked.away.any() and not attacked.away[moves].all()
