"""The embedded classifier, and the script that makes it from a run."""
import json
import os
import tarfile

import numpy as np
import pytest

import interpretable_adv as ia
from experiments import demo_model
from interpretable_adv import data, train
from interpretable_adv.runs import checkpoints, folder

TEXTS = {
    'positive': ['A wonderful film.', 'Superb acting, and a story that I will not forget.',
                 'One of the best films I have ever seen. I loved every minute of it!'],
    'negative': ['A waste of time.', 'The plot makes no sense and the acting is terrible.',
                 'Boring, badly written and far too long. Avoid it.']}


@pytest.fixture(scope='module')
def result():
    with open(os.path.join(folder.DEMO, folder.RESULT), encoding='utf-8') as stream:
        return json.load(stream)


def test_it_is_small_and_what_its_card_says(result):
    sizes = {entry.name: entry.stat().st_size for entry in os.scandir(folder.DEMO)}
    assert sum(sizes.values()) <= demo_model.LIMIT
    assert set(sizes) == {'README.md', 'args.json', 'best.model', 'result.json', 'vocab.txt'}
    arrays = checkpoints.read_arrays(os.path.join(folder.DEMO, folder.MODEL))
    assert {array.dtype for array in arrays.values()} == {np.dtype('float16')}
    assert checkpoints.digest(arrays) == result['digest']
    assert result['test_accuracy'] >= 88 and result['test_reviews'] == 25000
    with open(os.path.join(folder.DEMO, demo_model.CARD), encoding='utf-8') as stream:
        assert stream.read() == demo_model.card(folder.DEMO)


def test_it_holds_words_and_no_text():
    words = data.read_vocabulary(os.path.join(folder.DEMO, folder.VOCABULARY))
    assert not any(any(character.isspace() for character in word) for word in words)
    with open(os.path.join(folder.DEMO, folder.SETTINGS), encoding='utf-8') as stream:
        stored = json.load(stream)
    assert set(stored) == set(demo_model.KEPT)
    assert not any(isinstance(value, str) and '/' in value for value in stored.values())


def test_it_knows_good_from_bad(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = ia.load('demo')
    assert model.labels == ['negative', 'positive']
    for label, texts in TEXTS.items():
        for found in model.predict(texts):
            assert found.label == label and found.unknown == []
    for method in ('adv', 'iadv', 'spgd'):
        assert all(found.probabilities_adv[found.label] < found.probabilities[found.label]
                   for found in model.attack(TEXTS['positive'], method))


@pytest.mark.slow
def test_accuracy_on_real_reviews(shared, result):
    """On a sample, where IMDB is at hand; `experiments.demo_model` measures all of it."""
    texts, labels = [], []
    with tarfile.open(shared / 'data' / 'aclImdb.tar.gz') as archive:
        for member in archive:
            _, _, place = member.name.partition('test/')
            kind, _, name = place.partition('/')
            if kind in ('pos', 'neg') and name.endswith('.txt') and int(
                    name.partition('_')[0]) % 25 == 0:
                texts.append(archive.extractfile(member).read().decode('utf-8'))
                labels.append({'pos': 'positive', 'neg': 'negative'}[kind])
    found = ia.load('demo').predict(texts)
    right = np.mean([one.label == label for one, label in zip(found, labels)])
    assert len(texts) == 1000 and abs(100 * right - result['test_accuracy']) < 4


@pytest.fixture(scope='module')
def run(golden, tmp_path_factory):
    out = tmp_path_factory.mktemp('run')
    source = golden / 'synthetic' / 'mini_synthetic'
    for path in source.glob('*.txt'):
        (out / 'data').mkdir(exist_ok=True)
        (out / 'data' / path.name).write_bytes(path.read_bytes())
    train.main(['--data_dir', str(out / 'data'), '--out', str(out / 'run'), '--method', 'spgd',
                '--emb_dim', '6', '--hidden_dim', '7', '--hidden_cls_dim', '4', '--n_epoch', '1',
                '--nn_k', '5', '--progress', 'off'])
    return out


def test_packing_a_run(run, tmp_path, capsys):
    demo_model.main([str(run / 'run'), '--data_dir', str(run / 'data'), '--out',
                     str(tmp_path / 'packed')])
    with open(tmp_path / 'packed' / 'result.json', encoding='utf-8') as stream:
        stored = json.load(stream)
    assert f'test {stored["test_accuracy"]:.2f} %' in capsys.readouterr().out
    packed, whole = ia.load(tmp_path / 'packed'), ia.load(run / 'run')
    texts = [' '.join(whole.words[i:i + 9]) for i in range(2, 90)]
    for rounded, exact in zip(packed.predict(texts), whole.predict(texts)):
        assert list(rounded.probabilities.values()) == pytest.approx(
            list(exact.probabilities.values()), abs=0.01)
    assert packed.settings('spgd') == whole.settings('spgd')
    assert packed._victim.embeddings.dtype == np.float32
    corpus = data.load(str(run / 'data'), lower=True, ignore_unk=False)
    found = packed.predict([' '.join(corpus.words[i] for i in ids[:-1])
                            for ids in corpus.test.sequences if (ids != data.UNK).all()])
    assert len(found) > 5


def test_packing_refuses_a_run_of_an_older_version(run, tmp_path):
    stored = json.loads((run / 'run' / 'args.json').read_text())
    del stored['tokenizer']
    for name in ('best.model', 'vocab.txt'):
        (tmp_path / name).write_bytes((run / 'run' / name).read_bytes())
    (tmp_path / 'args.json').write_text(json.dumps(stored))
    with pytest.raises(Exception, match='lacks tokenizer'):
        demo_model.pack(str(tmp_path), str(tmp_path / 'packed'))
    assert not (tmp_path / 'packed').exists()
