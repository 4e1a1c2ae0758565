"""Adversarial texts as a CSV file that a spreadsheet can open safely."""
import csv
import re
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from interpretable_adv.data import Text
from interpretable_adv.evaluation.reviews import DISCRETE, AttackedReview, probabilities

READ = ('adv', *DISCRETE)  # after the attack: its vectors, and its two texts
COLUMNS = ('index', 'method', 'epsilon', 'label', 'prediction',
           *(f'prediction_{name}' for name in READ), 'probability',
           *(f'probability_{name}' for name in READ), 'original', *DISCRETE, 'unknown')
PERPLEXITIES = ('clean', 'continuous', *DISCRETE)

FORMULA = tuple('=+-@＝＋－＠')  # what a spreadsheet takes for the start of one
CONTROL = re.compile(r'[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]')


class Table:
    """Writes rows of a CSV file, no cell of which a spreadsheet takes for a formula.

    A text that would be one gets an apostrophe in front, and control characters become `�`.
    """

    def __init__(self, stream: TextIO, columns: Sequence[str]):
        self._writer = csv.writer(stream, lineterminator='\n')
        self.add(columns)

    def add(self, cells: Iterable[Any]) -> None:
        self._writer.writerow([safe(cell) if isinstance(cell, str) else cell for cell in cells])


def safe(text: str) -> str:
    """A text that is no formula to any spreadsheet."""
    text = CONTROL.sub('\ufffd', text.replace('\r\n', '\n').replace('\r', '\n'))
    return f"'{text}" if text.lstrip().startswith(FORMULA) else text


def columns(with_perplexities: bool) -> list[str]:
    """The header of a file of adversarial texts."""
    return [*COLUMNS, *(f'perplexity_{name}' for name in PERPLEXITIES if with_perplexities)]


def row(review: AttackedReview, index: int, text: Text, words: Sequence[str],
        label_names: Sequence[str]) -> list[Any]:
    """The cells of one attacked review.

    Probabilities are of the class that was attacked: `label`, or the prediction where no label
    was given.

    Args:
        text: of the review.
        words: vocabulary in id order.
    """
    logits = [review.logits, review.logits_adv, *(review.logits_read[name] for name in DISCRETE)]
    cells = [index, review.method, review.epsilon,
             label_names[review.label] if review.is_labeled else '',
             *(label_names[int(values.argmax())] for values in logits),
             *(round(float(probabilities(values)[review.label]), 6) for values in logits),
             text.text, text.replace(review.nearest, words), text.replace(review.toward, words),
             ' '.join(text.unknown)]
    if review.perplexity is not None:
        cells += [review.perplexity.get(name, '') for name in PERPLEXITIES]
    return cells
