"""The LSTM over reviews of different lengths, with NStepLSTM's parameters.

On a CPU each layer is one function node over a *packed* batch: reviews sorted from long to
short, their words laid out time step by time step, so that step `t` owns the rows
`offsets[t]:offsets[t + 1]`, of which row `r` always belongs to the r-th longest review. One
large product projects all inputs before the recurrence starts and one makes the weights'
gradients after it ended; only the recurrent product runs step by step. On a GPU, and for
other types than float32, Chainer's own `NStepLSTM` (cuDNN) does the work.
"""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
from chainer import function_node

from interpretable_adv.nn import kernels, products
from interpretable_adv.nn.dropout import dropout

# NStepLSTM numbers its weights i, f, c, o (0-3 for the input, 4-7 recurrent). Here the three
# sigmoid gates are side by side: i, f, o, c.
GATES = (0, 1, 3, 2)
SCALES = np.float32([0.5, 0.5, 0.5, 1])


class LSTM(L.NStepLSTM):
    """`NStepLSTM` that takes reviews concatenated into one array.

    Parameters, their names and their initialisation are those of `chainer.links.NStepLSTM`.
    """

    def forward(self, x, lengths, hx=None, cx=None, outputs=True):
        """Runs all layers over a batch.

        Between layers there is dropout when `chainer.config.train`, drawn from NumPy's global
        stream as `NStepLSTM` draws it: per layer and step, reviews sorted from long to short.

        Args:
            x: `(sum(lengths), in_size)`, the reviews one after another.
            lengths: words per review, a sequence of positive ints on the host.
            hx, cx: initial states `(n_layers, len(lengths), out_size)`; zero when None.
            outputs: whether the top layer's outputs at all words are wanted.

        Returns:
            `hy, cy, ys`: final states `(n_layers, len(lengths), out_size)`, and the outputs
            `(sum(lengths), out_size)` in the order of `x`, or None without `outputs`.
        """
        x = chainer.as_variable(x)
        lengths = np.asarray(lengths, dtype=np.int64)
        if lengths.ndim != 1 or not len(lengths) or lengths.min() < 1:
            raise ValueError('lengths must be a non-empty sequence of positive numbers')
        if lengths.sum() != len(x):
            raise ValueError(f'lengths add up to {lengths.sum()}, but x has {len(x)} rows')
        if not self._on_cpu(x):
            xs = F.split_axis(x, np.cumsum(lengths)[:-1], axis=0)
            hy, cy, ys = super().forward(hx, cx, xs)
            return hy, cy, F.concat(ys, axis=0) if outputs else None

        packing = Packing(lengths)
        hx = [None] * self.n_layers if hx is None else F.separate(hx)
        cx = [None] * self.n_layers if cx is None else F.separate(cx)
        zeros = np.zeros((len(lengths), self.out_size), np.float32)
        below, final_h, final_c = take_rows(x, packing.rows), [], []
        for h, c, w, b in zip(hx, cx, self.ws, self.bs):
            if final_h:
                below = dropout(below, self.dropout)
            below, h, c = Layer(packing).apply((
                below,
                zeros if h is None else take_rows(h, packing.order),
                zeros if c is None else take_rows(c, packing.order),
                *w, *b))
            final_h.append(take_rows(h, packing.inverse_order))
            final_c.append(take_rows(c, packing.inverse_order))
        ys = take_rows(below, packing.inverse_rows) if outputs else None
        return F.stack(final_h), F.stack(final_c), ys

    def _on_cpu(self, x):
        return all(isinstance(array, np.ndarray) and array.dtype == np.float32
                   for array in (x.array, self.ws[0][0].array))


