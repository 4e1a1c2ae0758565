"""`cupy.cuda`: no cuDNN, and a memory pool that reports what a test asks for.

There is one device, or as many as the environment variable STRICT_CUPY_DEVICES says. A process
uses one of them at a time, and all its arrays are there.
"""
import os
import types

import numpy as np

from . import transfers


class CUDARuntimeError(RuntimeError):
    """What CuPy raises for a failing CUDA call."""


class OutOfMemoryError(MemoryError):
    """What CuPy raises when an allocation fails."""


COUNT = int(os.environ.get('STRICT_CUPY_DEVICES', 1))
_used = [0]


class Device:
    """A device; without a number the one in use."""

    def __init__(self, device=None):
        self.id = _used[0] if device is None else int(device)

    def _check(self):
        if not 0 <= self.id < COUNT:
            raise CUDARuntimeError('cudaErrorInvalidDevice: invalid device ordinal')

    def use(self):
        self._check()
        _used[0] = self.id

    def synchronize(self):
        self._check()
        transfers.to_host('synchronize')

    def __enter__(self):
        self._check()
        return self

    def __exit__(self, *exception):
        pass

    def __int__(self):
        return self.id

    def __eq__(self, other):
        return isinstance(other, Device) and self.id == other.id

    __hash__ = None

    @property
    def mem_info(self):
        return transfers.MEMORY.free, transfers.MEMORY.total


class Stream:
    def synchronize(self):
        transfers.to_host('synchronize')


Stream.null = Stream()


class Event:
    def __init__(self, *args, **kwargs):
        pass

    def record(self, stream=None):
        pass

    def synchronize(self):
        transfers.to_host('synchronize')


class MemoryPool:
    """Holds nothing back: all memory that is not in use is free on the device."""

    def free_bytes(self):
        return 0

    def used_bytes(self):
        return transfers.MEMORY.total - transfers.MEMORY.free

    def total_bytes(self):
        return self.used_bytes()

    def free_all_blocks(self, stream=None):
        pass

    def get_limit(self):
        return 0

    def set_limit(self, size=None, fraction=None):
        pass


class PinnedMemoryPool:
    def free_all_blocks(self):
        pass

    def n_free_blocks(self):
        return 0


def modules():
    """The modules `cupy.cuda…` by name."""
    cuda = types.ModuleType('cupy.cuda')
    cuda.__path__ = []
    runtime = types.ModuleType('cupy.cuda.runtime')
    runtime.CUDARuntimeError = CUDARuntimeError
    runtime.getDeviceCount = lambda: COUNT
    runtime.memGetInfo = lambda: Device().mem_info
    runtime.deviceSynchronize = Device().synchronize
    memory = types.ModuleType('cupy.cuda.memory')
    memory.OutOfMemoryError = OutOfMemoryError
    memory.MemoryPool = MemoryPool
    cublas = types.ModuleType('cupy.cuda.cublas')
    curand = types.ModuleType('cupy.cuda.curand')
    curand.CURAND_RNG_PSEUDO_DEFAULT = np.int32(100)
    curand.CURAND_RNG_PSEUDO_PHILOX4_32_10 = np.int32(161)
    for module in (runtime, memory, cublas, curand):
        setattr(cuda, module.__name__.rpartition('.')[2], module)
    cuda.Device, cuda.Event, cuda.Stream, cuda.MemoryPool = Device, Event, Stream, MemoryPool
    cuda.get_device_id = lambda: _used[0]
    cuda.is_available = lambda: True
    cuda.set_allocator = lambda allocator=None: None
    return {module.__name__: module for module in (cuda, runtime, memory, cublas, curand)}
