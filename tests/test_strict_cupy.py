"""Runs the tests in `strict_cupy/`, each file in a process that has the stand-in for CuPy."""
import os
import pathlib
import shutil
import subprocess
import sys

import pytest

pytestmark = pytest.mark.skipif(
    not shutil.which('g++'), reason='the stand-in compiles Chainer\'s kernels with g++')
FOLDER = pathlib.Path(__file__).with_name('strict_cupy')


@pytest.fixture(scope='module')
def environment(tmp_path_factory):
    """One folder for the compiled kernels of all files, and one thread per process."""
    path = os.pathsep.join([str(FOLDER.parents[1]), str(FOLDER.parent)])
    kernels = tmp_path_factory.getbasetemp()
    if 'PYTEST_XDIST_WORKER' in os.environ:  # whose folder is inside that of the whole session
        kernels = kernels.parent
    kernels = kernels / 'strict_cupy_kernels'
    kernels.mkdir(exist_ok=True)
    return dict(os.environ, PYTHONPATH=path, OMP_NUM_THREADS='1', OPENBLAS_NUM_THREADS='1',
                STRICT_CUPY_CACHE=str(kernels))


@pytest.mark.parametrize('name', sorted(path.name for path in FOLDER.glob('test_*.py')))
def test_file(name, environment):
    done = subprocess.run(
        [sys.executable, '-m', 'pytest', '-p', 'strict_cupy.plugin', '-p', 'no:cacheprovider',
         '-q', '-x', '--no-header', str(FOLDER / name)],
        cwd=FOLDER.parents[1], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_folder_is_left_out_without_the_stand_in(environment):
    done = subprocess.run(
        [sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', str(FOLDER)],
        cwd=FOLDER.parents[1], env=environment, capture_output=True, text=True)
    assert done.returncode == pytest.ExitCode.NO_TESTS_COLLECTED, done.stdout + done.stderr
