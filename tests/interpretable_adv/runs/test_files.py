"""files.py: whole or not there."""
import os
import stat

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
