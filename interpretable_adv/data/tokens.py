"""Raw text to words, and the two entries of every vocabulary that are not words.

Two tokenizers, by the name that a corpus and every run store:

* `words`: runs of Unicode word characters; everything else separates words and is dropped.
* `whitespace`: runs of anything but white space, for text that is tokenised already and for
  languages whose words hold other characters.
"""
import re

EOS, UNK = 0, 1  # ids of the end of a review, and of words outside the vocabulary
SPECIALS = ['<eos>', '<unk>']
# Python's `re`, as NLTK's tokeniser used to: for its newer engine ½ is no word character, and the
# paper's vocabulary of 87,008 comes out with `re` only.
PATTERNS = {'words': re.compile(r'\w+'), 'whitespace': re.compile(r'\S+')}
TOKENIZERS = tuple(PATTERNS)
DESCRIPTIONS = {
    'words': 'words are runs of letters, digits and _; all other characters are dropped',
    'whitespace': 'words are what white space separates; no other character is dropped'}
DEFAULT = 'words'  # of IMDB, of the toy corpus, and of runs that store none


def tokenize(text, tokenizer=DEFAULT):
    """The words of `text`; case is kept, nothing is empty."""
    return PATTERNS[tokenizer].findall(text)


def spans(text, tokenizer=DEFAULT):
    """Where the words of `text` begin and end: a list of pairs."""
    return [match.span() for match in PATTERNS[tokenizer].finditer(text)]


def dropped(text, tokenizer=DEFAULT):
    """The characters besides white space that belong to no word, joined."""
    return ''.join(PATTERNS[tokenizer].sub('', text).split())
