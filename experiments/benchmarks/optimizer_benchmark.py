"""Clipping and Adam on an embedding of the size of IMDB's vocabulary, and its gradient."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np

from experiments.benchmarks import batches, timing
from experiments.benchmarks.lstm_benchmark import check, on_numpy
from interpretable_adv.nn.adam import Adam, GradientClipping
from interpretable_adv.nn.embedding import EmbedID


def setup(link_class, ids, upstream, n_vocab, clips=True):
    """A link with the gradient of one batch, and a function that updates it.

    Args:
        upstream: whether stock Chainer updates.
        clips: whether the gradient is always larger than it may be, or never.
    """
    np.random.seed(0)
    link = link_class(n_vocab, batches.EMBEDDING)
    if upstream:
        optimizer = chainer.optimizers.Adam().setup(link)
        clipping = chainer.optimizer_hooks.GradientClipping(5.0)
    else:
        optimizer = Adam().setup(link)
        clipping = GradientClipping(5.0)
    optimizer.add_hook(clipping)
    link.cleargrads()
    # With m and v in all rows no row can be passed over: the steady state of a long run.
    link.W.grad = np.random.RandomState(1).randn(*link.W.shape).astype('f') * 1e-3
    optimizer.update()
    link.cleargrads()
    weights = np.random.RandomState(2).randn(len(ids), 1).astype('f')

    def backward():
        link.cleargrads()
        F.sum(link(ids) * weights).backward()

    def update():
        optimizer.update()
        # A clipped gradient is as large as it may be, and would not be clipped again.
        clipping.threshold *= 0.5 if clips else 2

    backward()
    return link, backward, update


def measure(repetitions, n_vocab=batches.VOCABULARY):
    random = np.random.RandomState(0)
    ids = batches.words(random, int(batches.real_lengths(random).sum()), n_vocab)
    return [measure_update(repetitions, ids, n_vocab, True),
            measure_update(repetitions, ids, n_vocab, False),
            measure_gradient(repetitions, ids, n_vocab)]


def measure_update(repetitions, ids, n_vocab, clips):
    old, _, old_update = setup(L.EmbedID, ids, True, n_vocab, clips)
    new, _, new_update = setup(EmbedID, ids, False, n_vocab, clips)
    whole, _, whole_update = setup(EmbedID, ids, False, n_vocab, clips)
    whole.W.grad = whole.W.grad.copy()  # all rows
    for update in (old_update, new_update, whole_update):
        update()
    check((new.W.array, whole.W.array), (old.W.array, old.W.array), 1e-6)

    def on_numpy_update():
        with on_numpy():
            new_update()

    times = timing.interleave({
        timing.STOCK: old_update, 'ours': new_update,
        'ours, gradient of all rows': whole_update, 'ours, NumPy': on_numpy_update}, repetitions)
    return {
        'part': 'Adam', 'times': times,
        'case': f'Adam {"and clipping" if clips else "without need for clipping"}, '
                f'{n_vocab:,} × {batches.EMBEDDING}',
        'ratios': {f'{timing.STOCK} / {name}': timing.ratio(times[timing.STOCK], times[name])
                   for name in times if name != timing.STOCK}}


def measure_gradient(repetitions, ids, n_vocab):
    _, old_backward, _ = setup(L.EmbedID, ids, True, n_vocab)
    _, new_backward, _ = setup(EmbedID, ids, False, n_vocab)
    times = timing.interleave({timing.STOCK: old_backward, 'ours': new_backward}, repetitions)
    return {'part': 'Adam', 'case': f'embedding, forward and backward, {len(ids):,} words',
            'times': times, 'ratios': {
                f'{timing.STOCK} / ours': timing.ratio(times[timing.STOCK], times['ours'])}}
