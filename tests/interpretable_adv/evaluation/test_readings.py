import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from interpretable_adv.evaluation import readings


def brute_force(embeddings, ids, perturbation):
    """The definition, in float64: the largest cosine; the word itself wins ties."""
    table = embeddings.astype('d')
    norm = np.linalg.norm(table, axis=1)
    table = table / np.where(norm > 0, norm, 1)[:, None]
    scores = (embeddings[ids].astype('d') + perturbation) @ table.T
    best = scores.argmax(axis=1)
    rows = np.arange(len(ids))
    return np.where(scores[rows, ids] >= scores[rows, best] - 1e-9, ids, best), scores


@settings(max_examples=60, deadline=None)
@given(st.integers(0, 2**31 - 1), st.integers(2, 40), st.integers(1, 8),
       st.sampled_from([0.0, 0.01, 0.3, 1.0, 5.0]))
def test_nearest_words_as_by_comparing_with_all(seed, n_vocab, dimensions, strength):
    generator = np.random.RandomState(seed)
    embeddings = generator.normal(size=(n_vocab, dimensions)).astype('f')
    ids = generator.randint(0, n_vocab, 30).astype('i')
    perturbation = (strength * generator.normal(size=(30, dimensions))).astype('f')
    perturbation[generator.rand(30) < 0.3] = 0
    found = readings.NearestWords(embeddings)(ids, perturbation)
    expected, scores = brute_force(embeddings, ids, perturbation)
    assert found.dtype == np.int32
    rows = np.arange(30)
    # Where two words are as near as rounding tells, either is right.
    size = np.linalg.norm(embeddings[ids] + perturbation, axis=1)
    same = found == expected
    close = scores[rows, expected] - scores[rows, found] <= 1e-5 * (1 + size)
    assert np.all(same | close)
    assert np.all(found[~perturbation.any(axis=1)] == ids[~perturbation.any(axis=1)])


def test_reaches_the_neighbour_when_moved_onto_it():
    generator = np.random.RandomState(0)
    embeddings = generator.normal(size=(50, 16)).astype('f')
    ids = np.arange(50, dtype='i')
    target = (ids + 7) % 50
    nearest = readings.NearestWords(embeddings)
    assert np.array_equal(nearest(ids, embeddings[target] - embeddings[ids]), target)
    assert np.array_equal(nearest(ids, 0.01 * (embeddings[target] - embeddings[ids])), ids)


def test_twins_and_zero_vectors_keep_the_word():
    embeddings = np.array([[1, 0], [1, 0], [0, 0], [0, 1]], 'f')
    ids = np.array([0, 1, 2, 1], 'i')
    perturbation = np.array([[0.1, 0], [0.1, 0], [0, 0], [-1, 1]], 'f')
    assert readings.NearestWords(embeddings)(ids, perturbation).tolist() == [0, 1, 2, 3]


def test_blocks_do_not_matter(monkeypatch):
    generator = np.random.RandomState(1)
    embeddings = generator.normal(size=(40, 5)).astype('f')
    ids = generator.randint(0, 40, 100).astype('i')
    perturbation = generator.normal(size=(100, 5)).astype('f')
    whole = readings.NearestWords(embeddings)(ids, perturbation)
    monkeypatch.setattr(readings, 'BLOCK_BYTES', 4 * 40 * 7)
    assert np.array_equal(readings.NearestWords(embeddings)(ids, perturbation), whole)
    assert np.any(whole != ids)


def test_cosines():
    generator = np.random.RandomState(2)
    embeddings = generator.normal(size=(30, 6)).astype('f')
    ids = generator.randint(0, 30, 12)
    neighbors = generator.randint(0, 30, (30, 4))[ids]
    assert len(set(ids.tolist())) < 12  # words repeat
    direction = generator.normal(size=(12, 6)).astype('f')
    direction[3] = 0
    found = readings.neighbor_cosines(embeddings, ids, neighbors, direction)
    for i in range(12):
        for k in range(4):
            to = embeddings[neighbors[i, k]] - embeddings[ids[i]]
            size = np.linalg.norm(to) * np.linalg.norm(direction[i])
            expected = to @ direction[i] / size if size else 0
            assert found[i, k] == pytest.approx(expected, abs=1e-4)
