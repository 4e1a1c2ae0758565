"""The language model on the stand-in: training, evaluation, resume, scores."""
import json

import cupy
import numpy as np
import pytest
import strict_cupy

from interpretable_adv.runs import checkpoints
from lm import evaluation, pretrain, updater
from lm.nets import RNNForLM

SOFTMAXES = {'plain': [], 'adaptive': ['--adaptive-softmax', '--cutoffs', '6,12'],
             'shared': ['--share-embedding', '--n-units-word', '7']}


def run(corpus, out, *more):
    pretrain.main(['--data_dir', str(corpus), '--out', str(out), '--unit', '7',
                   '--n-units-word', '5', '--batchsize', '4', '--bproplen', '6', '--epoch', '2',
                   '--log-steps', '--progress', 'off', *map(str, more)])
    lines = (out / 'steps.jsonl').read_text(encoding='utf-8').splitlines()
    return [json.loads(line)['loss'] for line in lines], json.loads(
        (out / 'result.json').read_text(encoding='utf-8'))


@pytest.fixture
def counts(monkeypatch):
    """What crosses between host and device, by window."""
    counts = []

    def counted(self, update_core=updater.TruncatedBPTTUpdater.update_core):
        with strict_cupy.count_transfers() as count:
            update_core(self)
        counts.append(count)

    monkeypatch.setattr(updater.TruncatedBPTTUpdater, 'update_core', counted)
    return counts


@pytest.mark.parametrize('name', SOFTMAXES)
def test_losses_with_dropout_and_windows_that_wait_for_nothing(corpus, tmp_path, counts, name):
    with strict_cupy.shared_random_stream():
        losses, result = run(corpus, tmp_path / 'cupy', *SOFTMAXES[name], '--gpu', 0)
    assert len(counts) == len(losses) and all(count.to_host == [] for count in counts)
    expected_losses, expected = run(corpus, tmp_path / 'numpy', *SOFTMAXES[name])
    np.testing.assert_allclose(losses, expected_losses, rtol=1e-5)
    for key in ('valid_perplexity', 'test_perplexity'):
        assert result[key] == pytest.approx(expected[key], rel=1e-5)


def test_resumed_run_ends_where_an_undisturbed_one_does(corpus, tmp_path):
    flags = ('--gpu', 0, '--snapshot_steps', 3)
    whole, _ = run(corpus, tmp_path / 'whole', *flags)
    first, _ = run(corpus, tmp_path / 'parts', *flags, '--epoch', 1)
    assert first == whole[:len(first)]
    cupy.random.seed(0)
    np.random.seed(0)
    assert run(corpus, tmp_path / 'parts', *flags, '--resume')[0] == whole
    ends = [checkpoints.read_arrays(tmp_path / name / 'best.model') for name in ('parts', 'whole')]
    for name in ends[0]:
        np.testing.assert_array_equal(ends[0][name], ends[1][name], err_msg=name)


@pytest.mark.parametrize('adaptive', [False, True])
def test_scores_of_reviews_and_of_vectors(adaptive):
    np.random.seed(1)
    model = RNNForLM(30, 7, 5, adaptive_softmax=adaptive, cutoff=(6, 12) if adaptive else None)
    reviews = [np.array(review, np.int32) for review in ([3, 9, 29, 0], [0], [1, 14, 0])]
    expected, counts = evaluation.review_nll(model, reviews)
    vectors = np.random.randn(5, 5).astype('f')
    targets = np.array([29, 3, 8, 0, 14], np.int32)
    expected_scores = model.score_embeddings(vectors, targets)
    model.to_device('@cupy:0')
    nll, counts_on_device = evaluation.review_nll(model, reviews)
    np.testing.assert_allclose(nll, expected, atol=1e-5)
    np.testing.assert_array_equal(counts_on_device, counts)
    scores = model.score_embeddings(cupy.asarray(vectors), targets)
    assert isinstance(scores, cupy.ndarray)
    np.testing.assert_allclose(scores.get(), expected_scores, atol=1e-5)
