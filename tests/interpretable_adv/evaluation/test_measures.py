"""measures.py: every number on a case worked out by hand, and all attacks on a small model."""
import types
import warnings

import chainer
import numpy as np
import pytest

from interpretable_adv.evaluation import measures
from interpretable_adv.evaluation.readings import READINGS
from interpretable_adv.evaluation.victim import Adversary, Victim
from interpretable_adv.methods import AttackSettings
from interpretable_adv.nets import Classifier
from lm import evaluation
from lm.nets import RNNForLM

# A case by hand -------------------------------------------------------------------------------
#
# Four reviews in three classes, of 3, 2, 5 and 1 words. The attack makes A wrong and B right; C it
# turns in the reading `nearest` only; D, a single word, is left alone. In the reading `direction`
# B is wrong before and after, but in another way.

A, B, C, D = ([7, 9, 0], [4, 0], [3, 8, 6, 5, 0], [0])
SEQUENCES = [np.array(review, np.int32) for review in (A, B, C, D)]
LABELS = np.array([1, 0, 2, 1], np.int32)
BEFORE = np.array([1, 1, 2, 1])
AFTER = {'continuous': [0, 0, 2, 1], 'nearest': [1, 1, 0, 1], 'direction': [0, 2, 2, 1]}
WORDS = {'nearest': [[7, 2, 0], [4, 0], [3, 7, 7, 5, 0], [0]],
         'direction': [[5, 2, 0], [4, 0], [9, 8, 7, 7, 0], [0]]}
NORMS = [[0.5, 1.5, 0], [0, 0], [1, 0, 2, 1, 0], [0]]
# Added to the language model's vectors, one number a word; the last word is never read.
SHIFT = [[0.25, 0.5, 8], [0, 8], [-0.5, 0, 0.125, 1, 8], [8]]


class HandScorer:
    """A language model of one-dimensional vectors: the negative log-likelihood of a review is a
    tenth of the sum of what it reads."""

    word_size = 1

    def nll(self, sequences, perturbation=None):
        shifts = np.split(np.zeros((sum(map(len, sequences)), 1)) if perturbation is None
                          else perturbation, np.cumsum([len(s) for s in sequences])[:-1])
        return np.array([(review[:-1].sum() + shift[:-1].sum()) / 10
                         for review, shift in zip(sequences, shifts)])


class HandAttacked:
    """What `victim.AttackedReviews` offers, from the tables above."""

    gradient_norms = None

    def __init__(self, sequences):
        self.sequences = sequences
        self.numbers = [[len(review) for review in SEQUENCES].index(len(review))
                        for review in sequences]
        self.norms = np.concatenate([NORMS[i] for i in self.numbers])
        self.perturbation = np.concatenate([SHIFT[i] for i in self.numbers])[:, None]

    def reading(self, name):
        return [np.array(WORDS[name][i], np.int32) for i in self.numbers]

    def logits_after(self, name):
        # The class after the attack is the largest, the one that follows it the smallest.
        classes = np.array([AFTER[name][i] for i in self.numbers])
        logits = np.zeros((len(classes), 3), np.float32)
        logits[np.arange(len(classes)), classes] = 2
        logits[np.arange(len(classes)), (classes + 1) % 3] = -3
        return logits


@pytest.fixture
def asked():
    """The batches that the adversary below was asked to attack, as lengths and labels."""
    return []


@pytest.fixture
def measure(asked, monkeypatch):
    """Measures the case in batches of at most four words: D and B, A, C."""
    def adversary(sequences, labels):
        asked.append(([len(review) for review in sequences], labels.tolist()))
        return HandAttacked(sequences)

    adversary.neighbors_of = None

    def measure(readings=READINGS, progress=None, invariance=None):
        scorer = HandScorer()
        return measures.measure(adversary, scorer, SEQUENCES, LABELS, BEFORE,
                                scorer.nll(SEQUENCES), readings, progress, invariance)

    monkeypatch.setattr(measures, 'WORDS_PER_BATCH', 4)
    return measure


