"""Exact nearest neighbours of the words that IMDB's labelled reviews have."""
import os
import sys
import tempfile

import numpy as np

from experiments.benchmarks import batches, stock, timing
from experiments.benchmarks.lstm_benchmark import on_numpy
from interpretable_adv import neighbors
from interpretable_adv.neighbors import search
from interpretable_adv.nn import kernels

WORDS, K = 66825, 15


def embeddings(n_words):
    return np.random.RandomState(0).randn(n_words, batches.EMBEDDING).astype('f')


def product(unit, n_queries):
    """The scores alone, in the blocks of `neighbors`."""
    buffer = np.empty(search.QUERIES * search.CANDIDATES, np.float32)

    def run():
        for start in range(0, n_queries, search.QUERIES):
            queries = unit[start:min(start + search.QUERIES, n_queries)]
            for first in range(0, len(unit), search.CANDIDATES):
                block = unit[first:first + search.CANDIDATES]
                np.dot(queries, block.T, out=buffer[:len(queries) * len(block)].reshape(
                    len(queries), len(block)))
    return run


def same_share(one, other):
    return float((np.asarray(one) == np.asarray(other)).mean())


def measure(torch_side, repetitions, n_queries=4096, n_words=WORDS, n_stock=100):
    """Times are for `n_queries` of the words (stock: n_stock), each against all."""
    table = embeddings(n_words)
    rows = np.arange(n_queries)
    index = neighbors.Index(table)
    found = index.nearest(K, rows)
    agreement = {timing.STOCK: same_share(
        stock.nearest(table, K, rows[:n_stock]), found[:n_stock])}

    contestants = {'ours': lambda: index.nearest(K, rows),
                   timing.PRODUCTS: product(index._unit, n_queries)}
    if kernels.available:
        def numpy_run():
            with on_numpy():
                index.nearest(K, rows)
        contestants['ours, NumPy'] = numpy_run
    if torch_side:
        with tempfile.TemporaryDirectory() as folder:
            file = os.path.join(folder, 'table.npz')
            np.savez(file, embeddings=table)
            torch_side('neighbors_setup', file=file, k=K, n_queries=n_queries)
            torch_side('neighbors_run', result=os.path.join(folder, 'out.npz'))
            agreement['faiss flat'] = same_share(
                np.load(os.path.join(folder, 'out.npz'))['ids'], found)
        contestants['faiss flat'] = lambda: torch_side('neighbors_run')
    if min(agreement.values()) < 0.9999:  # the rest: ties within rounding
        raise RuntimeError(f'other neighbours were found: {agreement}')
    contestants[timing.STOCK] = lambda: stock.nearest(table, K, rows[:n_stock])
    times = timing.interleave(contestants, repetitions)
    times[timing.STOCK] = [t * n_queries / n_stock for t in times[timing.STOCK]]
    ratios = {f'{name} / ours': timing.ratio(times[name], times['ours'])
              for name in contestants if name not in ('ours', timing.PRODUCTS)}
    ratios[f'ours / {timing.PRODUCTS}'] = timing.ratio(times['ours'], times[timing.PRODUCTS])
    return [{'part': 'Neighbours', 'case': f'{n_queries:,} of {n_words:,} × {batches.EMBEDDING}, '
             f'K={K}', 'times': times, 'ratios': ratios, 'agreement': agreement}]


def peak_memory(n_words=WORDS):
    """Megabytes that a process needs at most for all words' neighbours, the embeddings and
    Python included. Of the queries a part is enough, as they go block by block."""
    return timing.peak_of(__name__, n_words)


if __name__ == '__main__':
    n_words = int(sys.argv[1])
    neighbors.nearest(
        embeddings(n_words), K, rows=np.arange(min(n_words, 2 * search.QUERIES)))
    print(timing.peak_megabytes())
