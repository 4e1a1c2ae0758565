"""Truncated backpropagation through time, as a Chainer updater."""
import chainer
import chainer.links as L
import numpy as np
from chainer import backend, training

from interpretable_adv.nn import functions
from interpretable_adv.runs.distributed import ALONE

RESET_PROBABILITY = 0.01  # upstream's: the state is forgotten at about every hundredth window


class TruncatedBPTTUpdater(training.updaters.StandardUpdater):
    """One window per update; the LSTM's state is carried over, the gradient stops at its edge.

    The loss is the summed negative log-likelihood of the window divided by the number of streams.

    Args:
        iterator: a `StreamIterator`.
        optimizer: of an `RNNForLM`.
        team: the processes that train together; each reads a part of the streams.
    """

    def __init__(self, iterator, optimizer, team=ALONE):
        super().__init__(iterator, optimizer)
        self.team = team
        self._forget()

    def update_core(self):
        iterator, optimizer = self.get_iterator('main'), self.get_optimizer('main')
        nll, share = self.read(optimizer.target, next(iterator))
        loss = functions.total(nll) / iterator.batch_size
        model = optimizer.target
        model.cleargrads()
        # A shared embedding has a gradient in all rows, from the output.
        embedding = None if isinstance(model.output, L.Bias) else model.embed.W
        values = self.team.backward(loss, {'loss': loss.array / share}, model, embedding)
        optimizer.update()
        chainer.report(values, model)

    def read(self, model, window):
        """Reads a window: `-log p` of this process's words, and which share of a full window of
        words all processes have read; the loss is reported as that of a full one."""
        words, targets = window
        # One draw per window also where nothing is forgotten: it is part of the random stream.
        if np.random.rand() < RESET_PROBABILITY:
            self._forget()
        part = self.team.part
        with self.team.step(self.iteration):
            self.team.touch(words)
            nll, self.state = model(part(words), part(targets), self.state)
        return nll, 1

    @property
    def n_words(self):
        iterator = self.get_iterator('main')
        return iterator.position * iterator.batch_size  # read so far, for the progress line

    def _forget(self):
        model = self.get_optimizer('main').target
        streams = len(self.team.part(range(self.get_iterator('main').batch_size)))
        shape = model.rnn.n_layers, streams, model.rnn.out_size
        self.state = tuple(model.xp.zeros(shape, np.float32) for _ in range(2))

    def serialize(self, serializer):
        super().serialize(serializer)
        optimizer = self.get_optimizer('main')  # whose serialize leaves out alpha, which decays
        optimizer.alpha = float(serializer('alpha', optimizer.alpha))
        if optimizer.alpha < 0:
            raise ValueError(f'alpha is {optimizer.alpha}')
        self.state = tuple(self._serialize_state(serializer, name, state)
                           for name, state in zip(('hx', 'cx'), self.state))

    def _serialize_state(self, serializer, name, state):
        """A snapshot holds the state `(layers, streams, units)` of all processes' streams."""
        if self.team.size == 1:
            return serializer(name, state)
        by_stream = self.team.gather(state.transpose(1, 0, 2))
        whole = serializer(name, np.ascontiguousarray(by_stream.transpose(1, 0, 2)))
        mine = self.team.part(whole.transpose(1, 0, 2)).transpose(1, 0, 2)
        return backend.get_array_module(state).asarray(np.ascontiguousarray(mine))


class ReviewUpdater(TruncatedBPTTUpdater):
    """The same for a class-conditional model, over a `ReviewIterator`: each review is read from the
    zero state, with the vector of its class added to its words."""

    def read(self, model, window):
        iterator = self.get_iterator('main')
        mine = window.of(self.team.part(range(iterator.batch_size)))
        keep = model.xp.asarray(~mine.begins, np.float32)[:, None]
        with self.team.step(self.iteration):
            self.team.touch(window.words)
            inputs = model.inputs(model.xp.asarray(mine.words), model.xp.asarray(
                np.repeat(mine.labels, mine.lengths)))
            nll, self.state = model.score(inputs, mine.targets, mine.lengths,
                                          tuple(part * keep for part in self.state))
        return nll, len(window.words) / (iterator.batch_size * iterator.window)

    @property
    def n_words(self):
        return self.get_iterator('main').position
