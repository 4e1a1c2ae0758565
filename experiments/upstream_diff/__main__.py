"""Compares this port with a clone of upstream: bash experiments/diff_upstream.sh PATH_TO_CLONE"""
import contextlib
import os
import shutil
import sys
import tempfile

from experiments.upstream_diff import (
    checkpoints,
    clone,
    files,
    flags,
    known,
    numbers,
    recording,
    report,
)
from interpretable_adv import cli
from interpretable_adv.cli import at_least
from interpretable_adv.errors import UserError

EXIT_DIFFERS = 1


def make_parser():
    parser = cli.ArgumentParser(prog='diff_upstream.sh', description=__doc__,
                                usage='%(prog)s PATH_TO_CLONE [flags]')
    add = parser.add_argument
    add('clone', nargs='?', metavar='PATH_TO_CLONE', help='a clone of aonotas/interpretable-adv')
    add('--golden', metavar='DIR', help='recordings of upstream, instead of a clone')
    add('--text', metavar='FILE',
        help="only show one of upstream's files beside what corresponds to it here")
    add('--steps', type=at_least(0), default=10, metavar='N',
        help='length of the trajectories of each method; 0: none')
    add('--full', metavar='DATA_DIR',
        help='run the trajectories on this data, at upstream\'s sizes (slow)')
    add('--sections', default=','.join(recording.SECTIONS), metavar='NAME,NAME,…',
        help='parts of the report')
    add('--json', action='store_true', help='print JSON')
    return parser


def parse(argv):
    settings = make_parser().parse_args(argv)
    if (settings.clone is None) == (settings.golden is None):
        raise UserError('give either the path of a clone or --golden with recordings of one '
                        '(see diff_upstream.sh --help)')
    settings.sections = settings.sections.split(',')
    for name in settings.sections:
        if name not in recording.SECTIONS:
            raise UserError(f'--sections: {name} is not one of {", ".join(recording.SECTIONS)}')
    if settings.golden and (settings.text or settings.full):
        raise UserError('--text and --full need a clone, not --golden')
    if settings.full and not os.path.exists(os.path.join(settings.full, 'imdb_pos_train.txt')):
        raise UserError(f"--full {settings.full}: has no imdb_pos_train.txt; make it with 'python "
                        "-m interpretable_adv.data prepare'")
    return settings


def main(argv=None):
    settings = parse(argv)
    if settings.golden:
        if not os.path.isdir(settings.golden):
            raise UserError(f'--golden {settings.golden}: no such folder')
    else:
        clone.check(settings.clone)
    if settings.text:
        width = shutil.get_terminal_size((160, 24)).columns
        for line in files.side_by_side(settings.clone, settings.text, width):
            print(line)
        return 0

    with tempfile.TemporaryDirectory(prefix='diff_upstream_') as work, _waiting():
        head, sections = compare(settings, work)
    print(report.as_json(head, sections) if settings.json
          else '\n'.join(report.show(head, sections)))
    return 0 if report.agrees(sections) else EXIT_DIFFERS


def compare(settings, work):
    """The report's first lines and its sections."""
    wanted = settings.sections
    if settings.golden:
        head = [f'upstream: recordings in {settings.golden}']
        recordings = recording.from_folder(settings.golden)
    else:
        head = [f'upstream: {settings.clone}, {clone.revision(settings.clone)}']
        recordings = recording.from_clone(settings.clone, work, settings.steps, settings.full,
                                          wanted)
    here = None
    if {'numbers', 'known'} & set(wanted) or settings.golden:
        here = numbers.compute_ours(
            recordings, work, [] if settings.golden or 'known' not in wanted
            else list(known.runs_here(work)), only_demonstrations='numbers' not in wanted)
    sections = []
    if 'files' in wanted and settings.clone:
        sections.append(files.compare(settings.clone))
    if 'flags' in wanted:
        sections += flags.compare(recordings)
    if 'checkpoints' in wanted:
        sections += checkpoints.compare(recordings, here)
    if 'numbers' in wanted:
        sections += numbers.compare_steps(recordings, here)
        sections += numbers.compare_runs(recordings, here)
    if 'known' in wanted:
        sections.append(known.compare(recordings, here, settings.clone))
    return head, sections


@contextlib.contextmanager
def _waiting():
    """Tells on a terminal that it takes a while."""
    show = sys.stderr.isatty()
    if show:
        print('running both sides, which takes a minute ...', end='\r', file=sys.stderr)
    yield
    if show:
        print(' ' * 50, end='\r', file=sys.stderr)


def command(argv=None):
    cli.run(lambda given: sys.exit(main(given)), argv)


if __name__ == '__main__':
    command()
