"""Products and sums of arrays, to the same bits on every machine.

Float32 arrays on the host go to the C kernels, whose results docs/arithmetic.md defines. All
others, and all where there are no kernels, go to NumPy or CuPy.
"""
import numpy as np
from chainer import backend

from interpretable_adv.nn import kernels


def product(a, b, transpose_a=False, transpose_b=False, out=None):
    """The product of two matrices, or of their transposes.

    Args:
        a: `(rows, depth)`, with `transpose_a` `(depth, rows)`.
        b: `(depth, columns)`, with `transpose_b` `(columns, depth)`.
        out: C-contiguous `(rows, columns)`; None: a new array.
    """
    if kernels.takes(a, b):
        return kernels.product(_with_rows(a), _with_rows(b), out, transpose_a, transpose_b)
    xp = backend.get_array_module(a)
    return xp.dot(a.T if transpose_a else a, b.T if transpose_b else b, out=out)


def _with_rows(matrix):
    """The matrix itself, or a copy if its rows do not lie in one piece."""
    rows, columns = matrix.shape
    in_pieces = columns > 1 and matrix.strides[1] != 4 or (
        rows > 1 and (matrix.strides[0] % 4 or matrix.strides[0] < 4 * columns))
    return np.ascontiguousarray(matrix) if matrix.size and in_pieces else matrix


def column_sums(x):
    """The sum of each column: `(rows, columns) → (columns,)`."""
    if kernels.takes(x):
        return kernels.column_sums(_with_rows(x))
    return x.sum(axis=0)


def row_sums(x):
    """Sums along the last axis: `(…, columns) → (…)`."""
    if kernels.takes(x):
        return _sums_along_last(x, False)
    return x.sum(axis=-1)


def square_sums(x):
    """Sums of squares along the last axis: `(…, columns) → (…)`."""
    if kernels.takes(x):
        return _sums_along_last(x, True)
    return (x * x).sum(axis=-1)


def _sums_along_last(x, squares):
    rows = _with_rows(x.reshape(int(np.prod(x.shape[:-1])), x.shape[-1]))
    return kernels.row_sums(rows, squares).reshape(x.shape[:-1])


def total(x):
    """The sum of all elements, an array of shape `()`."""
    if kernels.takes(x):
        return kernels.row_sums(np.ascontiguousarray(x).reshape(1, -1))[0].reshape(())
    return x.sum()


def mean(x):
    """The mean of all elements, an array of shape `()`: their sum times 1 / number."""
    if kernels.takes(x):
        return np.asarray(total(x) * np.float32(1 / x.size))
    return x.mean()


def segment_totals(values, lengths):
    """Sums of `values` `(N,)` over consecutive runs: `(len(lengths),)`, none empty.

    Each sum is taken from its first value to its last.
    """
    lengths = np.asarray(lengths, np.int64)
    starts = np.cumsum(lengths) - lengths
    if kernels.takes(values):
        column = np.ascontiguousarray(values).reshape(-1, 1)
        return kernels.segment_sum(
            [column], np.arange(len(column)), np.append(starts, len(column)))[:, 0].copy()
    xp = backend.get_array_module(values)
    return xp.add.reduceat(values, xp.asarray(starts))


def dots(directions, vectors):
    """`u_ik · v_i`: `(N, K, D), (N, D) → (N, K)`."""
    if kernels.takes(directions, vectors):
        return kernels.dots(np.ascontiguousarray(directions), np.ascontiguousarray(vectors))
    return backend.get_array_module(vectors).matmul(directions, vectors[..., None])[..., 0]


def combine(weights, directions):
    """`sum_k weights_ik u_ik`: `(N, K), (N, K, D) → (N, D)`."""
    if kernels.takes(weights, directions):
        return kernels.combine(np.ascontiguousarray(weights), np.ascontiguousarray(directions))
    return backend.get_array_module(weights).matmul(weights[:, None], directions)[:, 0]
