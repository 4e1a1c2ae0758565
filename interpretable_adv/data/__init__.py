"""Corpora: making them, reading them, and numbering their words."""
from interpretable_adv.data.corpus import Corpus, Sequences, Split, load, read_texts, statistics
from interpretable_adv.data.tokens import EOS, SPECIALS, UNK

__all__ = ['EOS', 'SPECIALS', 'UNK', 'Corpus', 'Sequences', 'Split', 'load', 'read_texts',
           'statistics']
