"""bootstrap.py: every draw next to the reviews written out, and the interval of a known mean."""
import numpy as np
import pytest

from interpretable_adv.evaluation.bootstrap import Bootstrap, interval
from tests.interpretable_adv.evaluation.made_up import measurement, repeated

N = 12


def draws_of(samples=7, seed=3):
    """Draws, and how often each has every review."""
    draws = Bootstrap(N, samples, seed)
    counts = np.array([draws.sums(review) for review in np.eye(N)]).T.astype(int)
    return draws, counts


def test_a_draw_has_as_many_reviews_and_not_all_draws_are_the_same():
    draws, counts = draws_of()
    assert draws.sums(np.ones(N)).tolist() == [N] * 7 and counts.min() == 0
    assert len({tuple(draw) for draw in counts.tolist()}) > 1
    assert counts.tolist() == draws_of()[1].tolist() != draws_of(seed=4)[1].tolist()


@pytest.mark.parametrize('name, reading', [
    ('gap', 'continuous'), ('gap', 'nearest'), ('flipped', 'continuous'), ('flipped', 'nearest'),
    ('judge_changed', 'nearest'), ('antonyms', 'nearest')])
def test_scores_are_those_of_the_drawn_reviews(name, reading):
    draws, counts = draws_of()
    found = measurement(0.6, N)
    expected = [repeated(found, count).summary()['scores'][reading][name] for count in counts]
    assert len(set(expected)) > 1
    np.testing.assert_allclose(draws.scores(found, reading, name), expected, rtol=1e-12)


def test_scores_that_do_not_exist():
    draws, _ = draws_of()
    assert np.isnan(draws.scores(measurement(0.6, N, wordnet=False), 'nearest', 'antonyms')).all()
    assert np.isnan(draws.scores(measurement(0.0, N), 'nearest', 'antonyms')).all()
    endless = measurement(0.6, N)
    endless.nll_clean[:] = endless.nll['nearest'][:] = 1e6
    assert np.isnan(draws.scores(endless, 'nearest', 'gap')).all()


def test_more_draws_than_are_multiplied_at_once():
    draws = Bootstrap(N, 250)
    assert draws.sums(np.ones(N)).tolist() == [N] * 250


def test_the_interval_of_a_mean():
    """Close to 1.96 standard errors to both sides, whatever the generator."""
    values = np.random.RandomState(0).normal(3, 2, 400)
    low, high = interval(Bootstrap(400).sums(values) / 400)
    half = 1.96 * values.std() / 20
    assert low == pytest.approx(values.mean() - half, abs=0.1 * half)
    assert high == pytest.approx(values.mean() + half, abs=0.1 * half)


def test_an_interval_needs_nearly_all_draws():
    draws = np.arange(100.0)
    assert interval(draws) == pytest.approx([2.475, 96.525])
    draws[:5] = np.nan
    assert interval(draws) is not None
    draws[5] = np.inf
    assert interval(draws) is None
