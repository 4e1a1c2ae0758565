"""Whether two classifiers differ on the same test reviews by more than chance."""
import math

import numpy as np


def discordant(correct_a, correct_b):
    """How many reviews only A, and how many only B got right; boolean arrays `(reviews,)`."""
    return int(np.sum(correct_a & ~correct_b)), int(np.sum(~correct_a & correct_b))


def mcnemar(only_a, only_b):
    """Exact two-sided p-value of McNemar's test.

    Under the null hypothesis each of the n = only_a + only_b reviews that one classifier alone got
    right is as likely A's as B's, so only_a ~ Binomial(n, ½) and

        p = min(1, 2 · P(X ≤ min(only_a, only_b))).
    """
    n, k = only_a + only_b, min(only_a, only_b)
    if n == 0:
        return 1.0
    # From the largest term down, each follows from the one before: no factorial, no overflow.
    log_term = (math.lgamma(n + 1) - math.lgamma(k + 1) - math.lgamma(n - k + 1)
                - n * math.log(2))
    ratio, total = 1.0, 0.0
    for i in range(k, -1, -1):
        total += ratio
        ratio *= i / (n - i + 1)
        if ratio < 1e-17 * total:
            break
    return min(1.0, 2 * math.exp(log_term) * total)


def holm(p_values):
    """Holm's step-down correction of several p-values, in their order.

    The k-th smallest of m is multiplied by m − k + 1 and is at least its predecessor: below α they
    bound by α the probability that any of the m null hypotheses is rejected wrongly.
    """
    order = np.argsort(p_values, kind='stable')
    factors = len(order) - np.arange(len(order))
    corrected = np.minimum(1, np.maximum.accumulate(np.asarray(p_values, float)[order] * factors))
    return corrected[np.argsort(order)].tolist()


def paired_bootstrap(difference, samples=10000, level=0.95, seed=0):
    """Percentile interval of the mean of `difference` over resampled reviews.

    A review is drawn as a whole, so whatever it says about both classifiers, and about all
    seeds, stays together. Drawing n values with replacement only counts how often each distinct
    value comes, so the counts are drawn, from the multinomial distribution.

    Args:
        difference: `(reviews,)`, what a review adds to A's accuracy minus B's.

    Returns:
        low, high
    """
    values, counts = np.unique(difference, return_counts=True)
    n = counts.sum()
    drawn = np.random.RandomState(seed).multinomial(n, counts / n, size=samples)
    means = drawn @ values / n
    tail = 50 * (1 - level)
    low, high = np.percentile(means, [tail, 100 - tail])
    return float(low), float(high)
