"""Tests of `interpretable_adv.data.custom`: a user's files to a corpus, and what may be wrong."""
import csv
import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpretable_adv import cli, data
from interpretable_adv.data import custom
from interpretable_adv.data.__main__ import main

ROWS = [('A "fine" film,\nreally', 'good'), ('Bad, bad film', 'bad'), ('so so', 'middling'),
        ('fine', 'good'), ('bad', 'bad'), ('so', 'middling')]


def write_table(path, rows, text='text', label='label'):
    """Writes rows of (text, label) in the format that the name's ending says."""
    if path.suffix == '.jsonl':
        path.write_text(''.join(
            json.dumps({text: row[0], label: row[1], 'id': i}, ensure_ascii=False) + '\n'
            for i, row in enumerate(rows)), encoding='utf-8')
    elif path.suffix == '.tsv':
        lines = [['id', label, text]] + [[str(i), row[1], ' '.join(row[0].split())]
                                         for i, row in enumerate(rows)]
        path.write_text(''.join('\t'.join(cells) + '\n' for cells in lines), encoding='utf-8')
    else:
        with path.open('w', encoding='utf-8', newline='') as stream:
            writer = csv.writer(stream)
            writer.writerow(['id', label, text])
            writer.writerows([i, row[1], row[0]] for i, row in enumerate(rows))
    return path


def run(folder, **flags):
    argv = ['prepare', '--dataset', 'own', '--data_dir', folder]
    for name, value in flags.items():
        argv += [f'--{name}', value]
    cli.run(main, [str(part) for part in argv])


def fails(capsys, folder, **flags):
    with pytest.raises(SystemExit) as info:
        run(folder, **flags)
    assert info.value.code == 2
    err = capsys.readouterr().err
    assert err.startswith('error: ')
    assert err.count('\n') == 1
    assert not os.path.exists(folder)
    return err


def texts(corpus, sequences):
    return [' '.join(corpus.words[i] for i in ids[:-1]) for ids in sequences]


@pytest.mark.parametrize('ending', ['.csv', '.tsv', '.jsonl'])
def test_three_classes(tmp_path, capsys, ending):
    train = write_table(tmp_path / f'train{ending}', ROWS)
    test = write_table(tmp_path / f'test{ending}', ROWS[::-1])
    unlabeled = tmp_path / 'more.txt'
    unlabeled.write_text('fine film\n\nBad film\n')
    run(tmp_path / 'data', train=train, dev=train, test=test, unlabeled=unlabeled)
    out = capsys.readouterr().out
    assert f'{train}: 6 texts read, 0 without a word and 0 without a label dropped' in out
    assert f'{unlabeled}: 2 texts read' in out
    assert "class 1: 'good', 2 training texts" in out
    corpus = data.load(tmp_path / 'data', min_count=0)
    assert corpus.label_names == ['bad', 'good', 'middling']
    assert corpus.n_class == 3
    expected = ['A fine film really', 'Bad bad film', 'so so', 'fine', 'bad', 'so']
    assert texts(corpus, corpus.train.sequences) == expected  # in the file's order
    assert texts(corpus, corpus.test.sequences) == expected[::-1]
    assert texts(corpus, corpus.unlabeled) == ['fine film', 'Bad film']
    assert corpus.train.labels.tolist() == corpus.dev.labels.tolist() == [1, 0, 2, 1, 0, 2]
    assert corpus.test.labels.tolist() == [2, 0, 1, 2, 0, 1]


def test_other_columns(tmp_path):
    train = write_table(tmp_path / 'train.csv', ROWS, text='body', label='stars')
    unlabeled = write_table(tmp_path / 'more.jsonl', [('only text', '')], text='body')
    run(tmp_path / 'data', train=train, dev=train, unlabeled=unlabeled, text_column='body',
        label_column='stars')
    corpus = data.load(tmp_path / 'data', min_count=0)
    assert len(corpus.train.sequences) == 6
    assert len(corpus.test.sequences) == 0
    assert texts(corpus, corpus.unlabeled) == ['only text']


@pytest.mark.parametrize('labels, names', [
    (['10', '9', '1'], ['1', '9', '10']), (['b', 'B', '1'], ['1', 'B', 'b']),
    (['-1', '1', '0'], ['-1', '0', '1']), (['ja', 'nein', 'ö'], ['ja', 'nein', 'ö'])])
def test_order_of_labels(tmp_path, labels, names):
    train = write_table(tmp_path / 'train.jsonl', [('word', label) for label in labels])
    run(tmp_path / 'data', train=train, dev=train)
    corpus = data.load(tmp_path / 'data')
    assert corpus.label_names == names
    assert [corpus.label_names[i] for i in corpus.train.labels] == labels


