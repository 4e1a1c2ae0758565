"""Reading and writing models and snapshots: atomic, free of pickle, verified before use.

A classifier is an HDF5 file and a language model an npz file, both in the layout of
Chainer's serializers, which is upstream's. A snapshot is an npz file of everything that a
training run needs to resume exactly where it was.
"""
import hashlib
import json
import os
import pathlib
import re
import sys

import h5py
import numpy as np
from chainer.serializer import Deserializer
from chainer.serializers import DictionarySerializer, NpzDeserializer

from interpretable_adv.errors import UserError
from interpretable_adv.nn import kernels
from interpretable_adv.runs import reading
from interpretable_adv.runs.arrays import read_arrays, read_headers
from interpretable_adv.runs.files import ForZip, atomic_write

AGAIN = 'start again in another --out'  # the remedy for a snapshot that cannot be used

# Models -----------------------------------------------------------------------------------

def save_classifier(path, model):
    """Writes a model in the layout of `chainer.serializers.save_hdf5`, whole or not at all.

    Chainer writes parameters in the order of a set, which changes from process to process; sorted,
    equal models are equal files.
    """
    with atomic_write(path, 'w+b') as stream, h5py.File(stream, 'w') as file:
        # Random-looking floats hardly shrink, but compressing them takes seconds.
        for name, array in _serialized(model):
            file.create_dataset(name, data=array)


def save_lm(path, model):
    """Writes a model as `chainer.serializers.save_npz` would, whole or not at all."""
    with atomic_write(path, 'wb') as stream:
        np.savez_compressed(ForZip(stream), **dict(_serialized(model)))


def _serialized(target):
    """Names and arrays of what Chainer serialises, sorted by name."""
    serializer = DictionarySerializer()
    serializer.save(target)
    return sorted(serializer.target.items())


def digest(arrays):
    """SHA-256 of a model's arrays: equal for two runs exactly when all bits are.

    For each name in sorted order, the line `name dtype shape` and then the array's little-endian
    bytes in C order.
    """
    result = hashlib.sha256()
    for name in sorted(arrays):
        array = np.asarray(arrays[name])
        array = np.ascontiguousarray(array, array.dtype.newbyteorder('<')).reshape(array.shape)
        result.update(f'{name} {array.dtype.str} {array.shape}\n'.encode())
        result.update(array.tobytes())
    return result.hexdigest()


def check_shapes(headers, shapes, path):
    """Refuses a file of other arrays than a model has, before any of them is read.

    Args:
        headers: what `arrays.read_headers` found.
        shapes: `{name: shape}` of the model.
    """
    _refuse_unless(set(headers) == set(shapes), path, _difference(shapes, headers))
    for name, shape in shapes.items():
        _refuse_unless(headers[name].shape == shape, path,
                       f'{name} has shape {headers[name].shape}, the model needs {shape}')


def assign(model, arrays, path):
    """Gives a model the parameters read from `path`, after checking every one of them."""
    wanted = dict(_named_arrays(model))
    check_shapes(arrays, {name: target.shape for name, target in wanted.items()}, path)
    converted = {}
    for name, target in wanted.items():
        source = arrays[name]
        _refuse_unless(source.dtype.kind == target.dtype.kind, path,
                       f'{name} is of type {source.dtype}, the model needs {target.dtype}')
        with np.errstate(over='ignore'):  # what is too large becomes infinite, and is refused
            converted[name] = np.asarray(source, target.dtype)
        _refuse_unless(all_finite(converted[name]), path,
                       f'{name} holds values that are not finite')
    for name, target in wanted.items():
        target[...] = model.xp.asarray(converted[name])


def load(model, path):
    """Gives a model the parameters in a file, which is not read unless its shapes fit."""
    check_shapes(read_headers(path), {name: target.shape for name, target in
                                      _named_arrays(model)}, path)
    assign(model, read_arrays(path), path)


def all_finite(array):
    """Whether no number of an array on the host is infinite or NaN."""
    if array.dtype.kind != 'f':
        return True
    flat = array.reshape(-1)
    # In pieces that stay in the cache, which is twice as fast.
    return all(np.isfinite(flat[start:start + 65536]).all() for start in range(0, flat.size, 65536))


