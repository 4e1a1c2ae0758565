"""What is made of the times that the processes of a job report."""
import pytest

from experiments.benchmarks import scaling


def rounds(rows):
    """The same rows for every method: (seconds, waiting, exchanging, computing) by process."""
    return [{n: {method: {'rows': by_process, 'megabytes': 5.0} for method in scaling.METHODS}
             for n, by_process in rows.items()}]


def test_step_lasts_as_long_as_its_slowest_process():
    summary = scaling.summarise(rounds({
        1: [[[1.0, 0.0, 0.0, 0.9], [3.0, 0.0, 0.0, 2.9]]],
        2: [[[0.7, 0.1, 0.1, 0.5], [1.0, 0.0, 0.1, 0.9]],
            [[0.6, 0.0, 0.1, 0.4], [1.0, 0.5, 0.1, 0.3]]]}), [1, 2])
    alone, two = summary[:2]
    assert alone['step_ms'] == pytest.approx(2000) and alone['speed_up'] == 1
    assert two['step_ms'] == pytest.approx(850)
    assert two['speed_up'] == pytest.approx(2 / 0.85)
    assert two['exchange_ms'] == pytest.approx(100)
    assert two['waiting_share'] == pytest.approx(0.6 / 3.3)
    # Computing of the slower process, and the exchange: (0.5 + 0.9) / 2 + 0.1 against 1.9.
    assert two['undisturbed_step_ms'] == pytest.approx(800)
    assert two['undisturbed_speed_up'] == pytest.approx(1.9 / 0.8)
    assert two['epoch_min'] == pytest.approx(0.85 * 664 / 60)


def test_table_has_a_row_per_method_and_number_of_processes():
    summary = scaling.summarise(rounds({1: [[[1.0, 0.0, 0.0, 0.9]]]}), [1])
    text = scaling.markdown(summary, 256, [0.5, 1.5])
    assert 'load of 0.5 to 1.5' in text
    assert [line.split('|')[1].strip() for line in text.splitlines()[-2:]] == ['baseline', 'adv']
