"""experiments/bootstrap.sh: a working environment from nothing, and clear words when not."""
import os
import pathlib
import shutil
import subprocess
import tempfile

import pytest

NOBODY = 65534


@pytest.fixture
def copy(root, tmp_path):
    """The repository as a new clone would be, in a folder with a space in its name."""
    target = tmp_path / 'a folder'
    everywhere = shutil.ignore_patterns('.git', '.venv', 'env', '*.so', 'build', '__pycache__',
                                        '.hypothesis', '.*_cache')

    def ignored(folder, names):
        own = {'runs', 'data'} if pathlib.Path(folder).name == 'experiments' else set()
        return {*everywhere(folder, names), *(own & set(names))}

    shutil.copytree(root, target, ignore=ignored)
    return target


def bootstrap(copy, *arguments, **environment):
    return subprocess.run(['bash', str(copy / 'experiments' / 'bootstrap.sh'), *arguments],
                          capture_output=True, text=True, cwd='/', timeout=500,
                          env={**os.environ, **environment})


def check_one_line(result, part):
    assert result.returncode == 2
    lines = result.stderr.strip().splitlines()
    assert len(lines) == 1 and lines[0].startswith('error: ') and part in lines[0]


def test_an_old_python_is_one_line(copy, tmp_path):
    old = tmp_path / 'python3'
    old.write_text('#!/bin/sh\n[ "$1" = -V ] && echo Python 3.8.2 && exit 0\nexit 1\n')
    old.chmod(0o755)
    check_one_line(bootstrap(copy, PYTHON=str(old)), 'Python 3.8.2')
    assert not (copy / '.venv').exists()


def test_an_unreachable_registry_is_one_line(copy, tmp_path):
    settings = {name: '' for name in os.environ if name.startswith('PIP_')}
    (tmp_path / 'pip.conf').write_text('')
    result = bootstrap(copy, **settings, PIP_CONFIG_FILE=str(tmp_path / 'pip.conf'),
                       PIP_INDEX_URL='http://127.0.0.1:9/simple', PIP_NO_CACHE_DIR='1')
    check_one_line(result, 'registry')
    assert not pathlib.Path(copy, '.venv', 'installed-run').exists()


def test_a_python_that_is_too_new_is_one_line(copy, tmp_path):
    new = tmp_path / 'python3'
    new.write_text('#!/bin/sh\n[ "$1" = -V ] && echo Python 3.14.0 && exit 0\n'
                   'case "$2" in *"(3, 14)"*) exit 1 ;; esac\nexit 0\n')
    new.chmod(0o755)
    result = bootstrap(copy, PYTHON=str(new))
    check_one_line(result, 'Python 3.11, 3.12 or 3.13 is needed')
    assert 'Python 3.14.0' in result.stderr


def test_a_read_only_checkout_is_one_line(copy):
    """For whoever may not write to it: the superuser may, and so becomes another user here."""
    with tempfile.TemporaryDirectory() as folder:  # that everybody may look into
        os.chmod(folder, 0o755)
        place = shutil.copytree(copy, pathlib.Path(folder, 'checkout'))
        place.chmod(0o555)
        try:
            user = {'user': NOBODY} if os.geteuid() == 0 else {}
            check_one_line(subprocess.run(
                ['bash', place / 'experiments' / 'bootstrap.sh'], capture_output=True, text=True,
                cwd='/', timeout=500, **user), 'is read-only')
        finally:
            place.chmod(0o755)
