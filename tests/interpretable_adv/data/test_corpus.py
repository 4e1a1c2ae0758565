"""Tests of `interpretable_adv.data.corpus`: vocabulary, ids, cache and Table 2."""
import collections
import hashlib
import json
import os
import pathlib
import tempfile

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpretable_adv import data
from interpretable_adv.data import corpus as numbering
from interpretable_adv.data import text_files, toy
from interpretable_adv.errors import UserError
from tests.interpretable_adv.data.command import fails

REVIEWS = {
    'imdb_pos_train.txt': ['The film the film', 'A good Film rare1 film'],
    'imdb_neg_train.txt': ['The bad film'],
    'imdb_pos_dev.txt': ['good film unseen'],
    'imdb_neg_dev.txt': ['bad'],
    'imdb_pos_test.txt': ['The good film', 'unseen unseen'],
    'imdb_neg_test.txt': ['a bad film'],
    'imdb_unlabled.txt': ['bad good extra', 'extra A'],
}


def write(folder, reviews=REVIEWS):
    text_files.write_upstream(folder, reviews)
    return folder


@pytest.fixture
def folder(tmp_path):
    return write(tmp_path / 'data')


def reference(folder, lower, min_count, ignore_unk, use_unlabeled):
    """Upstream's rules, word by word."""
    def read(name):
        lines = (pathlib.Path(folder) / name).read_text(encoding='utf-8').split('\n')[:-1]
        return [[word.lower() if lower else word for word in line.strip().split(' ')]
                for line in lines]
    train = read('imdb_pos_train.txt') + read('imdb_neg_train.txt')
    unlabeled = read('imdb_unlabled.txt') if use_unlabeled else []
    frequency = collections.Counter()
    for words in train + unlabeled:
        frequency.update(set(words))
    vocab = {'<eos>': 0, '<unk>': 1}
    for words in train + unlabeled:
        for word in words:
            if frequency[word] > min_count and word not in vocab:
                vocab[word] = len(vocab)

    def number(reviews):
        result = []
        for words in reviews:
            ids = [vocab.get(word, 1) for word in words]
            result.append([i for i in ids if not (ignore_unk and i == 1)] + [0])
        return result
    splits = {name: number(read(f'imdb_pos_{name}.txt') + read(f'imdb_neg_{name}.txt'))
              for name in ('train', 'dev', 'test')}
    in_train = {word for words in train for word in words}
    return list(vocab), splits, number(unlabeled), len(in_train & set(vocab))


def check(folder, **flags):
    words, splits, unlabeled, train_vocab_size = reference(folder, **flags)
    corpus = data.load(folder, **flags)
    assert corpus.words == words
    assert corpus.vocab == {word: number for number, word in enumerate(words)}
    assert corpus.n_vocab == len(words)
    assert corpus.train_vocab_size == train_vocab_size
    for name, sequences in splits.items():
        split = getattr(corpus, name)
        assert [ids.tolist() for ids in split.sequences] == sequences
        assert split.labels.dtype == np.int32
        assert len(split.labels) == len(sequences)
    assert [ids.tolist() for ids in corpus.unlabeled] == unlabeled
    assert corpus.lm_train().tolist() == sum(unlabeled + splits['train'], [])
    assert corpus.lm_dev().tolist() == sum(splits['dev'], [])
    assert corpus.lm_test().tolist() == sum(splits['test'], [])
    assert corpus.vocab_sha256 == hashlib.sha256('\n'.join(words).encode()).hexdigest()


@pytest.mark.parametrize('use_unlabeled', [True, False])
@pytest.mark.parametrize('ignore_unk', [True, False])
@pytest.mark.parametrize('min_count', [0, 1, 2])
@pytest.mark.parametrize('lower', [False, True])
def test_load(folder, lower, min_count, ignore_unk, use_unlabeled):
    flags = {'lower': lower, 'min_count': min_count, 'ignore_unk': ignore_unk,
             'use_unlabeled': use_unlabeled}
    check(folder, **flags)
    check(folder, **flags)  # from the cache


