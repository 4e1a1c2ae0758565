"""predict.py: texts from everywhere, predictions for readers and for programs."""
import csv
import io
import json
import types

import numpy as np
import pytest

from interpretable_adv import api, cli, nets, predict
from interpretable_adv.runs import checkpoints

WORDS = ['<eos>', '<unk>', 'a', 'good', 'bad', 'film']


@pytest.fixture(scope='module')
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp('run')
    np.random.seed(0)
    classifier = nets.Classifier(len(WORDS), 4, 5, 3)
    for parameter in classifier.params():
        parameter.array *= 3
    checkpoints.save_classifier(folder / 'best.model', classifier)
    checkpoints.save_vocabulary(folder / 'vocab.txt', WORDS)
    (folder / 'args.json').write_text(json.dumps(
        {'label_names': ['=no', 'yes'], 'lower': 1, 'ignore_unk': 1}))
    return str(folder)


def run(capsys, model, *argv, stdin=None, monkeypatch=None):
    if stdin is not None:
        monkeypatch.setattr('sys.stdin', types.SimpleNamespace(
            buffer=io.BytesIO(stdin), isatty=lambda: False))
    predict.main(['--model', model, *argv])
    return capsys.readouterr()


TEXTS = ['A good film', '=bad, strange "film"', 'strange \x1b[31m']


def test_a_line_for_each_text(capsys, model):
    found = api.load(model).predict(TEXTS)
    output = run(capsys, model, *TEXTS)
    lines = output.out.splitlines()
    assert len(lines) == 3
    for line, text, one in zip(lines, TEXTS, found):
        label, probability, unit, *rest = line.split()
        assert label == one.label and unit == '%'
        assert float(probability) == pytest.approx(100 * one.probability, abs=0.05)
        expected = ' '.join(text.replace('\x1b', ' ').split())
        if not one.known:
            expected += ' ' + predict.NOTHING_KNOWN
        assert ' '.join(rest) == expected
    assert [predict.NOTHING_KNOWN in line for line in lines] == [False, False, True]
    assert output.err == '3 of 8 words are unknown to the model: strange (2), 31m\n'
    assert run(capsys, model, 'a film').err == ''


def test_json(capsys, model):
    entries = json.loads(run(capsys, model, '--json', *TEXTS).out)
    for entry, text, one in zip(entries, TEXTS, api.load(model).predict(TEXTS)):
        assert entry == {'text': text, 'label': one.label, 'probability': one.probability,
                         'probabilities': one.probabilities, 'known': one.known,
                         'unknown': one.unknown}


def test_csv_is_no_formula(capsys, model):
    header, *rows = csv.reader(io.StringIO(run(capsys, model, '--csv', *TEXTS).out, newline=''))
    assert header == ['index', 'label', 'probability', 'probability_=no', 'probability_yes', 'text',
                      'unknown']
    assert [row[0] for row in rows] == ['0', '1', '2']
    assert {row[1] for row in rows} <= {"'=no", 'yes'}
    assert rows[1][5] == '\'=bad, strange "film"' and rows[1][6] == 'strange'
    assert all(float(row[3]) + float(row[4]) == pytest.approx(1, abs=1e-5) for row in rows)


def test_files_and_standard_input(capsys, model, tmp_path, monkeypatch):
    expected = run(capsys, model, 'a film', 'bad').out
    (tmp_path / 'x.txt').write_bytes('\ufeffa film\n\nbad\r\n'.encode())
    (tmp_path / 'x.csv').write_text('n,body\n1,a film\n2,bad\n')
    (tmp_path / 'x.jsonl').write_text('{"body": "a film"}\n{"body": "bad", "label": 7}\n')
    assert run(capsys, model, '--texts', str(tmp_path / 'x.txt')).out == expected
    for name in ('x.csv', 'x.jsonl'):
        assert run(capsys, model, '--texts', str(tmp_path / name), '--text_column',
                   'body').out == expected
    assert run(capsys, model, stdin=b'a film\n\nbad\n', monkeypatch=monkeypatch).out == expected


def test_an_empty_text_of_a_table_keeps_its_row(capsys, model, tmp_path):
    (tmp_path / 'x.csv').write_text('text,n\na film,1\n,2\n')
    entries = json.loads(run(capsys, model, '--json', '--texts', str(tmp_path / 'x.csv')).out)
    assert [entry['text'] for entry in entries] == ['a film', '']
    assert [entry['known'] for entry in entries] == [2, 0]


@pytest.mark.parametrize('argv, stdin, message', [
    (['--model', 'nowhere', 'a'], b'', "path is 'nowhere'"),
    (['a', '--texts', 'x.txt'], b'', 'exclude each other'),
    (['--texts', 'absent.txt'], b'', 'cannot read absent.txt'),
    (['--texts', 'x.pdf'], b'', 'cannot read'),
    ([], b'', 'there is no text'), ([], b' \n\n', 'there is no text'),
    ([], b'good\ncaf\xe9\n', 'standard input, line 2: not UTF-8'),
    (['\udcff'], b'', 'is not UTF-8'), (['a', '--json', '--csv'], b'', 'not allowed with'),
    (['a', '--device', 'gpu'], b'', '--device gpu'),
])
def test_errors_are_one_line(capsys, monkeypatch, model, tmp_path, argv, stdin, message):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr('sys.stdin', types.SimpleNamespace(
        buffer=io.BytesIO(stdin), isatty=lambda: False))
    with pytest.raises(SystemExit) as caught:
        cli.run(predict.main, ['--model', model, *argv])
    output = capsys.readouterr()
    assert caught.value.code == 2 and output.out == ''
    assert output.err.startswith('error: ') and output.err.count('\n') == 1
    assert message in output.err
