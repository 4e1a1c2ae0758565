"""Checkpoints: keys, shapes, and whether each side reads what the other wrote."""
import json
import os

import numpy as np

from experiments.upstream_diff.checks import UNIT_TOLERANCE, Check, Section
from experiments.upstream_diff.numbers import largest
from interpretable_adv import nets
from interpretable_adv.errors import UserError
from interpretable_adv.nets import Classifier, load_classifier
from interpretable_adv.runs import checkpoints
from lm.nets import RNNForLM, load_lm, sizes


def compare(recordings, ours):
    """
    Args:
        ours: folder of what this port computed, or None.
    """
    classifier = [*_written('upstream_classifier.model', recordings, _classifier,
                            Classifier(3, 2, 2, 2), load_classifier),
                  *_logits(recordings, ours), *_read_upstream(recordings)]
    language_model = [*_written('upstream_lm.model', recordings, _language_model,
                                RNNForLM(3, 2, 2), load_lm),
                      *_start_from_lm(recordings)]
    return [Section('Checkpoints of the classifier (HDF5)', classifier),
            Section('Checkpoints of the language model (npz)', language_model)]


def _classifier(arrays, path):
    return Classifier(**nets.sizes(arrays, path))


def _language_model(arrays, path):
    return RNNForLM(**sizes(arrays, path))


def _written(name, recordings, build, smallest, load):
    """Of a model that upstream wrote.

    Args:
        build: our model in the sizes of given arrays.
        smallest: our model in other sizes, for its keys.
        load: our reader.
    """
    path = recordings.path(name)
    if not os.path.exists(path):
        yield Check('written by upstream', None, 'there is none to look at')
        return
    arrays = checkpoints.read_arrays(path)
    try:
        model = build(arrays, name)
    except UserError:
        model = smallest
    expected = {key: array.shape for key, array in checkpoints._named_arrays(model)}
    found = {key: array.shape for key, array in arrays.items()}
    missing, extra = sorted(set(expected) - set(found)), sorted(set(found) - set(expected))
    if missing or extra:
        yield Check('keys', False, '; '.join(
            f'{what}: {", ".join(keys)}' for what, keys in
            (('only ours has', missing), ('only upstream has', extra)) if keys))
        return
    yield Check('keys', True, f'{len(found)}, {_shortened(found)}')
    other = [f'{key} {found[key]} upstream, {expected[key]} here'
             for key in sorted(set(found) & set(expected)) if found[key] != expected[key]]
    yield Check('shapes', not other, '; '.join(other[:3]) or 'all')
    try:
        loaded = load(path)
    except UserError as error:
        yield Check('written by upstream, read here', False, str(error))
        return
    difference = max(largest(arrays[key], value)
                     for key, value in checkpoints._named_arrays(loaded))
    yield Check('written by upstream, read here', difference == 0, 'every value', difference, 0)


def _shortened(keys):
    """`uni_lstm/0/w0 … w7` instead of eight names."""
    groups = {}
    for key in sorted(keys):
        head, _, last = key.rpartition('/')
        groups.setdefault(f'{head}/' if head else '', []).append(last)
    return ', '.join(head + (last[0] if len(last) == 1 else '{' + ','.join(last) + '}')
                     for head, last in groups.items())


def _logits(recordings, ours):
    """Test logits that upstream's own model has there and here."""
    path = recordings.path('upstream_classifier_test.json')
    if ours and os.path.exists(path) and os.path.exists(os.path.join(ours, 'test_logits.npz')):
        with open(path, encoding='utf-8') as stream:
            theirs = np.array(json.load(stream)['test_logits'])
        here = checkpoints.read_arrays(os.path.join(ours, 'test_logits.npz'))['logits']
        difference = largest(theirs, here)
        yield Check('its test logits', difference <= UNIT_TOLERANCE, f'{len(theirs)} reviews',
                    difference, UNIT_TOLERANCE)


def _read_upstream(recordings):
    """A classifier that was written here and read by upstream: `--load_trained_lstm`."""
    path = recordings.path('load_classifier.npz')
    error = recordings.errors.get('load_classifier')
    if error:
        yield Check('written here, read by upstream', False, f'upstream stopped: {error}')
    elif os.path.exists(path):
        yield _same('written here, read by upstream', checkpoints.read_arrays(path),
                    checkpoints.read_arrays(recordings.path('our_classifier.model')), 'param/')


def _start_from_lm(recordings):
    """A language model that was written here and read by upstream: `--pretrained_model`."""
    path = recordings.path('start_from_lm.npz')
    error = recordings.errors.get('start_from_lm')
    if error:
        yield Check('written here, read by upstream', False, f'upstream stopped: {error}')
    elif os.path.exists(path):
        ours = checkpoints.read_arrays(recordings.path('our_lm.model'))
        expected = {'word_embed/W': ours['embed/W']}
        expected.update({'uni_' + key.replace('rnn', 'lstm'): value
                         for key, value in ours.items() if key.startswith('rnn/')})
        yield _same('written here, read by upstream', checkpoints.read_arrays(path), expected,
                    'param/')


def _same(title, theirs, expected, prefix):
    missing = [key for key in expected if prefix + key not in theirs]
    if missing:
        return Check(title, False, f'upstream has no {", ".join(missing)}')
    difference = max(largest(theirs[prefix + key], value) for key, value in expected.items())
    return Check(title, difference == 0, f'every value of {len(expected)} arrays', difference, 0)
