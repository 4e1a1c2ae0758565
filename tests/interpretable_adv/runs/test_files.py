"""files.py: whole or not there."""
import os
import signal
import stat
import subprocess
import sys

import numpy as np
import pytest

from interpretable_adv.errors import UserError
from interpretable_adv.runs import files


def test_a_success_replaces_the_file(tmp_path):
    path = tmp_path / 'file'
    path.write_text('old')
    with files.atomic_write(path) as stream:
        stream.write('é\n')
        assert path.read_text() == 'old'  # until the end
    assert path.read_bytes() == 'é\n'.encode()
    assert os.listdir(tmp_path) == ['file']


def test_a_failure_leaves_the_old_file_and_nothing_else(tmp_path):
    path = tmp_path / 'file'
    path.write_text('old')
    with pytest.raises(RuntimeError), files.atomic_write(path) as stream:
        stream.write('new')
        raise RuntimeError
    assert path.read_text() == 'old' and os.listdir(tmp_path) == ['file']


def test_the_umask_decides_who_may_read(tmp_path):
    before = os.umask(0o027)
    try:
        with files.atomic_write(tmp_path / 'file', 'wb') as stream:
            stream.write(b'x')
    finally:
        os.umask(before)
    assert stat.S_IMODE(os.stat(tmp_path / 'file').st_mode) == 0o640


def test_a_folder_that_is_not_there_is_one_line(tmp_path):
    with pytest.raises(UserError, match='cannot write .*nowhere'):
        with files.atomic_write(tmp_path / 'nowhere' / 'file'):
            pass


def test_a_file_in_the_way_of_a_folder_is_one_line(tmp_path):
    (tmp_path / 'file').write_text('')
    with pytest.raises(UserError, match='cannot create the folder'):
        files.make_directory(tmp_path / 'file' / 'folder')


# Left-overs -----------------------------------------------------------------------------------

KILLED = """
import os, signal, sys
from interpretable_adv.runs import files
with files.locked(sys.argv[1], '--out'):
    with files.atomic_write(os.path.join(sys.argv[1], 'file')) as stream:
        stream.write('half')
        stream.flush()
        os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.fixture
def killed(tmp_path):
    """A folder that a process was killed in while it wrote."""
    folder = tmp_path / 'folder'
    done = subprocess.run([sys.executable, '-c', KILLED, folder])
    assert done.returncode == -signal.SIGKILL
    assert len(os.listdir(folder)) == 2
    return folder


def test_the_next_writer_removes_what_a_killed_one_left(killed):
    with files.atomic_write(killed / 'file') as stream:
        stream.write('new')
    assert sorted(os.listdir(killed)) == ['.lock', 'file']


def test_the_next_holder_of_the_lock_removes_everything(killed):
    with files.locked(killed, '--out'):
        assert os.listdir(killed) == ['.lock']
    assert os.listdir(killed) == []  # it was there before


def test_only_what_processes_left_is_removed(killed):
    for name in ('file', '.file', 'file.tmp', '.hidden'):
        (killed / name).write_text('mine')
    files.remove_leftovers(killed)
    assert sorted(os.listdir(killed)) == ['.file', '.hidden', 'file', 'file.tmp']
    files.remove_leftovers(killed / 'nowhere')


def test_files_of_living_writers_stay(tmp_path):
    with files.atomic_write(tmp_path / 'file') as first:
        first.write('first')
        with files.atomic_write(tmp_path / 'file') as second:
            second.write('second')
        files.remove_leftovers(tmp_path)
        assert (tmp_path / 'file').read_text() == 'second'
    assert (tmp_path / 'file').read_text() == 'first' and os.listdir(tmp_path) == ['file']


# Locks ----------------------------------------------------------------------------------------

HOLDER = """
import sys
from interpretable_adv.runs import files
with files.locked(sys.argv[1], '--out'):
    print('held', flush=True)
    sys.stdin.read()
"""


def test_a_folder_belongs_to_one_process(tmp_path):
    folder = tmp_path / 'new' / 'folder'
    holder = subprocess.Popen([sys.executable, '-c', HOLDER, folder], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE)
    assert holder.stdout.readline() == b'held\n'
    with pytest.raises(UserError, match=f'in use by process {holder.pid} on .*another --out'):
        with files.locked(folder, '--out'):
            pass
    files.remove_leftovers(folder)
    assert os.listdir(folder) == ['.lock']
    holder.kill()
    holder.wait()
    with files.locked(folder, '--out'):
        (folder / 'result').write_text('')
    assert os.listdir(folder) == ['result']


def test_folders_that_stay_empty_disappear(tmp_path):
    with files.locked(tmp_path / 'a' / 'b', '--out'):
        assert (tmp_path / 'a' / 'b' / '.lock').read_text().startswith(f'process {os.getpid()} on')
    assert os.listdir(tmp_path) == []


def test_a_lock_that_cannot_be_made_is_one_line(tmp_path):
    (tmp_path / '.lock').mkdir()
    with pytest.raises(UserError, match='cannot write to'), files.locked(tmp_path, '--out'):
        pass


# A full disk ------------------------------------------------------------------------------------

FULL = """
import resource, sys
import numpy as np
from interpretable_adv import cli
from interpretable_adv.runs import files

def main(argv):
    with files.atomic_write('arrays.npz', 'wb') as stream:
        getattr(np, sys.argv[1])(files.ForZip(stream), a=np.random.rand(9000), b=np.ones(3))

resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[2]), -1))
cli.run(main)
"""


@pytest.mark.parametrize('function', ['savez', 'savez_compressed'])
@pytest.mark.parametrize('limit', [0, 100, 20_000])
def test_a_disk_without_room_is_one_line(root, tmp_path, function, limit):
    done = subprocess.run([sys.executable, '-c', FULL, function, str(limit)], cwd=tmp_path,
                          env={**os.environ, 'PYTHONPATH': str(root)}, text=True,
                          capture_output=True)
    assert done.returncode == 2 and done.stdout == ''
    assert done.stderr.startswith('error: cannot write') and done.stderr.count('\n') == 1
    assert os.listdir(tmp_path) == []


def test_a_stream_for_zip_writes_what_numpy_writes(tmp_path):
    arrays = {'a': np.arange(5), 'b': np.ones((2, 3))}
    for name, wrap in (('one', files.ForZip), ('two', lambda stream: stream)):
        with files.atomic_write(tmp_path / name, 'wb') as stream:
            np.savez(wrap(stream), **arrays)
    assert (tmp_path / 'one').read_bytes() == (tmp_path / 'two').read_bytes()


@pytest.mark.parametrize('make', [os.mkfifo, os.mkdir, lambda path: os.symlink('/dev/null', path)])
def test_what_is_no_regular_file_is_never_replaced(tmp_path, make):
    path = tmp_path / 'out'
    make(path)
    before = os.lstat(path)
    with pytest.raises(UserError, match='cannot write .*: it is a '):
        with files.atomic_write(path) as stream:
            stream.write('text')
    assert os.lstat(path) == before and len(os.listdir(tmp_path)) == 1


def test_a_link_stays_one(tmp_path):
    (tmp_path / 'link').symlink_to('target')
    with files.atomic_write(tmp_path / 'link') as stream:
        stream.write('text')
    assert (tmp_path / 'link').is_symlink() and (tmp_path / 'target').read_text() == 'text'
