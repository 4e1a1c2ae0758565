"""Reading what runs left behind, from a folder of runs or from the committed results."""
import csv
import dataclasses
import functools
import glob
import gzip
import io
import os
import re
import zlib

import numpy as np

from experiments import state
from interpretable_adv import methods, settings
from interpretable_adv.errors import UserError
from interpretable_adv.runs import reading
from interpretable_adv.runs.folder import MODEL, RESULT


@dataclasses.dataclass(frozen=True)
class Run:
    """A finished training of a classifier.

    Attributes:
        settings: its flags, from args.json.
        result: of result.json; accuracies in per cent.
    """
    method: str
    seed: int
    folder: str
    settings: dict
    result: dict

    @property
    def dev(self):
        return self.result['dev_accuracy']

    @property
    def test(self):
        return self.result['test_accuracy']

    @functools.cached_property
    def predictions(self):
        """labels, predictions: int arrays `(test reviews,)`."""
        for ending in ('.csv', '.csv.gz'):
            path = os.path.join(self.folder, 'predictions' + ending)
            if os.path.exists(path):
                return read_predictions(path)
        raise UserError(f'{self.folder} has no predictions.csv: run table3.sh again')

    @property
    def correct(self):
        """Boolean `(test reviews,)`."""
        labels, predictions = self.predictions
        right = labels == predictions
        if right.sum() != round(self.test / 100 * len(right)):
            raise UserError(f'{self.folder}: predictions.csv is not of the model whose accuracy '
                            f'result.json has; {_AGAIN}')
        return right


_PREDICTION = re.compile(r'\d{1,9}')
MOST_BYTES = 1 << 28  # of predictions, unpacked
SPARSITY = 'spgd_sparsity'  # how the names of runs with several σ begin


def read_predictions(path):
    """labels, predictions: int arrays `(reviews,)` of a predictions.csv, also a compressed one."""
    content = reading.read_bytes(path, _AGAIN)
    try:
        if os.fspath(path).endswith('.gz'):
            with gzip.open(io.BytesIO(content)) as stream:
                content = stream.read(MOST_BYTES + 1)
        if len(content) > MOST_BYTES:
            raise ValueError('it is too long')
        rows = list(csv.DictReader(io.StringIO(content.decode('utf-8'), newline=''), strict=True))
        columns = [[row[name] for row in rows] for name in ('label', 'prediction')]
        if not rows or not all(isinstance(text, str) and _PREDICTION.fullmatch(text)
                               for column in columns for text in column):
            raise ValueError('it has no label and prediction in every line')
    except (OSError, ValueError, EOFError, KeyError, csv.Error, zlib.error) as error:
        raise UserError(f'{path} is damaged ({error}); {_AGAIN}') from error
    labels, predictions = np.array(columns, int)
    return labels, predictions


_AGAIN = 'delete it, and run table3.sh again'


def find(folder):
    """The finished classifiers in a folder: `{method: [Run, …]}`, by ascending seed."""
    found = _grouped(folder, methods.classifiers().__contains__)
    return {method: found[method] for method in methods.classifiers() if method in found}


def sparsities(folder):
    """SPGD trained with several σ: `{σ: [Run, …]}`, both ascending."""
    found = _grouped(folder, lambda name: name.startswith(SPARSITY))
    return dict(sorted((settings.checked('sparsity', runs[0].settings.get('sparsity'),
                                         runs[0].folder + os.sep), runs)
                       for runs in found.values()))


def _grouped(folder, wanted):
    """Finished classifiers in folders `<name>_seed<n>`: `{name: [Run, …]}`, by ascending seed."""
    found = {}
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), '*_seed*'))):
        match = re.fullmatch(r'(.+)_seed(\d+)', os.path.basename(path))
        result = state.read_json(os.path.join(path, RESULT))
        if not match or not wanted(match[1]) or result is None:
            continue
        flags = settings.read_run(os.path.join(path, MODEL))
        require(path, result, 'n_epoch', 'dev_accuracy', 'test_accuracy')
        found.setdefault(match[1], []).append(
            Run(match[1], int(match[2]), path, flags, result))
    for runs in found.values():
        runs.sort(key=lambda run: run.seed)
        _refuse_mixture(runs)
    return found


def _refuse_mixture(runs):
    """Runs of one method belong together only if nothing but the seed differs."""
    ignored = state.FREE['classifier'] | {'random_seed'}
    first = runs[0]
    for run in runs[1:]:
        reason = state.difference(
            {**first.settings, 'n_epoch': first.result['n_epoch']},
            {**run.settings, 'n_epoch': run.result['n_epoch']}, ignored - {'n_epoch'})
        if reason:
            raise UserError(f'{first.folder} and {run.folder} cannot be combined in one table '
                            f'({reason}): delete the older one')


@dataclasses.dataclass(frozen=True)
class Robustness:
    """A classifier under attack: `robustness.json`, and whether each review is right."""
    folder: str
    result: dict

    @functools.cached_property
    def right(self):
        """`{column: boolean (reviews,)}` of its `reviews.csv`."""
        for ending, opener in (('.csv', open), ('.csv.gz', gzip.open)):
            path = os.path.join(self.folder, 'reviews' + ending)
            if os.path.exists(path):
                with opener(path, 'rt', encoding='utf-8', newline='') as stream:
                    names, *rows = csv.reader(stream)
                values = np.array(rows, int).reshape(-1, len(names)).T
                return {name: column == 1 for name, column in zip(names, values)
                        if name not in ('index', 'label', 'swaps')}
        raise UserError(f'{self.folder} has no reviews.csv: run table4.sh again')


def robustness(folder):
    """Table 4's measurements in a folder: `{method: {seed: Robustness}}`."""
    found = {}
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), 'robustness_*_seed*'))):
        match = re.fullmatch(r'robustness_(.+)_seed(\d+)', os.path.basename(path))
        result = state.read_json(os.path.join(path, 'robustness.json'))
        if match and match[1] in methods.classifiers() and result:
            found.setdefault(match[1], {})[int(match[2])] = Robustness(path, result)
    return {method: dict(sorted(found[method].items())) for method in methods.classifiers()
            if method in found}


def class_lm(folder):
    """result.json of the class-conditional language model in a folder of runs, or None."""
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), 'class_lm_seed*'))):
        result = state.read_json(os.path.join(path, RESULT))
        if result:
            return result
    return None


def language_model(folder):
    """result.json and args.json of the language model in a folder of runs, or None."""
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), 'lm_seed*'))):
        result = state.read_json(os.path.join(path, RESULT))
        if result:
            require(path, result, 'epoch', 'test_perplexity')
            return result, settings.read_run(os.path.join(path, MODEL))
    return None


def require(folder, result, *names):
    """Refuses a result.json that lacks a number."""
    missing = [name for name in names if result.get(name) is None]
    if missing:
        raise UserError(f'{os.path.join(folder, RESULT)} is damaged: it lacks {missing[0]}; delete '
                        'it, and run the same command again')


def best(runs):
    """The run to show alone: highest accuracy on dev, which the test set has no part in; of
    equals the lowest seed."""
    return max(runs, key=lambda run: (run.dev, -run.seed))
