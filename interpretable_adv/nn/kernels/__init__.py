"""The C kernels, where they have been built; a thin layer of ctypes over `kernels.h`.

`python setup.py build_ext --inplace` builds them, and so does installing the package; both
work without a compiler, too. Then `available` is False, the callers use NumPy, and
`describe()` says so. docs/arithmetic.md says what each kernel computes, to the bit.

INTERPRETABLE_ADV_KERNELS chooses a variant: plain, avx2 or avx512, or none for NumPy. With a value
that cannot be had, whoever asks for `available` or `variant` gets a `UserError`.

Every function checks what it passes on, and raises ValueError or IndexError: the C code
itself checks nothing. Arrays are float32 and C-contiguous where nothing else is said.
"""
import ctypes
import importlib.machinery
import math
import os
import pathlib
import threading

import numpy as np

from interpretable_adv.errors import UserError
from interpretable_adv.nn.kernels.structures import KERNELS, SQUARE_SUM_BLOCK, pointer

VARIABLE = 'INTERPRETABLE_ADV_KERNELS'
VARIANTS = ('plain', 'avx2', 'avx512')
HOW_TO_BUILD = 'python setup.py build_ext --inplace'


# Which code runs --------------------------------------------------------------------------

def _load():
    for suffix in importlib.machinery.EXTENSION_SUFFIXES:
        path = pathlib.Path(__file__).with_name(f'_kernels{suffix}')
        if path.exists():
            try:
                library = ctypes.CDLL(str(path))
                library.kernels_argument_bytes.restype = ctypes.c_int64
                size = library.kernels_argument_bytes()
                library.kernels_product_workspace.restype = ctypes.c_int64
            except (OSError, AttributeError):  # built for another machine, or long ago
                continue
            if size != sum(map(ctypes.sizeof, KERNELS.values())):
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
    return usable_processors()


def usable_processors():
    """How many processors this process may use."""
    try:
        return len(os.sched_getaffinity(0))
    except AttributeError:  # not on macOS
        return os.cpu_count() or 1


def select(name=None):
    """Uses 'plain', 'avx2' or 'avx512' code from now on; None: what the environment says, or
    else the best that runs here. Returns whether this processor can."""
    global variant
    name = name or _wish
    found = _library.kernels_select(name.encode() if name in VARIANTS else None)
    if found is not None:
        variant = found.decode()
    return found is not None


def _start():
    """Selects the variant that the environment wishes; returns what is wrong with the wish."""
    if _wish in ('', 'none'):
        if available:
            select()
    elif _wish not in VARIANTS:
        return f'{VARIABLE}={_wish}: there are {", ".join(VARIANTS)} and none'
    elif _library is None:
        return f'{VARIABLE}={_wish}: the C kernels are not built ({HOW_TO_BUILD})'
    elif not select():
        return f'{VARIABLE}={_wish}: this processor does not have it'
    return None


_wish = os.environ.get(VARIABLE, '').strip()
_library = _load()
available = _library is not None and _wish != 'none'
variant = None
threads = _count_threads()
_problem = _start()
if _problem:
    del available, variant  # so that __getattr__ is asked for them


def __getattr__(name):
    # Importing must not fail: a command reports errors in one line only once it runs.
    if name in ('available', 'variant'):
        raise UserError(_problem)
    raise AttributeError(f'module {__name__!r} has no attribute {name!r}')


def arithmetic():
    """Whose bits results have: of the 'kernels', the same everywhere, or of this 'numpy'."""
    return 'kernels' if _available() else 'numpy'


def describe():
    """One line about what the arithmetic runs on."""
    if _available():
        return f'C kernels: {variant}, {threads} thread{"s" if threads > 1 else ""}'
    if _wish == 'none':
        return f'C kernels: switched off by {VARIABLE}, NumPy is used'
    return f'C kernels: not built, NumPy is used ({HOW_TO_BUILD})'


def _available():
    if _problem:
        raise UserError(_problem)
    return available


def takes(*arrays):
    """Whether the kernels run and all arrays are float32 on the host."""
    return _available() and all(
        isinstance(array, np.ndarray) and array.dtype == np.float32 for array in arrays)


# Calling ----------------------------------------------------------------------------------

# Below this many hidden units a step is over before a second thread could help.
_PARALLEL_UNITS = 96
# The same for values of an array, and for products of two numbers.
_PARALLEL_VALUES = 1 << 16
_PARALLEL_PRODUCTS = 1 << 21


