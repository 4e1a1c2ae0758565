"""Files that are either whole or not there, and folders that one process at a time writes to."""
import contextlib
import errno
import fcntl
import json
import os
import socket
import tempfile
import time

from interpretable_adv.errors import UserError
from interpretable_adv.runs.reading import kind_of_special

TEMPORARY = '.tmp'  # how the names of temporary files end
LOCK = '.lock'


@contextlib.contextmanager
def atomic_write(path, mode='w'):
    """Opens a temporary neighbour of `path` that takes its place when the block succeeds.

    The content reaches the disk before the rename, so after a crash `path` holds either the
    old file or the new one. Text is UTF-8 with `\\n` line ends. When the block fails,
    `path` is untouched and the temporary file is gone. A link stays one: its target is replaced.
    Pipes and devices are refused, as the rename would put a regular file in their place.
    What a killed process has left of an earlier attempt is removed.
    """
    path = _replaceable(path)
    directory, name = os.path.split(path)
    text = {} if 'b' in mode else {'encoding': 'utf-8', 'newline': '\n'}
    try:
        remove_leftovers(directory, name)
        descriptor, temporary = _make_temporary(directory, name)
    except OSError as error:
        raise UserError(f'cannot write {path}: {error.strerror}; give a file in a folder that '
                        'exists and is writable') from error
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
    sync_directory(directory)


def _make_temporary(directory, name):
    """Descriptor and path of a new file, locked as long as this process has it open."""
    while True:
        descriptor, path = tempfile.mkstemp(dir=directory, prefix=f'.{name}.', suffix=TEMPORARY)
        _lock(descriptor)
        if os.fstat(descriptor).st_nlink:  # else another process took it for a left-over
            return descriptor, path
        os.close(descriptor)


def remove_leftovers(directory, name=''):
    """Removes the temporary files of `name` that processes have left which died; without a name,
    all such files of a folder and its lock.

    A process that lives has its files locked.
    """
    with contextlib.suppress(FileNotFoundError), os.scandir(directory) as entries:
        for entry in entries:
            temporary = (entry.name.startswith(f'.{name}.' if name else '.')
                         and entry.name.endswith(TEMPORARY))
            if temporary or (entry.name == LOCK and not name):
                _remove_unless_locked(entry.path)


def _remove_unless_locked(path):
    with contextlib.suppress(OSError):
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            if _lock(descriptor):
                os.unlink(path)
        finally:
            os.close(descriptor)


def _lock(descriptor):
    """Takes the lock of an open file; False: another process has it.

    The lock ends with the process, however it ends. File systems without locks have none to
    take, and nobody to respect it.
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError as error:
        if error.errno in (errno.EWOULDBLOCK, errno.EACCES):
            return False
        if error.errno not in (errno.ENOLCK, errno.ENOTSUP, errno.ENOSYS):
            raise
    return True


@contextlib.contextmanager
def locked(folder, flag):
    """Keeps other processes from writing to `folder`, which is made if it is missing.

    The lock is a file in the folder that says who holds it. It counts only as long as that
    process lives. Folders that are still empty at the end disappear again.

    Args:
        flag: that named the folder.
    """
    made = first_missing(folder)
    make_directory(folder)
    path = os.path.join(folder, LOCK)
    try:
        descriptor = _open_lock(path)
    except OSError as error:
        raise UserError(f'cannot write to {folder}: {error.strerror}') from error
    if descriptor is None:
        raise UserError(
            f'{folder} is in use by {_holder(path)}: wait for it or stop it, or choose another '
            f'{flag}; a crash leaves no lock, so after one just run the command again, a training '
            'with --resume')
    try:
        remove_leftovers(folder)
        yield
    finally:
        with contextlib.suppress(OSError):
            os.unlink(path)
        os.close(descriptor)
        remove_empty(folder, made)


def _open_lock(path):
    """The locked file at `path`, with this process named in it; None: another holds the lock."""
    while True:
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT, 0o666)
        if not _lock(descriptor):
            os.close(descriptor)
            return None
        with contextlib.suppress(FileNotFoundError):
            if os.path.samestat(os.stat(path), os.fstat(descriptor)):
                break
        os.close(descriptor)  # its holder has just removed it: make a new one
    os.truncate(descriptor, 0)
    holder = (f'process {os.getpid()} on {socket.gethostname()} since '
              f'{time.strftime("%Y-%m-%d %H:%M:%S %Z")}\n')
    os.write(descriptor, holder.encode())
    return descriptor


def _holder(path):
    try:
        with open(path, encoding='utf-8', errors='replace') as stream:
            return stream.read(200).strip() or 'another process'
    except OSError:
        return 'another process'


class ForZip:
    """A stream for `zipfile`. After an error it takes everything and writes nothing.

    When writing fails, `ZipFile` tries once more to complete the file as it is destroyed, and
    Python would report that second failure with a traceback.
    """

    def __init__(self, stream):
        self._stream = stream

    def write(self, content):
        return self._call('write', content)

    def seek(self, *place):
        return self._call('seek', *place)

    def tell(self):
        return self._call('tell')

    def read(self, *size):
        return self._call('read', *size)

    def flush(self):
        return self._call('flush')

    def _call(self, name, *arguments):
        try:
            return getattr(self._stream, name)(*arguments)
        except BaseException:
            self._stream = _Nowhere()
            raise


class _Nowhere:
    """Looks like a file to a writer; only the position is kept."""

    def __init__(self):
        self._position = 0

    def write(self, content):
        self._position += len(content)
        return len(content)

    def seek(self, position, whence=os.SEEK_SET):
        self._position = position + (0 if whence == os.SEEK_SET else self._position)
        return self._position

    def tell(self):
        return self._position

    def flush(self):
        pass


def write_json(path, value):
    with atomic_write(path) as stream:
        json.dump(value, stream, indent=1, ensure_ascii=False)
        stream.write('\n')


def make_directory(path):
    """Creates `path` and its parents, or says in one line why it cannot be."""
    try:
        os.makedirs(path, exist_ok=True)
    except OSError as error:
        raise UserError(f'cannot create the folder {path}: {error.strerror}; give another one'
                        ) from error


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


def first_missing(directory):
    """The topmost folder that has to be made so that `directory` exists, or None."""
    directory, missing = os.path.abspath(directory), None
    while not os.path.lexists(directory):
        missing, directory = directory, os.path.dirname(directory)
    return missing


def remove_empty(directory, top):
    """Removes `directory` and its parents up to `top`, as long as they are empty."""
    directory = os.path.abspath(directory)
    while top is not None and directory.startswith(top):
        try:
            os.rmdir(directory)
        except OSError:
            return
        directory = os.path.dirname(directory)


def _umask():
    mask = os.umask(0)
    os.umask(mask)
    return mask


def sync_directory(path):
    """Makes renames in a folder reach the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
