"""Perturbation records: one JSON object per review and method, one to a line.

`analysis.py` writes them; `visualize.py` and `report.py` read them. A record holds

    index            position of the review in its split
    method           adv, iadv, spgd, ...
    label            the right class; `prediction`, `prediction_adv`: before and after the attack
    words            list of objects, see below
    correct          optional, whether `prediction` is right (upstream skips reviews where not)
    label_names      optional, the classes' names in order
    epsilon          optional, the step size of the attack
    perplexity       optional, object with any of clean, continuous, nearest, direction
    probability, probability_adv
                     optional, the classifier's probability of the right class before and after

and each word

    word             the original word
    toward           the neighbour moved towards (highest cosine); the word itself if it rests
    nearest          the word whose embedding is nearest to the perturbed vector
    norm             length of the perturbation; `relative_norm`: as a share of the review's largest
    max_cosine       cosine between the perturbation and the direction to `toward`
    neighbors        the K neighbours; `cosines`: the cosine with the direction to each
    neighbor_distance
                     distance from the word to `toward`

A reader needs `word`, `toward`, `nearest` and `norm`; the other fields of a word may be absent.
"""
import json
import math

from interpretable_adv.cli import UserError

METHOD_NAMES = {'adv': 'AdvT-Text', 'iadv': 'iAdvT-Text', 'spgd': 'SPGD', 'vat': 'VAT-Text',
                'ivat': 'iVAT-Text'}
BINARY_LABELS = ('negative', 'positive')  # the classes of IMDB, in upstream's order

_INTEGERS = ('index', 'label', 'prediction', 'prediction_adv')
_WORD_TEXTS = ('word', 'toward', 'nearest')
_WORD_NUMBERS = ('relative_norm', 'max_cosine', 'neighbor_distance')  # each may be absent


def read(path):
    """Yields the checked records of a JSON lines file, one at a time."""
    try:
        with open(path, encoding='utf-8') as stream:
            for number, line in enumerate(stream, 1):
                if line.strip():
                    yield parse(line, f'{path}, line {number}')
    except OSError as error:
        raise UserError(f'cannot read the records {path}: {error.strerror}; '
                        'interpretable_adv.analysis writes them') from error
    except UnicodeDecodeError as error:
        raise UserError(f'{path} is not UTF-8 text; give the JSON lines file that '
                        'interpretable_adv.analysis writes') from error


def read_reviews(path, limit=None, indices=None):
    """The records grouped by review.

    Args:
        limit: at most so many reviews, or all.
        indices: only these reviews, in this order; `limit` then counts for nothing.

    Returns:
        A list of lists in the order of the file, within a review in the paper's order of methods
        (AdvT, iAdvT, SPGD, others), and how many reviews the limit has left out.
    """
    reviews, left_out, empty = {}, set(), True
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
    order = list(METHOD_NAMES)
    grouped = [sorted(by_method.values(), key=lambda record: (
        order.index(record['method']) if record['method'] in order else len(order)))
        for by_method in reviews.values()]
    return grouped, len(left_out)


def _add(by_method, record, path):
    """Puts a record beside those of the same review, which must have the same words."""
    index, method = record['index'], record['method']
    if method in by_method:
        raise UserError(f'{path} holds review {index} under method {method} twice; '
                        'keep one of the two records')
    by_method[method] = record
    other, first = next(iter(by_method.items()))
    if [word['word'] for word in record['words']] != [word['word'] for word in first['words']]:
        raise UserError(f'{path}: the words of review {index} differ between the methods {other} '
                        f'and {method}; make all records of a file from the same data')


def parse(line, place):
    """One checked record from a line of JSON; `place` names it in errors."""
    try:
        record = json.loads(line)
    except ValueError as error:
        raise UserError(f'{place} is not a whole JSON object ({error}); '
                        'delete the line or run interpretable_adv.analysis again') from error
    try:
        _check(record)
        if '\\ud' in line.lower():  # half of an escaped pair cannot be written as UTF-8 again
            json.dumps(record, ensure_ascii=False).encode('utf-8')
    except ValueError as error:
        raise UserError(f'{place} is not a perturbation record: {error}') from error
    return record


def parse_indices(text):
    """The review numbers of `--indices 3,17`."""
    try:
        indices = [int(part) for part in text.split(',') if part.strip()]
    except ValueError:
        indices = []
    if not indices or min(indices) < 0:
        raise UserError(f'--indices {text}: give review numbers from 0, such as 3,17')
    return list(dict.fromkeys(indices))


def label_name(record, label):
    """The class's name: as recorded, else IMDB's for two classes, else its number."""
    names = record.get('label_names')
    if not names and max(record['label'], record['prediction'], record['prediction_adv']) < 2:
        names = BINARY_LABELS
    return names[label] if names and label < len(names) else f'class {label}'


def method_name(record):
    """The method as the paper writes it."""
    return METHOD_NAMES.get(record['method'], record['method'])


def is_flipped(record):
    """Whether the attack changed the prediction."""
    return record['prediction'] != record['prediction_adv']


def largest_norm(reviews):
    """The largest norm over records, or 1 where nothing moved: the top of the colour scale."""
    return max((word['norm'] for record in reviews for word in record['words']), default=0) or 1.0


def attack_hue(record):
    """Which way the attack pushes: 'red' away from positive, 'blue' towards it.

    With other classes than two there is no such axis: 'purple'.
    """
    names = record.get('label_names') or BINARY_LABELS
    if len(names) != 2 or record['label'] > 1:
        return 'purple'
    return 'red' if record['label'] == 1 else 'blue'


def _check(record):
    if not isinstance(record, dict):
        raise ValueError('not an object')
    for name in (*_INTEGERS, 'method', 'words'):
        if name not in record:
            raise ValueError(f'{name} is missing')
    for name in _INTEGERS:
        value = record[name]
        if not isinstance(value, int) or isinstance(value, bool) or value < 0:
            raise ValueError(f'{name} is {value!r}, not a whole number from 0')
    if not isinstance(record['method'], str) or not record['method']:
        raise ValueError(f'method is {record["method"]!r}, not a name')
    names = record.get('label_names')
    if names is not None and not (isinstance(names, list)
                                  and all(isinstance(name, str) for name in names)):
        raise ValueError('label_names is not a list of names')
    for name in ('epsilon', 'probability', 'probability_adv'):
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


def _check_word(word):
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
        raise ValueError('neighbors holds something else than words')
    if cosines and len(cosines) != len(neighbors):
        raise ValueError(f'{len(neighbors)} neighbors but {len(cosines)} cosines')
    for cosine in cosines:
        _check_number(cosine, 'a cosine')


def _check_number(value, name):
    if value is None:
        return
    if not isinstance(value, (int, float)) or isinstance(value, bool) or not math.isfinite(value):
        raise ValueError(f'{name} is {value!r}, not a finite number')
