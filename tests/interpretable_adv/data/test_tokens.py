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
def test_words_are_the_runs_of_word_characters(text):
    assert tokens.tokenize(text) == re.findall(r'\w+', text)


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
