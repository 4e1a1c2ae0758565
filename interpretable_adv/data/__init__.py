"""Corpora: making them, reading them, and numbering their words."""
from interpretable_adv.data.corpus import (
    NO_LABEL,
    Corpus,
    Sequences,
    Split,
    load,
    read_texts,
    statistics,
)
from interpretable_adv.data.text_files import DESCRIPTION, describe
from interpretable_adv.data.texts import (
    Text,
    TextReader,
    describe_unknown,
    from_ids,
    read_vocabulary,
    vocabulary_sha256,
)
from interpretable_adv.data.tokens import EOS, SPECIALS, TOKENIZERS, UNK

__all__ = ['DESCRIPTION', 'EOS', 'NO_LABEL', 'SPECIALS', 'TOKENIZERS', 'UNK', 'Corpus', 'Sequences',
           'Split', 'Text', 'TextReader', 'describe', 'describe_unknown', 'from_ids', 'load',
           'read_texts', 'read_vocabulary', 'statistics', 'vocabulary_sha256']
