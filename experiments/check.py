"""Whether runs are the published ones, bit for bit: python -m experiments check

Every training leaves the digest of its model in result.json, and the committed results have theirs.
Where two differ, the reason is looked for in what a run depends on: its settings, the arithmetic,
the versions.
"""
import glob
import os

from experiments import state
from interpretable_adv.runs.folder import MODEL, RESULT
from interpretable_adv.settings import read_run


def published(results):
    """`{name: result.json}` of the committed trainings that have a digest."""
    paths = sorted(glob.glob(os.path.join(glob.escape(results), '*', RESULT)))
    found = {os.path.basename(os.path.dirname(path)): state.read_json(path) for path in paths}
    return {name: result for name, result in found.items() if result and 'digest' in result}


def compare(runs, results):
    """`{name: why it differs}` of all published runs; '' where the bits are equal."""
    return {name: _difference(os.path.join(runs, name), os.path.join(results, name), theirs)
            for name, theirs in published(results).items()}


def _difference(run, committed, theirs):
    ours = state.read_json(os.path.join(run, RESULT))
    if not ours:
        return 'not trained here'
    if ours.get('digest') == theirs['digest']:
        return ''
    kind = 'lm' if os.path.basename(run).startswith(('lm_', 'class_lm_')) else 'classifier'
    epochs = state.EPOCHS[kind]
    settings = state.difference(
        {**read_run(os.path.join(committed, MODEL)), epochs: theirs.get(epochs)},
        {**read_run(os.path.join(run, MODEL)), epochs: ours.get(epochs)},
        ignoring=state.FREE[kind] - {epochs})
    if settings:
        return f'other settings: {settings}'
    if ours.get('arithmetic') != theirs.get('arithmetic'):
        return (f'computed by {ours.get("arithmetic", "an older version")}, published by '
                f'{theirs.get("arithmetic")}')
    versions = state.difference(theirs.get('versions', {}), ours.get('versions', {}))
    if versions:
        return f'other versions: {versions}'
    return 'other bits with the same settings, versions and arithmetic: please report this'


def report(runs, results):
    """Lines for the terminal, and whether all published runs are here with the same bits."""
    found = compare(runs, results)
    if not found:
        return [f'no published runs in {results} to compare with'], False
    differing = {name: reason for name, reason in found.items() if reason}
    lines = [f'identical to the published runs: {len(found) - len(differing)} of {len(found)}']
    lines += [f'  {name}: {reason}' for name, reason in differing.items()]
    return lines, not differing
