"""victim.py: attacks and what is read off them, on a classifier that can be worked out by hand."""
import types

import chainer
import numpy as np
import pytest

from interpretable_adv import attacks
from interpretable_adv.errors import UserError
from interpretable_adv.evaluation.victim import Adversary, AttackedReviews, Victim
from interpretable_adv.methods import AttackSettings
from interpretable_adv.nets import Classifier
from interpretable_adv.runs import checkpoints
from tests.interpretable_adv.evaluation.plane import (
    BAD,
    DULL,
    EOS,
    FILM,
    FINE,
    GOOD,
    N_LABELED,
    RARE,
    VECTORS,
    WORDS,
    Bag,
    reviews,
)

SEQUENCES = reviews([GOOD, FILM, EOS], [BAD, EOS])
LABELS = np.array([0, 1], np.int32)
EPSILON = 6 ** 0.5  # moves each word of the first review by (−1, 1), of the second by √3/√2 (1, −1)
FIRST, SECOND = np.array([-1, 1]), 1.5 ** 0.5 * np.array([1, -1])
SHIFT = np.array([FIRST, FIRST, FIRST, SECOND, SECOND])


@pytest.fixture
def victim():
    return Victim(Bag(), N_LABELED)


def adversary(victim, method='adv', **settings):
    return Adversary(method, victim, AttackSettings(**{'epsilon': EPSILON, 'k': 2, **settings}))


@pytest.fixture
def attacked(victim):
    return adversary(victim)(SEQUENCES, LABELS)


def attacked_by_hand(victim, perturbation, chosen=None, epsilon=1.0, sequences=SEQUENCES):
    """As if an attack had found this."""
    return AttackedReviews(
        adversary(victim, epsilon=epsilon), sequences, np.concatenate(sequences),
        attacks.Attacked(np.array(perturbation, 'f'), None,
                         None if chosen is None else np.array(chosen)))


def test_attacks_share_the_largest_table_of_neighbours(victim):
    large = adversary(victim, k=3).table
    small = adversary(victim, k=2).table
    ids = np.concatenate(SEQUENCES)
    np.testing.assert_array_equal(small[ids], large[ids][:, :2])
    assert adversary(victim, k=3).table is large and len(victim._tables) == 1
    assert adversary(victim, k=2, limit_vocabulary=False).table is not small


# The classifier -------------------------------------------------------------------------------

@pytest.mark.parametrize('train', [True, False])
def test_logits_are_of_words_and_perturbation_without_dropout(victim, train):
    with chainer.using_config('train', train):
        logits = victim.logits(SEQUENCES)
        moved = victim.logits(SEQUENCES, np.array(SHIFT, 'f'))
    sums = [VECTORS[[GOOD, FILM, EOS]].sum(axis=0), VECTORS[[BAD, EOS]].sum(axis=0)]
    assert isinstance(logits, np.ndarray) and logits.shape == (2, 2)
    np.testing.assert_allclose(logits, sums, rtol=1e-6)
    np.testing.assert_allclose(moved, [sums[0] + 3 * FIRST, sums[1] + 2 * SECOND], rtol=1e-5)


def test_neighbors_are_those_that_the_settings_ask_for(victim):
    def found(**settings):
        return victim.neighbors(AttackSettings(1.0, **settings))[np.array([GOOD, EOS])].tolist()

    assert found(k=2) == [[FINE, FILM], [FILM, DULL]]
    assert found(k=2, limit_vocabulary=False) == [[FINE, RARE], [FILM, RARE]]
    assert found(k=1, k_offset=2) == [[FILM], [DULL]]
    assert found(k=2, k_offset=0) == [[GOOD, FINE], [EOS, FILM]]
    assert Victim(Bag()).neighbors(AttackSettings(1.0, k=2))[np.array([GOOD])].tolist() == [
        [FINE, RARE]]  # nobody knows which words are of labelled reviews


def test_attacks_share_what_does_not_depend_on_them(victim):
    table = adversary(victim, 'iadv').table
    assert adversary(victim, 'spgd', epsilon=9.0, sparsity=0.5).table is table
    assert adversary(victim, k=3).table is not table
    assert adversary(victim, k_offset=0).table is not table
    assert adversary(victim, limit_vocabulary=False).table is not table
    assert victim.nearest_words is victim.nearest_words


def test_too_many_neighbors_are_refused(victim):
    with pytest.raises(UserError, match='--nn_k 7: there are only 7 words'):
        adversary(victim, k=7)


@pytest.fixture
def saved(tmp_path):
    np.random.seed(0)
    model = Classifier(8, 3, 4, 5, n_class=2)
    checkpoints.save_classifier(tmp_path / 'best.model', model)
    return str(tmp_path / 'best.model'), model


def corpus(**fields):
    return types.SimpleNamespace(**{'words': WORDS, 'n_class': 2, 'n_labeled_words': 6, **fields})


