"""memory.py, in processes of their own: it changes the whole process."""
import subprocess
import sys

import pytest

from interpretable_adv.errors import UserError
from interpretable_adv.runs import memory
from lm.nets import RNNForLM

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


def test_what_cannot_fit_is_refused():
    memory.check(1000, 1000, '--unit')
    with pytest.raises(UserError, match='needs more than .* GB .*choose smaller --unit'):
        memory.check(memory.total() // 12 + 1, 0, '--unit')
    with pytest.raises(UserError, match='needs more than'):
        memory.check(0, memory.total() // 4 + 1, '--unit')


@pytest.mark.parametrize('layers', [1, 2, 3])
def test_numbers_of_an_lstm_are_those_of_the_model(layers):
    model = RNNForLM(11, n_units=7, n_units_word=5, n_layers=layers)
    counted = sum(parameter.size for _, parameter in [
        *model.embed.namedparams(), *model.rnn.namedparams()])
    assert memory.lstm_numbers(11, 5, 7, layers) == counted
