"""texts.py: what a model reads of a text, and the text that comes back."""
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpretable_adv import data

WORDS = ['<eos>', '<unk>', 'a', 'good', 'film', '½']


def read(text, **options):
    return data.TextReader(WORDS, **options)(text)


@pytest.mark.parametrize('text, ids, unknown', [
    ('a good film', [2, 3, 4], []),
    ('"A good… film!"', [3, 4], ['A']),
    ('', [], []), (' \n\t\0 😀 ', [], []), ('nothing known', [], ['nothing', 'known']),
    ('<eos> <unk>', [], ['eos', 'unk']), ('7½, ½', [5], ['7½']),
])
def test_ids_and_unknown_words(text, ids, unknown):
    found = read(text)
    assert found.text == text and found.unknown == unknown
    assert found.ids.dtype == np.int32 and found.ids.tolist() == [*ids, data.EOS]


def test_unknown_words_as_such():
    assert read('so good', ignore_unk=False).ids.tolist() == [data.UNK, 3, data.EOS]


def test_lower():
    found = read('A GOOD Thing', lower=True)
    assert found.ids.tolist() == [2, 3, data.EOS] and found.unknown == ['Thing']


def test_no_text_holds_the_end_of_another():
    found = read('good <eos> film <unk>', tokenizer='whitespace')
    assert found.ids.tolist() == [3, 4, data.EOS] and found.unknown == ['<eos>', '<unk>']


def test_replaced_words_leave_the_rest_of_the_text_in_place():
    found = read('A *good*, unheard-of film.', lower=True)
    assert found.replace(found.ids, WORDS) == found.text
    assert found.replace([2, 4, 4, 3], WORDS) == 'A *film*, unheard-of film.'
    assert found.replace([4, 3, 3, 0], WORDS) == 'film *good*, unheard-of good.'


@settings(deadline=None)
@given(st.text(), st.sampled_from(data.TOKENIZERS), st.booleans(), st.booleans())
def test_any_text_can_be_read(text, tokenizer, lower, ignore_unk):
    found = read(text, tokenizer=tokenizer, lower=lower, ignore_unk=ignore_unk)
    assert found.replace(found.ids, WORDS) == text
    assert len(found.spans) == len(found.ids) - 1
    assert found.ids[-1] == data.EOS and (found.ids[:-1] != data.EOS).all()


def test_a_review_that_is_known_by_its_ids():
    found = data.from_ids(np.array([3, 2, 4, 0], 'i'), WORDS)
    assert found.text == 'good a film' and found.unknown == []
    assert found.replace([4, 2, 3], WORDS) == 'film a good'
    assert data.from_ids(np.array([0], 'i'), WORDS).text == ''


def test_report_of_unknown_words():
    assert data.describe_unknown(5, []) == ''
    assert data.describe_unknown(1, ['so', 'very', 'so']) == (
        '3 of 4 words are unknown to the model: so (2), very')
    many = [f'x{i}' for i in range(20)] + ['y'] * 1000
    assert data.describe_unknown(0, many).startswith(
        '1,020 of 1,020 words are unknown to the model, most often y (1,000), x0, ')
