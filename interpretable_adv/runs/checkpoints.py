"""Reading and writing models and snapshots: atomic, free of pickle, verified before use.

A classifier is an HDF5 file and a language model an npz file, both in the layout of
Chainer's serializers, which is upstream's. A snapshot is an npz file of everything that a
training run needs to resume exactly where it was.
"""
import hashlib
import json
import os
import pathlib
import sys
import zipfile
import zlib

import h5py
import numpy as np
from chainer.serializers import DictionarySerializer, HDF5Serializer, NpzDeserializer

from interpretable_adv.errors import UserError
from interpretable_adv.nn import kernels
from interpretable_adv.runs.files import ForZip, atomic_write

# Models -----------------------------------------------------------------------------------

def save_classifier(path, model):
    """Writes a model as `chainer.serializers.save_hdf5` would, whole or not at all."""
    with atomic_write(path, 'w+b') as stream, h5py.File(stream, 'w') as file:
        # Random-looking floats hardly shrink, but compressing them takes seconds.
        HDF5Serializer(file, compression=None).save(model)


def save_lm(path, model):
    """Writes a model as `chainer.serializers.save_npz` would, whole or not at all."""
    serializer = DictionarySerializer()
    serializer.save(model)
    with atomic_write(path, 'wb') as stream:
        np.savez_compressed(ForZip(stream), **serializer.target)


def read_arrays(path):
    """All arrays of an HDF5 or npz file, by name: `{'word_embed/W': array, …}`."""
    try:
        with open(path, 'rb') as stream:
            magic = stream.read(8)
        if magic.startswith(b'PK'):
            return _read_npz(path)
        if magic == b'\x89HDF\r\n\x1a\n':
            return _read_hdf5(path)
    except FileNotFoundError:
        raise UserError(f'{path}: no such file; check the path') from None
    except (OSError, ValueError, KeyError, RuntimeError, EOFError,
            zipfile.BadZipFile, zlib.error) as error:
        raise UserError(f'{path} is damaged or truncated ({error}); use another copy') from error
    raise UserError(f'{path} is neither an HDF5 nor an npz file; give a trained model')


def _read_npz(path):
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def _read_hdf5(path):
    arrays = {}

    def visit(name, item):
        if isinstance(item, h5py.Dataset):
            arrays[name] = item[()]

    with h5py.File(path, 'r') as file:
        file.visititems(visit)
    return arrays


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


def assign(model, arrays, path):
    """Gives a model the parameters read from `path`, after checking every one of them."""
    wanted = dict(_named_arrays(model))
    _refuse_unless(set(arrays) == set(wanted), path, _difference(wanted, arrays))
    for name, target in wanted.items():
        source = arrays[name]
        _refuse_unless(
            source.shape == target.shape, path,
            f'{name} has shape {source.shape}, the model needs {target.shape}')
        _refuse_unless(source.dtype.kind == target.dtype.kind, path,
                       f'{name} is of type {source.dtype}, the model needs {target.dtype}')
        _refuse_unless(source.dtype.kind != 'f' or np.isfinite(source).all(), path,
                       f'{name} holds values that are not finite')
    for name, target in wanted.items():
        target[...] = model.xp.asarray(arrays[name], target.dtype)


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
        parts.append(f'it has the unknown {", ".join(extra[:3])}{" …" if len(extra) > 3 else ""}')
    return ' and '.join(parts)


def _refuse_unless(condition, path, what):
    if not condition:
        raise UserError(f'{path} does not fit: {what}; give a checkpoint of such a model')


