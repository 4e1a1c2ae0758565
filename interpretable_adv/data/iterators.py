"""Which reviews make up each step."""
import numpy as np
from chainer.dataset import Iterator
from chainer.serializer import Deserializer


class ReviewIterator(Iterator):
    """Batches of review numbers in upstream's order.

    At an epoch's start one permutation of the labelled reviews is drawn from NumPy's global
    stream, then, if there are unlabelled ones, two of those. The last batch of an epoch is
    short. Each step yields `(labelled, unlabelled)`, two integer arrays.
    """

    def __init__(self, n_labeled, batch_size, n_unlabeled=0, batch_size_unlabeled=0):
        self.n_labeled, self.batch_size = n_labeled, batch_size
        self.n_unlabeled, self.batch_size_unlabeled = n_unlabeled, batch_size_unlabeled
        self.epoch = 0
        self.is_new_epoch = False
        self._step = 0  # within the epoch
        self._order = np.zeros(n_labeled, np.int64)
        self._order_unlabeled = np.zeros(2 * n_unlabeled, np.int64)

    @property
    def steps_per_epoch(self):
        return -(-self.n_labeled // self.batch_size)

    @property
    def iteration(self):
        """How many batches there have been."""
        return self.epoch * self.steps_per_epoch + self._step

    @property
    def epoch_detail(self):
        return self.epoch + self._step / self.steps_per_epoch

    def __next__(self):
        if self._step == 0:
            self._order = np.random.permutation(self.n_labeled)
            self._order_unlabeled = np.concatenate([
                np.random.permutation(self.n_unlabeled) for _ in range(2)]
            ) if self.n_unlabeled else np.zeros(0, np.int64)
        labeled = _batch(self._order, self._step, self.batch_size)
        unlabeled = _batch(self._order_unlabeled, self._step, self.batch_size_unlabeled)
        self._step += 1
        self.is_new_epoch = self._step == self.steps_per_epoch
        if self.is_new_epoch:
            self._step = 0
            self.epoch += 1
        return labeled, unlabeled

    next = __next__

    def serialize(self, serializer):
        self.epoch = serializer('epoch', self.epoch)
        self.is_new_epoch = serializer('is_new_epoch', self.is_new_epoch)
        self._step = serializer('step', self._step)
        self._order = serializer('order', self._order)
        self._order_unlabeled = serializer('order_unlabeled', self._order_unlabeled)
        if isinstance(serializer, Deserializer):
            self._check()

    def _check(self):
        """Raises ValueError for a state that reading cannot lead to."""
        if self.epoch < 0 or not 0 <= self._step < self.steps_per_epoch:
            raise ValueError(f'step {self._step} of epoch {self.epoch} does not exist')
        if self._step:  # else new orders are drawn
            for order, parts in ((self._order, 1), (self._order_unlabeled, 2)):
                for part in np.split(order, parts):
                    if not np.array_equal(np.sort(part), np.arange(len(part))):
                        raise ValueError('an order does not have every review once')


def _batch(order, step, size):
    """Upstream's slice; where a small corpus runs out of it, the order begins again."""
    if len(order) == 0:
        return order
    start = step * size
    if start >= len(order):
        return order[np.arange(start, start + size) % len(order)]
    return order[start:start + size]
