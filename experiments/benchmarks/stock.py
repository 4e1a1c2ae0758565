"""What upstream does on a CPU, with stock Chainer: the yardstick of all ratios."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np


def lstm(link, x, lengths):
    """Final hidden states by `NStepLSTM.forward`, whose parameters `link` has."""
    xs = F.split_axis(x, np.cumsum(lengths)[:-1], axis=0)
    return L.NStepLSTM.forward(link, None, None, xs)[0][-1]


def optimizer(model):
    """Adam with gradient clipping."""
    result = chainer.optimizers.Adam().setup(model)
    result.add_hook(chainer.optimizer_hooks.GradientClipping(5.0))
    return result


class Classifier(chainer.Chain):
    """Upstream's classifier in Chainer's own links."""

    def __init__(self, n_vocab, embedding, hidden, dropout=0.5):
        super().__init__()
        self.dropout = dropout
        with self.init_scope():
            self.word_embed = L.EmbedID(n_vocab, embedding)
            self.hidden_layer = L.Linear(hidden, 30)
            self.output_layer = L.Linear(30, 2)
            self.uni_lstm = L.NStepLSTM(1, embedding, hidden, dropout)
        self.uni_lstm[0].b1.array[...] = 1
        self.uni_lstm[0].b5.array[...] = 1

    def forward(self, ids, lengths, perturbation=None):
        embedded = F.dropout(self.word_embed(ids), self.dropout)
        if perturbation is not None:
            embedded += perturbation
        hidden = F.relu(self.hidden_layer(lstm(self.uni_lstm, embedded, lengths)))
        return self.output_layer(F.dropout(hidden, self.dropout))


def baseline_step(model, adam, ids, lengths, labels):
    loss = F.softmax_cross_entropy(model(ids, lengths), labels)
    model.cleargrads()
    loss.backward()
    adam.update()
    return float(loss.array)


def advt_step(model, adam, ids, lengths, labels, epsilon=5.0):
    """Clean pass, first step with a whole backward pass, perturbed pass, as upstream."""
    loss = F.softmax_cross_entropy(model(ids, lengths), labels)
    start = chainer.Variable(np.zeros((len(ids), model.word_embed.W.shape[1]), np.float32))
    first = F.softmax_cross_entropy(model(ids, lengths, start), labels)
    model.cleargrads()
    first.backward()
    ends = np.cumsum(lengths)
    norms = [np.sqrt(1e-6 + (g ** 2).sum()) for g in np.split(start.grad, ends[:-1])]
    perturbation = epsilon * start.grad / np.repeat(np.float32(norms), lengths)[:, None]
    loss += F.softmax_cross_entropy(model(ids, lengths, perturbation), labels)
    model.cleargrads()
    loss.backward()
    adam.update()
    return float(loss.array)


def nearest(embeddings, k, rows):
    """Neighbours by sorting all cosines, ten words at a time."""
    unit = embeddings / np.linalg.norm(embeddings, axis=1, keepdims=True)
    return np.concatenate([
        np.argsort(-(unit[rows[start:start + 10]] @ unit.T), axis=1)[:, 1:k + 1]
        for start in range(0, len(rows), 10)])


class LanguageModel(chainer.Chain):
    """Upstream's language model: its adaptive softmax computes all words at every position."""

    def __init__(self, n_vocab, embedding, hidden, cutoff=(2000, 10000), dropout=0.5):
        super().__init__()
        self.bounds, self.dropout = (0, *cutoff, n_vocab), dropout
        weight = chainer.initializers.Uniform(0.1)
        with self.init_scope():
            self.embed = L.EmbedID(n_vocab, embedding, initialW=weight)
            self.rnn = L.NStepLSTM(1, embedding, hidden, dropout, initialW=weight)
            self.head = chainer.Parameter(weight, (cutoff[0] + len(cutoff), hidden))
            for i in range(1, len(cutoff) + 1):
                units = hidden // 4 ** i
                size = self.bounds[i + 1] - self.bounds[i]
                setattr(self, f'reduce{i}', chainer.Parameter(weight, (units, hidden)))
                setattr(self, f'tail{i}', chainer.Parameter(weight, (size, units)))

    def forward(self, words, targets, state):
        embedded = F.dropout(self.embed(words.ravel()), self.dropout)
        xs = F.split_axis(embedded, len(words), axis=0)
        hy, cy, ys = self.rnn(*state, xs)
        hidden = F.dropout(F.concat(ys, axis=0), self.dropout)
        head = F.log_softmax(F.linear(hidden, self.head))
        parts = [head[:, :self.bounds[1]]]
        for i in range(1, len(self.bounds) - 1):
            reduced = F.linear(hidden, getattr(self, f'reduce{i}'))
            tail = F.log_softmax(F.linear(reduced, getattr(self, f'tail{i}')))
            column = self.bounds[1] + i - 1
            parts.append(tail + F.broadcast_to(head[:, column:column + 1], tail.shape))
        chosen = F.select_item(F.concat(parts, axis=1), targets.ravel())
        return -F.sum(chosen) / len(words), (hy.array, cy.array)


def language_model_step(model, adam, words, targets, state):
    loss, state = model(words, targets, state)
    model.cleargrads()
    loss.backward()
    adam.update()
    return float(loss.array), state