def _named_arrays(model):
    """Parameters and persistent values by the names that Chainer's serializers give them."""
    for name, parameter in model.namedparams():
        yield name.lstrip('/'), parameter.array
    for name, link in model.namedlinks():
        for key in link._persistent:
            value = getattr(link, key)
            if hasattr(value, 'shape'):
                yield f'{name}/{key}'.lstrip('/'), value


def _difference(wanted, found):
    missing, extra = sorted(set(wanted) - set(found)), sorted(set(found) - set(wanted))
    parts = []
    if missing:
        parts.append(f'it lacks {", ".join(missing[:3])}{" …" if len(missing) > 3 else ""}')
    if extra:
        shown = ', '.join(name if len(name) < 60 else name[:60] + '…' for name in extra[:3])
        parts.append(f'it has the unknown {shown}{" …" if len(extra) > 3 else ""}')
    return ' and '.join(parts)


def _refuse_unless(condition, path, what):
    if not condition:
        raise UserError(f'{path} does not fit: {what}; give a checkpoint of such a model')


def count_layers(names, lstm):
    """How many layers the LSTM named `lstm` has in a checkpoint."""
    return len({name.split('/')[1] for name in names if name.startswith(lstm + '/')})


def lstm_shapes(name, n_layers, in_size, out_size):
    """`{parameter: shape}` of Chainer's LSTM of that name."""
    return {f'{name}/{layer}/{kind}{gate}':
            (out_size,) if kind == 'b' else
            (out_size, in_size if layer == 0 and gate < 4 else out_size)
            for layer in range(n_layers) for kind in 'wb' for gate in range(8)}


# Vocabularies -----------------------------------------------------------------------------

def save_vocabulary(path, words):
    """Writes the words in id order, one a line."""
    with atomic_write(path) as stream:
        stream.writelines(word + '\n' for word in words)


def read_vocabulary(path, advice='restore it, or use another copy'):
    """The words in id order that `save_vocabulary` wrote."""
    text = reading.decode(reading.read_bytes(path, advice), path)
    if not text.endswith('\n'):
        raise UserError(f'{path} is cut short: its last line has no end; {advice}')
    words = text.split('\n')[:-1]
    if words[0].endswith('\r'):
        raise UserError(f'{path} has the line ends of Windows, which would become part of the '
                        'words: convert them')
    return words


def check_vocabulary(path, n_vocab, words):
    """Refuses a checkpoint that was trained with other words than the corpus's.

    The words are known where `vocab.txt` lies beside the checkpoint; else only their number.
    """
    if n_vocab != len(words):
        raise UserError(
            f'{path} was trained with {n_vocab} words, the corpus has {len(words)}; use the '
            'data folder and the flags --lower, --min_count, --use_unlabled_to_vocab of then')
    listed = pathlib.Path(path).parent / 'vocab.txt'
    try:
        known = read_vocabulary(listed)
    except reading.MissingFileError:
        return
    if len(known) != n_vocab:
        raise UserError(f'{listed} lists {len(known)} words, {path} has {n_vocab}: restore it, or '
                        'use another copy of both')
    for index, (old, new) in enumerate(zip(known, words)):
        if old != new:
            raise UserError(f'{path} was trained with another vocabulary: word {index} was '
                            f'{old!r}, the corpus has {new!r}; use the data folder of then')


# Snapshots --------------------------------------------------------------------------------

def save_snapshot(path, trainer, settings, writes=True):
    """Writes the state of a run: trainer, random stream, and the settings it was made with.

    Parameters that are not finite are refused, so that the last snapshot stays a good one.
    Where several processes train one model, all of them take its state and one `writes` it.
    """
    arrays = {f'trainer/{name}': np.asarray(value) for name, value in _serialized(trainer)}
    for name, value in arrays.items():
        if value.dtype == object:
            raise TypeError(f'{name} could only be written with pickle')
        if name.startswith('trainer/updater/model:') and not np.isfinite(value).all():
            raise UserError(
                f'step {trainer.updater.iteration}: the parameter {name.rpartition(":")[2]} is '
                'not finite; ' + (f'{path} keeps the last good state' if os.path.exists(path)
                                  else 'there was no snapshot yet') + ' (try a smaller --alpha)')
    arrays.update({f'random/{name}': value for name, value in _random_state().items()})
    arrays['settings'] = np.array(json.dumps(settings))
    arrays['arithmetic'] = np.array(kernels.arithmetic())
    if writes:
        with atomic_write(path, 'wb') as stream:
            np.savez(ForZip(stream), **arrays)


