"""experiments/effects.py: intervals by hand."""
import numpy as np
import pytest

from experiments import effects


def test_over_seeds():
    effect = effects.over_seeds([1.0, 2.0, 3.0])
    assert (effect.mean, effect.n) == (2, 3)
    assert effect.high - 2 == pytest.approx(4.303 / 3 ** 0.5) == 2 - effect.low
    assert effect.answer(1) == 'no difference'
    assert effects.over_seeds([1.0]) is None and effects.over_seeds([]) is None
    certain = effects.Effect(-1.0, -2.0, -0.5, 3)
    assert certain.answer(-1) == 'yes' and certain.answer(1) == 'no, the opposite'
    by_chance = effects.over_seeds([2.0, 2.0])
    assert str(by_chance) == '+2.00 (2)' and by_chance.answer(1) == 'no interval'
    assert str(certain) == '−1.00 [−2.00, −0.50] (3)'


def test_an_effect_over_reviews_also_has_an_interval_over_seeds():
    reviews = np.ones(400)
    reviews[:80] = -1  # a mean of 0.6 and an interval well above 0
    alike = effects.over_reviews([reviews, np.roll(reviews, 7), np.append(reviews[1:], 1)])
    assert alike.low > 0 and alike.answer(1) == 'yes' and alike.answer(-1) == 'no, the opposite'
    spread = effects.over_reviews([reviews, 0.05 * reviews])
    assert spread.among_seeds.mean == pytest.approx(spread.mean) == 31.5
    half = 12.706 * (60 - 3) / 2  # two seeds: the deviation is their difference / √2
    assert spread.among_seeds.high - spread.mean == pytest.approx(half)
    assert spread.low > 0 and spread.answer(1) == 'yes, for these seeds'
    assert str(spread).endswith(
        f'(2, reviews), [−{half - 31.5:.2f}, +{half + 31.5:.2f}] over seeds')
    single = effects.over_reviews([reviews])
    assert single.among_seeds is None and single.answer(1) == 'yes, for this seed'


def test_over_both():
    found = effects.over_both([1.0, 2.0, 6.0], [[0.0, 2.0], [1.0, 5.0], [5.0, 8.0]])
    assert (found.mean, found.low, found.high, found.by) == (3, 2, 5, 'reviews')
    assert found.among_seeds == effects.over_seeds([1.0, 2.0, 6.0])
    assert found.answer(1) == 'yes, for these seeds'
    assert effects.over_both([1.0, 2.0], [[0.0, 2.0], None]) == effects.over_seeds([1.0, 2.0])
    assert effects.over_both([1.0], [None]) is None and effects.over_both([], []) is None


def test_the_mean_of_the_intervals_is_no_narrower_than_that_of_the_mean():
    """On reviews that all seeds share, by the bootstrap of the mean over seeds."""
    random = np.random.RandomState(0)
    shared = random.normal(size=500)
    for weight in (0, 1):  # seeds that differ, and seeds that agree
        reviews = [weight * shared + random.normal(size=500) for _ in range(3)]
        each = [effects.over_reviews([values]) for values in reviews]
        both = effects.over_both([one.mean for one in each], [(one.low, one.high) for one in each])
        together = effects.over_reviews(reviews)
        assert both.mean == pytest.approx(together.mean)
        assert both.high - both.low > 0.97 * (together.high - together.low)


def test_what_cannot_be_compared():
    nothing = effects.Incomparable(1, 3)
    assert (str(nothing), nothing.answer(1)) == ('comparable in 1 of 3 seeds', 'open')
