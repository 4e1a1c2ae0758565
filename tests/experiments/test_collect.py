import gzip
import json

import numpy as np
import pytest

from experiments import collect, paper_tables, results, tables
from interpretable_adv.errors import UserError
from tests.experiments import finished_runs


@pytest.fixture
def collected(results_folder, tmp_path):
    (results_folder / 'jobs').mkdir()
    (results_folder / 'jobs' / 'adv_seed1.json').write_text(json.dumps({
        'commands': [f'python -m interpretable_adv.train --data_dir {tmp_path}/corpus --out '
                     f'{results_folder}/adv_seed1'], 'seconds': 61.4,
        'finished': '2026-11-16 05:00 UTC'}))
    (results_folder / 'adv_seed1' / 'best.model').write_text('large')
    (results_folder / 'vat_seed1').mkdir()  # has not finished
    for name in ('figures/training_curves.png', 'figures/review_001.png', 'figures/report.html',
                 'grid_search/adv_xi_var.png'):
        (results_folder / name).parent.mkdir(exist_ok=True)
        (results_folder / name).write_bytes(b'a picture')
    target = tmp_path / 'project' / 'experiments' / 'results' / 'small'
    collect.collect(str(results_folder), str(tmp_path / 'corpus'), str(target))
    return target


def test_tables_of_collected_results_are_those_of_the_runs(collected, results_folder):
    for make in (paper_tables.table1, paper_tables.table2, paper_tables.table3,
                 paper_tables.significance_table, paper_tables.equal_strength):
        assert tables.terminal(make(str(collected))) == tables.terminal(make(str(results_folder)))


def test_models_and_unfinished_runs_stay_behind(collected):
    assert not list(collected.rglob('*.model'))
    assert not (collected / 'vat_seed1').exists()
    assert sorted(path.name for path in (collected / 'adv_seed1').iterdir()) == [
        'args.json', 'log', 'predictions.csv.gz', 'result.json']


def test_a_classifier_counts_when_its_predictions_are_there(tmp_path):
    runs, target = tmp_path / 'runs', tmp_path / 'results'
    finished_runs.write_lm(runs)
    (finished_runs.write_classifier(runs, 'adv', 1, 93) / 'predictions.csv').unlink()
    finished_runs.write_classifier(runs, 'spgd', 1, 93)
    assert collect.collect(str(runs), str(tmp_path / 'corpus'), str(target)) == [
        'lm_seed1', 'spgd_seed1']


def test_plots_are_kept_but_no_picture_of_a_review(collected):
    assert sorted(str(path.relative_to(collected)) for path in collected.rglob('*')
                  if path.suffix in ('.png', '.html')) == [
        'figures/training_curves.png', 'grid_search/adv_xi_var.png']


def test_no_path_of_the_machine_is_collected(collected, tmp_path):
    for path in collected.rglob('*'):
        if path.is_file():
            content = path.read_bytes()
            if path.suffix == '.gz':
                content = gzip.decompress(content)
            assert str(tmp_path).encode() not in content, path
    assert json.loads((collected / 'adv_seed1/args.json').read_text())['out'] == 'RUNS/adv_seed1'


def test_runs_of_another_checkout(results_folder, tmp_path):
    """Their files name places relative to that checkout, and are collected from this one."""
    run = results_folder / 'adv_seed1'
    flags = json.loads((run / 'args.json').read_text())
    (run / 'args.json').write_text(json.dumps({
        **flags, 'out': 'runs/there/adv_seed1', 'data_dir': 'data/there',
        'pretrained_model': 'runs/there/lm_seed1/best.model'}))
    path = results_folder / 'perplexity_seed1' / 'perplexity.json'
    path.write_text(json.dumps({**json.loads(path.read_text()),
                                'lm': 'runs/there/lm_seed1/best.model'}))
    collect.collect(str(results_folder), str(tmp_path / 'corpus'), str(tmp_path / 'target'))
    taken = json.loads((tmp_path / 'target' / 'adv_seed1' / 'args.json').read_text())
    assert [taken[name] for name in ('out', 'data_dir', 'pretrained_model')] == [
        'RUNS/adv_seed1', 'DATA_DIR', 'RUNS/lm_seed1/best.model']
    taken = json.loads((tmp_path / 'target' / 'perplexity_seed1' / 'perplexity.json').read_text())
    assert taken['lm'] == 'RUNS/lm_seed1/best.model'


def test_commands_are_kept_with_their_times(collected):
    assert (collected / 'commands.txt').read_text() == (
        '# adv_seed1: finished 2026-11-16 05:00 UTC after 61 s\n'
        'python -m interpretable_adv.train --data_dir DATA_DIR --out RUNS/adv_seed1\n')


def test_commands_of_another_machine_stay(collected, results_folder, tmp_path):
    """Those of a job that was run again are replaced."""
    record = {'commands': ['python a', 'python b'], 'seconds': 5}
    (results_folder / 'jobs' / 'adv_seed1.json').unlink()
    for name, when in [('iadv_seed1', '04:00'), ('spgd_seed1', '06:00'), ('spgd_seed1', '07:00')]:
        (results_folder / 'jobs' / f'{name}.json').write_text(json.dumps(
            {**record, 'finished': f'2026-11-16 {when} UTC'}))
        collect.collect(str(results_folder), str(tmp_path / 'corpus'), str(collected))
    assert (collected / 'commands.txt').read_text() == (
        '# iadv_seed1: finished 2026-11-16 04:00 UTC after 5 s (interrupted commands not counted)\n'
        'python a\npython b\n'
        '# adv_seed1: finished 2026-11-16 05:00 UTC after 61 s\n'
        'python -m interpretable_adv.train --data_dir DATA_DIR --out RUNS/adv_seed1\n'
        '# spgd_seed1: finished 2026-11-16 07:00 UTC after 5 s (interrupted commands not counted)\n'
        'python a\npython b\n')


def test_predictions_survive_and_are_the_same_bytes_again(collected, results_folder):
    before = results.find(str(results_folder))['adv'][0]
    after = results.find(str(collected))['adv'][0]
    assert all(map(np.array_equal, before.predictions, after.predictions))
    path = results_folder / 'adv_seed1' / 'predictions.csv'
    assert collect.compact_predictions(path) == collect.compact_predictions(path)


@pytest.mark.parametrize('text, expected', [
    ('experiments/runs/small/adv', 'RUNS/adv'), ('experiments/runs/small', 'RUNS'),
    ('adv=experiments/runs/small/a,iadv=experiments/runs/small/b', 'adv=RUNS/a,iadv=RUNS/b'),
    ('experiments/runs/smaller', 'experiments/runs/smaller'), ('data', 'DATA_DIR'),
    ('metadata', 'metadata'), (3, 3)])
def test_paths_are_replaced_as_a_whole(text, expected):
    places = {'experiments/runs/small': 'RUNS', 'data': 'DATA_DIR'}
    assert collect.without_places(text, places) == expected


def test_nothing_to_collect(tmp_path):
    with pytest.raises(UserError, match='no finished run'):
        collect.collect(str(tmp_path), 'data', str(tmp_path / 'results'))
