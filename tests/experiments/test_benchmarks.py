"""The benchmarks at sizes that say nothing about speed: that they run, compare and report."""
import json
import re
from types import SimpleNamespace

import numpy as np
import pytest

from experiments.benchmarks import (
    __main__,
    batches,
    language_model_benchmark,
    lstm_benchmark,
    neighbors_benchmark,
    optimizer_benchmark,
    paper_size,
    products_benchmark,
    step_benchmark,
    timing,
    training_profile,
)
from interpretable_adv import cli
from interpretable_adv.data import __main__ as prepare
from interpretable_adv.nn import kernels


def test_interleave_takes_turns():
    calls = []
    times = timing.interleave(
        {'a': lambda: calls.append('a'), 'b': lambda: calls.append('b') or 0.25}, 2)
    assert calls == ['a', 'b'] * 3
    assert times['b'] == [0.25, 0.25] and len(times['a']) == 2
    assert timing.ratio([2, 9, 4], [1, 1, 2]) == 2


def test_stock_chainer_runs_with_ordinary_memory(monkeypatch):
    settings = []
    monkeypatch.setattr(timing.memory, 'keep_freed_memory', lambda: settings.append('ours') or 1)
    monkeypatch.setattr(timing.ctypes, 'CDLL', lambda name: SimpleNamespace(
        mallopt=lambda option, value: settings.append('ordinary')))
    timing.interleave({timing.STOCK: lambda: settings.append('stock runs'),
                       'ours': lambda: settings.append('ours runs')}, 2, warm_up=0)
    once = ['ours', *['ordinary'] * 4, 'stock runs', 'ours', 'ours runs', 'ours runs']
    assert settings == 2 * once


def test_profile_of_a_training_run(tmp_path, monkeypatch, capsys):
    prepare.main(['prepare', '--dataset', 'toy', '--data_dir', str(tmp_path / 'toy')])
    monkeypatch.setattr(training_profile, 'SETTINGS', (
        '--preset', 'paper', '--method', 'spgd', '--emb_dim', '16', '--hidden_dim', '16',
        '--batchsize', '32', '--n_epoch', '1'))
    training_profile.main(['--data_dir', str(tmp_path / 'toy'), '--steps', '3',
                           '--out', str(tmp_path / 'out')])
    text = (tmp_path / 'out' / 'profile.md').read_text(encoding='utf-8')
    assert text in capsys.readouterr().out and '(96 train, ' in text
    shares = [float(share) for share in re.findall(r'([\d.]+)%', text)]
    products, compiled, random, together, *rest = shares
    assert (compiled > 0) == kernels.available and products + compiled > 0
    assert together == pytest.approx(products + compiled + random, abs=0.2)
    assert together + sum(rest) == pytest.approx(100, abs=1)


def test_time_and_memory_of_training(tmp_path, monkeypatch, capsys):
    prepare.main(['prepare', '--dataset', 'toy', '--data_dir', str(tmp_path / 'toy')])
    monkeypatch.setattr(paper_size, 'KINDS', {'language model': (None, 4)})
    monkeypatch.setattr(paper_size, 'SIZE', ())
    paper_size.main(['--data_dir', str(tmp_path / 'toy'), '--out', str(tmp_path)])
    text = (tmp_path / 'paper_size.md').read_text(encoding='utf-8')
    assert text in capsys.readouterr().out
    row = text.splitlines()[-1].strip('| ').split(' | ')
    assert row[:2] == ['language model', '4']
    assert float(row[2].removesuffix(' s')) >= 0 and float(row[8].removesuffix(' MB')) > 50
    assert 0 < float(row[9].removesuffix('%')) < 100


def test_searching_neighbours_is_part_of_a_step(tmp_path):
    prepare.main(['prepare', '--dataset', 'toy', '--data_dir', str(tmp_path / 'toy')])
    arguments = '--data_dir', str(tmp_path / 'toy'), '--hidden_dim', '8', '--batchsize', '100'
    found = {kind: paper_size.measure(kind, 3, arguments) for kind in ('AdvT', 'SPGD')}
    assert found['AdvT']['search'] == 0 < found['SPGD']['search'] < sum(found['SPGD']['steps'])
    assert len(found['SPGD']['steps']) == 3 and found['SPGD']['steps_per_epoch'] > 3


def test_lengths_are_those_of_reviews():
    lengths = batches.real_lengths(np.random.RandomState(0), 20000)
    assert 235 < lengths.mean() < 255 and lengths.min() >= 12  # IMDB's mean is 243.5
    assert batches.cut_lengths(np.random.RandomState(0), 50).max() == 50


def test_the_stock_step_is_ours():
    step_benchmark.same_first_loss()


def test_the_stock_language_model_is_ours():
    language_model_benchmark.same_loss()


def test_differences_are_noticed():
    with pytest.raises(RuntimeError, match='differ'):
        lstm_benchmark.check([np.ones(3)], [np.array([1, 1, 1.01])], 1e-4)


@pytest.fixture(scope='module')
def parts():
    """Tiny measurements of most parts, and made-up ones of what is slow even so."""
    steps = {'part': 'Training step', 'case': 'adv', 'times': {'ours': [1.0]},
             'ratios': {'stock Chainer / ours': 21.0}}
    return {
        'products': products_benchmark.measure(
            1, {'small': (4, 5, 6, ''), 'a': (3, 4, 5, 'a'), 'b': (3, 4, 5, 'b')})
        if kernels.available else [],
        'lstm': lstm_benchmark.measure(None, 1, {'H=8, T≤5': (8, 5, True)}),
        'adam': optimizer_benchmark.measure(1, n_vocab=300),
        'neighbors': neighbors_benchmark.measure(None, 1, 20, 400, 10),
        'steps': [steps], 'lm': [],
        'memory': {'neighbors': neighbors_benchmark.peak_memory(400), 'step': 7000.0}}


def test_report(parts, tmp_path, capsys):
    measurement = {'parts': parts, 'date': 'today', 'loads': {'lstm': [1.0, 2.0]},
                   'machine': __main__.machine(None)}
    __main__.write_report(measurement, tmp_path)
    text = (tmp_path / 'results.md').read_text(encoding='utf-8')
    assert '| Training step | adv | stock Chainer / ours | 21.00 |' in text
    assert '| peak memory, MB | 7000 |' in text
    assert 20 < float(re.search(r'66,825 .* peak memory, MB \| (\d+)', text)[1]) < 600
    assert {path.name for path in tmp_path.iterdir()} == {'results.md'}
    assert text in capsys.readouterr().out
    json.dumps(measurement)


def test_unknown_parts_are_refused(tmp_path):
    with pytest.raises(cli.UserError, match='speed'):
        __main__.main(['--parts', 'speed', '--out', str(tmp_path)])
