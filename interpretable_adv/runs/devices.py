"""Where the arrays live: the choice between CPU and GPU, and the GPU's random numbers."""
import os
import sys

import chainer
import numpy as np
from chainer.backends import cuda
from chainer.training import extension

from interpretable_adv.errors import UserError
from interpretable_adv.nn import kernels

ADVICE = 'name no GPU to run on the CPU, or see docs/gpu.md'


def choose(gpu=-1, name=None):
    """The device of upstream's `--gpu` or of Chainer's `--device`, made the current one.

    CuPy can be importable without a GPU, or without the libraries that it calls. So what a
    run needs is tried once: memory, a kernel, random numbers, a matrix product.
    """
    name = name or (f'@cupy:{gpu}' if gpu >= 0 else '@numpy')
    number = name.removeprefix('@cupy:')
    if name != '@numpy' and not (name.startswith('@cupy:') and number.isdecimal()):
        raise UserError(f'--device {name}: give @numpy or @cupy:N, N being the number of the GPU')
    if name != '@numpy' and not cuda.available:
        raise UserError(f'{name}: {_why_unavailable()}; {ADVICE}')
    try:
        device = chainer.get_device(name)
        device.use()
        square = device.xp.ones((2, 2), np.float32)
        if device.xp is not np:
            device.xp.random.rand(2)
        float((square @ square).sum())
    except (RuntimeError, ImportError, MemoryError) as error:
        raise UserError(f'{name} cannot be used ({_first_line(error)}): {_gpus()}; {ADVICE}'
                        ) from error
    return device


def _why_unavailable():
    error = cuda._resolution_error
    if isinstance(error, ModuleNotFoundError):
        return "CuPy is not installed (pip install 'cupy-cuda12x==13.6.0')"
    return (f'CuPy cannot load what it needs ({_first_line(error)}); the CUDA 12 libraries must '
            'be where the loader looks, e.g. in LD_LIBRARY_PATH')


def _gpus():
    try:
        count = cuda.cupy.cuda.runtime.getDeviceCount()
    except RuntimeError:
        count = 0
    if not count:
        return 'there is no GPU that CUDA can use, check with nvidia-smi'
    return 'there is only GPU 0' if count == 1 else f'GPUs are numbered 0 to {count - 1}'


def _first_line(error):
    return str(error).strip().partition('\n')[0]


def say_what_is_missing(device):
    """One line when the arithmetic of the CPU runs without the C kernels."""
    if device.xp is np and not kernels.available:
        print(kernels.describe(), file=sys.stderr)


def seed(device, number):
    """Seeds NumPy's global stream and the device's."""
    np.random.seed(number)
    if device.xp is not np:
        device.xp.random.seed(number)
        os.environ['CHAINER_SEED'] = str(number)  # for cuDNN's dropout between LSTM layers


def philox(number):
    """A generator of the GPU to which a new seed costs next to nothing: it only counts."""
    method = cuda.cupy.cuda.curand.CURAND_RNG_PSEUDO_PHILOX4_32_10
    return cuda.cupy.random.RandomState(number, method)


class StepStream(extension.Extension):
    """Seeds the GPU's random stream for each step, from the run's seed and the step.

    CuPy's generators cannot expose their state, so no snapshot could hold it. This way the
    number of the step is the state, and a resumed run draws what an uninterrupted one draws.

    Args:
        number: seed of the run.
        worker: number of the process, where several train one model.
    """

    trigger = 1, 'iteration'
    priority = extension.PRIORITY_READER - 300  # the last thing before the next step
    name = 'step_stream'

    def __init__(self, number, worker=0):
        self.number, self.worker = number, worker

    def initialize(self, trainer):
        cuda.cupy.random.set_random_state(philox(self.number))
        self(trainer)

    def __call__(self, trainer):
        words = np.random.SeedSequence([self.number, self.worker, trainer.updater.iteration])
        cuda.cupy.random.seed(int(words.generate_state(1, np.uint64)[0]))
