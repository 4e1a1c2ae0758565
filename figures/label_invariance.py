"""Draws what attacks of growing strength do to a text, for readers other than the classifier.

    python figures/label_invariance.py --perplexity SWEEP.json [SWEEP.json …] --out DIR

The files are sweeps that lm.perplexity wrote with --json, one per seed. Against the share of
flipped predictions: the perplexity gap of perturbed vectors; the gap of the text of nearest words,
the only one that attacks by swaps have; the share of reviews whose label changes for an independent
judge, dotted the same after random swaps of as many words; and the share of swaps that are
antonyms.
"""
import json
import os
import pathlib
import sys

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))  # run as a script

from interpretable_adv import cli  # noqa: E402
from interpretable_adv.errors import UserError  # noqa: E402
from interpretable_adv.evaluation import pictures  # noqa: E402
from interpretable_adv.methods import METHODS  # noqa: E402
from interpretable_adv.runs import files  # noqa: E402

# Reading, score, the score drawn dashed, and the title of each panel.
PANELS = (('continuous', 'gap', None, 'perplexity gap, continuous'),
          ('nearest', 'gap', None, 'perplexity gap, nearest'),
          ('nearest', 'judge_changed', 'judge_changed_random', "judge's label changes (%)"),
          ('nearest', 'antonyms', None, 'swaps that are antonyms (%)'))


def read(paths):
    """The rows of all sweeps: `{method: [rows of one strength, …]}`, weakest first."""
    found = {}
    for path in paths:
        try:
            with open(path, encoding='utf-8') as stream:
                sweep = json.load(stream)['sweep']
            for row in sweep:
                strength = row['epsilon'] if row['epsilon'] is not None else row['budget']
                found.setdefault(row['method'], {}).setdefault(strength, []).append(row)
        except OSError as error:
            raise UserError(f'cannot read {path}: {error.strerror}; give what lm.perplexity wrote '
                            'with --sweep_epsilon and --json') from error
        except (ValueError, KeyError, TypeError) as error:
            raise UserError(f'{path} is not what lm.perplexity writes with --json: {error}'
                            ) from error
    if not found:
        raise UserError(f'{paths[0]} holds no sweep: run lm.perplexity with --sweep_epsilon')
    return {method: [found[method][strength] for strength in sorted(found[method])]
            for method in METHODS if method in found}


def line(groups, reading, score):
    """Points `(flipped, score)`, means over seeds; strengths at which the score has no value are
    left out."""
    points = []
    for rows in groups:
        scores = [row['scores'][reading] for row in rows]
        values = [(s['flipped'], s[score]) for s in scores if s.get(score) is not None]
        if values:
            points.append(np.mean(values, axis=0))
    return np.array(points).reshape(-1, 2)


def draw(axes, rows, reading, score, dashed, title):
    """Draws one panel on axes, and returns them."""
    for method, groups in rows.items():
        row = METHODS[method]
        if reading == 'continuous' and row.swaps:
            continue
        for name, style in ((score, '-'), (dashed, ':')):
            if name:
                points = line(groups, reading, name)
                axes.plot(points[:, 0], points[:, 1], style, color=row.color, linewidth=1.1,
                          marker=row.marker if name == score else None, markersize=4,
                          label=row.title if name == score else None)
    if score == 'gap':
        axes.set_yscale('symlog', linthresh=1)
    axes.set_xlabel(f'predictions flipped (%), {reading}')
    axes.set_title(title)
    axes.grid(color='#e3e3e3', linewidth=0.6)
    axes.set_axisbelow(True)
    axes.spines[['top', 'right']].set_visible(False)
    return axes


def make_figure(rows):
    """Four panels with a legend below."""
    with matplotlib.rc_context({**pictures.STYLE, 'font.size': 8}):
        figure = Figure(figsize=(7.6, 6.4), layout='constrained')
        FigureCanvasAgg(figure)
        for axes, panel in zip(figure.subplots(2, 2).flat, PANELS):
            draw(axes, rows, *panel)
        handles, labels = figure.axes[-1].get_legend_handles_labels()
        figure.legend(handles, labels, loc='outside lower center', frameon=False, ncols=4)
    return figure


def main(argv=None):
    parser = cli.ArgumentParser(prog='python figures/label_invariance.py',
                                description=__doc__.partition('\n')[0])
    parser.add_argument('--perplexity', nargs='+', required=True, metavar='FILE',
                        help='JSON files of lm.perplexity with a sweep, one per seed')
    parser.add_argument('--out', default=str(pathlib.Path(__file__).parent),
                        help='folder for label_invariance.png and .pdf')
    settings = parser.parse_args(argv)
    figure = make_figure(read(settings.perplexity))
    files.make_directory(settings.out)
    print(*pictures.save(figure, os.path.join(settings.out, 'label_invariance')), sep='\n')


if __name__ == '__main__':
    cli.run(main)
