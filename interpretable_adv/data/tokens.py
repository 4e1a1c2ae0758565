"""Raw text to words, and the two entries of every vocabulary that are not words."""
import functools
import re

EOS, UNK = 0, 1  # ids of the end of a review, and of words outside the vocabulary
SPECIALS = ['<eos>', '<unk>']


@functools.cache
def _tokenizer():
    from nltk.tokenize import RegexpTokenizer  # here, because importing NLTK takes over a second

    class Tokenizer(RegexpTokenizer):
        """NLTK's tokeniser, matching with Python's `re` whatever engine NLTK itself prefers.

        NLTK 3.10 compiles patterns with the `regex` package, for which ½ is no word character
        (for `re` it is one) and whose guard against slow patterns makes it five times slower.
        The paper's vocabulary of 87,008 comes out with `re` only.
        """

        def _check_regexp(self):
            if self._regexp is None:
                self._regexp = re.compile(self._pattern, self._flags)

    return Tokenizer(r'\W+', gaps=True)


def tokenize(text):
    """Splits `text` on runs of Unicode non-word characters; case is kept, nothing is empty."""
    return _tokenizer().tokenize(text)
