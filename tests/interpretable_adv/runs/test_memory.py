"""memory.py, in processes of their own: it changes the whole process."""
import subprocess
import sys

import pytest

PROGRAM = '''
import resource
import numpy as np
from interpretable_adv.runs import memory

print(memory.keep_freed_memory() if {keep} else None)

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(20):
        np.empty(4_000_000, np.uint8).fill(1)  # too small for huge pages
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

faults()
print(faults())
'''


def run(root, keep):
    result = subprocess.run([sys.executable, '-c', PROGRAM.format(keep=keep)], cwd=root,
                            capture_output=True, text=True, check=True)
    return result.stdout.split()


def test_freed_memory_is_used_again(root):
    done, kept = run(root, True)
    if done != 'True':
        pytest.skip('the C library is not glibc')
    assert int(kept) < 100
