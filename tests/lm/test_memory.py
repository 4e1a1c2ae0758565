import sys

import pytest


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
    import numpy as np

    from lm import softmax
    from lm.adaptive_softmax import AdaptiveSoftmax
    monkeypatch.setattr(softmax, 'BLOCK_ELEMENTS', 5000)
    layer = AdaptiveSoftmax(8, 4000, [50, 400])
    largest = []
    original = softmax.SoftmaxNLL._scores
    monkeypatch.setattr(softmax.SoftmaxNLL, '_scores', lambda self, block: (
        largest.append(original(self, block)), largest[-1])[1])
    hidden = np.random.RandomState(0).normal(size=(100, 8)).astype(np.float32)
    for targets in (np.arange(100) * 40, np.full(100, 3999), np.zeros(100, int)):
        variable = layer(hidden, targets)
        variable.grad = np.ones(100, np.float32)
        variable.backward()
    assert max(array.size for array in largest) <= 5200 < 100 * 4000
