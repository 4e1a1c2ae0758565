"""Whole training steps of the classifier, and the memory of one."""
import sys

import chainer
import numpy as np

from experiments.benchmarks import batches, neighbors_benchmark, stock, timing
from experiments.benchmarks.lstm_benchmark import check, products
from interpretable_adv import attacks, nets, updaters
from interpretable_adv.data.iterators import ReviewIterator
from interpretable_adv.neighbors import NeighborTable, Refresher
from interpretable_adv.nn.adam import Adam, GradientClipping
from interpretable_adv.runs import memory

EPSILON, K = 5.0, 15
PASSES = {'baseline': (1, 1, 1), 'adv': (3, 3, 2)}  # forward, backward, with weights' gradients


class Reviews:
    """A made-up training set, with the attributes of `data.Split`."""

    def __init__(self, n_reviews, longest=None, n_vocab=batches.VOCABULARY, seed=0):
        random = np.random.RandomState(seed)
        lengths = (batches.real_lengths(random, n_reviews) if longest is None
                   else batches.cut_lengths(random, longest, n_reviews))
        words = batches.words(random, lengths.sum(), n_vocab)
        self.sequences = np.split(words, np.cumsum(lengths)[:-1])
        self.labels = random.randint(0, 2, n_reviews).astype(np.int32)


def updater(method, hidden, reviews, n_vocab=batches.VOCABULARY, refresh=True):
    """One of the package's updaters, as `interpretable_adv.train` makes it.

    Args:
        refresh: whether neighbours are searched again after every 50 steps, word by word as they
            are met. Otherwise those of all words are known before.
    """
    np.random.seed(0)
    model = nets.Classifier(n_vocab, batches.EMBEDDING, hidden)
    optimizer = Adam().setup(model)
    optimizer.add_hook(GradientClipping(5.0))
    iterator = ReviewIterator(len(reviews.labels), batches.BATCH)
    if method == 'baseline':
        return updaters.BaselineUpdater(iterator, optimizer, reviews)
    if method == 'adv':
        return updaters.AdversarialUpdater(
            iterator, optimizer, reviews, attack=attacks.AdvT(EPSILON))
    table = NeighborTable(model.word_embed.W.array, K, min(n_vocab, neighbors_benchmark.WORDS))
    refresher = Refresher(table, every_steps=50 if refresh else 0, every_epochs=0)
    if not refresh:
        table.prepare(np.unique(np.concatenate(reviews.sequences)))
    kind, attack = {
        'iadv': (updaters.AdversarialUpdater, attacks.IAdvT(EPSILON, table)),
        'spgd': (updaters.SPGDUpdater, attacks.SPGD(EPSILON, table))}[method]
    return kind(iterator, optimizer, reviews, attack=attack, refresher=refresher)


def stepper(method, hidden, reviews, n_vocab=batches.VOCABULARY, refresh=True):
    """A function that makes one step."""
    one = updater(method, hidden, reviews, n_vocab, refresh)
    reporter = chainer.Reporter()
    reporter.add_observer('main', one.model)

    def step():
        with reporter.scope({}):
            one.update()
    return step


def stock_stepper(step, hidden, reviews):
    """The same with stock Chainer."""
    np.random.seed(0)
    model = stock.Classifier(batches.VOCABULARY, batches.EMBEDDING, hidden)
    adam = stock.optimizer(model)
    iterator = ReviewIterator(len(reviews.labels), batches.BATCH)

    def run():
        labeled, _ = next(iterator)
        chosen = [reviews.sequences[i] for i in labeled]
        step(model, adam, np.concatenate(chosen), [len(c) for c in chosen],
             reviews.labels[labeled])
    return run


def same_first_loss():
    """Both compute the same loss and the same parameters after a step, without dropout."""
    reviews = Reviews(batches.BATCH, 12, 500)
    np.random.seed(0)
    old = stock.Classifier(500, batches.EMBEDDING, 64, dropout=0.0)
    new = updater('adv', 64, reviews, 500)
    new.model.copyparams(old)
    new.model.dropout = 0.0
    order = np.random.RandomState(1).permutation(batches.BATCH)
    chosen = [reviews.sequences[i] for i in order]
    adam = stock.optimizer(old)
    stock.advt_step(old, adam, np.concatenate(chosen), [len(c) for c in chosen],
                    reviews.labels[order])
    np.random.seed(1)
    reporter = chainer.Reporter()
    reporter.add_observer('main', new.model)
    with reporter.scope({}):
        new.update()
    check([new.model.uni_lstm[0].w4.array, new.model.word_embed.W.array],
          [old.uni_lstm[0].w4.array, old.word_embed.W.array], 1e-4)


def measure(repetitions, hidden=256, longest=240, spgd_steps=50):
    same_first_loss()
    reviews = Reviews(batches.BATCH * 60, longest)
    results = []
    for method, stock_step in (('baseline', stock.baseline_step), ('adv', stock.advt_step)):
        words = int(np.mean([len(sequence) for sequence in reviews.sequences]) * batches.BATCH)
        times = timing.interleave({
            timing.STOCK: stock_stepper(stock_step, hidden, reviews),
            'ours': stepper(method, hidden, reviews),
            timing.PRODUCTS: products(
                np.zeros((words, batches.EMBEDDING), 'f'), hidden, *PASSES[method])}, repetitions)
        results.append({
            'part': 'Training step', 'case': f'{method}, H={hidden}, T≤{longest}',
            'times': times, 'ratios': {
                f'{one} / {other}': timing.ratio(times[one], times[other])
                for one, other in ((timing.STOCK, 'ours'), (timing.PRODUCTS, 'ours'),
                                   (timing.STOCK, timing.PRODUCTS))}})
    # Over a whole period between two refreshes of the neighbours, so that these count.
    reviews = Reviews(batches.BATCH * (spgd_steps + 1))
    times = timing.interleave({
        'adv': stepper('adv', hidden, reviews),
        'spgd, neighbours known': stepper('spgd', hidden, reviews, refresh=False),
        'spgd': stepper('spgd', hidden, reviews)}, spgd_steps)
    results.append({
        'part': 'Training step', 'case': f'{spgd_steps} steps, H={hidden}, real lengths',
        'times': times, 'ratios': {
            f'{one} / adv': float(np.mean(times[one]) / np.mean(times['adv']))
            for one in ('spgd, neighbours known', 'spgd')}})
    return results


def peak_memory(method='adv', hidden=1024):
    """Megabytes that a process needs at most for one step on real lengths."""
    return timing.peak_of(__name__, method, hidden)


if __name__ == '__main__':
    memory.keep_freed_memory()  # as training does
    stepper(sys.argv[1], int(sys.argv[2]), Reviews(batches.BATCH, seed=3))()
    print(timing.peak_megabytes())
