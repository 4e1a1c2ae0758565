"""Corpora: prepared text files → vocabulary → sequences of word ids.
"""
import array
import collections
import contextlib
import hashlib
import json
import os
from typing import NamedTuple

import numpy as np

from interpretable_adv.data import cache, custom, text_files, tokens
from interpretable_adv.data.texts import TextReader, vocabulary_sha256
from interpretable_adv.data.tokens import EOS, SPECIALS, UNK
from interpretable_adv.errors import UserError

CACHE_FORMAT = 2  # raise when the same text and flags give other ids

NO_LABEL = -1  # of a text whose class is not known

Split = collections.namedtuple('Split', 'sequences labels')


class Sequences(collections.abc.Sequence):
    """Reviews as a list of int32 arrays, all of them views of one array.

    Args:
        flat: int32 (words of all reviews), each review ending in id 0, which occurs nowhere else.
    """

    def __init__(self, flat):
        self.flat = flat
        self._starts = np.concatenate([[0], np.flatnonzero(flat == EOS) + 1])

    def __len__(self):
        return len(self._starts) - 1

    def __getitem__(self, index):
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(len(self)))]
        index = range(len(self))[index]  # negative indices, IndexError
        return self.flat[self._starts[index]:self._starts[index + 1]]

    @property
    def lengths(self):
        """int64 (reviews): words per review, with the final `<eos>`."""
        return np.diff(self._starts)


class Corpus:
    """A numbered corpus.

    Attributes:
        words (list of str): Vocabulary in id order; 0 is `<eos>`, 1 is `<unk>`.
        vocab (dict): Word → id.
        n_vocab (int): Size of the vocabulary with the two specials.
        train_vocab_size (int): How many words, without the specials, occur in the labelled
            training reviews. They have the ids 2 … train_vocab_size + 1.
        label_names (list of str), n_class (int): The classes.
        tokenizer (str): How its texts were split into words, see `tokens`.
        train, dev, test (Split): `sequences` (int32 arrays, each ending in id 0) and
            `labels` (int32 array).
        unlabeled (Sequences): Unlabelled reviews; empty when they were not asked for.
        vocab_sha256 (str): Hash of the words joined by newlines.
    """

    def __init__(self, flat, counts, labels, words, train_vocab_size, label_names,
                 tokenizer=tokens.DEFAULT):
        """
        Args:
            flat: int32 ids of unlabelled, training, dev and test reviews end to end.
            counts: Number of reviews in these four, in this order.
            labels: int32 classes of the training, dev and test reviews.
        """
        self.words = words
        self.vocab = {word: number for number, word in enumerate(words)}
        self.n_vocab = len(words)
        self.train_vocab_size = train_vocab_size
        self.label_names = label_names
        self.n_class = len(label_names)
        self.tokenizer = tokenizer
        self.vocab_sha256 = vocabulary_sha256(words)

        ends = np.concatenate([[0], np.flatnonzero(flat == EOS) + 1])[np.cumsum([0, *counts])]
        self._flat, self._ends = flat, ends
        sequences = [Sequences(flat[a:b]) for a, b in zip(ends[:-1], ends[1:])]
        labels = np.split(labels, np.cumsum(counts[1:])[:-1])
        self.unlabeled = sequences[0]
        self.train, self.dev, self.test = map(Split, sequences[1:], labels)

    @property
    def n_labeled_words(self):
        """How many ids belong to words of labelled training reviews, the specials included."""
        return self.train_vocab_size + len(SPECIALS)

    def lm_train(self):
        """int32: the unlabelled and then the labelled training reviews, end to end."""
        return self._flat[:self._ends[2]]

    def lm_dev(self):
        """int32: the dev reviews end to end."""
        return self.dev.sequences.flat

    def lm_test(self):
        """int32: the test reviews end to end."""
        return self.test.sequences.flat


