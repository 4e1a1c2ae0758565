"""An independent judge of labels: a linear model over n-grams, of another kind than the classifier.

An attack that changes the label of a text for every reader has not found an error of the
classifier. The judge reads discrete texts and knows neither embeddings nor word order beyond two
words: features are the words and the pairs of words that a review contains, weighted by naive
Bayes' log-count ratios, under a logistic regression (Wang and Manning, 2012).
"""
from collections.abc import Sequence

import numpy as np

Sequences = Sequence[np.ndarray]  # reviews, word ids on the host

SMOOTHING = 1.0  # added to each count
FEWEST_REVIEWS = 2  # that an n-gram must occur in
# Adam over all reviews at once; the tiny number is large enough to hold back rare n-grams.
STEPS, STEP_SIZE, MOMENT, SQUARE_MOMENT, TINY = 30, 0.01, 0.9, 0.99, 1e-4


class Judge:
    """A trained judge.

    With more than two classes each has a model of its own against the others, and the highest
    score decides. All arithmetic is in float64, in a fixed order.

    Args:
        sequences, labels: the reviews to learn from.
        n_class: number of classes.
        n_vocab: number of words.
    """

    def __init__(self, sequences: Sequences, labels: np.ndarray, n_class: int, n_vocab: int):
        self._n_vocab = n_vocab
        review, keys = self._ngrams(sequences)
        self._known, counts = np.unique(keys, return_counts=True)
        self._known = self._known[counts >= FEWEST_REVIEWS]
        review, columns = self._columns(review, keys)
        # Of two classes one model says all.
        classes = [1] if n_class == 2 else list(range(n_class))
        fitted = [_fit(review, columns, np.asarray(labels) == label, len(self._known))
                  for label in classes]
        self._weights = np.stack([weights for weights, _ in fitted])
        self._biases = np.array([bias for _, bias in fitted])

    def predict(self, sequences: Sequences) -> np.ndarray:
        """The judged labels, int `(len(sequences),)`."""
        review, columns = self._columns(*self._ngrams(sequences))
        scores = np.stack([np.bincount(review, weights[columns], len(sequences)) + bias
                           for weights, bias in zip(self._weights, self._biases)], axis=1)
        return (scores[:, 0] > 0).astype(int) if scores.shape[1] == 1 else scores.argmax(axis=1)

    def accuracy(self, sequences: Sequences, labels: np.ndarray) -> float:
        """Share of right judgements in per cent."""
        return 100 * float((self.predict(sequences) == labels).mean())

    def _ngrams(self, sequences: Sequences) -> tuple[np.ndarray, np.ndarray]:
        """The distinct words and pairs of words of each review: numbers of reviews, rising, and of
        n-grams."""
        lengths = np.array([len(sequence) for sequence in sequences])
        flat = np.concatenate(sequences).astype(np.int64)
        review = np.repeat(np.arange(len(lengths)), lengths)
        inside = np.ones(len(flat), bool)
        inside[np.cumsum(lengths) - 1] = False  # a pair that would reach into the next review
        first = np.flatnonzero(inside)
        pairs = (flat[first] + 1) * self._n_vocab + flat[first + 1]
        # One number for both, so that a single sort makes them distinct.
        n_keys = (self._n_vocab + 1) * self._n_vocab
        both = np.unique(np.concatenate([review * n_keys + flat, review[first] * n_keys + pairs]))
        return np.divmod(both, n_keys)

    def _columns(self, review: np.ndarray, keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The n-grams that the judge knows, as columns of its weights."""
        place = np.searchsorted(self._known, keys).clip(max=len(self._known) - 1)
        known = self._known[place] == keys
        return review[known], place[known]


def _fit(review: np.ndarray, columns: np.ndarray, positive: np.ndarray,
         n_columns: int) -> tuple[np.ndarray, float]:
    """Weights `(n_columns,)` and bias that separate the positive reviews from the others.

    Args:
        review, columns: a review and an n-gram that it contains, for all such pairs.
    """
    truth = positive.astype(float)
    p, q = (SMOOTHING + np.bincount(columns, part[review], n_columns)
            for part in (truth, 1 - truth))
    ratio = np.log(p / p.sum()) - np.log(q / q.sum())
    values = ratio[columns]
    weights, moments = np.zeros(n_columns + 1), np.zeros((2, n_columns + 1))
    for step in range(1, STEPS + 1):
        scores = np.bincount(review, values * weights[columns], len(truth)) + weights[-1]
        error = (0.5 * (1 + np.tanh(scores / 2)) - truth) / len(truth)
        gradient = np.append(np.bincount(columns, values * error[review], n_columns), error.sum())
        moments[0] += (1 - MOMENT) * (gradient - moments[0])
        moments[1] += (1 - SQUARE_MOMENT) * (gradient ** 2 - moments[1])
        weights -= STEP_SIZE * (moments[0] / (1 - MOMENT ** step)) / (
            np.sqrt(moments[1] / (1 - SQUARE_MOMENT ** step)) + TINY)
    return ratio * weights[:-1], float(weights[-1])
