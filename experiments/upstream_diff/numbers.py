"""Compares what both sides computed, and says what a difference looks like."""
import json
import math
import os
import re

import numpy as np

from experiments.upstream_diff import corpus, recording
from experiments.upstream_diff.checks import (
    PERPLEXITY_TOLERANCE,
    TRAJECTORY_TOLERANCE,
    UNIT_TOLERANCE,
    Check,
    Section,
)
from interpretable_adv.runs import checkpoints

STEPS = ('classifier_adv', 'classifier_iadv', 'classifier_vat', 'classifier_ivat',
         'classifier_adv_2layers')
LM_STEPS = ('lm_softmax', 'lm_adaptive')
RUNS = ('baseline', 'adv', 'iadv', 'vat', 'ivat', 'lm')
SHOWN = {'adv': 'Adv', 'iadv': 'iAdv', 'vat': 'VAT', 'ivat': 'iVAT', 'lm': 'language model',
         'baseline': 'baseline', 'adv_2layers': 'Adv, two layers', 'softmax': 'softmax',
         'adaptive': 'adaptive softmax'}


def compute_ours(recordings, work, demonstrations=(), only_demonstrations=False):
    """Lets another process compute everything that the recordings hold; returns its folder.

    Args:
        demonstrations: more runs, made by `run_here`.
        only_demonstrations: leave out everything else but the test of a checkpoint.
    """
    results = os.path.join(work, 'ours')
    os.makedirs(results)
    steps = {name: os.path.abspath(recordings.path(name + '.npz')) for name in STEPS + LM_STEPS
             if os.path.exists(recordings.path(name + '.npz'))}
    runs, evaluations = [], {}
    for prefix, data_dir in recordings.corpora:
        # Numbering a corpus leaves a file beside its texts; recordings stay as they are.
        linked = os.path.join(work, 'texts', prefix)
        corpus.link(linked, data_dir)
        for method in RUNS:
            path = recordings.path(f'{prefix}traj_{method}.json')
            if os.path.exists(path):
                name = _run_name(prefix, method)
                runs.append(run_here(name, 'pretrain' if method == 'lm' else 'train',
                                     _read(path)['argv'], linked, work, recordings.stop))
    if only_demonstrations:
        steps, runs = {}, []
    runs += demonstrations
    if os.path.exists(recordings.path('upstream_classifier_test.json')):
        evaluations['test_logits'] = {
            'model': os.path.abspath(recordings.path('upstream_classifier.model')),
            'data_dir': os.path.join(work, 'texts', ''),
            'words': _read(recordings.path('upstream_classifier_test.json'))['vocab']}
    recording.start('ours', {'results': results, 'steps': steps, 'runs': runs,
                             'evaluations': evaluations}, work)
    return results


def run_here(name, command, argv, data_dir, work, stop=0):
    """A run of one of our commands, for `ours.repeat`."""
    out = os.path.join(work, 'runs', name)
    return {'name': name, 'command': command, 'out': out, 'stop': stop, 'argv': [
        *argv, '--data_dir', data_dir, '--out', out, '--progress', 'off',
        *{'train': ['--log_steps', '1'], 'pretrain': ['--log-steps']}.get(command, [])]}


def _run_name(prefix, method):
    return f'{prefix.replace("/", "_")}traj_{method}'


def _read(path):
    with open(path, encoding='utf-8') as stream:
        return json.load(stream)


# One step -----------------------------------------------------------------------------------

def compare_steps(recordings, ours):
    """One training step from the same parameters and batch, without dropout."""
    sections = []
    for name in STEPS + LM_STEPS:
        kind, _, method = name.partition('_')
        path = recordings.path(name + '.npz')
        title = (f'One step of {SHOWN[method]}' if kind == 'classifier' else
                 f'Language model, {SHOWN[method]}: windows')
        error = recordings.errors.get(f'step_{method}' if kind == 'classifier' else name)
        if error:
            sections.append(Section(title, [Check('upstream', False, f'stopped: {error}')]))
        elif os.path.exists(path):
            theirs = checkpoints.read_arrays(path)
            here = checkpoints.read_arrays(os.path.join(ours, name + '.npz'))
            sections.append(Section(title, list(_step(theirs, here))))
    return sections


