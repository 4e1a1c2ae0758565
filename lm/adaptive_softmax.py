"""Adaptive softmax (Grave et al., 2017): frequent words in a head, the others in tails.

Words are numbered by first occurrence, as upstream does, so that small ids are mostly those of
frequent words. With bounds `0 = c_0 < c_1 < … < c_n = V`, words below `c_1` and one entry for each
tail share the head's softmax; tail i holds the words `[c_i, c_{i+1})` behind a projection to few
units:

    log p(w)  =  log softmax(head · h)[w]                                          w < c_1
    log p(w)  =  log softmax(head · h)[c_1 + i - 1]
                 + log softmax(tail_i · reduce_i · h)[w - c_i]                     w in tail i

The loss computes a tail only on the rows whose target lies in it, so no (rows × V) array exists.
"""
import chainer
import chainer.functions as F
import numpy as np
from chainer import backend

from interpretable_adv.errors import UserError
from interpretable_adv.nn import functions, products
from lm.softmax import host_targets, softmax_layer

DEFAULT_CUTOFF = (2000, 10000)


def default_cutoff(n_vocab):
    """Upstream's 2000 and 10000; a vocabulary that these do not fit gets a single tail.

    That tail begins at 2000, or in the middle of a vocabulary of less than 4000 words.
    """
    if n_vocab > DEFAULT_CUTOFF[-1]:
        return DEFAULT_CUTOFF
    return (max(1, min(DEFAULT_CUTOFF[0], n_vocab // 2)),)


class AdaptiveSoftmax(chainer.Link):
    """The output layer with upstream's parameters.

    `head` is `(c_1 + n_tails, n_units)`, `reduceI` `(n_units // reduce_k**I, n_units)` and
    `tailI` `(c_{I+1} - c_I, n_units // reduce_k**I)` for I = 1, 2, …; `cutoff` (persistent,
    float32) holds `0, c_1, …, V`. There are no biases.

    Args:
        n_units: size of the hidden rows.
        n_vocab: number of words V.
        cutoff: `c_1, c_2, …`, increasing, between 1 and V - 1; None chooses by the size of the
            vocabulary.
        reduce_k: each tail has this many times fewer units than the one before.
    """

    def __init__(self, n_units, n_vocab, cutoff=None, reduce_k=4):
        super().__init__()
        cutoff = default_cutoff(n_vocab) if cutoff is None else cutoff
        self.bounds = (0, *(int(c) for c in cutoff), int(n_vocab))
        if len(self.bounds) < 3 or any(a >= b for a, b in zip(self.bounds, self.bounds[1:])):
            raise UserError(f'cutoffs {",".join(str(c) for c in cutoff)}: give increasing numbers '
                            f'from 1 to {n_vocab - 1}, the vocabulary has {n_vocab} words')
        self.add_persistent('cutoff', np.array(self.bounds, np.float32))
        with self.init_scope():
            self.head = _parameter(self.bounds[1] + self.n_tails, n_units)
            for i in range(1, self.n_tails + 1):
                units = max(1, n_units // reduce_k ** i)
                setattr(self, f'reduce{i}', _parameter(units, n_units))
                setattr(self, f'tail{i}', _parameter(self.bounds[i + 1] - self.bounds[i], units))

    @property
    def n_tails(self):
        return len(self.bounds) - 2

    @property
    def n_vocab(self):
        return self.bounds[-1]

    def serialize(self, serializer):
        super().serialize(serializer)
        self.bounds = tuple(int(c) for c in backend.CpuDevice().send(self.cutoff))

    def forward(self, hidden, targets):
        """Negative log-likelihood of each row's target.

        Args:
            hidden: `(N, n_units)`.
            targets: `(N,)` word ids; on the host, to save a round trip.

        Returns:
            `-log p(target)`, a Variable `(N,)`.
        """
        return _AdaptiveSoftmax(self.bounds, host_targets(targets, self.n_vocab)).apply(
            (hidden, self.head, *(p for tail in self._tails() for p in tail)))[0]

    def log_probabilities(self, hidden):
        """`log p(w)` of all words, a Variable `(N, V)`: for inspection, not for training."""
        head = functions.log_softmax(functions.linear(hidden, self.head))
        first = self.bounds[1]
        clusters = [head[:, :first]]
        for i, (reduce, tail) in enumerate(self._tails()):
            inside = functions.log_softmax(
                functions.linear(functions.linear(hidden, reduce), tail))
            clusters.append(inside + F.broadcast_to(head[:, first + i:first + i + 1], inside.shape))
        return F.concat(clusters, axis=1)

    def _tails(self):
        return [(getattr(self, f'reduce{i}'), getattr(self, f'tail{i}'))
                for i in range(1, self.n_tails + 1)]


class _AdaptiveSoftmax(chainer.FunctionNode):
    """Inputs: hidden, head, reduce1, tail1, reduce2, tail2, …; output: `-log p(target)`, (N,)."""

    def __init__(self, bounds, targets):
        super().__init__()
        self.bounds, self.targets = bounds, targets

    def forward(self, inputs):
        xp = backend.get_array_module(*inputs)
        hidden, head = inputs[:2]
        self.inputs_kept = inputs
        first = self.bounds[1]
        # Targets are on the host, so rows are dealt out to clusters without asking the device.
        cluster = np.searchsorted(self.bounds, self.targets, side='right') - 1
        self.head_nll = softmax_layer(
            hidden, head, None, np.where(cluster == 0, self.targets, first + cluster - 1))
        result = self.head_nll.forward()
        self.tails = []
        for i in range(1, len(self.bounds) - 1):
            rows = np.flatnonzero(cluster == i)
            if len(rows) == 0:
                self.tails.append(None)
                continue
            reduce, tail = inputs[2 * i:2 * i + 2]
            device_rows = xp.asarray(rows)
            chosen = hidden[device_rows]
            nll = softmax_layer(products.product(chosen, reduce, transpose_b=True), tail, None,
                                self.targets[rows] - self.bounds[i])
            result[device_rows] += nll.forward()
            self.tails.append((device_rows, chosen, nll))
        return result,

    def backward(self, indexes, grad_outputs):
        gradient = grad_outputs[0].array
        xp = backend.get_array_module(gradient)
        weights = indexes != (0,)  # an attack wants the gradient of hidden alone
        g_hidden, g_head, _ = self.head_nll.backward(gradient, weights)
        gradients = [g_hidden, g_head]
        for i, kept in enumerate(self.tails, start=1):
            reduce, tail = self.inputs_kept[2 * i:2 * i + 2]
            if kept is None:  # no target in this tail: its parameters have no part in the loss
                gradients += [xp.zeros_like(reduce), xp.zeros_like(tail)] if weights else []
                continue
            rows, chosen, nll = kept
            g_reduced, g_tail, _ = nll.backward(gradient[rows], weights)
            if weights:
                gradients += [products.product(g_reduced, chosen, transpose_a=True), g_tail]
            g_hidden[rows] += products.product(g_reduced, reduce)  # rows are distinct
        return tuple(chainer.Variable(gradients[index]) for index in indexes)


def _parameter(*shape):
    # Chainer's default initialiser draws here, which keeps upstream's random stream.
    return chainer.Parameter(chainer.initializers.LeCunNormal(), shape)
