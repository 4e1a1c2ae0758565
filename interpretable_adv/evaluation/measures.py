"""What an attack does to reviews, and how a language model reads the result: Table 1's numbers."""
from collections.abc import Callable, Sequence
from typing import Any, Protocol

import chainer
import numpy as np

from interpretable_adv.evaluation.invariance import Invariance, Judgement
from interpretable_adv.evaluation.readings import READINGS
from interpretable_adv.evaluation.victim import Adversary, AttackedReviews, Sequences, Victim
from interpretable_adv.nets import by_length
from interpretable_adv.nn import doubles

WORDS_PER_BATCH = 10000
OF_SWAPS = ('antonyms', 'synonyms')  # scores that have no value where nothing is swapped
JUDGED = ('judge_changed', 'judge_changed_random', 'judge_excess', *OF_SWAPS)


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
    with np.errstate(invalid='ignore', divide='ignore'):
        return doubles.exp(np.asarray(nll, np.float64) / predictions)


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
        judgements: by discrete reading, what an independent judge says; empty without one.
    """

    def __init__(self, sequences: Sequences, readings: Sequence[str]):
        count = len(sequences)
        self.readings = readings
        self.gradient_norms: np.ndarray | None = None
        self.judgements: dict[str, Judgement] = {}
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

    def _summary_of(self, reading: str, clean: float) -> dict[str, float | None]:
        value = float(perplexity(self.nll[reading].sum(), self.predictions.sum()))
        gaps = self.perplexities(reading) - self.perplexities()
        return {
            'perplexity': value, 'gap': value - clean,
            'mean_perplexity': float(np.nanmean(self.perplexities(reading))),
            'mean_gap': float(np.nanmean(gaps)),
            'flipped': 100 * float(self.flipped[reading].mean()),
            'accuracy': 100 * float(self.right_after[reading].mean()),
            'words_changed': 100 * float(self.changed[reading].sum() / self.words.sum()),
            **self._judged(reading),
        }

    def _judged(self, reading: str) -> dict[str, float | None]:
        """Shares in per cent: of reviews whose judged label changes, of those where random swaps of
        as many words change it, and their difference with its standard error; of swapped words
        that are antonyms and synonyms, None where nothing is swapped or there is no WordNet."""
        if reading not in self.judgements:
            return {}
        judgement, swaps = self.judgements[reading], self.changed[reading].sum()
        changed, by_chance = (part != judgement.before
                              for part in (judgement.after, judgement.random))
        excess = changed.astype(float) - by_chance
        return {
            'judge_changed': 100 * float(changed.mean()),
            'judge_changed_random': 100 * float(by_chance.mean()),
            'judge_excess': 100 * float(excess.mean()),
            'judge_excess_error': 100 * float(excess.std() / len(excess) ** 0.5),
            **{name: 100 * float(getattr(judgement, name).sum() / swaps)
               if swaps and getattr(judgement, name) is not None else None for name in OF_SWAPS},
        }

    def perplexities(self, reading: str | None = None) -> np.ndarray:
        """Perplexity of each review by itself; NaN where it predicts nothing."""
        return perplexity(self.nll_clean if reading is None else self.nll[reading],
                          self.predictions)


def sample(n_reviews: int, count: int, seed: int) -> np.ndarray:
    """Numbers of `count` random reviews, ascending; all of them for 0 or more than there are."""
    everything = np.arange(n_reviews)
    if not 0 < count < n_reviews:
        return everything
    return np.sort(np.random.RandomState(seed).choice(n_reviews, count, replace=False))


def predictions(victim: Victim, sequences: Sequences) -> np.ndarray:
    """Predicted classes of any number of reviews, in the batches in which they are attacked."""
    result = np.zeros(len(sequences), np.int64)
    for batch in by_length(sequences, WORDS_PER_BATCH):
        result[batch] = victim.logits([sequences[i] for i in batch]).argmax(axis=1)
    return result


def measure(adversary: Adversary, scorer: Scorer, sequences: Sequences, labels: np.ndarray,
            before: np.ndarray, nll_clean: np.ndarray, readings: Sequence[str] = READINGS,
            progress: Callable[[int], None] | None = None,
            invariance: Invariance | None = None) -> Measurement:
    """Attacks reviews and lets a language model, and an independent judge, read the result.

    Args:
        labels: int32 on the host.
        before: `predictions(adversary.victim, sequences)`.
        nll_clean: `scorer.nll(sequences)`.
        progress: called with the number of reviews done since the last call.
    """
    found = Measurement(sequences, readings)
    judged: dict[str, list[Judgement]] = {}
    batches = by_length(sequences, WORDS_PER_BATCH)
    found.right, found.nll_clean = before == labels, nll_clean
    for batch in batches:
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
                text = attacked.reading(reading)
                changed = np.concatenate(text) != np.concatenate(reviews)
                found.changed[reading][batch] = _sums(changed, reviews)
                if invariance:
                    judged.setdefault(reading, []).append(
                        invariance(reviews, text, adversary.neighbors_of))
        if progress:
            progress(len(batch))
    order = np.argsort(np.concatenate(batches))
    found.judgements = {reading: Judgement(**{
        name: np.concatenate(part)[order] for name, *part in zip(Judgement._fields, *parts)
        if part[0] is not None}) for reading, parts in judged.items()}
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