class Packing:
    """How a batch of the given lengths lies in memory, longest review first.

    Attributes:
        order: `(B,)`, the reviews from long to short.
        offsets: `(T + 1,)`, the first packed row of each time step, and the number of rows.
        rows: `(N,)`, packed row → row of the concatenated reviews.
        previous: `(N - B,)`, packed row `B + i` → packed row of the same review one step before.
        last: `(B,)`, the packed row of each sorted review's last word.
        inverse_order, inverse_rows: the permutations back.
    """

    def __init__(self, lengths):
        self.order = longest_first(lengths)
        descending = lengths[self.order]
        steps, reviews = np.nonzero(np.arange(descending[0])[:, None] < descending)
        self.offsets = np.searchsorted(steps, np.arange(descending[0] + 1)).astype(np.int64)
        starts = np.cumsum(lengths) - lengths
        self.rows = starts[self.order][reviews] + steps
        self.previous = self.offsets[steps[len(lengths):] - 1] + reviews[len(lengths):]
        self.last = self.offsets[descending - 1] + np.arange(len(lengths))
        self.inverse_order = np.argsort(self.order)
        self.inverse_rows = np.empty_like(self.rows)
        self.inverse_rows[self.rows] = np.arange(len(self.rows))


SMALL = 15  # a part of at most one element more is sorted by insertion


def longest_first(lengths):
    """The order in which `NStepLSTM` sorts reviews: by falling length.

    It calls `numpy.argsort`, which leaves open how equal lengths are ordered; yet that order
    decides which dropout masks they meet between layers, and in which order gradients add up.
    NumPy's own order depends on its version and on the processor. This is the one of its scalar
    code, which upstream's recorded numbers have: quicksort by the median of three, insertion for
    small parts.
    """
    keys, order = [-int(length) for length in lengths], list(range(len(lengths)))
    depth = 2 * (max(len(order), 1).bit_length() - 1)
    parts = [(0, len(order) - 1, depth)]
    while parts:
        low, high, depth = parts.pop()
        while high - low > SMALL:
            if depth < 0:  # NumPy changes to heapsort here; real batches do not come this far
                order[low:high + 1] = sorted(order[low:high + 1], key=keys.__getitem__)
                low = high
                break
            middle = _partition(keys, order, low, high)
            depth -= 1
            if middle - low < high - middle:
                parts.append((middle + 1, high, depth))
                high = middle - 1
            else:
                parts.append((low, middle - 1, depth))
                low = middle + 1
        order[low:high + 1] = sorted(order[low:high + 1], key=keys.__getitem__)  # which is stable
    return np.array(order, np.int64)


def _partition(keys, order, low, high):
    """Puts the median of three in its place, smaller keys before and larger ones behind it;
    returns that place."""
    def swap(a, b):
        order[a], order[b] = order[b], order[a]

    def key(place):
        return keys[order[place]]

    middle = low + (high - low) // 2
    for first, second in ((low, middle), (middle, high), (low, middle)):
        if key(second) < key(first):
            swap(first, second)
    pivot, left, right = key(middle), low, high - 1
    swap(middle, right)
    while True:
        left += 1
        while key(left) < pivot:
            left += 1
        right -= 1
        while pivot < key(right):
            right -= 1
        if left >= right:
            break
        swap(left, right)
    swap(left, high - 1)
    return left


class TakeRows(function_node.FunctionNode):
    """`y = x[rows]` for a permutation `rows`; so the gradient needs no addition."""

    def __init__(self, rows):
        self.rows = rows

    def forward(self, inputs):
        return inputs[0].take(self.rows, axis=0),

    def backward(self, indexes, grad_outputs):
        inverse = np.empty_like(self.rows)
        inverse[self.rows] = np.arange(len(inverse))
        return TakeRows(inverse).apply(grad_outputs)


def take_rows(x, rows):
    """The rows of `x` in the order of the permutation `rows`."""
    return TakeRows(rows).apply((x,))[0]


