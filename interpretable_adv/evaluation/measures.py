"""What an attack does to reviews, and how a language model reads the result: Table 1's numbers."""
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import chainer
import numpy as np

from interpretable_adv.evaluation.readings import READINGS
from interpretable_adv.evaluation.victim import Adversary, AttackedReviews, Sequences, Victim
from interpretable_adv.nets import by_length

WORDS_PER_BATCH = 10000
FLIP_RATES = (10, 25, 50)  # per cent, at which a sweep compares methods


class Scorer(Protocol):
    """A language model, as `lm.evaluation.Scorer` offers one.

    Attributes:
        word_size: size of its word vectors.
    """

    word_size: int

    def nll(self, sequences: Sequences, perturbation: np.ndarray | None = None) -> np.ndarray:
        """Negative log-likelihood of each review, float64, every word but the first predicted
        from those before it; the perturbation `(N, word_size)` is added to its word vectors."""


def perplexity(nll: Any, predictions: Any) -> np.ndarray:
    """`exp(nll / predictions)`; NaN where nothing is predicted, infinite where it is too large."""
    with np.errstate(over='ignore', invalid='ignore', divide='ignore'):
        return np.exp(np.asarray(nll, np.float64) / predictions)


class Measurement:
    """What an attack did to each review; arrays `(reviews,)`.

    Attributes:
        words: length with `<eos>`.
        predictions: words that the language model predicts, one less.
        moved: words whose perturbation is not zero.
        norm: sum of the words' norms.
        right, right_after: whether the classifier is right before, and by reading after.
        flipped: by reading, whether its prediction changed.
        changed: by reading, how many words are other words than before (continuous: none).
        nll_clean, nll: of the review as it is, and by reading.
        gradient_norms: `(reviews, 2)`, see `attacks.Attacked`; None without a guide.
    """

    def __init__(self, sequences: Sequences, readings: Sequence[str]):
        count = len(sequences)
        self.readings = readings
        self.gradient_norms: np.ndarray | None = None
        self.words = np.array([len(sequence) for sequence in sequences])
        self.predictions = self.words - 1
        self.moved, self.norm, self.nll_clean = (np.zeros(count) for _ in range(3))
        self.right = np.zeros(count, bool)
        self.right_after, self.flipped = ({name: np.zeros(count, bool) for name in readings}
                                          for _ in range(2))
        self.changed, self.nll = ({name: np.zeros(count) for name in readings} for _ in range(2))

    def summary(self) -> dict[str, Any]:
        """The figures of one row of Table 1."""
        clean = float(perplexity(self.nll_clean.sum(), self.predictions.sum()))
        return {
            'accuracy_clean': 100 * float(self.right.mean()),
            'words_moved': 100 * float(self.moved.sum() / self.words.sum()),
            'norm_per_word': float(self.norm.sum() / self.words.sum()),
            'norm_per_moved_word': float(self.norm.sum() / max(1, self.moved.sum())),
            'perplexity_clean': clean,
            'gradient_norms': None if self.gradient_norms is None else dict(zip(
                ('loss', 'class_lm'), self.gradient_norms.mean(axis=0).tolist())),
            'scores': {name: self._summary_of(name, clean) for name in self.readings},
        }

    def _summary_of(self, reading: str, clean: float) -> dict[str, float]:
        value = float(perplexity(self.nll[reading].sum(), self.predictions.sum()))
        gaps = self.perplexities(reading) - self.perplexities()
        return {
            'perplexity': value, 'gap': value - clean,
            'mean_perplexity': float(np.nanmean(self.perplexities(reading))),
            'mean_gap': float(np.nanmean(gaps)),
            'flipped': 100 * float(self.flipped[reading].mean()),
            'accuracy': 100 * float(self.right_after[reading].mean()),
            'words_changed': 100 * float(self.changed[reading].sum() / self.words.sum()),
        }

    def perplexities(self, reading: str | None = None) -> np.ndarray:
        """Perplexity of each review by itself; NaN where it predicts nothing."""
        return perplexity(self.nll_clean if reading is None else self.nll[reading],
                          self.predictions)


def predictions(victim: Victim, sequences: Sequences) -> np.ndarray:
    """Predicted classes of any number of reviews, in the batches in which they are attacked."""
    result = np.zeros(len(sequences), np.int64)
    for batch in by_length(sequences, WORDS_PER_BATCH):
        result[batch] = victim.logits([sequences[i] for i in batch]).argmax(axis=1)
    return result


