"""Draws the perplexity gap of each method's attack against its classifier's accuracy.

    python figures/gap_accuracy.py --perplexity TABLE1.json [TABLE1.json …] --out DIR

The files are what lm.perplexity wrote with --json; each of their rows names its classifier, beside
which the training run left its accuracy in result.json. With several files (seeds) each method has
its points, and a larger one with standard deviations at their mean.
"""
import os
import pathlib
import sys
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))  # run as a script
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))

from training_curves import appearance  # noqa: E402

from interpretable_adv import cli, paper  # noqa: E402
from interpretable_adv.errors import UserError  # noqa: E402
from interpretable_adv.evaluation import pictures  # noqa: E402
from interpretable_adv.evaluation.readings import READINGS  # noqa: E402
from interpretable_adv.runs import files, reading  # noqa: E402

PAPER = {method: (paper.ACCURACY[method], gap) for method, gap in paper.GAP.items()}


class Point(NamedTuple):
    """One classifier under attack by its own method."""

    method: str
    accuracy: float
    gap: float
    flipped: float


RESULT = reading.fields({'test_accuracy': reading.number})


def table_of(score):
    """The form of a file of lm.perplexity that has a reading."""
    attacked = reading.fields({'model': reading.text, 'scores': reading.fields(
        {score: reading.fields({'gap': reading.number, 'flipped': reading.number})})})

    def row(value, name):
        reading.fields({'method': reading.text})(value, name)
        if value['method'] != 'none':
            attacked(value, name)

    return reading.fields({'rows': reading.items(row)})


def collect(paths, score, runs=()):
    """The points of all files.

    Args:
        score: which reading of the perturbed reviews the gap is of.
        runs: folders of training runs to look for classifiers in, by the folder's name, where
            they no longer are where they were.
    """
    moved = {os.path.basename(os.path.normpath(run)): run for run in runs}
    points = []
    for path in paths:
        table = reading.read_json(path, table_of(score),
                                  'give what lm.perplexity wrote with --json')
        for row in table['rows']:
            if row['method'] == 'none':
                continue
            values = row['scores'][score]
            folder = os.path.dirname(row['model'])
            folder = moved.get(os.path.basename(folder), folder)
            result = reading.read_json(os.path.join(folder, 'result.json'), RESULT,
                                       'give the folders of the training runs as --runs')
            points.append(Point(row['method'], result['test_accuracy'], values['gap'],
                                values['flipped']))
    if not points:
        raise UserError(f'{paths[0]} measures no attack; run lm.perplexity with --methods')
    return points


def draw(axes, points, score, show_paper=False):
    """Draws the points on axes, and returns them."""
    for method, (name, color, marker) in appearance([p.method for p in points]).items():
        own = [point for point in points if point.method == method]
        accuracy, gap = ([getattr(point, field) for point in own] for field in ('accuracy', 'gap'))
        flipped = np.mean([point.flipped for point in own])
        if len(own) > 1:
            axes.plot(accuracy, gap, marker, color=color, markersize=3.5, alpha=0.5, linestyle='')
            axes.errorbar(np.mean(accuracy), np.mean(gap), np.std(gap, ddof=1),
                          np.std(accuracy, ddof=1), color=color, linewidth=0.9, capsize=2)
        label = f'{name}, {flipped:.3g} % flipped'
        axes.plot(np.mean(accuracy), np.mean(gap), marker, color=color, markersize=7.5,
                  linestyle='', label=label + (f' (mean of {len(own)})' if len(own) > 1 else ''))
        if show_paper and method in PAPER:
            axes.plot(*PAPER[method], marker, markerfacecolor='none', markeredgecolor=color,
                      markersize=7.5, linestyle='', label=f'{name}, paper')
    axes.axhline(0, color='#9a9a9a', linewidth=0.7)
    axes.set_xlabel('test accuracy (%)')
    axes.set_ylabel(f'perplexity gap of the attack, read as {score}')
    axes.margins(0.15)
    axes.grid(color='#e3e3e3', linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[['top', 'right']].set_visible(False)
    return axes


def make_figure(points, score='continuous', show_paper=False):
    """One panel with its legend below it, so that the points have the whole width."""
    with matplotlib.rc_context({**pictures.STYLE, 'font.size': 8}):
        figure = Figure(figsize=(6.4, 4.2), layout='constrained')
        FigureCanvasAgg(figure)
        axes = draw(figure.subplots(), points, score, show_paper)
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles, labels, loc='outside lower center', ncols=2, frameon=False)
    return figure


def main(argv=None):
    parser = cli.ArgumentParser(prog='python figures/gap_accuracy.py',
                                description=__doc__.partition('\n')[0])
    parser.add_argument('--perplexity', nargs='+', required=True, metavar='FILE',
                        help='JSON files of lm.perplexity, one per seed')
    parser.add_argument('--runs', nargs='*', default=[], metavar='RUN',
                        help='folders of the training runs, where the files do not find them')
    parser.add_argument('--score', choices=READINGS, default='continuous', help='reading')
    parser.add_argument('--paper', action='store_true', help="show the paper's points too")
    parser.add_argument('--out', default=str(pathlib.Path(__file__).parent),
                        help='folder for gap_accuracy.png and .pdf')
    settings = parser.parse_args(argv)
    points = collect(settings.perplexity, settings.score, settings.runs)
    figure = make_figure(points, settings.score, settings.paper)
    files.make_directory(settings.out)
    stem = os.path.join(settings.out, 'gap_accuracy')
    print(*pictures.save(figure, stem), sep='\n')


if __name__ == '__main__':
    cli.run(main)
