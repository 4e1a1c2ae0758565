"""Attacks compared with each other: at equal strength, and SPGD with all others.

One ε per method compares attacks of different strength. A sweep tries several, and compares the
methods where they flip equally many predictions.
"""
import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from interpretable_adv.evaluation.bootstrap import Bootstrap, interval
from interpretable_adv.evaluation.measures import JUDGED, OF_SWAPS, Measurement

FLIP_RATES = (10, 25, 50)  # per cent, at which a sweep compares methods
Rows = Sequence[dict[str, Any]]  # summaries of measurements, each with its method


# Equal strength -------------------------------------------------------------------------------

def gap_at_flip_rate(points: Rows, reading: str, rate: float,
                     name: str = 'gap') -> float | None:
    """The gap at which a method flips `rate` per cent of predictions, between two strengths.

    Args:
        points: summaries of one method, the weakest first.
        name: of another score instead of the gap.

    Returns:
        the value at the first crossing, by linear interpolation from (0, 0), or, for a score that
        has no value there, from the first one that has; None if the method never reaches that rate.
    """
    scores = [point['scores'][reading] for point in points]
    values = [score.get(name) for score in scores]
    found = crossing([score['flipped'] for score in scores],
                     [math.nan if value is None else value for value in values], rate,
                     _at_no_strength(name))
    return None if math.isnan(found) else found


def _at_no_strength(name: str) -> float:
    """What a score is where nothing is perturbed: 0, or NaN for a share of swaps."""
    return math.nan if name in OF_SWAPS else 0.0


def crossing(flipped: Sequence[float], values: Sequence[float], rate: float,
             start: float = 0.0) -> float:
    """The value where `flipped` first reaches `rate`, by linear interpolation from (0, start).

    NaN if it never does, or where the value is NaN; next to a NaN nothing is interpolated.
    """
    previous = 0.0, start
    for here in zip(flipped, values):
        if here[0] >= rate:
            if math.isnan(previous[1]):
                return here[1]
            weight = (rate - previous[0]) / (here[0] - previous[0])
            return previous[1] + weight * (here[1] - previous[1])
        previous = here
    return math.nan


def compare_at_equal_strength(rows: Rows, reading: str = 'continuous',
                              name: str = 'gap') -> dict[str, dict[str, float | None]]:
    """`{method: {rate: gap}}`, or another score, at the flip rates of `FLIP_RATES`."""
    methods = dict.fromkeys(row['method'] for row in rows)
    return {method: {str(rate): gap_at_flip_rate(
        [row for row in rows if row['method'] == method], reading, rate, name)
        for rate in FLIP_RATES} for method in methods}


def at_equal_strength(rows: Rows) -> dict[str, dict]:
    """Perplexity gaps at equal flip rates and, of texts that a judge has read, what it says."""
    found: dict[str, dict] = {'gap_at_flip_rate': {}, 'judged_at_flip_rate': {}}
    for reading, scores in rows[0]['scores'].items() if rows else ():
        found['gap_at_flip_rate'][reading] = compare_at_equal_strength(rows, reading)
        if 'judge_changed' in scores:
            found['judged_at_flip_rate'][reading] = {
                name: compare_at_equal_strength(rows, reading, name) for name in JUDGED}
    return found


# Intervals over reviews -------------------------------------------------------------------------

def add_intervals(rows: Rows, measurements: Mapping[str, Measurement], draws: Bootstrap) -> None:
    """Adds to every gap of Table 1 its interval."""
    for row in rows:
        for reading, scores in row['scores'].items():
            scores['gap_interval'] = interval(
                draws.scores(measurements[row['method']], reading, 'gap'))


def spgd_minus(rows: Rows, measurements: Mapping[str, Measurement],
               draws: Bootstrap) -> dict[str, dict]:
    """SPGD's scores in Table 1 minus those of the other attacks: `{reading: {score: {method:
    {'difference': …, 'interval': …}}}}`."""
    rows = [row for row in rows if row['method'] != 'none']
    found: dict[str, dict] = {}
    for reading in rows[0]['scores'] if rows else ():
        for name in ('gap', 'judge_changed'):
            values = {row['method']: row['scores'][reading].get(name) for row in rows}
            found.setdefault(reading, {})[name] = _spgd_minus(values, {
                method: draws.scores(measurements[method], reading, name)
                for method, value in values.items() if value is not None})
    return found


def spgd_minus_at_flip_rate(equal: Mapping[str, dict], sweep: Sequence[tuple[str, Measurement]],
                            draws: Bootstrap) -> dict[str, dict]:
    """The same at equal strength: `{reading: {score: {rate: {method: …}}}}`.

    Args:
        equal: of `at_equal_strength`.
        sweep: methods and their measurements, the weakest first.
    """
    found: dict[str, dict] = {}
    for reading, gaps in equal['gap_at_flip_rate'].items():
        judged = equal['judged_at_flip_rate'].get(reading, {})
        scores = {'gap': gaps, **{name: judged[name] for name in ('judge_changed', 'antonyms')
                                  if name in judged}}
        for name, by_method in scores.items():
            found.setdefault(reading, {})[name] = {
                str(rate): _at_rate(by_method, sweep, reading, rate, name, draws)
                for rate in FLIP_RATES}
    return found


def _at_rate(by_method: Mapping[str, Mapping[str, float | None]],
             sweep: Sequence[tuple[str, Measurement]], reading: str, rate: int, name: str,
             draws: Bootstrap) -> dict[str, dict]:
    values = {method: at_rate[str(rate)] for method, at_rate in by_method.items()}
    return _spgd_minus(values, {
        method: at_flip_rate([found for other, found in sweep if other == method], reading, rate,
                             name, draws)
        for method, value in values.items() if value is not None})


def at_flip_rate(points: Sequence[Measurement], reading: str, rate: float, name: str,
                 draws: Bootstrap) -> np.ndarray:
    """A score where a method flips `rate` per cent of the predictions, on each draw of reviews.

    Args:
        points: measurements of one method, the weakest first.
    """
    flipped, values = (np.stack([draws.scores(point, reading, score) for point in points], 1)
                       for score in ('flipped', name))
    return np.array([crossing(*pair, rate, _at_no_strength(name))
                     for pair in zip(flipped.tolist(), values.tolist())])


def _spgd_minus(values: Mapping[str, float | None],
                draws: Mapping[str, np.ndarray]) -> dict[str, dict]:
    """SPGD's score minus that of every other method that has one."""
    own = values.get('spgd')
    if own is None:
        return {}
    with np.errstate(invalid='ignore'):  # both may be infinite
        return {method: {'difference': own - value,
                         'interval': interval(draws['spgd'] - draws[method])}
                for method, value in values.items() if method != 'spgd' and value is not None}
