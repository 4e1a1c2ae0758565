"""The C kernels, where they have been built; a thin layer of ctypes over `kernels.h`.

`python setup.py build_ext --inplace` builds them, and so does installing the package; both
work without a compiler, too. Then `available` is False, the callers use NumPy, and
`describe()` says so. All arrays are float32 and C-contiguous; indices are int64.
"""
import ctypes
import importlib.machinery
import math
import os
import pathlib

import numpy as np

_pointer = ctypes.c_void_p


class _LSTMForward(ctypes.Structure):
    _fields_ = [('weights', _pointer * 4)] + [(name, _pointer) for name in (
        'packed', 'bias', 'gates', 'cells', 'tanh_cells', 'hidden', 'h0', 'c0', 'offsets')] + [
        ('steps', ctypes.c_int64), ('units', ctypes.c_int64)]


class _LSTMBackward(ctypes.Structure):
    _fields_ = [('weights', _pointer * 4)] + [(name, _pointer) for name in (
        'packed', 'gates', 'cells', 'tanh_cells', 'c0', 'grad_hidden', 'grad_gates',
        'grad_h', 'grad_c', 'offsets')] + [
        ('steps', ctypes.c_int64), ('units', ctypes.c_int64)]


class _Adam(ctypes.Structure):
    _fields_ = [(name, _pointer) for name in (
        'parameter', 'm', 'v', 'gradient', 'row_ids', 'active')] + [
        (name, ctypes.c_int64) for name in ('rows', 'columns', 'touched')] + [
        (name, ctypes.c_float) for name in (
            'one_minus_beta1', 'one_minus_beta2', 'alpha', 'epsilon', 'eta')]


class _SquareSum(ctypes.Structure):
    _fields_ = [('values', _pointer), ('block_sums', _pointer), ('count', ctypes.c_int64)]


class _SegmentSum(ctypes.Structure):
    _fields_ = [('rows', _pointer), ('starts', _pointer), ('sums', _pointer),
                ('segments', ctypes.c_int64), ('columns', ctypes.c_int64)]


class _TopK(ctypes.Structure):
    _fields_ = [(name, _pointer) for name in ('scores', 'best', 'ids', 'query_ids')] + [
        (name, ctypes.c_int64) for name in ('queries', 'columns', 'stride', 'first_id', 'k')]


class _Directions(ctypes.Structure):
    _fields_ = [(name, _pointer) for name in ('table', 'ids', 'neighbors', 'directions')] + [
        (name, ctypes.c_int64) for name in ('words', 'k', 'columns')] + [
        ('epsilon', ctypes.c_float)]


class _Dropout(ctypes.Structure):
    _fields_ = [('state', _pointer), ('mask', _pointer)] + [
        (name, ctypes.c_int64) for name in ('position', 'count', 'threshold')] + [
        ('scale', ctypes.c_float)]


SQUARE_SUM_BLOCK = 4096  # as in kernels.h


def _load():
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = pathlib.Path(__file__).with_name(f'_kernels{suffix}')
        if path.exists():
            try:
                library = ctypes.CDLL(str(path))
                library.kernels_argument_bytes.restype = ctypes.c_int64
                size = library.kernels_argument_bytes()
            except (OSError, AttributeError):  # built for another machine, or long ago
                continue
            if size != sum(map(ctypes.sizeof, (
                    _LSTMForward, _LSTMBackward, _Adam, _SquareSum, _SegmentSum, _TopK,
                    _Directions, _Dropout))):
                continue
            library.kernels_select.restype = ctypes.c_char_p
            library.kernels_select.argtypes = [ctypes.c_char_p]
            library.kernels_unit_multiple.restype = ctypes.c_int64
            return library
    return None


def _count_threads():
    """OMP_NUM_THREADS (of a nested list the first), otherwise the processors we may use."""
    wish = os.environ.get('OMP_NUM_THREADS', '').split(',')[0].strip()
    if wish.isdigit() and int(wish) > 0:
        return int(wish)
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on this system
        return os.cpu_count() or 1


