"""SPGD with several σ: jobs, table and finding."""
import numpy as np
import pytest

from experiments import effects, findings, paper_tables, plan, presets, results
from experiments.tables import Spread
from interpretable_adv.errors import UserError
from tests.experiments import finished_runs

ACCURACIES = {'0': (90, 91), '0.5': (91, 91), '0.75': (93, 94), '0.9': (93, 94)}


@pytest.fixture
def folder(results_folder):
    for sparsity, accuracies in ACCURACIES.items():
        for seed, accuracy in zip((1, 2), accuracies):
            finished_runs.write_classifier(
                results_folder, 'spgd', seed, accuracy, dev=accuracy - 1,
                flags=['--sparsity', sparsity, '--n_epoch', '3'], name=f'spgd_sparsity{sparsity}')
    return results_folder


def jobs_of(tmp_path, *overrides):
    places = plan.Places(str(tmp_path / 'runs'), str(tmp_path / 'data'))
    return {job.name: job for job in plan.merge(
        plan.sparsity(presets.load('toy', overrides), places, [1, 2]))}


def test_only_sparsity_and_the_sections_flags_differ_from_the_tables_run(tmp_path):
    overrides = 'sparsity.values=0 0.75', 'sparsity.n_epoch=3', 'spgd.xi_var=7'
    jobs = jobs_of(tmp_path, *overrides)
    assert set(jobs) == {'data', 'lm_seed1', *(
        f'{kind}spgd_sparsity{sparsity}_seed{seed}' for kind in ('', 'predictions_')
        for sparsity in ('0', '0.75') for seed in (1, 2))}
    usual = plan.classifier_job(presets.load('toy', overrides), plan.Places(
        str(tmp_path / 'runs'), str(tmp_path / 'data')), 'spgd', 2)
    other = jobs['spgd_sparsity0_seed2']
    assert {name: value for name, value in other.settings.items()
            if usual.settings[name] != value} == {
        'sparsity': 0, 'n_epoch': 3, 'out': other.folder}
    assert other.needs == usual.needs and other.epochs == 3
    assert jobs['predictions_spgd_sparsity0_seed2'].needs == ('spgd_sparsity0_seed2',)


def test_without_the_section_there_is_nothing_to_run(tmp_path):
    assert jobs_of(tmp_path) == {}


@pytest.mark.parametrize('overrides', [['sparsity.values=some'], ['sparsity.n_epoch=3']])
def test_a_section_without_numbers_is_refused(overrides):
    with pytest.raises(UserError, match=r'\[sparsity\].* 0 0.5 0.75'):
        presets.load('toy', overrides)


def test_the_table_compares_with_the_papers_sparsity(folder):
    assert list(results.sparsities(str(folder))) == [0, 0.5, 0.75, 0.9]
    assert [run.test for run in results.find(str(folder))['spgd']] == [92.5, 93.5]  # only its own
    table = paper_tables.sparsity_table(str(folder))
    rows = {row[0]: row[1:] for row in table.rows}
    assert rows['0.5'][:2] == [Spread.of([90, 90]), Spread.of([91, 91])]
    effect = effects.over_reviews(paper_tables.gains(*(
        results.sparsities(str(folder))[sparsity] for sparsity in (0.5, 0.75))))
    assert rows['0.5'][2] == str(effect) and effect.mean == pytest.approx(-2.5)
    assert effect.low < -2.5 < effect.high < 0
    assert rows['0.75'][2] == '–'
    assert table.notes[0].startswith('3 epochs each')


def test_without_such_runs_there_is_no_table(results_folder):
    assert paper_tables.sparsity_table(str(results_folder)) is None
    assert findings.sparsity(str(results_folder)) == []


def test_the_finding(folder):
    found = {what: effect.answer(expected) for what, effect, expected in
             findings.sparsity(str(folder))}
    assert found == {
        'σ = 0.75 − σ = 0, test accuracy (points)': 'yes',
        'σ = 0.75 − σ = 0.5, test accuracy (points)': 'yes, for these seeds',  # +2 and +3
        'σ = 0.9 − σ = 0.75, test accuracy (points)': 'no difference'}
    effect = findings.sparsity(str(folder))[0][1]
    assert effect.n == 2 and np.isclose(effect.mean, 3)
