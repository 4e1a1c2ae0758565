"""Clipping and Adam on an embedding of the size of IMDB's vocabulary, and its gradient."""
import chainer.functions as F
import chainer.links as L
import numpy as np

from experiments.benchmarks import batches, stock, timing
from experiments.benchmarks.lstm_benchmark import check, on_numpy
from interpretable_adv import kernels
from interpretable_adv.adam import Adam, GradientClipping
from interpretable_adv.embedding import EmbedID


def setup(link_class, ids, upstream, n_vocab):
    """A link with the gradient of one batch, and a function that updates it."""
    np.random.seed(0)
    link = link_class(n_vocab, batches.EMBEDDING)
    if upstream:
        optimizer = stock.optimizer(link)
    else:
        optimizer = Adam().setup(link)
        optimizer.add_hook(GradientClipping(5.0))
    link.cleargrads()
    # With m and v in all rows no row can be passed over: the steady state of a long run.
    link.W.grad = np.random.RandomState(1).randn(*link.W.shape).astype('f') * 1e-3
    optimizer.update()
    link.cleargrads()
    weights = np.random.RandomState(2).randn(len(ids), 1).astype('f')

    def backward():
        link.cleargrads()
        F.sum(link(ids) * weights).backward()

    backward()
    return link, backward, optimizer.update


def measure(repetitions, n_vocab=batches.VOCABULARY):
    random = np.random.RandomState(0)
    ids = batches.words(random, int(batches.real_lengths(random).sum()), n_vocab)
    old, old_backward, old_update = setup(L.EmbedID, ids, True, n_vocab)
    new, new_backward, new_update = setup(EmbedID, ids, False, n_vocab)
    whole, _, whole_update = setup(EmbedID, ids, False, n_vocab)
    whole.W.grad = whole.W.grad.copy()  # all rows
    for update in (old_update, new_update, whole_update):
        update()
    check((new.W.array, whole.W.array), (old.W.array, old.W.array), 1e-6)

    contestants = {'stock Chainer': old_update, 'ours': new_update,
                   'ours, gradient of all rows': whole_update}
    if kernels.available:
        def on_numpy_update():
            with on_numpy():
                new_update()
        contestants['ours, NumPy'] = on_numpy_update
    times = timing.interleave(contestants, repetitions)
    size = f'{n_vocab:,} × {batches.EMBEDDING}'
    results = [{
        'part': 'Adam', 'case': f'clipping and Adam, {size}', 'times': times, 'ratios': {
            f'stock Chainer / {name}': timing.ratio(times['stock Chainer'], times[name])
            for name in contestants if name != 'stock Chainer'}}]

    contestants = {'stock Chainer': old_backward, 'ours': new_backward}
    times = timing.interleave(contestants, repetitions)
    results.append({
        'part': 'Adam', 'case': f'embedding, forward and backward, {len(ids):,} words',
        'times': times, 'ratios': {
            'stock Chainer / ours': timing.ratio(times['stock Chainer'], times['ours'])}})
    return results


