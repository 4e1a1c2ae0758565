"""Choosing where the arrays live."""
import chainer
import numpy as np

from interpretable_adv.cli import UserError


def choose(gpu=-1, name=None):
    """The device of upstream's `--gpu` or of Chainer's `--device`, made the current one."""
    name = name or (f'@cupy:{gpu}' if gpu >= 0 else '@numpy')
    try:
        device = chainer.get_device(name)
        device.use()
        device.xp.zeros(1)  # the first allocation tells whether there really is a device
    except Exception as error:  # CuPy fails in many ways, all of them about the installation
        raise UserError(f'the device {name} cannot be used ({error}); leave out --gpu to run on '
                        'the CPU, or install CuPy as README describes') from error
    return device


def seed(device, number):
    """Seeds NumPy's global stream and the device's."""
    np.random.seed(number)
    if device.xp is not np:
        device.xp.random.seed(number)