def test_numbers_by_hand(folder):
    corpus = data.load(folder)
    # in two reviews of train and unlabelled or more, in order of first occurrence
    assert corpus.words == ['<eos>', '<unk>', 'The', 'film', 'A', 'good', 'bad', 'extra']
    assert corpus.train_vocab_size == 5
    assert corpus.train.sequences[0].tolist() == [2, 3, 3, 0]
    assert corpus.test.sequences[1].tolist() == [0]
    assert corpus.train.labels.tolist() == [1, 1, 0]
    assert corpus.test.labels.tolist() == [1, 1, 0]
    assert corpus.label_names == ['negative', 'positive']
    assert corpus.n_class == 2


def test_sequences_are_views_of_one_array(folder):
    sequences = data.load(folder).train.sequences
    assert all(np.shares_memory(ids, sequences.flat) for ids in sequences)
    assert all(ids.dtype == np.int32 for ids in sequences)
    assert sequences.lengths.tolist() == [len(ids) for ids in sequences]
    assert sequences[-1].tolist() == sequences[2].tolist() == list(sequences)[2].tolist()
    assert [ids.tolist() for ids in sequences[1:]] == [ids.tolist() for ids in sequences][1:]
    with pytest.raises(IndexError):
        sequences[3]


def test_special_words_in_the_text_are_unknown(tmp_path):
    reviews = dict(REVIEWS, **{'imdb_pos_train.txt': ['<eos> the <unk> film', 'the <unk> <eos>']})
    corpus = data.load(write(tmp_path, reviews), ignore_unk=False, use_unlabeled=False)
    assert corpus.words == ['<eos>', '<unk>', 'the', 'film']
    assert corpus.train.sequences[0].tolist() == [1, 2, 1, 3, 0]


words = st.text(st.characters(blacklist_categories=['Cs'], blacklist_characters=' \n\r'),
                min_size=1, max_size=3).filter(lambda word: word == word.strip())
some_reviews = st.lists(st.lists(words, min_size=1, max_size=5).map(' '.join),
                        min_size=1, max_size=4)
corpora = st.fixed_dictionaries(dict.fromkeys(REVIEWS, some_reviews))


@settings(max_examples=40, deadline=None)
@given(corpora)
def test_text_to_ids_to_text(reviews):
    """With min_count 0 every word of train and unlabelled text comes back."""
    with tempfile.TemporaryDirectory() as folder:
        corpus = data.load(write(folder, reviews), min_count=0)

    def text(sequences):
        return [' '.join(corpus.words[i] for i in ids[:-1]) for ids in sequences]
    assert text(corpus.train.sequences) == (
        reviews['imdb_pos_train.txt'] + reviews['imdb_neg_train.txt'])
    assert text(corpus.unlabeled) == reviews['imdb_unlabled.txt']


@settings(max_examples=40, deadline=None)
@given(corpora, st.booleans(), st.integers(0, 1), st.booleans(), st.booleans())
def test_load_on_any_text(reviews, lower, min_count, ignore_unk, use_unlabeled):
    with tempfile.TemporaryDirectory() as folder:
        write(folder, reviews)
        flags = {'lower': lower, 'min_count': min_count, 'ignore_unk': ignore_unk,
                 'use_unlabeled': use_unlabeled}
        if len(reference(folder, **flags)[0]) == 2:
            with pytest.raises(UserError, match='no word occurs in more than'):
                data.load(folder, **flags)
        else:
            check(folder, **flags)


def test_upstream_vocabulary(shared):
    recorded = json.loads((shared / 'golden' / 'upstream_classifier_test.json').read_text())
    corpus = data.load(shared / 'golden' / 'mini_imdb')
    assert corpus.words == recorded['vocab']
    assert corpus.train_vocab_size == recorded['train_vocab_size']
    assert corpus.test.labels.tolist() == recorded['test_y']


# The cache


def cache_files(folder):
    return sorted(path for path in folder.iterdir() if path.suffix == '.cache')


def count_readings(monkeypatch):
    """Counts how often texts are renumbered."""
    calls, number = [], numbering._number

    def counted(*args):
        calls.append(args)
        return number(*args)
    monkeypatch.setattr(numbering, '_number', counted)
    return calls


def test_the_second_load_reads_the_cache(folder, monkeypatch):
    calls = count_readings(monkeypatch)
    for _ in range(3):
        data.load(folder)
    assert len(calls) == 1
    data.load(folder, lower=True)
    data.load(folder)
    assert len(calls) == 2
    assert len(cache_files(folder)) == 2