def _run(name, *fields, parallel):
    """Runs a kernel on addresses and numbers; returns its arguments as it left them."""
    if not _available():
        raise RuntimeError(describe())
    # `fields` keeps the arrays alive until the kernel returns.
    arguments = KERNELS[name](*(
        field.ctypes.data if isinstance(field, np.ndarray) else field for field in fields))
    getattr(_library, f'kernels_{name}')(ctypes.byref(arguments), threads if parallel else 1)
    return arguments


def _check(name, array, shape, dtype=np.float32, contiguous=True):
    """Raises ValueError unless the array is of this kind; None in a shape is any size."""
    if not isinstance(array, np.ndarray) or array.dtype != dtype:
        kind = getattr(array, 'dtype', type(array).__name__)
        raise ValueError(f'{name} must be a NumPy array of {np.dtype(dtype)}, not {kind}')
    if array.ndim != len(shape) or any(
            size not in (None, own) for size, own in zip(shape, array.shape)):
        raise ValueError(f'{name} must have the shape {shape}, not {array.shape}')
    if not array.flags.aligned:
        raise ValueError(f'{name} must be aligned')
    if contiguous and not array.flags.c_contiguous:
        raise ValueError(f'{name} must be C-contiguous')


def _check_out(name, array, shape, *inputs, dtype=np.float32, contiguous=True):
    """As `_check`, for an array that is written while `inputs` are still read."""
    _check(name, array, shape, dtype, contiguous)
    if not array.flags.writeable:
        raise ValueError(f'{name} must be writeable')
    if any(np.may_share_memory(array, other) for other in inputs if other is not None):
        raise ValueError(f'{name} must not share memory with the inputs')


def _row_stride(name, array):
    """Floats from one row of a matrix to the next."""
    rows, columns = array.shape
    if not array.size:
        return columns
    if columns > 1 and array.strides[1] != 4 or rows > 1 and (
            array.strides[0] % 4 or array.strides[0] < 4 * columns):
        raise ValueError(f'the rows of {name} must be contiguous')
    return array.strides[0] // 4 if rows > 1 else columns


def _check_ids(ids, limit):
    if ids.size and not 0 <= ids.min() <= ids.max() < limit:
        raise IndexError(f'ids must be from 0 to {limit - 1}')


def _check_starts(name, starts, count):
    """Raises IndexError unless starts rise from 0 to count."""
    _check(name, starts, (None,), np.int64)
    if not len(starts) or starts[0] != 0 or starts[-1] != count or (np.diff(starts) < 0).any():
        raise IndexError(f'{name} must rise from 0 to {count}')


# Products ---------------------------------------------------------------------------------

_workspaces = threading.local()


def _workspace(size):
    """The address of memory that is kept from call to call."""
    if getattr(_workspaces, 'array', None) is None or _workspaces.array.size < size:
        _workspaces.array = np.empty(size, np.float32)
        _workspaces.address = _workspaces.array.ctypes.data
    return _workspaces.address


def product(a, b, out=None, transpose_a=False, transpose_b=False, accumulate=False):
    """The product of two matrices, see `product.c`; rows may be apart from each other.

    Args:
        a: `(rows, depth)`, with `transpose_a` `(depth, rows)`.
        b: `(depth, columns)`, with `transpose_b` `(columns, depth)`.
        out: `(rows, columns)`; None: a new array.
        accumulate: whether the sums start at what `out` holds.
    """
    _check('a', a, (None, None), contiguous=False)
    _check('b', b, (None, None), contiguous=False)
    depth, rows = a.shape if transpose_a else a.shape[::-1]
    columns, b_depth = b.shape if transpose_b else b.shape[::-1]
    if depth != b_depth:
        raise ValueError(f'products over {depth} and {b_depth} numbers')
    if out is None:
        if accumulate:
            raise ValueError('accumulate needs out')
        out = np.empty((rows, columns), np.float32)
    else:
        _check_out('out', out, (rows, columns), a, b, contiguous=False)
    strides = _row_stride('a', a), _row_stride('b', b), _row_stride('out', out)
    if not out.size:
        return out
    parallel = rows * columns * max(depth, 1) >= _PARALLEL_PRODUCTS
    sizes = (rows, columns, depth, *strides, transpose_a, transpose_b, accumulate)
    need = _library.kernels_product_workspace(
        ctypes.byref(KERNELS['product'](None, None, None, None, *sizes)),
        threads if parallel else 1)
    _run('product', a, b, out, _workspace(need), *sizes, parallel=parallel)
    return out