def test_numbers_as_labels_in_json(tmp_path):
    (tmp_path / 'train.jsonl').write_text(
        '{"text": "a", "label": 1}\n\n{"text": "a b", "label": 0}\n')
    run(tmp_path / 'data', train=tmp_path / 'train.jsonl', dev=tmp_path / 'train.jsonl')
    assert data.load(tmp_path / 'data').train.labels.tolist() == [1, 0]


def test_dropped_rows_are_reported(tmp_path, capsys):
    rows = [*ROWS, ('', 'good'), ('...', 'bad'), ('without label', ''), ('again', ' ')]
    train = write_table(tmp_path / 'train.csv', rows)
    run(tmp_path / 'data', train=train, dev=train)
    assert '10 texts read, 2 without a word and 2 without a label dropped' in (
        capsys.readouterr().out)
    assert len(data.load(tmp_path / 'data').train.sequences) == 6


def test_what_the_tokenizer_does_is_reported(tmp_path, capsys):
    train = write_table(tmp_path / 'train.csv', [('A (good) film!', 'a'), ("isn't 😀!", 'b')])
    run(tmp_path / 'words', train=train, dev=train)
    out = capsys.readouterr().out
    assert out.startswith('tokenizer words: words are runs of letters, digits and _;')
    assert '6 characters between words dropped besides white space, most often ! (' in out
    run(tmp_path / 'white', train=train, dev=train, tokenizer='whitespace')
    out = capsys.readouterr().out
    assert 'tokenizer whitespace: ' in out and 'no character but white space dropped' in out
    corpus = data.load(tmp_path / 'white', min_count=0)
    assert corpus.tokenizer == 'whitespace'
    assert texts(corpus, corpus.train.sequences) == ['A (good) film!', "isn't 😀!"]


def test_other_languages_keep_their_signs_at_white_space(tmp_path):
    """Vowel signs of Hindi are no word characters."""
    train = write_table(tmp_path / 'train.csv', [('फ़िल्म अच्छी है', 'a'), ('फ़िल्म', 'b')])
    run(tmp_path / 'data', train=train, dev=train, tokenizer='whitespace')
    corpus = data.load(tmp_path / 'data', min_count=0)
    assert texts(corpus, corpus.train.sequences) == ['फ़िल्म अच्छी है', 'फ़िल्म']


def test_an_unknown_tokenizer(tmp_path, capsys):
    train = write_table(tmp_path / 'train.csv', ROWS)
    assert '--tokenizer' in fails(capsys, tmp_path / 'data', train=train, tokenizer='letters')


def test_byte_order_mark_and_windows_lines(tmp_path):
    (tmp_path / 'train.csv').write_bytes(
        '\ufefftext,label\r\ngut,a\r\n"nicht\r\ngut",b\r\n'.encode())
    run(tmp_path / 'data', train=tmp_path / 'train.csv', dev=tmp_path / 'train.csv')
    corpus = data.load(tmp_path / 'data', min_count=0)
    assert texts(corpus, corpus.train.sequences) == ['gut', 'nicht gut']


def test_a_quotation_mark_in_tsv_is_a_character(tmp_path):
    (tmp_path / 'train.tsv').write_text('text\tlabel\n"open\ta\n5" disc\tb\n')
    run(tmp_path / 'data', train=tmp_path / 'train.tsv', dev=tmp_path / 'train.tsv')
    corpus = data.load(tmp_path / 'data', min_count=0)
    assert texts(corpus, corpus.train.sequences) == ['open', '5 disc']


def test_a_long_text(tmp_path):
    train = write_table(tmp_path / 'train.csv', [('word ' * 100_000, 'a'), ('word', 'b')])
    run(tmp_path / 'data', train=train, dev=train)
    assert data.load(tmp_path / 'data').train.sequences.lengths.tolist() == [100_001, 2]


def test_dev_split(tmp_path):
    """A tenth of each class, the same for the same seed, order and rest of train kept."""
    rows = [(f'text {i}', 'rare' if i % 10 == 0 else 'common') for i in range(200)]
    train = write_table(tmp_path / 'train.tsv', rows)
    drawn = []
    for number, flags in enumerate([{}, {'seed': 1234}, {'seed': 1}, {'dev_share': 0.25}]):
        run(tmp_path / f'data{number}', train=train, **flags)
        corpus = data.load(tmp_path / f'data{number}', min_count=0, ignore_unk=False)
        drawn.append((tmp_path / f'data{number}' / 'corpus_dev.txt').read_text().splitlines())
        kept = (tmp_path / f'data{number}' / 'corpus_train.txt').read_text().splitlines()
        order = [int(text.split()[1]) for text in drawn[-1]]
        assert order == sorted(order)
        assert sorted(drawn[-1] + kept) == sorted(text for text, _ in rows)
        assert kept == [text for text, _ in rows if text not in drawn[-1]]
        share = flags.get('dev_share', 0.1)
        assert (corpus.dev.labels == corpus.label_names.index('rare')).sum() == 20 * share
        assert len(corpus.dev.labels) == 200 * share
    assert drawn[0] == drawn[1] != drawn[2]


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from('abc'), min_size=1, max_size=60), st.floats(0.01, 0.99),
       st.integers(0, 5))
