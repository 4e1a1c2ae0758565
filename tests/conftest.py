"""Fixtures shared by all tests."""
import pathlib

import pytest

import interpretable_adv  # noqa: F401  (what Chainer needs, before a test imports it)

ROOT = pathlib.Path(__file__).resolve().parents[1]


@pytest.fixture(scope='session')
def root():
    """The repository."""
    return ROOT


@pytest.fixture(scope='session')
def shared():
    """The material beside the repository: real IMDB, and all of the golden files."""
    path = ROOT.parent / 'shared'
    if not (path / 'golden').is_dir():
        pytest.skip('needs ../shared (real IMDB and recordings of upstream), which is absent here')
    return path


@pytest.fixture(scope='session')
def golden():
    """Recordings of upstream that hold no review text, and so are part of the repository."""
    return ROOT / 'tests' / 'data' / 'golden'
