"""Files that are either whole or not there."""
import contextlib
import json
import os
import tempfile

from interpretable_adv.errors import UserError
from interpretable_adv.runs.reading import kind_of_special


@contextlib.contextmanager
def atomic_write(path, mode='w'):
    """Opens a temporary neighbour of `path` that takes its place when the block succeeds.

    The content reaches the disk before the rename, so after a crash `path` holds either the
    old file or the new one. Text is UTF-8 with `\\n` line ends. When the block fails,
    `path` is untouched and the temporary file is gone. A link stays one: its target is replaced.
    Pipes and devices are refused, as the rename would put a regular file in their place.
    """
    path = _replaceable(path)
    text = {} if 'b' in mode else {'encoding': 'utf-8', 'newline': '\n'}
    try:
        descriptor, temporary = tempfile.mkstemp(
            dir=os.path.dirname(path), prefix='.' + os.path.basename(path) + '.')
    except OSError as error:
        raise UserError(f'cannot write {path}: {error.strerror}') from error
    try:
        with os.fdopen(descriptor, mode, **text) as stream:
            yield stream
            stream.flush()
            os.fsync(stream.fileno())
        os.chmod(temporary, 0o666 & ~_umask())
        os.replace(temporary, path)
    except OSError as error:
        raise UserError(f'cannot write {path}: {error.strerror or error}') from error
    finally:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
    _sync_directory(os.path.dirname(path))


def write_json(path, value):
    with atomic_write(path) as stream:
        json.dump(value, stream, indent=1, ensure_ascii=False)
        stream.write('\n')


def make_directory(path):
    """Creates `path` and its parents, or says in one line why it cannot be."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise UserError(f'cannot create the folder {path}: {error.strerror}') from error


def _replaceable(path):
    """The absolute path of the regular file that is written; there need not be one yet."""
    try:
        path = os.path.realpath(path) if os.path.islink(path) else os.path.abspath(path)
        special = kind_of_special(os.stat(path).st_mode)
    except FileNotFoundError:
        return path
    except (OSError, ValueError) as error:
        raise UserError(f'cannot write {path}: {getattr(error, "strerror", error)}') from error
    if special:
        raise UserError(f'cannot write {path}: it is {special}; give the name of a file')
    return path


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def _sync_directory(path):
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
