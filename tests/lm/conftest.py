"""A small corpus and a way to run the commands, for the tests of the language model."""
import os
import shutil
import subprocess
import sys

import pytest


@pytest.fixture(scope='session')
def synthetic(golden, tmp_path_factory):
    """A copy of the corpus of made-up words: reading it leaves a cache beside the texts."""
    path = tmp_path_factory.mktemp('corpus') / 'synthetic'
    shutil.copytree(golden / 'synthetic' / 'mini_synthetic', path,
                    ignore=shutil.ignore_patterns('*.cache'))
    return path


@pytest.fixture(scope='session')
def start(root):
    """Starts `python -m module arguments…` as a process of its own."""
    def start(module, *arguments, **kwargs):
        environment = {**os.environ, 'PYTHONPATH': str(root), 'OMP_NUM_THREADS': '1',
                       'OPENBLAS_NUM_THREADS': '1'}
        return subprocess.Popen(
            [sys.executable, '-m', module, *map(str, arguments)], env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, **kwargs)
    return start