def test_batches_are_of_like_length_and_have_their_own_labels(measure, asked):
    done = []
    measure(progress=done.append)
    assert asked == [([1, 2], [1, 0]), ([3], [1]), ([5], [2])]
    assert done == [2, 1, 1]


def test_words_and_norms_by_hand(measure):
    found = measure()
    assert found.words.tolist() == [3, 2, 5, 1]
    assert found.predictions.tolist() == [2, 1, 4, 0]
    assert found.moved.tolist() == [2, 0, 3, 0]
    assert found.norm.tolist() == [2, 0, 4, 0]
    assert found.changed['nearest'].tolist() == [1, 0, 2, 0]
    assert found.changed['direction'].tolist() == [2, 0, 3, 0]
    assert found.changed['continuous'].tolist() == [0, 0, 0, 0]


def test_predictions_by_hand(measure):
    found = measure()
    assert found.right.tolist() == [True, False, True, True]
    assert found.right_after['continuous'].tolist() == [False, True, True, True]
    assert found.right_after['nearest'].tolist() == [True, False, False, True]
    assert found.right_after['direction'].tolist() == [False, False, True, True]
    assert found.flipped['continuous'].tolist() == [True, True, False, False]
    assert found.flipped['nearest'].tolist() == [False, False, True, False]
    assert found.flipped['direction'].tolist() == [True, True, False, False]


NLL = {'clean': [1.6, 0.4, 2.2, 0], 'continuous': [1.675, 0.4, 2.2625, 0],
       'nearest': [0.9, 0.4, 2.2, 0], 'direction': [0.7, 0.4, 3.1, 0]}
PREDICTIONS = 7  # of all reviews


def test_likelihoods_by_hand(measure):
    found = measure()
    np.testing.assert_allclose(found.nll_clean, NLL['clean'], rtol=1e-12)
    for reading in READINGS:
        np.testing.assert_allclose(found.nll[reading], NLL[reading], rtol=1e-12)


def test_perplexities_of_each_review_by_hand(measure):
    found = measure()
    expected = {'clean': np.exp([0.8, 0.4, 0.55]), 'continuous': np.exp([0.8375, 0.4, 0.565625]),
                'nearest': np.exp([0.45, 0.4, 0.55]), 'direction': np.exp([0.35, 0.4, 0.775])}
    np.testing.assert_allclose(found.perplexities()[:3], expected['clean'], rtol=1e-12)
    assert np.isnan(found.perplexities()[3])  # D predicts nothing
    for reading in READINGS:
        np.testing.assert_allclose(found.perplexities(reading)[:3], expected[reading], rtol=1e-12)
        assert np.isnan(found.perplexities(reading)[3])


def test_summary_by_hand(measure):
    summary = measure().summary()
    assert set(summary) == {'accuracy_clean', 'words_moved', 'norm_per_word',
                            'norm_per_moved_word', 'perplexity_clean', 'gradient_norms', 'scores'}
    assert summary['gradient_norms'] is None
    assert summary['accuracy_clean'] == 75.0
    assert summary['words_moved'] == pytest.approx(100 * 5 / 11)
    assert summary['norm_per_word'] == pytest.approx(6 / 11)
    assert summary['norm_per_moved_word'] == pytest.approx(6 / 5)
    clean = np.exp(4.2 / PREDICTIONS)
    assert summary['perplexity_clean'] == pytest.approx(clean)
    assert list(summary['scores']) == list(READINGS)
    reviews = np.exp([0.8, 0.4, 0.55])
    for reading, total, each, flipped, accuracy, changed in (
            ('continuous', 4.3375, [0.8375, 0.4, 0.565625], 50.0, 75.0, 0),
            ('nearest', 3.5, [0.45, 0.4, 0.55], 25.0, 50.0, 3),
            ('direction', 4.2, [0.35, 0.4, 0.775], 50.0, 50.0, 5)):
        scores = summary['scores'][reading]
        value = np.exp(total / PREDICTIONS)
        assert scores == {
            'perplexity': pytest.approx(value), 'gap': pytest.approx(value - clean, abs=1e-12),
            'mean_perplexity': pytest.approx(np.mean(np.exp(each))),
            'mean_gap': pytest.approx(np.mean(np.exp(each) - reviews)),
            'flipped': flipped, 'accuracy': accuracy,
            'words_changed': pytest.approx(100 * changed / 11)}
    gaps = [summary['scores'][reading]['gap'] for reading in READINGS]
    assert gaps[0] > 0.03 and gaps[1] < -0.1 and gaps[2] == pytest.approx(0, abs=1e-12)