def load(data_dir, lower=False, min_count=1, ignore_unk=True, use_unlabeled=True):
    """Reads a prepared corpus and numbers its words.

    The vocabulary holds the words that occur in more than `min_count` reviews of train and,
    with `use_unlabeled`, unlabelled text, in order of first occurrence. Other words are dropped
    with `ignore_unk` and become `<unk>` without. The result is kept in `data_dir` and used again
    as long as texts and flags stay the same.

    Args:
        data_dir (str): Folder with upstream's seven files, or with a manifest `corpus.json`.
        lower (bool): Lower-case all words first.
        use_unlabeled (bool): Read the unlabelled reviews, and count their words.
    """
    if min_count < 0:
        raise UserError(f'min_count is {min_count}: it must be 0 or more')
    flags = {'lower': int(lower), 'min_count': int(min_count), 'ignore_unk': int(ignore_unk),
             'use_unlabeled': int(use_unlabeled)}
    label_names, splits = text_files.open_corpus(data_dir, use_unlabeled)
    path = os.path.join(data_dir, 'ids_lower{lower}_min{min_count}_ignore{ignore_unk}'
                                  '_unlabeled{use_unlabeled}.cache'.format(**flags))
    key = _key(flags, label_names, splits)
    arrays = cache.read(path, key)
    if arrays is None or not _is_numbering(arrays, len(label_names)):
        arrays = _number(splits, lower, min_count, ignore_unk)
        # a folder that cannot be written to costs time at the next load, nothing else
        if not text_files.is_read_only(data_dir):
            with contextlib.suppress(UserError):
                cache.write(path, key, **arrays)
    words = arrays['words'].tobytes().decode('utf-8').split('\n')
    return Corpus(arrays['flat'], arrays['counts'].tolist(), arrays['labels'], words,
                  int(arrays['train_vocab_size']), label_names,
                  text_files.describe(data_dir)['tokenizer'])


class Texts(NamedTuple):
    """Texts of a file.

    Attributes:
        sequences: their ids.
        labels: int32, `NO_LABEL` where the file has none.
        texts: `texts.Text` of each.
    """

    sequences: list
    labels: np.ndarray
    texts: list


def read_texts(path, corpus, lower, ignore_unk, text_column='text', label_column='label'):
    """The texts of a file with their labels, numbered as `load` numbered a corpus.

    Texts without a word are left out.

    Args:
        path (str): see `custom.read_rows`. Labels may be missing, all of them only if
            `label_column` is not another than the default.
        lower, ignore_unk: as the corpus was loaded with.
    """
    reader = TextReader(corpus.words, corpus.tokenizer, lower, ignore_unk)
    number = {name: index for index, name in enumerate(corpus.label_names)}
    found, labels = [], []
    for row in custom.read_rows(path, text_column, label_column, needs_label=False):
        if row.label and row.label not in number:
            raise UserError(f'{path}, line {row.line}: the label {row.label!r} is none of '
                            f'{", ".join(corpus.label_names)}')
        text = reader(row.text)
        if len(text.ids) > 1 or text.unknown:
            found.append(text)
            labels.append(number[row.label] if row.label else NO_LABEL)
    if not found:
        raise UserError(f'{path} contains no usable text; check its text and label columns')
    if label_column != 'label' and max(labels) == NO_LABEL:
        raise UserError(f'{path}: no text has a label under {label_column!r}; name the right '
                        'column with --label_column, or leave the flag out')
    return Texts([text.ids for text in found], np.array(labels, np.int32), found)


def _key(flags, label_names, splits):
    """Hash of everything the ids depend on."""
    described = [[split, os.path.basename(text.path), hashlib.sha256(text.content).hexdigest(),
                  text.labels] for split, texts in splits.items() for text in texts]
    description = json.dumps([CACHE_FORMAT, flags, label_names, described])
    return hashlib.sha256(description.encode()).hexdigest()


def _is_numbering(arrays, n_class):
    """Whether arrays from a cache are what `_number` returns for some corpus."""
    kinds = {'flat': ('i4', 1), 'labels': ('i4', 1), 'counts': ('i8', 1), 'words': ('u1', 1),
             'train_vocab_size': ('i8', 0)}
    if {name: (array.dtype.str[1:], array.ndim) for name, array in arrays.items()} != kinds:
        return False
    flat, counts, labels = arrays['flat'], arrays['counts'], arrays['labels']
    try:
        words = arrays['words'].tobytes().decode('utf-8').split('\n')
    except UnicodeDecodeError:
        return False
    n_words = len(words)
    return (words[:2] == SPECIALS and len(set(words)) == n_words
            and len(counts) == 4 and counts.min() >= 0
            and counts.sum() == len(flat) - np.count_nonzero(flat)
            and counts[1:].sum() == len(labels) and len(flat) > 0 and flat[-1] == EOS
            and 0 <= flat.min() <= flat.max() < n_words
            and 0 <= labels.min(initial=0) <= labels.max(initial=0) < n_class
            and 0 <= arrays['train_vocab_size'] <= n_words - len(SPECIALS))


