"""evaluation/judge.py: an n-gram model that knows what it should, and whose score is its own."""
import numpy as np
import pytest

from interpretable_adv.evaluation.judge import FEWEST_REVIEWS, SMOOTHING, STEPS, Judge, _fit


def reviews(count, seed=0, n_class=2, by_pairs=False):
    """Noise, with one word per class, or with the same words in an order per class."""
    random = np.random.RandomState(seed)
    sequences, labels = [], random.randint(0, n_class, count)
    for label in labels:
        words = random.randint(10, 40, random.randint(5, 15))
        place = random.randint(len(words) - 1)
        words[place:place + 2] = ((2, 3), (3, 2))[label] if by_pairs else (2 + label, 9)
        sequences.append(np.append(words, 0).astype('i'))
    return sequences, labels


@pytest.mark.parametrize('n_class, by_pairs', [(2, False), (2, True), (3, False)])
def test_it_learns_words_and_pairs_of_words(n_class, by_pairs):
    judge = Judge(*reviews(300, 0, n_class, by_pairs), n_class, 40)
    sequences, labels = reviews(200, 1, n_class, by_pairs)
    assert judge.accuracy(sequences, labels) > 95
    assert judge.accuracy(sequences, labels) == 100 * np.mean(judge.predict(sequences) == labels)


def test_ngrams_are_those_of_the_reviews():
    judge = Judge(*reviews(30), 2, 40)
    sequences = [np.array([5, 7, 5, 7, 0]), np.array([0]), np.array([7, 5, 0])]
    review, keys = judge._ngrams(sequences)
    found = [set(keys[review == i].tolist()) for i in range(3)]
    for words, numbers in zip(sequences, found):
        words = words.tolist()
        expected = {*words, *((a + 1) * 40 + b for a, b in zip(words, words[1:]))}
        assert numbers == expected
    known = judge._known
    counts = [sum(key in set(judge._ngrams([s])[1].tolist()) for s in reviews(30)[0])
              for key in known[:20]]
    assert min(counts) >= FEWEST_REVIEWS


def test_weights_are_those_of_a_plain_computation():
    random = np.random.RandomState(3)
    present = random.rand(40, 12) < 0.3
    positive = random.rand(40) < 0.5
    review, columns = np.nonzero(present)
    weights, bias = _fit(review, columns, positive, 12)
    p = SMOOTHING + present[positive].sum(axis=0)
    q = SMOOTHING + present[~positive].sum(axis=0)
    ratio = np.log((p / p.sum()) / (q / q.sum()))
    x = np.column_stack([present * ratio, np.ones(40)])
    w, m, v = np.zeros(13), np.zeros(13), np.zeros(13)
    for step in range(1, STEPS + 1):
        gradient = x.T @ (1 / (1 + np.exp(-x @ w)) - positive) / 40
        m, v = 0.9 * m + 0.1 * gradient, 0.99 * v + 0.01 * gradient ** 2
        w -= 0.01 * (m / (1 - 0.9 ** step)) / (np.sqrt(v / (1 - 0.99 ** step)) + 1e-4)
    np.testing.assert_allclose(weights, ratio * w[:-1], rtol=1e-6, atol=1e-9)
    assert bias == pytest.approx(w[-1], rel=1e-6)


def test_unknown_words_say_nothing():
    judge = Judge(*reviews(100), 2, 60)
    words = [np.array([12, 2, 9, 14, 0])]
    more = [np.array([50, 51, 12, 2, 9, 14, 0])]
    assert judge.predict(words) == judge.predict(more)


def test_a_judgement_does_not_depend_on_other_reviews():
    judge = Judge(*reviews(100), 2, 40)
    sequences, _ = reviews(50, 5)
    together = judge.predict(sequences)
    assert [int(judge.predict([sequence])[0]) for sequence in sequences] == together.tolist()
