"""sweep.py: the lines of the plot are the rows' numbers."""
import numpy as np
import pytest
from matplotlib.colors import to_hex

from interpretable_adv.evaluation import sweep
from interpretable_adv.methods import METHODS


def row(method, epsilon, **scores):
    return {'method': method, 'epsilon': epsilon, 'scores': {
        name: {'flipped': flipped, 'gap': gap} for name, (flipped, gap) in scores.items()}}


ROWS = [row('adv', 1.0, continuous=(2.0, 0.5), nearest=(0.0, 0.0)),
        row('adv', 2.5, continuous=(40.0, 30.0), nearest=(20.0, 7.0)),
        row('spgd', 1.0, continuous=(1.0, -0.25), nearest=(0.5, 0.25)),
        row('spgd', 2.5, continuous=(10.0, 1.0), nearest=(3.0, 2.0))]


@pytest.fixture
def panels():
    return sweep.make_figure(ROWS, ['adv', 'spgd'], ['continuous', 'nearest']).axes


def test_each_reading_has_a_panel_with_a_line_for_each_method(panels):
    assert [axes.get_title() for axes in panels] == ['continuous', 'nearest']
    expected = {'continuous': [[(2, 0.5), (40, 30)], [(1, -0.25), (10, 1)]],
                'nearest': [[(0, 0), (20, 7)], [(0.5, 0.25), (3, 2)]]}
    for axes in panels:
        for line, points, method in zip(axes.lines, expected[axes.get_title()], ('adv', 'spgd')):
            np.testing.assert_array_equal(line.get_xydata(), points)
            assert line.get_label() == METHODS[method].title
            assert to_hex(line.get_color()) == METHODS[method].color
            assert line.get_marker() == METHODS[method].marker
        assert len(axes.lines) == 2


def test_points_away_from_the_origin_are_labelled_with_epsilon(panels):
    assert [(text.get_text(), text.xy) for text in panels[0].texts] == [
        ('2.5', (40.0, 30.0)), ('2.5', (10.0, 1.0))]
    assert [(text.get_text(), text.xy) for text in panels[1].texts] == [
        ('2.5', (20.0, 7.0)), ('2.5', (3.0, 2.0))]


def test_labels_cover_neither_one_another_nor_a_point():
    rows = [row(method, epsilon, continuous=(10 + epsilon / 4 + shift, 20 + epsilon))
            for method, shift in (('adv', 0), ('iadv', 0.1), ('spgd', 0.2))
            for epsilon in (0.25, 0.5, 1, 2, 5, 10, 15, 25, 40)]
    figure = sweep.make_figure(rows, ['adv', 'iadv', 'spgd'], ['continuous'])
    axes, renderer = figure.axes[0], figure.canvas.get_renderer()
    boxes = [text.get_window_extent(renderer) for text in axes.texts]
    assert 5 < len(boxes) < len(rows)  # where there is no room, there is no label
    for number, box in enumerate(boxes):
        assert not any(box.overlaps(other) for other in boxes[:number])
        for line in axes.lines:
            assert not any(box.contains(*point)
                           for point in axes.transData.transform(line.get_xydata()))


def test_one_legend_names_the_methods(panels):
    legends = [axes.get_legend() for axes in panels]
    assert [text.get_text() for text in legends[0].get_texts()] == ['AdvT-Text', 'SPGD']
    assert legends[1] is None


def test_the_gap_axis_reaches_down_to_zero_or_below(panels):
    assert panels[0].get_ylim()[0] < -0.25 and panels[1].get_ylim()[0] <= 0
    assert panels[0].get_xlabel() == 'predictions flipped (%)'
