import sys

import numpy as np
import pytest

from lm import softmax
from lm.adaptive_softmax import AdaptiveSoftmax


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != 'linux', reason='reads the memory from Linux')
def test_a_window_of_the_papers_size_needs_less_than_two_gigabytes(start):
    """Embedding 256, LSTM 1024, 87,008 words, batch 32, 35 words: with Adam's state."""
    process = start('tests.lm.one_window', 'adaptive')
    output, error = process.communicate()
    assert process.returncode == 0, error
    print(f'{float(output):.0f} MB')
    # Gradients, Adam's two moments and activations make about 450 MB; a single array of
    # (words × vocabulary) would add 390.
    assert float(output) < 800


def test_no_array_of_words_times_vocabulary(monkeypatch):
    """However the targets fall, no array of the loss is larger than a block."""
    monkeypatch.setattr(softmax, 'BLOCK_ELEMENTS', 5000)
    layer = AdaptiveSoftmax(8, 4000, [50, 400])
    sizes = []
    products, exponentiate = softmax.SoftmaxNLL._products, softmax._exponentiate
    monkeypatch.setattr(softmax.SoftmaxNLL, '_products', lambda self, scores, *arguments: (
        sizes.append(scores.size), products(self, scores, *arguments))[1])
    monkeypatch.setattr(softmax, '_exponentiate', lambda scores, bias: (
        sizes.append(scores.size), exponentiate(scores, bias))[1])
    scores_of = softmax.KernelNLL._scores
    monkeypatch.setattr(softmax.KernelNLL, '_scores', lambda self, block: (
        lambda result: (sizes.append(result[0].size), result)[1])(scores_of(self, block)))
    hidden = np.random.RandomState(0).normal(size=(100, 8)).astype(np.float32)
    for targets in (np.arange(100) * 40, np.full(100, 3999), np.zeros(100, int)):
        variable = layer(hidden, targets)
        variable.grad = np.ones(100, np.float32)
        variable.backward()
    assert len(sizes) > 6 and max(sizes) <= 5200 < 100 * 4000
