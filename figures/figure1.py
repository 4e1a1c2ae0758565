"""Draws Figure 1: SPGD on two words in a plane.

    python figures/figure1.py --out figures

Nothing in the picture is drawn by hand: the arrows are what `interpretable_adv.perturbations`
returns for two word vectors in two dimensions and a small loss with a known gradient.
"""
import os
import pathlib
import sys
from typing import NamedTuple

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

sys.path.insert(0, str(pathlib.Path(__file__).resolve().parents[1]))  # run as a script

from interpretable_adv import cli, perturbations  # noqa: E402
from interpretable_adv.evaluation import pictures  # noqa: E402
from interpretable_adv.runs import files  # noqa: E402

WORDS = np.array([[0.0, 0.0], [4.3, -0.2]], 'f')  # A and B
NEIGHBORS = np.array([
    [[2.7, 1.35], [-0.9, 1.35], [1.15, -1.3]],
    [[6.3, -0.95], [4.6, 1.45], [3.6, -1.4]]], 'f')
STEPS = 3
STEP_SIZE = 0.85  # ε of each step
SPARSITY = 0.5

GREEN, YELLOW, RED = '#2e8b57', '#e6a700', '#c8281e'
INK, MUTED = '#1a1a1a', '#6b6b6b'


class Illustration(NamedTuple):
    """What the figure shows.

    Attributes:
        path: positions of the words before and after each step, `(STEPS + 1, 2 words, 2)`.
        raw: the raw perturbations, `(2, 2)`.
        kept: which words keep theirs, booleans `(2,)`.
        perturbation: SPGD's result, `(2, 2)`.
        chosen: the neighbour of each word whose direction is nearest to the raw perturbation.
    """

    path: np.ndarray
    raw: np.ndarray
    kept: np.ndarray
    perturbation: np.ndarray
    chosen: np.ndarray


def loss(words):
    """A loss of two words, `log(1 + exp(s))`, whose gradient turns as the words move.

    With a, b the words as seen from where they begin::

        s = 0.9 a₁ − 0.35 a₂ + 0.45 a₁a₂  +  0.4 b₁ − 0.3 b₁² + 0.1 b₂ + 0.4 b₂²
    """
    return np.logaddexp(0, _score(words))


def _score(words):
    a, b = words - WORDS
    return (0.9 * a[0] - 0.35 * a[1] + 0.45 * a[0] * a[1]
            + 0.4 * b[0] - 0.3 * b[0] ** 2 + 0.1 * b[1] + 0.4 * b[1] ** 2)


def loss_gradient(words):
    """Gradient of `loss` with respect to both words, `(2, 2)`."""
    a, b = words - WORDS
    slope = np.array([[0.9 + 0.45 * a[1], 0.45 * a[0] - 0.35],
                      [0.4 - 0.6 * b[0], 0.1 + 0.8 * b[1]]])
    return (slope / (1 + np.exp(-_score(words)))).astype('f')


def compute():
    """Runs Algorithm 1 with M = 3 on the two words."""
    raw, path = np.zeros_like(WORDS), [WORDS]
    for _ in range(STEPS):
        gradient = loss_gradient(WORDS + raw)
        raw = raw + perturbations.advt(gradient, [2], STEP_SIZE)
        path.append(WORDS + raw)
    directions = perturbations.directions(WORDS, NEIGHBORS)
    perturbation, chosen = perturbations.spgd(raw, directions, [2], SPARSITY)
    kept = perturbations.kept_words(raw, [2], SPARSITY)
    return Illustration(np.array(path), raw, kept, perturbation, chosen)