def _step(theirs, here):
    if 'nearest_ids' in theirs and 'neighbors' not in theirs:
        theirs['neighbors'] = theirs['nearest_ids'][theirs['x']]
    for name in ('logits', 'loss_clean', 'loss_first', 'neighbors', 'perturbation', 'loss_adv',
                 'losses'):
        if name not in theirs or name not in here:
            continue
        if name == 'neighbors':
            difference = float(np.mean(theirs[name] != here[name])
                               if theirs[name].shape == here[name].shape else 1)
            agrees = difference <= 0.01  # two words equally near may change places
            yield Check(f'neighbours, {theirs[name].shape[1]} of each word', agrees,
                        'as a share of all' if agrees
                        else describe_neighbors(theirs[name], here['ranks']), difference, 0.01)
            continue
        difference = largest(theirs[name], here[name])
        agrees = difference <= UNIT_TOLERANCE
        detail = ''
        if name == 'perturbation' and not agrees:
            meta = json.loads(str(theirs['meta']))
            detail = describe_perturbation(
                theirs[name], here[name],
                theirs.get('lengths_semi', theirs['lengths']), meta['xi_var'])
        yield Check(name, agrees, detail, difference, UNIT_TOLERANCE)
    for prefix, title in (('grad/', 'gradients'), ('after/', 'parameters after the update')):
        yield _arrays(title, theirs, here, prefix)


def _arrays(title, theirs, here, prefix):
    names = [name for name in here if name.startswith(prefix)]
    missing = sorted(name[len(prefix):] for name in names if name not in theirs)
    if missing:
        return Check(title, False, f'upstream has no {", ".join(missing)}')
    differences = {name: largest(theirs[name], here[name]) for name in names}
    worst = max(differences, key=differences.get)
    agrees = differences[worst] <= UNIT_TOLERANCE
    return Check(title, agrees, f'{len(names)} arrays' + (
        '' if agrees else f', most in {worst[len(prefix):]}'), differences[worst],
        UNIT_TOLERANCE)


def largest(theirs, here):
    """The largest absolute difference; infinite where shapes differ or one is not finite."""
    theirs, here = np.asarray(theirs, np.float64), np.asarray(here, np.float64)
    if theirs.shape != here.shape:
        return math.inf
    difference = np.abs(theirs - here)
    return float(difference.max(initial=0)) if np.isfinite(difference).all() else math.inf


def describe_perturbation(theirs, here, lengths, epsilon):
    """What a difference of perturbations `(N, D)` looks like, in words."""
    if theirs.shape != here.shape:
        return f'shapes {theirs.shape} and {here.shape}'
    if largest(-theirs, here) <= UNIT_TOLERANCE:
        return "opposite sign: upstream's is the negative of ours"
    ends = np.cumsum(lengths)[:-1]
    sizes = [np.array([np.linalg.norm(review) for review in np.split(each, ends)])
             for each in (theirs, here)]
    cosine = np.array([np.vdot(a, b) for a, b in zip(np.split(theirs, ends),
                                                     np.split(here, ends))])
    cosine /= np.maximum(sizes[0] * sizes[1], 1e-30)
    if (cosine < -0.999).all():
        return 'opposite sign, and other lengths'
    if (cosine > 0.999).all():
        ratio = sizes[0] / sizes[1]
        text = f"same direction, upstream's length is {_range(ratio)} times ours"
        if np.allclose(sizes[0], epsilon, rtol=1e-4) and (sizes[1] < epsilon).all():
            return text + (f' and exactly the full {epsilon:g}: its norm lacks the epsilon 1e-6 '
                           'under the root')
        return text
    return f'other directions: cosine per review {_range(cosine)}'


def _range(values):
    low, high = float(np.min(values)), float(np.max(values))
    return f'{low:.4g}' if math.isclose(low, high, rel_tol=1e-3) else f'{low:.4g} to {high:.4g}'


def describe_neighbors(theirs, ranks):
    """What a difference of neighbours looks like.

    Args:
        theirs: `(N, K)`.
        ranks: `(N, K + 2)`, our neighbours from rank 0, the word itself.
    """
    k = theirs.shape[1]
    for offset in range(ranks.shape[1] - k + 1):
        if offset != 1 and np.mean(theirs == ranks[:, offset:offset + k]) > 0.99:
            return (f"other offset: upstream's begin at rank {offset}, ours at rank 1 (rank 0 is "
                    'the word itself)')
    return f'{np.mean(theirs != ranks[:, 1:k + 1]):.0%} of them are other words'


# Trajectories -------------------------------------------------------------------------------

