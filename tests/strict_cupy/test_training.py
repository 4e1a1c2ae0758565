"""Training on the stand-in gives what NumPy gives, and leaves the host alone in the step."""
import json

import cupy
import numpy as np
import pytest
import strict_cupy

from interpretable_adv import evaluate, train, updaters
from interpretable_adv.runs import checkpoints

METHODS = ['baseline', 'adv', 'iadv', 'vat', 'ivat', 'spgd']


def run(corpus, out, method, *more):
    train.main(['--data_dir', str(corpus), '--out', str(out), '--method', method, '--lower', '0',
                '--ignore_unk', '1', '--emb_dim', '8', '--hidden_dim', '10',
                '--hidden_cls_dim', '5', '--batchsize', '8', '--batchsize_semi', '8',
                '--n_epoch', '2', '--nn_k', '4', '--xi_var', '5', '--log_steps', '1',
                '--progress', 'off', *map(str, more)])
    return steps(out)


def steps(out):
    with open(out / 'steps.jsonl', encoding='utf-8') as stream:
        return [json.loads(line) for line in stream]


def assert_same_steps(got, expected, tolerance=1e-5):
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected):
        assert ours.keys() == theirs.keys()
        for name in ours:
            assert ours[name] == pytest.approx(theirs[name], abs=tolerance), (ours['step'], name)


@pytest.fixture
def counts(monkeypatch):
    """What crosses between host and device, by step."""
    counts = []

    def counted(updater, update_core=updaters.BaselineUpdater.update_core):
        with strict_cupy.count_transfers() as count:
            update_core(updater)
        counts.append(count)

    monkeypatch.setattr(updaters.BaselineUpdater, 'update_core', counted)
    return counts


@pytest.mark.parametrize('method', METHODS)
def test_losses_with_dropout_and_steps_that_wait_for_nothing(corpus, tmp_path, counts, method):
    with strict_cupy.shared_random_stream():
        got = run(corpus, tmp_path / 'cupy', method, '--gpu', 0)
    assert len(counts) == 6
    for count in counts:
        assert count.to_host == []
        # Ids and labels once per batch, whatever number of passes they go through.
        sent = [place for place in count.to_device if 'updaters.py' in place]
        assert len(sent) == (3 if 'vat' in method else 2), sent
    assert_same_steps(got, run(corpus, tmp_path / 'numpy', method))


@pytest.mark.parametrize('method', ['vat', 'spgd'])
def test_resumed_run_ends_where_an_undisturbed_one_does(corpus, tmp_path, method):
    whole = run(corpus, tmp_path / 'whole', method, '--gpu', 0)
    flags = ('--gpu', 0, '--snapshot_steps', 2)
    first = run(corpus, tmp_path / 'parts', method, *flags, '--n_epoch', 1)
    assert first == whole[:3]
    cupy.random.seed(0)
    np.random.seed(0)
    assert run(corpus, tmp_path / 'parts', method, *flags, '--resume') == whole
    ends = [checkpoints.read_arrays(tmp_path / name / 'best.model') for name in ('parts', 'whole')]
    for name in ends[0]:
        np.testing.assert_array_equal(ends[0][name], ends[1][name], err_msg=name)


def test_model_trained_on_the_device_is_read_and_evaluated_anywhere(corpus, tmp_path):
    run(corpus, tmp_path, 'adv', '--gpu', 0)
    tables = []
    for gpu in (-1, 0):
        path = tmp_path / f'predictions{gpu}.csv'
        evaluate.main(['--model', str(tmp_path / 'best.model'), '--data_dir', str(corpus),
                       '--lower', '0', '--ignore_unk', '1', '--gpu', str(gpu),
                       '--predictions', str(path)])
        tables.append(np.loadtxt(path, delimiter=',', skiprows=1))
    assert len(tables[0]) == 10
    np.testing.assert_allclose(tables[0], tables[1], atol=1e-5)
