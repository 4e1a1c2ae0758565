"""The texts of the language model, and windows over them in parallel streams."""
from typing import Any, NamedTuple

import chainer
import numpy as np

from interpretable_adv import data


class StreamIterator(chainer.dataset.Iterator):
    """Windows of parallel streams through a text that wraps around.

    Stream i starts at word `i · length // batch_size`; each call moves all streams on by
    `window` words. With n windows read, the epoch is `n · window · batch_size // length`: the
    window that crosses its end is finished first.

    Args:
        words: int32 `(length,)`, on the host.
        batch_size: number of streams.
        window: words per stream and call.

    Calls return `words, targets`, both int32 `(batch_size, window)`; the target of a word is the
    word after it.
    """

    def __init__(self, words, batch_size, window):
        self.words, self.batch_size, self.window = words, batch_size, window
        self.position = 0
        starts = np.arange(batch_size, dtype=np.int64) * len(words) // batch_size
        self._grid = starts[:, None] + np.arange(window)

    def __next__(self):
        here = (self._grid + self.position) % len(self.words)
        self.position += self.window
        return self.words[here], self.words[(here + 1) % len(self.words)]

    @property
    def iteration(self):
        """How many windows there have been."""
        return self.position // self.window

    @property
    def epoch(self):
        return self._epoch_at(self.position)

    @property
    def is_new_epoch(self):
        return self.position > 0 and self.epoch > self._epoch_at(self.position - self.window)

    @property
    def epoch_detail(self):
        return self.position * self.batch_size / len(self.words)

    @property
    def previous_epoch_detail(self):
        return max(0, self.position - self.window) * self.batch_size / len(self.words)

    def _epoch_at(self, position):
        return position * self.batch_size // len(self.words)

    def serialize(self, serializer):
        self.position = int(serializer('position', self.position))
        if self.position % self.window:
            raise ValueError(f'no window begins at position {self.position}')


class ReviewWindow(NamedTuple):
    """A window of parallel streams of reviews; arrays on the host.

    Attributes:
        words, targets: int32 `(sum(lengths),)`, stream by stream, and the words after them.
        lengths: words of each stream.
        labels: the class of each stream's review.
        begins: whether the review of a stream begins in this window.
    """

    words: Any
    targets: Any
    lengths: Any
    labels: Any
    begins: Any

    def of(self, streams):
        """The same for some of the streams, given as a range."""
        chosen = slice(streams.start, streams.stop)
        ends = np.cumsum(self.lengths)
        words = slice((ends - self.lengths)[chosen][0], ends[chosen][-1])
        return ReviewWindow(self.words[words], self.targets[words], *(
            part[chosen] for part in self[2:]))


