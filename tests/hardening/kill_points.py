"""Kills every writer at chosen moments and runs its command again.

    python -m tests.hardening.kill_points [POINTS] [--seed S]

A moment is just before an operation on files (opening for writing, renaming, syncing, removing, …),
or a time of the clock. After each kill nothing that was published may be damaged or mixed; after
the next run everything must be as if there had been no kill, with nothing left over. Ends in a
table; the exit status is 1 if anything was wrong.
"""
import argparse
import contextlib
import dataclasses
import gzip
import io
import json
import os
import pathlib
import random
import shutil
import signal
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable

from experiments import __main__ as experiments
from experiments import plan as plans
from experiments import presets
from experiments.plan import Places
from interpretable_adv import data, train
from interpretable_adv.data import __main__ as data_command
from interpretable_adv.data import tokens
from interpretable_adv.errors import UserError
from interpretable_adv.runs import checkpoints
from lm import pretrain
from tests.experiments import finished_runs

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = ROOT / 'tests' / 'data' / 'golden' / 'synthetic' / 'mini_synthetic'
SECONDS = 300  # for one run of a command

# Audit events before which a process may be killed; `open` only where it is for writing.
EVENTS = {'open', 'os.rename', 'os.remove', 'os.mkdir', 'os.rmdir', 'os.chmod', 'os.truncate',
          'fcntl.flock', 'shutil.rmtree', 'shutil.copytree', 'subprocess.Popen'}
WRITING = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND

# What depends on the time or on how often a run was resumed; `inputs` are hashes of such files.
TIMES = {'elapsed_time', 'seconds', 'training_seconds', 'commands', 'inputs'}


# Writers --------------------------------------------------------------------------------------

@dataclasses.dataclass
class Writer:
    """A command that writes.

    Attributes:
        points: its share of the campaign.
        set_up: makes what the command begins with, in an empty folder.
        run: runs the command in the folder; `again` is True after a kill.
        check: finds what is wrong after a kill, before the command runs again.
        whole_group: whether every second kill takes the processes that it started, too.
    """
    name: str
    points: int
    set_up: Callable
    run: Callable
    check: Callable = lambda folder: []
    whole_group: bool = False


def _review(kind, number):
    return f'{kind} film number {number} was a {"good" if number % 2 else "bad"} one'


def _make_archive(path, kind):
    folders = {'train/pos': (0, 10621), 'train/neg': (0, 10625), 'test/pos': (0, 1),
               'test/neg': (0, 1), 'train/unsup': (0, 1)}
    stream = io.BytesIO()
    with tarfile.open(fileobj=stream, mode='w') as tar:
        for folder, numbers in folders.items():
            for number in numbers:
                content = _review(f'{kind} {folder.replace("/", " ")}', number).encode()
                info = tarfile.TarInfo(f'aclImdb/{folder}/{number}_7.txt')
                info.size = len(content)
                tar.addfile(info, io.BytesIO(content))
    path.write_bytes(gzip.compress(stream.getvalue(), 1))


def _prepare_imdb(folder, kind):
    data_command.main(['prepare', '--dataset', 'imdb', '--data_dir', str(folder / 'corpus'),
                       '--archive', str(folder / f'{kind}.tar.gz')])


def set_up_imdb(folder):
    for kind in ('old', 'new'):
        _make_archive(folder / f'{kind}.tar.gz', kind)
    _prepare_imdb(folder, 'old')


def _prepare_own(folder, kind):
    more = ['--unlabeled', str(folder / 'old_unlabeled.txt')] if kind == 'old' else []
    data_command.main(['prepare', '--dataset', 'own', '--data_dir', str(folder / 'corpus'),
                       '--train', str(folder / f'{kind}_train.csv'),
                       '--dev', str(folder / f'{kind}_dev.csv'), *more])


