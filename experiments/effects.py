"""Differences between methods, with 95 % intervals over seeds and over reviews."""
import dataclasses
import math
import statistics

import numpy as np

from experiments import significance
from experiments.tables import Number, interval

# 97.5 % quantiles of Student's t for 1, 2, … degrees of freedom; beyond that the normal's.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
           2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
           2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)
NO_DIFFERENCE = 'no difference'


@dataclasses.dataclass(frozen=True)
class Effect:
    """A difference and its interval.

    Attributes:
        n: number of seeds.
        by: what the interval is over, 'seeds' or 'reviews'.
        among_seeds: of an effect over reviews, the one over seeds, if there are several.
    """
    mean: float
    low: float
    high: float
    n: int
    by: str = 'seeds'
    among_seeds: 'Effect | None' = None

    @property
    def has_interval(self):
        """A few seeds may agree by chance, which bounds nothing."""
        return self.by == 'reviews' or self.low < self.high

    def __str__(self):
        shown = str(Number(self.mean, 2, True))
        if self.has_interval:
            shown += f' {interval((self.low, self.high))}'
        shown += f' ({self.n}{", reviews" if self.by == "reviews" else ""})'
        if self.among_seeds and self.among_seeds.has_interval:
            shown += f', {interval((self.among_seeds.low, self.among_seeds.high))} over seeds'
        return shown

    def answer(self, expected):
        """Whether the sign is the expected one, −1 or +1."""
        if not self.has_interval:
            return 'no interval'
        if self.low <= 0 <= self.high:
            return NO_DIFFERENCE
        answer = 'yes' if self.mean * expected > 0 else 'no, the opposite'
        if self.by == 'reviews' and self.n == 1:
            answer += ', for this seed'
        elif self.among_seeds and self.among_seeds.answer(expected) == NO_DIFFERENCE:
            answer += ', for these seeds'
        return answer


@dataclasses.dataclass(frozen=True)
class Incomparable:
    """What stands for an effect where `n − known` of n seeds have no value to compare."""
    known: int
    n: int

    def __str__(self):
        return f'comparable in {self.known} of {self.n} seeds'

    def answer(self, expected):
        return 'open'


def over_seeds(values):
    """The effect of a difference known for each seed; None for fewer than two seeds."""
    n = len(values)
    if n < 2:
        return None
    mean, deviation = statistics.fmean(values), statistics.stdev(values)
    quantile = STUDENT[n - 2] if n - 2 < len(STUDENT) else 1.96
    half = quantile * deviation / math.sqrt(n)
    return Effect(mean, mean - half, mean + half, n)


def over_reviews(differences):
    """The effect of differences `(seeds, reviews)`, in per cent of the reviews; None of no seed."""
    if not len(differences):
        return None
    mean = 100 * np.mean(differences, axis=0)
    return Effect(float(mean.mean()), *significance.paired_bootstrap(mean), len(differences),
                  'reviews', over_seeds((100 * np.mean(differences, axis=1)).tolist()))


def over_both(values, intervals):
    """The effect of a difference known for each seed, with the interval over reviews of each.

    All seeds have the same reviews, so the interval of the mean is taken to be the mean of theirs,
    which is never too narrow. Without intervals the effect is over seeds.
    """
    if not values or any(bounds is None for bounds in intervals):
        return over_seeds(values)
    low, high = (statistics.fmean(bounds) for bounds in zip(*intervals))
    return Effect(statistics.fmean(values), low, high, len(values), 'reviews', over_seeds(values))
