import csv
import json
import shutil

import numpy as np
import pytest

from interpretable_adv import data
from interpretable_adv.errors import UserError
from interpretable_adv.evaluation.judge import Judge
from interpretable_adv.nets import Classifier
from interpretable_adv.runs import checkpoints
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


@pytest.fixture
def trained(models, synthetic, tmp_path):
    """Makes the folder of a run with a classifier and its `args.json`; returns the model's path."""
    def make(name, **settings):
        (tmp_path / name).mkdir()
        model = tmp_path / name / 'best.model'
        shutil.copy(models / 'one.model', model)
        (tmp_path / name / 'args.json').write_text(json.dumps(settings))
        return model
    return make


def test_settings_are_those_of_each_classifiers_training(models, synthetic, tmp_path, trained):
    adv = trained('a', method='adv', xi_var=3.0, nn_k=6, norm_sentence_level=0, sparsity=0.9)
    spgd = trained('s', method='spgd', xi_var=8.0, nn_k=4, sparsity=0.5, spgd_iters=2,
                   spgd_toward_only=1, spgd_step=None, ignore_unk=0)
    model = f'adv={adv},spgd={spgd}'
    arguments = ['--methods', 'none,adv,spgd,adv_sparse,random', '--n_samples', 12, '--model',
                 model, '--score', 'direction']
    result = _run(models, synthetic, tmp_path, *arguments)
    assert 'nn_k' not in result and 'sparsity' not in result
    rows = {row['method']: row for row in result['rows']}
    shared = {'xi_var': 3.0, 'norm_sentence_level': 0, 'xi_var_first': 1.0, 'mask_eos': 0}
    assert rows['adv']['settings'] == shared
    assert rows['random']['settings'] == {**shared, 'seed': 1234}
    assert rows['adv_sparse']['settings'] == {**shared, 'sparsity': 0.5}  # SPGD's
    assert rows['none']['settings'] == {**shared, 'xi_var': 0.0}
    assert rows['spgd']['settings'] == {
        'xi_var': 8.0, 'norm_sentence_level': 1, 'xi_var_first': 1.0, 'mask_eos': 0, 'nn_k': 4,
        'nn_k_offset': 1, 'use_limit_vocab': 1, 'sparsity': 0.5, 'spgd_iters': 2,
        'spgd_step': None, 'spgd_toward_only': 1, 'sparsity_rank': 'raw',
        'spgd_directions': 'clean'}
    for method, row in rows.items():
        assert row['epsilon'] == row['settings']['xi_var']
        assert row['model'] == str(spgd if method == 'spgd' else adv)

    given = _run(models, synthetic, tmp_path, *arguments, '--nn_k', 7, '--sparsity', 0.25,
                 '--epsilon', 'spgd=2,adv=1', '--norm_sentence_level', 1, '--seed', 5)
    rows = {row['method']: row['settings'] for row in given['rows']}
    assert rows['spgd'] == {**rows['spgd'], 'nn_k': 7, 'sparsity': 0.25, 'xi_var': 2.0,
                            'spgd_iters': 2}
    assert rows['adv_sparse'] == {**shared, 'norm_sentence_level': 1, 'sparsity': 0.25,
                                  'xi_var': 1.0}
    assert rows['random']['seed'] == 5 and rows['random']['xi_var'] == 1.0


def test_settings_change_the_numbers(models, synthetic, tmp_path, trained):
    """That a setting was read off `args.json` is one thing, that it counts another."""
    def row(model, *flags):
        return _run(models, synthetic, tmp_path, '--methods', 'spgd', '--n_samples', 12,
                    '--epsilon', 8, '--model', model, *flags)['rows'][0]

    plain = row(models / 'one.model')
    assert plain['settings']['nn_k'] == 15 and plain['settings']['sparsity'] == 0.75
    same = row(trained('same', method='spgd'))
    assert same['scores'] == plain['scores']
    half = row(trained('half', sparsity=0.5))
    assert half['words_moved'] > 1.5 * plain['words_moved']
    assert half['scores'] == row(models / 'one.model', '--sparsity', 0.5)['scores']
    few = row(trained('few', nn_k=1))
    assert few['scores']['direction'] != plain['scores']['direction']
    assert few['scores'] == row(models / 'one.model', '--nn_k', 1)['scores']