def measure(adversary: Adversary, scorer: Scorer, sequences: Sequences, labels: np.ndarray,
            before: np.ndarray, nll_clean: np.ndarray, readings: Sequence[str] = READINGS,
            progress: Callable[[int], None] | None = None) -> Measurement:
    """Attacks reviews and lets a language model read the result.

    Args:
        labels: int32 on the host.
        before: `predictions(adversary.victim, sequences)`.
        nll_clean: `scorer.nll(sequences)`.
        progress: called with the number of reviews done since the last call.
    """
    found = Measurement(sequences, readings)
    found.right, found.nll_clean = before == labels, nll_clean
    for batch in by_length(sequences, WORDS_PER_BATCH):
        reviews, truth = [sequences[i] for i in batch], labels[batch]
        attacked = adversary(reviews, truth)
        found.norm[batch] = _sums(attacked.norms, reviews)
        found.moved[batch] = _sums(attacked.norms > 0, reviews)
        if attacked.gradient_norms is not None:
            if found.gradient_norms is None:
                found.gradient_norms = np.zeros((len(sequences), 2))
            found.gradient_norms[batch] = chainer.cuda.to_cpu(attacked.gradient_norms)
        for reading in readings:
            after = attacked.logits_after(reading).argmax(axis=1)
            found.right_after[reading][batch] = after == truth
            found.flipped[reading][batch] = after != before[batch]
            found.nll[reading][batch] = nll_after(scorer, attacked, reading)
            if reading != 'continuous':
                changed = np.concatenate(attacked.reading(reading)) != np.concatenate(reviews)
                found.changed[reading][batch] = _sums(changed, reviews)
        if progress:
            progress(len(batch))
    return found


def _sums(values: np.ndarray, reviews: Sequences) -> np.ndarray:
    """Sums of values `(N,)` over the words of each review."""
    review = np.repeat(np.arange(len(reviews)), [len(sequence) for sequence in reviews])
    return np.bincount(review, weights=values, minlength=len(reviews))


def nll_after(scorer: Scorer, attacked: AttackedReviews, reading: str) -> np.ndarray:
    """Negative log-likelihood of each attacked review in one reading."""
    if reading == 'continuous':
        return scorer.nll(attacked.sequences, attacked.perturbation)
    return scorer.nll(attacked.reading(reading))


def review_perplexities(scorer: Scorer, attacked: AttackedReviews,
                        nll_clean: np.ndarray) -> list[dict[str, float]]:
    """For each review its perplexity, `clean` and in each reading.

    Left out are those of a review of one word, which predicts nothing, those beyond float's range,
    and `continuous` where the perturbation has another size than the language model's vectors.
    """
    counts = np.array([len(sequence) - 1 for sequence in attacked.sequences])
    columns = {'clean': nll_clean}
    for reading in ('nearest', 'direction', 'continuous'):
        if reading != 'continuous' or attacked.perturbation.shape[1] == scorer.word_size:
            columns[reading] = nll_after(scorer, attacked, reading)
    values = {name: perplexity(nll, counts) for name, nll in columns.items()}
    return [{name: round(float(column[i]), 4) for name, column in values.items()
             if np.isfinite(column[i])} for i in range(len(counts))]


# Equal strength -------------------------------------------------------------------------------

def gap_at_flip_rate(points: Sequence[dict], reading: str, rate: float) -> float | None:
    """The gap at which a method flips `rate` per cent of predictions, between two step sizes.

    Args:
        points: summaries of one method, in order of ε.

    Returns:
        the gap at the first crossing, by linear interpolation from (0, 0); None if the method
        never reaches that rate.
    """
    previous = 0.0, 0.0
    for point in points:
        here = point['scores'][reading]['flipped'], point['scores'][reading]['gap']
        if here[0] >= rate:
            weight = (rate - previous[0]) / (here[0] - previous[0])
            return previous[1] + weight * (here[1] - previous[1])
        previous = here
    return None


def compare_at_equal_strength(sweep: Sequence[dict], methods: Sequence[str],
                              reading: str = 'continuous') -> dict[str, dict[str, float | None]]:
    """`{method: {rate: gap}}` at the flip rates of `FLIP_RATES`."""
    return {method: {str(rate): gap_at_flip_rate(
        [row for row in sweep if row['method'] == method], reading, rate) for rate in FLIP_RATES}
        for method in methods}
