import fractions

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import stats

from experiments import significance


@given(st.integers(0, 3000), st.integers(0, 3000))
def test_mcnemar_is_the_exact_binomial_test(only_a, only_b):
    n, ways, tail = only_a + only_b, 1, 0
    for k in range(min(only_a, only_b) + 1):
        tail += ways
        ways = ways * (n - k) // (k + 1)
    expected = min(1, float(fractions.Fraction(2 * tail, 2 ** n)))  # SciPy: 0 for (10, 1065)
    assert significance.mcnemar(only_a, only_b) == pytest.approx(expected, rel=1e-8, abs=1e-300)
    assert significance.mcnemar(only_b, only_a) == significance.mcnemar(only_a, only_b)


def test_mcnemar_of_a_whole_test_set():
    assert significance.mcnemar(12500, 12500) == 1
    assert 0 <= significance.mcnemar(20000, 5000) < 1e-300
    assert significance.mcnemar(12700, 12300) == pytest.approx(
        stats.binomtest(12300, 25000).pvalue, rel=1e-8)


def test_discordant():
    a = np.array([True, True, False, False, True])
    b = np.array([True, False, True, False, False])
    assert significance.discordant(a, b) == (2, 1)


@pytest.mark.parametrize('n_seeds', [1, 3])
def test_bootstrap_agrees_with_scipy(n_seeds):
    random = np.random.RandomState(0)
    a = random.rand(n_seeds, 1000) < 0.93
    b = random.rand(n_seeds, 1000) < 0.90
    difference = (a.astype(float) - b).mean(axis=0)
    expected = stats.bootstrap((difference,), np.mean, method='percentile', n_resamples=10000,
                               random_state=0).confidence_interval
    low, high = significance.paired_bootstrap(difference)
    assert low < difference.mean() < high
    # two runs of 10,000 samples agree to a few hundredths of the interval's width
    assert (low, high) == pytest.approx((expected.low, expected.high),
                                        abs=0.06 * (expected.high - expected.low))


@settings(max_examples=25, deadline=None)
@given(st.lists(st.sampled_from([-1.0, 0.0, 1.0]), min_size=1, max_size=50))
def test_bootstrap_stays_within_the_values(values):
    low, high = significance.paired_bootstrap(np.array(values), samples=200)
    assert min(values) <= low <= high <= max(values)


def test_bootstrap_of_equal_classifiers_is_zero_and_repeatable():
    assert significance.paired_bootstrap(np.zeros(100)) == (0, 0)
    difference = np.array([1.0, 0, 0, -1, 1, 0])
    assert significance.paired_bootstrap(difference) == significance.paired_bootstrap(difference)


def test_coverage_of_the_interval():
    """A 95 % interval holds the true difference in about 95 % of experiments."""
    random = np.random.RandomState(1)
    inside = 0
    for _ in range(300):
        difference = random.choice([-1.0, 0.0, 1.0], size=400, p=[0.05, 0.87, 0.08])
        low, high = significance.paired_bootstrap(difference, samples=500)
        inside += low <= 0.03 <= high
    assert 0.90 <= inside / 300 <= 0.985
