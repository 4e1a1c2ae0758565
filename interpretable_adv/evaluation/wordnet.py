"""Antonyms and synonyms, from a WordNet database where there is one.

The database is Princeton's files `data.noun`, `verb.exc`, …, as Debian's `wordnet-base` installs
them or as NLTK downloads them. Nothing else of NLTK is needed.
"""
import os
import pathlib
import zipfile
from collections import defaultdict
from collections.abc import Iterator

from interpretable_adv.errors import UserError

DEBIAN = '/usr/share/wordnet'
PARTS = ('noun', 'verb', 'adj', 'adv')
LETTERS = {'n': 'noun', 'v': 'verb', 'a': 'adj', 's': 'adj', 'r': 'adv'}
ANTONYM, SIMILAR = '!', '&'
# Endings of inflected forms and what replaces them, as WordNet's own `morphy` has them.
ENDINGS = {
    'noun': (('s', ''), ('ses', 's'), ('xes', 'x'), ('zes', 'z'), ('ches', 'ch'), ('shes', 'sh'),
             ('men', 'man'), ('ies', 'y')),
    'verb': (('s', ''), ('ies', 'y'), ('es', 'e'), ('es', ''), ('ed', 'e'), ('ed', ''),
             ('ing', 'e'), ('ing', '')),
    'adj': (('er', ''), ('est', ''), ('er', 'e'), ('est', 'e')),
    'adv': (),
}


class WordNet:
    """A database in memory.

    Args:
        folder: with the files, or a zip file that has them in a folder `wordnet`.
    """

    def __init__(self, folder: str | pathlib.Path):
        self.folder = str(folder)
        self._synsets: dict[tuple[str, str], set] = defaultdict(set)  # (part, word) → synsets
        self._antonyms: set[tuple] = set()  # of (synset, word) pairs
        self._heads: dict[tuple, set] = defaultdict(set)  # adjective → heads of its clusters
        self._opposed: dict[tuple, set] = defaultdict(set)  # head → heads of opposite clusters
        self._irregular: dict[tuple[str, str], list[str]] = {}
        self._relations: dict[tuple[str, str], str | None] = {}  # asked for so far
        try:
            self._read()
        except (OSError, ValueError, IndexError, KeyError, zipfile.BadZipFile) as error:
            raise UserError(f'{folder} is not a WordNet database ({error}): give a folder with '
                            "data.noun and the others, such as Debian's /usr/share/wordnet"
                            ) from error

    def _read(self) -> None:
        words: dict[tuple, list[str]] = {}
        pointers = []
        for part in PARTS:
            for line in _lines(self.folder, f'{part}.exc'):
                inflected, *bases = line.split()
                self._irregular[part, inflected] = bases
            for line in _lines(self.folder, f'data.{part}'):
                if line.startswith(' '):  # the licence
                    continue
                fields = line.partition('|')[0].split()
                synset = part, fields[0]
                count = int(fields[3], 16)
                words[synset] = [word.partition('(')[0].lower()
                                 for word in fields[4:4 + 2 * count:2]]
                for word in words[synset]:
                    self._synsets[part, word].add(synset)
                if fields[2] == 'a':
                    self._heads[synset].add(synset)
                rest = fields[5 + 2 * count:]
                for symbol, offset, letter, places in zip(*(rest[i::4] for i in range(4))):
                    if symbol in (ANTONYM, SIMILAR) and letter in LETTERS:
                        pointers.append((symbol, fields[2], synset, (LETTERS[letter], offset),
                                         int(places[:2], 16), int(places[2:4], 16)))
        for symbol, kind, source, target, place, other in pointers:
            if symbol == ANTONYM:
                self._antonyms.add(((source, words[source][place - 1]),
                                    (target, words[target][other - 1])))
                self._opposed[source].add(target)
            elif kind == 's':  # a satellite is similar to the head of its cluster
                self._heads[source].add(target)

    def relation(self, word: str, other: str) -> str | None:
        """'antonym', 'synonym' or None.

        Antonyms are the pairs that WordNet lists, and adjectives of opposite clusters (`lovely` is
        similar to `beautiful`, whose antonym is `ugly`, to which `hideous` is similar). Synonyms
        have a meaning in common; so do two forms of one word. Words are looked up in all their
        meanings, by their base forms.
        """
        if (word, other) not in self._relations:
            self._relations[word, other] = self._find_relation(word, other)
        return self._relations[word, other]

    def _find_relation(self, word: str, other: str) -> str | None:
        mine, theirs = self._meanings(word), self._meanings(other)
        if any((a, b) in self._antonyms for a in mine for b in theirs):
            return 'antonym'
        synsets = {synset for synset, _ in mine}, {synset for synset, _ in theirs}
        if synsets[0] & synsets[1]:
            return 'synonym'
        heads = [{head for synset in part for head in self._heads.get(synset, ())}
                 for part in synsets]
        if any(self._opposed.get(head, set()) & heads[1] for head in heads[0]):
            return 'antonym'
        return None

    def _meanings(self, word: str) -> set[tuple]:
        """All (synset, base form) of a word."""
        return {(synset, base) for part in PARTS for base in self._bases(word, part)
                for synset in self._synsets[part, base]}

    def _bases(self, word: str, part: str) -> set[str]:
        word = word.lower()
        forms = {word, *self._irregular.get((part, word), ())}
        if (part, word) not in self._irregular:
            forms |= {word.removesuffix(ending) + base for ending, base in ENDINGS[part]
                      if word.endswith(ending)}
        return {form for form in forms if (part, form) in self._synsets}


def _lines(folder: str, name: str) -> Iterator[str]:
    if folder.endswith('.zip'):
        with zipfile.ZipFile(folder) as archive, archive.open(f'wordnet/{name}') as stream:
            yield from (line.decode('utf-8') for line in stream)
    else:
        with open(os.path.join(folder, name), encoding='utf-8') as stream:
            yield from stream


def find() -> WordNet | None:
    """The database of this machine: that of WNSEARCHDIR, Debian's, or NLTK's; None without one."""
    given = os.environ.get('WNSEARCHDIR')
    if given:
        return WordNet(given)
    nltk = [os.environ.get('NLTK_DATA', ''), os.path.expanduser('~/nltk_data'),
            '/usr/share/nltk_data', '/usr/local/share/nltk_data', '/usr/lib/nltk_data']
    places = [DEBIAN, *(os.path.join(place, 'corpora', name) for place in nltk if place
                        for name in ('wordnet', 'wordnet.zip'))]
    for place in places:
        if os.path.exists(os.path.join(place, 'data.noun')) or (
                place.endswith('.zip') and os.path.exists(place)):
            return WordNet(place)
    return None
