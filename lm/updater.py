"""Truncated backpropagation through time, as a Chainer updater."""
import chainer
import chainer.functions as F
import numpy as np
from chainer import training

RESET_PROBABILITY = 0.01  # upstream's: the state is forgotten at about every hundredth window


class TruncatedBPTTUpdater(training.updaters.StandardUpdater):
    """One window per update; the LSTM's state goes on, the gradient stops at the window's edge.

    The loss is the summed negative log-likelihood of the window divided by the number of streams.

    Args:
        iterator: a `StreamIterator`.
        optimizer: of an `RNNForLM`.
    """

    def __init__(self, iterator, optimizer):
        super().__init__(iterator, optimizer)
        self._forget()

    def update_core(self):
        iterator, optimizer = self.get_iterator('main'), self.get_optimizer('main')
        words, targets = next(iterator)
        # One draw per window also where nothing is forgotten: it is part of the random stream.
        if np.random.rand() < RESET_PROBABILITY:
            self._forget()
        nll, self.state = optimizer.target(words, targets, self.state)
        loss = F.sum(nll) / iterator.batch_size
        optimizer.target.cleargrads()
        loss.backward()
        optimizer.update()
        chainer.report({'loss': loss.array}, optimizer.target)

    @property
    def n_words(self):
        iterator = self.get_iterator('main')
        return iterator.position * iterator.batch_size  # read so far, for the progress line

    def _forget(self):
        model = self.get_optimizer('main').target
        shape = (model.rnn.n_layers, self.get_iterator('main').batch_size, model.rnn.out_size)
        self.state = tuple(model.xp.zeros(shape, np.float32) for _ in range(2))

    def serialize(self, serializer):
        super().serialize(serializer)
        optimizer = self.get_optimizer('main')  # whose serialize leaves out alpha, which decays
        optimizer.alpha = float(serializer('alpha', optimizer.alpha))
        self.state = tuple(serializer(name, part) for name, part in zip(('hx', 'cx'), self.state))
