"""Tests of `interpretable_adv.data.cache`."""
import numpy as np
import pytest

from interpretable_adv.data import cache

ARRAYS = {'ids': np.arange(1000, dtype=np.int32), 'words': np.frombuffer(b'a\nb', np.uint8),
          'none': np.zeros(0, np.int32), 'size': np.array(3)}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / 'x.cache'
    cache.write(path, 'key', **ARRAYS)
    return path


def assert_same(arrays):
    assert list(arrays) == list(ARRAYS)
    for name in ARRAYS:
        assert arrays[name].dtype == ARRAYS[name].dtype
        np.testing.assert_array_equal(arrays[name], ARRAYS[name])


def test_round_trip(path):
    assert_same(cache.read(path, 'key'))


def test_absent_or_other_key(path):
    assert cache.read(path, 'other') is None
    assert cache.read(path.with_name('absent'), 'key') is None


def test_a_damaged_byte_never_changes_an_array(path):
    content, noticed = path.read_bytes(), 0
    positions = {*range(0, len(content), 37), *range(len(content) - 400, len(content))}
    for position in sorted(positions):
        damaged = bytearray(content)
        damaged[position] ^= 4
        path.write_bytes(damaged)
        found = cache.read(path, 'key')
        noticed += found is None
        if found is not None:  # a date, say
            assert_same(found)
    assert noticed > 0.5 * len(positions)


@pytest.mark.parametrize('length', [0, 1, 50, 2000, -1])
def test_a_truncated_file_is_noticed(path, length):
    path.write_bytes(path.read_bytes()[:length])
    assert cache.read(path, 'key') is None


@pytest.mark.parametrize('content', [b'', b'{}', b'[1]\n', b'\xff\xfe\n', b'\x80\x04N.', b'PK'])
def test_a_strange_file_is_no_cache(path, content):
    path.write_bytes(content)
    assert cache.read(path, 'key') is None


def test_a_folder_is_no_cache(tmp_path):
    assert cache.read(tmp_path, 'key') is None
