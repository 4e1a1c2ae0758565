"""Draws perturbation records as heatmaps (PNG, PDF) and as an HTML report.

    python -m interpretable_adv.visualize --records RECORDS.jsonl --out DIR --format png,pdf,html
"""
import concurrent.futures
import functools
import os
import signal
import sys

from interpretable_adv import cli
from interpretable_adv.errors import UserError
from interpretable_adv.evaluation import heatmap, pictures, records, report
from interpretable_adv.nn import kernels
from interpretable_adv.runs import files

FORMATS = ('png', 'pdf', 'html')
WORTH_A_PROCESS = 5  # reviews; to start a process takes as long as to draw a few


def make_parser():
    parser = cli.ArgumentParser(
        prog='python -m interpretable_adv.visualize',
        description='Draws perturbation records as heatmaps and as an HTML report.')
    add = parser.add_argument
    add('--records', '--pickle_filename', default='', metavar='FILE',
        help='JSON lines written by interpretable_adv.analysis')
    add('--out', '--savefig_dir', default='figs', metavar='DIR', help='folder for the pictures')
    add('--format', default='png,pdf,html', help='any of png,pdf,html')
    add('--layout', choices=heatmap.LAYOUTS, default='rows',
        help='rows: lines of words, a panel per method; column: a row per word')
    add('--limit', type=int, default=100, help='draw at most this many reviews')
    add('--indices', default='', help='draw only these reviews, e.g. 3,17')
    group = parser.add_argument_group('deprecated, accepted from old command lines')
    group.add_argument('--xi_var', type=float, default=15.0,
                       help='no effect: records hold norms at the step size they were made with')
    return parser


def main(argv=None):
    settings = make_parser().parse_args(argv)
    formats = cli.parse_names(settings.format, FORMATS, '--format')
    if not settings.records:
        raise UserError('--records is missing: give the file that interpretable_adv.analysis wrote')
    if settings.limit < 1:
        raise UserError(f'--limit {settings.limit}: must be at least 1')
    indices = records.parse_indices(settings.indices) if settings.indices else None
    reviews, left_out = records.read_reviews(settings.records, settings.limit, indices)
    files.make_directory(settings.out)
    pictures_made = _draw_all(reviews, settings.out, settings.layout, formats)
    if 'html' in formats:
        report.write(os.path.join(settings.out, 'report.html'), reviews)
    print(_closing_line(settings.out, len(reviews), pictures_made, formats))
    if left_out:
        print(f'{settings.records} holds {left_out:,} more reviews: raise --limit to draw them',
              file=sys.stderr)


def _draw_all(reviews, out, layout, formats):
    """Draws the reviews' heatmaps, many of them in several processes.

    Returns:
        the paths of all pictures.
    """
    formats = [name for name in formats if name != 'html']
    if not formats:
        return []
    draw = functools.partial(_draw, out=out, layout=layout, formats=formats)
    processes = min(kernels.threads, len(reviews) // WORTH_A_PROCESS)
    if processes < 2:
        made = list(map(draw, reviews))
    else:
        with concurrent.futures.ProcessPoolExecutor(
                processes, initializer=signal.signal,
                initargs=(signal.SIGINT, signal.SIG_IGN)) as pool:
            try:
                made = list(pool.map(draw, reviews, chunksize=2))
            except BaseException:
                pool.shutdown(cancel_futures=True)
                raise
    return [path for paths in made for path in paths]


def _draw(review, out, layout, formats):
    """Draws one review's heatmap, and returns the paths of its pictures."""
    stem = os.path.join(out, f'review_{review[0]["index"]:05d}')
    pages = heatmap.draw(review, layout)
    paths = []
    if 'png' in formats:
        paths += pictures.save_png(pages, stem)
    if 'pdf' in formats:
        paths += pictures.save_pdf(pages, f'{stem}.pdf')
    return paths


def _closing_line(out, n_reviews, paths, formats):
    counts = {name: sum(path.endswith(name) for path in paths) for name in ('png', 'pdf')}
    parts = [f'{counts[name]:,} {name.upper()}' for name in ('png', 'pdf') if counts[name]]
    parts += ['report.html'] if 'html' in formats else []
    return (f'{os.path.normpath(out)}: {n_reviews:,} {"review" if n_reviews == 1 else "reviews"}, '
            + ', '.join(parts))


def command():
    cli.run(main)


if __name__ == '__main__':
    command()
