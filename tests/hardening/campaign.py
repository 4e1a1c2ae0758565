"""Runs cases in forked children, and counts how they end.

A case is a target and a number, from which all its random choices follow:
`python -m tests.hardening --only Snapshot:17` repeats one.
"""
import contextlib
import json
import os
import pathlib
import random
import resource
import shutil
import signal
import sys
import tempfile
import time
import traceback

from interpretable_adv.errors import UserError
from tests.hardening import targets

SECONDS = 20  # for one case
BYTES = 4 << 30  # that a case may ask for, beyond what the process has

OUTCOMES = {
    'refused': 'clean refusals', 'right': 'accepted and right', 'traceback': 'tracebacks',
    'unexpected': 'unexpected exceptions', 'wrong': 'wrongly accepted', 'hang': 'hangs',
    'memory': 'above 4 GB', 'crash': 'memory errors'}
DEFECTS = tuple(OUTCOMES)[2:]


def choose(count, seed, names=None):
    """`count` cases `(target, number)`, more of the heavier targets."""
    names = sorted(names or targets.TARGETS)
    draw = random.Random(seed)
    weights = [targets.TARGETS[name].weight for name in names]
    return [(name, f'{seed}.{number}') for number, name in enumerate(
        draw.choices(names, weights, k=count))]


def run(cases, report, batch=1, limit_memory=True):
    """Runs cases; `report(case, outcome, details)` hears of each.

    Args:
        batch: cases per child. What one case leaves behind in its process, the next ones see.
        limit_memory: False under a sanitiser, which takes all addresses for itself.
    """
    with tempfile.TemporaryDirectory() as folder:
        folder = pathlib.Path(folder)
        with contextlib.redirect_stdout(open(os.devnull, 'w')):
            targets.prepare(folder, sorted({name for name, _ in cases}))
        left = list(cases)
        while left:
            done = _run_batch(left[:batch], folder, report, limit_memory)
            del left[:done]


def _run_batch(cases, folder, report, limit_memory):
    """Runs cases in one child until one of them kills it; returns how many have ended."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.close(reader)
            _be_child(cases, folder, writer, limit_memory)
        finally:
            os._exit(0)
    os.close(writer)
    done = 0
    with open(reader, encoding='utf-8') as stream:
        for line in stream:
            report(cases[done], *json.loads(line))
            done += 1
    status = os.waitpid(child, 0)[1]
    if done < len(cases):
        number = os.WTERMSIG(status) if os.WIFSIGNALED(status) else 0
        report(cases[done], 'hang' if number == signal.SIGALRM else 'crash',
               f'signal {number}' if number else f'exit status {os.waitstatus_to_exitcode(status)}')
        done += 1
    return done


def _be_child(cases, folder, writer, limit_memory):
    if limit_memory:
        with open('/proc/self/statm', encoding='ascii') as stream:
            used = int(stream.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (used + BYTES, used + BYTES))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    for case in cases:
        signal.alarm(SECONDS)
        outcome = _run_case(*case, folder)
        signal.alarm(0)
        os.write(writer, (json.dumps(outcome) + '\n').encode())


def _run_case(name, number, folder):
    """outcome, details"""
    place = pathlib.Path(tempfile.mkdtemp(dir=folder))
    printed = place.with_suffix('.stderr')
    before = os.dup(2)
    descriptor = os.open(printed, os.O_RDWR | os.O_CREAT)
    os.dup2(descriptor, 2)
    try:
        outcome, details = _read_damaged(name, number, folder / name, place)
        sys.stderr.flush()
        shown = printed.read_text(encoding='utf-8', errors='replace')
        if outcome in ('refused', 'right') and ('Traceback' in shown or 'Exception ig' in shown):
            return 'traceback', shown[-1500:]
        return outcome, details
    finally:
        os.dup2(before, 2)
        os.close(before)
        os.close(descriptor)
        printed.unlink()
        shutil.rmtree(place, ignore_errors=True)


def _read_damaged(name, number, source, place):
    target = targets.TARGETS[name]()
    shutil.rmtree(place)
    shutil.copytree(source, place)
    try:
        must_refuse = target.damage(random.Random(f'{name} {number}'), place)
        target.read(place)
    except UserError as error:
        message = ' '.join(str(error).split())
        if _comes_from_memory(error):
            return 'memory', message
        if not message or len(message) > 2000:
            return 'unexpected', f'a message of {len(message)} characters'
        return 'refused', message
    except AssertionError:
        return 'wrong', traceback.format_exc()[-1500:]
    except MemoryError:
        return 'memory', traceback.format_exc()[-1500:]
    except Exception:
        return 'unexpected', traceback.format_exc()[-1500:]
    return ('wrong', 'this damage must be refused') if must_refuse else ('right', '')


def _comes_from_memory(error):
    while error is not None:
        if isinstance(error, MemoryError):
            return True
        error = error.__cause__ or error.__context__
    return False


class Count:
    """Outcomes so far; prints defects as they come."""

    def __init__(self, write=print):
        self.started, self.write = time.monotonic(), write
        self.total = dict.fromkeys(OUTCOMES, 0)
        self.by_target = {}

    def __call__(self, case, outcome, details):
        self.total[outcome] += 1
        self.by_target.setdefault(case[0], dict.fromkeys(OUTCOMES, 0))[outcome] += 1
        if outcome in DEFECTS:
            self.write(f'{OUTCOMES[outcome]}: --only {case[0]}:{case[1]}\n{details}')

    @property
    def defects(self):
        return sum(self.total[name] for name in DEFECTS)

    def table(self):
        width = max(map(len, self.by_target), default=0)
        titles = list(OUTCOMES.values())
        lines = [' ' * width + '  cases  ' + '  '.join(titles)]
        for name, row in [*sorted(self.by_target.items()), ('all', self.total)]:
            cells = [f'{row[key]:>{len(title)},}' for key, title in OUTCOMES.items()]
            lines.append(f'{name:{width}}  {sum(row.values()):>5,}  ' + '  '.join(cells))
        return '\n'.join([*lines, f'{time.monotonic() - self.started:.0f} s'])
