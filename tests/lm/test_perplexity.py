import csv
import json

import numpy as np
import pytest

from interpretable_adv import checkpoints, data
from interpretable_adv.cli import UserError
from interpretable_adv.nets import Classifier
from lm import perplexity, pretrain
from lm.nets import RNNForLM

ALL = 'none,adv,iadv,spgd,adv_sparse,random'


@pytest.fixture(scope='module')
def models(synthetic, tmp_path_factory):
    """A language model as pretraining leaves it, and two classifiers with its word size."""
    folder = tmp_path_factory.mktemp('models')
    pretrain.main(['--data_dir', str(synthetic), '--out', str(folder / 'lm'), '--batchsize', '8',
                   '--bproplen', '10', '--unit', '24', '--n-units-word', '16', '--epoch', '2',
                   '--alpha', '0.01', '--adaptive-softmax'])
    n_vocab = data.load(str(synthetic)).n_vocab
    for seed, name in enumerate(('one.model', 'two.model')):
        np.random.seed(seed)
        checkpoints.save_classifier(
            str(folder / name), Classifier(n_vocab, 16, 20, 8))
    return folder


def _run(models, synthetic, tmp_path, *arguments):
    perplexity.main(['--lm', str(models / 'lm' / 'best.model'), '--data_dir', str(synthetic),
                     '--json', str(tmp_path / 'table.json'), *map(str, arguments)])
    return json.loads((tmp_path / 'table.json').read_text())


def test_the_clean_row_is_what_pretraining_measured(models, synthetic, tmp_path, capsys):
    result = _run(models, synthetic, tmp_path, '--model', models / 'one.model', '--n_samples', 0)
    pretrained = json.loads((models / 'lm' / 'result.json').read_text())
    none = result['rows'][0]
    assert [row['method'] for row in result['rows']] == ['none', 'adv', 'iadv', 'spgd']
    assert [row['epsilon'] for row in result['rows']] == [0, 5, 15, 25]
    assert none['perplexity_clean'] == pytest.approx(
        pretrained['test_perplexity_per_review'], rel=1e-6)
    for score in ('continuous', 'nearest', 'direction'):
        assert none['scores'][score]['gap'] == 0.0
    for row in result['rows'][1:]:
        assert row['scores']['continuous']['gap'] != 0.0
    printed = capsys.readouterr().out
    assert '117.93' in printed and '119.02 (+1.09)' in printed


def test_a_sample_is_drawn_from_the_seed(models, synthetic, tmp_path):
    def indices(*arguments):
        _run(models, synthetic, tmp_path, '--model', models / 'one.model', '--methods', 'none',
             '--score', 'continuous', '--csv', tmp_path / 'reviews.csv', *arguments)
        with open(tmp_path / 'reviews.csv', newline='') as stream:
            return [int(row['index']) for row in csv.DictReader(stream)]

    first = indices('--n_samples', 9, '--seed', 3)
    assert len(set(first)) == 9 and first == sorted(first)
    assert indices('--n_samples', 9, '--seed', 3) == first
    assert indices('--n_samples', 9, '--seed', 4) != first
    assert len(indices('--n_samples', 10 ** 6)) == len(data.load(str(synthetic)).test.labels)


def test_the_reviews_add_up_to_the_table(models, synthetic, tmp_path):
    result = _run(models, synthetic, tmp_path, '--model', models / 'one.model', '--methods', ALL,
                  '--n_samples', 20, '--csv', tmp_path / 'reviews.csv')
    with open(tmp_path / 'reviews.csv', newline='') as stream:
        rows = list(csv.DictReader(stream))
    assert len(rows) == 20 * 6
    for total in result['rows']:
        mine = [row for row in rows if row['method'] == total['method']]
        words = np.array([int(row['words']) for row in mine])
        assert total['words_moved'] == pytest.approx(
            100 * sum(int(row['words_moved']) for row in mine) / words.sum())
        assert total['accuracy_clean'] == pytest.approx(
            100 * np.mean([int(row['right']) for row in mine]))
        for score, values in total['scores'].items():
            nll = (words - 1) * np.log([float(row[f'perplexity_{score}']) for row in mine])
            assert values['perplexity'] == pytest.approx(
                np.exp(nll.sum() / (words - 1).sum()), rel=1e-6)
            assert values['mean_gap'] == pytest.approx(
                np.mean([float(row[f'gap_{score}']) for row in mine]), rel=1e-6, abs=1e-9)
            for name in ('flipped', 'right'):
                assert values['accuracy' if name == 'right' else name] == pytest.approx(
                    100 * np.mean([int(row[f'{name}_{score}']) for row in mine]))


