"""How times grow with the sizes: sequence length, batch, hidden size, vocabulary, threads."""
import numpy as np

from experiments.benchmarks import batches, timing
from experiments.benchmarks.lstm_benchmark import fast, forward_backward
from experiments.benchmarks.neighbors_benchmark import K
from experiments.benchmarks.optimizer_benchmark import setup
from interpretable_adv import kernels, neighbors
from interpretable_adv.embedding import EmbedID
from interpretable_adv.lstm import LSTM

LENGTHS = (25, 50, 100, 200, 400, 800)
BATCHES = (1, 2, 4, 8, 16, 32, 64, 128)
HIDDEN = (32, 64, 128, 256, 512, 1024)
VOCABULARIES = (5_000, 10_000, 20_000, 50_000, 100_000, 200_000)


def lstm_seconds(repetitions, length=100, batch=batches.BATCH, hidden=256):
    lengths = np.full(batch, length)
    x = np.random.RandomState(0).randn(batch * length, batches.EMBEDDING).astype('f')
    link = LSTM(1, batches.EMBEDDING, hidden, 0.0)
    return timing.interleave({'ours': lambda: forward_backward(fast, link, x, lengths)},
                             repetitions)['ours']


def adam_seconds(repetitions, n_vocab):
    ids = batches.words(np.random.RandomState(0), 7000, n_vocab)
    _, _, update = setup(EmbedID, ids, False, n_vocab)
    return timing.interleave({'ours': update}, repetitions)['ours']


def neighbor_seconds(repetitions, n_vocab, n_queries=512):
    index = neighbors.Index(
        np.random.RandomState(0).randn(n_vocab, batches.EMBEDDING).astype('f'))
    return timing.interleave({'ours': lambda: index.nearest(K, np.arange(n_queries))},
                             repetitions)['ours']


def by_threads(repetitions):
    """The LSTM at hidden sizes 256 and 1024, by the number of our threads. The large products
    are NumPy's, whose threads OPENBLAS_NUM_THREADS sets: they stay as they are."""
    before, times = kernels.threads, {}
    for hidden in (256, 1024):
        for threads in range(1, before + 1):
            kernels.threads = threads
            times[f'H={hidden}, {threads}'] = lstm_seconds(repetitions, 50, hidden=hidden)
    kernels.threads = before
    return times


def measure(repetitions):
    """Curves: title, what the horizontal axis is, and times by its values."""
    curves = [
        ('LSTM: sequence length', 'words per review', {
            n: lstm_seconds(repetitions, length=n) for n in LENGTHS}),
        ('LSTM: batch', 'reviews', {n: lstm_seconds(repetitions, batch=n) for n in BATCHES}),
        ('LSTM: hidden size', 'units', {
            n: lstm_seconds(repetitions, hidden=n) for n in HIDDEN}),
        ('Clipping and Adam: vocabulary', 'words', {
            n: adam_seconds(repetitions, n) for n in VOCABULARIES}),
        ('Neighbours of 512 words: vocabulary', 'words', {
            n: neighbor_seconds(repetitions, n) for n in VOCABULARIES}),
        ('LSTM: threads', 'threads', by_threads(repetitions)),
    ]
    return [{'title': title, 'axis': axis, 'times': {str(k): v for k, v in times.items()}}
            for title, axis, times in curves]