class ReviewIterator(chainer.dataset.Iterator):
    """Windows of parallel streams that read one labelled review after another.

    A review is read in windows of `window` words; its last one may be shorter, and then the stream
    takes the next review. The order is random and new whenever all reviews have been dealt out,
    from NumPy's global stream. An epoch is as many words as the reviews have together; the window
    that crosses its end is finished first. A review's last word is never an input.

    Args:
        sequences: id arrays, each ending in id 0.
        labels: int `(len(sequences),)`.
        batch_size: number of streams.
        window: the most words per stream and call.

    Calls return a `ReviewWindow`.
    """

    def __init__(self, sequences, labels, batch_size, window):
        self.sequences, self.labels = sequences, labels
        self.batch_size, self.window = batch_size, window
        self._usable = np.flatnonzero(np.array([len(s) for s in sequences]) > 1)
        self.n_words = sum(len(sequences[i]) - 1 for i in self._usable)
        self.position = self._before = 0  # words read, and before the last window
        self._order, self._next = np.zeros(len(self._usable), np.int64), 0
        self._review = np.full(batch_size, -1)
        self._offset = np.zeros(batch_size, np.int64)

    def __next__(self):
        begins = np.zeros(self.batch_size, bool)
        words, targets = [], []
        for stream in range(self.batch_size):
            review = self._review[stream]
            if review < 0 or self._offset[stream] >= len(self.sequences[review]) - 1:
                review = self._review[stream] = self._deal()
                self._offset[stream], begins[stream] = 0, True
            start = self._offset[stream]
            text = self.sequences[review][start:start + self.window + 1]
            words.append(text[:-1])
            targets.append(text[1:])
            self._offset[stream] += len(text) - 1
        lengths = np.array([len(part) for part in words])
        self._before, self.position = self.position, self.position + int(lengths.sum())
        return ReviewWindow(np.concatenate(words), np.concatenate(targets), lengths,
                            self.labels[self._review], begins)

    def _deal(self):
        if self._next % len(self._order) == 0:
            self._order, self._next = np.random.permutation(self._usable), 0
        self._next += 1
        return self._order[self._next - 1]

    @property
    def epoch(self):
        return self.position // self.n_words

    @property
    def is_new_epoch(self):
        return self.epoch > self._before // self.n_words

    @property
    def epoch_detail(self):
        return self.position / self.n_words

    @property
    def previous_epoch_detail(self):
        return self._before / self.n_words

    def serialize(self, serializer):
        self.position = int(serializer('position', self.position))
        self._before = int(serializer('before', self._before))
        self._next = int(serializer('next', self._next))
        self._order = serializer('order', self._order)
        self._review = serializer('review', self._review)
        self._offset = serializer('offset', self._offset)


def evaluation_windows(words, streams, window, part=lambda streams: streams):
    """Cuts a text into `streams` equal parts and reads all of them once, window by window.

    Every word is an input once; the target of the last word is the first one. Of the streams
    only a `part` is read: those which that function leaves of an array of all.

    Yields:
        `words, targets, lengths`: int32 `(n,)` stream by stream, and the words per stream. Parts
        differ in length by one at most, and longer ones come first, so the streams of a window
        are the first `len(lengths)` of the window before.
    """
    streams = min(streams, len(words))
    lengths = np.full(streams, len(words) // streams)
    lengths[:len(words) % streams] += 1
    starts, lengths = part(np.cumsum(lengths) - lengths), part(lengths)
    targets = np.roll(words, -1)
    for offset in range(0, lengths.max(initial=0), window):
        here = np.minimum(lengths - offset, window)
        here = here[here > 0]
        rows = np.concatenate([np.arange(start, start + n)
                               for start, n in zip(starts + offset, here)])
        yield words[rows], targets[rows], here


class Texts(NamedTuple):
    """What a language model is trained and tested on.

    Attributes:
        words: the vocabulary in id order.
        train, dev, test: `data.Sequences`; `.flat` is the text end to end, int32.
    """

    words: list
    train: Any
    dev: Any
    test: Any

    def first(self, n_reviews):
        """The same with the first reviews of each split only, for a quick trial."""
        return self._replace(**{
            split: data.Sequences(
                reviews.flat[:int(reviews.lengths[:n_reviews].sum())])
            for split, reviews in zip(self._fields[1:], self[1:])})


def from_corpus(corpus):
    """The texts of a corpus as it is."""
    return Texts(corpus.words, *(data.Sequences(flat) for flat in (
        corpus.lm_train(), corpus.lm_dev(), corpus.lm_test())))


def with_vocabulary(corpus, words, ignore_unk):
    """The texts of a corpus in other words' ids.

    Args:
        corpus: loaded with `min_count=0, ignore_unk=False`, so that no training word is missing.
        words: the vocabulary in id order.
        ignore_unk: whether words outside it are dropped, or become `<unk>`.
    """
    number = {word: index for index, word in enumerate(words)}
    table = np.array([number.get(word, data.UNK) for word in corpus.words], np.int32)
    splits = [table[flat] for flat in (corpus.lm_train(), corpus.lm_dev(), corpus.lm_test())]
    if ignore_unk:
        splits = [flat[flat != data.UNK] for flat in splits]
    return Texts(list(words), *map(data.Sequences, splits))
