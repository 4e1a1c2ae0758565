"""Timing several contestants in turn, some of them in an environment of their own."""
import contextlib
import ctypes
import json
import os
import pathlib
import re
import subprocess
import sys
import time

import numpy as np

from interpretable_adv.runs import memory

STOCK = 'stock Chainer'
PRODUCTS = 'OpenBLAS products alone'


def interleave(contestants, repetitions, warm_up=1):
    """Seconds of each contestant's runs, taken in turn, so that a busy machine hits all alike.

    Stock Chainer runs with the C library's memory settings, all others with those of our training
    commands.

    Args:
        contestants: name → function. If it returns a float, these are its seconds.

    Returns:
        name → list of seconds.
    """
    times = {name: [] for name in contestants}
    previous = None
    for repetition in range(warm_up + repetitions):
        for name, run in contestants.items():
            if previous == STOCK != name:
                run()  # gets back the memory that stock Chainer gave to the system
            previous = name
            with ordinary_memory() if name == STOCK else contextlib.nullcontext():
                start = time.perf_counter()
                seconds = run()
                elapsed = time.perf_counter() - start
            if repetition >= warm_up:
                times[name].append(seconds if isinstance(seconds, float) else elapsed)
    return times


def peak_megabytes():
    """The most memory that this process has had. (getrusage also counts what its parent had.)"""
    status = pathlib.Path('/proc/self/status').read_text()
    return int(re.search(r'VmHWM:\s*(\d+) kB', status)[1]) / 1024


def peak_of(module, *arguments):
    """What a module prints at the end of a process of its own, a number of megabytes."""
    result = subprocess.run([sys.executable, '-m', module, *map(str, arguments)], text=True,
                            capture_output=True, check=True)
    return float(result.stdout)


@contextlib.contextmanager
def ordinary_memory():
    """Undoes `memory.keep_freed_memory` for a while.

    While a program runs, glibc raises the size from which on an array gets pages of its own; it is
    set here to the 32 MB at which that ends, which is the best for the program.
    """
    if not memory.keep_freed_memory():  # not glibc
        yield
        return
    library = ctypes.CDLL(None)
    for option, value in ((-4, 65536), (-3, 32 << 20), (-1, 64 << 20), (-2, 128 << 10)):
        library.mallopt(option, value)  # MMAP_MAX, MMAP_THRESHOLD, TRIM_THRESHOLD, TOP_PAD
    yield
    memory.keep_freed_memory()


def summary(times):
    """Median, minimum and count of a list of seconds."""
    return {'median': float(np.median(times)), 'min': float(min(times)), 'count': len(times)}


def ratio(slow, fast):
    """How many times faster: the median of the ratios of runs that were next to each other."""
    return float(np.median(np.array(slow) / np.array(fast)))


class TorchSide:
    """A process with PyTorch and faiss, in their own environment; see `torch_side.py`.

    Args:
        python: its interpreter.
        threads: for PyTorch and faiss.
    """

    def __init__(self, python, threads):
        script = pathlib.Path(__file__).with_name('torch_side.py')
        # Beside other programs OpenMP's busy waiting makes a step many times slower.
        environment = {**os.environ, 'OMP_WAIT_POLICY': 'passive'}
        self._process = subprocess.Popen(
            [str(python), str(script), str(threads)], stdin=subprocess.PIPE,
            stdout=subprocess.PIPE, text=True, env=environment)

    def __call__(self, command, **arguments):
        """Runs a function of `torch_side.py` and returns its result."""
        self._process.stdin.write(json.dumps({'command': command, **arguments}) + '\n')
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f'the PyTorch process ended during {command}')
        return json.loads(line)

    def close(self):
        self._process.stdin.close()
        self._process.wait()