def load_snapshot(path, trainer, settings, free=()):
    """Puts a trainer and the random stream into the state that a snapshot holds.

    Name, shape and type of every array are checked before any is read, and all values before
    any is assigned.

    Args:
        settings: those of this run; a snapshot made with others is refused.
        free: names of settings that may differ.
    """
    try:
        headers = read_headers(path, AGAIN)
        described = read_arrays(path, ('settings', 'arithmetic'), AGAIN)
        _check_settings(path, _parse_settings(described), settings, free)
        before = str(described.get('arithmetic', kernels.arithmetic()))
        expected = _expected_state(trainer)
        _check_state(headers, expected)
        arrays = read_arrays(path, advice=AGAIN)
        _check_values(arrays, expected)
        NpzDeserializer(arrays, 'trainer/').load(trainer)
        _check_progress(trainer, arrays)
        _set_random_state({name: arrays[f'random/{name}'] for name in _random_state()})
    except (KeyError, ValueError, TypeError) as error:
        raise UserError(f'{path} is not a snapshot of such a run ({reading.brief(error)}); '
                        f'{AGAIN}') from error
    if before != kernels.arithmetic():
        print(f'{path} was written with the arithmetic of {before}, this run continues with that '
              f'of {kernels.arithmetic()}: its bits will differ from a run in one go',
              file=sys.stderr)


def _parse_settings(described):
    if set(map(len, (array.shape for array in described.values()))) != {0}:
        raise ValueError('it says nothing of its settings')
    found = reading.parse_json(str(described['settings']))
    reading.mapping()(found, 'settings')
    return found


def _check_settings(path, old, new, free):
    changed = [f'{name} was {reading.shown(old.get(name))} and is {new.get(name)!r}'
               for name in sorted(set(old) | set(new))
               if name not in free and old.get(name) != new.get(name)]
    if changed:
        raise UserError(f'cannot resume from {path}: {"; ".join(changed[:3])}'
                        f'{" …" if len(changed) > 3 else ""}; use the flags of then, or start '
                        'again in another --out')


class _Recorder(Deserializer):
    """Asks an object what it would read, by name, and leaves it as it is."""

    def __init__(self, found, path):
        self.found, self.path = found, path

    def __getitem__(self, key):
        return _Recorder(self.found, f'{self.path}{key.strip("/")}/')

    def __call__(self, key, value):
        self.found[self.path + key.lstrip('/')] = value
        return '[]' if isinstance(value, str) else value  # texts are lists in JSON


def _expected_state(trainer):
    """The values that a snapshot of this trainer must replace, by name."""
    found = {}
    _Recorder(found, 'trainer/').load(trainer)
    found.update({f'random/{name}': value for name, value in _random_state().items()})
    return {name: value if hasattr(value, 'shape') else np.array(value)
            for name, value in found.items()}


# Extensions only show and watch: a run may be resumed with others. What Chainer's log has summed
# up within an epoch depends on where in the epoch the snapshot was made.
_OPTIONAL = ('trainer/extension_triggers/', 'trainer/extensions/')
_SUMMARY = re.compile(r'(trainer/extensions/[^/]+/_summary/)_summaries/(\d+)/(_x|_x2|_n)')


def _check_state(headers, expected):
    """Raises ValueError unless a snapshot has the arrays that a trainer expects."""
    for name, value in expected.items():
        if name not in headers:
            if name.startswith(_OPTIONAL[0]):
                continue
            raise ValueError(f'it lacks {name}')
        header = headers[name]
        if header.shape != value.shape:
            raise ValueError(f'{name} has the shape {header.shape}, not {value.shape}')
        exact = value.ndim > 0 or value.dtype.kind not in 'iufU'
        whole_for_real = header.dtype.kind in 'iu' and value.dtype.kind == 'f'
        if (header.dtype != value.dtype if exact else
                header.dtype.kind != value.dtype.kind and not whole_for_real):
            raise ValueError(f'{name} is of type {header.dtype}, not {value.dtype}')
    here = {_extension(name) for name in expected}
    for name, header in headers.items():
        if name in expected or name in ('settings', 'arithmetic'):
            continue
        is_sum = _SUMMARY.fullmatch(name)
        kinds = 'iuf' if is_sum else 'iufbU'
        is_optional = name.startswith(_OPTIONAL) and (is_sum or _extension(name) not in here)
        if not is_optional or header.shape or header.dtype.kind not in kinds:
            raise ValueError(f'it has the unknown {name}')