def test_only_what_is_asked_for_is_measured(measure):
    found = measure(readings=('nearest',))
    assert found.readings == ('nearest',)
    for values in (found.right_after, found.flipped, found.changed, found.nll,
                   found.summary()['scores']):
        assert list(values) == ['nearest']


def test_norm_per_moved_word_where_nothing_or_one_word_moves():
    found = measures.Measurement([np.array([5, 0]), np.array([6, 0])], ('nearest',))
    assert found.summary()['norm_per_moved_word'] == 0.0
    found.norm[0], found.moved[0] = 0.25, 1
    assert found.summary()['norm_per_moved_word'] == 0.25
    assert found.summary()['norm_per_word'] == 0.0625


def test_predictions_are_in_the_order_of_the_reviews(monkeypatch):
    monkeypatch.setattr(measures, 'WORDS_PER_BATCH', 4)
    asked = []

    def logits(sequences):
        asked.append([len(review) for review in sequences])
        classes = np.array([len(review) % 3 for review in sequences])
        return np.eye(3)[classes] - 2 * np.eye(3)[(classes + 1) % 3]

    victim = types.SimpleNamespace(logits=logits)
    assert measures.predictions(victim, SEQUENCES).tolist() == [0, 2, 2, 1]
    assert asked == [[1, 2], [3], [5]]


def test_perplexity_of_nothing_and_of_too_much():
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        found = measures.perplexity([0.0, 1e9, 7 * np.log(5)], [0, 1, 7])
    assert np.isnan(found[0]) and np.isposinf(found[1]) and found[2] == pytest.approx(5)
    assert measures.perplexity(np.float32(2 * np.log(3)), 2) == pytest.approx(3)


# Perplexities for records -----------------------------------------------------------------------

def test_perplexities_of_records_by_hand():
    attacked = HandAttacked(SEQUENCES)
    found = measures.review_perplexities(HandScorer(), attacked, HandScorer().nll(SEQUENCES))
    assert [list(values) for values in found] == [
        ['clean', 'nearest', 'direction', 'continuous']] * 3 + [[]]  # D predicts nothing
    for i, n in ((0, 2), (1, 1), (2, 4)):
        for name, values in NLL.items():
            assert found[i][name] == round(float(np.exp(values[i] / n)), 4)


def test_perplexities_that_do_not_exist():
    scorer = HandScorer()
    scorer.word_size = 2  # the perturbation lives in another space
    clean = np.array([1.6, 1e6, 2.2, 0])
    found = measures.review_perplexities(scorer, HandAttacked(SEQUENCES), clean)
    assert [list(values) for values in found] == [
        ['clean', 'nearest', 'direction'], ['nearest', 'direction'],
        ['clean', 'nearest', 'direction'], []]
    assert found[0]['clean'] == round(float(np.exp(0.8)), 4)


def test_judgements_by_hand():
    found = measures.Measurement([np.array([5, 0]), np.array([6, 7, 0]), np.array([8, 0])],
                                 ('continuous', 'nearest'))
    assert 'judge_changed' not in found.summary()['scores']['nearest']
    found.changed['nearest'][:] = 1, 3, 0
    found.judgements['nearest'] = measures.Judgement(
        *map(np.array, ([0, 1, 1], [1, 1, 0], [0, 0, 1], [1, 0, 0], [0, 2, 0])))
    scores = found.summary()['scores']
    assert 'judge_changed' not in scores['continuous']
    assert {name: scores['nearest'][name] for name in measures.JUDGED} == {
        'judge_changed': pytest.approx(200 / 3), 'judge_changed_random': pytest.approx(100 / 3),
        'judge_excess': pytest.approx(100 / 3), 'antonyms': 25, 'synonyms': 50}
    # The differences 1, −1 and 1 have the standard deviation √(8/9).
    assert scores['nearest']['judge_excess_error'] == pytest.approx(100 * (8 / 27) ** 0.5)
    found.judgements['nearest'] = found.judgements['nearest']._replace(antonyms=None, synonyms=None)
    assert found.summary()['scores']['nearest']['antonyms'] is None


