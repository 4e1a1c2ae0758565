"""Draws perturbation records as heatmaps.

A heatmap shows one review under each method, one above the other, as Figures 2, 4 and 5 of the
paper: the colour of a cell is the norm of the word's perturbation, on one scale for all methods;
each cell shows the neighbour moved towards and, in parentheses, the word nearest to the perturbed
vector; under it is the original word. Red marks attacks that push away from the positive class,
blue those that push towards it.
"""
import functools
import unicodedata
from collections.abc import Sequence
from typing import Any

import matplotlib
import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg, RendererAgg
from matplotlib.colors import ListedColormap, Normalize, to_rgba
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.patches import Rectangle
from matplotlib.path import Path
from matplotlib.text import Text
from matplotlib.textpath import text_to_path
from matplotlib.transforms import Affine2D

from interpretable_adv.evaluation import records
from interpretable_adv.evaluation.pictures import FONT, STYLE, quiet_about_glyphs
from interpretable_adv.evaluation.records import Record

LAYOUTS = ('rows', 'column')

# All lengths are inches of a printed page, all font sizes points.
PAGE_WIDTH = 7.2
PAGE_HEIGHT = 10.2
MARGIN = 0.12
POINT = 1 / 72

CELL_SIZE = 6.0  # font sizes
WORD_SIZE = 6.4
TITLE_SIZE = 8.0
HEADING_SIZE = 9.5
CAPTION_SIZE = 6.0

CELL_HEIGHT = 0.255
WORD_HEIGHT = 0.135
LINE_GAP = 0.05
CELL_PADDING = 0.045
CELL_LONGEST = 2.2  # a longer text is cut with an ellipsis
STRETCH = 1.5  # cells widen by at most this to fill their line
TITLE_HEIGHT = 0.2
PANEL_GAP = 0.1
HEADING_HEIGHT = 0.25
FOOTER_HEIGHT = 0.48
COLUMN_ROW_HEIGHT = 0.137
COLUMN_WORD_LONGEST = 1.5
COLUMN_GAP = 0.2

MUTED = '#666666'
INK = '#1a1a1a'
RULE = '#b9b9b9'


def colormap(hue: str) -> ListedColormap:
    """White to the full hue, dark end cut off so that printed text keeps its contrast."""
    base = matplotlib.colormaps[{'red': 'Reds', 'blue': 'Blues', 'purple': 'Purples'}[hue]]
    return ListedColormap([base(0.86 * step / 255) for step in range(256)], name=hue)


