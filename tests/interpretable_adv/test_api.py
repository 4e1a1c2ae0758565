"""api.py: loading, predicting and attacking, as a user does."""
import json
import os
import shutil
import subprocess
import sys

import numpy as np
import pytest

import interpretable_adv as ia
from interpretable_adv import analysis, nets, train
from interpretable_adv.data.__main__ import main as prepare
from interpretable_adv.evaluation import records
from interpretable_adv.runs import checkpoints
from lm import pretrain

SIZES = ['--emb_dim', '6', '--hidden_dim', '7', '--hidden_cls_dim', '4', '--n_epoch', '2',
         '--alpha', '0.02', '--nn_k', '4', '--progress', 'off']
WORDS = [f'w{i}' for i in range(30)]


@pytest.fixture(scope='module')
def folder(tmp_path_factory):
    """A corpus of three classes, a classifier trained with SPGD on it, and a language model."""
    folder = tmp_path_factory.mktemp('api')
    generator = np.random.RandomState(0)
    labels = ['bad', 'good', 'middling']
    for split, count in (('train', 60), ('dev', 12), ('test', 12)):
        rows = [(' '.join(generator.choice(WORDS[8 * i:8 * i + 14], generator.randint(3, 12))),
                 label) for _ in range(count // 3) for i, label in enumerate(labels)]
        (folder / f'{split}.tsv').write_text(
            'text\tlabel\n' + ''.join(f'{text}\t{label}\n' for text, label in rows))
    prepare(['prepare', '--dataset', 'own', '--data_dir', str(folder / 'data'),
             *(f'--{split}={folder / split}.tsv' for split in ('train', 'dev', 'test'))])
    flags = ['--data_dir', str(folder / 'data'), '--min_count', '0', '--lower', '1',
             '--ignore_unk', '1']
    train.main([*flags, '--method', 'spgd', '--xi_var', '9', '--out', str(folder / 'run'), *SIZES])
    pretrain.main([*flags, '--out', str(folder / 'lm'), '--unit', '7', '--n-units-word', '6',
                   '--batchsize', '4', '--bproplen', '6', '--epoch', '1', '--progress', 'off'])
    return folder


@pytest.fixture(scope='module')
def model(folder):
    return ia.load(folder / 'run')


TEXTS = ['W1, w2 and (w3)…', '', 'nothing known 😀', 'w20\0w21 w22\nw23', 'w9 ' * 40]


# Loading --------------------------------------------------------------------------------------

def test_a_run_folder_is_all_that_load_needs(folder, model):
    assert model.labels == ['bad', 'good', 'middling']
    assert model.lower and model.tokenizer == 'words'
    assert len(model.words) == 32 and model.words[:2] == ['<eos>', '<unk>']
    assert ia.load(str(folder / 'run' / 'best.model')).predict(TEXTS) == model.predict(TEXTS)


def test_runs_store_what_texts_need(folder):
    for name in ('run', 'lm'):
        stored = json.loads((folder / name / 'args.json').read_text())
        assert stored['tokenizer'] == 'words' and stored['lower'] == 1
        assert stored['label_names'] == ['bad', 'good', 'middling']
    assert json.loads((folder / 'run' / 'args.json').read_text())['train_vocab_size'] == 30


def test_an_older_run_and_a_bare_checkpoint(folder, model, tmp_path):
    """Without what newer runs store, classes have numbers; without capitals, text is lowered."""
    for name in ('best.model', 'vocab.txt'):
        shutil.copy(folder / 'run' / name, tmp_path / name)
    bare = ia.load(tmp_path)
    assert bare.labels == ['0', '1', '2'] and bare.lower and bare.tokenizer == 'words'
    assert [list(found.probabilities.values()) for found in bare.predict(TEXTS)] == [
        list(found.probabilities.values()) for found in model.predict(TEXTS)]
    stored = json.loads((folder / 'run' / 'args.json').read_text())
    for name in ('label_names', 'tokenizer', 'train_vocab_size'):
        del stored[name]
    (tmp_path / 'args.json').write_text(json.dumps({**stored, 'lower': 0}))
    old = ia.load(tmp_path)
    assert old.labels == ['0', '1', '2'] and not old.lower
    assert old.predict(['W1'])[0].unknown == ['W1']
    assert old.settings('spgd').epsilon == 9


def test_upstreams_checkpoint(golden, tmp_path):
    """Only the model and its words, as upstream's users have them."""
    words = ['<eos>', '<unk>', 'Good', 'film']
    np.random.seed(0)
    checkpoints.save_classifier(tmp_path / 'best.model', nets.Classifier(4, 3, 5, 4))
    checkpoints.save_vocabulary(tmp_path / 'vocab.txt', words)
    model = ia.load(tmp_path / 'best.model')
    assert model.labels == ['0', '1'] and not model.lower
    assert model.predict(['Good old film'])[0].unknown == ['old']
    assert model.attack(['Good old film'], 'adv', [1], k=2)[0].label == '1'


@pytest.mark.parametrize('name, value', [
    ('label_names', 'abc'), ('label_names', ['a', 'a', 'b']), ('label_names', [1, 2, 3]),
    ('tokenizer', 'letters'), ('train_vocab_size', 31), ('train_vocab_size', '3'), ('lower', 2),
    ('nn_k', -1)])
def test_damaged_settings(folder, tmp_path, name, value):
    shutil.copytree(folder / 'run', tmp_path / 'run')
    stored = json.loads((tmp_path / 'run' / 'args.json').read_text())
    (tmp_path / 'run' / 'args.json').write_text(json.dumps({**stored, name: value}))
    with pytest.raises(ValueError, match=f'args.json is damaged: {name}'):
        ia.load(tmp_path / 'run').settings()


@pytest.mark.parametrize('path, message', [
    ('nowhere', "path is 'nowhere': there is no such file"), (5, 'path is 5'), ('', "path is ''"),
    (None, 'path is None'), ('a\0b', 'path is '), (b'x', "path is b'x'")])
def test_wrong_paths(path, message):
    with pytest.raises(ValueError, match=message):
        ia.load(path)


def test_wrong_files(folder, tmp_path):
    (tmp_path / 'best.model').write_bytes(b'nonsense')
    (tmp_path / 'vocab.txt').write_text('<eos>\n<unk>\na\n')
    with pytest.raises(ValueError, match='neither an HDF5 nor an npz'):
        ia.load(tmp_path)
    shutil.copy(folder / 'run' / 'best.model', tmp_path)
    with pytest.raises(ValueError, match='32 words'):
        ia.load(tmp_path)
    os.remove(tmp_path / 'vocab.txt')
    with pytest.raises(ValueError, match=r'vocab\.txt'):
        ia.load(tmp_path)
    words = (folder / 'run' / 'vocab.txt').read_text().split('\n')
    words[4] = 'other'
    (tmp_path / 'vocab.txt').write_text('\n'.join(words))
    shutil.copy(folder / 'run' / 'args.json', tmp_path)
    with pytest.raises(ValueError, match=r'vocab\.txt does not list the words of its run'):
        ia.load(tmp_path)
    with pytest.raises(ValueError, match='lm is '):
        ia.load(folder / 'run', lm=tmp_path / 'absent')
    for device in ('gpu', 0):
        with pytest.raises(ValueError, match='device'):
            ia.load(folder / 'run', device=device)


def test_loading_leaves_the_random_stream_alone(folder):
    np.random.seed(1)
    expected = np.random.rand()
    np.random.seed(1)
    ia.load(folder / 'run', lm=folder / 'lm').attack(['w1 w2'], 'vat')
    assert np.random.rand() == expected


def test_the_package_alone_loads_no_chainer(root):
    code = ('import sys, interpretable_adv as ia; assert "load" in dir(ia); '
            'print("chainer" in sys.modules); ia.load; print("chainer" in sys.modules)')
    done = subprocess.run([sys.executable, '-c', code], cwd=root, capture_output=True, text=True,
                          check=True)
    assert done.stdout.split() == ['False', 'True']


# Predicting -----------------------------------------------------------------------------------

def test_predictions(folder, model):
    found = model.predict(TEXTS)
    assert [one.unknown for one in found] == [['and'], [], ['nothing', 'known'], [], []]
    for one in found:
        assert list(one.probabilities) == model.labels
        assert sum(one.probabilities.values()) == pytest.approx(1)
        assert one.probability == max(one.probabilities.values())
    classifier = nets.load_classifier(str(folder / 'run' / 'best.model'))
    number = {word: i for i, word in enumerate(model.words)}
    ids = np.array([*(number[word] for word in ('w1', 'w2', 'w3')), 0], 'i')
    logits = nets.predict(classifier, [ids])[0].astype('d')
    expected = np.exp(logits) / np.exp(logits).sum()
    assert list(found[0].probabilities.values()) == pytest.approx(expected, rel=1e-5)
    assert repr(found[0]).startswith("Prediction(label='")
    assert model.predict([]) == [] and model.attack([]) == []


def test_results_do_not_depend_on_the_batch(model):
    texts = TEXTS + [f'w{i} w{i + 1} w{2 * i}' for i in range(14)]
    assert model.predict(texts) == [model.predict([text])[0] for text in texts]
    for method in ('adv', 'iadv', 'spgd', 'vat', 'random'):
        together = model.attack(texts, method)
        for index, text in enumerate(texts):
            alone = model.attack([text], method)[0].to_dict()
            assert together[index].to_dict() == {**alone, 'index': index}


# Attacking ------------------------------------------------------------------------------------

def write_lines(path, texts, labels):
    path.write_text(''.join(json.dumps({'text': text, 'label': label}) + '\n'
                            for text, label in zip(texts, labels)))
    return str(path)


@pytest.mark.parametrize('labels', [None, ['good', 'bad', None]])
def test_records_are_those_of_analysis(folder, tmp_path, labels):
    """Also with the settings, the perplexities and the neighbours of the classifier's run."""
    model = ia.load(folder / 'run', lm=folder / 'lm')
    texts = ['W1, w2 and (w3)…', 'w20 w21 w22', 'w4 w5 unheard w6 w7 w8']
    analysis.main(['--model', str(folder / 'run' / 'best.model'), '--data_dir',
                   str(folder / 'data'), '--lm', str(folder / 'lm' / 'best.model'), '--out',
                   str(tmp_path / 'r'), '--methods', 'adv,iadv,spgd', '--indices', '0,1,2',
                   '--texts', write_lines(tmp_path / 'm.jsonl', texts, labels or [''] * 3)])
    expected = list(records.read(str(tmp_path / 'r')))
    assert expected[2]['epsilon'] == 9 and expected[0]['epsilon'] == 5
    for method in ('adv', 'iadv', 'spgd'):
        found = [attack.to_dict() for attack in model.attack(texts, method, labels)]
        assert found == [record for record in expected if record['method'] == method]
        assert {'clean', 'continuous'} <= set(found[0]['perplexity'])


def test_every_attribute(model):
    text = 'W1, w2 and (w3)… w4 w5 w6 w7 w8'
    found, = model.attack([text], 'spgd', epsilon=60, sparsity=0.5, k=3, mask_eos=True)
    record = found.to_dict()
    assert found.text == text and found.unknown == ['and'] and found.words == record['words']
    assert found.method == 'spgd' and found.epsilon == 60 and found.perplexity is None
    assert found.label == found.prediction == model.predict([text])[0].label
    assert found.prediction_adv == model.labels[record['prediction_adv']]
    assert found.flipped == (found.prediction != found.prediction_adv)
    assert found.probabilities == model.predict([text])[0].probabilities
    moved = [word for word in found.words if word['norm'] > 0]
    assert len(moved) == 4 and found.words[-1]['word'] == '<eos>'
    assert all(len(word['neighbors']) == 3 for word in found.words)
    # Unknown words and marks stay where they are.
    assert found.direction_text != text and 'and (' in found.direction_text
    assert repr(found).startswith("Attack(method='spgd', ")


@pytest.mark.parametrize('method', ['adv', 'spgd'])
def test_adversarial_texts_are_read_as_the_attack_says(model, method):
    """Unless a word became `<eos>` or `<unk>`, which no text can hold."""
    texts = [' '.join(np.random.RandomState(seed).choice(WORDS, 12)) for seed in range(20)]
    compared = 0
    for found in model.attack(texts, method, epsilon=30, sparsity=0.5, k=3, mask_eos=True):
        for name, field, version in (('direction', 'toward', found.direction_text),
                                     ('nearest', 'nearest', found.nearest_text)):
            words = [word[field] for word in found.words]
            if not {'<eos>', '<unk>'} & set(words[:-1]):
                assert version == ' '.join(words[:-1])
                if words[-1] == '<eos>':
                    assert model.predict([version])[0] == found.readings[name]
                    compared += version != found.text
    assert compared > 5


def test_labels_by_name_and_by_number(model):
    texts = ['w1 w2 w3'] * 5
    found = model.attack(texts, labels=['middling', 2, np.int64(2), np.array(2), None])
    assert [one.label for one in found] == ['middling'] * 4 + [found[4].prediction]
    assert found[0].to_dict()['correct'] in (True, False) and 'correct' not in found[4].to_dict()
    assert model.attack(texts[:2], labels=np.array([0, 1]))[1].label == 'good'
    assert model.attack(texts[:2], labels=('bad', 'good'))[0].label == 'bad'


def test_settings_of_the_run_and_others(model):
    assert model.settings('spgd') == ia.AttackSettings(9.0, k=4)
    assert model.settings('adv').epsilon == 5
    assert model.settings('spgd', epsilon=3, k=None, rank='projected') == ia.AttackSettings(
        3.0, k=4, rank='projected')
    assert model.attack(['w1 w2'], 'adv', epsilon=0)[0].flipped is False


@pytest.mark.parametrize('texts', ['a text', 5, None, [1], ['a', None], [b'a'], [['a']]])
def test_texts_that_are_none(model, texts):
    for function in (model.predict, model.attack):
        with pytest.raises(ValueError, match=r'texts(\[\d\])? is '):
            function(texts)


@pytest.mark.parametrize('settings, message', [
    ({'method': 'pgd'}, "method is 'pgd': give one of adv, iadv, spgd"),
    ({'method': 'none'}, "method is 'none'"), ({'method': None}, 'method is None'),
    ({'labels': 'good'}, "labels is 'good'"), ({'labels': 1}, 'labels is 1'),
    ({'labels': ['good', 'bad']}, 'labels has 2 entries for 1 texts'),
    ({'labels': ['great']}, r"labels\[0\] is 'great': give one of bad, good, middling, a number"),
    ({'labels': [3]}, r'labels\[0\] is 3'), ({'labels': [-1]}, r'labels\[0\] is -1'),
    ({'labels': [True]}, r'labels\[0\] is True'), ({'labels': [1.0]}, r'labels\[0\] is 1.0'),
    ({'epsilon': -1}, 'epsilon is -1: give a number from 0 to 1,000,000'),
    ({'epsilon': 1e20}, r'epsilon is 1e\+20'), ({'epsilon': '5'}, "epsilon is '5'"),
    ({'epsilon': float('nan')}, 'epsilon is nan'), ({'epsilon': 10 ** 400}, 'epsilon is 1000'),
    ({'epsilon': True}, 'epsilon is True'), ({'epsilon': [1]}, r'epsilon is \[1\]'),
    ({'sparsity': 1.5}, 'sparsity is 1.5: give a number from 0 to 1'),
    ({'k': 0}, 'k is 0: give a whole number from 1 to 31'), ({'k': 2.5}, 'k is 2.5'),
    ({'k': 32}, 'k is 32'), ({'iterations': 0}, 'iterations is 0'),
    ({'iterations': 10 ** 9}, 'iterations is 1000000000'), ({'step': -1}, 'step is -1'),
    ({'toward_only': 1}, 'toward_only is 1: give True or False'),
    ({'rank': 'size'}, "rank is 'size': give 'raw' or 'projected'"),
    ({'level': 'text'}, "level is 'text'"), ({'seed': -1}, 'seed is -1'),
    ({'seed': 2 ** 32}, 'seed is 4294967296')])
def test_wrong_arguments(model, settings, message):
    with pytest.raises(ValueError, match=message):
        model.attack(['w1 w2'], **settings)


@pytest.mark.parametrize('method', ['adv', 'iadv', 'spgd', 'vat', 'ivat', 'adv_sparse', 'random'])
def test_the_largest_and_smallest_steps_stay_finite(model, method):
    for settings in ({'epsilon': 1e6}, {'epsilon': 1e6, 'step': 1e6, 'iterations': 3},
                     {'epsilon': 1e-30}, {'epsilon': 1e-320}, {'epsilon': 0}):
        for found in model.attack(TEXTS, method, **settings):
            record = json.dumps(found.to_dict(), allow_nan=False)
            assert records.parse(record, 'here')['method'] == method


def test_a_setting_that_does_not_exist(model):
    with pytest.raises(ValueError, match='gamma is no setting: give any of epsilon'):
        model.settings('spgd', gamma=1)


def test_tokenizer_of_the_corpus_is_the_models(folder, tmp_path, capsys):
    text = (folder / 'train.tsv').read_text().replace('w1 ', "w'1 ")
    (tmp_path / 'train.tsv').write_text(text)
    prepare(['prepare', '--dataset', 'own', '--data_dir', str(tmp_path / 'data'), '--train',
             str(tmp_path / 'train.tsv'), '--dev', str(folder / 'dev.tsv'), '--tokenizer',
             'whitespace'])
    assert 'tokenizer whitespace: words are what white space separates' in capsys.readouterr().out
    train.main(['--data_dir', str(tmp_path / 'data'), '--min_count', '0', '--out',
                str(tmp_path / 'run'), *SIZES])
    model = ia.load(tmp_path / 'run')
    assert model.tokenizer == 'whitespace' and "w'1" in model.words
    assert model.predict(["w'1 w2. w3"])[0].unknown == ['w2.']
