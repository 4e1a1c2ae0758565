"""Perturbation records: one JSON object per review and method, one to a line.

`analysis` writes them; `visualize` reads them, for heatmaps and the report. A record holds

    index            position of the review in its split
    method           adv, iadv, spgd, ...
    label            the right class; `prediction`, `prediction_adv`: before and after the attack
    words            list of objects, see below
    correct          optional, whether `prediction` is right (upstream skips reviews where not);
                     absent where no label was given and `label` is the prediction
    label_names      optional, the classes' names in order
    epsilon          optional, the step size of the attack; `k`, `sparsity`, `iterations`,
                     `toward_only`: where its method has them
    perplexity       optional, object with any of clean, continuous, nearest, direction
    probability, probability_adv
                     optional, the classifier's probability of the right class before and after
    text, unknown    only of a user's own text: the text as it was given, and its words that the
                     classifier does not know

and each word

    word             the original word
    toward           the neighbour of highest cosine; the word itself if it rests
    nearest          the word whose embedding is nearest to the perturbed vector
    norm             length of the perturbation; `relative_norm`: as a share of the review's largest
    max_cosine       cosine between the perturbation and the direction to `toward`
    neighbors        the K neighbours; `cosines`: the cosine with the direction to each
    neighbor_distance
                     distance from the word to `toward`

A reader needs `word`, `toward`, `nearest` and `norm`; the other fields of a word may be absent.
"""
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from interpretable_adv import perturbations
from interpretable_adv.data import EOS, SPECIALS, Text
from interpretable_adv.errors import UserError
from interpretable_adv.evaluation.reviews import AttackedReview, probabilities
from interpretable_adv.methods import METHODS
from interpretable_adv.runs import reading

Record = dict[str, Any]

DIGITS = 6  # of the numbers in a record; float32 holds no more
BINARY_LABELS = ('negative', 'positive')  # the classes of IMDB, in upstream's order

SETTINGS = ('epsilon', 'k', 'sparsity', 'iterations')  # of the attack, where its method has them
MOST_CLASSES = 1000  # without names
MOST_REVIEWS = 1 << 31
LARGEST_COSINE = 1.01  # of rounded vectors
LARGEST_NUMBER = 1e30

_CLASSES = ('label', 'prediction', 'prediction_adv')
_INTEGERS = ('index', *_CLASSES)
_WORD_TEXTS = ('word', 'toward', 'nearest')
_WORD_NUMBERS = ('relative_norm', 'max_cosine', 'neighbor_distance')  # each may be absent


# Writing --------------------------------------------------------------------------------------

def make_record(review: AttackedReview, index: int, words: Sequence[str],
                label_names: Sequence[str], text: Text | None = None) -> Record:
    """The record of one review.

    Args:
        index: the review's number.
        words: vocabulary in id order.
        text: the user's text behind the review, which the record then holds as well.
    """
    norms = review.norm
    numbers = {'norm': norms, 'relative_norm': norms / (norms.max() or 1),
               'max_cosine': review.max_cosine, 'cosines': review.cosines}
    columns = {
        **{name: [words[word] for word in ids.tolist()] for name, ids in (
            ('word', review.ids), ('toward', review.toward), ('nearest', review.nearest))},
        **{name: _rounded(array) for name, array in numbers.items()},
        'neighbors': [[words[word] for word in row] for row in review.neighbors.tolist()],
        'neighbor_distance': _rounded(review.neighbor_distance)}
    prediction, prediction_adv = (int(logits.argmax())
                                  for logits in (review.logits, review.logits_adv))
    record = {'index': int(index), 'method': review.method, 'label': review.label,
              'prediction': prediction, 'prediction_adv': prediction_adv}
    if review.is_labeled:
        record['correct'] = prediction == review.label
    record.update(
        label_names=list(label_names), **_settings(review),
        probability=_probability(review.logits, review.label),
        probability_adv=_probability(review.logits_adv, review.label),
        words=[dict(zip(columns, row)) for row in zip(*columns.values())])
    if text is not None:
        record.update(text=text.text, unknown=text.unknown)
    if review.perplexity is not None:
        record['perplexity'] = review.perplexity
    return record


def _settings(review: AttackedReview) -> Record:
    """The values of `SETTINGS` that the attack depends on."""
    of_method = METHODS[review.method].all_settings
    found = {name: getattr(review.settings, name) for name in SETTINGS if name in of_method}
    return {**found, 'toward_only': True} if review.settings.toward_only else found


