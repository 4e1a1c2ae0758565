"""Tests of `interpretable_adv.data.text_files`: what is written, and that it is all or nothing."""
import json
import os

import pytest

from interpretable_adv.data import text_files
from interpretable_adv.errors import UserError
from interpretable_adv.runs import reading

NAMES = sorted([name for pairs in text_files.UPSTREAM_FILES.values() for name, _ in pairs]
               + ['imdb_unlabled.txt'])


def reviews(word):
    return {name: [f'{word} {name}'] for name in NAMES}


def content(folder):
    return {path.name: path.read_text() for path in folder.iterdir() if path.is_file()}


def test_the_seven_files(tmp_path):
    text_files.write_upstream(tmp_path / 'a' / 'b', reviews('first'))
    assert content(tmp_path / 'a' / 'b') == {name: f'first {name}\n' for name in NAMES}
    text_files.write_upstream(tmp_path / 'a' / 'b', reviews('second'))
    assert sorted(os.listdir(tmp_path / 'a' / 'b')) == NAMES
    assert content(tmp_path / 'a' / 'b') == {name: f'second {name}\n' for name in NAMES}


def failing_reviews():
    result = reviews('second')

    def fail():
        yield 'half'
        raise UserError('bad review')
    result[NAMES[-1]] = fail()
    return result


def test_a_failure_leaves_no_new_folder(tmp_path):
    with pytest.raises(UserError, match='bad review'):
        text_files.write_upstream(tmp_path / 'a' / 'b', failing_reviews())
    assert os.listdir(tmp_path) == []


def test_a_failure_leaves_earlier_files_alone(tmp_path):
    text_files.write_upstream(tmp_path, reviews('first'))
    with pytest.raises(UserError, match='bad review'):
        text_files.write_upstream(tmp_path, failing_reviews())
    assert sorted(os.listdir(tmp_path)) == NAMES
    assert content(tmp_path) == {name: f'first {name}\n' for name in NAMES}


@pytest.mark.parametrize('failing', range(8))
def test_a_failing_move_leaves_a_folder_that_is_refused(tmp_path, monkeypatch, failing):
    text_files.write_upstream(tmp_path, reviews('first'))
    replace, calls = os.replace, []

    def replace_or_fail(source, target):
        calls.append(source)
        if len(calls) == failing + 1:
            raise OSError(5, 'Input/output error')
        replace(source, target)
    with monkeypatch.context() as patch:
        patch.setattr(os, 'replace', replace_or_fail)
        with pytest.raises(UserError, match='Input/output error'):
            text_files.write_upstream(tmp_path, reviews('second'))
    if text_files.INCOMPLETE in os.listdir(tmp_path):
        with pytest.raises(UserError, match='is incomplete.*again'):
            text_files.open_corpus(tmp_path)
    else:
        assert content(tmp_path) == {name: f'first {name}\n' for name in NAMES}
    text_files.write_upstream(tmp_path, reviews('third'))
    assert content(tmp_path) == {name: f'third {name}\n' for name in NAMES}


def test_a_corpus_that_is_replaced_while_it_is_read_is_refused(tmp_path, monkeypatch):
    text_files.write_upstream(tmp_path, reviews('first'))
    read = reading.read_bytes

    def replace_meanwhile(*arguments):
        (tmp_path / text_files.INCOMPLETE).touch()
        return read(*arguments)
    monkeypatch.setattr(reading, 'read_bytes', replace_meanwhile)
    with pytest.raises(UserError, match='is incomplete'):
        text_files.open_corpus(tmp_path)


def test_what_a_killed_process_left_disappears(tmp_path):
    (tmp_path / '.prepare').mkdir()
    (tmp_path / '.prepare' / 'imdb_pos_train.txt').write_text('half')
    (tmp_path / '.imdb.cache.abc.tmp').write_text('half')
    (tmp_path / '.lock').write_text('process 1\n')
    text_files.write_upstream(tmp_path, reviews('first'))
    assert sorted(os.listdir(tmp_path)) == NAMES


def test_an_own_corpus_loses_the_splits_that_the_new_one_has_not(tmp_path):
    splits = {'train': (['x', 'y'], [0, 1]), 'dev': (['y'], [1])}
    (tmp_path / 'corpus_notes.txt').write_text('mine')
    text_files.write_own(tmp_path, ['a', 'b'], {**splits, 'test': (['z'], [0]),
                                                'unlabeled': (['u'], None)})
    text_files.write_own(tmp_path, ['a', 'b'], splits)
    assert sorted(os.listdir(tmp_path)) == [
        'corpus.json', 'corpus_dev.txt', 'corpus_dev_labels.txt', 'corpus_notes.txt',
        'corpus_train.txt', 'corpus_train_labels.txt']


