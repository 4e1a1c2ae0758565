"""Perturbation records on the stand-in."""
import numpy as np
import pytest

from interpretable_adv import analysis, checkpoints, data, records
from interpretable_adv.nets import Classifier
from lm.nets import RNNForLM


def test_records_agree_with_numpys(corpus, tmp_path):
    n_vocab = data.load(str(corpus)).n_vocab
    np.random.seed(0)
    checkpoints.save_lm(tmp_path / 'lm.model', RNNForLM(n_vocab, 7, 5))
    checkpoints.save_classifier(tmp_path / 'best.model', Classifier(n_vocab, 5, 6, 4))

    def run(*arguments):
        analysis.main([
            '--model', str(tmp_path / 'best.model'), '--lm', str(tmp_path / 'lm.model'),
            '--data_dir', str(corpus), '--ignore_unk', '1', '--methods', 'adv,iadv,spgd',
            '--nn_k', '4', '--limit', '6', '--out', str(tmp_path / 'r.jsonl'), *arguments])
        return list(records.read(str(tmp_path / 'r.jsonl')))

    found, expected = run('--gpu', '0'), run()
    assert len(found) == len(expected) == 18
    for ours, theirs in zip(found, expected):
        for name in ('index', 'method', 'prediction', 'prediction_adv'):
            assert ours[name] == theirs[name]
        assert ours['perplexity'] == pytest.approx(theirs['perplexity'], rel=1e-3)
        for word, other in zip(ours['words'], theirs['words']):
            for name in ('word', 'toward', 'nearest', 'neighbors'):
                assert word[name] == other[name]
            for name in ('norm', 'cosines', 'neighbor_distance'):
                np.testing.assert_allclose(word[name], other[name], atol=1e-3)