def select(name=None):
    """Uses 'plain', 'avx2' or 'avx512' code from now on, None: the best that runs here. Returns
    whether this processor can."""
    global variant
    found = _library.kernels_select(None if name is None else name.encode())
    if found is not None:
        variant = found.decode()
    return found is not None


_library = _load()
available = _library is not None
threads = _count_threads()
variant = None
if available:
    select()


def describe():
    """One line about what the arithmetic runs on."""
    if not available:
        return 'C kernels: not built, NumPy is used (python setup.py build_ext --inplace)'
    return f'C kernels: {variant}, {threads} thread{"s" if threads > 1 else ""}'


def _address(array):
    return None if array is None else array.ctypes.data


def _run(function, arguments, parallel=True):
    function(ctypes.byref(arguments), threads if parallel else 1)


def unit_multiple():
    """What the hidden size given to the LSTM kernels must be a multiple of."""
    return _library.kernels_unit_multiple()


# Below this many hidden units a step is over before a second thread could help.
_PARALLEL_UNITS = 96
# The same for values of an array.
_PARALLEL_VALUES = 1 << 16


def _pad(array, groups, units):
    """`(rows, groups * H)` with zeros added to each group up to `units`, or the array itself."""
    if array is None or array.shape[-1] == groups * units:
        return None if array is None else np.ascontiguousarray(array)
    padded = np.zeros((len(array), groups, units), np.float32)
    padded[:, :, :array.shape[1] // groups] = array.reshape(len(array), groups, -1)
    return padded.reshape(len(array), groups * units)


def _unpad(array, groups, units):
    """Undoes `_pad` for `units` per group."""
    if array.shape[1] == groups * units:
        return array
    parts = array.reshape(len(array), groups, -1)[:, :, :units]
    return np.ascontiguousarray(parts).reshape(len(array), groups * units)


def _pad_weights(weights, units):
    size = len(weights[0])
    return [np.ascontiguousarray(np.pad(w, (0, units - size)) if size < units else w)
            for w in weights]


def lstm_forward(gates, bias, weights, h0, c0, offsets):
    """`lstm.forward_steps`, for any number of units: more, without weights, stay zero."""
    rows, own_units = len(gates), h0.shape[1]
    units = own_units + -own_units % unit_multiple()
    weights, own_gates = _pad_weights(weights, units), gates
    gates, bias = _pad(gates, 4, units), _pad(bias[None], 4, units)
    h0, c0 = _pad(h0, 1, units), _pad(c0, 1, units)
    cells, tanh_cells, hidden = (np.empty((rows, units), np.float32) for _ in range(3))
    packed = np.empty(4 * units * units, np.float32)
    _run(_library.kernels_lstm_forward, _LSTMForward(
        (_pointer * 4)(*map(_address, weights)),
        *map(_address, (packed, bias, gates, cells, tanh_cells, hidden, h0, c0, offsets)),
        len(offsets) - 1, units), units >= _PARALLEL_UNITS)
    if gates is not own_gates:
        own_gates[...] = _unpad(gates, 4, own_units)
    return tuple(_unpad(array, 1, own_units) for array in (cells, tanh_cells, hidden))


def lstm_backward(gates, cells, tanh_cells, weights, c0, grad_hidden, grad_h, grad_c, offsets):
    """`lstm.backward_steps`, for any number of units."""
    reviews, own_units = c0.shape
    units = own_units + -own_units % unit_multiple()
    weights, gates = _pad_weights(weights, units), _pad(gates, 4, units)
    cells, tanh_cells, c0, grad_hidden = (
        _pad(array, 1, units) for array in (cells, tanh_cells, c0, grad_hidden))
    # Rows of reviews that have not begun yet, counted from the end, hold their final gradient.
    dh, dc = (np.zeros((reviews, units), np.float32) for _ in range(2))
    for state, final in ((dh, grad_h), (dc, grad_c)):
        if final is not None:
            state[:, :own_units] = final
    grad_gates = np.empty_like(gates)
    packed = np.empty(4 * units * units, np.float32)
    _run(_library.kernels_lstm_backward, _LSTMBackward(
        (_pointer * 4)(*map(_address, weights)),
        *map(_address, (packed, gates, cells, tanh_cells, c0, grad_hidden, grad_gates,
                        dh, dc, offsets)),
        len(offsets) - 1, units), units >= _PARALLEL_UNITS)
    return (_unpad(grad_gates, 4, own_units), _unpad(dh, 1, own_units),
            _unpad(dc, 1, own_units))


def adam(parameter, m, v, gradient, one_minus_beta1, one_minus_beta2, alpha, epsilon, eta,
         row_ids=None, active=None):
    """One step of Adam in place, see `adam.c`; with `row_ids` the gradient has those rows only
    and `active` `(rows,)` uint8 says which rows have ever had one."""
    rows = len(parameter) if row_ids is not None else 1
    _run(_library.kernels_adam, _Adam(
        *map(_address, (parameter, m, v, gradient, row_ids, active)),
        rows, parameter.size // max(rows, 1), 0 if row_ids is None else len(row_ids),
        one_minus_beta1, one_minus_beta2, alpha, epsilon, eta),
        parameter.size >= _PARALLEL_VALUES)


def square_sum(values):
    """The sum of squares as a float."""
    sums = np.empty(-(-values.size // SQUARE_SUM_BLOCK))
    _run(_library.kernels_square_sum, _SquareSum(_address(values), _address(sums), values.size),
         values.size >= _PARALLEL_VALUES)
    return float(sums.sum())


def segment_sum(rows, starts, columns):
    """Sums of the rows at the given addresses.

    Args:
        rows: `(N,)` uintp, addresses of rows of `columns` floats, grouped by segment.
        starts: `(segments + 1,)`, where each segment begins in `rows`, and N.

    Returns:
        `(segments, columns)`.
    """
    sums = np.empty((len(starts) - 1, columns), np.float32)
    _run(_library.kernels_segment_sum,
         _SegmentSum(_address(rows), _address(starts), _address(sums), len(sums), columns),
         len(rows) * columns >= _PARALLEL_VALUES)
    return sums


def top_k(scores, best, ids, query_ids, first_id):
    """Takes a block of scores into the running `best` and `ids` `(queries, k)`.

    Args:
        scores: `(queries, columns)` of the ids from `first_id` on; its rows may be strided.
        query_ids: `(queries,)` int32, the id that each query must not find.
    """
    _run(_library.kernels_top_k, _TopK(
        *map(_address, (scores, best, ids, query_ids)),
        *scores.shape, scores.strides[0] // 4, first_id, best.shape[1]))


def directions(table, ids, neighbors, epsilon):
    """Unit vectors from words to their neighbours: `d / sqrt(epsilon + |d|²)`.

    Args:
        table: `(n_vocab, D)`.
        ids, neighbors: `(N,)` and `(N, K)`, from 0 to n_vocab - 1.

    Returns:
        `(N, K, D)`.
    """
    # The kernel reads wherever an id points to.
    for numbers in (ids, neighbors):
        if numbers.size and not 0 <= numbers.min() <= numbers.max() < len(table):
            raise IndexError(f'ids must be from 0 to {len(table) - 1}')
    ids, neighbors = (np.ascontiguousarray(a, np.int64) for a in (ids, neighbors))
    result = np.empty((*neighbors.shape, table.shape[1]), np.float32)
    _run(_library.kernels_directions, _Directions(
        *map(_address, (table, ids, neighbors, result)), *result.shape, epsilon),
        result.size >= _PARALLEL_VALUES)
    return result


def dropout_mask(shape, ratio):
    """`(np.random.rand(*shape) >= ratio) / (1 - ratio)`, float32, from the same random stream."""
    generator, state, position, *gauss = np.random.get_state()
    mask = np.empty(shape, np.float32)
    arguments = _Dropout(_address(state), _address(mask), position, mask.size,
                         math.ceil(ratio * 2 ** 53), 1 / (1 - ratio))
    _library.kernels_dropout(ctypes.byref(arguments))
    np.random.set_state((generator, state, arguments.position, *gauss))
    return mask
