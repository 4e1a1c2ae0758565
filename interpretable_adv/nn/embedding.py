"""Word embeddings whose gradient is kept as the rows that a batch touches.

A batch has some thousand words, the vocabulary nearly a hundred thousand; a gradient with all
rows is nearly all zeros, and writing, adding, clipping and reading those takes longer than the
LSTM. On a CPU, under `interpretable_adv.nn.adam.Adam`, only touched rows are kept. Whoever reads
the parameter's `grad` still gets the whole array.
"""
import chainer
import chainer.links as L
import numpy as np
from chainer import function_node
from chainer.functions.connection.embed_id import EmbedIDFunction

from interpretable_adv.nn import kernels


class EmbedID(L.EmbedID):
    """`chainer.links.EmbedID`, the same parameter and initialisation, with a fast gradient."""

    def __init__(self, in_size, out_size, initialW=None, ignore_label=None):  # noqa: N803
        super().__init__(in_size, out_size, initialW, ignore_label)
        with self.init_scope():
            self.W = RowParameter(self.W)

    def forward(self, x):
        """Rows of W: ids `(…)` → `(…, out_size)`."""
        weight = self.W
        if (self.ignore_label is not None or not isinstance(weight.array, np.ndarray)
                or weight.dtype != np.float32):
            return super().forward(x)
        if isinstance(weight, RowParameter) and weight.keeps_rows and weight.requires_grad:
            return TakeAndKeepRows(weight).apply((x, weight.anchor))[0]
        return Take().apply((x, weight))[0]


class RowParameter(chainer.Parameter):
    """A matrix whose gradient may consist of a part with all rows and of single rows.

    Attributes:
        keeps_rows: whether functions should add rows instead of a whole array. Its optimiser
            sets this if it can make use of it.
        anchor: an empty variable. A function that adds rows by itself is no function of the
            parameter to Chainer; but it needs an input that asks for a gradient.
    """

    keeps_rows = False

    def __init__(self, parameter):
        super().__init__(parameter.array, name=parameter.name)
        self.initializer = parameter.initializer
        self._grad = parameter._grad  # NaN until something is known, as Chainer has it
        self.anchor = chainer.Variable(np.empty(0, np.float32))
        self._pieces = []  # (ids (n,), rows (n, D)), ids not unique
        self._summed = False  # there is one piece, of ascending unique ids

    def add_rows(self, ids, rows):
        """Adds `rows` `(n, D)` to the gradient's rows `ids` `(n,)`."""
        self._pieces.append((np.asarray(ids, np.int64), rows))
        self._summed = False

    def row_gradient(self):
        """The gradient as ascending ids and their rows `(ids, rows)`; None if there is a part
        with all rows, or no gradient at all. Changing the rows changes the gradient."""
        if not self._pieces or self._grad is not None or self._grad_var is not None:
            return None
        if not self._summed:
            self._pieces, self._summed = [sum_rows(self._pieces)], True
        return self._pieces[0]

    def _take_up_rows(self):
        """Turns the single rows into a part with all rows."""
        if self._pieces:
            pieces, self._pieces = self._pieces, []
            whole = super()._get_grad()
            whole = np.zeros_like(self.array) if whole is None else whole.copy()
            ids, rows = sum_rows(pieces)
            whole[ids] += rows
            self._set_grad_without_check(whole)

    def _get_grad(self):
        self._take_up_rows()
        return super()._get_grad()

    def _ensure_grad_var_up_to_date(self):
        self._take_up_rows()
        super()._ensure_grad_var_up_to_date()

    def cleargrad(self):
        self._pieces = []
        super().cleargrad()

    def zerograd(self):
        self._pieces = []
        super().zerograd()

    def __copy__(self):  # of which the copy is a plain parameter
        self._take_up_rows()
        return super().__copy__()

    def __reduce__(self):
        self._take_up_rows()
        return super().__reduce__()


class Take(EmbedIDFunction):
    """`weight[ids]`. The gradient has all rows; it can be differentiated again."""

    def forward(self, inputs):
        self.retain_inputs((0,))
        ids, weight = inputs
        self._w_shape = weight.shape
        return weight.take(ids, axis=0),

    def backward(self, indexes, grad_outputs):
        if chainer.config.enable_backprop:
            return super().backward(indexes, grad_outputs)
        ids = self.get_retained_inputs()[0].array
        gradient = np.zeros(self._w_shape, np.float32)
        ids, rows = sum_rows([_flatten(ids, grad_outputs[0].array, self._w_shape)])
        gradient[ids] = rows
        return None, chainer.Variable(gradient)


class TakeAndKeepRows(function_node.FunctionNode):
    """`weight[ids]` that hands the gradient's rows to the parameter. Inputs: ids, the anchor."""

    def __init__(self, weight):
        self.weight = weight

    def forward(self, inputs):
        self.retain_inputs((0,))
        return self.weight.array.take(inputs[0], axis=0),

    def backward(self, indexes, grad_outputs):
        ids = self.get_retained_inputs()[0].array
        self.weight.add_rows(*_flatten(ids, grad_outputs[0].array, self.weight.shape))
        return None, None


def _flatten(ids, gradient, shape):
    ids = ids.ravel().astype(np.int64)
    ids[ids < 0] += shape[0]
    return ids, np.ascontiguousarray(gradient.reshape(len(ids), shape[1]))


def sum_rows(pieces):
    """Adds up rows of the same id, in the order in which they come.

    Args:
        pieces: list of `(ids, rows)`, `(n,)` int64 and `(n, D)` float32 C-contiguous.

    Returns:
        `(ids, rows)` with ids ascending and unique.
    """
    all_ids = np.concatenate([ids for ids, _ in pieces])
    order = np.argsort(all_ids, kind='stable')
    all_ids = all_ids[order]
    starts = np.flatnonzero(np.diff(all_ids, prepend=-1))
    if kernels.available:
        sums = kernels.segment_sum([rows for _, rows in pieces], order,
                                   np.append(starts, len(order)))
    else:
        sums = np.concatenate([rows for _, rows in pieces])[order]
        sums = np.add.reduceat(sums, starts, axis=0) if len(starts) else sums
    return all_ids[starts], sums