def test_two_processes_do_not_prepare_one_folder(tmp_path):
    def lines():
        with pytest.raises(UserError, match='in use by process .* --data_dir'):
            text_files.write_upstream(tmp_path, reviews('second'))
        yield 'first'
    text_files.write_upstream(tmp_path, {**reviews('first'), NAMES[0]: lines()})
    assert content(tmp_path)[NAMES[0]] == 'first\n'


def test_a_folder_in_the_way(tmp_path):
    (tmp_path / NAMES[3]).mkdir()
    with pytest.raises(UserError, match=f'{NAMES[3]} is a folder'):
        text_files.write_upstream(tmp_path, reviews('first'))
    assert os.listdir(tmp_path) == [NAMES[3]]


def test_a_read_only_folder_stays_as_it_is(tmp_path):
    tmp_path.chmod(0o555)
    try:
        for target in (tmp_path, tmp_path / 'new'):
            with pytest.raises(UserError, match='read-only'):
                text_files.write_upstream(target, reviews('first'))
        assert os.listdir(tmp_path) == []
    finally:
        tmp_path.chmod(0o755)


def test_a_file_in_place_of_the_folder(tmp_path):
    (tmp_path / 'file').write_text('x')
    with pytest.raises(UserError, match='not a folder'):
        text_files.write_upstream(tmp_path / 'file' / 'data', reviews('first'))
    assert (tmp_path / 'file').read_text() == 'x'


def test_the_two_layouts_do_not_mix(tmp_path):
    text_files.write_upstream(tmp_path / 'imdb', reviews('first'))
    with pytest.raises(UserError, match='another corpus'):
        text_files.write_own(tmp_path / 'imdb', ['a', 'b'], {'train': (['x'], [0])})
    text_files.write_own(tmp_path / 'own', ['a', 'b'], {'train': (['x'], [0]), 'dev': (['y'], [1])})
    with pytest.raises(UserError, match='another corpus'):
        text_files.write_upstream(tmp_path / 'own', reviews('first'))


@pytest.fixture
def own_corpus(tmp_path):
    text_files.write_own(tmp_path, ['a', 'ß'], {
        'train': (['one two', 'drei'], [0, 1]), 'dev': (['x'], [1]), 'unlabeled': (['u'], None)})
    return tmp_path


def test_own_corpus(own_corpus):
    label_names, splits = text_files.open_corpus(own_corpus)
    assert label_names == ['a', 'ß']
    assert {split: [(list(text.reviews()), text.labels) for text in texts]
            for split, texts in splits.items()} == {
        'train': [([['one', 'two'], ['drei']], [0, 1])], 'dev': [([['x']], [1])], 'test': [],
        'unlabeled': [([['u']], None)]}
    assert text_files.open_corpus(own_corpus, use_unlabeled=False)[1]['unlabeled'] == []


@pytest.mark.parametrize('change', [
    lambda manifest: manifest.pop('labels'),
    lambda manifest: manifest.pop('splits'),
    lambda manifest: manifest['splits'].pop('train'),
    lambda manifest: manifest['splits'].update(other={}),
    lambda manifest: manifest['splits']['dev'].pop('labels'),
    lambda manifest: manifest['splits']['dev'].update(reviews='../x.txt'),
    lambda manifest: manifest['splits']['dev'].update(reviews=3),
    lambda manifest: manifest.update(splits=[1]),
])
def test_damaged_manifest(own_corpus, change):
    path = own_corpus / 'corpus.json'
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))
    with pytest.raises(UserError, match='corpus.json is damaged .*; prepare'):
        text_files.open_corpus(own_corpus)


@pytest.mark.parametrize('content, message', [
    (b'not json', 'is damaged'), (b'\xff', 'is damaged'), (b'[]', 'is damaged')])
def test_manifest_that_is_none(own_corpus, content, message):
    (own_corpus / 'corpus.json').write_bytes(content)
    with pytest.raises(UserError, match=message):
        text_files.open_corpus(own_corpus)


@pytest.mark.parametrize('content, message', [
    ('0\n2\n', "line 2: '2' is none of"), ('0\nx\n', "line 2: 'x'"), ('-1\n0\n', "line 1: '-1'"),
    ('0\n1_0\n', 'line 2'), ('0\n+1\n', 'line 2'), ('0\n １\n', 'line 2')])
def test_damaged_labels(own_corpus, content, message):
    (own_corpus / 'corpus_train_labels.txt').write_text(content)
    with pytest.raises(UserError, match=message):
        text_files.open_corpus(own_corpus)
