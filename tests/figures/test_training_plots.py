import importlib.util
import json
import sys

import numpy as np
import pytest

from interpretable_adv import cli
from interpretable_adv.errors import UserError


def load(root, name):
    spec = importlib.util.spec_from_file_location(name, root / 'figures' / f'{name}.py')
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope='module')
def curves(root):
    return load(root, 'training_curves')


@pytest.fixture(scope='module')
def gaps(root):
    path = list(sys.path)
    yield load(root, 'gap_accuracy')
    sys.path[:] = path


def write_run(folder, epochs, offset=0.0, names=('main/loss', 'dev/main/accuracy'), result=None):
    folder.mkdir(parents=True)
    rows = [{'epoch': epoch, 'iteration': 10 * epoch, names[0]: 1 / epoch + offset,
             names[1]: 50 + 5 * epoch + offset} for epoch in range(1, epochs + 1)]
    (folder / 'log').write_text(json.dumps(rows))
    if result is not None:
        (folder / 'result.json').write_text(json.dumps({'test_accuracy': result}))
    return str(folder)


# Training curves ------------------------------------------------------------------------------

def test_lines_are_the_logs_values(tmp_path, curves):
    runs = [write_run(tmp_path / 'spgd_seed1', 4), write_run(tmp_path / 'adv_seed1', 3),
            write_run(tmp_path / 'spgd_seed2', 5, offset=1.0)]
    figure = curves.make_figure(curves.collect(runs, 'dev'))
    loss, accuracy = figure.axes
    lines = {line.get_label(): line for line in loss.lines if not line.get_label().startswith('_')}
    assert list(lines) == ['AdvT-Text', 'SPGD (mean of 2)']  # the paper's order
    np.testing.assert_allclose(lines['AdvT-Text'].get_xydata(), [(1, 1), (2, 1 / 2), (3, 1 / 3)])
    np.testing.assert_allclose(lines['SPGD (mean of 2)'].get_ydata(),
                               [1 / epoch + 0.5 for epoch in (1, 2, 3, 4)])
    assert len(loss.lines) == 2 + 2  # and the two runs of SPGD
    lines = {line.get_label(): line for line in accuracy.lines}
    np.testing.assert_allclose(lines['AdvT-Text'].get_ydata(), [55, 60, 65])
    assert len({line.get_color() for line in lines.values()}) == 2


@pytest.mark.parametrize('names', [('main/loss', 'dev/main/accuracy'), ('loss', 'dev_accuracy'),
                                   ('main/loss', 'validation/main/accuracy')])
def test_names_that_logs_use(tmp_path, curves, names):
    found = curves.collect([write_run(tmp_path / 'adv_seed3', 2, names=names)], 'dev')
    assert found['adv']['accuracy'][0][1].tolist() == [55, 60]


def test_one_epoch_and_unknown_methods_are_drawn(tmp_path, curves):
    runs = [write_run(tmp_path / name, 1) for name in ('mine', 'yours', 'baseline_seed1')]
    labels = [line.get_label() for line in
              curves.make_figure(curves.collect(runs, 'dev')).axes[0].lines]
    assert labels == ['Baseline', 'mine', 'yours']


@pytest.mark.parametrize('content, message', [
    (None, 'cannot read'), ('', 'damaged'), ('{}', 'not a list'),
    ('[]', 'no finished epoch'), ('[{"epoch": 1}]', 'no main/loss'),
    ('[{"epoch": 1, "main/loss": 1}]', 'no dev/main/accuracy')])
def test_bad_logs_are_one_line(tmp_path, capsys, curves, content, message):
    if content is not None:
        (tmp_path / 'log').write_text(content)
    with pytest.raises(SystemExit) as caught:
        cli.run(curves.main, [str(tmp_path), '--out', str(tmp_path / 'out')])
    assert caught.value.code == 2 and not (tmp_path / 'out').exists()
    error = capsys.readouterr().err
    assert message in error and error.count('\n') == 1


def test_command_writes_both_files_deterministically(tmp_path, curves):
    run = write_run(tmp_path / 'adv_seed1', 3)
    for name in 'ab':
        curves.main([run, '--out', str(tmp_path / name)])
    for kind in ('png', 'pdf'):
        first, second = ((tmp_path / name / f'training_curves.{kind}').read_bytes()
                         for name in 'ab')
        assert first == second