def test_a_sweep_is_of_the_settings_with_other_step_sizes(models, synthetic, tmp_path, trained):
    model = trained('s', method='spgd', xi_var=8.0, sparsity=0.5, spgd_step=0.5)
    result = _run(models, synthetic, tmp_path, '--methods', 'spgd', '--n_samples', 5, '--model',
                  model, '--sweep_epsilon', '8,1', '--score', 'continuous')
    row, = result['rows']
    assert row['settings']['spgd_step'] == 0.5
    assert [(point['epsilon'], point['settings']['xi_var'], point['settings']['spgd_step'],
             point['settings']['sparsity']) for point in result['sweep']] == [
                 (1, 1, None, 0.5), (8, 8, None, 0.5)]


@pytest.mark.parametrize('content, message', [
    ('{"nn_k": 4', 'args.json is damaged'),
    ('[1]', r'args.json is damaged \(it is \[1\], not an object'),
    ('{"nn_k": "many"}', "args.json is damaged: nn_k is 'many'.*restore it"),
    ('{"method": "adv", "xi_var": -1}', 'args.json is damaged: xi_var is -1')])
def test_a_damaged_description_of_the_classifier_is_refused(
        models, synthetic, tmp_path, trained, content, message):
    model = trained('run')
    (model.parent / 'args.json').write_text(content)
    with pytest.raises(UserError, match=message):
        _run(models, synthetic, tmp_path, '--methods', 'adv', '--model', model)
    assert not (tmp_path / 'table.json').exists()


def test_data_flags_are_those_of_the_language_model(models, synthetic, tmp_path):
    """The language model of a corpus in lower case is asked about a corpus in lower case."""
    words = data.load(str(synthetic), lower=True, min_count=0, ignore_unk=True).n_vocab
    np.random.seed(0)
    checkpoints.save_lm(str(tmp_path / 'best.model'), RNNForLM(words, 8, 16))
    checkpoints.save_classifier(str(tmp_path / 'one.model'), Classifier(words, 16, 20, 8))
    arguments = ['--lm', str(tmp_path / 'best.model'), '--model', str(tmp_path / 'one.model'),
                 '--data_dir', str(synthetic), '--methods', 'none', '--n_samples', '3',
                 '--json', str(tmp_path / 'table.json')]
    with pytest.raises(UserError, match='was trained with'):
        perplexity.main(arguments)
    (tmp_path / 'args.json').write_text('{"lower": 1, "use_full_vocab": true, "min_count": 1}')
    perplexity.main(arguments)
    assert json.loads((tmp_path / 'table.json').read_text())['n_reviews'] == 3


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


def test_intervals_over_reviews(models, synthetic, tmp_path):
    """Of every gap, and of SPGD against the other attacks, at its ε and at equal strength."""
    result = _run(models, synthetic, tmp_path, '--model', models / 'one.model', '--methods',
                  'none,adv,spgd', '--n_samples', 15, '--sweep_epsilon', '1,100')
    rows = {row['method']: row['scores'] for row in result['rows']}
    for scores in rows.values():
        for values in scores.values():
            low, high = values['gap_interval']
            assert low - 1e-6 <= values['gap'] <= high + 1e-6
    found = result['spgd_minus']
    assert {reading: set(scores) for reading, scores in found.items()} == dict.fromkeys(
        ('continuous', 'nearest', 'direction'), {'gap', 'judge_changed'})
    value = found['continuous']['gap']['adv']
    assert value['difference'] == rows['spgd']['continuous']['gap'] - rows['adv'][
        'continuous']['gap']
    assert value['interval'][0] <= value['difference'] <= value['interval'][1]
    gaps = result['gap_at_flip_rate']['continuous']
    at_rates = result['spgd_minus_at_flip_rate']['continuous']['gap']
    both = [rate for rate in ('10', '25', '50') if None not in (gaps['adv'][rate],
                                                                gaps['spgd'][rate])]
    assert [rate for rate in at_rates if at_rates[rate]] == both
    for rate in both:
        assert at_rates[rate]['adv']['difference'] == gaps['spgd'][rate] - gaps['adv'][rate]


