"""The kernels' arguments as ctypes: the structures of `kernels.h`, field by field."""
import ctypes

pointer, integer, single = ctypes.c_void_p, ctypes.c_int64, ctypes.c_float


def _structure(name, **kinds):
    """A structure whose keywords map a kind of field to the fields' names."""
    fields = [(field, kind) for kind_name, kind in (
        ('weights', pointer * 4), ('pointers', pointer), ('integers', integer),
        ('singles', single), ('doubles', ctypes.c_double))
        for field in kinds.get(kind_name, '').split()]
    return type(name, (ctypes.Structure,), {'_fields_': fields})


# Named and ordered as FOR_EACH_KERNEL is; weights come first, then pointers, then numbers.
KERNELS = {
    'lstm_forward': _structure(
        'LSTMForward', weights='weights', integers='steps units depth',
        pointers='packed bias gates cells tanh_cells hidden h0 c0 offsets'),
    'lstm_backward': _structure(
        'LSTMBackward', weights='weights', integers='steps units depth',
        pointers='packed gates cells tanh_cells c0 grad_hidden grad_gates grad_h grad_c offsets'),
    'product': _structure(
        'Product', pointers='a b c workspace',
        integers='rows columns depth a_stride b_stride c_stride '
                 'transpose_a transpose_b accumulate'),
    'elementwise': _structure('Elementwise', pointers='source target', integers='count function'),
    'softmax': _structure('Softmax', pointers='scores bias peaks totals', integers='rows columns'),
    'row_sums': _structure(
        'RowSums', pointers='values sums', integers='rows columns stride squares'),
    'column_sums': _structure('ColumnSums', pointers='values sums', integers='rows columns stride'),
    'square_sum': _structure(
        'SquareSum', pointers='values block_sums', integers='count', doubles='total'),
    'segment_sum': _structure(
        'SegmentSum', pointers='rows starts sums', integers='segments columns'),
    'dots': _structure('Dots', pointers='directions vectors products', integers='words k columns'),
    'combine': _structure(
        'Combine', pointers='weights directions sums', integers='words k columns'),
    'directions': _structure(
        'Directions', pointers='table ids neighbors directions', integers='words k columns',
        singles='epsilon'),
    'top_k': _structure(
        'TopK', pointers='scores best ids query_ids',
        integers='queries columns stride first_id k'),
    'adam': _structure(
        'Adam', pointers='parameter m v gradient row_ids active',
        integers='rows columns touched',
        singles='one_minus_beta1 one_minus_beta2 alpha epsilon eta'),
    'dropout': _structure(
        'Dropout', pointers='state mask', integers='position count threshold', singles='scale'),
}
SQUARE_SUM_BLOCK = 4096  # as in kernels.h
