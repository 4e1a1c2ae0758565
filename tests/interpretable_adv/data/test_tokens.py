"""Tests of `interpretable_adv.data.tokens`."""
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpretable_adv.data import tokens


@pytest.mark.parametrize('text, words', [
    ('', []),
    (' \n\t ...', []),
    ('Good, but NOT great!', ['Good', 'but', 'NOT', 'great']),
    ("It isn't bad<br /><br />At all", ['It', 'isn', 't', 'bad', 'br', 'br', 'At', 'all']),
    ('snake_case 2nd 7½ ¾', ['snake_case', '2nd', '7½', '¾']),  # ½ counts as a word character
    ('naïve Ünïcödé 映画', ['naïve', 'Ünïcödé', '映画']),
    ('two\nlines\r\nthree', ['two', 'lines', 'three']),
])
def test_examples(text, words):
    assert tokens.tokenize(text) == words


@settings(deadline=None)
@given(st.text())
def test_words_are_what_other_characters_separate(text):
    r"""As NLTK's `RegexpTokenizer(r'\W+', gaps=True)`, upstream's, splits."""
    assert tokens.tokenize(text) == [part for part in re.split(r'\W+', text) if part]


@settings(deadline=None)
@given(st.text())
def test_white_space_separates(text):
    assert tokens.tokenize(text, 'whitespace') == text.split()
    assert tokens.dropped(text, 'whitespace') == ''


@settings(deadline=None)
@given(st.text(), st.sampled_from(tokens.TOKENIZERS))
def test_spans_and_what_is_dropped(text, tokenizer):
    words = tokens.tokenize(text, tokenizer)
    assert [text[start:stop] for start, stop in tokens.spans(text, tokenizer)] == words
    assert sum(map(len, words)) + len(tokens.dropped(text, tokenizer)) == sum(
        not character.isspace() for character in text)


def test_dropped_characters():
    assert tokens.dropped("isn't  it?\n") == "'?"


@settings(deadline=None)
@given(st.text())
def test_lines_may_be_split_before_or_after(text):
    by_line = [word for line in text.split('\n') for word in tokens.tokenize(line)]
    assert tokens.tokenize(text) == by_line


@settings(deadline=None)
@given(st.text())
def test_tokenising_twice_changes_nothing(text):
    words = tokens.tokenize(text)
    assert tokens.tokenize(' '.join(words)) == words
    assert all(word and not re.search(r'\s', word) for word in words)