def test_swaps(models, synthetic, tmp_path, trained, capsys):
    """Attacks by swaps borrow SPGD's classifier and settings; a sweep varies their budget."""
    spgd = trained('s', method='spgd', xi_var=8.0, nn_k=4, sparsity=0.5)
    result = _run(models, synthetic, tmp_path, '--model', f'adv={models / "two.model"},spgd={spgd}',
                  '--methods', 'none,adv,spgd,hotflip,hotflip_greedy', '--n_samples', 15,
                  '--sweep_epsilon', '1,4', '--sweep_budget', '0.5,0.1')
    rows = {row['method']: row for row in result['rows']}
    for method in ('hotflip', 'hotflip_greedy'):
        row = rows[method]
        assert row['model'] == str(spgd) and row['epsilon'] is None and row['budget'] == 0.5
        assert row['settings'] == {'nn_k': 4, 'nn_k_offset': 1, 'use_limit_vocab': 1,
                                   'sparsity': 0.5}
        assert 0 < row['words_moved'] <= 50
        # The perturbation leads to the word, so all readings are of one text.
        scores = row['scores']
        assert scores['nearest'] == scores['direction']
        assert scores['nearest']['words_changed'] == row['words_moved']
        assert scores['continuous']['flipped'] == scores['nearest']['flipped']
    assert rows['spgd']['epsilon'] == 8 and rows['spgd']['budget'] is None
    assert (rows['hotflip_greedy']['words_moved'] < rows['hotflip']['words_moved'])
    assert [(row['method'], row['epsilon'], row['budget']) for row in result['sweep']] == [
        *((method, epsilon, None) for method in ('adv', 'spgd') for epsilon in (1, 4)),
        *((method, None, budget) for method in ('hotflip', 'hotflip_greedy')
          for budget in (0.1, 0.5))]
    assert 'hotflip_greedy  –' in capsys.readouterr().out


def test_the_judge(models, synthetic, tmp_path, capsys):
    arguments = ['--model', models / 'one.model', '--methods', 'none,adv,hotflip', '--n_samples',
                 0, '--sweep_epsilon', '4,40', '--wordnet', '']
    result = _run(models, synthetic, tmp_path, *arguments)
    corpus = data.load(str(synthetic))
    judge = Judge(corpus.train.sequences, corpus.train.labels, 2, corpus.n_vocab)
    assert result['judge']['accuracy'] == 100 * np.mean(
        judge.predict(corpus.test.sequences) == corpus.test.labels)
    none, adv, hotflip = result['rows']
    assert none['scores']['nearest']['judge_changed'] == 0
    assert none['scores']['direction']['judge_changed_random'] == 0
    assert 'judge_changed' not in adv['scores']['continuous']
    assert hotflip['scores']['nearest']['judge_changed'] > 0
    assert hotflip['scores']['nearest']['judge_changed_random'] > 0
    assert set(result['judged_at_flip_rate']) == {'nearest'}
    assert set(result['judged_at_flip_rate']['nearest']) == {
        'judge_changed', 'judge_changed_random', 'judge_excess', 'antonyms', 'synonyms'}
    assert 'Labels changed for the judge' in capsys.readouterr().out
    without = _run(models, synthetic, tmp_path, *arguments, '--no_judge')
    assert without['judge'] is None and without['judged_at_flip_rate'] == {}
    assert 'Labels changed' not in capsys.readouterr().out
    for row, other in zip(result['rows'], without['rows']):
        assert row['scores']['nearest'].items() >= other['scores']['nearest'].items()


@pytest.mark.parametrize('arguments,message', [
    (['--methods', 'spgd_lm'], 'spgd_lm needs a class-conditional'),
    (['--wordnet', 'nowhere'], 'is not a WordNet database'),
    (['--sweep_budget', '2'], 'not between 0 and 1'),
    (['--methods', 'adv,pgd'], 'pgd is not one of'),
    (['--methods', ','], 'is empty'),
    (['--epsilon', 'adv=x'], 'give numbers from 0'),
    (['--epsilon', '-3'], 'give numbers from 0'),
    (['--sweep_epsilon', '1,-2'], 'invalid list of numbers value'),
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
