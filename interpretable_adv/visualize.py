"""Draws perturbation records as heatmaps (PNG, PDF) and as an HTML report.

    python -m interpretable_adv.visualize --records RECORDS.jsonl --out DIR --format png,pdf,html
"""
import os
import sys

from interpretable_adv import cli
from interpretable_adv.errors import UserError
from interpretable_adv.evaluation import heatmap, pictures, records, report
from interpretable_adv.runs import files

FORMATS = ('png', 'pdf', 'html')


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
    if 'html' in formats:
        path = os.path.join(settings.out, 'report.html')
        report.write(path, reviews)
        print(path)
    for review in reviews:
        stem = os.path.join(settings.out, f'review_{review[0]["index"]:05d}')
        pages = heatmap.draw(review, settings.layout) if {'png', 'pdf'} & set(formats) else []
        if 'png' in formats:
            print(*pictures.save_png(pages, stem), sep='\n')
        if 'pdf' in formats:
            print(*pictures.save_pdf(pages, f'{stem}.pdf'), sep='\n')
    if left_out:
        print(f'{settings.records} holds {left_out:,} more reviews: raise --limit to draw them',
              file=sys.stderr)


def command():
    cli.run(main)


if __name__ == '__main__':
    command()