def _rounded(array: np.ndarray) -> list:
    """A list of float64 that print with at most `DIGITS` digits after the point.

    A norm below that would read as a word at rest, so it keeps its leading digits.
    """
    array = array.astype('d')
    rounded = np.round(array, DIGITS)
    tiny = (array != 0) & (np.abs(array) < 10.0 ** -(DIGITS - 2))
    rounded[tiny] = [float(f'{value:.4g}') for value in array[tiny]]
    return rounded.tolist()


def _probability(logits: np.ndarray, label: int) -> float:
    return round(float(probabilities(logits)[label]), DIGITS)


# Reading --------------------------------------------------------------------------------------

def read(path: str) -> Iterator[Record]:
    """Yields the checked records of a JSON lines file, one at a time."""
    with reading.open_regular(path, 'give records that interpretable_adv.analysis wrote') as stream:
        for number, line in enumerate(stream, 1):
            if line.strip():
                try:
                    yield parse(line.decode('utf-8'), f'{path}, line {number}')
                except UnicodeDecodeError as error:
                    raise reading.not_utf8(path, number) from error


def read_reviews(path: str, limit: int | None = None,
                 indices: Sequence[int] | None = None) -> tuple[list[list[Record]], int]:
    """The records grouped by review.

    Args:
        limit: at most this many reviews; None: all.
        indices: only these reviews, in this order; `limit` is then ignored.

    Returns:
        A list of lists in the order of the file, within a review in the paper's order of methods
        (AdvT, iAdvT, SPGD, others), and how many reviews the limit has left out.
    """
    reviews: dict[int, dict[str, Record]] = {}
    left_out, empty = set(), True
    wanted = None if indices is None else set(indices)
    for record in read(path):
        empty = False
        index = record['index']
        if wanted is not None and index not in wanted:
            continue
        if wanted is None and limit is not None and index not in reviews and len(reviews) == limit:
            left_out.add(index)
            continue
        _add(reviews.setdefault(index, {}), record, path)
    if empty:
        raise UserError(f'{path} holds no records; make some with interpretable_adv.analysis')
    if indices is not None:
        missing = [index for index in indices if index not in reviews]
        if missing:
            raise UserError(f'{path} holds no review {missing[0]}; it can draw only what '
                            'interpretable_adv.analysis recorded')
        reviews = {index: reviews[index] for index in indices}
    order = list(METHODS)
    grouped = [sorted(by_method.values(), key=lambda record: (
        order.index(record['method']) if record['method'] in order else len(order)))
        for by_method in reviews.values()]
    return grouped, len(left_out)


def _add(by_method: dict[str, Record], record: Record, path: str) -> None:
    """Adds a record to those of the same review, which must have the same words."""
    index, method = record['index'], record['method']
    if method in by_method:
        raise UserError(f'{path} holds review {index} under method {method} twice; '
                        'keep one of the two records')
    by_method[method] = record
    other, first = next(iter(by_method.items()))
    if [word['word'] for word in record['words']] != [word['word'] for word in first['words']]:
        raise UserError(f'{path}: the words of review {index} differ between the methods {other} '
                        f'and {method}; make all records of a file from the same data')


def parse(line: str, place: str) -> Record:
    """One checked record from a line of JSON; `place` names it in errors."""
    try:
        record = reading.parse_json(line)
    except ValueError as error:
        raise UserError(f'{place} is not a complete JSON object ({error}); '
                        'delete the line or run interpretable_adv.analysis again') from error
    try:
        _check(record)
    except ValueError as error:
        raise UserError(f'{place} is not a perturbation record: {error}') from error
    return record


def parse_indices(text: str) -> list[int]:
    """The review numbers of `--indices 3,17`."""
    try:
        indices = [int(part) for part in text.split(',') if part.strip()]
    except ValueError:
        indices = []
    if not indices or min(indices) < 0:
        raise UserError(f'--indices {text}: give review numbers from 0, such as 3,17')
    return list(dict.fromkeys(indices))


def label_name(record: Record, label: int) -> str:
    """The class's name: as recorded, else IMDB's for two classes, else its number."""
    names = record.get('label_names')
    if not names and max(record['label'], record['prediction'], record['prediction_adv']) < 2:
        names = BINARY_LABELS
    return names[label] if names and label < len(names) else f'class {label}'


def method_name(record: Record) -> str:
    """The method's title, or the name in the record where the table of methods has none."""
    row = METHODS.get(record['method'])
    return row.title if row else record['method']


def is_flipped(record: Record) -> bool:
    """Whether the attack changed the prediction."""
    return record['prediction'] != record['prediction_adv']