# Functions of each element, and sums ------------------------------------------------------

def _elementwise(x, function):
    _check('x', x, (None,) * getattr(x, 'ndim', 0))
    result = np.empty_like(x)
    _run('elementwise', x, result, x.size, function, parallel=x.size >= _PARALLEL_VALUES)
    return result


def exp(x):
    return _elementwise(x, 0)


def log(x):
    return _elementwise(x, 1)


def tanh(x):
    return _elementwise(x, 2)


def sigmoid(x):
    return _elementwise(x, 3)


def softmax(scores, bias=None):
    """Turns scores `(rows, columns)` into `exp(z - max z)`, in place, with z = scores + bias.

    Returns:
        `max z` and the sum of the exponentials, both `(rows,)`.
    """
    _check_out('scores', scores, (None, None), bias)
    rows, columns = scores.shape
    if bias is not None:
        _check('bias', bias, (columns,))
    if not columns:
        raise ValueError('scores must have columns')
    peaks, totals = (np.empty(rows, np.float32) for _ in range(2))
    _run('softmax', scores, bias, peaks, totals, rows, columns,
         parallel=scores.size >= _PARALLEL_VALUES)
    return peaks, totals


def row_sums(values, squares=False):
    """The sum of each row of `(rows, columns)`, or of its squares: `(rows,)`."""
    _check('values', values, (None, None), contiguous=False)
    sums = np.empty(len(values), np.float32)
    _run('row_sums', values, sums, *values.shape, _row_stride('values', values), squares,
         parallel=values.size >= _PARALLEL_VALUES)
    return sums


def column_sums(values):
    """The sum of each column of `(rows, columns)`: `(columns,)`."""
    _check('values', values, (None, None), contiguous=False)
    sums = np.empty(values.shape[1], np.float32)
    _run('column_sums', values, sums, *values.shape, _row_stride('values', values),
         parallel=values.size >= _PARALLEL_VALUES)
    return sums


