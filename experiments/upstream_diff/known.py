"""The list of differences, each with a line that demonstrates it where that is possible."""
import ast
import json
import os
import pathlib
import re
import tempfile
import time

import numpy as np

from experiments.upstream_diff import corpus, differences, recording
from experiments.upstream_diff.checks import Check, Section
from experiments.upstream_diff.files import ROOT
from experiments.upstream_diff.numbers import largest, run_here
from interpretable_adv import attacks, data, neighbors, perturbations, train
from interpretable_adv.errors import UserError
from interpretable_adv.nets import Classifier
from interpretable_adv.runs import checkpoints


def compare(recordings, ours, clone=None):
    """The list with what shows each item.

    Args:
        ours: folder of what this port computed, or None.
        clone: path of the clone; None: there are only recordings.
    """
    evidence = Evidence(recordings, ours, clone)
    checks = []
    for group in differences.groups():
        for entry in group.differences:
            shown = evidence.show(entry.id)
            checks.append(Check(entry.id, None, f'{entry.theirs}. Here: {entry.here}.'
                                + (f'\n→ {shown}' if shown else '')))
    return Section('Known differences (docs/differences.md)', checks)


def runs_here(work):
    """Runs of this port with the flags that upstream fails with, for `numbers.compute_ours`."""
    small, large = (os.path.join(work, name, 'data', 'imdb') for name in ('small', 'large'))
    jobs = {job['name']: job for job in recording.demonstration_jobs(
        small, large, {'small_lm': os.path.join(work, 'small_lm.model')})}
    for name in ('demo_cpu', 'demo_eval', 'demo_limit_vocab'):
        yield run_here(name, 'train', jobs[name]['argv'], small, work, stop=1)
    yield run_here('demo_lm_size', 'train',
                   [*jobs['demo_lm_size']['argv'], '--emb_dim', '256', '--hidden_dim', '24'],
                   small, work, stop=1)
    yield run_here('demo_missing_tail', 'pretrain', jobs['demo_missing_tail']['argv'], large,
                   work, stop=recording.LM_WINDOWS)
    yield run_here('demo_resume', 'pretrain', jobs['demo_resume']['argv'], small, work, stop=1)
    yield run_here('demo_analysis', 'analysis', [
        '--model', os.path.join(work, 'classifier.model'), '--methods', 'adv', '--nn_k', '3',
        '--limit', '3', '--ignore_unk', '1'], small, work)


