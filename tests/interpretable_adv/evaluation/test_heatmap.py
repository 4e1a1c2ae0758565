import re
import shutil
import subprocess
import unicodedata
import warnings

import numpy as np
import pytest

from interpretable_adv.evaluation import heatmap, pictures, records

ODD_WORDS = ['<b>&"', 'مرحبا', 'שלום', '😀', '🦄', '日本語', '$x^2$', r'\alpha', 'a\nb', '', '\x00',
             'Donaudampfschifffahrtsgesellschaft', 'x' * 300, '\ufeff', 'c\ufeffd', '<eos>']


def pdf_text(path):
    """The text of a PDF in reading order, from poppler, else from pypdf."""
    if shutil.which('pdftotext'):
        return subprocess.run(['pdftotext', '-layout', str(path), '-'], check=True,
                              capture_output=True).stdout.decode()
    pypdf = pytest.importorskip('pypdf', reason='needs pdftotext or pypdf to read the PDF')
    return '\n'.join(page.extract_text() for page in pypdf.PdfReader(path).pages)


def labelled(figure, kind):
    """{(method, position): artist} of the artists whose group id begins with `kind`."""
    found = {}
    for artist in figure.axes[0].get_children():
        parts = (artist.get_gid() or '').split('/')
        if parts[0] == kind and len(parts) == 3:
            found[parts[1], int(parts[2])] = artist
    return found


def text_boxes(figure):
    """Boxes, in pixels, of every text on the page."""
    with warnings.catch_warnings():
        warnings.filterwarnings('ignore', message='Glyph')
        figure.canvas.draw()
        renderer = figure.canvas.get_renderer()
        return [(text.get_text(), text.get_window_extent(renderer))
                for text in figure.axes[0].texts]


def overlaps(boxes, tolerance=1.0):
    """Pairs of texts whose boxes share more than `tolerance` pixels both ways."""
    found = []
    for number, (text, box) in enumerate(boxes):
        for other_text, other in boxes[number + 1:]:
            width = min(box.x1, other.x1) - max(box.x0, other.x0)
            height = min(box.y1, other.y1) - max(box.y0, other.y0)
            if width > tolerance and height > tolerance:
                found.append((text, other_text))
    return found


@pytest.mark.parametrize('layout', heatmap.LAYOUTS)
@pytest.mark.parametrize('words', [1, 2, 60, ODD_WORDS], ids=['1', '2', '60', 'odd'])
def test_labels_do_not_overlap_and_stay_in_their_cells(make_review, layout, words):
    for figure in heatmap.draw(make_review(words=words), layout):
        boxes = text_boxes(figure)
        assert not overlaps(boxes)
        for text, box in boxes:
            assert box.x0 >= 0 and box.x1 <= figure.bbox.width, text
            assert box.y0 >= 0 and box.y1 <= figure.bbox.height, text
        cells = labelled(figure, 'cell')
        for kind in ('direction', 'nearest'):
            for key, artist in labelled(figure, kind).items():
                box, cell = artist.get_window_extent(), cells[key].get_window_extent()
                assert cell.x0 <= box.x0 and box.x1 <= cell.x1, artist.get_text()


def test_the_overlap_check_notices_overlaps(make_review):
    figure, = heatmap.draw(make_review(words=20))
    for text in figure.axes[0].texts:
        text.set_fontsize(2 * text.get_fontsize())
    assert overlaps(text_boxes(figure))


@pytest.mark.parametrize('layout', heatmap.LAYOUTS)
def test_every_cells_text_is_in_the_pdf(tmp_path, make_review, layout):
    review = make_review(words=60)
    path = tmp_path / 'r.pdf'
    pictures.save_pdf(heatmap.draw(review, layout), path)
    found = re.findall(r'[^\s]+', pdf_text(path))
    for record in review:
        for word in record['words']:
            for expected in (word['word'], word['toward'], f'({word["nearest"]})'):
                index = next((i for i, text in enumerate(found)
                              if text.lstrip('−') == expected), None)
                assert index is not None, expected
                del found[index]  # each cell needs its own
                if layout == 'column' and expected == word['word'] and record is review[-1]:
                    break
        if layout == 'column':  # the original words stand there once, not per method
            found += [word['word'] for word in record['words']]


