"""evaluate.py: predictions of a trained model."""
import csv

import numpy as np
import pytest

from interpretable_adv import data, evaluate, nets, train
from interpretable_adv.errors import UserError


@pytest.fixture(scope='module')
def run(golden, tmp_path_factory):
    corpus = golden / 'synthetic' / 'mini_synthetic'
    out = tmp_path_factory.mktemp('run')
    train.main(['--data_dir', str(corpus), '--out', str(out), '--lower', '0', '--ignore_unk', '1',
                '--emb_dim', '6', '--hidden_dim', '7', '--n_epoch', '1', '--progress', 'off'])
    return corpus, out


@pytest.mark.parametrize('split', ['train', 'dev', 'test'])
def test_predictions_are_written(run, tmp_path, capsys, split):
    corpus_dir, out = run
    path = tmp_path / 'predictions.csv'
    evaluate.main(['--model', str(out / 'best.model'), '--data_dir', str(corpus_dir),
                   '--split', split, '--predictions', str(path)])
    with open(path, newline='') as stream:
        rows = list(csv.DictReader(stream))
    corpus = data.load(corpus_dir)  # the flags of training, found in args.json
    expected = getattr(corpus, split)
    assert list(rows[0]) == ['index', 'label', 'prediction', 'logit_0', 'logit_1']
    assert [int(row['index']) for row in rows] == list(range(len(expected.labels)))
    assert [int(row['label']) for row in rows] == expected.labels.tolist()
    model = nets.load_classifier(out / 'best.model', corpus.words)
    logits = nets.predict(model, expected.sequences)
    np.testing.assert_array_equal(
        np.float32([[row['logit_0'], row['logit_1']] for row in rows]), logits)
    assert [int(row['prediction']) for row in rows] == logits.argmax(axis=1).tolist()
    accuracy = 100 * np.mean(logits.argmax(axis=1) == expected.labels)
    assert f'{split}: {accuracy:.2f} %' in capsys.readouterr().out


@pytest.mark.parametrize('change, part', [
    (['--lower', '1', '--min_count', '3'], 'words, the corpus has'),
    (['--model', 'nothing.model'], 'no such file'),
    (['--split', 'all'], '--split'),
    (['--predictions', 'nowhere/file.csv'], 'cannot write')])
def test_bad_input_is_one_line(run, tmp_path, monkeypatch, change, part):
    corpus_dir, out = run
    monkeypatch.chdir(tmp_path)
    with pytest.raises(UserError, match=part):
        evaluate.main(['--model', str(out / 'best.model'), '--data_dir', str(corpus_dir),
                       *change])


def test_a_run_stands_for_its_model(run, capsys):
    corpus_dir, out = run
    for model in (out, out / 'best.model'):
        evaluate.main(['--model', str(model), '--data_dir', str(corpus_dir)])
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
