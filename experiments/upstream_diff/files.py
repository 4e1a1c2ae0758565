"""Which upstream file corresponds to which module here."""
import difflib
import os

from experiments.upstream_diff.checks import Check, Section
from interpretable_adv.cli import UserError

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

CORRESPONDING = {
    'train.py': ['interpretable_adv/train.py', 'interpretable_adv/updaters.py',
                 'interpretable_adv/iterators.py', 'interpretable_adv/training.py'],
    'nets.py': ['interpretable_adv/nets.py', 'interpretable_adv/lstm.py',
                'interpretable_adv/attacks.py', 'interpretable_adv/perturbations.py',
                'interpretable_adv/neighbors.py', 'interpretable_adv/neighbor_table.py'],
    'utils.py': ['interpretable_adv/data.py', 'interpretable_adv/text_files.py'],
    'data/imdb/preprocess.py': ['interpretable_adv/imdb.py', 'interpretable_adv/tokens.py'],
    'data/imdb/download.sh': ['interpretable_adv/imdb.py'],
    'analysis.py': ['interpretable_adv/analysis.py', 'interpretable_adv/recording.py',
                    'interpretable_adv/readings.py', 'interpretable_adv/records.py'],
    'visualize.py': ['interpretable_adv/visualize.py', 'interpretable_adv/report.py'],
    'pretrain.py': ['lm/pretrain.py', 'lm/updater.py', 'lm/extensions.py', 'lm/evaluation.py'],
    'lm_nets.py': ['lm/nets.py', 'lm/softmax.py'],
    'adaptive_softmax.py': ['lm/adaptive_softmax.py'],
    'utils_pretrain.py': ['lm/streams.py', 'lm/texts.py'],
}


def compare(clone):
    """A line for each of upstream's files; files are never equal, so nothing can differ."""
    checks = []
    for theirs, ours in CORRESPONDING.items():
        path = os.path.join(clone, theirs)
        size = f'{_lines(path)} lines' if os.path.exists(path) else 'not in this revision'
        here = ', '.join(f'{name} ({_lines(os.path.join(ROOT, name))})' for name in ours
                         if os.path.exists(os.path.join(ROOT, name)))
        checks.append(Check(theirs, None, f'{size} → {here}'))
    return Section('Files', checks, 'upstream (lines) → here (lines); --text FILE shows both')


def _lines(path):
    with open(path, encoding='utf-8', errors='replace') as stream:
        return sum(1 for _ in stream)


def side_by_side(clone, name, width=160):
    """Lines of upstream's file beside those of its counterparts."""
    if name not in CORRESPONDING:
        raise UserError(f'--text {name}: give one of {", ".join(CORRESPONDING)}')
    path = os.path.join(clone, name)
    if not os.path.exists(path):
        raise UserError(f'--text {name}: {clone} has no such file')
    left = _read(path)
    right = []
    for module in CORRESPONDING[name]:
        if os.path.exists(os.path.join(ROOT, module)):
            right += [f'# ---- {module}', *_read(os.path.join(ROOT, module))]
    column = max(20, (width - 3) // 2)
    matcher = difflib.SequenceMatcher(None, left, right, autojunk=False)
    yield from (_row(a, mark, b, column) for mark, a, b in _paired(matcher, left, right))


def _paired(matcher, left, right):
    for kind, start, end, start_right, end_right in matcher.get_opcodes():
        ours, theirs = left[start:end], right[start_right:end_right]
        for index in range(max(len(ours), len(theirs))):
            a = ours[index] if index < len(ours) else None
            b = theirs[index] if index < len(theirs) else None
            mark = ' ' if kind == 'equal' else '<' if b is None else '>' if a is None else '|'
            yield mark, a or '', b or ''


def _row(left, mark, right, column):
    return f'{left[:column]:<{column}} {mark} {right[:column]}'.rstrip()


def _read(path):
    with open(path, encoding='utf-8', errors='replace') as stream:
        return stream.read().expandtabs(4).splitlines()
