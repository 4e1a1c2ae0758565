"""The kernels arrive wherever the package does: a fresh clone, an updated checkout, a wheel."""
import os
import pathlib
import shutil
import site
import subprocess
import sys
import zipfile

import pytest

pytestmark = [
    pytest.mark.slow, pytest.mark.deep,
    pytest.mark.skipif(shutil.which('gcc') is None, reason='needs a C compiler to build kernels')]

CHECK = ('from interpretable_adv.nn import kernels; '
         'print(kernels.available, kernels.__file__, sep="\\n")')


def make_environment(folder):
    """A virtual environment that finds what is installed here, so that nothing is downloaded."""
    subprocess.run([sys.executable, '-m', 'venv', folder], check=True)
    packages, = pathlib.Path(folder).glob('lib/python*/*-packages')
    (packages / 'installed_here.pth').write_text('\n'.join(site.getsitepackages()))
    return pathlib.Path(folder) / 'bin' / 'python'


@pytest.fixture
def clone(root, tmp_path):
    """The files that git tracks or would track, as a fresh clone has them."""
    names = subprocess.run(['git', 'ls-files', '-co', '--exclude-standard', '-z'], cwd=root,
                           capture_output=True, text=True).stdout.split('\0')
    target = tmp_path / 'clone'
    for name in filter(None, names):
        if (root / name).is_file() and not name.startswith(('experiments/results', 'tests')):
            (target / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(root / name, target / name)
    assert (target / 'setup.py').exists(), 'git lists no files here'
    return target


def run(command, cwd, **environment):
    # Without the flags of the test process, so that what is built is what a user builds.
    own = {name: value for name, value in os.environ.items() if not name.startswith('COV_')}
    done = subprocess.run([str(part) for part in command], cwd=cwd, capture_output=True, text=True,
                          env={**own, 'PYTHONPATH': '', **environment}, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_a_fresh_clone_and_an_updated_checkout_have_kernels(clone):
    python = make_environment(clone / '.venv')
    assert 'were not built' not in run(['bash', 'experiments/bootstrap.sh'], clone)
    available, where = run([python, '-c', CHECK], clone).splitlines()
    assert available == 'True' and where.startswith(str(clone))
    assert run(['bash', 'experiments/bootstrap.sh'], clone) == ''

    # Until version 1.0 the kernels were built in another folder, which git does not remove.
    for library in pathlib.Path(where).parent.glob('*.so'):
        library.unlink()
    old = clone / 'interpretable_adv' / 'kernels'
    old.mkdir()
    (old / '_kernels.cpython-311-x86_64-linux-gnu.so').write_bytes(b'old')
    (clone / '.venv' / 'installed-run').write_text('an older state\n')
    run(['bash', 'experiments/bootstrap.sh'], clone)
    assert not old.exists()
    assert run([python, '-c', CHECK], clone).startswith('True\n')


def test_a_wheel_has_kernels_pages_and_commands(clone, tmp_path):
    run([sys.executable, '-m', 'pip', 'wheel', '--no-build-isolation', '--no-deps', '--wheel-dir',
         tmp_path / 'wheels', '.'], clone)
    wheel, = (tmp_path / 'wheels').glob('*.whl')
    names = zipfile.ZipFile(wheel).namelist()
    assert any(name.startswith('interpretable_adv/nn/kernels/_kernels.') for name in names)
    assert {'interpretable_adv/demo/best.model', 'interpretable_adv/py.typed'} <= set(names)
    for asset in ('report.html', 'explore.html', 'components.css', 'components.js',
                  'examples.json'):
        assert f'interpretable_adv/evaluation/assets/{asset}' in names
    python = make_environment(tmp_path / 'environment')
    run([python, '-m', 'pip', 'install', '--no-deps', '--no-index', wheel], tmp_path)
    empty = tmp_path / 'empty'
    empty.mkdir()
    available, where = run([python, '-c', CHECK], empty).splitlines()
    assert available == 'True' and where.startswith(str(tmp_path / 'environment'))
    for command in ('data', 'train', 'evaluate', 'predict', 'analysis', 'visualize', 'explore',
                    'pretrain', 'perplexity'):
        assert 'usage:' in run([python.with_name(f'spgd-{command}'), '--help'], empty)
    predicted = run([python.with_name('spgd-predict'), 'A wonderful film.'], empty)
    assert predicted.startswith('positive')
    assert list(empty.iterdir()) == []
