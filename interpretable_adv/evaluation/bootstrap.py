"""How sure the numbers of Table 1 are: 95 % intervals over reviews, by the bootstrap.

Reviews are drawn with replacement, as many as there are, and every number is computed again from
the drawn ones. All attacks see the same draws, so that the difference of two attacks is paired.
"""
import numpy as np

from interpretable_adv.evaluation.measures import Measurement, perplexity

LEVEL = 95  # per cent
SCORES = ('gap', 'flipped', 'judge_changed', 'antonyms')
_BLOCK = 100  # draws that are multiplied at once


class Bootstrap:
    """Draws of reviews.

    Args:
        samples: how often they are drawn.
    """

    def __init__(self, n_reviews: int, samples: int = 2000, seed: int = 0):
        self.n_reviews = n_reviews
        # (samples, reviews): how often a draw has a review; 255 times is out of the question.
        self._counts = np.random.RandomState(seed).multinomial(
            n_reviews, np.full(n_reviews, 1 / n_reviews), size=samples).astype(np.uint8)

    def sums(self, values: np.ndarray) -> np.ndarray:
        """The sum of a value `(reviews,)` over the reviews of each draw, `(samples,)`."""
        values = np.asarray(values, np.float64)
        return np.concatenate([self._counts[start:start + _BLOCK].astype(np.float64) @ values
                               for start in range(0, len(self._counts), _BLOCK)])

    def scores(self, found: Measurement, reading: str, name: str) -> np.ndarray:
        """A score of an attack, one of `SCORES`, on each draw; NaN where it has none."""
        if name == 'gap':
            predictions = self.sums(found.predictions)
            after, before = (perplexity(self.sums(nll), predictions)
                             for nll in (found.nll[reading], found.nll_clean))
            with np.errstate(invalid='ignore'):  # both may be infinite
                return after - before
        if name == 'flipped':
            return 100 * self.sums(found.flipped[reading]) / self.n_reviews
        judgement = found.judgements[reading]
        if name == 'judge_changed':
            return 100 * self.sums(judgement.after != judgement.before) / self.n_reviews
        if judgement.antonyms is None:
            return np.full(len(self._counts), np.nan)
        with np.errstate(invalid='ignore'):
            return 100 * self.sums(judgement.antonyms) / self.sums(found.changed[reading])


def interval(draws: np.ndarray) -> list[float] | None:
    """The percentile interval; None where more than a twentieth of the draws have no value."""
    draws = np.asarray(draws)
    known = draws[np.isfinite(draws)]
    if len(known) < 0.95 * len(draws):
        return None
    tail = (100 - LEVEL) / 2
    return [round(float(value), 6) for value in np.percentile(known, [tail, 100 - tail])]
