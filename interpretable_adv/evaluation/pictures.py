"""Pictures as files: the same bytes for the same content, on every machine."""
import contextlib
import warnings
from collections.abc import Iterator, Sequence

import matplotlib
from matplotlib.backends.backend_pdf import PdfPages
from matplotlib.figure import Figure

from interpretable_adv.runs.files import atomic_write

PNG_DPI = 200
FONT = 'DejaVu Sans'  # comes with matplotlib, so that pictures are the same everywhere
STYLE = {
    'font.family': [FONT],
    'pdf.fonttype': 42,  # text that can be searched and copied
    'pdf.compression': 6,
    'text.hinting': 'none',  # widths on the screen are those measured here
}


@contextlib.contextmanager
def quiet_about_glyphs() -> Iterator[None]:
    """The font's placeholder glyph suffices, so the warning is silenced."""
    with warnings.catch_warnings():
        warnings.filterwarnings('ignore', message='Glyph .* missing from')
        yield


def save_png(pages: Sequence[Figure], stem: str) -> list[str]:
    """Writes `stem.png`, or `stem_p01.png`, `stem_p02.png`, ... for several pages."""
    paths = []
    for number, figure in enumerate(pages, 1):
        path = f'{stem}.png' if len(pages) == 1 else f'{stem}_p{number:02d}.png'
        with (atomic_write(path, 'wb') as stream, matplotlib.rc_context(STYLE),
              quiet_about_glyphs()):
            figure.savefig(stream, format='png', dpi=PNG_DPI, metadata={'Software': None})
        paths.append(path)
    return paths


def save_pdf(pages: Sequence[Figure], path: str) -> list[str]:
    """Writes all pages into one PDF without a date, so that equal input gives equal bytes."""
    metadata = {'CreationDate': None, 'Creator': None, 'Producer': None}
    with atomic_write(path, 'wb') as stream:
        with matplotlib.rc_context(STYLE), quiet_about_glyphs():
            with PdfPages(stream, metadata=metadata) as document:
                for figure in pages:
                    document.savefig(figure)
    return [path]


def save(figure: Figure, stem: str) -> list[str]:
    """Writes `stem.png` and `stem.pdf`."""
    return [*save_png([figure], stem), *save_pdf([figure], f'{stem}.pdf')]
