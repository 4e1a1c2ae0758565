"""Runs upstream's programs and writes down what they do. Started by `recording` as a process:

    python -m experiments.upstream_diff.record PLAN.json

The plan names the clone, a folder for results and jobs. A job that fails leaves its error in
its result; the others still run.
"""
import argparse
import contextlib
import io
import json
import logging
import os
import random
import runpy
import sys
import traceback

import chainer
import numpy as np

from experiments.upstream_diff import stand_ins
from experiments.upstream_diff.recorder import Enough, Recorder, parameters


def main():
    with open(sys.argv[1], encoding='utf-8') as stream:
        plan = json.load(stream)
    sys.path.insert(0, plan['clone'])
    for job in plan['jobs']:
        do = read_flags if job['kind'] == 'flags' else run
        result, arrays = do(plan['clone'], job)
        path = os.path.join(plan['results'], job['name'])
        if arrays:
            np.savez(path + '.npz', **arrays)
        with open(path + '.json', 'w', encoding='utf-8') as stream:
            json.dump(result, stream)


# Flags --------------------------------------------------------------------------------------

def read_flags(clone, job):
    """The flags of one program, which gets no further than to parse them."""
    found = []

    def stop(parser, *_, **__):
        found.extend(describe(action) for action in parser._actions
                     if not isinstance(action, argparse._HelpAction))
        raise Enough

    error = None
    with stand_ins.replaced(argparse.ArgumentParser, 'parse_args', stop), \
            stand_ins.MissingModules(), stand_ins.cpu():
        error = _execute(clone, job['program'], [], os.getcwd())
    return {'flags': found, 'error': error}, None


def describe(action):
    """A flag as in the recordings: names, type, default, choices."""
    flag = {'flags': action.option_strings}
    if isinstance(action, argparse._StoreTrueAction):
        return {**flag, 'action': "'store_true'"}
    if action.type is not None:
        flag['type'] = action.type.__name__
    if action.default is not None:
        flag['default'] = action.default
    if action.choices is not None:
        flag['choices'] = list(action.choices)
    return flag


# Runs ---------------------------------------------------------------------------------------

def run(clone, job):
    """Runs one program and returns what it printed and computed."""
    recorder = Recorder(job.get('stop', 0))
    lines = _Lines()
    printed = io.StringIO()
    with contextlib.ExitStack() as stack:
        if job.get('stand_ins', True):
            stack.enter_context(stand_ins.cpu())
        if job.get('never_forget'):  # the language model's state, which 1 % of windows reset
            stack.enter_context(stand_ins.replaced(np.random, 'rand', lambda *_: 1.0))
        stack.enter_context(lines)
        stack.enter_context(contextlib.redirect_stdout(printed))
        error = _execute(clone, job['program'], job['argv'], job['folder'], recorder)
    result = {
        'error': error, 'argv': job['argv'], 'losses': recorder.losses,
        'kl': recorder.divergences, 'train_losses': recorder.totals, 'log': lines.texts,
        'stdout': printed.getvalue().splitlines(), 'param_norms': {}, 'param_sums': {},
    }
    arrays = {}
    if recorder.target is not None:
        after = parameters(recorder.target)
        result['param_norms'] = {'/' + name: float(np.linalg.norm(value))
                                 for name, value in after.items()}
        result['param_sums'] = {'/' + name: float(value.sum()) for name, value in after.items()}
        if job.get('arrays'):
            arrays = _arrays(recorder, after)
    return result, arrays


def _arrays(recorder, after):
    arrays = {'totals': np.array(recorder.totals), 'losses': np.array(recorder.losses),
              'kl': np.array(recorder.divergences)}
    for prefix, values in (('param', recorder.before), ('grad', recorder.gradients),
                           ('after_first', recorder.after_first), ('after', after)):
        arrays.update({f'{prefix}/{name}': value for name, value in values.items()})
    for number, each in enumerate(recorder.passes):
        arrays.update({f'pass{number}/{name}': value for name, value in each.items()})
    for name in ('neighbors', 'labels'):
        if getattr(recorder, name) is not None:
            arrays[name] = getattr(recorder, name)
    return arrays


def _execute(clone, program, argv, folder, recorder=None):
    """Runs a program of the clone as `python PROGRAM` in `folder`; returns its error, if any."""
    here, old_argv, old_modules = os.getcwd(), sys.argv, set(sys.modules)
    random.seed(1234)
    np.random.seed(1234)
    os.chdir(folder)
    sys.argv = [program, *argv]
    try:
        with chainer.using_config('train', True), chainer.using_config('enable_backprop', True), \
                contextlib.ExitStack() as stack:
            if recorder is not None:
                import nets
                stack.enter_context(recorder.watching(nets))
            runpy.run_path(os.path.join(clone, program), run_name='__main__')
    except Enough:
        return None
    except SystemExit as error:
        return f'SystemExit: {error}' if error.code else None
    except Exception as error:
        traceback.print_exc()
        return ' '.join(traceback.format_exception_only(error)[-1].split())
    finally:
        os.chdir(here)
        sys.argv = old_argv
        # The next program imports upstream's modules again, under its own stand-ins.
        for name in set(sys.modules) - old_modules:
            if (getattr(sys.modules[name], '__file__', None) or '').startswith(clone):
                del sys.modules[name]


class _Lines(logging.Handler):
    """Collects what a program logs."""

    def __init__(self):
        super().__init__(logging.INFO)
        self.texts = []

    def emit(self, record):
        self.texts.append(record.getMessage().strip())

    def __enter__(self):
        root = logging.getLogger()
        # numpy.distutils, which Chainer imports, turns the root logger into one that prints.
        self._old = root.__class__, root.level
        root.__class__ = logging.RootLogger
        root.setLevel(logging.INFO)
        root.addHandler(self)

    def __exit__(self, *_):
        root = logging.getLogger()
        root.removeHandler(self)
        root.__class__, level = self._old
        root.setLevel(level)


if __name__ == '__main__':
    main()
