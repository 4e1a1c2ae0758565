"""The plot of a sweep over the strength: perplexity gap against flipped predictions."""
from collections.abc import Sequence

import matplotlib
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.figure import Figure
from matplotlib.patheffects import withStroke
from matplotlib.transforms import Bbox

from interpretable_adv.evaluation.pictures import STYLE
from interpretable_adv.methods import METHODS

OFFSETS = ((4, 4), (4, -4), (-4, 4), (-4, -4), (0, 7), (0, -7), (7, 0), (-7, 0))  # points


def draw(axes: Axes, rows: Sequence[dict], methods: Sequence[str], reading: str) -> Axes:
    """Draws a line for each method on axes, and returns them.

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


def label_points(axes: Axes, rows: Sequence[dict], methods: Sequence[str], reading: str,
                 renderer: RendererAgg) -> None:
    """Labels the points with ε, or with the budget of attacks that have none, where there is room:
    no label covers another, or a point.

    The axes must have their final place and limits.
    """
    frame = axes.get_window_extent(renderer)
    reach = renderer.points_to_pixels(2.5)  # of a marker
    taken = []
    for line in axes.lines:
        for x, y in axes.transData.transform(line.get_xydata()):
            taken.append(Bbox([[x - reach, y - reach], [x + reach, y + reach]]))
    legend = axes.get_legend()
    if legend is not None:
        taken.append(legend.get_window_extent(renderer))
    for method in methods:
        for point in (point for point in rows if point['method'] == method):
            place = point['scores'][reading]['flipped'], point['scores'][reading]['gap']
            if place[0] < 3:  # near the origin there is no room for numbers
                continue
            for offset in OFFSETS:
                label = axes.annotate(
                    strength(point), place, xytext=offset, textcoords='offset points',
                    fontsize=6, color=METHODS[method].color, va='center',
                    ha={-1: 'right', 0: 'center', 1: 'left'}[(offset[0] > 0) - (offset[0] < 0)])
                label.set_path_effects([withStroke(linewidth=1.5, foreground='white')])
                box = label.get_window_extent(renderer)
                inside = frame.containsx(box.x0) and frame.containsx(box.x1) and (
                    frame.containsy(box.y0) and frame.containsy(box.y1))
                if inside and not any(box.overlaps(other) for other in taken):
                    taken.append(box)
                    break
                label.remove()


def make_figure(rows: Sequence[dict], methods: Sequence[str], readings: Sequence[str]) -> Figure:
    """A panel for each reading."""
    with matplotlib.rc_context(STYLE):
        figure = Figure(figsize=(5.5 * len(readings), 4.2), layout='constrained')
        panels = figure.subplots(1, len(readings), squeeze=False)[0]
        for axes, reading in zip(panels, readings):
            draw(axes, rows, methods, reading)
        panels[0].legend(fontsize=8)
        canvas = FigureCanvasAgg(figure)
        figure.draw_without_rendering()  # gives the axes their places
        for axes, reading in zip(panels, readings):
            label_points(axes, rows, methods, reading, canvas.get_renderer())
    return figure
