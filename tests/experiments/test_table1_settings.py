"""Table 1 measures the attack that each classifier was trained with, through the table scripts."""
import json
import os
import shutil
import subprocess

import pytest

from lm import perplexity

SPGD = {'spgd_toward_only': 1, 'sparsity_rank': 'projected', 'mask_eos': 1, 'nn_k': 4,
        'sparsity': 0.5, 'spgd_iters': 2}
PRESET = """
[plan]
dataset = toy
seeds = 1
methods = iadv spgd

[lm]
n-units-word = 8
unit = 8
epoch = 1

[train]
preset = paper
emb_dim = 8
hidden_dim = 8
n_epoch = 1
batchsize = 100

[iadv]
nn_k = 6
xi_var = 2

[spgd]
xi_var = 3
""" + ''.join(f'{name} = {value}\n' for name, value in SPGD.items()) + """
[perplexity]
n_samples = 25
"""


@pytest.fixture(scope='module')
def runs(root, tmp_path_factory):
    folder = tmp_path_factory.mktemp('table1')
    (folder / 'tiny.ini').write_text(PRESET, encoding='utf-8')
    done = subprocess.run(
        ['bash', str(root / 'experiments' / 'table1.sh'), '--preset', str(folder / 'tiny.ini'),
         '--runs', str(folder / 'runs'), '--data_dir', str(folder / 'data')],
        capture_output=True, text=True, cwd=folder, env={**os.environ, 'JOBS': '2'}, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder / 'runs'


def rows_of(path):
    return {row['method']: row for row in json.loads(path.read_text(encoding='utf-8'))['rows']}


def measure(runs, model, *flags):
    """Table 1's row of SPGD on a model, by a command of our own."""
    out = runs.parent / 'direct.json'
    perplexity.main([
        '--lm', str(runs / 'lm_seed1' / 'best.model'), '--model', str(model),
        '--data_dir', str(runs.parent / 'data'), '--methods', 'spgd', '--n_samples', '25',
        '--json', str(out), *flags])
    return rows_of(out)['spgd']


def numbers(row):
    return [row['norm_per_word'], row['words_moved'],
            *(values['gap'] for values in row['scores'].values())]


def test_each_classifier_is_attacked_the_way_it_was_trained(runs):
    rows = rows_of(runs / 'perplexity_seed1' / 'perplexity.json')
    trained = json.loads((runs / 'spgd_seed1' / 'args.json').read_text(encoding='utf-8'))
    for name, value in {**SPGD, 'xi_var': 3}.items():
        assert trained[name] == rows['spgd']['settings'][name] == value
    assert rows['iadv']['settings']['nn_k'] == 6 and rows['iadv']['epsilon'] == 2
    assert 'sparsity' not in rows['iadv']['settings']


def test_the_command_names_the_trained_classifiers_and_overrides_nothing(runs):
    command, = json.loads((runs / 'jobs' / 'perplexity_seed1.json').read_text())['commands']
    assert f'spgd={runs}/spgd_seed1/best.model' in command
    assert not [name for name in SPGD if f'--{name}' in command]
    printed = (runs / 'jobs' / 'perplexity_seed1.txt').read_text(encoding='utf-8')
    attack, = (line for line in printed.splitlines() if line.startswith('spgd: '))
    for name, value in SPGD.items():
        assert f'{name} {value}' in attack


def test_the_numbers_are_those_of_that_attack(runs, tmp_path):
    row = rows_of(runs / 'perplexity_seed1' / 'perplexity.json')['spgd']
    bare = tmp_path / 'best.model'  # without args.json beside it
    shutil.copy(runs / 'spgd_seed1' / 'best.model', bare)
    flags = [part for name, value in SPGD.items() for part in (f'--{name}', str(value))]
    again = measure(runs, bare, *flags, '--epsilon', '3')
    assert numbers(again) == pytest.approx(numbers(row), rel=1e-4)
    # Each setting matters here: without it the numbers are others.
    for name in SPGD:
        position = flags.index(f'--{name}')
        others = flags[:position] + flags[position + 2:]
        other = measure(runs, bare, *others, '--epsilon', '3')
        assert numbers(other) != pytest.approx(numbers(row), rel=1e-3), name
