"""evaluation/invariance.py: what is said of texts, and the random swaps beside it."""
import numpy as np
import pytest

from interpretable_adv.evaluation.invariance import Invariance, random_swaps

WORDS = ['<eos>', '<unk>', 'warm', 'cold', 'round', 'flat', 'icy', 'hot']


def neighbors(ids):
    """Of each word the three after it, in a circle; specials among them."""
    return (np.asarray(ids)[:, None] + [1, 2, 3]) % len(WORDS)


class StandInJudge:
    """Label 1 where `cold` (3) occurs."""

    def predict(self, sequences):
        return np.array([int(3 in sequence) for sequence in sequences])


class StandInWordNet:
    def relation(self, word, other):
        return {('warm', 'cold'): 'antonym', ('warm', 'hot'): 'synonym'}.get((word, other))


BEFORE = [np.array([2, 4, 2, 0]), np.array([4, 5, 0]), np.array([0])]
AFTER = [np.array([3, 4, 7, 0]), np.array([4, 5, 0]), np.array([0])]


def test_changes_and_relations_are_counted():
    found = Invariance(StandInJudge(), WORDS, StandInWordNet())(BEFORE, AFTER, neighbors)
    assert found.before.tolist() == [0, 0, 0] and found.after.tolist() == [1, 0, 0]
    assert found.antonyms.tolist() == [1, 0, 0] and found.synonyms.tolist() == [1, 0, 0]
    assert found.random.tolist()[1:] == [0, 0]  # nothing is swapped there
    without = Invariance(StandInJudge(), WORDS)(BEFORE, AFTER, neighbors)
    assert without.antonyms is None and without.synonyms is None


@pytest.mark.parametrize('counts', [[0, 0, 0], [1, 2, 0], [3, 9, 5]])
def test_random_swaps_are_of_as_many_words_and_to_neighbours(counts):
    sequences = [np.array([2, 4, 2, 1, 6, 0]), np.array([4, 5, 0]), np.array([0])]
    for seed in range(20):
        swapped = random_swaps(sequences, counts, neighbors, seed)
        for old, new, count in zip(sequences, swapped, counts):
            places = np.flatnonzero(old != new)
            assert len(places) == min(count, (old > 1).sum())
            for place in places:
                assert old[place] > 1 and new[place] > 1
                assert new[place] in neighbors(old[place:place + 1])[0]


def test_random_swaps_depend_on_the_seed_and_the_review_alone():
    random = np.random.RandomState(0)
    sequences = [np.append(random.randint(2, 8, 12), 0) for _ in range(5)]
    together = random_swaps(sequences, [4] * 5, neighbors, 7)
    for sequence, expected in zip(sequences, together):
        alone, = random_swaps([sequence], [4], neighbors, 7)
        np.testing.assert_array_equal(alone, expected)
    other = random_swaps(sequences, [4] * 5, neighbors, 8)
    assert any((a != b).any() for a, b in zip(together, other))
