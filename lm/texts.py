"""The texts of the language model: which words it knows, and the ids of each split."""
from typing import Any, NamedTuple

import numpy as np

from interpretable_adv import data
from interpretable_adv.cli import UserError


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


def read_vocabulary(path):
    """Words in id order from a file with one a line, such as the `vocab.txt` of a run."""
    try:
        with open(path, encoding='utf-8') as stream:
            words = stream.read().split('\n')
    except OSError as error:
        raise UserError(f'{path}: {error.strerror}; give a file like a run\'s vocab.txt') from None
    except UnicodeDecodeError:
        raise UserError(f'{path} is not UTF-8 text; give a file like a run\'s vocab.txt') from None
    if words[-1] == '':
        words.pop()
    if words[:2] != data.SPECIALS:
        raise UserError(f'{path} must begin with the lines {" and ".join(data.SPECIALS)}, '
                        'as a run\'s vocab.txt does')
    if len(set(words)) != len(words) or '' in words or len(words) < 3:
        raise UserError(f'{path} must hold one word a line, each of them once')
    return words
