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


# HotFlip --------------------------------------------------------------------------------------

SWAPS = {'hotflip': attacks.HotFlip, 'hotflip_greedy': attacks.GreedyHotFlip}


def case_with_specials(seed, lengths):
    """As `random_case`, also with unknown words, and with more pronounced word vectors."""
    model, ids, labels, _ = random_case(seed, lengths)
    random = np.random.RandomState(seed)
    ids[(ids != 0) & (random.rand(len(ids)) < 0.1)] = 1
    model.word_embed.W.array[...] *= 2
    for layer in (model.hidden_layer, model.output_layer):
        layer.W.array[...] *= 3
    return model, ids, labels, neighbors.nearest(model.word_embed.W.array, K)


def text_of(ids, table, chosen):
    return np.where(chosen >= 0, table[ids, chosen.clip(0)], ids)


def gradient_of(model, words, label):
    """The loss, the prediction, and the gradient with respect to the word vectors."""
    embedded = chainer.Variable(model.word_embed.W.array[words])
    logits = model.classify(embedded, [len(words)])
    loss = F.softmax_cross_entropy(logits, np.array([label]))
    return (float(loss.array), int(logits.array.argmax()),
            chainer.grad([loss], [embedded])[0].array.astype('d'))


def best_swaps(model, words, gradient, table, original, swapped=()):
    """All positive best gains of a review, the largest first: (gain, position, neighbour)."""
    embeddings = model.word_embed.W.array.astype('d')
    found = []
    for i, word in enumerate(original):
        gains = [(-(embeddings[other] - embeddings[words[i]]) @ gradient[i], k)
                 for k, other in enumerate(table[word]) if other > 1]
        if word > 1 and i not in swapped and gains and min(gains)[0] < 0:
            found.append((min(gains)[0], i, min(gains)[1]))
    return sorted(found)


def reference_hotflip(model, words, label, table, count):
    _, _, gradient = gradient_of(model, words, label)
    chosen = np.full(len(words), -1)
    for _, i, k in best_swaps(model, words, gradient, table, words)[:count]:
        chosen[i] = k
    return chosen


def reference_greedy(model, words, label, table, count):
    chosen, seen = np.full(len(words), -1), []
    while True:
        text = text_of(words, table, chosen)
        loss, prediction, gradient = gradient_of(model, text, label)
        seen.append((loss, chosen.copy()))
        swaps = best_swaps(model, text, gradient, table, words, np.flatnonzero(chosen >= 0))
        if prediction != label or (chosen >= 0).sum() == count or not swaps:
            return max(seen, key=lambda entry: entry[0])[1]
        chosen[swaps[0][1]] = swaps[0][2]


@pytest.mark.parametrize('name, reference', [('hotflip', reference_hotflip),
                                             ('hotflip_greedy', reference_greedy)])
@pytest.mark.parametrize('sparsity', [0, 0.5, 0.75, 1])
def test_swaps_are_those_of_the_definition(name, reference, sparsity):
    lengths = [14, 3, 1, 30, 9, 22, 2]
    number = 0
    for seed in range(4):
        model, ids, labels, table = case_with_specials(seed, lengths)
        found = SWAPS[name](table, sparsity)(model, ids, lengths, attacks.own_losses(labels))
        for words, label, chosen in zip(np.split(ids, np.cumsum(lengths)[:-1]), labels,
                                        np.split(found.chosen, np.cumsum(lengths)[:-1])):
            expected = reference(model, words, label, table,
                                 int((1 - sparsity) * len(words) + 1e-9))
            np.testing.assert_array_equal(chosen, expected)
            number += (chosen >= 0).sum()
    assert (number > 10) == (sparsity < 1)


@settings(max_examples=40, deadline=None)
@given(st.integers(0, 2**31), st.lists(st.integers(1, 12), min_size=1, max_size=4),
       st.sampled_from([0, 0.25, 0.5, 0.75, 1]), st.sampled_from(list(SWAPS)))
def test_swaps_keep_their_promises(seed, lengths, sparsity, name):
    model, ids, labels, table = case_with_specials(seed, lengths)
    found = SWAPS[name](table, sparsity)(model, ids, lengths, attacks.own_losses(labels))
    embeddings = model.word_embed.W.array
    swapped = found.chosen >= 0
    # The budget holds, and no special is swapped.
    for review, n in zip(np.split(swapped, np.cumsum(lengths)[:-1]), lengths):
        assert review.sum() <= int((1 - sparsity) * n + 1e-9)
    assert not swapped[ids < 2].any()
    # A swap leads to one of the K neighbours, exactly, and never to a special.
    assert found.chosen.max() < K
    text = text_of(ids, table, found.chosen)
    assert (text[swapped] > 1).all() and (text[swapped] != ids[swapped]).all()
    np.testing.assert_array_equal(found.perturbation, embeddings[text] - embeddings[ids])
    assert not found.perturbation[~swapped].any()
    if name == 'hotflip_greedy':
        before, after = (F.softmax_cross_entropy(
            model(np.split(words, np.cumsum(lengths)[:-1])), labels, reduce='no').array
            for words in (ids, text))
        assert (after >= before).all()
        wrong = model(np.split(ids, np.cumsum(lengths)[:-1])).array.argmax(axis=1) != labels
        for review, is_wrong in zip(np.split(swapped, np.cumsum(lengths)[:-1]), wrong):
            assert not (is_wrong and review.any())


