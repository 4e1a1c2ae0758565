"""Recognises a clone of upstream and its revision, without touching it."""
import os
import re
import subprocess

from interpretable_adv.errors import UserError

WRITTEN_AGAINST = '615d564'
NEEDED = ('train.py', 'nets.py', 'utils.py', 'pretrain.py', 'lm_nets.py')
CLASSIFIER = 'uniLSTM_iVAT'


def check(path):
    """Refuses a folder that is not upstream, in one line."""
    if not os.path.isdir(path):
        raise UserError(f'{path} is not a folder; give the path of a clone of '
                        'aonotas/interpretable-adv')
    missing = [name for name in NEEDED if not os.path.isfile(os.path.join(path, name))]
    if missing:
        raise UserError(f'{path} is not a clone of upstream: it lacks {", ".join(missing)}; give '
                        'the path of a clone of aonotas/interpretable-adv')
    with open(os.path.join(path, 'nets.py'), encoding='utf-8', errors='replace') as stream:
        if not re.search(rf'^class {CLASSIFIER}\b', stream.read(), re.MULTILINE):
            raise UserError(f'{path} is not a clone of upstream: its nets.py has no class '
                            f'{CLASSIFIER}; give the path of a clone of '
                            'aonotas/interpretable-adv')


def revision(path):
    """One line about the clone's revision."""
    top = _git(path, 'rev-parse', '--show-toplevel')
    head = _git(path, 'rev-parse', 'HEAD')
    if not head or not top or os.path.realpath(top) != os.path.realpath(path):
        return (f'revision unknown (the folder is not a Git clone); this was written against '
                f'{WRITTEN_AGAINST}')
    changed = ', with local changes' if _git(path, 'status', '--porcelain') else ''
    if head.startswith(WRITTEN_AGAINST):
        return f'revision {WRITTEN_AGAINST}{changed}, the one this was written against'
    return f'another revision, {head[:7]}{changed}; this was written against {WRITTEN_AGAINST}'


def _git(path, *arguments):
    # Optional locks would let `git status` refresh the index, a file in the clone.
    environment = {**os.environ, 'GIT_OPTIONAL_LOCKS': '0'}
    try:
        done = subprocess.run(['git', '-C', path, *arguments], capture_output=True, text=True,
                              env=environment, timeout=60)
    except (OSError, subprocess.TimeoutExpired):
        return ''
    return done.stdout.strip() if done.returncode == 0 else ''
