"""Cross-entropy of a linear softmax layer that never holds all words' scores at once.

A layer over V words turns N hidden rows into an (N, V) array, which for a language model is the
largest array of all. The functions here go through it in blocks: of rows where the C kernels run,
so that a row's result does not depend on the others, of words elsewhere. Where everything fits
into one block, its exponentials are kept for the backward pass; otherwise they are computed again
there.
"""
import chainer
import numpy as np
from chainer import backend

from interpretable_adv.nn import kernels

BLOCK_ELEMENTS = 1 << 24  # scores held at a time: 64 MB in float32
CACHE_ELEMENTS = 1 << 15  # scores worked on at a time on a CPU, so that they stay in its cache


def softmax_layer(hidden, weight, bias, targets, block_elements=None):
    """`KernelNLL` for float32 on the host, where there are kernels, otherwise `SoftmaxNLL`."""
    arrays = (hidden, weight) if bias is None else (hidden, weight, bias)
    layer = KernelNLL if kernels.takes(*arrays) else SoftmaxNLL
    return layer(hidden, weight, bias, targets, block_elements)


class SoftmaxNLL:
    """Negative log-likelihood of `softmax(hidden · weightᵀ + bias)`, and its gradients.

    Plain arrays in and out, NumPy or CuPy; a building block of the function nodes.

    With scores `z`, their row's maximum `m`, `e = exp(z − m)` and `s = Σ e`, the loss of a row is
    `m + log s − z_t` and its gradient with respect to z is `(e − s [t]) / s`. The division by s is
    left to the small arrays on either side of the products.

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
        chosen = xp.empty(len(self.hidden), self.hidden.dtype)
        log_partition = None
        for block in self.blocks:
            scores = self.hidden.dot(self.weight[block].T)
            inside, columns = self._targets_in(block, xp)
            chosen[inside] = scores[inside, columns]
            if self.bias is not None:
                chosen[inside] += self.bias[block][columns]
            peak, total = _exponentiate(scores, None if self.bias is None else self.bias[block])
            here = peak + xp.log(total)
            log_partition = here if log_partition is None else xp.logaddexp(log_partition, here)
        if len(self.blocks) == 1:
            scores[inside, columns] -= total
            self.kept = scores, total
        else:
            self.kept = None
        self.log_partition = log_partition
        return log_partition - chosen

    def backward(self, gradient, weights=True):
        """Returns the gradients of hidden, weight and bias for that of the result, `(N,)`.

        Args:
            weights: whether those of weight and bias are wanted; None instead of them if not.
        """
        if self.kept is not None:
            scores, total = self.kept
            return self._products(scores, self.weight, gradient / total, weights)
        xp = backend.get_array_module(self.hidden)
        g_hidden = xp.zeros_like(self.hidden)
        g_weight = xp.empty_like(self.weight) if weights else None
        g_bias = xp.empty_like(self.bias) if weights and self.bias is not None else None
        for block in self.blocks:
            scores = self.hidden.dot(self.weight[block].T)
            if self.bias is not None:
                scores += self.bias[block]
            scores -= self.log_partition[:, None]
            xp.exp(scores, out=scores)
            inside, columns = self._targets_in(block, xp)
            scores[inside, columns] -= 1
            parts = self._products(scores, self.weight[block], gradient, weights)
            g_hidden += parts[0]
            if g_weight is not None:
                g_weight[block] = parts[1]
            if g_bias is not None:
                g_bias[block] = parts[2]
        return g_hidden, g_weight, g_bias

    def _products(self, scores, weight, gradient, weights):
        """Gradients from `(rows, words)` derivatives that still lack the factor `gradient`."""
        g_hidden = scores.dot(weight)
        g_hidden *= gradient[:, None]
        if not weights:
            return g_hidden, None, None
        return (g_hidden, scores.T.dot(self.hidden * gradient[:, None]),
                None if self.bias is None else gradient.dot(scores))

    def _targets_in(self, block, xp):
        """Rows whose target lies in the block, and the target's column there."""
        if len(self.blocks) == 1:
            inside = np.arange(len(self.targets))
        else:
            inside = np.flatnonzero(
                (self.targets >= block.start) & (self.targets < block.stop))
        return xp.asarray(inside), xp.asarray(self.targets[inside] - block.start)


