"""Antonyms and synonyms, from a WordNet database where there is one.

The database is Princeton's files `index.noun`, `data.noun`, `noun.exc`, …, as Debian's
`wordnet-base` installs them or as NLTK downloads them. Nothing else of NLTK is needed.
"""
import contextlib
import dataclasses
import os
import pathlib
import zipfile
from collections.abc import Iterator

from interpretable_adv.errors import UserError

DEBIAN = '/usr/share/wordnet'
PARTS = ('noun', 'verb', 'adj', 'adv')
LETTERS = {'n': 'noun', 'v': 'verb', 'a': 'adj', 's': 'adj', 'r': 'adv'}
ANTONYM, SIMILAR = '!', '&'
Key = tuple[str, str]  # part of speech and offset of a synset
# Endings of inflected forms and what replaces them, as WordNet's own `morphy` has them.
ENDINGS = {
    'noun': (('s', ''), ('ses', 's'), ('xes', 'x'), ('zes', 'z'), ('ches', 'ch'), ('shes', 'sh'),
             ('men', 'man'), ('ies', 'y')),
    'verb': (('s', ''), ('ies', 'y'), ('es', 'e'), ('es', ''), ('ed', 'e'), ('ed', ''),
             ('ing', 'e'), ('ing', '')),
    'adj': (('er', ''), ('est', ''), ('er', 'e'), ('est', 'e')),
    'adv': (),
}


@dataclasses.dataclass(frozen=True)
class Synset:
    """Words with one meaning.

    Attributes:
        kind: of `LETTERS`; 's' is an adjective around a head, as `icy` around `cold`.
        pointers: `(symbol, key of another synset, place of the word here, place there)`.
    """
    kind: str
    words: list[str]
    pointers: list[tuple[str, Key, int, int]]


class WordNet:
    """A database; lines are kept as they are, and parsed when they are asked for.

    Args:
        folder: with the files, or a zip file that has them in a folder `wordnet`.
    """

    def __init__(self, folder: str | pathlib.Path):
        self.folder = str(folder)
        self._irregular: dict[str, dict[str, list[str]]] = {}  # part → inflected form → bases
        self._senses: dict[str, dict[str, str]] = {}  # part → word → the rest of its line
        self._lines: dict[str, dict[str, str]] = {}  # part → offset → line of a synset
        self._synsets: dict[Key, Synset] = {}  # parsed so far
        self._relations: dict[tuple[str, str], str | None] = {}  # asked for so far
        with self._complaining():
            for part in PARTS:
                self._read(part)

    def _read(self, part: str) -> None:
        forms = (line.split() for line in _lines(self.folder, f'{part}.exc'))
        self._irregular[part] = {inflected: bases for inflected, *bases in forms}
        self._senses[part], self._lines[part] = {}, {}
        for name, lines in (('index', self._senses[part]), ('data', self._lines[part])):
            for line in _lines(self.folder, f'{name}.{part}'):
                if not line.startswith(' '):  # the licence
                    first, space, rest = line.partition('|')[0].partition(' ')
                    if not space:
                        raise ValueError(f'{name}.{part}: {line.strip()[:40]!r}')
                    lines[first] = rest

    @contextlib.contextmanager
    def _complaining(self) -> Iterator[None]:
        try:
            yield
        except (OSError, ValueError, IndexError, KeyError, zipfile.BadZipFile) as error:
            raise UserError(f'{self.folder} is not a WordNet database ({error}): give a folder '
                            "with data.noun and the others, such as Debian's /usr/share/wordnet"
                            ) from error

    def _synset(self, key: Key) -> Synset:
        if key not in self._synsets:
            part, offset = key
            _, kind, count, *fields = self._lines[part][offset].split()
            end = 2 * int(count, 16)
            rest = fields[end + 1:]
            self._synsets[key] = Synset(
                kind, [word.partition('(')[0].lower() for word in fields[:end:2]],
                [(symbol, (LETTERS[letter], target), int(places[:2], 16), int(places[2:4], 16))
                 for symbol, target, letter, places in zip(*(rest[i::4] for i in range(4)))
                 if symbol in (ANTONYM, SIMILAR) and letter in LETTERS])
        return self._synsets[key]

    def relation(self, word: str, other: str) -> str | None:
        """'antonym', 'synonym' or None.

        Antonyms are the pairs that WordNet lists, and adjectives of opposite clusters (`lovely` is
        similar to `beautiful`, whose antonym is `ugly`, to which `hideous` is similar). Synonyms
        have a meaning in common; so do two forms of one word. Words are looked up in all their
        meanings, by their base forms.
        """
        if (word, other) not in self._relations:
            with self._complaining():
                self._relations[word, other] = self._find_relation(word, other)
        return self._relations[word, other]

    def _find_relation(self, word: str, other: str) -> str | None:
        mine, theirs = self._meanings(word), self._meanings(other)
        if any(self._antonyms(*meaning) & theirs for meaning in mine):
            return 'antonym'
        synsets = {synset for synset, _ in mine}, {synset for synset, _ in theirs}
        if synsets[0] & synsets[1]:
            return 'synonym'
        heads = [{head for synset in part for head in self._heads(synset)} for part in synsets]
        if any(self._targets(head, ANTONYM) & heads[1] for head in heads[0]):
            return 'antonym'
        return None

    def _meanings(self, word: str) -> set[tuple[Key, str]]:
        """All (synset, base form) of a word."""
        found = set()
        for part in PARTS:
            for base in self._bases(word, part):
                _, count, *fields = self._senses[part][base].split()
                found |= {((part, offset), base) for offset in fields[-int(count):]}
        return found

    def _bases(self, word: str, part: str) -> set[str]:
        word = word.lower()
        forms = {word, *self._irregular[part].get(word, ())}
        if word not in self._irregular[part]:
            forms |= {word.removesuffix(ending) + base for ending, base in ENDINGS[part]
                      if word.endswith(ending)}
        return {form for form in forms if form in self._senses[part]}

    def _antonyms(self, key: Key, word: str) -> set[tuple[Key, str]]:
        """The (synset, word) that WordNet lists as antonyms of one."""
        synset = self._synset(key)
        return {(target, self._synset(target).words[there - 1])
                for symbol, target, here, there in synset.pointers
                if symbol == ANTONYM and synset.words[here - 1] == word}

    def _heads(self, key: Key) -> set[Key]:
        """The heads of the clusters that an adjective belongs to; it may be one itself."""
        kind = self._synset(key).kind
        return {key} if kind == 'a' else self._targets(key, SIMILAR) if kind == 's' else set()

    def _targets(self, key: Key, symbol: str) -> set[Key]:
        return {target for other, target, _, _ in self._synset(key).pointers if other == symbol}


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