def compare_runs(recordings, ours):
    """Whole runs from the same seed, with dropout."""
    sections = []
    for prefix, data_dir in recordings.corpora:
        checks = []
        for method in RUNS:
            name = _run_name(prefix, method)
            error = recordings.errors.get(f'traj_{method}')
            if error:
                checks.append(Check(SHOWN[method], False, f'upstream stopped: {error}'))
            elif os.path.exists(os.path.join(ours, name + '.json')):
                theirs = _read(recordings.path(f'{prefix}traj_{method}.json'))
                checks += compare_run(
                    SHOWN[method], theirs, _read(os.path.join(ours, name + '.json')),
                    recordings.stop, method == 'lm')
        if checks:
            sections.append(Section(
                f'Trajectories on {prefix or ""}{os.path.basename(data_dir)}', checks))
    return sections


def compare_run(title, theirs, here, stop=0, is_lm=False):
    """
    Args:
        theirs: a recorded trajectory.
        here: what `ours.repeat` returned.
        stop: steps after which both were ended; 0: they came to their ends.
    """
    if here['error']:
        return [Check(title, False, f'ours stopped: {here["error"]}')]
    if is_lm:
        checks = [_losses(f'{title}: loss of each window', theirs['train_losses'],
                          [row['loss'] for row in here['steps']])]
        if not stop:
            checks.append(_perplexities(title, theirs['stdout'], here['stdout']))
    else:
        names = ('loss_clean', 'loss_first', 'loss_adv'), ('loss_vat_first', 'loss_vat')
        kinds = (('cross entropies', theirs['losses'], names[0]),
                 ('divergences', theirs['kl'], names[1]))
        checks = [_losses(f'{title}: {kind}', values,
                          [row[name] for row in here['steps'] for name in group if name in row])
                  for kind, values, group in kinds if values]
        if here['log'] and not stop:
            checks.append(_accuracies(title, theirs['log'], here['log']))
    if here['param_norms'] and theirs['param_norms']:
        checks.append(_final_parameters(title, theirs, here))
    return checks


def _losses(title, theirs, here):
    if len(theirs) != len(here):
        return Check(title, False, f'{len(theirs)} upstream, {len(here)} here')
    differences = np.abs(np.subtract(theirs, here))
    agrees = bool((differences <= TRAJECTORY_TOLERANCE).all())
    first = int(np.argmax(~(differences <= TRAJECTORY_TOLERANCE)))
    return Check(title, agrees, f'{len(here)} {"value" if len(here) == 1 else "values"}' + (
        '' if agrees else f', the first to differ is number {first + 1}: {theirs[first]:.6g} '
                          f'upstream, {here[first]:.6g} here'),
        largest(theirs, here), TRAJECTORY_TOLERANCE)


def _accuracies(title, log, ours):
    """Of the dev and test set after each epoch, in per cent."""
    theirs, here = [], []
    for split in ('dev', 'test'):
        found = [re.fullmatch(rf'\[{split}\] accuracy:([\d.]+)', line.strip()) for line in log]
        theirs += [float(match[1]) for match in found if match]
        here += [row[f'{split}/main/accuracy'] for row in ours]
    if len(theirs) != len(here):
        return Check(f'{title}: accuracies', None, "upstream's log lines are of another form")
    difference = largest(theirs, here)
    return Check(f'{title}: dev and test accuracies', difference <= 1e-3,
                 f'{len(here)} values', difference, 1e-3)


def _perplexities(title, theirs, here):
    pattern = re.compile(r'(Epoch \d+: val perp|valid perplexity:|test perplexity:) ([\d.]+)')
    theirs, here = ({match[1]: float(match[2]) for match in map(pattern.match, lines) if match}
                    for lines in (theirs, here))
    if not theirs:
        return Check(f'{title}: perplexities', None, "upstream's lines are of another form")
    if set(theirs) != set(here):
        return Check(f'{title}: perplexities', False,
                     f'only one side prints {", ".join(sorted(set(theirs) ^ set(here)))}')
    difference = max(abs(here[name] / theirs[name] - 1) for name in theirs)
    return Check(f'{title}: perplexities', difference <= PERPLEXITY_TOLERANCE,
                 f'{len(theirs)} values, relative', difference, PERPLEXITY_TOLERANCE)


def _final_parameters(title, theirs, here):
    """By their norms and sums, relative to the largest norm."""
    missing = sorted(set(theirs['param_norms']) ^ set(here['param_norms']))
    if missing:
        return Check(f'{title}: final parameters', False,
                     f'only one side has {", ".join(missing)}')
    worst = max(abs(theirs[kind][name] - here[kind][name]) / (
        1 + abs(theirs[kind][name])) for kind in ('param_norms', 'param_sums')
        for name in theirs[kind])
    return Check(f'{title}: final parameters', worst <= TRAJECTORY_TOLERANCE,
                 'norms and sums, relative', worst, TRAJECTORY_TOLERANCE)
