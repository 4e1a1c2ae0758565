"""These tests need the stand-in in place before Chainer; `test_strict_cupy.py` sees to it."""
import sys

import numpy as np
import pytest

if 'strict_cupy.plugin' not in sys.modules:
    collect_ignore_glob = ['test_*.py']

SIZES = {'pos_train': 10, 'neg_train': 10, 'pos_dev': 4, 'neg_dev': 4, 'pos_test': 5,
         'neg_test': 5, 'unlabled': 16}


@pytest.fixture(scope='session')
def corpus(tmp_path_factory):
    """Very short reviews of made-up words: on the device every word is many small kernels."""
    folder = tmp_path_factory.mktemp('corpus')
    random = np.random.RandomState(0)
    for name, count in SIZES.items():
        lines = [' '.join(f'word{i}' for i in random.geometric(0.1, random.randint(2, 7)))
                 for _ in range(count)]
        (folder / f'imdb_{name}.txt').write_text('\n'.join(lines) + '\n', encoding='utf-8')
    return folder
