"""The Slurm scripts, run as Slurm would run them but on this machine."""
import json
import os
import subprocess

import pytest


def run(root, script, *arguments, **environment):
    environment = {key: str(value) for key, value in environment.items()}
    return subprocess.run(
        ['bash', str(root / 'experiments' / 'slurm' / script), *map(str, arguments)],
        env=dict(os.environ, SLURM_SUBMIT_DIR=str(root), **environment), capture_output=True,
        text=True)


def commands(done, program):
    assert done.returncode == 0, done.stderr
    return [line for line in done.stdout.splitlines() if f' -m {program} ' in line]


@pytest.fixture
def table3(root, tmp_path):
    """The trainings of Table 3."""
    done = subprocess.run(
        ['bash', str(root / 'experiments' / 'table3.sh'), '--dry-run'], capture_output=True,
        text=True, env=dict(os.environ, PRESET='paper', GPU='0', JOBS='1', RUNS=str(tmp_path)))
    return commands(done, 'interpretable_adv.train')


def test_array_trains_five_models_with_five_seeds(root, table3, tmp_path):
    trained = []
    for task in (7, 24):
        done = run(root, 'models.sh', '--dry-run', SLURM_ARRAY_TASK_ID=task, RUNS=tmp_path)
        trained += commands(done, 'interpretable_adv.train')
    by_model = sorted(table3, key=lambda line: [
        'baseline_', 'pretrained_', 'adv_', 'iadv_', 'spgd_'].index(
            line.rpartition('/')[2].partition('_')[0] + '_'))
    assert len(table3) == 25
    assert trained == [by_model[task] for task in (7, 24)]
    assert all('--gpu 0' in line for line in trained)


def test_preparation_trains_the_language_model(root, table3, tmp_path):
    done = run(root, 'prepare.sh', '--dry-run', RUNS=tmp_path)
    assert len(commands(done, 'lm.pretrain')) == 1
    classifier, = commands(done, 'interpretable_adv.train')
    assert classifier in table3 and 'pretrained_seed1' in classifier


@pytest.mark.slow
def test_multi_node_job(root, golden, tmp_path):
    flags = ('interpretable_adv.train', '--data_dir', golden / 'synthetic' / 'mini_synthetic',
             '--out', tmp_path, '--emb_dim', 6, '--hidden_dim', 6, '--n_epoch', 1)
    environment = {'COMMUNICATOR': 'naive', 'GPU': -1, 'SLURM_NTASKS': 2}
    done = run(root, 'multi_node.sh', *flags, **environment)
    assert done.returncode == 0, done.stderr
    assert ', 2 processes' in done.stdout
    done = run(root, 'multi_node.sh', *flags, '--n_epoch', 2, **environment)
    assert done.returncode == 0, done.stderr
    assert 'resuming after step' in done.stdout
    assert json.loads((tmp_path / 'result.json').read_text())['n_epoch'] == 2


def test_multi_node_job_without_a_program(root):
    done = run(root, 'multi_node.sh', SLURM_NTASKS=1)
    assert done.returncode == 2 and done.stderr.startswith('error: say what to run')
