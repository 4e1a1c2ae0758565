"""Trains a language model of the paper's size on one window; prints the growth of memory in MB.

    python -m tests.lm.one_window plain|adaptive
"""
import ctypes
import pathlib
import sys

import numpy as np

from interpretable_adv.nn.adam import Adam, GradientClipping
from lm.nets import RNNForLM
from lm.streams import StreamIterator
from lm.updater import TruncatedBPTTUpdater


def status(name):
    """A size in bytes from Linux's description of this process: VmRSS now, VmHWM at its peak."""
    for line in pathlib.Path('/proc/self/status').read_text().splitlines():
        if line.startswith(name + ':'):
            return int(line.split()[1]) * 1024
    raise KeyError(name)


def main(kind):
    model = RNNForLM(87008, 1024, 256, adaptive_softmax=kind == 'adaptive')
    # Words as frequent as in a text: rank r with probability about 1 / r.
    words = np.minimum(np.random.RandomState(0).zipf(1.1, 100000), 87007).astype(np.int32)
    optimizer = Adam()
    optimizer.setup(model)
    optimizer.add_hook(GradientClipping(5))
    updater = TruncatedBPTTUpdater(StreamIterator(words, 32, 35), optimizer)
    model.cleargrads()  # Chainer begins with gradients that are not yet known
    ctypes.CDLL(None).malloc_trim(0)  # what building the model has left behind is not counted
    pathlib.Path('/proc/self/clear_refs').write_text('5')  # resets the peak
    before = status('VmRSS')
    updater.update()
    print((status('VmHWM') - before) / 1e6)


if __name__ == '__main__':
    main(sys.argv[1])