class Layer(function_node.FunctionNode):
    """One LSTM layer over a packed batch of N words in B reviews.

    With `z = W x + U h' + b` for each gate, `h'`, `c'` the state one word before:
    `c = sigmoid(z_f) c' + sigmoid(z_i) tanh(z_c)` and `h = sigmoid(z_o) tanh(c)`.

    Inputs: x `(N, D)`, initial h and c `(B, H)` in sorted order, w0..w7, b0..b7.
    Outputs: h of all words `(N, H)`, final h and c `(B, H)`.

    Backward gives only the gradients that are asked for: the first step of adversarial
    training wants that of x alone, which saves the weights' products. It cannot itself be
    differentiated.
    """

    def __init__(self, packing):
        self.packing = packing

    def forward(self, inputs):
        x, h0, c0 = inputs[:3]
        input_weights = np.concatenate([inputs[3 + gate] for gate in GATES])
        recurrent_weights = [inputs[7 + gate] for gate in GATES]
        bias = np.concatenate([inputs[11 + gate] + inputs[15 + gate] for gate in GATES])
        # sigmoid(z) = tanh(z / 2) / 2 + 1/2: the inner half moves into the weights (exactly,
        # being a power of two), so that one function serves all four gates.
        scale = np.repeat(SCALES, h0.shape[1])
        gates = products.product(x, input_weights * scale[:, None], transpose_b=True)
        run = kernels.lstm_forward if kernels.available else forward_steps
        cells, tanh_cells, hidden = run(
            gates, bias * scale, recurrent_weights, h0, c0, self.packing.offsets)
        self.saved = gates, cells, tanh_cells, hidden, input_weights, recurrent_weights
        self.retain_inputs((0, 1, 2))
        last = self.packing.last
        return hidden, hidden[last], cells[last]

    def backward(self, indexes, grad_outputs):
        x, h0, c0 = (variable.array for variable in self.get_retained_inputs())
        gates, cells, tanh_cells, hidden, input_weights, recurrent_weights = self.saved
        grad_hidden, grad_h, grad_c = (
            None if g is None else np.ascontiguousarray(g.array) for g in grad_outputs)
        run = kernels.lstm_backward if kernels.available else backward_steps
        grad_gates, grad_h0, grad_c0 = run(
            gates, cells, tanh_cells, recurrent_weights, c0,
            grad_hidden, grad_h, grad_c, self.packing.offsets)

        wanted = set(indexes)
        gradients = {1: grad_h0, 2: grad_c0}
        if 0 in wanted:
            gradients[0] = products.product(grad_gates, input_weights)
        if wanted & set(range(3, 7)):
            parts = np.split(products.product(grad_gates, x, transpose_a=True), 4)
            gradients.update((3 + gate, part) for gate, part in zip(GATES, parts))
        if wanted & set(range(7, 11)):
            previous = np.empty_like(hidden)
            previous[:len(h0)] = h0
            np.take(hidden, self.packing.previous, axis=0, out=previous[len(h0):], mode='clip')
            parts = np.split(products.product(grad_gates, previous, transpose_a=True), 4)
            gradients.update((7 + gate, part) for gate, part in zip(GATES, parts))
        if wanted & set(range(11, 19)):
            sums = np.split(_column_sums(grad_gates), 4)
            gradients.update((11 + gate, total) for gate, total in zip(GATES, sums))
            # Equal, but never the same array: gradient clipping scales each one in place.
            gradients.update((15 + gate, total.copy()) for gate, total in zip(GATES, sums))
        return tuple(chainer.Variable(gradients[index]) for index in indexes)


def _column_sums(gradient):
    if kernels.available:
        return kernels.column_sums(gradient)
    return np.ones(len(gradient), np.float32).dot(gradient)


