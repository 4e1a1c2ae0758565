import csv
import io

import pytest

from experiments import tables
from experiments.tables import Number, Spread, Table


@pytest.fixture
def table():
    return Table('t', 'Accuracy (%) of A & B', ['Model', 'paper', 'mean ± sd (n)'], [
        ['Pre_trained', Number(92.69), Spread.of([92.0, 93.0])], None,
        ['SPGD | σ', Number(None), Spread.of([])]], ['A note with 50 % and ε_1.'])


@pytest.mark.parametrize('number, text', [
    (Number(93.5), '93.50'), (Number(-0.5, signed=True), '−0.50'),
    (Number(4.6, signed=True), '+4.60'), (Number(None), '–'), (Number(21246, 0), '21,246'),
    (Number(-0.001, signed=True), '+0.00'), (Number(4762220.35, signed=True), '+4,762,220')])
def test_numbers(number, text):
    assert str(number) == text


@pytest.mark.parametrize('values, text', [
    ([90.0, 92.0, 94.0], '92.00 ± 2.00 (3)'), ([91.25], '91.25 (1)'), ([], '–'),
    ([None, 1.0, 3.0], '2.00 ± 1.41 (2)')])
def test_spread_is_mean_and_sample_deviation(values, text):
    assert str(Spread.of(values)) == text


def test_terminal_columns_line_up(table):
    lines = tables.terminal(table).splitlines()
    header, row, other = lines[2], lines[4], lines[6]
    assert header.index('paper') + len('paper') == row.index('92.69') + len('92.69')
    assert other.endswith('–') and set(lines[5]) == {'-'}
    assert lines[-1] == '* A note with 50 % and ε_1.'


def test_columns_that_do_not_fit_follow_below(table):
    lines = tables.terminal(table, width=25).splitlines()
    blocks = [lines[2:8], lines[10:16]]
    assert lines[8] == ''
    assert [block[0].split() for block in blocks] == [
        ['Model', 'paper'], ['Model', 'mean', '±', 'sd', '(n)']]
    assert [[block[i].split('  ')[0] for i in (2, 4)] for block in blocks] == [
        ['Pre_trained', 'SPGD | σ']] * 2
    assert lines[-1] == '* A note with 50 % and ε_1.'
    # All columns that tell rows apart are repeated.
    titled = Table('t', 'T', ['Model', 'on', 'x', 'y'], [
        ['a', 'one', Number(1.0), Number(2.0)], ['a', 'two', Number(3.0), Number(4.0)]], titles=2)
    shown = tables.terminal(titled, width=17).splitlines()
    assert [line.split() for line in shown if line.startswith('a ')] == [
        ['a', 'one', '1.00'], ['a', 'two', '3.00'], ['a', 'one', '2.00'], ['a', 'two', '4.00']]
    assert '|---|---|---:|---:|' in tables.markdown(titled)
    assert '{@{}llrr@{}}' in tables.latex(titled)
    # A single column that is too wide stays.
    assert len(tables.terminal(table, width=5).splitlines()) == len(lines)


def test_markdown_escapes_and_has_as_many_cells_everywhere(table):
    lines = [line for line in tables.markdown(table).splitlines() if line.startswith('|')]
    assert [line.replace(r'\|', '').count('|') for line in lines] == [4, 4, 4, 4]
    assert r'SPGD \| σ' in lines[-1]
    assert '- A note with 50 % and ε_1.' in tables.markdown(table)


def test_latex_escapes(table):
    text = tables.latex(table)
    assert r'\caption{Accuracy (\%) of A \& B}' in text
    assert r'Pre\_trained & 92.69 & 92.50 $\pm$ 0.71 (2) \\' in text
    assert r'$\sigma$' in text and r'$\varepsilon$\_1' in text
    assert text.count(r'\midrule') == 2
    assert text.isascii()


def test_csv_has_all_digits_and_own_columns_for_the_spread(table):
    rows = list(csv.reader(io.StringIO(tables.comma_separated(table))))
    assert rows == [['Model', 'paper', 'mean', 'sd', 'n'],
                    ['Pre_trained', '92.69', '92.5', '0.707107', '2'],
                    ['SPGD | σ', '', '', '', '0']]


def test_write_makes_four_files(table, tmp_path):
    path = tables.write(table, str(tmp_path / 'tables'))
    assert sorted(entry.name for entry in (tmp_path / 'tables').iterdir()) == [
        't.csv', 't.md', 't.tex', 't.txt']
    with open(path + '.md', encoding='utf-8') as stream:
        assert stream.read() == tables.markdown(table)
