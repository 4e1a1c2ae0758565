"""records.py: what a record says of an attack, and which records are read."""
import json
import types

import numpy as np
import pytest

from interpretable_adv.errors import UserError
from interpretable_adv.evaluation import records
from interpretable_adv.evaluation import reviews as reviews_module
from interpretable_adv.evaluation.victim import Adversary, Victim
from interpretable_adv.methods import AttackSettings
from tests.interpretable_adv.evaluation.plane import (
    BAD,
    EOS,
    FILM,
    GOOD,
    N_LABELED,
    VECTORS,
    WORDS,
    Bag,
    reviews,
)

# Writing --------------------------------------------------------------------------------------

NAMES = ('negative', 'positive')


class HandAttacked:
    """What `victim.AttackedReviews` offers, as tables: reviews of two words and of one."""

    sequences = reviews([GOOD, BAD], [FILM])
    ids = np.array([GOOD, BAD, FILM])
    adversary = types.SimpleNamespace(
        method='spgd', settings=AttackSettings(2.5, k=2),
        victim=types.SimpleNamespace(embeddings=VECTORS))
    logits = np.array([[0, np.log(3)], [np.log(4), 0]], 'f')
    logits_adv = np.array([[np.log(9), 0], [0, 0.5]], 'f')
    norms = np.array([0.5, 2.0, 0.0], 'f')
    neighbors = np.array([[3, 6], [4, 0], [0, 3]])
    cosines = np.array([[0.125, 0.75], [-0.5, -0.25], [0, 0]], 'f')
    neighbor_index = np.array([1, 0, 0])
    toward = np.array([6, 4, FILM])
    nearest = np.array([5, BAD, FILM])

    def logits_after(self, name):
        assert name == 'continuous'
        return self.logits_adv

    def split(self, rows):
        return [rows[:2], rows[2:]]


def make_records(attacked, indices, labels, words, names):
    return [records.make_record(review, index, words, names)
            for review, index in zip(reviews_module.split(attacked, labels), indices)]


def test_every_field_of_a_record_by_hand():
    first, second = make_records(
        HandAttacked(), [17, 4], np.array([1, 1], 'i'), WORDS, NAMES)
    words = first.pop('words')
    assert first == {
        'index': 17, 'method': 'spgd', 'label': 1, 'prediction': 1, 'prediction_adv': 0,
        'correct': True, 'label_names': ['negative', 'positive'], 'epsilon': 2.5, 'k': 2,
        'sparsity': 0.75, 'iterations': 1,
        'probability': 0.75, 'probability_adv': 0.1}
    assert words == [
        {'word': 'good', 'toward': 'film', 'nearest': 'bad', 'norm': 0.5, 'relative_norm': 0.25,
         'max_cosine': 0.75, 'cosines': [0.125, 0.75], 'neighbors': ['fine', 'film'],
         'neighbor_distance': round(2 * np.sin(np.radians(20)), 6)},
        {'word': 'bad', 'toward': 'dull', 'nearest': 'bad', 'norm': 2.0, 'relative_norm': 1.0,
         'max_cosine': -0.5, 'cosines': [-0.5, -0.25], 'neighbors': ['dull', '<eos>'],
         'neighbor_distance': round(2 * np.sin(np.radians(6)), 6)}]
    assert second == {
        'index': 4, 'method': 'spgd', 'label': 1, 'prediction': 0, 'prediction_adv': 1,
        'correct': False, 'label_names': ['negative', 'positive'], 'epsilon': 2.5, 'k': 2,
        'sparsity': 0.75, 'iterations': 1,
        'probability': 0.2, 'probability_adv': round(1 / (1 + np.exp(-0.5)), 6), 'words': [
            {'word': 'film', 'toward': 'film', 'nearest': 'film', 'norm': 0.0,
             'relative_norm': 0.0, 'max_cosine': 0.0, 'cosines': [0.0, 0.0],
             'neighbors': ['<eos>', 'fine'], 'neighbor_distance': 0.0}]}


def test_records_are_json_and_read_back():
    made = make_records(HandAttacked(), np.array([17, 4]), np.array([1, 0], 'i'), WORDS,
                                NAMES)
    for record in made:
        assert records.parse(json.dumps(record, allow_nan=False), 'here') == record
    assert [record['label'] for record in made] == [1, 0]


