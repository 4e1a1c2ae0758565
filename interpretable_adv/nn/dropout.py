"""Dropout whose masks come from the run's own random stream."""
import chainer
import chainer.functions as F
import numpy as np

from interpretable_adv.nn import kernels


def dropout(x, ratio):
    """`chainer.functions.dropout`, always from the stream of the array's module.

    cuDNN would draw from a generator of its own, which follows neither `--random_seed` nor a
    snapshot.
    """
    if kernels.available and chainer.config.train and _is_float32_on_host(x):
        return F.dropout(x, ratio, mask=kernels.dropout_mask(x.shape, ratio))
    with chainer.using_config('use_cudnn', 'never'):
        return F.dropout(x, ratio)


def _is_float32_on_host(x):
    array = x.array if isinstance(x, chainer.Variable) else x
    return isinstance(array, np.ndarray) and array.dtype == np.float32