def test_every_class_stays_in_train(labels, share, seed):
    rows = [custom.Row(i, str(i), label) for i, label in enumerate(labels)]
    train, dev = custom._split(rows, share, seed)
    assert sorted(train + dev) == rows
    assert {row.label for row in train} == set(labels)


@pytest.mark.parametrize('name, content, message', [
    ('x.csv', b'', "has no column 'text' but none"),
    ('x.csv', b'txt,label\na,b\n', "has no column 'text' but txt, label"),
    ('x.csv', b'text,class\na,b\n', "has no column 'label' but text, class"),
    ('x.tsv', b'text,label\na,b\n', "has no column 'text'"),
    ('x.csv', b'text,label,text\na,b,c\n', "column 'text'"),
    ('x.csv', b'label,text,label\na,b,c\n', "column 'label'"),
    ('x.csv', b'text,label\n', 'no usable text'),
    ('x.csv', b'text,label\n...,a\nword,\n', 'no usable text'),
    ('x.csv', b'text,label\na,b,c\n', 'line 2: 3 columns where the header has 2'),
    ('x.csv', b'text,label\na,b\nc\n', 'line 3: 1 columns where the header has 2'),
    ('x.csv', b'text,label\n"a,b\n', 'line 2: unexpected end of data'),
    ('x.csv', b'text,label\n"a" b,c\n', 'line 2:'),
    ('x.csv', b'text,label\na,b\ncaf\xe9,c\n', 'line 3: not UTF-8'),
    ('x.csv', b'text,label\na,b\nc,b\n', "all texts have the label 'b'"),
    ('x.csv', b'text,label\na,b\nc,d\n', 'too few texts to take a dev set from'),
    ('x.jsonl', b'{"text": "a", "label": "b"\n', 'line 1: not JSON'),
    ('x.jsonl', b'["a", "b"]\n', "line 1: no text under 'text'"),
    ('x.jsonl', b'{"text": 3, "label": "b"}\n', "line 1: no text under 'text'"),
    ('x.jsonl', b'{"text": "a"}\n', "line 1: no 'label'"),
    ('x.jsonl', b'{"text": "a", "label": 1.5}\n', 'line 1: the label must be'),
    ('x.jsonl', b'{"text": "a", "label": ["b"]}\n', 'line 1: the label must be'),
    ('x.xlsx', b'PK', 'the name must end in .csv, .tsv or .jsonl'),
    ('x.txt', b'text\n', 'the name must end in .csv, .tsv or .jsonl'),
])
def test_bad_training_file(tmp_path, capsys, name, content, message):
    (tmp_path / name).write_bytes(content)
    assert message in fails(capsys, tmp_path / 'data', train=tmp_path / name)


def test_absent_file(tmp_path, capsys):
    assert 'cannot read' in fails(capsys, tmp_path / 'data', train=tmp_path / 'absent.csv')


@pytest.mark.parametrize('split', ['dev', 'test'])
def test_a_label_that_training_lacks(tmp_path, capsys, split):
    files = {'train': write_table(tmp_path / 'train.csv', ROWS * 10),
             split: write_table(tmp_path / 'other.csv', [('fine', 'good'), ('new', 'new')])}
    message = fails(capsys, tmp_path / 'data', **files)
    assert f"{tmp_path / 'other.csv'}, line 3: the label 'new' does not occur" in message


@pytest.mark.parametrize('share', [0, 1, -0.5, 'nan'])
def test_impossible_share(tmp_path, capsys, share):
    train = write_table(tmp_path / 'train.csv', ROWS)
    assert '--dev_share' in fails(capsys, tmp_path / 'data', train=train, dev_share=share)


def test_failure_leaves_an_earlier_corpus_alone(tmp_path, capsys):
    train = write_table(tmp_path / 'train.csv', ROWS)
    run(tmp_path / 'data', train=train, dev=train)
    before = {path.name: path.read_bytes() for path in (tmp_path / 'data').iterdir()}
    train.write_text('text\nno labels\n')
    with pytest.raises(SystemExit):
        run(tmp_path / 'data', train=train, dev=train)
    assert {path.name: path.read_bytes() for path in (tmp_path / 'data').iterdir()} == before


def test_unwritable_folder(tmp_path, capsys):
    train = write_table(tmp_path / 'train.csv', ROWS)
    (tmp_path / 'file').write_text('in the way')
    with pytest.raises(SystemExit) as info:
        run(tmp_path / 'file', train=train, dev=train)
    assert info.value.code == 2
    assert 'is not a folder' in capsys.readouterr().err
