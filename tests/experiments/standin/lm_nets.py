"""The language model."""
import adaptive_softmax as adaptive
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np


class RNNForLM(chainer.Chain):

    def __init__(self, n_vocab, n_units, n_layers=1, dropout=0.5, share_embedding=False,
                 adaptive_softmax=False, n_units_word=256):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(n_vocab, n_units_word)
            self.rnn = L.NStepLSTM(n_layers, n_units_word, n_units, dropout)
            if adaptive_softmax:
                self.output = adaptive.AdaptiveSoftmax(n_units, n_vocab, [2000, 10000])
            else:
                self.output = L.Linear(n_units, n_vocab)
        self.dropout = dropout
        for _, parameter in self.namedparams():
            if parameter.ndim > 1:
                parameter.array[:] = np.random.uniform(-0.1, 0.1, parameter.shape)
        self.reset_state()

    def reset_state(self):
        self.state = None, None

    def __call__(self, words, targets):
        """Summed negative log-likelihood of `targets`; both are (streams, time)."""
        streams = [F.dropout(self.embed(row), self.dropout) for row in words]
        hy, cy, ys = self.rnn(*self.state, streams)
        self.state = chainer.Variable(hy.array), chainer.Variable(cy.array)
        hidden = F.dropout(F.concat(ys, axis=0), self.dropout)
        if isinstance(self.output, adaptive.AdaptiveSoftmax):
            return self.output(hidden, targets.ravel())
        return F.sum(F.softmax_cross_entropy(self.output(hidden), targets.ravel(), reduce='no'))