class Evidence:
    """Finds the line for each number; a number without a method has none."""

    def __init__(self, recordings, ours, clone):
        self.recordings, self.ours, self.clone = recordings, ours, clone

    def show(self, number):
        method = getattr(self, number.lower(), None)
        return method() if method else None

    # Upstream's faults. Most can only be seen where a clone was run.

    def u1(self):
        return self._both('demo_cpu')

    def u2(self):
        parts = [part for part in (
            self._both('demo_analysis', 'analysis.py: '), self._both('demo_eval', '--eval 1: '),
            self._undefined_loader()) if part]
        return '; '.join(parts) or None

    def _undefined_loader(self):
        tree = self._tree('utils.py')
        if tree is None:
            return None
        defined = {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
        missing = sorted({node.func.id for node in ast.walk(tree) if isinstance(node, ast.Call)
                          and isinstance(node.func, ast.Name) and 'fce' in node.func.id}
                         - defined)
        return f'utils.py calls {", ".join(missing)}, which is not defined' if missing else None

    def u3(self):
        return self._both('demo_limit_vocab')

    def u4(self):
        if self.clone is None:
            return None
        vectors = np.random.RandomState(0).normal(size=(2000, 64)).astype('f')
        unit = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
        start = time.perf_counter()
        for first in range(0, len(unit), 10):
            np.argsort(-unit[first:first + 10] @ unit.T, axis=1)
        sorting = time.perf_counter() - start
        start = time.perf_counter()
        neighbors.nearest(vectors, 15)
        return (f'2,000 words on this machine: {sorting:.2f} s by sorting all scores, '
                f'{time.perf_counter() - start:.2f} s here')

    def u5(self):
        return self._both('demo_missing_tail', 'a batch without rare words: ')

    def u6(self):
        return self._both('demo_resume', '--resume no_such_snapshot: ')

    def u7(self):
        text = self._text('README.md')
        command = next((line for line in (text or '').splitlines() if 'train.py' in line
                        and re.search(r'--use_adv[= ]1', line) and 'xi_var=15' in line), None)
        if command is None:
            return None
        has = 'has' if '--use_attn_d' in command else 'lacks'
        meant = train.make_parser().parse_args(['--use_unlabled=0']).use_unlabled_to_vocab
        return (f'its iAdv command {has} --use_attn_d; here --use_unlabled=0 gives '
                f'use_unlabled_to_vocab = {meant}')

    def u8(self):
        if self.clone is None:
            return None
        theirs = [name for name in sorted(os.listdir(self.clone)) if name.endswith('.py')]
        ours = [os.path.relpath(path, ROOT) for package in ('interpretable_adv', 'lm')
                for path in sorted(pathlib.Path(ROOT, package).rglob('*.py'))]
        return (f'upstream: {_habits(self.clone, theirs)}; here: {_habits(ROOT, ours)}')

    def u9(self):
        return self._both('demo_lm_size', 'a language model of 24 units: ')

    def u10(self):
        path = self.recordings.path('traj_adv.json')
        here = self._ours('traj_adv')
        if not os.path.exists(path) or not here or not here['log']:
            return None
        with open(path, encoding='utf-8') as stream:
            log = json.load(stream)['log']
        found = [float(match[1]) for line in log
                 for match in [re.fullmatch(r'\[train\] accuracy:([\d.]+)', line.strip())]
                 if match]
        row = here['log'][0]
        if not found or 'main/accuracy_adv' not in row:
            return None
        return (f'first epoch of Adv: upstream shows {found[0]:.2f}; here accuracy '
                f'{row["main/accuracy"]:.2f}, accuracy_adv {row["main/accuracy_adv"]:.2f}')

    def u11(self):
        path = self.recordings.path('classifier_adv.npz')
        if not os.path.exists(path):
            return None
        step = checkpoints.read_arrays(path)
        return ("upstream's loss of a batch without dropout: " + ', '.join(
            f'{float(step[name]):.6f} {what}' for name, what in (
                ('loss_clean', 'clean'), ('loss_first', 'in the first step'),
                ('loss_adv', 'perturbed'))))

    # The paper's open questions, on random numbers.

    def p1(self):
        model, ids, lengths, labels = _example()
        table = neighbors.nearest(model.word_embed.W.array, 15)
        loss = attacks.mean_loss(labels)
        attacked = attacks.SPGD(25.0, table)(model, ids, lengths, loss)
        after = loss(model.classify(model.embed(ids) + attacked.perturbation, lengths))
        return (f'a random classifier: loss {float(attacked.first_loss.array):.4f} before, '
                f'{float(after.array):.4f} after SPGD')

    def p2(self):
        raw = np.random.RandomState(0).normal(size=(8, 5)).astype('f')
        raw *= np.arange(1, 9, dtype='f')[:, None]
        spans = [np.linalg.norm(perturbations.advt(raw, [8], 1.0, level), axis=1)
                 for level in ('word', 'sentence')]
        return 'norms of eight words: ' + ', '.join(
            f'{each.min():.2f} to {each.max():.2f} with one norm per {level}'
            for each, level in zip(spans, ('word', 'review')))

    def p3(self):
        raw = np.random.RandomState(0).normal(size=(100, 5)).astype('f')
        return 'σ = 0.75 keeps ' + ', '.join(
            f'{len(perturbations.kept_positions(raw[:n], [n], 0.75))} of {n}'
            for n in (3, 4, 10, 100))

    def p4(self):
        raw, directions = _random_directions()
        one = perturbations.sparsify(perturbations.project(raw, directions)[0], raw, [200], 0.75)
        other = perturbations.project(
            perturbations.sparsify(raw, raw, [200], 0.75), directions)[0]
        return f'200 random words: the orders differ by {largest(one, other):g}'

    def p6(self):
        raw, directions = _random_directions()
        moved, chosen = perturbations.project(raw, directions)
        away = (moved * directions[np.arange(200), chosen]).sum(axis=1) < 0
        return f'200 random words, K = 15: {away.mean():.1%} move away'

    def p7(self):
        raw, directions = _random_directions()
        raw = perturbations.advt(raw, [200], 25.0)
        moved, _ = perturbations.project(raw, directions)
        return (f'norm over the review: {np.linalg.norm(raw):.2f} before, '
                f'{np.linalg.norm(moved):.2f} after the projection')

    def p14(self):
        with tempfile.TemporaryDirectory() as folder:
            corpus.write(folder)
            path = os.path.join(folder, 'imdb_unlabled.txt')
            with open(path, 'a', encoding='utf-8') as stream:
                stream.write('twice twice\nhere\nhere\n')
            words = data.load(folder).vocab
        return ('a word twice in one review is ' + ('known' if 'twice' in words else 'unknown')
                + ', a word in two reviews is ' + ('known' if 'here' in words else 'unknown'))

    # Other differences: what is refused.

    def d1(self):
        return _refusal(['--use_bilstm', '1'])

    def d2(self):
        return _refusal(['--dataset', 'elec'])

    def d3(self):
        return _refusal(['--nn_k_offset', '-1'])

    # What both sides did.

    def _both(self, name, prefix=''):
        """How a run ended upstream and here."""
        there = self.recordings.demonstrations.get(name)
        if there is None:
            return None
        here = self._ours(name)
        text = f'{prefix}upstream ' + (f'stops: {_short(there["error"])}' if there['error']
                                       else 'continues silently')
        if here is None:
            return text
        done = len(here['steps'])
        steps = f'{done} {"step" if done == 1 else "steps"} done' if done else 'done'
        return f'{text}; here: ' + (f'error: {here["error"]}' if here['error'] else steps)

    def _ours(self, name):
        path = os.path.join(self.ours or '', name + '.json')
        if not self.ours or not os.path.exists(path):
            return None
        with open(path, encoding='utf-8') as stream:
            return json.load(stream)

    def _text(self, name):
        path = os.path.join(self.clone or '', name)
        if not self.clone or not os.path.exists(path):
            return None
        with open(path, encoding='utf-8', errors='replace') as stream:
            return stream.read()

    def _tree(self, name):
        text = self._text(name)
        return None if text is None else ast.parse(text)


def _refusal(argv):
    try:
        train.parse(argv)
    except UserError as error:
        return f'here: error: {error}'
    return 'here: accepted'


def _short(text):
    return text if len(text) <= 90 else text[:89] + '…'


def _habits(root, names):
    """How often pickle is imported, and text files opened without an encoding."""
    pickles = opens = 0
    for name in names:
        with open(os.path.join(root, name), encoding='utf-8', errors='replace') as stream:
            tree = ast.parse(stream.read())
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                pickles += any(alias.name == 'pickle' for alias in node.names)
            elif isinstance(node, ast.Call) and getattr(node.func, 'id', None) == 'open':
                opens += not _is_binary_or_encoded(node)
    return f'{pickles} files import pickle, {opens} opens without an encoding'


def _is_binary_or_encoded(call):
    keywords = {keyword.arg: keyword.value for keyword in call.keywords}
    mode = keywords.get('mode', call.args[1] if len(call.args) > 1 else ast.Constant(''))
    modes = [node.value for node in ast.walk(mode) if isinstance(node, ast.Constant)]
    return ('encoding' in keywords or any('b' in str(mode) for mode in modes)
            or ast.unparse(call.args[0]) == 'os.devnull')


def _random_directions():
    draw = np.random.RandomState(3)
    raw = draw.normal(size=(200, 256)).astype('f')
    words, near = draw.normal(size=(200, 256)), draw.normal(size=(200, 15, 256))
    return raw, perturbations.directions(words.astype('f'), near.astype('f'))


def _example():
    state = np.random.get_state()
    np.random.seed(0)
    model = Classifier(200, 32, 32, 16, dropout=0)
    np.random.set_state(state)
    draw = np.random.RandomState(1)
    lengths = [20, 30, 25, 40]
    ids = draw.randint(2, 200, sum(lengths)).astype(np.int32)
    return model, ids, lengths, np.array([0, 1, 0, 1], np.int32)