def forward_steps(gates, bias, weights, h0, c0, offsets):
    """The recurrence, on NumPy; `kernels.lstm_forward` does the same.

    Args:
        gates: `(N, 4H)`, columns i, f, o, c: the projected inputs, those of the sigmoids
            halved. Overwritten by the gates' activations.
        bias: `(4H,)`, those of the sigmoids halved.
        weights: recurrent weights of i, f, o, c, each `(H, H)`, none halved.
        h0, c0: `(B, H)`, initial states in sorted order.
        offsets: `(T + 1,)`, see `Packing`.

    Returns:
        cells, tanh(cells), hidden states, each `(N, H)`.
    """
    units = h0.shape[1]
    weights = np.concatenate([w * scale for w, scale in zip(weights, SCALES)]).T
    cells, tanh_cells, hidden = (np.empty((len(gates), units), np.float32) for _ in range(3))
    product_buffer, state_buffer = (np.empty((len(h0), n), np.float32) for n in (4 * units, units))
    gates += bias
    h, c = h0, c0
    for start, stop in zip(offsets[:-1].tolist(), offsets[1:].tolist()):
        n = stop - start
        gate, product, state = gates[start:stop], product_buffer[:n], state_buffer[:n]
        gate += np.dot(h[:n], weights, out=product)
        sigmoid_of_double(gate, out=gate)
        i, f, o, g = (gate[:, k * units:(k + 1) * units] for k in range(4))
        g *= 2  # tanh(z) = 2 sigmoid(2z) - 1
        g -= 1
        new_c, new_tanh, new_h = (array[start:stop] for array in (cells, tanh_cells, hidden))
        np.multiply(f, c[:n], out=new_c)
        new_c += np.multiply(i, g, out=state)
        sigmoid_of_double(new_c, out=new_tanh)
        new_tanh *= 2
        new_tanh -= 1
        np.multiply(o, new_tanh, out=new_h)
        h, c = new_h, new_c
    return cells, tanh_cells, hidden


def sigmoid_of_double(x, out):
    """`1 / (1 + exp(-2x))`, in half the time that NumPy's tanh takes."""
    np.multiply(x, np.float32(-2), out=out)
    with np.errstate(over='ignore'):  # exp may be infinite: the result is 0 then
        np.exp(out, out=out)
    out += 1
    np.divide(np.float32(1), out, out=out)


def backward_steps(gates, cells, tanh_cells, weights, c0, grad_hidden, grad_h, grad_c, offsets):
    """The recurrence's gradient, on NumPy; `kernels.lstm_backward` does the same.

    Args:
        gates: `(N, 4H)`, activations of i, f, o, c.
        cells, tanh_cells: `(N, H)`, as `forward_steps` returned them.
        weights: recurrent weights of i, f, o, c, each `(H, H)`.
        c0: `(B, H)`, initial cells.
        grad_hidden: `(N, H)` or None; grad_h, grad_c: `(B, H)` or None: gradients of the
            outputs, of the final states.

    Returns:
        Gradients of the gates before activation `(N, 4H)`, of h0 and c0 `(B, H)`.
    """
    units, weights = c0.shape[1], np.concatenate(weights)
    grad_gates = np.empty_like(gates)
    # Rows of reviews that have not begun yet, counted from the end, hold their final gradient.
    dh, dc = (np.zeros_like(c0) if g is None else g.copy() for g in (grad_h, grad_c))
    buffer, one = np.empty_like(c0), np.float32(1)
    for t in reversed(range(len(offsets) - 1)):
        start, stop = offsets[t], offsets[t + 1]
        n = stop - start
        h, c, product = dh[:n], dc[:n], buffer[:n]
        if grad_hidden is not None:
            h += grad_hidden[start:stop]
        gate, grad, tanh_cell = gates[start:stop], grad_gates[start:stop], tanh_cells[start:stop]
        i, f, o, g = (gate[:, k * units:(k + 1) * units] for k in range(4))
        grad_i, grad_f, grad_o, grad_g = (grad[:, k * units:(k + 1) * units] for k in range(4))
        previous = cells[offsets[t - 1]:][:n] if t else c0
        # s (1 - s) for the sigmoids, 1 - g² for the tanh, then times what reaches each gate.
        sigmoids = gate[:, :3 * units]
        np.subtract(one, sigmoids, out=grad[:, :3 * units])
        grad[:, :3 * units] *= sigmoids
        np.multiply(g, g, out=grad_g)
        np.subtract(one, grad_g, out=grad_g)
        grad_o *= np.multiply(h, tanh_cell, out=product)
        # dc += dh · o · (1 - tanh²(c))
        np.multiply(tanh_cell, tanh_cell, out=product)
        np.subtract(one, product, out=product)
        product *= h
        product *= o
        c += product
        grad_i *= np.multiply(c, g, out=product)
        grad_f *= np.multiply(c, previous, out=product)
        grad_g *= np.multiply(c, i, out=product)
        c *= f
        np.dot(grad, weights, out=h)
    return grad_gates, dh, dc