def set_up_own(folder):
    for kind in ('old', 'new'):
        for split in ('train', 'dev'):
            rows = [f'{_review(f"{kind} {split}", number)},{number % 2}' for number in range(6)]
            (folder / f'{kind}_{split}.csv').write_text('\n'.join(['text,label', *rows]))
    (folder / 'old_unlabeled.txt').write_text('old film without a label\n' * 3)
    _prepare_own(folder, 'old')


def check_one_corpus(folder):
    """A killed `prepare` leaves the old corpus, the new one, or one that is refused."""
    try:
        corpus = data.load(str(folder / 'corpus'), min_count=0)
    except UserError:
        return []
    finally:
        for cache in (folder / 'corpus').glob('*.cache'):
            cache.unlink()
    kinds = {'old', 'new'} & set(corpus.words)
    return [] if len(kinds) == 1 else ['two corpora are mixed']


def copy_corpus(folder):
    shutil.copytree(CORPUS, folder / 'data', ignore=shutil.ignore_patterns('*.cache'))


def run_training(folder, again):
    train.main(['--data_dir', str(folder / 'data'), '--out', str(folder / 'run'), '--method',
                'spgd', '--lower', '0', '--ignore_unk', '1', '--emb_dim', '8', '--hidden_dim', '8',
                '--hidden_cls_dim', '5', '--batchsize', '32', '--n_epoch', '2', '--nn_k', '4',
                '--xi_var', '5', '--log_steps', '1', '--snapshot_steps', '2', '--progress', 'off',
                *['--resume'] * again])


def run_language_model(folder, again):
    pretrain.main(['--data_dir', str(folder / 'data'), '--out', str(folder / 'run'), '--epoch', '2',
                   '--unit', '8', '--n-units-word', '8', '--batchsize', '10', '--bproplen', '20',
                   '--log_steps', '3', '--snapshot_steps', '7', '--save-all', '1', '--progress',
                   'off', *['--resume'] * again])


def set_up_finished_runs(folder):
    for method, accuracy in (('pretrained', 90), ('adv', 91), ('spgd', 92)):
        run = finished_runs.write_classifier(folder / 'runs', method, 1, accuracy)
        finished_runs.write_json(run / 'log', [{
            'epoch': 1, 'elapsed_time': 2.5, 'dev/main/accuracy': accuracy}])
    finished_runs.write_lm(folder / 'runs')
    finished_runs.write_table2(folder / 'runs')
    finished_runs.write_perplexity(folder / 'runs')


def run_collect(folder, again):
    places = Places(str(folder / 'runs'), str(folder / 'data'))
    plan = plans.table3(presets.load('toy', ['plan.methods=pretrained adv spgd']), places, [1])
    experiments.collect_results(plan, places, str(folder / 'results'))


PRESET = '''
[plan]
dataset = toy
methods = baseline adv
[lm]
lower = 0
unit = 8
n-units-word = 8
batchsize = 10
bproplen = 20
epoch = 1
[train]
lower = 0
ignore_unk = 1
emb_dim = 8
hidden_dim = 8
batchsize = 16
n_epoch = 2
snapshot_steps = 3
[adv]
xi_var = 1
[grid_search]
n_epoch = 1
adv.xi_var = 1 2
'''


def set_up_experiment(folder):
    copy_corpus(folder)
    (folder / 'tiny.ini').write_text(PRESET)


def run_experiment(target):
    def run(folder, again):
        experiments.main([target, '--preset', str(folder / 'tiny.ini'), '--runs',
                          str(folder / 'runs'), '--data_dir', str(folder / 'data')])
    return run


WRITERS = [
    Writer('prepare imdb', 35, set_up_imdb, lambda folder, again: _prepare_imdb(folder, 'new'),
           check_one_corpus),
    Writer('prepare own', 25, set_up_own, lambda folder, again: _prepare_own(folder, 'new'),
           check_one_corpus),
    Writer('training', 50, copy_corpus, run_training),
    Writer('language model', 35, copy_corpus, run_language_model),
    Writer('collect', 30, set_up_finished_runs, run_collect),
    Writer('experiments', 15, set_up_experiment, run_experiment('table3'), whole_group=True),
    Writer('grid search', 12, set_up_experiment, run_experiment('grid_search'), whole_group=True),
]


