"""comparison.py: equal strength by hand, and SPGD against the rest on draws written out."""
import numpy as np
import pytest

from interpretable_adv.evaluation import comparison
from interpretable_adv.evaluation.bootstrap import Bootstrap, interval
from tests.interpretable_adv.evaluation.made_up import measurement, repeated

# Equal strength -------------------------------------------------------------------------------

def point(flipped, gap, method='adv', nearest=(0, 0)):
    return {'method': method, 'scores': {
        'continuous': {'flipped': flipped, 'gap': gap},
        'nearest': dict(zip(('flipped', 'gap'), nearest))}}


def test_gap_at_equal_strength():
    points = [point(0, 0), point(20, 2), point(40, 10), point(30, 11), point(60, 20)]
    for rate, gap in ((10, 1), (20, 2), (25, 4), (40, 10), (50, 17), (61, None)):
        found = comparison.gap_at_flip_rate(points, 'continuous', rate)
        assert found == (None if gap is None else pytest.approx(gap))


def test_gap_below_the_first_step_size_and_of_a_negative_gap():
    points = [point(40, -8), point(60, -4)]
    assert comparison.gap_at_flip_rate(points, 'continuous', 10) == pytest.approx(-2)
    assert comparison.gap_at_flip_rate(points, 'continuous', 50) == pytest.approx(-6)
    assert comparison.gap_at_flip_rate([], 'continuous', 10) is None


def test_other_scores_at_a_flip_rate():
    def point(flipped, **scores):
        return {'scores': {'nearest': {'flipped': flipped, **scores}}}

    points = [point(0, judge_changed=0, antonyms=None), point(20, judge_changed=8, antonyms=5),
              point(60, judge_changed=16, antonyms=9)]
    at = [[comparison.gap_at_flip_rate(points, 'nearest', rate, name) for rate in (10, 40, 70)]
          for name in ('judge_changed', 'antonyms', 'synonyms')]
    assert at == [[4, 12, None], [5, 7, None], [None, None, None]]


def test_methods_are_compared_at_the_same_rates():
    sweep = [point(20, 2), point(50, 8), point(100, 4, 'spgd', (25, 1)), point(99, 99, 'random')]
    assert comparison.compare_at_equal_strength(sweep[:3]) == {
        'adv': {'10': pytest.approx(1), '25': pytest.approx(3), '50': pytest.approx(8)},
        'spgd': {'10': pytest.approx(0.4), '25': pytest.approx(1), '50': pytest.approx(2)}}
    assert comparison.compare_at_equal_strength(sweep[2:3], 'nearest') == {
        'spgd': {'10': pytest.approx(0.4), '25': pytest.approx(1), '50': None}}


def test_equal_strength_of_a_sweep():
    sweep = [point(20, 2, 'adv', (30, 6)), point(50, 8, 'spgd', (5, 1))]
    assert comparison.at_equal_strength(sweep) == {
        'gap_at_flip_rate': {
            'continuous': {'adv': {'10': 1, '25': None, '50': None},
                           'spgd': {'10': pytest.approx(1.6), '25': 4, '50': 8}},
            'nearest': {'adv': {'10': 2, '25': 5, '50': None},
                        'spgd': {'10': None, '25': None, '50': None}}},
        'judged_at_flip_rate': {}}
    judged = comparison.at_equal_strength([{'method': 'adv', 'scores': {
        'nearest': {'flipped': 20, 'gap': 1, 'judge_changed': 8, 'antonyms': 3}}}])
    assert judged['judged_at_flip_rate']['nearest']['judge_changed'] == {
        'adv': {'10': 4, '25': None, '50': None}}
    assert judged['judged_at_flip_rate']['nearest']['antonyms']['adv']['10'] == 3
    assert comparison.at_equal_strength([]) == {'gap_at_flip_rate': {}, 'judged_at_flip_rate': {}}


# Intervals over reviews -------------------------------------------------------------------------

N = 40


@pytest.fixture
def draws():
    return Bootstrap(N, samples=60)


def counts_of(draws):
    return np.array([draws.sums(review) for review in np.eye(N)]).T.astype(int)


def rows_of(measurements):
    return [{'method': method, **found.summary()} for method, found in measurements.items()]


def test_gaps_get_their_intervals(draws):
    measurements = {'none': measurement(0, N), 'adv': measurement(0.8, N)}
    rows = rows_of(measurements)
    comparison.add_intervals(rows, measurements, draws)
    assert rows[0]['scores']['continuous']['gap_interval'] == [0, 0]
    for reading, scores in rows[1]['scores'].items():
        low, high = scores['gap_interval']
        assert low < scores['gap'] < high
        assert [low, high] == interval(draws.scores(measurements['adv'], reading, 'gap'))


def test_spgd_minus_the_others(draws):
    measurements = {'none': measurement(0, N), 'adv': measurement(0.9, N, 1),
                    'spgd': measurement(0.3, N, 1)}
    found = comparison.spgd_minus(rows_of(measurements), measurements, draws)
    assert set(found) == {'continuous', 'nearest'} and found['continuous']['judge_changed'] == {}
    for reading, name in (('continuous', 'gap'), ('nearest', 'gap'), ('nearest', 'judge_changed')):
        assert list(found[reading][name]) == ['adv']
        value = found[reading][name]['adv']
        differences = [
            ours - theirs for ours, theirs in (
                [repeated(measurements[method], count).summary()['scores'][reading][name]
                 for method in ('spgd', 'adv')] for count in counts_of(draws))]
        assert value['interval'] == pytest.approx(interval(np.array(differences)), abs=2e-6)
        assert value['interval'][0] < value['difference'] < value['interval'][1]
    del measurements['spgd']
    assert comparison.spgd_minus(rows_of(measurements), measurements, draws)[
        'nearest'] == {'gap': {}, 'judge_changed': {}}


def test_spgd_minus_the_others_at_equal_strength(draws):
    """Each draw has its own strength that flips so many."""
    sweep = [(method, measurement(strength, N, seed)) for method, seed in (('adv', 1), ('spgd', 2))
             for strength in (0.2, 0.5, 0.9)]
    rows = [{'method': method, **found.summary()} for method, found in sweep]
    equal = comparison.at_equal_strength(rows)
    found = comparison.spgd_minus_at_flip_rate(equal, sweep, draws)
    assert list(found['continuous']) == ['gap']
    assert list(found['nearest']) == ['gap', 'judge_changed', 'antonyms']
    for reading, name in (('continuous', 'gap'), ('nearest', 'judge_changed'),
                          ('nearest', 'antonyms')):
        differences = []
        for count in counts_of(draws):
            drawn = comparison.compare_at_equal_strength(
                [{'method': method, **repeated(point, count).summary()}
                 for method, point in sweep], reading, name)
            differences.append(drawn['spgd']['50'] - drawn['adv']['50'])
        value = found[reading][name]['50']['adv']
        assert value['interval'] == pytest.approx(interval(np.array(differences)), abs=2e-6)
        values = comparison.compare_at_equal_strength(rows, reading, name)
        assert value['difference'] == values['spgd']['50'] - values['adv']['50']


def test_a_rate_that_only_one_reaches_is_not_compared(draws):
    sweep = [('adv', measurement(0.9, N)), ('spgd', measurement(0.2, N))]
    equal = comparison.at_equal_strength([{'method': method, **found.summary()}
                                          for method, found in sweep])
    found = comparison.spgd_minus_at_flip_rate(equal, sweep, draws)['continuous']['gap']
    assert found['50'] == {} and set(found['10']) == {'adv'}
