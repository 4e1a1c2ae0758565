import json

import pytest

from interpretable_adv import records
from interpretable_adv.cli import UserError


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
    ('{"index": 1', 'line 1 is not a whole JSON object'),
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
    with pytest.raises(UserError, match='cannot read the records'):
        records.read_reviews(str(tmp_path / 'absent.jsonl'))


def test_broken_line_is_named(tmp_path, make_review, write_records):
    path = write_records(tmp_path / 'r.jsonl', make_review())
    text = (tmp_path / 'r.jsonl').read_text()
    (tmp_path / 'r.jsonl').write_text(text[:-40])  # as an interrupted copy leaves it
    with pytest.raises(UserError, match='line 3 is not a whole JSON object'):
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
    ({'words': [word(word='\ud800')]}, 'surrogates'),
    ({'words': [word(neighbors=['x', 'y'], cosines=[1])]}, '2 neighbors but 1 cosines'),
    ({'words': [word(neighbors=[1], cosines=[1])]}, 'something else than words'),
    ({'words': [word(max_cosine='high')]}, 'max_cosine is'),
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


def test_largest_norm_of_a_resting_review_is_one(make_record):
    record = make_record()
    for word in record['words']:
        word['norm'] = 0.0
    assert records.largest_norm([record]) == 1.0
