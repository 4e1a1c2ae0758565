import chainer
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from interpretable_adv import data
from interpretable_adv.errors import UserError
from lm import streams
from lm.streams import StreamIterator, evaluation_windows


@given(st.integers(2, 60), st.integers(1, 9), st.integers(1, 12), st.integers(1, 20))
def test_windows_follow_upstreams_formula(length, batch_size, window, calls):
    text = np.random.RandomState(length).randint(0, 1000, length).astype(np.int32)
    iterator = StreamIterator(text, batch_size, window)
    epochs = 0
    for call in range(calls):
        words, targets = next(iterator)
        assert words.dtype == targets.dtype == np.int32
        for stream in range(batch_size):
            for step in range(window):
                position = stream * length // batch_size + call * window + step
                assert words[stream, step] == text[position % length]
                assert targets[stream, step] == text[(position + 1) % length]
        read = (call + 1) * window
        assert iterator.epoch == read * batch_size // length
        assert iterator.is_new_epoch == (iterator.epoch > epochs)
        assert iterator.epoch_detail == read * batch_size / length
        epochs = iterator.epoch


def test_goes_on_after_a_snapshot(tmp_path):
    text = np.arange(50, dtype=np.int32)
    iterator = StreamIterator(text, 3, 7)
    for _ in range(4):
        next(iterator)
    path = str(tmp_path / 'iterator.npz')
    chainer.serializers.save_npz(path, iterator)
    other = StreamIterator(text, 3, 7)
    chainer.serializers.load_npz(path, other)
    assert other.epoch == iterator.epoch
    np.testing.assert_array_equal(next(other), next(iterator))


@pytest.mark.parametrize('streams', [1, 2, 3, 7, 50])
@pytest.mark.parametrize('window', [1, 4, 100])
def test_an_evaluation_reads_each_word_once(streams, window):
    text = np.arange(100, 123, dtype=np.int32)
    pieces = [[] for _ in range(min(streams, 23))]
    for words, targets, lengths in evaluation_windows(text, streams, window):
        assert lengths.max() <= window and (np.diff(lengths) <= 0).all()
        np.testing.assert_array_equal(targets, np.where(words == 122, 100, words + 1))
        for stream, part in enumerate(np.split(words, np.cumsum(lengths)[:-1])):
            pieces[stream].extend(part)
    assert sum(pieces, []) == text.tolist()


# Texts ----------------------------------------------------------------------------------------

def test_the_corpus_as_it_is(synthetic):
    corpus = data.load(str(synthetic))
    text = streams.from_corpus(corpus)
    np.testing.assert_array_equal(text.train.flat, corpus.lm_train())
    np.testing.assert_array_equal(text.dev.flat, corpus.lm_dev())
    np.testing.assert_array_equal(text.test.flat, corpus.lm_test())


@pytest.mark.parametrize('ignore_unk', [True, False])
def test_its_own_vocabulary_changes_nothing(synthetic, ignore_unk):
    usual = streams.from_corpus(data.load(str(synthetic), ignore_unk=ignore_unk))
    everything = data.load(str(synthetic), min_count=0, ignore_unk=False)
    again = streams.with_vocabulary(everything, usual.words, ignore_unk)
    assert again.words == usual.words
    for split in ('train', 'dev', 'test'):
        np.testing.assert_array_equal(getattr(again, split).flat, getattr(usual, split).flat)


def test_the_first_reviews(synthetic):
    text = streams.from_corpus(data.load(str(synthetic)))
    few = text.first(3)
    for split in ('train', 'dev', 'test'):
        reviews = getattr(few, split)
        assert len(reviews) == 3
        for short, whole in zip(reviews, getattr(text, split)):
            np.testing.assert_array_equal(short, whole)
    assert len(text.first(10 ** 6).train) == len(text.train)


def test_reads_a_vocabulary(tmp_path):
    path = tmp_path / 'vocab.txt'
    path.write_text('<eos>\n<unk>\nfilm\nÄrger\n', encoding='utf-8')
    assert data.read_vocabulary(str(path)) == ['<eos>', '<unk>', 'film', 'Ärger']


@pytest.mark.parametrize('content', [
    b'', b'film\nwas\n', b'<eos>\n<unk>\n', b'<eos>\n<unk>\nfilm\nfilm\n',
    b'<eos>\n<unk>\n\nfilm\n', b'\xff\xfe\x00'])
def test_refuses_a_wrong_vocabulary_in_one_line(tmp_path, content):
    path = tmp_path / 'vocab.txt'
    path.write_bytes(content)
    with pytest.raises(UserError, match='vocab.txt'):
        data.read_vocabulary(str(path))


def test_refuses_a_missing_vocabulary(tmp_path):
    with pytest.raises(UserError, match='no such file'):
        data.read_vocabulary(str(tmp_path / 'nowhere.txt'))
