"""What importing the package does, in processes of their own."""
import os
import subprocess
import sys

import pytest


@pytest.mark.parametrize('package', ['interpretable_adv', 'lm', 'experiments'])
@pytest.mark.parametrize('given, expected', [(None, '20'), ('26', '26')])
def test_threads_of_openblas_sleep_soon_unless_told_otherwise(root, package, given, expected):
    environment = {name: value for name, value in os.environ.items()
                   if name != 'OPENBLAS_THREAD_TIMEOUT'}
    if given:
        environment['OPENBLAS_THREAD_TIMEOUT'] = given
    # As NumPy is loaded it reads the variable, so it must be there before.
    code = f'''
import os, sys
class Spy:
    def find_spec(self, name, path=None, target=None):
        if name == 'numpy':
            print(os.environ.get('OPENBLAS_THREAD_TIMEOUT'))
sys.meta_path.insert(0, Spy())
import {package}
'''
    result = subprocess.run([sys.executable, '-c', code], cwd=root, env=environment,
                            capture_output=True, text=True, check=True)
    assert result.stdout.split() == [expected]
