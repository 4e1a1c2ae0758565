"""checkpoints.py: Chainer's own layouts, and nothing assigned before everything is checked."""
import json

import chainer
import chainer.links as L
import h5py
import numpy as np
import pytest
from chainer import serializers

from interpretable_adv import data, nets
from interpretable_adv.errors import UserError
from interpretable_adv.runs import checkpoints


class UpstreamShape(chainer.Chain):
    """A plain chain with upstream's names, of stock Chainer's parts."""

    def __init__(self, n_vocab, emb_dim, hidden_dim, hidden_cls_dim, n_class, n_layers):
        super().__init__(
            word_embed=L.EmbedID(n_vocab, emb_dim),
            hidden_layer=L.Linear(hidden_dim, hidden_cls_dim),
            output_layer=L.Linear(hidden_cls_dim, n_class),
            uni_lstm=L.NStepLSTM(n_layers, emb_dim, hidden_dim, 0.5))


SIZES = {'n_vocab': 20, 'emb_dim': 4, 'hidden_dim': 5, 'hidden_cls_dim': 3, 'n_class': 4,
         'n_layers': 2}


@pytest.fixture
def model():
    return nets.Classifier(**SIZES)


@pytest.fixture
def saved(model, tmp_path):
    path = tmp_path / 'best.model'
    checkpoints.save_classifier(path, model)
    return path


def assert_same(first, second):
    assert all(np.array_equal(a.array, b.array)
               for (_, a), (_, b) in zip(sorted(first.namedparams()), sorted(second.namedparams())))


def test_a_saved_classifier_loads_in_plain_chainer(model, saved):
    other = UpstreamShape(**SIZES)
    serializers.load_hdf5(saved, other)
    assert_same(model, other)


def test_a_classifier_saved_by_plain_chainer_loads_here(tmp_path):
    other = UpstreamShape(**SIZES)
    serializers.save_hdf5(tmp_path / 'upstream.model', other)
    assert_same(nets.load_classifier(tmp_path / 'upstream.model'), other)


def test_loading_leaves_the_random_stream_alone(saved):
    np.random.seed(5)
    expected = np.random.rand()
    np.random.seed(5)
    nets.load_classifier(saved)
    assert np.random.rand() == expected


def test_upstreams_checkpoint_gives_upstreams_logits(shared):
    folder = shared / 'golden'
    recorded = json.loads((folder / 'upstream_classifier_test.json').read_text())
    corpus = data.load(folder / 'mini_imdb')
    assert corpus.words == recorded['vocab']
    model = nets.load_classifier(folder / 'upstream_classifier.model', corpus.words)
    logits = nets.predict(model, corpus.test.sequences)
    np.testing.assert_allclose(logits, recorded['test_logits'], atol=1e-4)
    np.testing.assert_array_equal(corpus.test.labels, recorded['test_y'])


# Refusals -----------------------------------------------------------------------------------

def spoil(path, name, change):
    with h5py.File(path, 'r+') as file:
        value = file[name][()]
        del file[name]
        new = change(value)
        if new is not None:
            file[name] = new


@pytest.mark.parametrize('name, change, part', [
    ('uni_lstm/1/w3', lambda w: None, 'lacks uni_lstm/1/w3'),
    ('uni_lstm/1/w3', lambda w: w[:-1], r'shape \(4, 5\)'),
    ('hidden_layer/b', lambda b: b.astype('i'), 'type int32'),
    ('hidden_layer/b', lambda b: b * np.nan, 'not finite'),
    ('word_embed/W', lambda w: None, 'not a classifier')])
def test_a_checkpoint_that_does_not_fit_is_refused_whole(model, saved, name, change, part):
    spoil(saved, name, change)
    with pytest.raises(UserError, match=part):
        nets.load_classifier(saved)
    before = [parameter.array.copy() for parameter in model.params()]
    with pytest.raises(UserError):
        checkpoints.assign(model, checkpoints.read_arrays(saved), saved)
    assert all((a == b.array).all() for a, b in zip(before, model.params()))


def test_an_unknown_key_is_refused(saved):
    with h5py.File(saved, 'r+') as file:
        file['attention/W'] = np.zeros(3)
    with pytest.raises(UserError, match='unknown attention/W'):
        nets.load_classifier(saved)


@pytest.mark.parametrize('content, part', [
    (b'', 'neither'), (b'hello', 'neither'), (b'PK\x03\x04 truncated', 'damaged'),
    (b'\x89HDF\r\n\x1a\n truncated', 'damaged')])
def test_a_file_that_is_no_checkpoint_is_one_line(tmp_path, content, part):
    path = tmp_path / 'best.model'
    path.write_bytes(content)
    with pytest.raises(UserError, match=part):
        checkpoints.read_arrays(path)


def test_every_truncation_is_noticed(saved):
    content = saved.read_bytes()
    for share in (0.1, 0.5, 0.9, 0.999):
        saved.write_bytes(content[:int(len(content) * share)])
        with pytest.raises(UserError):
            nets.load_classifier(saved)


def test_a_missing_file_is_one_line(tmp_path):
    with pytest.raises(UserError, match='no such file'):
        checkpoints.read_arrays(tmp_path / 'nothing')


def test_pickles_are_never_read(tmp_path):
    np.savez(tmp_path / 'evil.npz', a=np.array([{}], object))
    with pytest.raises(UserError, match='damaged'):
        checkpoints.read_arrays(tmp_path / 'evil.npz')


def test_another_vocabulary_is_refused(saved):
    words = [f'w{i}' for i in range(20)]
    nets.load_classifier(saved, words)  # only the number is known
    checkpoints.save_vocabulary(saved.parent / 'vocab.txt', words)
    nets.load_classifier(saved, words)
    with pytest.raises(UserError, match="word 3 was 'w3', the corpus has 'other'"):
        nets.load_classifier(saved, [*words[:3], 'other', *words[4:]])
    with pytest.raises(UserError, match='20 words, the corpus has 19'):
        nets.load_classifier(saved, words[:19])