def test_each_method_may_have_its_own_classifier(models, synthetic, tmp_path):
    one, two = models / 'one.model', models / 'two.model'
    arguments = ['--n_samples', 15, '--score', 'continuous', '--methods', 'adv,spgd,random']
    own = _run(models, synthetic, tmp_path, *arguments, '--model', f'adv={one},spgd={two}')
    common = _run(models, synthetic, tmp_path, *arguments, '--model', two)
    assert [row['model'] for row in own['rows']] == [str(one), str(two), str(one)]
    assert own['rows'][1]['scores'] == common['rows'][1]['scores']
    assert own['rows'][0]['scores'] != common['rows'][0]['scores']


def test_sweep(models, synthetic, tmp_path):
    result = _run(models, synthetic, tmp_path, '--model', models / 'one.model', '--methods', ALL,
                  '--n_samples', 15, '--sweep_epsilon', '4,0,1')
    assert [(row['method'], row['epsilon']) for row in result['sweep']] == [
        (method, epsilon) for method in ALL.split(',')[1:] for epsilon in (0, 1, 4)]
    for row in result['sweep']:
        assert set(row['scores']) == {'continuous', 'nearest'}
        if row['epsilon'] == 0:
            assert row['scores']['continuous']['gap'] == row['scores']['nearest']['gap'] == 0.0
    assert (tmp_path / 'table.png').read_bytes().startswith(b'\x89PNG')
    assert set(result['gap_at_flip_rate']['continuous']) == set(ALL.split(',')[1:])


def test_gap_at_equal_strength():
    def point(flipped, gap):
        return {'scores': {'continuous': {'flipped': flipped, 'gap': gap}}}

    points = [point(0, 0), point(20, 2), point(40, 10), point(30, 11), point(60, 20)]
    for rate, gap in ((10, 1), (20, 2), (25, 4), (40, 10), (50, 17), (61, None)):
        found = perplexity.gap_at_flip_rate(points, 'continuous', rate)
        assert found == (None if gap is None else pytest.approx(gap))


@pytest.mark.parametrize('text,expected', [
    ('p.model', {'none': 'p.model', 'adv': 'p.model', 'random': 'p.model'}),
    ('adv=a,spgd=b', {'none': 'a', 'adv': 'a', 'random': 'a'}),
    ('spgd=b,adv=a,random=c', {'none': 'b', 'adv': 'a', 'random': 'c'}),
    ('spgd=b', None), ('adv=a,b', None), ('adv=', None)])
def test_values_per_method(text, expected):
    methods = ['none', 'adv', 'random']
    if expected is None:
        with pytest.raises(UserError, match='--model'):
            perplexity.per_method(text, methods, '--model')
    else:
        assert perplexity.per_method(text, methods, '--model') == expected


@pytest.mark.parametrize('arguments,message', [
    (['--methods', 'adv,pgd'], 'pgd is not one of'),
    (['--methods', ','], 'is empty'),
    (['--epsilon', 'adv=x'], 'give numbers from 0'),
    (['--epsilon', '-3'], 'give numbers from 0'),
    (['--sweep_epsilon', '1,-2'], 'invalid list of step sizes'),
    (['--sweep_epsilon', '1', '--score', 'direction'], 'does not depend on'),
    (['--sweep_epsilon', '1', '--spgd_step', '2'], 'leave one out'),
    (['--plot', 'sweep.png'], 'add --sweep_epsilon'),
    (['--plot', 'sweep.doc', '--sweep_epsilon', '1'], 'ends in one of'),
    (['--csv', 'no/such/folder.csv'], 'there is no folder no/such'),
    (['--nn_k', '5000'], 'give a smaller number'),
    (['--sparsity', '1.5'], 'not between 0 and 1'),
    (['--model', 'nowhere.model'], 'no such file'),
    (['--lm', 'nowhere.model'], 'no such file'),
    (['--min_count', '3'], 'was trained with'),
])
def test_what_cannot_be_is_refused_in_one_line(arguments, message, models, synthetic, tmp_path):
    with pytest.raises(UserError, match=message):
        _run(models, synthetic, tmp_path, '--model', models / 'one.model', '--n_samples', 5,
             *arguments)
    assert list(tmp_path.iterdir()) == []


def test_word_vectors_of_another_size_are_refused(models, synthetic, tmp_path):
    model = RNNForLM(data.load(str(synthetic)).n_vocab, 8, 12)
    checkpoints.save_lm(str(tmp_path / 'other.model'), model)
    with pytest.raises(UserError, match='word vectors of 16, .* of 12'):
        perplexity.main(['--lm', str(tmp_path / 'other.model'), '--data_dir', str(synthetic),
                         '--model', str(models / 'one.model')])
