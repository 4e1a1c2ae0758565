"""Cross-entropy of a linear softmax layer that never holds all words' scores at once.

A layer over V words turns N hidden rows into an (N, V) array, which for a language model is the
largest array of all. The functions here go through the words in blocks of columns instead. Where
everything fits into one block, its exponentials are kept for the backward pass; otherwise they
are computed again there.
"""
import chainer
import numpy as np
from chainer import backend

BLOCK_ELEMENTS = 1 << 24  # scores held at a time: 64 MB in float32


class SoftmaxNLL:
    """Negative log-likelihood of `softmax(hidden · weightᵀ + bias)`, and its gradients.

    Plain arrays in and out, NumPy or CuPy; a building block of the function nodes.

    Args:
        hidden: `(N, D)`.
        weight: `(V, D)`.
        bias: `(V,)` or None.
        targets: `(N,)` ints below V on the host.
        block_elements: how many scores may be held at a time.
    """

    def __init__(self, hidden, weight, bias, targets, block_elements=None):
        self.hidden, self.weight, self.bias, self.targets = hidden, weight, bias, targets
        columns = max(1, (block_elements or BLOCK_ELEMENTS) // max(1, len(hidden)))
        self.blocks = [slice(start, min(start + columns, len(weight)))
                       for start in range(0, len(weight), columns)]

    def forward(self):
        """Returns `-log softmax(...)[targets]`, shape `(N,)`."""
        xp = backend.get_array_module(self.hidden)
        rows = len(self.hidden)
        chosen = xp.empty(rows, self.hidden.dtype)
        for block in self.blocks:
            scores = self._scores(block)
            inside, columns = self._targets_in(block, xp)
            chosen[inside] = scores[inside, columns]
            block_peak = scores.max(axis=1)
            if block is self.blocks[0]:
                peak, total = block_peak, None
            else:
                new_peak = xp.maximum(peak, block_peak)
                total *= xp.exp(peak - new_peak)
                peak = new_peak
            scores -= peak[:, None]
            xp.exp(scores, out=scores)
            total = scores.sum(axis=1) if total is None else total + scores.sum(axis=1)
        self.exponentials = scores if len(self.blocks) == 1 else None
        self.total = total
        self.log_partition = peak + xp.log(total)
        return self.log_partition - chosen

    def backward(self, gradient):
        """Returns the gradients of hidden, weight and bias for that of the result, `(N,)`."""
        xp = backend.get_array_module(self.hidden)
        g_hidden = xp.zeros_like(self.hidden)
        g_weight = xp.empty_like(self.weight)
        g_bias = None if self.bias is None else xp.empty_like(self.bias)
        for block in self.blocks:
            if self.exponentials is not None:
                g_scores = self.exponentials * (gradient / self.total)[:, None]
            else:
                g_scores = self._scores(block)
                g_scores -= self.log_partition[:, None]
                xp.exp(g_scores, out=g_scores)
                g_scores *= gradient[:, None]
            inside, columns = self._targets_in(block, xp)
            g_scores[inside, columns] -= gradient[inside]
            g_hidden += g_scores.dot(self.weight[block])
            g_weight[block] = g_scores.T.dot(self.hidden)
            if g_bias is not None:
                g_bias[block] = g_scores.sum(axis=0)
        return g_hidden, g_weight, g_bias

    def _scores(self, block):
        scores = self.hidden.dot(self.weight[block].T)
        if self.bias is not None:
            scores += self.bias[block]
        return scores

    def _targets_in(self, block, xp):
        """Rows whose target lies in the block, and the target's column there."""
        if len(self.blocks) == 1:
            inside = np.arange(len(self.targets))
        else:
            inside = np.flatnonzero(
                (self.targets >= block.start) & (self.targets < block.stop))
        return xp.asarray(inside), xp.asarray(self.targets[inside] - block.start)


class _Softmax(chainer.FunctionNode):

    def __init__(self, targets):
        super().__init__()
        self.targets = targets

    def forward(self, inputs):
        hidden, weight = inputs[:2]
        bias = inputs[2] if len(inputs) == 3 else None
        self.nll = SoftmaxNLL(hidden, weight, bias, self.targets)
        return self.nll.forward(),

    def backward(self, indexes, grad_outputs):
        gradients = self.nll.backward(grad_outputs[0].array)
        return tuple(chainer.Variable(g) for g in gradients if g is not None)


def softmax_nll(hidden, targets, weight, bias=None):
    """Negative log-likelihood of each row's target under a softmax layer over all words.

    Args:
        hidden: `(N, D)`.
        targets: `(N,)` word ids; on the host, to save a round trip.
        weight, bias: `(V, D)` and `(V,)`.

    Returns:
        `-log softmax(hidden · weightᵀ + bias)[targets]`, a Variable `(N,)`.
    """
    targets = host_targets(targets, len(weight))
    inputs = (hidden, weight) if bias is None else (hidden, weight, bias)
    return _Softmax(targets).apply(inputs)[0]


def host_targets(targets, n_vocab):
    """The word ids as an int64 array on the host, checked to lie in `[0, n_vocab)`."""
    if isinstance(targets, chainer.Variable):
        targets = targets.array
    targets = backend.CpuDevice().send(targets).astype(np.int64).ravel()
    if len(targets) and not (0 <= targets.min() and targets.max() < n_vocab):
        raise ValueError(f'targets must lie in [0, {n_vocab}): '
                         f'got {targets.min()} to {targets.max()}')
    return targets