def test_odd_words_are_in_the_pdf_without_a_warning(tmp_path, make_review):
    path = tmp_path / 'r.pdf'
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        pages = heatmap.draw(make_review(words=ODD_WORDS))
        pictures.save_pdf(pages, path)
        pictures.save_png(pages, str(tmp_path / 'r'))
    found = unicodedata.normalize('NFKC', pdf_text(path))
    for word in ('<b>&"', '$x^2$', r'\alpha', 'Donaudampfschifffahrtsgesellschaft', 'a\ufffdb'):
        assert word in found
    if shutil.which('pdftotext'):  # pypdf does not reorder text that runs from right to left
        assert 'مرحبا' in found and 'שלום' in found


def test_colours_follow_the_norms_on_one_scale(make_review):
    review = make_review(words=40)
    figure, = heatmap.draw(review)
    cells = labelled(figure, 'cell')
    norms = {(record['method'], position): word['norm'] for record in review
             for position, word in enumerate(record['words'])}
    assert cells.keys() == norms.keys()
    keys = sorted(norms, key=norms.get)
    brightness = [sum(cells[key].get_facecolor()[:3]) for key in keys]
    assert np.all(np.diff(brightness) <= 1e-6)
    assert brightness[0] > brightness[len(keys) // 2] > brightness[-1]
    equal = [key for key in keys if norms[key] == 0]
    assert len({cells[key].get_facecolor() for key in equal}) == 1
    top = max(norms.values())
    ticks = {text.get_gid(): text.get_text() for text in figure.axes[0].texts
             if (text.get_gid() or '').startswith('tick')}
    assert float(ticks['tick/0']) == 0 and float(ticks['tick/1']) == pytest.approx(top, rel=0.01)


@pytest.mark.parametrize('label, channel', [(1, 0), (0, 2)])
def test_red_away_from_positive_blue_towards_it(make_review, label, channel):
    review = make_review(words=8, label=label)
    cells = labelled(heatmap.draw(review)[0], 'cell')
    strongest = max(((record['method'], position) for record in review
                     for position in range(8)),
                    key=lambda key: next(record['words'][key[1]]['norm'] for record in review
                                         if record['method'] == key[0]))
    color = cells[strongest].get_facecolor()[:3]
    assert int(np.argmax(color)) == channel and max(color) - min(color) > 0.3


def test_text_keeps_its_contrast_on_every_colour():
    def luminance(color):
        linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in color[:3]]
        return float(np.dot(linear, [0.2126, 0.7152, 0.0722]))

    from matplotlib.colors import to_rgb
    for hue in ('red', 'blue', 'purple'):
        colors = heatmap.colormap(hue)
        for step in np.linspace(0, 1, 41):
            color = colors(step)
            low, high = sorted([luminance(color), luminance(to_rgb(heatmap.ink_on(color)))])
            assert (high + 0.05) / (low + 0.05) >= 4.1, (hue, step)


def test_cells_line_up_between_the_methods(make_review):
    figure, = heatmap.draw(make_review(words=45))
    cells = labelled(figure, 'cell')
    for position in range(45):
        edges = {(round(cells[method, position].get_x(), 6), cells[method, position].get_width())
                 for method in ('adv', 'iadv', 'spgd')}
        assert len(edges) == 1


def test_minus_marks_moving_away_and_bold_a_changed_nearest_word(make_record):
    record = make_record(words=2)
    record['words'][0].update(max_cosine=-0.1, nearest='elsewhere', norm=1.0)
    record['words'][1].update(max_cosine=0.2, nearest='<eos>', norm=1.0)
    (away, _), (nearest, weight) = heatmap.cell_texts(record['words'][0])
    assert away == '−' + record['words'][0]['toward']
    assert (nearest, weight) == ('(elsewhere)', 'bold')
    (toward, _), (_, weight) = heatmap.cell_texts(record['words'][1])
    assert toward == record['words'][1]['toward'] and weight == 'normal'
    captions = ' '.join(text.get_text() for text in heatmap.draw([record])[0].axes[0].texts)
    assert '− moved away' in captions and 'Bold' in captions and 'Grey' not in captions


