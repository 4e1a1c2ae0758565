"""Timing several contestants in turn, some of them in an environment of their own."""
import json
import os
import pathlib
import subprocess
import time

import numpy as np

clock = time.perf_counter


def use_processor_time():
    """Counts the time that the processor works for us, not the time that passes: with one
    thread the fair measure on a machine that others use, too."""
    global clock
    clock = time.process_time


def interleave(contestants, repetitions, warm_up=1):
    """Seconds of each contestant's runs, taken in turn, so that a busy machine hits all alike.

    Args:
        contestants: name → function. If it returns a float, these are its seconds.

    Returns:
        name → list of seconds.
    """
    times = {name: [] for name in contestants}
    for repetition in range(warm_up + repetitions):
        for name, run in contestants.items():
            start = clock()
            seconds = run()
            elapsed = clock() - start
            if repetition >= warm_up:
                times[name].append(seconds if isinstance(seconds, float) else elapsed)
    return times


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
            [str(python), str(script), str(threads), clock.__name__], stdin=subprocess.PIPE,
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
