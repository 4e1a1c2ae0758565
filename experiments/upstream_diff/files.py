"""Which upstream file corresponds to which module here."""
import difflib
import os

from experiments.upstream_diff.checks import Check, Section
from interpretable_adv.errors import UserError

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

OURS = 'interpretable_adv/'
CORRESPONDING = {
    'train.py': [OURS + 'train.py', OURS + 'settings.py', OURS + 'updaters.py',
                 OURS + 'data/iterators.py', OURS + 'runs/extensions.py'],
    'nets.py': [OURS + 'nets.py', OURS + 'nn/lstm.py', OURS + 'attacks.py',
                OURS + 'perturbations.py', OURS + 'neighbors/search.py',
                OURS + 'neighbors/table.py'],
    'utils.py': [OURS + 'data/corpus.py', OURS + 'data/text_files.py'],
    'data/imdb/preprocess.py': [OURS + 'data/imdb.py', OURS + 'data/tokens.py'],
    'data/imdb/download.sh': [OURS + 'data/imdb.py'],
    'analysis.py': [OURS + 'analysis.py', OURS + 'evaluation/victim.py',
                    OURS + 'evaluation/readings.py', OURS + 'evaluation/records.py'],
    'visualize.py': [OURS + 'visualize.py', OURS + 'evaluation/heatmap.py',
                     OURS + 'evaluation/report.py'],
    'pretrain.py': ['lm/pretrain.py', 'lm/updater.py', 'lm/extensions.py', 'lm/evaluation.py'],
    'lm_nets.py': ['lm/nets.py', 'lm/softmax.py'],
    'adaptive_softmax.py': ['lm/adaptive_softmax.py'],
    'utils_pretrain.py': ['lm/streams.py'],
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
