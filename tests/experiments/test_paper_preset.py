"""Preset `paper` on the CPU: its six trainings begin, and fit into memory."""
import json
import math
import subprocess
import sys

import pytest

from interpretable_adv.nn import kernels

pytestmark = pytest.mark.deep

# Without vector instructions 20 steps take up to a quarter of an hour.
STEPS = 5 if kernels.available and kernels.variant == 'plain' else 20
GIGABYTE = 1 << 30
LSTM = 4 * 1024 * (256 + 1024 + 2)
CLASSIFIER = 87008 * 256 + LSTM + 1024 * 30 + 30 + 30 * 2 + 2


def first_steps(root, training, steps, mean_length):
    done = subprocess.run(
        [sys.executable, '-m', 'tests.experiments.paper_steps', training, str(steps),
         str(mean_length)], cwd=root, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout.splitlines()[-1])
    print(f'{training}: {steps} steps, reviews of about {mean_length} words, '
          f'{found["seconds"]:.1f} s of processor time, '
          f'peak {found["peak_memory"] / GIGABYTE:.2f} GB')
    assert len(found['losses']) == steps
    assert all(math.isfinite(loss) for loss in found['losses'])
    assert found['epochs'] == 0  # nothing but steps was done
    return found


@pytest.mark.parametrize('training', ['lm', 'baseline', 'pretrained', 'adv', 'iadv', 'spgd'])
def test_the_first_steps(root, training, record_property):
    """The reviews are short, 8 words instead of 242, since 20 steps of real ones take minutes."""
    found = first_steps(root, training, STEPS, 8)
    record_property('peak_memory', found['peak_memory'])
    losses = found['losses']
    if training == 'lm':
        assert found['n_parameters'] > 87008 * 256 + LSTM
        # a window's loss is summed over 35 words: about log(87,008) each at first
        assert losses[0] == pytest.approx(35 * math.log(87008), rel=0.15)
        some = STEPS // 4
        assert sum(losses[-some:]) < 0.97 * sum(losses[:some])
    else:
        assert found['n_parameters'] == CLASSIFIER
        terms = 1 if training in ('baseline', 'pretrained') else 2  # clean, and adversarial
        assert losses[0] == pytest.approx(terms * math.log(2), rel=0.6)
        assert len(set(losses)) == STEPS
    assert found['peak_memory'] < 1.5 * GIGABYTE


def test_a_step_on_reviews_as_long_as_imdbs(root, record_property):
    """SPGD, which needs most, on 32 reviews with IMDB's spread of lengths."""
    found = first_steps(root, 'spgd', 1, 242)
    record_property('peak_memory', found['peak_memory'])
    assert found['peak_memory'] < 2.5 * GIGABYTE
