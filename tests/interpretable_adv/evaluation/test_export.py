"""export.py: adversarial texts as a table that no spreadsheet takes for formulas."""
import csv
import io

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpretable_adv import data
from interpretable_adv.evaluation import export, reviews
from interpretable_adv.evaluation.victim import Adversary, Victim
from interpretable_adv.methods import AttackSettings
from tests.interpretable_adv.evaluation.plane import N_LABELED, WORDS, Bag


@pytest.mark.parametrize('text, expected', [
    ('A film.', 'A film.'), ('', ''), ('=1+1', "'=1+1"), ('+x', "'+x"), ('-x', "'-x"),
    ('@x', "'@x"), ('\t=x', "'\t=x"), ('\r=x', "'\n=x"), (' \n -x', "' \n -x"), ('＝x', "'＝x"),
    ("'=x", "'=x"), ('a\0b\x1b[1m', 'a\ufffdb\ufffd[1m'), ('\0=x', '\ufffd=x'),
    ('\u00a0=x', "'\u00a0=x"), ('a=b', 'a=b'), ('\ud800', '\ufffd'), ('😀', '😀')])
def test_cells(text, expected):
    assert export.safe(text) == expected


@settings(deadline=None)
@given(st.lists(st.text(st.characters()), min_size=1, max_size=4))
def test_no_cell_starts_a_formula_and_every_row_is_read_back(cells):
    stream = io.StringIO(newline='')
    export.Table(stream, ['x'] * len(cells)).add(cells)
    content = stream.getvalue().encode().decode()
    _, row = csv.reader(io.StringIO(content, newline=''), strict=True)
    assert row == [export.safe(cell) for cell in cells]
    for cell in row:
        assert cell.strip()[:1] not in set('=+-@')


def test_numbers_stay_numbers():
    stream = io.StringIO()
    export.Table(stream, ['a', 'b']).add([-1.5, 2])
    assert stream.getvalue() == 'a,b\n-1.5,2\n'


@pytest.mark.parametrize('labels, label', [([0], 'negative'), ([data.NO_LABEL], '')])
def test_a_row(labels, label):
    """The attack of `test_victim`: good and film move by (−1, 1)."""
    text = data.TextReader(WORDS)('good, strange film!')
    adversary = Adversary('adv', Victim(Bag(), N_LABELED), AttackSettings(6 ** 0.5, k=2))
    review, = reviews.attack(adversary, [text.ids], np.array(labels, 'i'), reviews.DISCRETE)
    row = dict(zip(export.columns(False), export.row(review, 7, text, WORDS, ('negative', 'b'))))
    assert [row[name] for name in ('index', 'method', 'epsilon', 'label', 'prediction')] == [
        7, 'adv', 6 ** 0.5, label, 'negative']
    assert row['prediction_adv'] == row['prediction_nearest'] == 'b'
    assert row['original'] == 'good, strange film!' and row['unknown'] == 'strange'
    assert row['nearest'] == 'bad, strange bad!' and row['direction'] == 'film, strange <eos>!'
    assert row['probability'] > 0.5 > row['probability_adv'] > 0
    assert len(row) == len(export.columns(False)) == len(export.columns(True)) - 4