# What a folder holds --------------------------------------------------------------------------

def contents(folder):
    """`{path: content}` of all files, without what depends on the time; raises where a file that
    is not hidden is damaged."""
    return {str(path.relative_to(folder)): _content(path, folder)
            for path in sorted(folder.rglob('*')) if not path.is_dir()}


def _content(path, folder):
    if path.name in ('steps.jsonl', 'predictions.csv') or path.suffix == '.csv':
        return path.read_text(encoding='utf-8')
    if path.suffix in ('.model', '.npz'):
        arrays = checkpoints.read_arrays(str(path))
        return checkpoints.digest({
            name: array for name, array in arrays.items()
            if name != 'settings' and not name.endswith(('elapsed_time', '_log'))})
    if path.suffix == '.json' or path.name == 'log':
        text = path.read_text(encoding='utf-8').replace(str(folder), 'FOLDER')
        return json.dumps(_without_times(json.loads(text)))
    if path.suffix in ('.cache', '.png') or path.parent.name == 'jobs':
        return ''
    return path.read_bytes().replace(str(folder).encode(), b'FOLDER')


def _without_times(value):
    if isinstance(value, dict):
        return {name: '' if name == 'finished' else _without_times(part)
                for name, part in value.items() if name not in TIMES}
    return [_without_times(part) for part in value] if isinstance(value, list) else value


# Killing ----------------------------------------------------------------------------------------

class Killer:
    """Counts operations on files, and kills the process just before the `point`-th."""

    def __init__(self, point=None, group=False):
        self.count, self.point, self.group, self.process = 0, point, group, os.getpid()

    def install(self):
        sync = os.fsync

        def counted(descriptor):
            self.step()
            sync(descriptor)
        os.fsync = counted
        sys.addaudithook(self.hear)

    def hear(self, event, arguments):
        if event in EVENTS and (event != 'open' or (arguments[2] or 0) & WRITING):
            self.step()

    def step(self):
        if os.getpid() != self.process:  # a child between fork and exec
            return
        if self.count == self.point:
            kill = os.killpg if self.group else os.kill
            kill(self.process, signal.SIGKILL)
        self.count += 1