@pytest.mark.parametrize('name', REVIEWS)
def test_a_changed_text_makes_the_cache_stale(folder, name):
    data.load(folder)
    old = os.stat(folder / name)
    content = (folder / name).read_text()
    (folder / name).write_text(content.replace('f', 'F').replace('ba', 'BA'))
    os.utime(folder / name, ns=(old.st_atime_ns, old.st_mtime_ns))  # the content decides
    check(folder, lower=False, min_count=1, ignore_unk=True, use_unlabeled=True)
    assert len(cache_files(folder)) == 1


def test_texts_that_change_places_make_the_cache_stale(folder):
    data.load(folder)
    (folder / 'imdb_pos_dev.txt').rename(folder / 'x')
    (folder / 'imdb_neg_dev.txt').rename(folder / 'imdb_pos_dev.txt')
    (folder / 'x').rename(folder / 'imdb_neg_dev.txt')
    check(folder, lower=False, min_count=1, ignore_unk=True, use_unlabeled=True)


@pytest.mark.parametrize('damage', [
    lambda content: b'', lambda content: content[:-1], lambda content: content[1:],
    lambda content: content[:200] + bytes([content[200] ^ 1]) + content[201:],
    lambda content: content[:-9] + bytes([content[-9] ^ 1]) + content[-8:]])
def test_a_damaged_cache_is_made_again(folder, monkeypatch, damage):
    data.load(folder)
    path, = cache_files(folder)
    intact = path.read_bytes()
    path.write_bytes(damage(intact))
    calls = count_readings(monkeypatch)
    check(folder, lower=False, min_count=1, ignore_unk=True, use_unlabeled=True)
    assert len(calls) == 1
    assert path.read_bytes() == intact


def test_what_follows_a_cache_changes_nothing(folder):
    data.load(folder)
    path, = cache_files(folder)
    path.write_bytes(path.read_bytes() + b'x')
    check(folder, lower=False, min_count=1, ignore_unk=True, use_unlabeled=True)


def test_a_read_only_folder_loads_without_cache(folder):
    folder.chmod(0o555)
    try:
        check(folder, lower=False, min_count=1, ignore_unk=True, use_unlabeled=True)
        assert cache_files(folder) == []
    finally:
        folder.chmod(0o755)


def test_a_cache_that_cannot_be_written_does_no_harm(folder):
    (folder / 'ids_lower0_min1_ignore1_unlabeled1.cache').mkdir()
    check(folder, lower=False, min_count=1, ignore_unk=True, use_unlabeled=True)


# Table 2


def test_statistics(folder):
    result = data.statistics(data.load(folder))
    assert result['table2'] == {
        'train': {'examples': 3, 'min': 4, 'max': 4, 'mean': 4.0},
        'dev': {'examples': 2, 'min': 2, 'max': 3, 'mean': 2.5},
        'test': {'examples': 3, 'min': 1, 'max': 4, 'mean': 8 / 3},
        'unlabeled': {'examples': 2}}
    assert result['n_vocab'] == 8
    assert result['train_vocab_size'] == 5
    stream = np.array([6, 5, 7, 0, 7, 4, 0, 2, 3, 3, 0, 4, 5, 3, 0, 2, 6, 3, 0], '<i4')
    assert result['lm_train_tokens'] == 19
    assert result['lm_train_sha256'] == hashlib.sha256(stream.tobytes()).hexdigest()


# Corpora that cannot be loaded, as the command tells it


@pytest.mark.parametrize('name', REVIEWS)
def test_missing_file(folder, capsys, name):
    (folder / name).unlink()
    assert f'lacks {name}' in fails(capsys, 'stats', '--data_dir', folder)


def test_missing_unlabeled_file_when_it_is_not_wanted(folder):
    (folder / 'imdb_unlabled.txt').unlink()
    assert len(data.load(folder, use_unlabeled=False).unlabeled) == 0


@pytest.mark.parametrize('content, message', [
    (b'good film\n\nbad film\n', 'imdb_pos_dev.txt, line 2: empty review'),
    (b'good film\n \n', 'imdb_pos_dev.txt, line 2: empty review'),
    (b'good film\nf\xe9e\n', 'imdb_pos_dev.txt, line 2: not UTF-8'),
    (b'', 'imdb_pos_dev.txt holds no review'),
])
def test_bad_text_file(folder, capsys, content, message):
    (folder / 'imdb_pos_dev.txt').write_bytes(content)
    assert message in fails(capsys, 'stats', '--data_dir', folder)
    assert cache_files(folder) == []


