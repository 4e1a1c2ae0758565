"""Texts as a classifier reads them: words → ids, which words it does not know, and back to text."""
import collections
import dataclasses
import hashlib

import numpy as np

from interpretable_adv.data import tokens
from interpretable_adv.data.tokens import EOS, SPECIALS, UNK
from interpretable_adv.errors import UserError
from interpretable_adv.runs import checkpoints


@dataclasses.dataclass(frozen=True)
class Text:
    """A text and the ids that a model reads in its place.

    Attributes:
        text (str): as it was given.
        ids: int32 `(words + 1,)`, ending in `<eos>`.
        spans: where the words behind `ids` begin and end in `text`; `<eos>` has none.
        unknown (list of str): words that the model does not know, in the text's order.
    """

    text: str
    ids: np.ndarray
    spans: list
    unknown: list

    @property
    def known(self):
        """How many words the model knows."""
        return int((self.ids > UNK).sum())

    def replace(self, ids, words):
        """The text with other words in place of those that changed; all else stays.

        Args:
            ids: int `(words,)` or `(words + 1,)`; an id for `<eos>` is ignored.
            words: the vocabulary in id order.
        """
        parts, end = [], 0
        for (start, stop), old, new in zip(self.spans, self.ids, ids):
            parts += [self.text[end:start], self.text[start:stop] if old == new else words[new]]
            end = stop
        return ''.join([*parts, self.text[end:]])


class TextReader:
    """Reads texts as a corpus was read.

    Args:
        words: the vocabulary in id order.
        tokenizer: one of `tokens.TOKENIZERS`.
        lower: whether words are lower-cased first.
        ignore_unk: whether unknown words are left out, or become `<unk>`.
    """

    def __init__(self, words, tokenizer=tokens.DEFAULT, lower=False, ignore_unk=True):
        self._number = {word: number for number, word in enumerate(words)}
        for special in SPECIALS:  # no text can hold the end of another
            self._number.pop(special, None)
        self.tokenizer, self.lower, self.ignore_unk = tokenizer, lower, ignore_unk

    def __call__(self, text):
        """The `Text` of a string."""
        ids, spans, unknown = [], [], []
        for start, stop in tokens.spans(text, self.tokenizer):
            word = text[start:stop]
            number = self._number.get(word.lower() if self.lower else word)
            if number is None:
                unknown.append(word)
                if self.ignore_unk:
                    continue
            ids.append(UNK if number is None else number)
            spans.append((start, stop))
        return Text(text, np.array([*ids, EOS], np.int32), spans, unknown)


def describe_unknown(known, unknown, shown=10):
    """One line on the words that a model does not know, or '' if it knows all.

    Args:
        known: how many words it knows.
        unknown: iterable of those that it does not.
    """
    counts = collections.Counter(unknown)
    if not counts:
        return ''
    most = [f'{word} ({count:,})' if count > 1 else word
            for word, count in counts.most_common(shown)]
    return (f'{counts.total():,} of {known + counts.total():,} words are unknown to the model'
            + (', most often ' if len(counts) > shown else ': ') + ', '.join(most))


def from_ids(ids, words):
    """The `Text` of a review that is known by its ids alone: its words joined by spaces."""
    spans, position = [], 0
    for number in ids[:-1]:
        spans.append((position, position + len(words[number])))
        position += len(words[number]) + 1
    return Text(' '.join(words[number] for number in ids[:-1]), ids, spans, [])


def read_vocabulary(path):
    """Words in id order from a file with one a line, such as the `vocab.txt` of a run."""
    words = checkpoints.read_vocabulary(path, "give a file like a run's vocab.txt")
    if words[:2] != SPECIALS:
        raise UserError(f'{path} must begin with the lines {" and ".join(SPECIALS)}, '
                        'as a run\'s vocab.txt does')
    if len(set(words)) != len(words) or '' in words or len(words) < 3:
        raise UserError(f'{path} must hold one word a line, each of them once')
    return words


def vocabulary_sha256(words):
    """What a run's `args.json` remembers of its words."""
    return hashlib.sha256('\n'.join(words).encode()).hexdigest()
