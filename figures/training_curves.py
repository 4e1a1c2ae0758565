"""Draws loss and accuracy per epoch of several training runs on common axes.

    python figures/training_curves.py RUN [RUN …] --out DIR

A run is a folder that interpretable_adv.train wrote, such as runs/toy/adv_seed1. Runs that differ
only in `_seed…` are one method: thin lines for the runs, a thick one for their mean.
"""
import os
import pathlib
import re
import sys

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))  # run as a script

from interpretable_adv import cli  # noqa: E402
from interpretable_adv.errors import UserError  # noqa: E402
from interpretable_adv.evaluation import pictures  # noqa: E402
from interpretable_adv.methods import METHODS  # noqa: E402
from interpretable_adv.runs import files, reading  # noqa: E402

OTHER_COLORS = ('#8c564b', '#bcbd22', '#9467bd')
# Names that a value may have in a log.
LOSS = ('main/loss', 'loss')
EPOCHS = reading.items(reading.fields({'epoch': reading.whole}))
ACCURACY = {
    'train': ('main/accuracy', 'accuracy'),
    'dev': ('dev/main/accuracy', 'dev/accuracy', 'dev_accuracy', 'validation/main/accuracy'),
    'test': ('test/main/accuracy', 'test/accuracy', 'test_accuracy')}


def appearance(methods):
    """`{method: (name, colour, marker)}`, the known ones in the paper's order first."""
    result = {method: (row.title, row.color, row.marker) for method, row in METHODS.items()
              if method in methods}
    others = [method for method in methods if method not in METHODS]
    for number, method in enumerate(others):
        result[method] = method, OTHER_COLORS[number % len(OTHER_COLORS)], 'o'
    return result


def method_of(folder):
    """The method in a run folder's name: adv of `…/adv_seed1`."""
    return re.sub(r'_seed\d+$', '', os.path.basename(os.path.normpath(folder)))


def read_log(folder):
    """The epochs of a run: a list of dictionaries, by rising epoch."""
    path = os.path.join(folder, 'log')
    rows = reading.read_json(path, EPOCHS, 'give folders that interpretable_adv.train wrote')
    if not rows:
        raise UserError(f'{path} holds no finished epoch yet; leave the run out')
    return sorted(rows, key=lambda row: row['epoch'])


def series(rows, names, folder):
    """Epochs and values of the first of `names` that the log has."""
    for name in names:
        pairs = [(row['epoch'], row[name]) for row in rows if row.get(name) is not None]
        if pairs:
            epochs, values = zip(*pairs)
            try:
                reading.items(reading.real)(list(values), name)
            except ValueError as error:
                raise UserError(f'the log of {folder} is damaged ({error}); leave the run out'
                                ) from error
            return np.array(epochs), np.array(values, float)
    raise UserError(f'the log of {folder} has no {names[0]}; leave the run out')


def collect(folders, split):
    """`{method: {'loss': [(epochs, values), …], 'accuracy': […]}}`, one entry per run."""
    curves = {}
    for folder in folders:
        rows = read_log(folder)
        method = curves.setdefault(method_of(folder), {'loss': [], 'accuracy': []})
        method['loss'].append(series(rows, LOSS, folder))
        method['accuracy'].append(series(rows, ACCURACY[split], folder))
    return curves


def mean_curve(runs):
    """Mean over the runs at the epochs that all of them have."""
    common = sorted(set.intersection(*(set(epochs.tolist()) for epochs, _ in runs)))
    values = [[dict(zip(epochs.tolist(), values.tolist()))[epoch] for epoch in common]
              for epochs, values in runs]
    return np.array(common), np.mean(values, axis=0)


def draw(axes, curves, kind):
    """Draws the curves of one kind, `loss` or `accuracy`, on axes, and returns them."""
    for method, (name, color, marker) in appearance(curves).items():
        runs = curves[method][kind]
        if len(runs) > 1:
            for epochs, values in runs:
                axes.plot(epochs, values, color=color, linewidth=0.6, alpha=0.45)
            name += f' (mean of {len(runs)})'
        epochs, values = mean_curve(runs)
        axes.plot(epochs, values, color=color, linewidth=1.7, marker=marker, markersize=3.6,
                  markevery=max(1, len(epochs) // 10), label=name)
    axes.set_xlabel('epoch')
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(color='#e3e3e3', linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[['top', 'right']].set_visible(False)
    return axes


def make_figure(curves, split='dev'):
    """Loss on the left, accuracy on the right, one legend below."""
    with matplotlib.rc_context({**pictures.STYLE, 'font.size': 8}):
        figure = Figure(figsize=(7.2, 3.3), layout='constrained')
        FigureCanvasAgg(figure)
        left, right = figure.subplots(1, 2)
        draw(left, curves, 'loss').set_ylabel('training loss, with its adversarial part')
        draw(right, curves, 'accuracy').set_ylabel(f'{split} accuracy (%)')
        handles, labels = left.get_legend_handles_labels()
        figure.legend(handles, labels, loc='outside lower center', ncols=min(3, len(labels)),
                      frameon=False)
    return figure


def main(argv=None):
    parser = cli.ArgumentParser(prog='python figures/training_curves.py',
                                description=__doc__.partition('\n')[0])
    parser.add_argument('runs', nargs='+', metavar='RUN', help='folder of a training run')
    parser.add_argument('--out', default=str(pathlib.Path(__file__).parent),
                        help='folder for training_curves.png and .pdf')
    parser.add_argument('--accuracy', choices=ACCURACY, default='dev', help='of which split')
    settings = parser.parse_args(argv)
    figure = make_figure(collect(settings.runs, settings.accuracy), settings.accuracy)
    files.make_directory(settings.out)
    stem = os.path.join(settings.out, 'training_curves')
    print(*pictures.save(figure, stem), sep='\n')


if __name__ == '__main__':
    cli.run(main)
