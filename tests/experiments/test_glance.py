"""experiments/glance.py: the paper next to ours, at the sizes that have results."""
import json

import pytest

from experiments import collect, glance
from experiments.tables import MISSING
from tests.experiments import finished_runs


@pytest.fixture
def root(results_folder, tmp_path):
    collect.collect(str(results_folder), str(tmp_path / 'corpus'),
                    str(tmp_path / 'experiments' / 'results' / 'small'))
    return tmp_path


def cells(table):
    return {str(row[0]): [str(cell) for cell in row[1:]] for row in table.rows if row}


def test_trained(root):
    table = glance.trained(str(root))
    assert cells(table)['the paper'] == ['256/1024/30', '87,008', '≥ 5', '114.77']
    lm = json.loads((root / 'experiments/results/small/lm_seed1/result.json').read_text())
    assert cells(table)['`small`'] == [
        '256/1024/30', MISSING, '2', str(glance.Number(lm['test_perplexity']))]


def test_accuracies(root):
    table = glance.accuracies(str(root))
    assert table.columns == ['Model', 'paper', 'ours, `small`']
    assert cells(table)['Pretrained w/ AdvT-Text'] == ['93.58', '93.50 ± 0.71 (2)']


def test_effects(root):
    found = cells(glance.effects(str(root)))
    assert found['accuracy: Pretrained − Baseline'][0] == '+2.86'
    assert found['accuracy: Pretrained − Baseline'][1].startswith('+2.75 [')  # 3 and 2.5
    assert found['gap: SPGD'][0] == '+1.09' and found['gap: SPGD'][1].endswith('(2)')
    assert found['flipped: SPGD'] == [MISSING, '20.0 ± 0.0 (2)']
    assert not any(title.startswith('gap at 10 %') for title in found)  # no sweep
    assert 'accuracy: SPGD with p(x|y) − Pretrained' not in found  # not trained


def test_a_method_that_the_paper_does_not_have(root):
    folder = root / 'experiments' / 'results' / 'small'
    for seed in (1, 2):
        finished_runs.write_classifier(folder, 'spgd_lm', seed, 94)
        finished_runs.write_judged(folder, seed, shift=seed)
    assert cells(glance.accuracies(str(root)))['Pretrained w/ SPGD with p(x|y)'] == [
        MISSING, '94.00 ± 0.00 (2)']
    found = cells(glance.effects(str(root)))
    assert found['accuracy: SPGD with p(x|y) − Pretrained'][0] == MISSING
    assert found['gap: SPGD with p(x|y)'] == [MISSING, '+3.50 ± 0.71 (2)']
    assert found['gap at 50 % flipped: SPGD − AdvT-Text'][1] == 'comparable in 0 of 2 seeds'
    assert found['gap at 10 % flipped: SPGD with p(x|y) − SPGD'][1].startswith('+1.00')


def test_baselines(root):
    rows = cells(glance.baselines(str(root)))
    assert rows['paper'] == ['256/1024/30', '1', MISSING, '89.83', '92.69']
    assert rows['ours, `small`'][:2] == ['256/1024/30', '1']
    assert rows['ours, `small`'][2].count(',') == 1 and rows['ours, `small`'][3].endswith('(2)')


def test_one_seed_at_the_papers_size_has_intervals_over_reviews(root):
    folder = root / 'experiments' / 'results' / 'paper'
    finished_runs.write_classifier(folder, 'spgd', 1, 93)
    finished_runs.write_judged(folder)
    path = folder / 'perplexity_seed1' / 'perplexity.json'
    content = json.loads(path.read_text())
    for row in content['rows']:
        row['scores']['continuous']['gap_interval'] = [0.75, 1.5]
    path.write_text(json.dumps(content))
    table = glance.effects(str(root))
    assert table.columns == ['', 'paper', "ours, the paper's size", 'ours, `small`']
    found = cells(table)
    assert found['gap: SPGD'][1] == '+1.00 [+0.75, +1.50] (1, reviews)'
    assert found['accuracy: SPGD − AdvT-Text'][1] == MISSING  # AdvT has not been trained yet
    assert found['accuracy: SPGD − AdvT-Text'][2] != MISSING


def test_a_size_with_one_method_has_no_effects(root):
    finished_runs.write_classifier(root / 'experiments/results/paper', 'baseline', 1, 89)
    assert glance.effects(str(root)).columns == ['', 'paper', 'ours, `small`']
    assert cells(glance.accuracies(str(root)))['Baseline'][1] == '89.00 (1)'


def test_what_agrees_with_the_paper(root):
    folder = root / 'experiments' / 'results' / 'paper'
    assert glance.against_paper(str(root)).rows == []  # `small` has no part in it
    for method, accuracy in (('baseline', 89.52), ('adv', 93.2)):
        finished_runs.write_classifier(folder, method, 1, accuracy)
    finished_runs.write_judged(folder)
    path = folder / 'perplexity_seed1' / 'perplexity.json'
    content = json.loads(path.read_text())
    for row in content['rows']:
        row['scores']['continuous'].update(gap=1.25, gap_interval=[0.5, 2])
    path.write_text(json.dumps(content))
    found = cells(glance.against_paper(str(root)))
    # Two standard errors of 25,000 reviews: 200 √(p (1 − p) / 25000).
    assert found['accuracy: Baseline'] == ['89.83', '89.52', '−0.31', '± 0.39', 'yes']
    assert found['accuracy: AdvT-Text'] == ['93.58', '93.20', '−0.38', '± 0.32', 'no']
    assert found['gap: SPGD'] == ['+1.09', '+1.25', '+0.16', '[+0.50, +2.00]', 'yes']
    assert found['gap: AdvT-Text'][-1] == 'no'


def test_without_results_only_the_paper_is_shown(tmp_path):
    assert glance.effects(str(tmp_path)).columns == ['', 'paper']