def draw(illustration, axes):
    """Draws the illustration on axes of equal scale, and returns them."""
    for word, name in enumerate('AB'):
        _draw_neighbors(axes, name, WORDS[word], NEIGHBORS[word], illustration.chosen[word],
                        illustration.kept[word])
        for start, stop in zip(illustration.path[:-1, word], illustration.path[1:, word]):
            _arrow(axes, start, stop, GREEN, 1.6, 4)
        _arrow(axes, WORDS[word], WORDS[word] + illustration.raw[word], YELLOW, 3.2, 3)
        if illustration.kept[word]:
            end = WORDS[word] + illustration.perturbation[word]
            tip = WORDS[word] + illustration.raw[word]
            axes.plot(*zip(tip, end), color=MUTED, linewidth=0.9, linestyle=(0, (1, 1.5)), zorder=2)
            _arrow(axes, WORDS[word], end, RED, 2.6, 5)
        axes.plot(*WORDS[word], 'o', color=INK, markersize=6.5, zorder=6)
    for word, name in enumerate('AB'):
        axes.annotate(f'Word {name}', WORDS[word], (-8, 0), textcoords='offset points',
                      fontsize=9.5, weight='bold', color=INK, ha='right', va='center')
    dropped = WORDS[1] + illustration.raw[1]
    axes.annotate('zeroed: smaller norm,\nσ = 0.5 keeps one of two', dropped, (9, 2),
                  textcoords='offset points', fontsize=7.5, color=MUTED, ha='left', va='bottom')
    axes.set_aspect('equal')
    axes.set(xlim=(-1.65, 7.05), ylim=(-1.85, 1.95), xticks=[], yticks=[])
    for spine in axes.spines.values():
        spine.set_color('#cfcfcf')
    return axes


def _draw_neighbors(axes, name, word, neighbors, chosen, kept):
    for rank, neighbor in enumerate(neighbors):
        nearest_path = kept and rank == chosen
        axes.plot(*zip(word, neighbor), color='#8f8f8f' if nearest_path else '#c4c4c4',
                  linewidth=1.1 if nearest_path else 0.9, linestyle=(0, (4, 3)), zorder=1)
        axes.plot(*neighbor, 'o', markerfacecolor='white', markeredgecolor=MUTED, markersize=5.5,
                  zorder=2)
        side = 1 if neighbor[1] >= word[1] else -1
        axes.annotate(f'neighbour {name}{rank + 1}', neighbor, (0, 7 * side),
                      textcoords='offset points', fontsize=7.5, color=MUTED, ha='center',
                      va='bottom' if side > 0 else 'top')


def _arrow(axes, start, stop, color, width, order):
    axes.annotate('', stop, start, zorder=order, arrowprops={
        'arrowstyle': '-|>', 'color': color, 'linewidth': width, 'shrinkA': 0, 'shrinkB': 0,
        'mutation_scale': 9 + 2 * width})


def make_figure():
    """The whole figure with its legend."""
    with matplotlib.rc_context(pictures.STYLE):
        figure = Figure(figsize=(6.6, 3.2))
        FigureCanvasAgg(figure)
        draw(compute(), figure.add_axes((0.01, 0.1, 0.98, 0.885)))
        entries = ((GREEN, 1.6, 'three gradient steps'), (YELLOW, 3.2, 'raw perturbation'),
                   (RED, 2.6, 'projection: what SPGD adds'))
        legend = [matplotlib.lines.Line2D([], [], color=color, linewidth=width, label=label)
                  for color, width, label in entries]
        legend.append(matplotlib.lines.Line2D(
            [], [], color='#c4c4c4', linewidth=0.9, linestyle=(0, (4, 3)),
            label='paths to the neighbours'))
        figure.legend(handles=legend, loc='lower center', ncols=4, frameon=False, fontsize=7.8,
                      handlelength=1.5, columnspacing=1.2, borderaxespad=0.4)
    return figure


def main(argv=None):
    parser = cli.ArgumentParser(prog='python figures/figure1.py',
                                description=__doc__.partition('\n')[0])
    parser.add_argument('--out', default=str(pathlib.Path(__file__).parent),
                        help='folder for figure1.png and figure1.pdf')
    out = parser.parse_args(argv).out
    files.make_directory(out)
    figure = make_figure()
    stem = os.path.join(out, 'figure1')
    print(*pictures.save(figure, stem), sep='\n')


if __name__ == '__main__':
    cli.run(main)