def test_judgements_are_in_the_order_of_the_reviews(measure):
    def invariance(before, after, neighbors):
        lengths = np.array([len(review) for review in before])
        return measures.Judgement(lengths, lengths + 1, lengths, None, None)

    found = measure(readings=('nearest',), invariance=invariance).judgements
    assert list(found) == ['nearest']
    assert found['nearest'].before.tolist() == [len(review) for review in SEQUENCES]


# All attacks on a small model ---------------------------------------------------------------------

N_VOCAB, SIZE, K = 60, 8, 6
METHODS = ['none', 'adv', 'iadv', 'spgd', 'adv_sparse', 'random']


@pytest.fixture(scope='module')
def language_model():
    np.random.seed(0)
    model = RNNForLM(N_VOCAB, 10, SIZE, adaptive_softmax=True)
    for parameter in model.params():
        parameter.array[...] = np.random.normal(0, 0.7, parameter.shape)
    return model


@pytest.fixture(scope='module')
def victim():
    np.random.seed(1)
    return Victim(Classifier(N_VOCAB, SIZE, 12, 5, dropout=0.5))


@pytest.fixture(scope='module')
def reviews():
    random = np.random.RandomState(2)
    sequences = [np.append(random.randint(2, N_VOCAB, n), 0).astype(np.int32)
                 for n in (14, 3, 0, 30, 9, 9, 1, 22)]
    return sequences, np.array([0, 1, 1, 0, 0, 1, 0, 1], np.int32)


def make_adversary(victim, method, epsilon):
    return Adversary(method, victim, AttackSettings(epsilon, k=K, seed=7))


def measure_all(language_model, adversary, reviews, readings=READINGS):
    sequences, labels = reviews
    scorer = evaluation.Scorer(language_model)
    return measures.measure(
        adversary, scorer, sequences, labels, measures.predictions(adversary.victim, sequences),
        scorer.nll(sequences), readings)


@pytest.mark.parametrize('method', METHODS)
def test_without_perturbation_all_gaps_are_exactly_zero(language_model, victim, reviews, method):
    found = measure_all(language_model, make_adversary(victim, method, 0.0), reviews)
    summary = found.summary()
    for reading in READINGS:
        assert summary['scores'][reading]['gap'] == 0.0
        assert summary['scores'][reading]['mean_gap'] == 0.0
        assert summary['scores'][reading]['flipped'] == 0.0
        assert summary['scores'][reading]['words_changed'] == 0.0
        assert summary['scores'][reading]['accuracy'] == summary['accuracy_clean']
    assert summary['words_moved'] == summary['norm_per_word'] == 0


