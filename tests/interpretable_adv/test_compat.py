"""compat.py: Chainer runs without what newer Pythons lack, and nothing warns."""
import subprocess
import sys


def run(code):
    return subprocess.run([sys.executable, '-W', 'error::DeprecationWarning', '-c', code],
                          capture_output=True, text=True, timeout=60)


def test_importing_is_silent():
    result = run('import interpretable_adv; import chainer')
    assert result.returncode == 0 and not result.stderr, result.stderr


def test_chainer_runs_without_what_is_gone():
    result = run('''
import sys

class Gone:
    """Hides modules, as on Python 3.12 with NumPy 2 and setuptools 82."""
    def find_spec(self, name, path=None, target=None):
        if name.partition('.')[0] == 'pkg_resources' or name.startswith('numpy.distutils'):
            raise ModuleNotFoundError(name)

sys.meta_path.insert(0, Gone())
import numpy
if hasattr(numpy, 'sctypes'):
    del numpy.sctypes
    numpy.__getattr__ = lambda name: (_ for _ in ()).throw(AttributeError(name))
import interpretable_adv
import chainer
import chainer.links
assert numpy.sctypes['float']
''')
    assert result.returncode == 0, result.stderr