def test_a_victim_is_loaded_with_its_corpus(saved):
    path, model = saved
    loaded = Victim.load(path, corpus(), chainer.get_device('@numpy'))
    np.testing.assert_array_equal(loaded.embeddings, model.word_embed.W.array)
    np.testing.assert_array_equal(loaded.logits(SEQUENCES), Victim(model).logits(SEQUENCES))
    assert loaded.n_labeled_words == 6


@pytest.mark.parametrize('fields, message', [
    ({'n_class': 3}, 'has 2 classes, the corpus 3'),
    ({'words': WORDS[:-1]}, 'trained with 8 words, the corpus has 7')])
def test_a_classifier_of_another_corpus_is_refused(saved, fields, message):
    with pytest.raises(UserError, match=message):
        Victim.load(saved[0], corpus(**fields), chainer.get_device('@numpy'))


# Attacks --------------------------------------------------------------------------------------

@pytest.mark.parametrize('train', [True, False])
def test_each_review_moves_away_from_its_own_label_without_dropout(victim, train):
    with chainer.using_config('train', train):
        attacked = adversary(victim)(SEQUENCES, LABELS)
        other = adversary(victim)(SEQUENCES, 1 - LABELS)
    np.testing.assert_allclose(attacked.perturbation, SHIFT, atol=1e-4)
    np.testing.assert_allclose(other.perturbation, -SHIFT, atol=1e-4)


@pytest.mark.parametrize('scale', [2.0, 0.05])  # a small one does not reach the whole of ε
def test_a_virtual_attack_is_against_the_models_own_output(victim, monkeypatch, scale):
    """The gradient of a divergence is q − p, q being the output at the random start."""
    noise = np.array([[1, -2], [3, 1], [1, 1], [-1, 4], [-2, 1]], 'f')
    monkeypatch.setattr(Adversary, '_noise', lambda self, sequences, xp, shape: noise)
    found = [adversary(victim, 'vat', first_scale=scale)(SEQUENCES, labels).perturbation
             for labels in (LABELS, 1 - LABELS)]
    np.testing.assert_array_equal(found[0], found[1])

    def probabilities(sums):
        return np.exp(sums) / np.exp(sums).sum()

    start = scale * noise / np.linalg.norm(noise, axis=1, keepdims=True)
    for sequence, rows in zip(SEQUENCES, (slice(0, 3), slice(3, 5))):
        sums = VECTORS[sequence].astype('d').sum(axis=0)
        gradient = scale * (probabilities(sums + start[rows].sum(axis=0)) - probabilities(sums))
        norm = np.sqrt(1e-6 + len(sequence) * (gradient ** 2).sum())
        for row in found[0][rows]:
            np.testing.assert_allclose(row, EPSILON * gradient / norm, rtol=1e-3)


def test_virtual_noise_depends_on_the_seed_and_the_words_alone(victim):
    def found(sequences, seed):
        return adversary(victim, 'vat', seed=seed)(sequences, LABELS[:len(sequences)])

    together = found(SEQUENCES, 5).split(found(SEQUENCES, 5).perturbation)
    for sequence, expected in zip(SEQUENCES, together):
        np.testing.assert_array_equal(found([sequence], 5).perturbation, expected)
    noise = [adversary(victim, 'vat', seed=seed)._noise(SEQUENCES, np, (5, 2)) for seed in (5, 6)]
    assert noise[0].dtype == np.float32 and noise[0].shape == (5, 2)
    assert not np.array_equal(*noise)


def test_the_settings_are_those_of_the_attack(victim):
    attacked = adversary(victim, 'spgd', sparsity=0.5)(SEQUENCES, LABELS)
    assert (attacked.norms > 0).tolist() == [True, False, False, True, False]
    attacked = adversary(victim, epsilon=0.5, level='word', mask_eos=True)(SEQUENCES, LABELS)
    np.testing.assert_allclose(attacked.norms, [0.5, 0.5, 0, 0.5, 0], atol=1e-5)


@pytest.mark.parametrize('method', ['adv', 'iadv', 'spgd'])
def test_attacks_use_each_reviews_own_loss_without_dropout(method):
    random = np.random.RandomState(2)
    np.random.seed(1)
    attack = Adversary(method, Victim(Classifier(60, 8, 12, 5, dropout=0.5)),
                       AttackSettings(1.0, k=6))
    sequences = [np.append(random.randint(2, 60, n), 0).astype(np.int32)
                 for n in (14, 3, 0, 30, 9, 9, 1, 22)]
    labels = np.array([0, 1, 1, 0, 0, 1, 0, 1], np.int32)
    with chainer.using_config('train', True):
        first = attack(sequences, labels).perturbation
        second = attack(sequences, labels).perturbation
    np.testing.assert_array_equal(first, second)
    ends = np.cumsum([len(sequence) for sequence in sequences])
    for sequence, label, end in zip(sequences, labels, ends):
        alone = attack([sequence], np.array([label])).perturbation
        np.testing.assert_allclose(first[end - len(sequence):end], alone, rtol=1e-3, atol=1e-6)