def _extension(name):
    """The part of a name that says which extension, or which one's trigger, an array is of."""
    return '/'.join(name.split('/')[:3]) if name.startswith(_OPTIONAL) else ''


def _check_values(arrays, expected):
    """Raises ValueError unless all values are possible ones."""
    for name, array in arrays.items():
        # What is not known yet may be infinite, such as the gain over earlier epochs.
        if not all_finite(array) and not np.array_equal(array, expected.get(name)):
            raise ValueError(f'{name} holds values that are not finite')
    for name in expected:
        if name.endswith('/_log'):
            _LOG(reading.parse_json(str(arrays[name])), name)
        if name.endswith('/_summary/_names') and name in arrays:
            _check_summary(arrays, name.removesuffix('_names'))
    _check_random_state({name: arrays[f'random/{name}'] for name in _random_state()})


_LOG = reading.items(reading.fields({'epoch': reading.whole, 'iteration': reading.whole,
                                     'elapsed_time': reading.number}))


def _check_summary(arrays, prefix):
    names = reading.parse_json(str(arrays[prefix + '_names']))
    reading.items(reading.text)(names, prefix + '_names')
    parts = {(match[2], match[3]) for match in map(_SUMMARY.fullmatch, arrays)
             if match and match[1] == prefix}
    wanted = {(str(index), part) for index in range(len(names)) for part in ('_x', '_x2', '_n')}
    if parts != wanted or len(set(names)) != len(names):
        raise ValueError(f'{prefix} has other sums than names')


def _check_progress(trainer, arrays):
    """Raises ValueError unless all parts of a trainer, loaded from `arrays`, are at the same step.

    Triggers were asked in the snapshot's step, or, of what runs after the snapshot, in the one
    before.
    """
    updater = trainer.updater
    counts = {'the updater': updater.iteration}
    for name in updater._optimizers:
        optimizer = updater.get_optimizer(name)
        counts[f'the optimizer {name}'] = optimizer.t
        if not 0 <= optimizer.epoch <= updater.epoch:
            raise ValueError(f'the optimizer {name} is in epoch {optimizer.epoch}')
    for name in updater._iterators:
        iterator = updater.get_iterator(name)
        if hasattr(iterator, 'iteration'):  # Chainer's own do not count
            counts[f'the iterator {name}'] = iterator.iteration
    triggers = {name: array for name, array in arrays.items() if name.startswith(_OPTIONAL)}
    wrong = [f'{what} is at step {count}' for what, count in counts.items()
             if count != updater.iteration or count < 0]
    step = updater.epoch_detail / max(updater.iteration, 1)
    for ending, now, most in (('/previous_iteration', updater.iteration, 1),
                              ('/previous_epoch_detail', updater.epoch_detail, 1.5 * step)):
        wrong += [f'{name} is {array}' for name, array in triggers.items()
                  if name.endswith(ending) and not 0 <= now - array <= most]
    if wrong:
        raise ValueError(f'at step {updater.iteration}, {wrong[0]}')


def _random_state():
    _, keys, position, has_gauss, cached_gaussian = np.random.get_state()
    return {'keys': keys, 'position': np.array(position), 'has_gauss': np.array(has_gauss),
            'cached_gaussian': np.array(cached_gaussian)}


def _check_random_state(state):
    # NumPy itself takes any position, and then reads beyond its keys.
    if not 0 <= state['position'] <= 624 or state['has_gauss'] not in (0, 1):
        raise ValueError(f'the random stream is at position {state["position"]}')


def _set_random_state(state):
    np.random.set_state(('MT19937', state['keys'], int(state['position']),
                         int(state['has_gauss']), float(state['cached_gaussian'])))