def _exponentiate(scores, bias):
    """Adds the bias and turns each row into `exp(z − max z)`, in place.

    Returns:
        `max z` and the sum of the exponentials, both `(rows,)`.
    """
    xp = backend.get_array_module(scores)
    peak, total = (xp.empty(len(scores), scores.dtype) for _ in range(2))
    rows = max(1, CACHE_ELEMENTS // scores.shape[1]) if xp is np else max(1, len(scores))
    for start in range(0, len(scores), rows):
        part = scores[start:start + rows]
        if bias is not None:
            part += bias
        part.max(axis=1, out=peak[start:start + rows])
        part -= peak[start:start + rows, None]
        xp.exp(part, out=part)
        part.sum(axis=1, out=total[start:start + rows])
    return peak, total


class KernelNLL:
    """As `SoftmaxNLL`, with the kernels: the same bits for any rows and any size of blocks.

    All sums over words are those of `kernels.softmax`, all sums over rows or units those of
    `kernels.product`, from the first row on. The gradient of hidden is
    `(e · weight) (g / s) − weight_t g`: in one sum, the large term of the target would spoil the
    small ones that follow.
    """

    def __init__(self, hidden, weight, bias, targets, block_elements=None):
        self.hidden, self.weight = np.ascontiguousarray(hidden), np.ascontiguousarray(weight)
        self.bias = None if bias is None else np.ascontiguousarray(bias)
        self.targets = targets
        rows = max(1, (block_elements or BLOCK_ELEMENTS) // max(1, len(weight)))
        self.blocks = [slice(start, min(start + rows, len(hidden)))
                       for start in range(0, len(hidden), rows)]

    def forward(self):
        result = np.empty(len(self.hidden), np.float32)
        self.kept = None
        for block in self.blocks:
            scores, total, result[block] = self._scores(block)
        if len(self.blocks) == 1:
            self.kept = scores, total
        return result

    def _scores(self, block):
        """Of a block's rows `e`, `s`, and the losses."""
        scores = kernels.product(self.hidden[block], self.weight, transpose_b=True)
        targets = self.targets[block]
        rows = np.arange(len(scores))
        chosen = scores[rows, targets]
        if self.bias is not None:
            chosen += self.bias[targets]
        peak, total = kernels.softmax(scores, self.bias)
        return scores, total, (peak + kernels.log(total)) - chosen

    def backward(self, gradient, weights=True):
        g_hidden = np.empty_like(self.hidden)
        g_weight = np.zeros_like(self.weight) if weights else None
        g_bias = (np.zeros((1, len(self.bias)), np.float32)
                  if weights and self.bias is not None else None)
        for block in self.blocks:
            scores, total = self.kept or self._scores(block)[:2]
            factors = (gradient[block] / total)[:, None]
            kernels.product(scores, self.weight, g_hidden[block])
            g_hidden[block] *= factors
            of_target = self.weight.take(self.targets[block], axis=0)
            of_target *= gradient[block, None]
            g_hidden[block] -= of_target
            if not weights:
                continue
            place = np.arange(len(scores)), self.targets[block]
            exponentials = scores[place]
            scores[place] -= total
            kernels.product(scores, self.hidden[block] * factors, g_weight, transpose_a=True,
                            accumulate=True)
            if g_bias is not None:
                kernels.product(np.ascontiguousarray(factors), scores, g_bias, transpose_a=True,
                                accumulate=True)
            scores[place] = exponentials  # as they were, for another call
        return g_hidden, g_weight, None if g_bias is None else g_bias[0]


class _Softmax(chainer.FunctionNode):

    def __init__(self, targets):
        super().__init__()
        self.targets = targets

    def forward(self, inputs):
        hidden, weight = inputs[:2]
        bias = inputs[2] if len(inputs) == 3 else None
        self.nll = softmax_layer(hidden, weight, bias, self.targets)
        return self.nll.forward(),

    def backward(self, indexes, grad_outputs):
        gradients = self.nll.backward(grad_outputs[0].array, weights=indexes != (0,))
        return tuple(chainer.Variable(gradients[index]) for index in indexes)


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