# Gap against accuracy -------------------------------------------------------------------------

def write_table(path, folders, gap=1.0):
    rows = [{'method': 'none', 'model': 'x/best.model', 'scores': {}}]
    rows += [{'method': method, 'model': f'{folder}/best.model', 'epsilon': 5.0, 'scores': {
        'continuous': {'gap': gap + number, 'flipped': 10.0 * number},
        'nearest': {'gap': 7.0, 'flipped': 1.0}}}
        for number, (method, folder) in enumerate(folders.items())]
    path.write_text(json.dumps({'rows': rows}))
    return str(path)


def test_points_pair_gap_and_accuracy(tmp_path, gaps):
    folders = {method: write_run(tmp_path / f'{method}_seed1', 1, result=accuracy)
               for method, accuracy in (('adv', 90.0), ('spgd', 91.0))}
    table = write_table(tmp_path / 't.json', folders)
    points = gaps.collect([table], 'continuous')
    assert [tuple(point) for point in points] == [('adv', 90.0, 1.0, 0.0),
                                                  ('spgd', 91.0, 2.0, 10.0)]
    axes = gaps.make_figure(points, show_paper=True).axes[0]
    drawn = {line.get_label(): line.get_xydata()[0].tolist() for line in axes.lines
             if not line.get_label().startswith('_')}
    assert drawn['AdvT-Text, 0 % flipped'] == [90.0, 1.0]
    assert drawn['SPGD, 10 % flipped'] == [91.0, 2.0]
    assert drawn['SPGD, paper'] == [93.54, 1.09]
    assert [point.gap for point in gaps.collect([table], 'nearest')] == [7.0, 7.0]


def test_the_points_have_the_width_of_the_figure(gaps):
    points = [gaps.Point(method, 90.0 + number, 1.0 * number, 12.3)
              for number, method in enumerate(('adv', 'iadv', 'spgd', 'adv_sparse', 'random'))]
    figure = gaps.make_figure([*points, *points], show_paper=True)
    figure.draw_without_rendering()
    assert figure.axes[0].get_position().width > 0.8
    legend = figure.legends[0].get_window_extent()
    assert legend.x0 >= 0 and legend.x1 <= figure.bbox.width


def test_several_seeds_have_a_mean_and_runs_may_have_moved(tmp_path, gaps):
    tables = []
    for seed, accuracy in ((1, 90.0), (2, 92.0)):
        write_run(tmp_path / f'kept/adv_seed{seed}', 1, result=accuracy)
        tables.append(write_table(tmp_path / f't{seed}.json', {'adv': f'gone/adv_seed{seed}'},
                                  gap=float(seed)))
    with pytest.raises(UserError, match='--runs'):
        gaps.collect(tables, 'continuous')
    points = gaps.collect(tables, 'continuous',
                          [str(tmp_path / f'kept/adv_seed{seed}') for seed in (1, 2)])
    axes = gaps.make_figure(points).axes[0]
    line = next(line for line in axes.lines if 'mean of 2' in str(line.get_label()))
    assert line.get_xydata()[0].tolist() == [91.0, 1.5]


@pytest.mark.parametrize('content, message', [
    (None, 'cannot read'), ('{', 'damaged'), ('{}', 'lacks rows'),
    ('[]', 'not an object'), ('{"rows": []}', 'measures no attack'),
    ('{"rows": [{"method": "adv", "model": "m", "scores": {}}]}', 'scores lacks continuous')])
def test_bad_tables_are_one_line(tmp_path, capsys, gaps, content, message):
    path = tmp_path / 't.json'
    if content is not None:
        path.write_text(content)
    with pytest.raises(SystemExit) as caught:
        cli.run(gaps.main, ['--perplexity', str(path), '--out', str(tmp_path / 'out')])
    assert caught.value.code == 2 and not (tmp_path / 'out').exists()
    error = capsys.readouterr().err
    assert message in error and error.count('\n') == 1


def test_gap_command_writes_both_files(tmp_path, gaps):
    folder = write_run(tmp_path / 'adv_seed1', 1, result=90.0)
    table = write_table(tmp_path / 't.json', {'adv': folder})
    gaps.main(['--perplexity', table, '--out', str(tmp_path / 'out'), '--paper'])
    assert sorted(file.name for file in (tmp_path / 'out').iterdir()) == [
        'gap_accuracy.pdf', 'gap_accuracy.png']
