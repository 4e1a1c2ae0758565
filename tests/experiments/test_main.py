"""`python -m experiments` as a user calls it."""
import os
import subprocess
import sys

import pytest

from experiments.__main__ import main
from interpretable_adv.errors import UserError


def call(root, folder, *arguments, **environment):
    return subprocess.run(
        [sys.executable, '-m', 'experiments', *arguments], cwd=folder, capture_output=True,
        text=True, env={**os.environ, 'PYTHONPATH': str(root), **environment})


def test_dry_run_of_the_papers_size(root, tmp_path):
    done = call(root, tmp_path, 'all', '--dry-run', PRESET='paper', SEEDS='1 2', GPU='0',
                RUNS='my runs', DATA_DIR='data')
    assert done.returncode == 0, done.stderr
    *commands, last = done.stdout.splitlines()
    trainings = [line for line in commands if 'interpretable_adv.train' in line]
    assert len(trainings) == 10 and all('--preset paper' in line for line in trainings)
    assert all(line.startswith('python -m ') for line in commands)
    assert f"--out '{tmp_path}/my runs/spgd_seed2' --gpu 0" in done.stdout  # relative to the caller
    assert last == (f'# {len(commands)} commands: 0 finished, 0 to resume, '
                    f'{len(commands)} to start')
    assert not list(tmp_path.iterdir())


def test_only_some_jobs_with_what_they_need(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    main(['all', '--preset', 'small', '--dry_run', '--runs', 'runs', '--data_dir', 'data',
          '--only', 'predictions_spgd_seed2 figure1'])
    *commands, last = capsys.readouterr().out.splitlines()
    assert [line.split()[2] for line in commands] == [
        'interpretable_adv.data', 'lm.pretrain', 'interpretable_adv.train',
        'interpretable_adv.evaluate', 'figures.figure1']
    assert last == '# 5 commands: 0 finished, 0 to resume, 5 to start'


@pytest.mark.parametrize('arguments, message', [
    (['table9'], 'invalid choice'), (['table3', '--preset', 'huge'], 'preset'),
    (['table3', 'n_epoch=3'], 'section.flag=value'), (['table3', 'train.n_epochs=3'], 'n_epochs'),
    (['table3', '--seeds', 'one'], 'seeds'), (['table3', '--jobs', '0'], 'jobs'),
    (['table3', '--archive', 'nowhere.tar.gz'], 'no archive nowhere.tar.gz'),
    (['table3', '--data_dir', 'data', 'train.sparsity=2'], 'sparsity'), ([], 'target'),
    (['sparsity'], 'lists no σ to compare'), (['table3', '--only', 'spgd_seed7'], 'spgd_seed1'),
    (['collect', '--only', 'spgd_seed1'], 'not with collect')])
def test_mistakes_are_told(tmp_path, monkeypatch, arguments, message):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=message):
        main(arguments)


def test_a_mistake_is_one_line(root, tmp_path):
    done = call(root, tmp_path, 'table3', 'train.n_epochs=3')
    assert done.returncode == 2
    assert done.stderr.startswith('error: ') and done.stderr.count('\n') == 1


@pytest.mark.slow
def test_all_tables_and_figures_of_a_tiny_experiment(root, tmp_path):
    arguments = ['all', '--preset', 'toy', '--runs', 'runs', '--data_dir', 'corpus', '--seeds', '3',
                 'train.n_epoch=1', 'baseline.n_epoch=1', 'pretrained.n_epoch=1', 'lm.epoch=1',
                 'class_lm.epoch=1', 'perplexity.n_samples=20', 'sweep.n_samples=10',
                 'sweep.sweep_epsilon=1', 'sweep.sweep_budget=0.1', 'robustness.n_samples=10',
                 'analysis.limit=2']
    first = call(root, tmp_path, *arguments)
    assert first.returncode == 0, first.stderr + first.stdout
    for title in ('Table 1: adversarial quality', 'Table 2: dataset information',
                  'Table 3: test accuracy (%)', 'Differences in test accuracy', 'equal strength',
                  'Table 4: accuracy under attack (%)', 'Differences in accuracy under attack',
                  'Label invariance of the texts', 'The class-conditional language model'):
        assert title in first.stdout
    figures = {path.name for path in (tmp_path / 'runs' / 'figures').iterdir()}
    assert {'figure1.png', 'training_curves.png', 'gap_accuracy.png', 'label_invariance.png',
            'report.html'} <= figures
    assert len([name for name in figures if name.startswith('review_')]) >= 4  # PNG and PDF

    second = call(root, tmp_path, *arguments)
    assert second.returncode == 0
    assert second.stdout.strip() == first.stdout[first.stdout.index('Table 1: '):].strip()

    third = call(root, tmp_path, *arguments, 'adv.xi_var=2')
    assert third.returncode == 2
    assert 'adv_seed3 was made with other settings (xi_var was 1.0 and is 2.0)' in third.stderr