def ink_on(color: Sequence[float]) -> str:
    """Black or white, whichever has the higher contrast on an RGB colour (WCAG luminance)."""
    linear = [channel / 12.92 if channel <= 0.04045 else ((channel + 0.055) / 1.055) ** 2.4
              for channel in color[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return 'white' if 1.05 / (luminance + 0.05) > (luminance + 0.05) / 0.06 else INK


def shown(text: str) -> str:
    """A text as it can be drawn: control characters become a visible replacement.

    So does the byte order mark, which matplotlib cannot write to a PDF.
    """
    drawn = ''.join('\ufffd' if character == '\ufeff' or unicodedata.category(character) in (
        'Cc', 'Co', 'Cs', 'Zl', 'Zp') else character for character in text)
    return drawn if drawn.strip() else '\u2423'  # an open box for what would be invisible


@functools.lru_cache(maxsize=1 << 16)
def text_width(text: str, size: float, weight: str = 'normal') -> float:
    """Width of a line of text in inches."""
    with quiet_about_glyphs():
        return text_to_path.get_text_width_height_descent(text, _font(size, weight),
                                                          False)[0] * POINT


@functools.cache
def _font(size: float, weight: str) -> FontProperties:
    return FontProperties(family=[FONT], size=size, weight=weight)


def fit(text: str, size: float, weight: str, width: float) -> str:
    """The text, cut with an ellipsis where it is wider than `width` inches."""
    if text_width(text, size, weight) <= width:
        return text
    low, high = 0, len(text)
    while low < high:
        middle = (low + high + 1) // 2
        if text_width(text[:middle] + '…', size, weight) <= width:
            low = middle
        else:
            high = middle - 1
    return text[:low] + '…'


def wrap(widths: Sequence[float], line_width: float) -> list[tuple[int, int]]:
    """Breaks cells of given widths into lines: a list of (start, stop)."""
    lines, start, used = [], 0, 0.0
    for position, width in enumerate(widths):
        if position > start and used + width > line_width:
            lines.append((start, position))
            start, used = position, 0.0
        used += width
    return [*lines, (start, len(widths))]


def cell_texts(word: dict) -> tuple[tuple[str, str], tuple[str, str]]:
    """What a word's cell shows: ((direction, weight), (nearest in parentheses, weight)).

    A minus sign before the direction says that the word moves away from that neighbour: all its
    cosines are negative. Bold says that the nearest word is no longer the original one.
    """
    away = '−' if word['norm'] > 0 and (word.get('max_cosine') or 0) < 0 else ''
    reached = 'bold' if word['nearest'] != word['word'] else 'normal'
    return (away + shown(word['toward']), 'normal'), (f'({shown(word["nearest"])})', reached)


def draw(review: Sequence[Record], layout: str = 'rows') -> list[Figure]:
    """The pages of one review.

    Args:
        review: records of the same review, one per method.
        layout: `rows` runs the words in lines across the page, a panel per method; `column` gives
            each word a row and each method a column, as upstream's pictures do.

    Returns:
        list of `Figure`. Each has all methods for its stretch of words. Artists carry a group id
        `kind/method/position` (`cell`, `direction`, `nearest`, `word`).
    """
    with matplotlib.rc_context(STYLE):
        if layout == 'rows':
            return _draw_rows(review)
        if layout == 'column':
            return _draw_column(review)
    raise ValueError(f'unknown layout {layout}')


def _draw_rows(review: Sequence[Record]) -> list[Figure]:
    line_width = PAGE_WIDTH - 2 * MARGIN
    widths = [_cell_width([record['words'][position] for record in review])
              for position in range(len(review[0]['words']))]
    lines = wrap(widths, line_width)
    line_height = CELL_HEIGHT + WORD_HEIGHT + LINE_GAP
    fixed = HEADING_HEIGHT + FOOTER_HEIGHT + 2 * MARGIN
    panel_fixed = TITLE_HEIGHT + PANEL_GAP
    room = (PAGE_HEIGHT - fixed) / len(review) - panel_fixed
    pages = _pages(lines, max(1, int(room / line_height)))
    scale = Normalize(0, records.largest_norm(review))
    figures = []
    for number, page in enumerate(pages):
        height = fixed + len(review) * (panel_fixed + len(page) * line_height)
        canvas = _Canvas(height, scale, colormap(records.attack_hue(review[0])))
        top = _heading(canvas, review, page[0][0], page[-1][1], number, len(pages))
        for record in review:
            top = _panel_title(canvas, record, top)
            for start, stop in page:
                last = stop == len(widths)
                spare = line_width / sum(widths[start:stop])
                stretch = 1.0 if last and spare > STRETCH else min(spare, STRETCH)
                left = MARGIN
                for position in range(start, stop):
                    width = widths[position] * stretch
                    _row_cell(canvas, record, position, left, top, width)
                    left += width
                top += line_height
            top += PANEL_GAP
        _footer(canvas, review)
        figures.append(canvas.figure)
    return figures


def _cell_width(words: Sequence[dict]) -> float:
    """Width that holds the texts of one word under every method."""
    widest = text_width(shown(words[0]['word']), WORD_SIZE)
    for word in words:
        widest = max(widest, *(text_width(text, CELL_SIZE, weight)
                               for text, weight in cell_texts(word)))
    return min(widest, CELL_LONGEST) + 2 * CELL_PADDING


def _row_cell(canvas: '_Canvas', record: Record, position: int, left: float, top: float,
              width: float) -> None:
    word = record['words'][position]
    name = f'{record["method"]}/{position}'
    color = canvas.cell(left, top, width, CELL_HEIGHT, word['norm'], f'cell/{name}')
    ink = ink_on(color) if word['norm'] > 0 else MUTED
    room = width - CELL_PADDING
    center = left + width / 2
    for kind, (text, weight), line in zip(('direction', 'nearest'), cell_texts(word), (0.29, 0.72)):
        canvas.text(center, top + line * CELL_HEIGHT, text, CELL_SIZE, room, color=ink,
                    weight=weight, ha='center', gid=f'{kind}/{name}')
    canvas.text(center, top + CELL_HEIGHT + 0.52 * WORD_HEIGHT, shown(word['word']), WORD_SIZE,
                room, ha='center', gid=f'word/{name}')


def _draw_column(review: Sequence[Record]) -> list[Figure]:
    words = review[0]['words']
    texts = [[' '.join(text for text, _ in cell_texts(word)) for word in record['words']]
             for record in review]
    word_width = min(COLUMN_WORD_LONGEST, max(text_width(shown(word['word']), WORD_SIZE)
                                              for word in words)) + 2 * CELL_PADDING
    page_width = PAGE_WIDTH - 2 * MARGIN
    longest = (page_width - word_width) / len(review)
    cell_width = min(longest, 2 * CELL_PADDING + max(
        *(text_width(text, CELL_SIZE, 'bold') for column in texts for text in column),
        *(text_width(records.method_name(record), CELL_SIZE, 'bold') for record in review)))
    block_width = word_width + len(review) * cell_width
    per_page = max(1, int((page_width + COLUMN_GAP) / (block_width + COLUMN_GAP)))
    cell_width += (page_width - per_page * block_width - (per_page - 1) * COLUMN_GAP) / (
        per_page * len(review))  # the blocks fill the page
    block_width = word_width + len(review) * cell_width
    fixed = HEADING_HEIGHT + TITLE_HEIGHT * (len(review) + 1) + FOOTER_HEIGHT + 2 * MARGIN
    rows = max(1, int((PAGE_HEIGHT - fixed) / COLUMN_ROW_HEIGHT))
    pages = [_pages(page, -(-len(page) // per_page))
             for page in _pages(list(range(len(words))), rows * per_page)]
    rows = max(len(block) for page in pages for block in page)
    scale = Normalize(0, records.largest_norm(review))
    figures = []
    for number, page in enumerate(pages):
        canvas = _Canvas(fixed + rows * COLUMN_ROW_HEIGHT, scale,
                         colormap(records.attack_hue(review[0])))
        top = _heading(canvas, review, page[0][0], page[-1][-1] + 1, number, len(pages))
        for record in review:
            top = _panel_title(canvas, record, top)
        for column, block in enumerate(page):
            left = MARGIN + column * (block_width + COLUMN_GAP)
            _column_block(canvas, review, texts, block, left, top, word_width, cell_width)
        _footer(canvas, review)
        figures.append(canvas.figure)
    return figures


def _column_block(canvas: '_Canvas', review: Sequence[Record], texts: Sequence[Sequence[str]],
                  block: Sequence[int], left: float, top: float, word_width: float,
                  width: float) -> None:
    x = left + word_width
    for record in review:
        canvas.text(x + width / 2, top + 0.5 * TITLE_HEIGHT, records.method_name(record),
                    CELL_SIZE, width, weight='bold', ha='center')
        x += width
    top += TITLE_HEIGHT
    for position in block:
        middle = top + COLUMN_ROW_HEIGHT / 2
        canvas.text(left + word_width - CELL_PADDING, middle,
                    shown(review[0]['words'][position]['word']), WORD_SIZE,
                    word_width - CELL_PADDING, ha='right', gid=f'word//{position}')
        x = left + word_width
        for record, column in zip(review, texts):
            word = record['words'][position]
            name = f'{record["method"]}/{position}'
            color = canvas.cell(x, top, width, COLUMN_ROW_HEIGHT, word['norm'], f'cell/{name}')
            canvas.text(x + width / 2, middle, column[position], CELL_SIZE, width - CELL_PADDING,
                        color=ink_on(color) if word['norm'] > 0 else MUTED, ha='center',
                        weight=cell_texts(word)[1][1], gid=f'direction/{name}')
            x += width
        top += COLUMN_ROW_HEIGHT


class _Canvas:
    """A page measured in inches from its top left corner."""

    def __init__(self, height: float, scale: Normalize, colors: ListedColormap):
        self.figure = Figure(figsize=(PAGE_WIDTH, height))
        FigureCanvasAgg(self.figure)
        self.height = height
        self.scale = scale
        self.colors = colors
        self.axes = self.figure.add_axes((0, 0, 1, 1))
        self.axes.set(xlim=(0, PAGE_WIDTH), ylim=(height, 0))
        self.axes.axis('off')

    def cell(self, left: float, top: float, width: float, height: float, norm: float,
             gid: str) -> Sequence[float]:
        color = self.colors(self.scale(norm))
        self.box(left, top, width, height, facecolor=color, edgecolor=RULE, linewidth=0.4, gid=gid)
        return color

    def box(self, left: float, top: float, width: float, height: float, **style: Any) -> None:
        # add_artist, because add_patch would work out new limits of the axes each time
        self.axes.add_artist(Rectangle((left, top), width, height, clip_on=False, **style))

    def text(self, x: float, y: float, text: str, size: float, room: float, weight: str = 'normal',
             color: str = INK, ha: str = 'left', gid: str | None = None) -> None:
        """A line whose capitals are centred on `y`, so that neighbours share a baseline."""
        baseline = y + 0.36 * size * POINT
        line = _Line(x, baseline, fit(shown(text), size, weight, room), color=color, ha=ha,
                     fontproperties=_font(size, weight), parse_math=False)
        line.set_gid(gid)
        line.set_transform(self.axes.transData)
        self.axes.add_artist(line)


class _Line(Text):
    """A line of text whose width is known, so that drawing it needs no layout.

    On a screen it is drawn as an outline, which is computed once for all its occurrences; a PDF
    holds it as text.
    """

    def draw(self, renderer: Any) -> None:
        text, size, weight = self.get_text(), self.get_fontsize(), self.get_fontweight()
        x, y = self.get_transform().transform(self.get_position())
        share = {'left': 0, 'center': 0.5, 'right': 1}[self.get_horizontalalignment()]
        x -= share * renderer.points_to_pixels(text_width(text, size, weight) / POINT)
        graphics = renderer.new_gc()
        graphics.set_foreground(self.get_color())
        if isinstance(renderer, RendererAgg):
            graphics.set_linewidth(0)
            place = Affine2D().scale(renderer.points_to_pixels(1)).translate(x, y)
            renderer.draw_path(graphics, _outline(text, size, weight), place,
                               to_rgba(self.get_color()))
        else:
            if renderer.flipy():
                y = renderer.get_canvas_width_height()[1] - y
            renderer.draw_text(graphics, x, y, text, self.get_fontproperties(), 0)
        graphics.restore()


@functools.lru_cache(maxsize=1 << 14)
def _outline(text: str, size: float, weight: str) -> Path:
    """The glyphs of a line in points, its baseline starting at the origin."""
    with quiet_about_glyphs():
        vertices, codes = text_to_path.get_text_path(_font(size, weight), text)
    return Path(np.asarray(vertices).reshape(-1, 2) * (size / text_to_path.FONT_SCALE), codes)


def _heading(canvas: '_Canvas', review: Sequence[Record], start: int, stop: int, page: int,
             n_pages: int) -> float:
    record = review[0]
    text = f'Review {record["index"]}, labelled {records.label_name(record, record["label"])}'
    if n_pages > 1:
        many = len(records.words(record))
        text += f'  ·  words {start + 1:,}–{min(stop, many):,} of {many:,}'
        text += f'  ·  page {page + 1} of {n_pages}'
    canvas.text(MARGIN, MARGIN + HEADING_HEIGHT / 2, text, HEADING_SIZE,
                PAGE_WIDTH - 2 * MARGIN, weight='bold')
    return MARGIN + HEADING_HEIGHT


def _panel_title(canvas: '_Canvas', record: Record, top: float) -> float:
    middle = top + TITLE_HEIGHT / 2
    name = records.method_name(record)
    canvas.text(MARGIN, middle, name, TITLE_SIZE, 2, weight='bold', gid=f'title/{record["method"]}')
    left = MARGIN + text_width(name, TITLE_SIZE, 'bold') + 0.15
    canvas.text(left, middle, outcome(record), TITLE_SIZE - 0.5, PAGE_WIDTH - MARGIN - left,
                gid=f'outcome/{record["method"]}')
    return top + TITLE_HEIGHT


def outcome(record: Record) -> str:
    """A line on what the attack did: predictions, step size, words moved."""
    before = records.label_name(record, record['prediction'])
    after = records.label_name(record, record['prediction_adv'])
    change = 'flipped' if records.is_flipped(record) else 'unchanged'
    parts = [f'prediction {before} → {after} ({change})']
    if record['prediction'] != record['label']:
        parts.append('wrong from the start')
    if record.get('epsilon') is not None:
        parts.append(f'ε = {record["epsilon"]:g}')
    words = records.words(record)
    moved = sum(word['norm'] > 0 for word in words)
    parts.append(records.why_nothing_moved(record)
                 or f'{moved:,} of {len(words):,} words moved' + _only_the_end(record))
    return '  ·  '.join(parts)


def _only_the_end(record: Record) -> str:
    """Says that what moved is no word."""
    if any(word['norm'] > 0 for word in records.words(record)):
        return ''
    return ', only <eos>' if record['words'][-1]['norm'] > 0 else ''


def _footer(canvas: '_Canvas', review: Sequence[Record]) -> None:
    top = canvas.height - MARGIN - FOOTER_HEIGHT
    bar_width, bar_height = 1.9, 0.09
    left = PAGE_WIDTH - MARGIN - bar_width - 0.12
    lines = ['Colour: length of the word\'s perturbation, one scale for all methods.',
             'In the cell: the neighbour moved towards, '
             '(the word nearest to the perturbed vector).']
    marks = []
    words = [word for record in review for word in record['words']]
    if any(cell_texts(word)[0][0].startswith('−') for word in words):
        marks.append('− moved away from this neighbour.')
    if any(word['nearest'] != word['word'] for word in words):
        marks.append('Bold: the nearest word has changed.')
    if any(word['norm'] == 0 for word in words):
        marks.append('Grey: not moved.')
    if marks:
        lines.append(' '.join(marks))
    for number, line in enumerate(lines):
        canvas.text(MARGIN, top + 0.16 + 0.125 * number, line, CAPTION_SIZE, left - 2 * MARGIN,
                    color=MUTED)
    steps = 64
    for step in range(steps):  # each strip runs to the bar's end, so that no seams show between
        offset = step * bar_width / steps
        canvas.box(left + offset, top + 0.22, bar_width - offset, bar_height,
                   facecolor=canvas.colors(step / (steps - 1)), linewidth=0)
    canvas.box(left, top + 0.22, bar_width, bar_height, facecolor='none', edgecolor=RULE,
               linewidth=0.4)
    hue, push = records.attack_hue(review[0]), ''
    if hue != 'purple':
        away, toward = (1, 0) if hue == 'red' else (0, 1)
        push = (f', attack from {records.label_name(review[0], away)} '
                f'to {records.label_name(review[0], toward)}')
    canvas.text(left + bar_width / 2, top + 0.14, 'norm' + push, CAPTION_SIZE, 3, color=MUTED,
                ha='center')
    for share in (0, 0.5, 1):
        canvas.text(left + share * bar_width, top + 0.4, f'{share * (canvas.scale.vmax or 0):.3g}',
                    CAPTION_SIZE, 1, color=MUTED, ha='center', gid=f'tick/{share}')


def _pages(items: Sequence, most: int) -> list[Sequence]:
    """Cuts a list into as few parts of at most `most` items as there must be, of even length."""
    parts = -(-len(items) // most)
    per_page = -(-len(items) // parts)
    return [items[start:start + per_page] for start in range(0, len(items), per_page)]