@pytest.mark.parametrize('method', METHODS[1:])
def test_nothing_depends_on_the_batch(language_model, victim, reviews, method, monkeypatch):
    adversary = make_adversary(victim, method, 3.0)
    together = measure_all(language_model, adversary, reviews)
    monkeypatch.setattr(measures, 'WORDS_PER_BATCH', 1)  # every review alone
    alone = measure_all(language_model, adversary, reviews)
    np.testing.assert_allclose(together.norm, alone.norm, rtol=1e-4)
    np.testing.assert_array_equal(together.moved, alone.moved)
    for reading in READINGS:
        np.testing.assert_allclose(together.nll[reading], alone.nll[reading], rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(together.changed[reading], alone.changed[reading])


@pytest.mark.parametrize('method', ['adv', 'iadv', 'spgd'])
def test_one_review_by_hand(language_model, victim, reviews, method):
    """The three readings of a single review, from their definitions."""
    sequences, labels = [part[:1] for part in reviews]
    review = sequences[0]
    adversary = make_adversary(victim, method, 5.0)
    found = measure_all(language_model, adversary, (sequences, labels))
    perturbation = adversary(sequences, labels).perturbation
    vectors = victim.model.word_embed.W.array.astype(np.float64)

    nll = language_model.score_embeddings(
        language_model.embed.W.array[review[:-1]] + perturbation[:-1], review[1:])
    assert found.nll['continuous'][0] == pytest.approx(nll.sum(), rel=1e-5)

    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    nearest = ((vectors[review] + perturbation) @ unit.T).argmax(axis=1)
    towards = review.copy()
    for i, word in enumerate(review):
        neighbors = adversary.table[np.array([word])][0]
        steps = vectors[neighbors] - vectors[word]
        cosines = steps @ perturbation[i] / np.linalg.norm(steps, axis=1)
        if perturbation[i].any():
            towards[i] = neighbors[cosines.argmax()]
    for reading, words in (('nearest', nearest), ('direction', towards)):
        words = words.astype(np.int32)
        assert found.nll[reading][0] == pytest.approx(
            evaluation.review_nll(language_model, [words])[0][0], rel=1e-5)
        assert found.changed[reading][0] == (words != review).sum()
    assert found.moved[0] == (perturbation != 0).any(axis=1).sum()
    assert found.norm[0] == pytest.approx(np.linalg.norm(perturbation, axis=1).sum(), rel=1e-5)


def test_reviews_that_predict_nothing_are_left_out_of_means(language_model, victim, reviews):
    found = measure_all(language_model, make_adversary(victim, 'adv', 3.0), reviews,
                        ('continuous',))
    assert np.isnan(found.perplexities()[2]) and np.isfinite(found.perplexities()[[0, 1, 3]]).all()
    summary = found.summary()
    assert np.isfinite(summary['scores']['continuous']['mean_perplexity'])
    words = sum(len(sequence) - 1 for sequence in reviews[0])
    assert summary['perplexity_clean'] == pytest.approx(np.exp(found.nll_clean.sum() / words))


def reference_perplexity(model, vectors, ids):
    """Word by word: each is predicted from the vectors of all words before it."""
    nll = 0
    with chainer.using_config('train', False), chainer.no_backprop_mode():
        for position in range(1, len(ids)):
            hidden, _ = model.hidden(chainer.Variable(vectors[:position]), [position])
            nll -= model.log_probabilities(hidden).array[-1, ids[position]]
    return float(np.exp(nll / (len(ids) - 1)))


def test_continuous_perplexity_adds_the_perturbation_to_the_vectors(language_model, reviews):
    sequences = [reviews[0][i] for i in (3, 0, 7)]
    ids = np.concatenate(sequences)
    shift = np.random.RandomState(0).normal(size=(len(ids), SIZE)).astype('f')
    attacked = types.SimpleNamespace(sequences=sequences, perturbation=shift,
                                     reading=lambda name: sequences)
    scorer = evaluation.Scorer(language_model)
    found = measures.review_perplexities(scorer, attacked, scorer.nll(sequences))
    vectors = np.split(language_model.embed.W.array[ids] + shift,
                       np.cumsum([len(sequence) for sequence in sequences])[:-1])
    assert [values['continuous'] for values in found] == pytest.approx(
        [reference_perplexity(language_model, *pair) for pair in zip(vectors, sequences)], rel=1e-3)
    for values in found:
        assert values['clean'] == values['nearest'] == values['direction'] != values['continuous']


def test_perplexities_that_a_language_model_does_not_have(language_model, reviews):
    one_word, review = np.array([0], 'i'), reviews[0][0]
    sequences = [one_word, review]
    attacked = types.SimpleNamespace(
        sequences=sequences, perturbation=np.zeros((1 + len(review), SIZE - 1), 'f'),
        reading=lambda name: sequences)
    scorer = evaluation.Scorer(language_model)
    found = measures.review_perplexities(scorer, attacked, scorer.nll(sequences))
    assert found[0] == {}
    assert found[1]['clean'] > 1
    assert list(found[1]) == ['clean', 'nearest', 'direction']  # but not continuous
