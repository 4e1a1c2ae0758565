"""reading.py: regular files, and JSON of a known form."""
import os

import pytest

from interpretable_adv.errors import UserError
from interpretable_adv.runs import reading


@pytest.mark.parametrize('make, kind', [
    (os.mkfifo, 'a pipe'), (os.mkdir, 'a folder'),
    (lambda path: os.symlink('/dev/zero', path), 'a device')])
def test_what_is_no_regular_file_is_refused_without_opening_it(tmp_path, make, kind):
    make(tmp_path / 'x')
    with pytest.raises(UserError, match=f'it is {kind}; do that'):
        reading.read_bytes(tmp_path / 'x', 'do that')


def test_links_are_followed_unless_they_must_not_be(tmp_path):
    (tmp_path / 'file').write_bytes(b'12345')
    (tmp_path / 'link').symlink_to('file')
    assert reading.read_bytes(tmp_path / 'link') == b'12345'
    with pytest.raises(UserError, match='it is a link'):
        reading.read_bytes(tmp_path / 'link', follow=False)
    with pytest.raises(UserError, match='5 bytes where 4'):
        reading.read_bytes(tmp_path / 'file', limit=4)


@pytest.mark.parametrize('path', ['a\0b', '\ud800'])
def test_a_name_that_no_file_can_have(path):
    with pytest.raises(UserError, match='cannot read'):
        reading.read_bytes(path)


@pytest.mark.parametrize('text, part', [
    ('[' * 100_000, 'nested'), ('[' * 101 + ']' * 101, 'nested'),
    ('{"a":' * 500 + '1' + '}' * 500, 'nested'), ('{"a": 1, "a": 2}', 'twice'),
    ('"\\ud800"', 'surrogate'), ('"\\uDFFF"', 'surrogate'), ('1' + '0' * 400, 'too large'),
    (str(2 ** 63), 'too large'), ('9' * 5000, 'too large'), ('{', 'Expecting'), ('', 'Expecting')])
def test_json_that_our_writers_never_write(text, part):
    with pytest.raises(ValueError, match=part):
        reading.parse_json(text)


@pytest.mark.parametrize('text, value', [
    ('[' * 99 + ']' * 99, None), ('"\\ud83d\\ude00"', '😀'), (str(2 ** 63 - 1), 2 ** 63 - 1),
    (str(-2 ** 63), -2 ** 63), ('{"a": [1, {"b": null}]}', {'a': [1, {'b': None}]})])
def test_json_as_it_may_be(text, value):
    found = reading.parse_json(text)
    assert value is None or found == value


FORM = reading.fields({'name': reading.text, 'list': reading.items(
    reading.number, least=1, most=2)},
                      {'count': reading.whole, 'any': reading.optional(reading.real)})


@pytest.mark.parametrize('value', [
    {'name': 'x', 'list': [1, 2]},
    {'name': 'x', 'list': [0.5], 'count': 0, 'any': None, 'more': []},
    {'name': 'x', 'list': [1], 'any': float('inf')}])
def test_values_of_a_form(value):
    FORM(value, 'it')


@pytest.mark.parametrize('value, message', [
    ([], 'it is .*not an object'), ({'name': 'x'}, 'it lacks list'),
    ({'name': 1, 'list': [1]}, 'name is 1, not text'),
    ({'name': 'x', 'list': []}, '0 entries, not 1'),
    ({'name': 'x', 'list': [1, 2, 3]}, '3 entries, more than 2'),
    ({'name': 'x', 'list': [True]}, r'list\[0\] is True, not a finite number'),
    ({'name': 'x', 'list': [float('nan')]}, 'not a finite'),
    ({'name': 'x', 'list': [1], 'count': -1}, 'count is -1'),
    ({'name': 'x', 'list': [1], 'count': 1.0}, 'count is 1.0'),
    ({'name': 'x', 'list': [1], 'any': float('nan')}, 'any is nan')])
def test_values_of_another_form_are_named(value, message):
    with pytest.raises(ValueError, match=message):
        FORM(value, 'it')


def test_a_damaged_file_is_one_line_with_its_remedy(tmp_path):
    path = tmp_path / 'x.json'
    path.write_text('{"name": 3}')
    with pytest.raises(UserError, match='x.json is damaged .name is 3, not text.; make it again'):
        reading.read_json(path, reading.fields({'name': reading.text}), 'make it again')
    with pytest.raises(reading.MissingFileError):
        reading.read_json(tmp_path / 'none', reading.anything, 'x')