def test_records_of_a_real_attack():
    """The second review is wrong before the attack, which here makes it worse."""
    adversary = Adversary('adv', Victim(Bag(), N_LABELED), AttackSettings(6 ** 0.5, k=2))
    sequences = reviews([GOOD, FILM, EOS], [BAD, EOS])
    made = make_records(adversary(sequences, np.array([0, 0], 'i')), [3, 8],
                                np.array([0, 0], 'i'), WORDS, NAMES)
    assert [(record['prediction'], record['prediction_adv'], record['correct'])
            for record in made] == [(0, 1, True), (1, 1, False)]
    assert [[word['toward'] for word in record['words']] for record in made] == [
        ['film', '<eos>', 'dull'], ['dull', 'dull']]
    assert [[word['nearest'] for word in record['words']] for record in made] == [
        ['bad', 'bad', 'bad'], ['bad', 'bad']]
    assert [record['epsilon'] for record in made] == [6 ** 0.5] * 2
    for record, sequence in zip(made, sequences):
        logits = VECTORS[sequence].astype('d').sum(axis=0)
        moved = logits + len(sequence) * (3 / len(sequence)) ** 0.5 * np.array([-1, 1])
        for name, values in (('probability', logits), ('probability_adv', moved)):
            assert record[name] == pytest.approx(
                np.exp(values[0]) / np.exp(values).sum(), abs=1e-4)
        for word in record['words']:
            assert word['norm'] == pytest.approx((6 / len(sequence)) ** 0.5, abs=1e-4)
            assert word['relative_norm'] == 1.0
            assert word['max_cosine'] == max(word['cosines'])


def test_tiny_norms_do_not_round_to_rest():
    values = records._rounded(np.array([0.0, 1.23456789e-7, 0.123456789, 3.0]))
    assert values == [0.0, 1.235e-7, 0.123457, 3.0]
    assert records._rounded(np.array([-1.23456789e-7, 1.23456789e-5, 9.99999e-5, 1.2345e-4])) == [
        -1.235e-7, 1.235e-5, 1e-4, 0.000123]
    assert records._rounded(np.array([-0.123456789, -3.0])) == [-0.123457, -3.0]
    assert records._rounded(np.array([[0.1234567], [-2.0]], 'f')) == [[0.123457], [-2.0]]


# Reading --------------------------------------------------------------------------------------

def word(**fields):
    return {'word': 'a', 'toward': 'b', 'nearest': 'a', 'norm': 0.5, **fields}


def test_groups_by_review_and_orders_methods_as_the_paper(tmp_path, make_review, write_records):
    first = make_review(4, methods=('spgd', 'other', 'adv', 'iadv'))
    path = write_records(tmp_path / 'r.jsonl', first, make_review(2))
    reviews, left_out = records.read_reviews(path)
    assert left_out == 0
    assert [review[0]['index'] for review in reviews] == [4, 2]
    assert [record['method'] for record in reviews[0]] == ['adv', 'iadv', 'spgd', 'other']
    assert reviews[0][2] == first[0]


def test_records_may_be_sorted_by_method(tmp_path, make_record, write_records):
    path = write_records(tmp_path / 'r.jsonl', *(
        [make_record(index, method)] for method in ('iadv', 'adv') for index in (7, 3, 5)))
    reviews, left_out = records.read_reviews(path, limit=2)
    assert left_out == 1
    assert [[record['index'] for record in review] for review in reviews] == [[7, 7], [3, 3]]


def test_chosen_reviews(tmp_path, make_review, write_records):
    path = write_records(tmp_path / 'r.jsonl', *(make_review(index) for index in (1, 2, 3)))
    reviews, _ = records.read_reviews(path, limit=1, indices=[3, 1])
    assert [review[0]['index'] for review in reviews] == [3, 1]
    with pytest.raises(UserError, match='no review 8'):
        records.read_reviews(path, indices=[3, 8])


@pytest.mark.parametrize('content, message', [
    ('', 'no records'),
    ('\n \n', 'no records'),
    ('{"index": 1', 'line 1 is not a complete JSON object'),
    ('[1]', 'not an object'),
    ('{"index": 1}', 'label is missing'),
    (b'\x80\x04\x95pickle', 'not UTF-8'),
])
def test_unreadable_file_is_one_line(tmp_path, content, message):
    path = tmp_path / 'r.jsonl'
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    with pytest.raises(UserError, match=message) as caught:
        records.read_reviews(str(path))
    assert 'r.jsonl' in str(caught.value)


def test_missing_file_is_one_line(tmp_path):
    with pytest.raises(UserError, match='cannot read .* no such file'):
        records.read_reviews(str(tmp_path / 'absent.jsonl'))


def test_broken_line_is_named(tmp_path, make_review, write_records):
    path = write_records(tmp_path / 'r.jsonl', make_review())
    text = (tmp_path / 'r.jsonl').read_text()
    (tmp_path / 'r.jsonl').write_text(text[:-40])  # as an interrupted copy leaves it
    with pytest.raises(UserError, match='line 3 is not a complete JSON object'):
        records.read_reviews(path)


