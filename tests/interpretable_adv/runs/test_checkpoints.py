"""checkpoints.py: Chainer's own layouts, and nothing assigned before everything is checked."""
import json
import os
import shutil
import subprocess
import sys

import chainer
import chainer.links as L
import h5py
import numpy as np
import pytest
from chainer import serializers

from interpretable_adv import data, nets
from interpretable_adv.errors import UserError
from interpretable_adv.runs import checkpoints
from tests import test_old_runs


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


@pytest.mark.parametrize('change, part', [
    (lambda text: text[:-1], 'cut short'), (lambda text: text[:text.index('w9')], 'lists 9 words'),
    (lambda text: text + 'more\n', 'lists 21 words'),
    (lambda text: text.replace('\n', '\r\n'), 'line ends of Windows')])
def test_a_damaged_vocabulary_is_refused(saved, change, part):
    words = [f'w{i}' for i in range(20)]
    path = saved.parent / 'vocab.txt'
    checkpoints.save_vocabulary(path, words)
    path.write_bytes(change(path.read_text()).encode())
    with pytest.raises(UserError, match=part):
        nets.load_classifier(saved, words)


@pytest.mark.parametrize('content, part', [
    (b'w0\n\xff\n', 'line 2: not UTF-8'), (None, 'a folder')])
def test_a_vocabulary_that_is_no_text_is_refused(saved, content, part):
    path = saved.parent / 'vocab.txt'
    path.mkdir() if content is None else path.write_bytes(content)
    with pytest.raises(UserError, match=part):
        nets.load_classifier(saved, [f'w{i}' for i in range(20)])


@pytest.mark.parametrize('n_class', [2, 3, 10 ** 6])
def test_a_classifier_of_other_classes_than_the_corpus_is_refused(saved, n_class):
    with pytest.raises(UserError, match='4 classes, the corpus'):
        nets.load_classifier(saved, n_class=n_class)
    assert len(nets.load_classifier(saved, n_class=4).output_layer.b) == 4


@pytest.mark.parametrize('change', [
    lambda b: b.astype('d') + 1e300, lambda b: b[0], lambda b: b[:0], lambda b: 'text',
    lambda b: h5py.Empty('f')])
def test_arrays_that_are_none_are_refused(saved, change):
    spoil(saved, 'output_layer/b', change)
    with pytest.raises(UserError):
        nets.load_classifier(saved)


def test_shapes_are_known_without_building(model):
    assert nets.shapes(**SIZES) == {name: array.shape for name, array in
                                    checkpoints._named_arrays(model)}


def test_sizes_that_do_not_fit_each_other_cost_no_memory(saved):
    spoil(saved, 'hidden_layer/W', lambda w: np.zeros((1, 10 ** 5), 'f'))
    with pytest.raises(UserError, match='the model needs'):  # an LSTM of 320 GB
        nets.load_classifier(saved)


@pytest.mark.parametrize('save', ['save_classifier', 'save_lm'])
def test_equal_models_are_equal_files(root, tmp_path, save):
    program = ('import sys, numpy as np; from interpretable_adv import nets; '
               'from interpretable_adv.runs import checkpoints; np.random.seed(1); '
               f'checkpoints.{save}(sys.argv[1], nets.Classifier(9, 4, 5, 3, 2, 2))')
    for seed in '123':
        subprocess.run([sys.executable, '-c', program, tmp_path / seed], cwd=root, check=True,
                       env={**os.environ, 'PYTHONHASHSEED': seed})
    assert len({(tmp_path / seed).read_bytes() for seed in '123'}) == 1


# Snapshots ----------------------------------------------------------------------------------

@pytest.fixture
def resume(root, tmp_path, capsys):
    """Resumes a tiny run from a snapshot of which some arrays are others."""
    def run(**changes):
        data_dir, out = tmp_path / 'data', tmp_path / 'run'
        shutil.copytree(root / 'tests/data/golden/synthetic/mini_synthetic', data_dir,
                        ignore=shutil.ignore_patterns('*.cache'))
        out.mkdir()
        arrays = dict(np.load(root / 'tests/data/paper_size_1/classifier/snapshot.npz'))
        for name, change in changes.items():
            found, = (full for full in arrays if full.endswith(name))
            arrays[found] = np.asarray(change(arrays[found]))
        np.savez(out / 'snapshot.npz', **arrays)
        main, flags = test_old_runs.RUNS['classifier']
        main(['--data_dir', str(data_dir), '--out', str(out), '--resume', *flags])
        return out
    return run


def test_an_unchanged_snapshot_resumes(resume):
    assert (resume() / 'result.json').exists()


def nan(array):
    return array * np.nan


@pytest.mark.parametrize('name, change, part', [
    ('optimizer:main/hidden_layer/W/m', lambda a: np.zeros(1, 'f'), 'shape'),
    ('optimizer:main/uni_lstm/0/w0/v', lambda a: np.zeros(1, 'f'), 'shape'),
    ('optimizer:main/word_embed/W/v', lambda a: -1 - a, 'state of Adam'),
    ('optimizer:main/word_embed/W/m', nan, 'not finite'),
    ('optimizer:main/hidden_layer/b/t', lambda a: -1, 'state of Adam'),
    ('model:main/hidden_layer/b', lambda a: a.astype('d'), 'type float64'),
    ('model:main/hidden_layer/b', nan, 'not finite'),
    ('random/position', lambda a: 625, 'position'), ('random/position', lambda a: -5, 'position'),
    ('random/position', lambda a: 2 ** 31 - 1, 'position'),
    ('random/keys', lambda a: a[:-1], 'shape'), ('random/has_gauss', lambda a: 2, 'random stream'),
    ('iterator:main/order', lambda a: a * 0, 'every review once'),
    ('iterator:main/order', lambda a: a + 1, 'every review once'),
    ('iterator:main/step', lambda a: 10 ** 9, 'does not exist'),
    ('iterator:main/step', lambda a: a + 1, 'is at step'),
    ('updater/iteration', lambda a: a + 5, 'is at step'),
    ('neighbors/rows', lambda a: a + 10 ** 6, 'no word'),
    ('neighbors/known', lambda a: a.astype('u1'), 'type uint8'),
    ('EpochLog/_log', lambda a: '[' * 10 ** 5, 'nested'),
    ('EpochLog/_log', lambda a: '[3]', 'object'),
    ('EpochLog/_summary/_names', lambda a: '["a"]', 'other sums'),
    ('settings', lambda a: '5', 'not an object'), ('settings', lambda a: np.zeros(3), 'settings')])
def test_a_snapshot_that_no_run_could_write_is_refused(resume, name, change, part):
    with pytest.raises(UserError, match=part):
        resume(**{name: change})