# Readings -------------------------------------------------------------------------------------

def test_norms_and_neighbors_of_every_word(attacked):
    np.testing.assert_allclose(attacked.norms, [2 ** 0.5] * 3 + [3 ** 0.5] * 2, rtol=1e-4)
    assert attacked.ids.tolist() == [GOOD, FILM, EOS, BAD, EOS]
    assert attacked.neighbors.tolist() == [
        [FINE, FILM], [EOS, FINE], [FILM, DULL], [DULL, EOS], [FILM, DULL]]


def test_cosines_are_between_the_perturbation_and_the_neighbours(attacked):
    expected = [[np.dot(to, shift) / np.linalg.norm(to) / np.linalg.norm(shift)
                 for to in VECTORS[neighbors] - VECTORS[word]]
                for word, neighbors, shift in zip(attacked.ids, attacked.neighbors, SHIFT)]
    np.testing.assert_allclose(attacked.cosines, expected, atol=1e-4)


def test_cosines_of_words_that_hardly_move_are_in_units_of_epsilon(victim):
    small = attacked_by_hand(victim, 4e-3 * SHIFT / np.linalg.norm(SHIFT, axis=1, keepdims=True),
                             epsilon=4.0)
    whole = attacked_by_hand(victim, SHIFT)
    np.testing.assert_allclose(small.cosines, whole.cosines / 2 ** 0.5, rtol=1e-3, atol=1e-5)


def test_without_epsilon_there_are_no_cosines(victim):
    resting = attacked_by_hand(victim, 0 * SHIFT, epsilon=0.0)
    assert resting.cosines.shape == (5, 2) and not resting.cosines.any()


def test_a_word_moves_towards_the_neighbour_of_highest_cosine(attacked):
    assert attacked.neighbor_index.tolist() == [1, 0, 1, 1, 0]
    assert attacked.toward.tolist() == [FILM, EOS, DULL, EOS, FILM]


def test_an_attack_that_has_chosen_goes_first(victim):
    """Also where the word moves away from what it chose, and where it chose but stays."""
    attacked = attacked_by_hand(victim, [FIRST, [0, 0], [0, 0], SECOND, SECOND],
                                chosen=[0, -1, 1, -1, 1])
    assert attacked.neighbor_index.tolist() == [0, 0, 1, 0, 1]
    assert attacked.toward.tolist() == [FINE, FILM, EOS, DULL, DULL]
    assert attacked.cosines[4].argmax() == 0  # which it did not choose


def test_without_a_choice_words_that_stay_are_read_as_themselves(victim):
    attacked = attacked_by_hand(victim, [FIRST, [0, 0], [0, 0], [0, 0], SECOND])
    assert attacked.toward.tolist() == [FILM, FILM, EOS, BAD, FILM]
    assert attacked.nearest.tolist() == [BAD, FILM, EOS, BAD, GOOD]


def test_nearest_words(attacked):
    # At 90, 98 and 115 degrees; at −10 and −26 degrees.
    assert attacked.nearest.tolist() == [BAD, BAD, BAD, GOOD, GOOD]


@pytest.mark.parametrize('name, expected', [
    ('nearest', [[BAD, BAD, BAD], [GOOD, GOOD]]),
    ('direction', [[FILM, EOS, DULL], [EOS, FILM]])])
def test_reviews_are_read_with_their_words_replaced(attacked, name, expected):
    found = attacked.reading(name)
    assert [review.tolist() for review in found] == expected
    assert all(isinstance(review, np.ndarray) and review.dtype == np.int32 for review in found)


def test_there_are_no_words_of_the_continuous_reading(attacked):
    with pytest.raises(KeyError):
        attacked.reading('continuous')


def test_logits_before_and_after_in_each_reading(attacked):
    def sums(*words):
        return [VECTORS[list(review)].sum(axis=0) for review in words]

    clean = sums((GOOD, FILM, EOS), (BAD, EOS))
    np.testing.assert_allclose(attacked.logits, clean, atol=1e-6)
    np.testing.assert_allclose(attacked.logits_after('continuous'),
                               [clean[0] + 3 * FIRST, clean[1] + 2 * SECOND], atol=1e-3)
    np.testing.assert_allclose(attacked.logits_after('nearest'),
                               sums((BAD, BAD, BAD), (GOOD, GOOD)), atol=1e-6)
    np.testing.assert_allclose(attacked.logits_after('direction'),
                               sums((FILM, EOS, DULL), (EOS, FILM)), atol=1e-6)
    before, after = (values.argmax(axis=1).tolist() for values in (
        attacked.logits, attacked.logits_after('continuous')))
    assert before == [0, 1] and after == [1, 0]


def test_rows_are_split_by_review(attacked):
    assert [part.tolist() for part in attacked.split(np.arange(5))] == [[0, 1, 2], [3, 4]]