def words(record: Record) -> list[Record]:
    """The words without the end of the text, which is attacked like a word but is none."""
    entries = record['words']
    return entries[:-1] if entries[-1]['word'] == SPECIALS[EOS] else entries


def why_nothing_moved(record: Record) -> str | None:
    """A sentence that explains a review in which no word moves; None where one does, or where the
    record does not tell."""
    if any(word['norm'] > 0 for word in record['words']):
        return None
    sparsity = record.get('sparsity')
    if record.get('epsilon') == 0:
        return 'Nothing moves: ε is 0.'
    if sparsity is not None and not perturbations.n_kept(len(record['words']), sparsity):
        return f'Nothing moves: σ = {sparsity:g} keeps no word of a text this short.'
    row = METHODS.get(record['method'])
    if row is None or ('sparsity' in row.settings and sparsity is None):
        return None
    if record.get('toward_only'):  # then there may be no neighbour to move towards
        return None
    return 'Nothing moves: the gradient of the loss is exactly zero.'


def largest_norm(reviews: Sequence[Record]) -> float:
    """The largest norm over records, or 1 where nothing moved: the top of the colour scale."""
    return max((word['norm'] for record in reviews for word in record['words']), default=0) or 1.0


def attack_hue(record: Record) -> str:
    """Which way the attack pushes: 'red' away from positive, 'blue' towards it.

    With other classes than two there is no such axis: 'purple'.
    """
    names = record.get('label_names') or BINARY_LABELS
    if len(names) != 2 or record['label'] > 1:
        return 'purple'
    return 'red' if record['label'] == 1 else 'blue'


def _check(record: Any) -> None:
    if not isinstance(record, dict):
        raise ValueError('not an object')
    for name in (*_INTEGERS, 'method', 'words'):
        if name not in record:
            raise ValueError(f'{name} is missing')
    for name in _INTEGERS:
        reading.whole(record[name], name)
    if not isinstance(record['method'], str) or not record['method']:
        raise ValueError(f'method is {reading.shown(record["method"])}, not a name')
    names = record.get('label_names')
    if names is not None and not (isinstance(names, list)
                                  and all(isinstance(name, str) for name in names)):
        raise ValueError('label_names is not a list of names')
    for name in _CLASSES:
        if record[name] >= (len(names) if names else MOST_CLASSES):
            raise ValueError(f'{name} is {record[name]}, a class without a name')
    if record['index'] >= MOST_REVIEWS:
        raise ValueError(f'index is {record["index"]}')
    for name in (*SETTINGS, 'probability', 'probability_adv'):
        _check_number(record.get(name), name)
    perplexity = record.get('perplexity')
    if perplexity is not None:
        if not isinstance(perplexity, dict):
            raise ValueError('perplexity is not an object')
        for name, value in perplexity.items():
            _check_number(value, f'perplexity {name}')
    words = record['words']
    if not isinstance(words, list) or not words:
        raise ValueError('words is not a list of at least one word')
    for position, word in enumerate(words):
        try:
            _check_word(word)
        except ValueError as error:
            raise ValueError(f'word {position}: {error}') from error


def _check_word(word: Any) -> None:
    if not isinstance(word, dict):
        raise ValueError('not an object')
    for name in _WORD_TEXTS:
        if not isinstance(word.get(name), str):
            raise ValueError(f'{name} is missing or not text')
    if word.get('norm') is None:
        raise ValueError('norm is missing')
    _check_number(word['norm'], 'norm')
    if word['norm'] < 0:
        raise ValueError('norm is negative')
    for name in _WORD_NUMBERS:
        _check_number(word.get(name), name)
    neighbors, cosines = word.get('neighbors') or [], word.get('cosines') or []
    if not isinstance(neighbors, list) or not isinstance(cosines, list):
        raise ValueError('neighbors or cosines is not a list')
    if not all(isinstance(neighbor, str) for neighbor in neighbors):
        raise ValueError('neighbors contains something other than words')
    if cosines and len(cosines) != len(neighbors):
        raise ValueError(f'{len(neighbors)} neighbors but {len(cosines)} cosines')
    for cosine in (*cosines, word.get('max_cosine') or 0):
        _check_number(cosine, 'a cosine')
        if cosine is None or abs(cosine) > LARGEST_COSINE:
            raise ValueError(f'a cosine is {cosine}')


def _check_number(value: Any, name: str) -> None:
    if value is not None:
        reading.number(value, name)
        if abs(value) > LARGEST_NUMBER:
            raise ValueError(f'{name} is {value}')