def square_sum(values):
    """The sum of the squares of an array of any shape, as a float."""
    _check('values', values, (None,) * getattr(values, 'ndim', 0))
    blocks = np.empty(-(-values.size // SQUARE_SUM_BLOCK))
    return _run('square_sum', values, blocks, values.size, 0.0,
                parallel=values.size >= _PARALLEL_VALUES).total


def segment_sum(pieces, order, starts):
    """Sums of rows that belong together, added in the given order.

    Args:
        pieces: arrays `(n, columns)`, whose rows are numbered from the first piece on.
        order: `(N,)` int64, the numbers of the rows, grouped by segment.
        starts: `(segments + 1,)` int64, where each segment begins in `order`, and N. No segment
            is empty.

    Returns:
        `(segments, columns)`.
    """
    if not pieces:
        raise ValueError('there must be at least one piece')
    columns = np.shape(pieces[0])[-1]
    for piece in pieces:
        _check('a piece', piece, (None, columns))
    addresses = np.concatenate([
        piece.ctypes.data + 4 * columns * np.arange(len(piece), dtype=np.uintp)
        for piece in pieces])
    _check('order', order, (None,), np.int64)
    _check_ids(order, len(addresses))
    _check_starts('starts', starts, len(order))
    if (np.diff(starts) == 0).any():
        raise IndexError('no segment may be empty')
    sums = np.empty((len(starts) - 1, columns), np.float32)
    _run('segment_sum', addresses[order], starts, sums, *sums.shape,
         parallel=len(order) * columns >= _PARALLEL_VALUES)
    return sums


# Perturbations ----------------------------------------------------------------------------

def dots(directions, vectors):
    """`u_ik · v_i`: `(N, K, D), (N, D) → (N, K)`."""
    _check('directions', directions, (None, None, None))
    words, k, columns = directions.shape
    _check('vectors', vectors, (words, columns))
    products = np.empty((words, k), np.float32)
    _run('dots', directions, vectors, products, words, k, columns,
         parallel=directions.size >= _PARALLEL_VALUES)
    return products


def combine(weights, directions):
    """`sum_k weights_ik u_ik`: `(N, K), (N, K, D) → (N, D)`."""
    _check('directions', directions, (None, None, None))
    words, k, columns = directions.shape
    _check('weights', weights, (words, k))
    sums = np.empty((words, columns), np.float32)
    _run('combine', weights, directions, sums, words, k, columns,
         parallel=directions.size >= _PARALLEL_VALUES)
    return sums


def directions(table, ids, neighbors, epsilon):
    """Unit vectors from words to their neighbours: `d / sqrt(epsilon + |d|²)`.

    Args:
        table: `(n_vocab, D)`.
        ids, neighbors: `(N,)` and `(N, K)`, from 0 to n_vocab - 1.

    Returns:
        `(N, K, D)`.
    """
    _check('table', table, (None, None))
    ids, neighbors = (np.ascontiguousarray(a, np.int64) for a in (ids, neighbors))
    _check('ids', ids, (None,), np.int64)
    _check('neighbors', neighbors, (len(ids), None), np.int64)
    for numbers in (ids, neighbors):
        _check_ids(numbers, len(table))
    result = np.empty((*neighbors.shape, table.shape[1]), np.float32)
    _run('directions', table, ids, neighbors, result, *result.shape, epsilon,
         parallel=result.size >= _PARALLEL_VALUES)
    return result


def top_k(scores, best, ids, query_ids, first_id):
    """Takes a block of scores into the running `best` and `ids` `(queries, k)`.

    Args:
        scores: `(queries, columns)` of the ids from `first_id` on; its rows may be strided.
        ids: int32.
        query_ids: `(queries,)` int32, the id that each query must not find.
    """
    _check('scores', scores, (None, None), contiguous=False)
    queries, columns = scores.shape
    _check_out('best', best, (queries, None), scores)
    k = best.shape[1]
    if not k:
        raise ValueError('k must be at least 1')
    _check_out('ids', ids, (queries, k), query_ids, dtype=np.int32)
    _check('query_ids', query_ids, (queries,), np.int32)
    if not 0 <= first_id <= (1 << 31) - columns:
        raise IndexError('ids must fit into 31 bits')
    _run('top_k', scores, best, ids, query_ids, queries, columns,
         _row_stride('scores', scores), first_id, k,
         parallel=scores.size >= _PARALLEL_VALUES)


# The LSTM ---------------------------------------------------------------------------------

def unit_multiple():
    """What the hidden size given to the LSTM kernels must be a multiple of."""
    return _library.kernels_unit_multiple()


def _pad(array, groups, units):
    """`(rows, groups * H)` with zeros added to each group up to `units`, or the array itself."""
    if array is None or array.shape[-1] == groups * units:
        return array
    padded = np.zeros((len(array), groups, units), np.float32)
    padded[:, :, :array.shape[1] // groups] = array.reshape(len(array), groups, -1)
    return padded.reshape(len(array), groups * units)


def _unpad(array, groups, units):
    """Undoes `_pad` for `units` per group."""
    if array.shape[1] == groups * units:
        return array
    parts = array.reshape(len(array), groups, -1)[:, :, :units]
    return np.ascontiguousarray(parts).reshape(len(array), groups * units)


def _check_layer(weights, c0, offsets, rows):
    """Checks what both passes take; returns reviews and units."""
    _check('c0', c0, (None, None))
    reviews, units = c0.shape
    if not units or len(weights) != 4:
        raise ValueError('a layer has units, and weights for four gates')
    for weight in weights:
        _check('weights', weight, (units, units), contiguous=False)
    _check_starts('offsets', offsets, rows)
    counts = np.diff(offsets, prepend=-reviews)  # of the initial states, and of each step
    if (np.diff(counts) > 0).any():
        raise IndexError('a step must not have more rows than the one before')
    return reviews, units


def _weights(weights, units):
    padded = [np.ascontiguousarray(np.pad(w, (0, units - len(w))) if len(w) < units else w)
              for w in weights]
    return padded, (pointer * 4)(*(weight.ctypes.data for weight in padded))


def lstm_forward(gates, bias, weights, h0, c0, offsets):
    """`lstm.forward_steps`, for any number of units: more, without weights, stay zero."""
    rows = len(gates)
    reviews, own_units = _check_layer(weights, c0, offsets, rows)
    _check('h0', h0, (reviews, own_units))
    _check('bias', bias, (4 * own_units,))
    _check_out('gates', gates, (rows, 4 * own_units), bias, h0, c0, *weights)
    units = own_units + -own_units % unit_multiple()
    padded_weights, addresses = _weights(weights, units)
    padded_gates = _pad(gates, 4, units)
    cells, tanh_cells, hidden = (np.empty((rows, units), np.float32) for _ in range(3))
    packed = np.empty(4 * units * units, np.float32)
    _run('lstm_forward', addresses, packed, _pad(bias[None], 4, units), padded_gates, cells,
         tanh_cells, hidden, _pad(h0, 1, units), _pad(c0, 1, units), offsets,
         len(offsets) - 1, units, own_units, parallel=units >= _PARALLEL_UNITS)
    if padded_gates is not gates:
        gates[...] = _unpad(padded_gates, 4, own_units)
    return tuple(_unpad(array, 1, own_units) for array in (cells, tanh_cells, hidden))


def lstm_backward(gates, cells, tanh_cells, weights, c0, grad_hidden, grad_h, grad_c, offsets):
    """`lstm.backward_steps`, for any number of units."""
    rows = len(gates)
    reviews, own_units = _check_layer(weights, c0, offsets, rows)
    _check('gates', gates, (rows, 4 * own_units))
    for name, array in (('cells', cells), ('tanh_cells', tanh_cells),
                        ('grad_hidden', grad_hidden)):
        if array is not None or name != 'grad_hidden':
            _check(name, array, (rows, own_units))
    units = own_units + -own_units % unit_multiple()
    # Rows of reviews that have not begun yet, counted from the end, hold their final gradient.
    dh, dc = (np.zeros((reviews, units), np.float32) for _ in range(2))
    for name, state, final in (('grad_h', dh, grad_h), ('grad_c', dc, grad_c)):
        if final is not None:
            _check(name, final, (reviews, own_units), contiguous=False)
            state[:, :own_units] = final
    padded_weights, addresses = _weights(weights, units)
    grad_gates = np.empty((rows, 4 * units), np.float32)
    packed = np.empty(4 * units * units, np.float32)
    _run('lstm_backward', addresses, packed, _pad(gates, 4, units), _pad(cells, 1, units),
         _pad(tanh_cells, 1, units), _pad(c0, 1, units), _pad(grad_hidden, 1, units), grad_gates,
         dh, dc, offsets, len(offsets) - 1, units, own_units, parallel=units >= _PARALLEL_UNITS)
    return (_unpad(grad_gates, 4, own_units), _unpad(dh, 1, own_units),
            _unpad(dc, 1, own_units))


# The optimiser and dropout ----------------------------------------------------------------

def adam(parameter, m, v, gradient, one_minus_beta1, one_minus_beta2, alpha, epsilon, eta,
         row_ids=None, active=None):
    """One step of Adam in place, see `adam.c`; with `row_ids` the gradient has those rows only
    and `active` `(rows,)` uint8 says which rows have ever had one. The constants are rounded to
    float32 here."""
    shape = np.shape(parameter)
    for name, array in (('parameter', parameter), ('m', m), ('v', v)):
        _check_out(name, array, shape, gradient)
    if row_ids is None:
        _check('gradient', gradient, shape)
        rows, columns, touched = 1, parameter.size, 0
    else:
        _check('row_ids', row_ids, (None,), np.int64)
        rows, touched = shape[0], len(row_ids)
        columns = parameter.size // max(rows, 1)
        _check('gradient', gradient, (touched, *shape[1:]))
        _check_out('active', active, (rows,), dtype=np.uint8)
        _check_ids(row_ids, rows)
        if (np.diff(row_ids) <= 0).any():
            raise IndexError('row_ids must rise')
    _run('adam', parameter, m, v, gradient, row_ids, active, rows, columns, touched,
         one_minus_beta1, one_minus_beta2, alpha, epsilon, eta,
         parallel=parameter.size >= _PARALLEL_VALUES)


def dropout_mask(shape, ratio):
    """`(np.random.rand(*shape) >= ratio) / (1 - ratio)`, float32, from the same random stream."""
    if not 0 <= ratio < 1:
        raise ValueError(f'a ratio of dropout is from 0 to below 1, not {ratio}')
    generator, state, position, *gauss = np.random.get_state()
    _check('the state of NumPy\'s generator', state, (624,), np.uint32)
    if not 0 <= position <= 624:  # NumPy takes any
        raise IndexError(f'the random stream is at position {position}, not within 0 to 624')
    mask = np.empty(shape, np.float32)
    arguments = _run('dropout', state, mask, position, mask.size, math.ceil(ratio * 2 ** 53),
                     1 / (1 - ratio), parallel=False)
    np.random.set_state((generator, state, arguments.position, *gauss))
    return mask
