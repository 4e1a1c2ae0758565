"""The folder of a training run: what lies in it, and what a run begins with."""
import contextlib
import os
import platform

import chainer
import h5py
import numpy as np

from interpretable_adv import __version__
from interpretable_adv.errors import UserError
from interpretable_adv.nn import kernels
from interpretable_adv.runs import checkpoints
from interpretable_adv.runs.files import locked, make_directory, write_json

MODEL = 'best.model'
SETTINGS = 'args.json'
VOCABULARY = 'vocab.txt'
SNAPSHOT = 'snapshot.npz'
RESULT = 'result.json'
LOG = 'log'
STEPS = 'steps.jsonl'
DEMO = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), 'demo')
FILES = (MODEL, SETTINGS, VOCABULARY, SNAPSHOT, RESULT, LOG, STEPS)


@contextlib.contextmanager
def claim(out, writes=True):
    """Keeps other runs out of a run's folder, and says how to resume when interrupted.

    Args:
        writes: whether this process is the one that writes; the others rely on it.
    """
    if not writes:
        yield
        return
    with locked(out, '--out'):
        for name in FILES:
            if os.path.isdir(os.path.join(out, name)):
                raise UserError(f'{os.path.join(out, name)} is a folder, where the run writes a '
                                'file: move it away, or choose another --out')
        try:
            yield
        except KeyboardInterrupt:
            raise KeyboardInterrupt(
                f'continue from {os.path.join(out, SNAPSHOT)} with the same command and --resume'
                if os.path.exists(os.path.join(out, SNAPSHOT)) else
                'there was no snapshot yet; the same command starts again') from None


def model_file(path):
    """The model that a path means: `demo` is the embedded one, a run's folder its best."""
    if path == 'demo':
        path = DEMO
    return os.path.join(path, MODEL) if os.path.isdir(path) else path


def find_snapshot(out, resume):
    """Whether a run's folder has a snapshot; without `resume` one is refused."""
    found = os.path.exists(os.path.join(out, SNAPSHOT))
    if found and not resume:
        raise UserError(f'{out} holds a run already: continue it with --resume, or choose '
                        'another --out')
    return found


def describe_run(out, settings, words):
    """Makes the folder of a run, and writes what the run is: its settings and vocabulary.

    A result that is there is that of fewer epochs, or will be written again: only a finished run
    has one.
    """
    make_directory(out)
    with contextlib.suppress(FileNotFoundError):
        os.remove(os.path.join(out, RESULT))
    write_json(os.path.join(out, SETTINGS), settings)
    checkpoints.save_vocabulary(os.path.join(out, VOCABULARY), words)


def identity_of_model(path):
    """What `result.json` says of a finished model: its digest and the arithmetic behind it."""
    return {'digest': checkpoints.digest(checkpoints.read_arrays(path)),
            'arithmetic': kernels.arithmetic()}


def versions():
    """What the numbers of a run depend on besides its flags."""
    blas = np.show_config(mode='dicts')['Build Dependencies']['blas']
    return {'interpretable_adv': __version__, 'chainer': chainer.__version__,
            'numpy': np.__version__, 'python': platform.python_version(),
            'h5py': h5py.__version__, 'blas': f'{blas["name"]} {blas["version"]}',
            'kernels': kernels.variant}
