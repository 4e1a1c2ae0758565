"""Batches to measure on: made up, with the lengths and word frequencies of real reviews."""
import numpy as np

EMBEDDING, BATCH, VOCABULARY = 256, 32, 87008

# Percentiles of the words per IMDB training review, with its end marker.
PERCENTILES = (*range(0, 97, 4), 98, 99, 99.5, 99.9, 100)
IMDB_LENGTHS = (
    12, 62, 85, 106, 118, 125, 131, 137, 143, 150, 158, 167, 176, 188, 200, 215, 232, 252,
    275, 303, 337, 379, 438, 521, 670, 816, 946, 1016, 1130, 2526)


def real_lengths(random, n=BATCH):
    """Lengths distributed as those of IMDB's training reviews."""
    return np.interp(random.uniform(0, 100, n), PERCENTILES, IMDB_LENGTHS).astype(np.int64)


def cut_lengths(random, longest, n=BATCH):
    """The same, cut off at `longest`."""
    return np.minimum(real_lengths(random, n), longest)


def words(random, n, n_vocab=VOCABULARY):
    """Word ids of which the r-th most frequent has a share of about 1 / r."""
    ranks = np.exp(random.uniform(0, np.log(n_vocab - 1), n)).astype(np.int64)
    return np.random.RandomState(0).permutation(n_vocab)[ranks].astype(np.int32)
