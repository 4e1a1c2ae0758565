import chainer
import numpy as np
import pytest

from interpretable_adv import attacks
from interpretable_adv.nets import Classifier
from lm import attacked, evaluation
from lm.nets import RNNForLM

N_VOCAB, SIZE = 60, 8


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
    return attacked.Victim(Classifier(N_VOCAB, SIZE, 12, 5, dropout=0.5), 6)


@pytest.fixture(scope='module')
def reviews():
    random = np.random.RandomState(2)
    sequences = [np.append(random.randint(2, N_VOCAB, n), 0).astype(np.int32)
                 for n in (14, 3, 0, 30, 9, 9, 1, 22)]
    return sequences, np.array([0, 1, 1, 0, 0, 1, 0, 1], np.int32)


def _all_attacks(victim, epsilon):
    return {'none': attacked.NoAttack(), 'adv': attacks.AdvT(epsilon),
            'iadv': attacks.IAdvT(epsilon, victim.neighbors),
            'spgd': attacks.SPGD(epsilon, victim.neighbors),
            'adv_sparse': attacked.SparseAdvT(epsilon, 0.75),
            'random': attacked.RandomDirections(epsilon, seed=7)}


def _measure(language_model, victim, attack, reviews, scores=attacked.SCORES):
    sequences, labels = reviews
    return attacked.measure(
        language_model, victim, attack, sequences, labels, victim.predict_all(sequences),
        evaluation.review_nll(language_model, sequences)[0], scores)


@pytest.mark.parametrize('method', ['none', 'adv', 'iadv', 'spgd', 'adv_sparse', 'random'])
def test_without_perturbation_all_gaps_are_exactly_zero(language_model, victim, reviews, method):
    found = _measure(language_model, victim, _all_attacks(victim, 0.0)[method], reviews)
    summary = found.summary()
    for score in attacked.SCORES:
        assert summary['scores'][score]['gap'] == 0.0
        assert summary['scores'][score]['mean_gap'] == 0.0
        assert summary['scores'][score]['flipped'] == 0.0
        assert summary['scores'][score]['words_changed'] == 0.0
        assert summary['scores'][score]['accuracy'] == summary['accuracy_clean']
    assert summary['words_moved'] == summary['norm_per_word'] == 0


@pytest.mark.parametrize('method', ['adv', 'iadv', 'spgd', 'adv_sparse', 'random'])
def test_nothing_depends_on_the_batch(language_model, victim, reviews, method, monkeypatch):
    attack = _all_attacks(victim, 3.0)[method]
    together = _measure(language_model, victim, attack, reviews)
    monkeypatch.setattr(evaluation, 'WORDS_PER_BATCH', 1)  # every review alone
    alone = _measure(language_model, victim, attack, reviews)
    np.testing.assert_allclose(together.norm, alone.norm, rtol=1e-4)
    np.testing.assert_array_equal(together.moved, alone.moved)
    for score in attacked.SCORES:
        np.testing.assert_allclose(together.nll[score], alone.nll[score], rtol=1e-4, atol=1e-4)
        np.testing.assert_array_equal(together.changed[score], alone.changed[score])


@pytest.mark.parametrize('method', ['adv', 'iadv', 'spgd'])
def test_one_review_by_hand(language_model, victim, reviews, method):
    """The three readings of a single review, from their definitions."""
    sequences, labels = [part[:1] for part in reviews]
    review = sequences[0]
    found = _measure(language_model, victim, _all_attacks(victim, 5.0)[method],
                     (sequences, labels))
    ids, result = victim.attack(_all_attacks(victim, 5.0)[method], sequences, labels)
    perturbation = result.perturbation
    vectors = victim.model.word_embed.W.array.astype(np.float64)

    nll = language_model.score_embeddings(
        language_model.embed.W.array[review[:-1]] + perturbation[:-1], review[1:])
    assert found.nll['continuous'][0] == pytest.approx(nll.sum(), rel=1e-5)

    unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    nearest = ((vectors[review] + perturbation) @ unit.T).argmax(axis=1)
    towards = review.copy()
    for i, word in enumerate(review):
        steps = vectors[victim.neighbors[np.array([word])][0]] - vectors[word]
        cosines = steps @ perturbation[i] / np.linalg.norm(steps, axis=1)
        if perturbation[i].any():
            towards[i] = victim.neighbors[np.array([word])][0][cosines.argmax()]
    for score, words in (('nearest', nearest), ('direction', towards)):
        words = words.astype(np.int32)
        assert found.nll[score][0] == pytest.approx(
            evaluation.review_nll(language_model, [words])[0][0], rel=1e-5)
        assert found.changed[score][0] == (words != review).sum()
    assert found.moved[0] == (perturbation != 0).any(axis=1).sum()
    assert found.norm[0] == pytest.approx(np.linalg.norm(perturbation, axis=1).sum(), rel=1e-5)


def test_attacks_use_each_reviews_own_loss_without_dropout(victim, reviews):
    sequences, labels = reviews
    with chainer.using_config('train', True):
        _, first = victim.attack(attacks.AdvT(1.0), sequences, labels)
        _, second = victim.attack(attacks.AdvT(1.0), sequences, labels)
    np.testing.assert_array_equal(first.perturbation, second.perturbation)
    ends = np.cumsum([len(sequence) for sequence in sequences])
    for sequence, label, end in zip(sequences, labels, ends):
        _, alone = victim.attack(attacks.AdvT(1.0), [sequence], np.array([label]))
        np.testing.assert_allclose(first.perturbation[end - len(sequence):end],
                                   alone.perturbation, rtol=1e-3, atol=1e-6)


def test_controls(victim, reviews):
    sequences, labels = reviews
    _, adv = victim.attack(attacks.AdvT(2.0), sequences, labels)
    _, sparse = victim.attack(attacked.SparseAdvT(2.0, 0.75), sequences, labels)
    _, noise = victim.attack(attacked.RandomDirections(2.0, 7), sequences, labels)
    _, again = victim.attack(attacked.RandomDirections(2.0, 7), sequences, labels)
    _, other = victim.attack(attacked.RandomDirections(2.0, 8), sequences, labels)
    norms = np.linalg.norm(adv.perturbation, axis=1)
    np.testing.assert_allclose(np.linalg.norm(noise.perturbation, axis=1), norms, rtol=1e-5)
    np.testing.assert_array_equal(noise.perturbation, again.perturbation)
    assert (noise.perturbation != other.perturbation).any()
    end = 0
    for sequence in sequences:
        part = slice(end, end + len(sequence))
        kept = np.flatnonzero(sparse.perturbation[part].any(axis=1))
        assert len(kept) == len(sequence) // 4
        largest = np.argsort(-norms[part], kind='stable')[:len(kept)]
        np.testing.assert_array_equal(kept, np.sort(largest))
        np.testing.assert_array_equal(sparse.perturbation[part][kept], adv.perturbation[part][kept])
        end += len(sequence)


def test_reviews_that_predict_nothing_are_left_out_of_means(language_model, victim, reviews):
    found = _measure(language_model, victim, attacks.AdvT(3.0), reviews, ('continuous',))
    assert np.isnan(found.perplexities()[2]) and np.isfinite(found.perplexities()[[0, 1, 3]]).all()
    summary = found.summary()
    assert np.isfinite(summary['scores']['continuous']['mean_perplexity'])
    words = sum(len(sequence) - 1 for sequence in reviews[0])
    assert summary['perplexity_clean'] == pytest.approx(np.exp(found.nll_clean.sum() / words))