def classifier_sizes(arrays, path):
    """The arguments of `nets.Classifier`, read off a checkpoint's shapes."""
    try:
        n_vocab, emb_dim = arrays['word_embed/W'].shape
        hidden_cls_dim, hidden_dim = arrays['hidden_layer/W'].shape
        n_class = len(arrays['output_layer/b'])
    except (KeyError, ValueError):
        raise UserError(f'{path} is not a classifier: it lacks word_embed/W, hidden_layer/W or '
                        'output_layer/b; give a model that interpretable_adv.train wrote'
                        ) from None
    return {'n_vocab': n_vocab, 'emb_dim': emb_dim, 'hidden_dim': hidden_dim,
            'hidden_cls_dim': hidden_cls_dim, 'n_class': n_class,
            'n_layers': count_layers(arrays, 'uni_lstm')}


def count_layers(arrays, lstm):
    """How many layers the LSTM named `lstm` has in a checkpoint."""
    return len({name.split('/')[1] for name in arrays if name.startswith(lstm + '/')})


# Vocabularies -----------------------------------------------------------------------------

def save_vocabulary(path, words):
    """Writes the words in id order, one a line."""
    with atomic_write(path) as stream:
        stream.writelines(word + '\n' for word in words)


def check_vocabulary(path, n_vocab, words):
    """Refuses a checkpoint that was trained with other words than the corpus's.

    The words are known where `vocab.txt` lies beside the checkpoint; else only their number.
    """
    if n_vocab != len(words):
        raise UserError(
            f'{path} was trained with {n_vocab} words, the corpus has {len(words)}; use the '
            'data folder and the flags --lower, --min_count, --use_unlabled_to_vocab of then')
    try:
        text = (pathlib.Path(path).parent / 'vocab.txt').read_text(encoding='utf-8')
    except FileNotFoundError:
        return
    for index, (old, new) in enumerate(zip(text.split('\n'), words)):
        if old != new:
            raise UserError(f'{path} was trained with another vocabulary: word {index} was '
                            f'{old!r}, the corpus has {new!r}; use the data folder of then')


# Snapshots --------------------------------------------------------------------------------

def save_snapshot(path, trainer, settings, writes=True):
    """Writes the state of a run: trainer, random stream, and the settings it was made with.

    Parameters that are not finite are refused, so that the last snapshot stays a good one.
    Where several processes train one model, all of them take its state and one `writes` it.
    """
    serializer = DictionarySerializer()
    serializer.save(trainer)
    arrays = {f'trainer/{name}': np.asarray(value) for name, value in serializer.target.items()}
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

    Args:
        settings: those of this run; a snapshot made with others is refused.
        free: names of settings that may differ.
    """
    arrays = read_arrays(path)
    try:
        _check_settings(path, json.loads(str(arrays.pop('settings'))), settings, free)
        before = str(arrays.pop('arithmetic', kernels.arithmetic()))
        NpzDeserializer(arrays, 'trainer/').load(trainer)
        _set_random_state({name: arrays[f'random/{name}'] for name in _random_state()})
    except (KeyError, ValueError, TypeError) as error:
        raise UserError(f'{path} is not a snapshot of such a run ({error}); '
                        'start again in another --out') from error
    if before != kernels.arithmetic():
        print(f'{path} was written with the arithmetic of {before}, this run continues with that '
              f'of {kernels.arithmetic()}: its bits will differ from a run in one go',
              file=sys.stderr)


def _check_settings(path, old, new, free):
    changed = [f'{name} was {old.get(name)!r} and is {new.get(name)!r}'
               for name in sorted(set(old) | set(new))
               if name not in free and old.get(name) != new.get(name)]
    if changed:
        raise UserError(f'cannot resume from {path}: {"; ".join(changed[:3])}'
                        f'{" …" if len(changed) > 3 else ""}; use the flags of then, or start '
                        'again in another --out')


def _random_state():
    _, keys, position, has_gauss, cached_gaussian = np.random.get_state()
    return {'keys': keys, 'position': np.array(position), 'has_gauss': np.array(has_gauss),
            'cached_gaussian': np.array(cached_gaussian)}


def _set_random_state(state):
    np.random.set_state(('MT19937', state['keys'], int(state['position']),
                         int(state['has_gauss']), float(state['cached_gaussian'])))
