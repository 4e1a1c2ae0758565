"""The HTML report: one file that holds its data, style and script, and needs no network.

`assets/report.html` is the page; here the records become its data.
"""
from collections.abc import Sequence
from typing import Any

from interpretable_adv.evaluation import page, records
from interpretable_adv.evaluation.records import Record
from interpretable_adv.runs import files

Reviews = Sequence[Sequence[Record]]  # the records of each review


def write(path: str, reviews: Reviews) -> None:
    """Writes the report of reviews, each a list of records (see `records.read_reviews`)."""
    with files.atomic_write(path) as stream:
        stream.write(render(reviews))


def render(reviews: Reviews) -> str:
    """The page as a string."""
    return page.render('report.html', page_data(reviews)).text


def page_data(reviews: Reviews) -> dict[str, Any]:
    """The records in the compact form that the page's script reads.

    `words` holds every distinct word once; words are referred to by number. Per attack there is one
    array per field of the records' words; cosines are in thousandths.
    """
    numbers: dict[str, int] = {}
    methods: dict[str, int] = {}

    def identify(text: str) -> int:
        return numbers.setdefault(text, len(numbers))

    def attack(record: Record) -> dict[str, Any]:
        words = record['words']
        fields = {'method': methods.setdefault(records.method_name(record), len(methods)),
                  'prediction': record['prediction'], 'prediction_adv': record['prediction_adv']}
        for name in ('perplexity', 'probability', 'probability_adv', *records.SETTINGS):
            if record.get(name) is not None:
                fields[name] = record[name]
        if records.why_nothing_moved(record):
            fields['note'] = records.why_nothing_moved(record)
        for name in ('toward', 'nearest'):
            fields[name] = [identify(word[name]) for word in words]
        for name in ('norm', 'relative_norm', 'max_cosine', 'neighbor_distance'):
            fields[name] = [_rounded(word.get(name)) for word in words]
        fields['neighbors'] = [[identify(neighbor) for neighbor in word.get('neighbors') or []]
                               for word in words]
        fields['cosines'] = [[round(1000 * cosine) for cosine in word.get('cosines') or []]
                             for word in words]
        return fields

    pages = [{
        'index': review[0]['index'],
        'label': review[0]['label'],
        'labels': [records.label_name(review[0], label) for label in range(_classes(review))],
        'hue': records.attack_hue(review[0]),
        'words': [identify(word['word']) for word in review[0]['words']],
        'attacks': [attack(record) for record in review],
    } for review in reviews]
    return {'methods': list(methods), 'words': list(numbers), 'reviews': pages}


def _classes(review: Sequence[Record]) -> int:
    return max(len(review[0].get('label_names') or records.BINARY_LABELS),
               1 + max(record[name] for record in review
                       for name in ('label', 'prediction', 'prediction_adv')))


def _rounded(value: float | None) -> float | None:
    """Five significant digits, as much as anyone reads; a moved word stays moved."""
    return None if value is None else float(f'{value:.5g}')