@pytest.mark.parametrize('layout', heatmap.LAYOUTS)
def test_long_review_takes_pages_that_show_each_word_once(make_review, layout):
    pages = heatmap.draw(make_review(words=200), layout)
    assert len(pages) > 1
    shown = [key for page in pages for key in labelled(page, 'cell')]
    assert sorted(shown) == sorted((method, position) for method in ('adv', 'iadv', 'spgd')
                                   for position in range(200))
    for page in pages:
        assert page.get_figheight() <= heatmap.PAGE_HEIGHT + 1e-6
        assert len({method for method, _ in labelled(page, 'cell')}) == 3


def test_2500_words(tmp_path, make_review):
    review = make_review(words=2500, methods=('spgd',))
    pages = heatmap.draw(review)
    assert sum(len(labelled(page, 'cell')) for page in pages) == 2500
    pictures.save_pdf(pages[-1:], tmp_path / 'r.pdf')
    found = pdf_text(tmp_path / 'r.pdf')
    assert '2,499 of 2,499' in found and f'page {len(pages)} of {len(pages)}' in found
    assert len(re.findall(r'\(\S+\)', found)) >= len(labelled(pages[-1], 'cell'))


def test_same_input_same_bytes(tmp_path, make_review):
    for name in 'ab':
        pages = heatmap.draw(make_review(words=15))
        pictures.save_png(pages, str(tmp_path / name))
        pictures.save_pdf(pages, tmp_path / f'{name}.pdf')
    for extension in ('png', 'pdf'):
        first, second = ((tmp_path / f'{name}.{extension}').read_bytes() for name in 'ab')
        assert first == second
    other = make_review(words=15)
    other[0]['words'][0]['norm'] *= 2
    pictures.save_png(heatmap.draw(other), str(tmp_path / 'c'))
    assert (tmp_path / 'c.png').read_bytes() != (tmp_path / 'a.png').read_bytes()


@pytest.mark.parametrize('widths, line, expected', [
    ([1], 5, [(0, 1)]),
    ([9], 5, [(0, 1)]),
    ([1, 1, 1], 3, [(0, 3)]),
    ([1, 1, 1, 1], 3, [(0, 3), (3, 4)]),
    ([2, 9, 2], 5, [(0, 1), (1, 2), (2, 3)]),
])
def test_wrap(widths, line, expected):
    assert heatmap.wrap(widths, line) == expected


def test_outcome_tells_flip_and_strength(make_record):
    text = heatmap.outcome(make_record(method='adv', words=4))
    assert 'positive → negative (flipped)' in text and 'ε = 5' in text
    assert '3 of 3 words moved' in text
    text = heatmap.outcome(make_record(method='spgd', words=8, label=0, epsilon=None))
    assert '(unchanged)' in text and 'wrong from the start' in text and 'ε' not in text
    assert re.search('[12] of 7 words moved', text)


def test_outcome_says_why_nothing_moves(make_record):
    record = make_record(method='adv', words=4)
    for word in record['words']:
        word['norm'] = 0.0
    assert 'gradient of the loss is exactly zero' in heatmap.outcome(record)
    assert heatmap.outcome({**record, 'method': 'someone_elses'}).endswith('0 of 3 words moved')
    record['words'][-1]['norm'] = 1.0
    assert heatmap.outcome(record).endswith('0 of 3 words moved, only <eos>')


def test_review_with_class_names(make_review):
    review = make_review(words=3, label_names=['sport', 'music', 'film'], label=2)
    texts = ' '.join(text.get_text() for text in heatmap.draw(review)[0].axes[0].texts)
    assert 'labelled film' in texts and 'music → sport' in texts
    assert records.attack_hue(review[0]) == 'purple'
