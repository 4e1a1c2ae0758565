import chainer
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

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