def test_no_word_is_frequent_enough(folder, capsys):
    assert 'smaller min_count' in fails(
        capsys, 'stats', '--data_dir', folder, '--min_count', '50')


def test_a_file_in_place_of_a_text(folder, capsys):
    (folder / 'imdb_pos_dev.txt').unlink()
    (folder / 'imdb_pos_dev.txt').mkdir()
    assert 'cannot read' in fails(capsys, 'stats', '--data_dir', folder)


def test_own_corpus_with_labels_missing(tmp_path, capsys):
    text_files.write_own(tmp_path, ['a', 'b'], {'train': (['x y', 'x y'], [0, 1]),
                                                'dev': (['x'], [1])})
    assert data.load(tmp_path).n_vocab == 4
    assert len(data.load(tmp_path).test.sequences) == 0
    (tmp_path / 'corpus_train_labels.txt').write_text('0\n')
    assert '2 reviews and 1 labels' in fails(capsys, 'stats', '--data_dir', tmp_path)


@pytest.mark.parametrize('lower, ignore_unk', [(0, 0), (0, 1), (1, 0), (1, 1)])
def test_texts_of_a_file_are_numbered_as_the_corpus_is(tmp_path, lower, ignore_unk):
    toy.prepare(str(tmp_path))
    corpus = data.load(str(tmp_path), lower=bool(lower), ignore_unk=bool(ignore_unk))
    known = corpus.words[5]
    (tmp_path / 'mine.csv').write_text(
        f'text,label\n"{known}, unheardof {known.upper()}",negative\nunheardof,positive\n')
    sequences, labels, texts = data.read_texts(
        str(tmp_path / 'mine.csv'), corpus, lower, ignore_unk)
    unknown = [] if ignore_unk else [data.UNK]
    assert [list(sequence) for sequence in sequences] == [
        [5, *unknown, *([5] if lower else unknown), data.EOS], [*unknown, data.EOS]]
    assert labels.tolist() == [0, 1]
    assert [text.unknown for text in texts] == [
        ['unheardof', *([] if lower else [known.upper()])], ['unheardof']]


@pytest.mark.parametrize('name, content, labels', [
    ('mine.txt', 'good film\n\nbad film\r\n', [-1, -1]),
    ('mine.csv', 'text\n"good, film"\nbad film\n', [-1, -1]),
    ('mine.tsv', 'text\tlabel\ngood film\t\nbad film\tnegative\n', [-1, 0]),
    ('mine.jsonl', '{"text": "good film"}\n{"text": "bad film", "label": "positive"}\n', [-1, 1]),
    ('mine.jsonl', '{"text": "good film", "label": null}\n{"text": "bad film"}\n', [-1, -1]),
])
def test_labels_of_texts_may_be_missing(folder, tmp_path, name, content, labels):
    (tmp_path / name).write_text(content)
    corpus = data.load(folder, min_count=0)
    found = data.read_texts(str(tmp_path / name), corpus, False, True)
    assert found.labels.tolist() == labels
    assert [text.text.strip() for text in found.texts] in (
        ['good film', 'bad film'], ['good, film', 'bad film'])


def test_a_label_column_that_is_asked_for_must_be_there(folder, tmp_path):
    (tmp_path / 'mine.csv').write_text('text\ngood film\n')
    with pytest.raises(UserError, match="under 'sentiment'"):
        data.read_texts(str(tmp_path / 'mine.csv'), data.load(folder), False, True,
                        label_column='sentiment')


def test_own_corpora_store_their_tokenizer(tmp_path):
    splits = {'train': (['x y', 'x y'], [0, 1]), 'dev': (['x'], [1])}
    text_files.write_own(tmp_path / 'a', ['a', 'b'], splits)
    text_files.write_own(tmp_path / 'b', ['a', 'b'], splits, 'whitespace')
    assert data.load(tmp_path / 'a').tokenizer == 'words'
    assert data.load(tmp_path / 'b').tokenizer == 'whitespace'
    assert data.describe(tmp_path / 'b') == {'label_names': ['a', 'b'], 'tokenizer': 'whitespace'}
    manifest = tmp_path / 'b' / 'corpus.json'
    manifest.write_text(manifest.read_text().replace('whitespace', 'letters'))
    with pytest.raises(UserError, match="the tokenizer 'letters' is none of words, whitespace"):
        data.load(tmp_path / 'b')
