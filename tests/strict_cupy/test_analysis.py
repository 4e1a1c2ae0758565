"""Analysis and Table 1 on the stand-in: the records and numbers that NumPy gives."""
import json

import numpy as np
import pytest

from interpretable_adv import analysis, train
from lm import perplexity, pretrain

DATA = ['--lower', '0', '--ignore_unk', '1']


@pytest.fixture(scope='module')
def models(corpus, tmp_path_factory):
    """A classifier and a language model of the same words, trained with NumPy."""
    out = tmp_path_factory.mktemp('models')
    train.main(['--data_dir', str(corpus), '--out', str(out / 'classifier'), '--method', 'adv',
                *DATA, '--emb_dim', '6', '--hidden_dim', '7', '--hidden_cls_dim', '4',
                '--n_epoch', '2', '--batchsize', '8', '--alpha', '0.02', '--progress', 'off'])
    pretrain.main(['--data_dir', str(corpus), '--out', str(out / 'lm'), *DATA, '--unit', '7',
                   '--n-units-word', '6', '--batchsize', '4', '--bproplen', '6', '--epoch', '1',
                   '--progress', 'off'])
    return out / 'classifier' / 'best.model', out / 'lm' / 'best.model'


def assert_same(got, expected):
    """Compares nested JSON values, numbers to 1e-5 of their size and then some."""
    assert type(got) is type(expected)
    if isinstance(got, dict):
        assert got.keys() == expected.keys()
        for key in got:
            assert_same(got[key], expected[key])
    elif isinstance(got, list):
        assert len(got) == len(expected)
        for one, other in zip(got, expected):
            assert_same(one, other)
    elif isinstance(got, float):
        assert got == pytest.approx(expected, rel=1e-4, abs=1e-5)
    else:
        assert got == expected


def test_records(corpus, models, tmp_path):
    records = []
    for gpu in (-1, 0):
        path = tmp_path / f'records{gpu}.jsonl'
        analysis.main(['--model', str(models[0]), '--lm', str(models[1]), '--data_dir',
                       str(corpus), *DATA, '--methods', 'adv,iadv,spgd,hotflip,hotflip_greedy',
                       '--nn_k', '4',
                       '--out', str(path), '--gpu', str(gpu), '--progress', 'off'])
        with open(path, encoding='utf-8') as stream:
            records.append([json.loads(line) for line in stream])
    assert len(records[0]) > 3
    assert_same(records[1], records[0])


def test_table_1(corpus, models, tmp_path):
    tables = []
    for gpu in (-1, 0):
        path = tmp_path / f'table{gpu}.json'
        np.random.seed(0)
        perplexity.main(['--model', str(models[0]), '--lm', str(models[1]), '--data_dir',
                         str(corpus), *DATA, '--methods',
                         'none,adv,iadv,spgd,adv_sparse,hotflip,hotflip_greedy',
                         '--nn_k', '4', '--json', str(path), '--gpu', str(gpu)])
        tables.append(json.loads(path.read_text(encoding='utf-8')))
        del tables[-1]['seconds']
    assert_same(tables[1], tables[0])


def test_a_class_conditional_language_model_and_what_it_guides(corpus, models, tmp_path):
    results = []
    for gpu in ('-1', '0'):
        class_lm = tmp_path / f'class_lm{gpu}' / 'best.model'
        pretrain.main(['--data_dir', str(corpus), '--out', str(class_lm.parent), *DATA,
                       '--class_conditional', '1', '--init', str(models[1]), '--batchsize', '4',
                       '--bproplen', '6', '--epoch', '1', '--dropout', '0', '--progress', 'off',
                       '--gpu', gpu])
        out = tmp_path / f'guided{gpu}'
        train.main(['--data_dir', str(corpus), '--out', str(out), '--method', 'spgd', *DATA,
                    '--emb_dim', '6', '--hidden_dim', '7', '--hidden_cls_dim', '4', '--n_epoch',
                    '1', '--batchsize', '8', '--nn_k', '4', '--dropout', '0', '--log_steps', '1',
                    '--class_lm', str(class_lm), '--progress', 'off', '--gpu', gpu])
        classes = json.loads((class_lm.parent / 'result.json').read_text())['classes']
        steps = [json.loads(line) for line in (out / 'steps.jsonl').read_text().splitlines()]
        results.append([classes, steps])
    assert_same(results[1], results[0])
