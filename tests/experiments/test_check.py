"""experiments/check.py: which runs are the published ones, and why others are not."""
import json

import pytest

from experiments import check
from tests.experiments import finished_runs


def write(folder, method='adv', digest='d1', flags=(), **result):
    run = finished_runs.write_classifier(folder, method, 1, 90, flags=flags)
    path = run / 'result.json'
    content = {**json.loads(path.read_text()), 'digest': digest, 'arithmetic': 'kernels',
               'versions': {'numpy': '1.26.4'}, **result}
    path.write_text(json.dumps(content))
    return run


@pytest.fixture
def folders(tmp_path):
    runs, results = tmp_path / 'runs', tmp_path / 'results'
    for folder in (runs, results):
        write(folder, 'adv')
        write(folder, 'spgd', 'd2')
    return runs, results


def test_equal_digests(folders):
    lines, identical = check.report(*map(str, folders))
    assert lines == ['identical to the published runs: 2 of 2'] and identical


@pytest.mark.parametrize('change, reason', [
    ({'digest': 'other'}, 'other bits with the same settings, versions and arithmetic'),
    ({'digest': 'other', 'arithmetic': 'numpy'}, 'computed by numpy, published by kernels'),
    ({'digest': 'other', 'versions': {'numpy': '2.3.0'}},
     "other versions: numpy was '1.26.4' and is '2.3.0'"),
    ({'digest': 'other', 'flags': ['--xi_var', '2']}, 'other settings: xi_var was 5.0 and is 2.0'),
    ({'digest': 'other', 'flags': ['--n_epoch', '3']}, 'other settings: n_epoch was 30 and is 3'),
    # Whatever else differs, equal bits are equal.
    ({'versions': {'numpy': '2.3.0'}}, None)])
def test_the_reason_of_a_difference(folders, change, reason):
    runs, results = folders
    write(runs, 'adv', **change)
    lines, identical = check.report(str(runs), str(results))
    assert identical == (reason is None)
    if reason:
        assert lines[0] == 'identical to the published runs: 1 of 2'
        assert lines[1].startswith(f'  adv_seed1: {reason}') and len(lines) == 2


def test_what_was_not_trained_counts(folders):
    runs, results = folders
    (runs / 'spgd_seed1' / 'result.json').unlink()
    lines, identical = check.report(str(runs), str(results))
    assert lines == ['identical to the published runs: 1 of 2', '  spgd_seed1: not trained here']
    assert not identical


def test_results_without_digests_are_not_counted(folders):
    runs, results = folders
    finished_runs.write_classifier(results, 'iadv', 1, 90)
    assert check.report(str(runs), str(results))[1]
    assert check.report(str(runs), str(runs.parent / 'nothing')) == (
        [f'no published runs in {runs.parent}/nothing to compare with'], False)