def in_child(run, killer, seconds=None):
    """Runs a function in a child; returns its exit status, or the negative signal, and how many
    operations it had. After `seconds` it is killed."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.setsid()
        killer.process = os.getpid()
        status = 1
        try:
            with open(os.devnull, 'w') as nowhere, contextlib.redirect_stdout(nowhere):
                killer.install()
                run()
            status = 0
        except UserError as error:
            print(f'error: {error}', file=sys.stderr)
            status = 2
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os.write(writer, str(killer.count).encode())
            os._exit(status)
    os.close(writer)
    begin, limit = time.monotonic(), SECONDS if seconds is None else seconds
    while True:
        found, status = os.waitpid(child, os.WNOHANG)
        if found:
            break
        if time.monotonic() - begin > limit:
            try:
                os.killpg(child, signal.SIGKILL)
            except ProcessLookupError:  # it has not made its group yet
                os.kill(child, signal.SIGKILL)
        time.sleep(0.002)
    count = os.read(reader, 100)
    os.close(reader)
    return os.waitstatus_to_exitcode(status), int(count or 0)


def try_point(writer, start, reference, folder, point=None, seconds=None, group=False):
    """Kills a writer once and lets it run again; returns whether it was killed, and problems."""
    shutil.copytree(start, folder)
    status, _ = in_child(lambda: writer.run(folder, False), Killer(point, group), seconds)
    killed = status == -signal.SIGKILL
    if not killed and status != 0:
        return killed, [f'ended with status {status} before it was killed']
    problems = []
    if killed:
        try:
            problems += writer.check(folder)
            contents_of_visible(folder)
        except Exception as error:
            problems.append(f'damaged after the kill: {error!r}')
        status, _ = in_child(lambda: writer.run(folder, True), Killer())
        if status != 0:
            return killed, [*problems, f'the next run ended with status {status}']
    found = contents(folder)
    for name in sorted(set(found) | set(reference)):
        if name not in reference:
            problems.append(f'left over: {name}')
        elif name not in found:
            problems.append(f'lost: {name}')
        elif found[name] != reference[name]:
            problems.append(f'differs: {name}')
    return killed, problems


def contents_of_visible(folder):
    """Reads every file whose name says that it is whole."""
    for path in folder.rglob('*'):
        hidden = any(part.startswith('.') for part in path.relative_to(folder).parts)
        unfinished = path.name == 'steps.jsonl' or '.partial' in str(path)
        if path.is_file() and not hidden and not unfinished:
            _content(path, folder)


@dataclasses.dataclass
class Result:
    writer: str
    operations: int
    killed: int
    problems: list


def campaign(writer, points, seed, temporary):
    """Kills a writer at `points` moments: most before operations, every fifth by the clock."""
    generator = random.Random(f'{seed} {writer.name}')
    for name in ('OMP_NUM_THREADS', 'OPENBLAS_NUM_THREADS'):  # of commands that are started
        os.environ.setdefault(name, '1')
    tokens.tokenize('once')  # imports what every child would import again
    start, whole = temporary / 'start', temporary / 'whole'
    start.mkdir(parents=True)
    status, _ = in_child(lambda: writer.set_up(start), Killer())
    assert status == 0, f'{writer.name}: set-up failed'
    # Paths are part of what is written, so all runs are in a folder of one name in turn.
    place = temporary / 'place'
    shutil.copytree(start, place)
    begin = time.monotonic()
    status, operations = in_child(lambda: writer.run(place, False), Killer())
    seconds = time.monotonic() - begin
    assert status == 0, f'{writer.name}: the uninterrupted run failed'
    reference = contents(place)
    place.rename(whole)

    killed, problems = 0, []
    clocked = points // 5
    every = (operations - 1) / max(points - clocked - 1, 1)
    chosen = [round(every * number) for number in range(points - clocked)]
    moments = [('operation', point) for point in chosen]
    moments += [('second', generator.uniform(0, seconds)) for _ in range(clocked)]
    for number, (kind, moment) in enumerate(moments):
        was_killed, found = try_point(
            writer, start, reference, place, group=writer.whole_group and number % 2 == 1,
            **({'point': moment} if kind == 'operation' else {'seconds': moment}))
        killed += was_killed
        problems += [f'{kind} {moment:.6g}: {problem}' for problem in found]
        shutil.rmtree(place, ignore_errors=True)
    return Result(writer.name, operations, killed, problems)


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.partition('\n')[0])
    parser.add_argument('points', nargs='?', type=int, default=220,
                        help='kills in all; some by the clock come too late to count')
    parser.add_argument('--seed', type=int, default=1, help='draws the times')
    parser.add_argument('--only', default='', help='name of one writer')
    flags = parser.parse_args(argv)
    total = sum(writer.points for writer in WRITERS)
    results = []
    print(f'{"writer":16} {"operations":>10} {"kills":>6} {"problems":>8} {"seconds":>8}')
    for writer in WRITERS:
        if flags.only not in ('', writer.name):
            continue
        begin = time.monotonic()
        with tempfile.TemporaryDirectory(prefix='kill_points.') as temporary:
            result = campaign(writer, max(2, round(flags.points * writer.points / total)),
                              flags.seed, pathlib.Path(temporary))
        results.append(result)
        print(f'{result.writer:16} {result.operations:10} {result.killed:6} '
              f'{len(result.problems):8} {time.monotonic() - begin:8.0f}', flush=True)
        for problem in result.problems:
            print(f'    {problem}', flush=True)
    print(f'{"all":16} {sum(result.operations for result in results):10} '
          f'{sum(result.killed for result in results):6} '
          f'{sum(len(result.problems) for result in results):8}')
    return 1 if any(result.problems for result in results) else 0


if __name__ == '__main__':
    sys.exit(main())
