"""The plot of a sweep over the strength: perplexity gap against flipped predictions."""
from collections.abc import Sequence

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from interpretable_adv.evaluation.pictures import STYLE
from interpretable_adv.methods import METHODS


def draw(axes: Axes, rows: Sequence[dict], methods: Sequence[str], reading: str) -> Axes:
    """Draws a line for each method on axes and returns them. Points are labelled with ε, or with
    the budget of attacks that have none.

    Args:
        rows: summaries of `measures.Measurement`, with `method`, `epsilon` and `budget`.
    """
    for method in methods:
        row = METHODS[method]
        points = [point for point in rows if point['method'] == method]
        flipped = [point['scores'][reading]['flipped'] for point in points]
        gap = [point['scores'][reading]['gap'] for point in points]
        axes.plot(flipped, gap, marker=row.marker, markersize=4, linewidth=1.2, label=row.title,
                  color=row.color)
        for point, x, y in zip(points, flipped, gap):
            if x >= 3:  # near the origin there is no room for numbers
                axes.annotate(strength(point), (x, y), textcoords='offset points',
                              xytext=(4, 3), fontsize=6, color=row.color)
    axes.set_yscale('symlog', linthresh=1)
    axes.set_ylim(bottom=min(0, axes.get_ylim()[0]))
    axes.set_xlabel('predictions flipped (%)')
    axes.set_ylabel('perplexity gap')
    axes.set_title(reading)
    axes.grid(alpha=0.3, linewidth=0.5)
    return axes


def strength(point: dict) -> str:
    """ε of a row, or its budget in per cent of the words."""
    if point['epsilon'] is None:
        return f"{100 * point['budget']:g} %"
    return f"{point['epsilon']:g}"


def make_figure(rows: Sequence[dict], methods: Sequence[str], readings: Sequence[str]) -> Figure:
    """A panel for each reading."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(5.5 * len(readings), 4.2), layout='constrained')
        panels = figure.subplots(1, len(readings), squeeze=False)[0]
        for axes, reading in zip(panels, readings):
            draw(axes, rows, methods, reading)
        panels[0].legend(fontsize=8)
    return figure
