"""Chainer's linear layer, softmax and cross entropy in the kernels' arithmetic.

On a GPU, for other types than float32, and without the kernels, Chainer's own functions run.
Gradients cannot be differentiated again where the kernels run.
"""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import function_node

from interpretable_adv.nn import kernels, products


class Linear(L.Linear):
    """`chainer.links.Linear`: the same parameters, in the same order from the random stream."""

    def forward(self, x):
        if self.W.array is None or not takes(x, self.W, self.b):
            return super().forward(x)
        return linear(x, self.W, self.b)


def takes(*variables):
    """Whether the kernels run and all variables (or None) are float32 on the host."""
    return kernels.takes(*(chainer.as_variable(v).array for v in variables if v is not None))


def linear(x, weight, bias=None):
    """`x · weightᵀ + bias` for a matrix x."""
    x = chainer.as_variable(x)
    if x.ndim != 2 or not takes(x, weight, bias):
        return F.linear(x, weight, bias)
    return _Linear().apply((x, weight) if bias is None else (x, weight, bias))[0]


def softmax_cross_entropy(scores, labels, reduce='mean'):
    """`chainer.functions.softmax_cross_entropy` of a matrix of scores.

    The loss of a row is `(max z + log Σ exp(z − max z)) − z_label`. Their mean is their sum, in
    the order of `lanes.h`, times 1 / number.

    Args:
        scores: `(N, classes)`.
        labels: `(N,)`, from 0 to classes − 1.
        reduce: 'mean', or 'no' for the loss of each row.
    """
    if reduce not in ('mean', 'no'):
        raise ValueError(f"reduce is 'mean' or 'no', not {reduce!r}")
    scores = chainer.as_variable(scores)
    if scores.ndim != 2 or not takes(scores):
        return F.softmax_cross_entropy(scores, labels, reduce=reduce)
    labels = labels.array if isinstance(labels, chainer.Variable) else np.asarray(labels)
    if labels.shape != scores.shape[:1]:
        raise ValueError(f'{scores.shape[0]} rows of scores, labels of shape {labels.shape}')
    if labels.size and not 0 <= labels.min() <= labels.max() < scores.shape[1]:
        raise ValueError(f'labels must be from 0 to {scores.shape[1] - 1}')
    losses = _SoftmaxCrossEntropy(labels).apply((scores,))[0]
    return mean(losses) if reduce == 'mean' else losses


def softmax(scores):
    """`chainer.functions.softmax` along the rows of a matrix."""
    scores = chainer.as_variable(scores)
    if scores.ndim != 2 or not takes(scores):
        return F.softmax(scores)
    return _Softmax().apply((scores,))[0]


def log_softmax(scores):
    """`chainer.functions.log_softmax` along the rows of a matrix."""
    scores = chainer.as_variable(scores)
    if scores.ndim != 2 or not takes(scores):
        return F.log_softmax(scores)
    return _LogSoftmax().apply((scores,))[0]


def total(x):
    """`chainer.functions.sum` of all elements."""
    x = chainer.as_variable(x)
    return _Total().apply((x,))[0] if takes(x) else F.sum(x)


def mean(x):
    """`chainer.functions.mean` of all elements."""
    x = chainer.as_variable(x)
    return total(x) * (1 / x.size) if takes(x) else F.mean(x)


def exponentials(scores, bias=None):
    """`exp(z − max z)` of each row of an array, `max z` and the sums; see `kernels.softmax`."""
    result = np.array(scores, order='C')
    return (result, *kernels.softmax(result, bias))


class _Linear(function_node.FunctionNode):

    def forward(self, inputs):
        self.retain_inputs((0, 1))
        result = products.product(inputs[0], inputs[1], transpose_b=True)
        if len(inputs) == 3:
            result += inputs[2]
        return result,

    def backward(self, indexes, grad_outputs):
        x, weight = (variable.array for variable in self.get_retained_inputs())
        gradient = np.ascontiguousarray(grad_outputs[0].array)
        makers = (lambda: products.product(gradient, weight),
                  lambda: products.product(gradient, x, transpose_a=True),
                  lambda: products.column_sums(gradient))
        return tuple(chainer.Variable(makers[index]()) for index in indexes)


class _SoftmaxCrossEntropy(function_node.FunctionNode):

    def __init__(self, labels):
        super().__init__()
        self.labels = labels

    def forward(self, inputs):
        scores, = inputs
        self.kept, peaks, self.totals = exponentials(scores)
        chosen = scores[np.arange(len(scores)), self.labels]
        return (peaks + kernels.log(self.totals)) - chosen,

    def backward(self, indexes, grad_outputs):
        gradient = self.kept / self.totals[:, None]
        gradient[np.arange(len(gradient)), self.labels] -= 1
        gradient *= grad_outputs[0].array[:, None]
        return chainer.Variable(gradient),


class _Softmax(function_node.FunctionNode):

    def forward(self, inputs):
        result, _, totals = exponentials(inputs[0])
        result /= totals[:, None]
        self.retain_outputs((0,))
        return result,

    def backward(self, indexes, grad_outputs):
        p, g = self.get_retained_outputs()[0].array, grad_outputs[0].array
        return chainer.Variable(p * (g - products.row_sums(p * g)[:, None])),


class _LogSoftmax(function_node.FunctionNode):

    def forward(self, inputs):
        self.kept, peaks, self.totals = exponentials(inputs[0])
        return inputs[0] - (peaks + kernels.log(self.totals))[:, None],

    def backward(self, indexes, grad_outputs):
        g = grad_outputs[0].array
        p = self.kept / self.totals[:, None]
        return chainer.Variable(g - p * products.row_sums(g)[:, None]),


class _Total(function_node.FunctionNode):

    def forward(self, inputs):
        self.shape = inputs[0].shape
        return np.asarray(products.total(inputs[0])),

    def backward(self, indexes, grad_outputs):
        return chainer.Variable(np.full(self.shape, grad_outputs[0].array, np.float32)),