@pytest.mark.parametrize('name', SWAPS)
def test_swaps_do_not_depend_on_the_batch(name):
    """To the bit, since greedy decisions would multiply a difference."""
    lengths = [14, 3, 1, 30, 9, 22, 2]
    model, ids, labels, table = case_with_specials(1, lengths)
    attack = SWAPS[name](table, 0.5)
    together = attack(model, ids, lengths, attacks.own_losses(labels))
    ends = np.cumsum(lengths)
    for i, (start, end) in enumerate(zip(ends - lengths, ends)):
        alone = attack(model, ids[start:end], lengths[i:i + 1],
                       attacks.own_losses(labels[i:i + 1]))
        np.testing.assert_array_equal(alone.chosen, together.chosen[start:end])
        np.testing.assert_array_equal(alone.perturbation, together.perturbation[start:end])


def test_swaps_in_blocks_are_the_same(monkeypatch):
    lengths = [14, 30, 9]
    model, ids, labels, table = case_with_specials(2, lengths)
    whole = attacks.HotFlip(table, 0.5)(model, ids, lengths, attacks.own_losses(labels))
    monkeypatch.setattr(attacks, 'BLOCK_WORDS', 5)
    parts = attacks.HotFlip(table, 0.5)(model, ids, lengths, attacks.own_losses(labels))
    np.testing.assert_array_equal(parts.chosen, whole.chosen)


def test_dropout_has_no_part_in_swaps():
    lengths = [14, 30, 9]
    model, ids, labels, table = case_with_specials(2, lengths)
    first = attacks.HotFlip(table, 0.5)(model, ids, lengths, attacks.own_losses(labels))
    model.dropout = model.uni_lstm.dropout = 0.5
    with chainer.using_config('train', True):
        again = attacks.HotFlip(table, 0.5)(model, ids, lengths, attacks.own_losses(labels))
    np.testing.assert_array_equal(first.chosen, again.chosen)


# Guides ---------------------------------------------------------------------------------------

class StandInGuide:
    """A gradient that depends on everything a guide is given."""

    def __init__(self, weight):
        self.weight = weight

    def __call__(self, ids, lengths, labels, perturbation):
        label = np.repeat(labels, lengths)
        value = np.sin(ids + 3 * label)[:, None] * np.arange(1, 7) + perturbation
        return (self.weight * value).astype('f')


GUIDED = {
    'adv': lambda table, guide: attacks.AdvT(1.0, guide=guide),
    'spgd': lambda table, guide: attacks.SPGD(1.0, table, 0.5, iterations=2, guide=guide),
    'adv_sparse': lambda table, guide: attacks.SparseAdvT(1.0, 0.5, guide=guide),
    'hotflip': lambda table, guide: attacks.HotFlip(table, 0.5, guide=guide),
    'hotflip_greedy': lambda table, guide: attacks.GreedyHotFlip(table, 0.5, guide=guide),
}


@pytest.mark.parametrize('name', GUIDED)
def test_a_guide_of_weight_zero_changes_no_bit(name):
    lengths = [14, 9, 22]
    model, ids, labels, table = case_with_specials(4, lengths)
    labels[:] = model(np.split(ids, np.cumsum(lengths)[:-1])).array.argmax(axis=1)
    loss = attacks.own_losses(labels)
    plain, zero, one = (GUIDED[name](table, guide)(model, ids, lengths, loss) for guide in (
        None, StandInGuide(0), StandInGuide(1)))
    np.testing.assert_array_equal(zero.perturbation, plain.perturbation)
    assert (one.perturbation != plain.perturbation).any()
    assert plain.gradient_norms is None and zero.gradient_norms.shape == (3, 2)
    assert not zero.gradient_norms[:, 1].any()


@pytest.mark.parametrize('loss, scale', [(attacks.own_losses, 1), (attacks.mean_loss, 1 / 3),
                                         (lambda labels: attacks.mean_loss(labels, 0.5), 1 / 6)])
def test_both_terms_have_one_reduction(loss, scale):
    lengths = [8, 3, 12]
    model, ids, labels, _ = random_case(3, lengths)
    start = chainer.Variable(np.zeros((23, 6), 'f'))
    own = chainer.grad([attacks.own_losses(labels)(
        model.classify(model.word_embed.W.array[ids] + start, lengths))], [start])[0].array
    added = StandInGuide(0.01)(ids, lengths, labels, start.array)
    expected = perturbations.advt(scale * (own + added), lengths, 1.0)
    found = attacks.AdvT(1.0, guide=StandInGuide(0.01))(model, ids, lengths, loss(labels))
    np.testing.assert_allclose(found.perturbation, expected, atol=1e-5)
    norms = [[np.linalg.norm(scale * part) for part in np.split(term, np.cumsum(lengths)[:-1])]
             for term in (own, added)]
    np.testing.assert_allclose(found.gradient_norms, np.transpose(norms), rtol=1e-4)


def test_greedy_swaps_are_guided_by_the_text_as_it_has_become():
    seen = []

    def guide(ids, lengths, labels, perturbation):
        seen.append((ids.copy(), list(lengths), labels.copy(), perturbation.copy()))
        return np.zeros_like(perturbation)

    lengths = [14, 9, 22]
    model, ids, labels, table = case_with_specials(4, lengths)
    labels[:] = model(np.split(ids, np.cumsum(lengths)[:-1])).array.argmax(axis=1)
    attacks.GreedyHotFlip(table, 0.5, guide=guide)(
        model, ids, lengths, attacks.own_losses(labels))
    assert len(seen) > 1 and not seen[0][3].any()
    for step, (words, here, truth, perturbation) in enumerate(seen):
        ends = np.cumsum(here)
        assert len(truth) == len(here) and ends[-1] == len(words)
        for start, end in zip(ends - here, ends):
            assert perturbation[start:end].any(axis=1).sum() == step
