"""Accuracy under attack: the command against attacks made one by one."""
import csv
import json
import shutil

import numpy as np
import pytest

from interpretable_adv import data, nets, robustness
from interpretable_adv.errors import UserError
from interpretable_adv.evaluation.robustness import COLUMNS
from interpretable_adv.evaluation.victim import Adversary, Victim
from interpretable_adv.methods import AttackSettings
from interpretable_adv.runs import checkpoints

EPSILON = {'adv': 2.0, 'spgd': 9.0}
FLAGS = ['--epsilon', 'adv=2,spgd=9', '--nn_k', '4', '--sparsity', '0.5', '--lower', '0',
         '--ignore_unk', '1']


@pytest.fixture(scope='module')
def corpus(golden):
    return golden / 'synthetic' / 'mini_synthetic'


@pytest.fixture(scope='module')
def models(corpus, tmp_path_factory):
    """Two random classifiers whose predictions depend on single words."""
    out, paths = tmp_path_factory.mktemp('models'), []
    loaded = data.load(str(corpus))
    for seed in (0, 1):
        np.random.seed(seed)
        model = nets.Classifier(loaded.n_vocab, 8, 10, 5)
        model.word_embed.W.array[...] *= 3
        model.hidden_layer.b.array[...] = 1  # so that no unit is dead
        logits = nets.predict(model, loaded.test.sequences)
        model.output_layer.b.array[...] -= np.median(logits, axis=0)  # and no class preferred
        paths.append(str(out / f'{seed}.model'))
        checkpoints.save_classifier(paths[-1], model)
    return paths


def run(corpus, models, tmp_path, *flags):
    robustness.main(['--model', models[0], '--source', models[1], '--data_dir', str(corpus),
                     '--json', str(tmp_path / 'r.json'), '--csv', str(tmp_path / 'r.csv'), *FLAGS,
                     *map(str, flags)])
    with open(tmp_path / 'r.csv', newline='', encoding='utf-8') as stream:
        rows = list(csv.DictReader(stream))
    return json.loads((tmp_path / 'r.json').read_text()), rows


def test_no_language_model_guides_an_attack(corpus, models, tmp_path):
    """A classifier that was trained with one is attacked like the others."""
    folder = tmp_path / 'guided'
    folder.mkdir()
    shutil.copy(models[0], folder / 'best.model')
    args = {'method': 'spgd', 'class_lm': 'elsewhere/best.model', 'class_lm_weight': 0.5}
    (folder / 'args.json').write_text(json.dumps(args))
    plain, _ = run(corpus, models, tmp_path, '--n_samples', 5)
    guided, _ = run(corpus, [str(folder / 'best.model'), models[1]], tmp_path, '--n_samples', 5)
    for name in ('own', 'transferred', 'settings'):
        assert guided[name] == plain[name]


def test_it_is_right_where_the_classifier_is(corpus, models, tmp_path, capsys):
    result, rows = run(corpus, models, tmp_path, '--n_samples', 0)
    loaded = data.load(str(corpus))
    classifiers = [nets.load_classifier(path, loaded.words) for path in models]
    sequences, labels = loaded.test.sequences, loaded.test.labels
    assert len(rows) == len(labels) == result['n_reviews']

    def right(texts):
        return nets.predict(classifiers[0], texts).argmax(axis=1) == labels

    clean = right(list(sequences))
    assert [int(row['clean']) for row in rows] == clean.astype(int).tolist()
    assert result['clean'] == 100 * clean.mean()
    for kind, model in zip(('own', 'transferred'), classifiers):
        victim = Victim(model, loaded.n_labeled_words)
        for name in COLUMNS:
            method, _, reading = name.partition('_')
            method, reading = ((name, 'direction') if name.startswith('hotflip')
                               else (method, reading))
            adversary = Adversary(method, victim, AttackSettings(
                EPSILON.get(method, 0.0), k=4, sparsity=0.5))
            texts = [adversary([sequence], np.array([label], 'i')).reading(reading)[0]
                     for sequence, label in zip(sequences, labels)]
            expected = right(texts)
            assert [int(row[f'{kind}_{name}']) for row in rows] == expected.astype(int).tolist()
            assert result[kind][name] == 100 * expected.mean()
            if (kind, name) == ('own', 'hotflip_greedy'):
                swaps = [int((old != new).sum()) for old, new in zip(sequences, texts)]
                assert [int(row['swaps']) for row in rows] == swaps
                assert result['median_swaps'] == np.median(swaps)
    assert result['own']['hotflip_greedy'] < result['clean']
    assert 'greedy swaps, median' in capsys.readouterr().out


def test_own_attacks_alone_and_a_sample(corpus, models, tmp_path):
    robustness.main(['--model', models[0], '--data_dir', str(corpus), '--n_samples', '7', *FLAGS,
                     '--json', str(tmp_path / 'r.json')])
    result = json.loads((tmp_path / 'r.json').read_text())
    assert result['n_reviews'] == 7 and 'transferred' not in result
    whole, rows = run(corpus, models, tmp_path, '--n_samples', 7)
    assert whole['own'] == result['own'] and len(rows) == 7
    assert whole['settings']['transferred']['spgd']['nn_k'] == 4


def test_a_model_attacks_itself_as_it_is_attacked(corpus, models, tmp_path):
    result, _ = run(corpus, [models[0]] * 2, tmp_path)
    assert result['own'] == result['transferred']


def test_what_cannot_be_is_refused(corpus, models, tmp_path):
    with pytest.raises(UserError, match='no such file'):
        run(corpus, [models[0], 'nowhere.model'], tmp_path)
    with pytest.raises(UserError, match='give numbers from 0'):
        run(corpus, models, tmp_path, '--epsilon', 'adv=x')
    assert list(tmp_path.iterdir()) == []