def _number(splits, lower, min_count, ignore_unk):
    """Flat ids, counts, labels, words (UTF-8, joined by newlines) and train_vocab_size, as arrays
    by name; see `Corpus`."""
    # Provisional ids count all words in order of first occurrence; 0 ends a review. Splits are
    # read in the order that numbers the vocabulary.
    numbering = collections.defaultdict()
    numbering.default_factory = numbering.__len__
    numbering[None] = EOS
    read = {}
    for split in ('train', 'unlabeled', 'dev', 'test'):
        read[split] = _read_split(split, splits[split], lower, numbering)

    n_words = len(numbering)
    frequency = _document_frequency(
        np.concatenate([read['train'][0], read['unlabeled'][0]]), n_words)
    known = frequency > min_count
    known[EOS] = False
    for special in SPECIALS:  # as a word of the text
        if special in numbering:
            known[numbering[special]] = False
    words = SPECIALS + [word for word, keep in zip(numbering, known) if keep]
    if len(words) == len(SPECIALS):
        raise UserError(f'no word occurs in more than {min_count} training reviews: '
                        'use a smaller min_count')
    in_train = np.zeros(n_words, bool)
    in_train[read['train'][0]] = True

    final = np.full(n_words, UNK, np.int32)
    final[known] = np.arange(len(SPECIALS), len(words))
    final[EOS] = EOS
    order = ('unlabeled', 'train', 'dev', 'test')
    flat = final[np.concatenate([read[split][0] for split in order])]
    if ignore_unk:
        flat = flat[flat != UNK]
    counts = [len(read[split][1]) for split in order]
    labels = np.concatenate([read[split][1] for split in order[1:]]).astype(np.int32)
    return {'flat': flat, 'labels': labels, 'counts': np.array(counts),
            'words': np.frombuffer('\n'.join(words).encode(), np.uint8),
            'train_vocab_size': np.array((in_train & known).sum())}


def _read_split(split, texts, lower, numbering):
    """Returns provisional ids, int32 (words), and the class of each review (None: unlabelled)."""
    ids, labels = array.array('i'), []
    for text in texts:
        before = len(labels)
        for words in text.reviews(lower):
            ids.extend(map(numbering.__getitem__, words))
            ids.append(EOS)
            labels.append(text.labels)
        if isinstance(text.labels, list):
            if len(text.labels) != len(labels) - before:
                raise UserError(f'{text.path} has {len(labels) - before} reviews and '
                                f'{len(text.labels)} labels: prepare the corpus again')
            labels[before:] = text.labels
        if split != 'unlabeled' and len(labels) == before:
            raise UserError(f'{text.path} holds no review: prepare the corpus again')
    return np.array(ids, np.int32), labels


def _document_frequency(ids, n_words):
    """int64 (n_words): in how many reviews each id occurs.

    Args:
        ids: int32 (words of all reviews), each review ending in id 0.
    """
    review = np.cumsum(ids == EOS, dtype=np.int64)
    n_reviews = int(review[-1]) + 1 if len(review) else 1
    occurrences = ids.astype(np.int64)
    occurrences *= n_reviews
    occurrences += review
    occurrences.sort()
    first = np.ones(len(ids), bool)
    np.not_equal(occurrences[1:], occurrences[:-1], out=first[1:])
    return np.bincount(occurrences[first] // n_reviews, minlength=n_words)


def statistics(corpus):
    """Table 2 and the hashes that identify a numbered corpus, as plain values.

    Sequence lengths count the final `<eos>`, as the paper's do.
    """
    table = {}
    for name in ('train', 'dev', 'test'):
        lengths = getattr(corpus, name).sequences.lengths
        table[name] = {'examples': len(lengths)}
        if len(lengths):
            table[name].update(min=int(lengths.min()), max=int(lengths.max()),
                               mean=float(lengths.mean()))
    table['unlabeled'] = {'examples': len(corpus.unlabeled)}
    streams = {'lm_train': corpus.lm_train(), 'lm_test': corpus.lm_test()}
    result = {'table2': table, 'n_vocab': corpus.n_vocab,
              'train_vocab_size': corpus.train_vocab_size, 'vocab_sha256': corpus.vocab_sha256}
    for name, stream in streams.items():
        result[f'{name}_tokens'] = len(stream)
        result[f'{name}_sha256'] = hashlib.sha256(
            np.ascontiguousarray(stream, '<i4').data).hexdigest()
    return result
