"""Tests of `python -m interpretable_adv.data`: its flags, and Table 2 as it prints it."""
import json
import os

import pytest

from interpretable_adv import data
from interpretable_adv.data import text_files, toy
from tests.interpretable_adv.data.command import fails, run
from tests.interpretable_adv.data.test_corpus import REVIEWS


@pytest.fixture
def folder(tmp_path):
    text_files.write_upstream(tmp_path / 'data', REVIEWS)
    return tmp_path / 'data'


def test_stats_command(folder, capsys):
    status, out, _ = run(capsys, 'stats', '--data_dir', folder, '--json')
    assert status == 0
    assert json.loads(out) == data.statistics(data.load(folder))
    _, out, _ = run(capsys, 'stats', '--data_dir', folder, '--json', '--lower', '1',
                    '--min_count', '2', '--ignore_unk', '0', '--use_unlabled', '0')
    assert json.loads(out) == data.statistics(
        data.load(folder, lower=True, min_count=2, ignore_unk=False, use_unlabeled=False))


def test_table2_is_laid_out_like_the_papers(folder, capsys):
    status, out, _ = run(capsys, 'stats', '--data_dir', folder)
    assert status == 0
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ['Train', 'Dev', 'Test', 'Unlabeled']
    assert lines[1] == ['Num.', 'examples', '3', '2', '3', '2']
    assert lines[2] == ['Min.', 'sequence', 'length', '4', '2', '1', 'N/A']
    assert lines[3] == ['Max.', 'sequence', 'length', '4', '3', '4', 'N/A']
    assert lines[4] == ['Avg.', 'sequence', 'length', '4.00', '2.50', '2.67', 'N/A']


def test_prepare_toy(tmp_path, capsys):
    status, out, _ = run(capsys, 'prepare', '--dataset', 'toy', '--data_dir', tmp_path / 'toy')
    assert status == 0
    assert 'imdb_unlabled.txt: 3,000 reviews' in out
    assert {path.name: path.read_text().splitlines() for path in (tmp_path / 'toy').iterdir()} == (
        toy.generate())


@pytest.mark.parametrize('argv, message', [
    ([], 'required'),
    (['sort'], 'sort'),
    (['prepare', '--data_dir', 'DIR'], '--dataset'),
    (['prepare', '--dataset', 'toy'], '--data_dir'),
    (['prepare', '--dataset', 'elec', '--data_dir', 'DIR'], 'elec'),
    (['prepare', '--dataset', 'imdb', '--data_dir', 'DIR'], '--archive FILE or --download'),
    (['prepare', '--dataset', 'imdb', '--data_dir', 'DIR', '--archive', 'x', '--download'],
     'either --archive FILE or --download'),
    (['prepare', '--dataset', 'toy', '--data_dir', 'DIR', '--archive', 'x'], '--archive does not'),
    (['prepare', '--dataset', 'own', '--data_dir', 'DIR'], '--train FILE'),
    (['prepare', '--dataset', 'own', '--data_dir', 'DIR', '--seed', 'x'], '--seed'),
    (['stats', '--data_dir', 'DIR'], 'no data folder'),
    (['stats', '--data_dir', 'DIR', '--min_count', '-1'], 'min_count'),
])
def test_wrong_flags(tmp_path, capsys, argv, message):
    argv = [tmp_path / 'absent' if part == 'DIR' else part for part in argv]
    assert message in fails(capsys, *argv)
    assert os.listdir(tmp_path) == []


def test_prepare_into_a_read_only_folder(tmp_path, capsys):
    tmp_path.chmod(0o555)
    try:
        assert 'read-only' in fails(capsys, 'prepare', '--dataset', 'toy', '--data_dir', tmp_path)
        assert os.listdir(tmp_path) == []
    finally:
        tmp_path.chmod(0o755)
