"""Tests of `interpretable_adv.id_cache`."""
import json

import numpy as np
import pytest

from interpretable_adv import id_cache

ARRAYS = {'ids': np.arange(1000, dtype=np.int32), 'words': np.frombuffer(b'a\nb', np.uint8),
          'none': np.zeros(0, np.int32)}


@pytest.fixture
def path(tmp_path):
    path = tmp_path / 'x.cache'
    id_cache.write(path, 'key', ARRAYS, counts=[1, 2])
    return path


def test_round_trip(path):
    arrays, values = id_cache.read(path, 'key')
    assert values == {'counts': [1, 2]}
    assert list(arrays) == list(ARRAYS)
    for name in ARRAYS:
        assert arrays[name].dtype == ARRAYS[name].dtype
        np.testing.assert_array_equal(arrays[name], ARRAYS[name])


def test_absent_or_other_key(path):
    assert id_cache.read(path, 'other') is None
    assert id_cache.read(path.with_name('absent'), 'key') is None


def test_every_damaged_byte_is_noticed(path):
    content = path.read_bytes()
    for position in {*range(0, len(content), 41), *range(250), len(content) - 1}:
        damaged = bytearray(content)
        damaged[position] ^= 4
        path.write_bytes(damaged)
        assert id_cache.read(path, 'key') is None, position


@pytest.mark.parametrize('length', [0, 1, 50, 2000, -1])
def test_a_truncated_file_is_noticed(path, length):
    path.write_bytes(path.read_bytes()[:length])
    assert id_cache.read(path, 'key') is None


@pytest.mark.parametrize('content', [
    b'', b'{}', b'[1]\n', b'null\n', b'\xff\xfe\n', b'\x80\x04N.',
    *(json.dumps(['', 'key', [array], {}]).encode() + b'\n' for array in [
        ['ids', '<i4', 1 << 50], ['ids', '|O', 0], ['ids', '<i4', -1], ['ids', 3, 0], 5])])
def test_a_strange_file_is_no_cache(path, content):
    path.write_bytes(content)
    assert id_cache.read(path, 'key') is None