@pytest.mark.parametrize('change, message', [
    ({'index': -1}, 'index is -1'),
    ({'label': 'positive'}, 'label is'),
    ({'prediction': True}, 'prediction is True'),
    ({'method': ''}, 'method is'),
    ({'words': []}, 'at least one word'),
    ({'words': [3]}, 'word 0: not an object'),
    ({'words': [word(norm=None)]}, 'word 0: norm is missing'),
    ({'words': [word(toward=None)]}, 'toward is missing'),
    ({'words': [word(), word(norm=float('nan'))]}, 'word 1: norm is nan'),
    ({'words': [word(norm=-1)]}, 'norm is negative'),
    ({'words': [word(word='\ud800')]}, 'surrogate'),
    ({'words': [word(neighbors=['x', 'y'], cosines=[1])]}, '2 neighbors but 1 cosines'),
    ({'words': [word(neighbors=[1], cosines=[1])]}, 'something other than words'),
    ({'words': [word(neighbors=['x'], cosines=[None])]}, 'a cosine is None'),
    ({'words': [word(max_cosine='high')]}, 'max_cosine is'),
    ({'label': 1_000_000_000}, 'label is'),
    ({'prediction': 1_000_000_000}, 'prediction is'),
    ({'epsilon': 'much'}, 'epsilon is'),
    ({'perplexity': 5}, 'perplexity is not an object'),
    ({'perplexity': {'clean': float('inf')}}, 'perplexity clean is inf'),
    ({'label_names': 'ab'}, 'label_names'),
])
def test_wrong_fields_are_named(make_record, change, message):
    with pytest.raises(UserError, match=message):
        records.parse(json.dumps({**make_record(), **change}), 'here')


def test_twice_the_same_and_differing_words(tmp_path, make_record, write_records):
    path = write_records(tmp_path / 'r.jsonl', [make_record(), make_record()])
    with pytest.raises(UserError, match='review 0 under method adv twice'):
        records.read_reviews(path)
    path = write_records(tmp_path / 'r.jsonl', [make_record(), make_record(method='spgd', words=3)])
    with pytest.raises(UserError, match='words of review 0 differ'):
        records.read_reviews(path)


def test_bare_words_are_enough():
    record = {'index': 0, 'method': 'adv', 'label': 0, 'prediction': 0, 'prediction_adv': 1,
              'words': [word()]}
    assert records.parse(json.dumps(record), 'here') == record


@pytest.mark.parametrize('label, names, hue, name', [
    (1, None, 'red', 'positive'),
    (0, None, 'blue', 'negative'),
    (1, ['bad', 'good'], 'red', 'good'),
    (2, None, 'purple', 'class 2'),
    (1, ['a', 'b', 'c'], 'purple', 'b'),
])
def test_names_and_hues(make_record, label, names, hue, name):
    record = make_record(label=label, **({'label_names': names} if names else {}))
    assert records.attack_hue(record) == hue
    assert records.label_name(record, label) == name


@pytest.mark.parametrize('before, after, flipped', [(0, 1, True), (1, 1, False), (2, 0, True)])
def test_flipped_is_what_changed_the_prediction(make_record, before, after, flipped):
    record = make_record(label=after, prediction=before, prediction_adv=after)
    assert records.is_flipped(record) is flipped


@pytest.mark.parametrize('method, title', [
    ('adv', 'AdvT-Text'), ('spgd', 'SPGD'), ('adv_sparse', 'AdvT-Text, sparsified'),
    ('mine', 'mine')])
def test_titles_of_methods(make_record, method, title):
    assert records.method_name(make_record(method=method)) == title


def test_largest_norm_is_that_of_all_records(make_record):
    small, large = make_record(words=3), make_record(method='spgd', words=3)
    for record, norms in ((small, [0.5, 0.25, 0]), (large, [0, 1.5, 0.75])):
        for word, norm in zip(record['words'], norms):
            word['norm'] = norm
    assert records.largest_norm([small, large]) == records.largest_norm([large, small]) == 1.5
    assert records.largest_norm([small]) == 0.5


def test_largest_norm_of_a_resting_review_is_one(make_record):
    record = make_record()
    for word in record['words']:
        word['norm'] = 0.0
    assert records.largest_norm([record]) == 1.0


def test_the_end_of_a_text_is_no_word(make_record):
    record = make_record(words=['good', '<eos>', 'film', '<eos>'])
    assert [word['word'] for word in records.words(record)] == ['good', '<eos>', 'film']
    record = make_record(words=['good', 'film'])
    assert len(records.words(record)) == 2


@pytest.mark.parametrize('fields, words, expected', [
    ({'method': 'adv'}, 5, 'gradient of the loss is exactly zero'),
    ({'method': 'adv', 'epsilon': 0}, 5, 'ε is 0'),
    ({'method': 'spgd', 'sparsity': 0.75}, 4, 'gradient of the loss is exactly zero'),
    ({'method': 'spgd', 'sparsity': 0.75}, 3, 'σ = 0.75 keeps no word'),
    ({'method': 'spgd', 'sparsity': 0.75, 'toward_only': True}, 4, None),
    ({'method': 'spgd'}, 5, None),  # an older record, whose σ is not known
    ({'method': 'someone_elses'}, 5, None),
])
def test_why_nothing_moved(make_record, fields, words, expected):
    record = {**make_record(words=words), **fields}
    assert records.why_nothing_moved(record) is None  # something moves
    for word in record['words']:
        word['norm'] = 0.0
    found = records.why_nothing_moved(record)
    assert found is None if expected is None else expected in found
