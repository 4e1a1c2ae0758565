"""Adaptive softmax output layer: a head of frequent words, and rarer ones in two tails."""
import chainer
import chainer.functions as F
import numpy as np


class AdaptiveSoftmax(chainer.Link):

    def __init__(self, n_units, n_vocab, cutoff):
        super().__init__()
        self.bounds = [0, *cutoff, n_vocab]
        self.add_persistent('cutoff', np.array(self.bounds, np.int32))
        with self.init_scope():
            self.head = chainer.Parameter(0, (cutoff[0] + len(cutoff), n_units))
            for tail in range(1, len(cutoff) + 1):
                units = n_units // 4 ** tail
                size = self.bounds[tail + 1] - self.bounds[tail]
                setattr(self, f'reduce{tail}', chainer.Parameter(0, (units, n_units)))
                setattr(self, f'tail{tail}', chainer.Parameter(0, (size, units)))

    def __call__(self, hidden, targets):
        """Summed negative log-likelihood."""
        n_head = self.bounds[1]
        in_head = targets.copy()
        total = 0
        for tail in (1, 2):
            rows = np.flatnonzero((self.bounds[tail] <= targets)
                                  & (targets < self.bounds[tail + 1]))
            # A tail that no target is in makes this fail, as it does upstream.
            in_head[rows.min():][rows - rows.min()] = n_head + tail - 1
            narrow = F.linear(hidden[rows], getattr(self, f'reduce{tail}'))
            total += F.sum(F.softmax_cross_entropy(
                F.linear(narrow, getattr(self, f'tail{tail}')),
                targets[rows] - self.bounds[tail], reduce='no'))
        return total + F.sum(
            F.softmax_cross_entropy(F.linear(hidden, self.head), in_head, reduce='no'))
