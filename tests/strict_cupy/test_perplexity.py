"""Table 1 on the stand-in."""
import json

import numpy as np
import pytest

from interpretable_adv import data
from interpretable_adv.nets import Classifier
from interpretable_adv.runs import checkpoints
from lm import perplexity
from lm.nets import RNNForLM


def test_all_attacks_and_readings_agree_with_numpy(corpus, tmp_path):
    n_vocab = data.load(str(corpus)).n_vocab
    np.random.seed(0)
    checkpoints.save_lm(tmp_path / 'lm.model', RNNForLM(n_vocab, 7, 5, adaptive_softmax=True))
    checkpoints.save_classifier(tmp_path / 'classifier.model', Classifier(n_vocab, 5, 6, 4))

    def run(*arguments):
        perplexity.main([
            '--lm', str(tmp_path / 'lm.model'), '--model', str(tmp_path / 'classifier.model'),
            '--data_dir', str(corpus), '--methods', 'none,adv,iadv,spgd,adv_sparse,random',
            '--nn_k', '4', '--json', str(tmp_path / 'table.json'), *arguments])
        return json.loads((tmp_path / 'table.json').read_text(encoding='utf-8'))['rows']

    for row, expected in zip(run('--gpu', '0'), run()):
        assert row['norm_per_word'] == pytest.approx(expected['norm_per_word'], rel=1e-4)
        for score, values in row['scores'].items():
            assert values['perplexity'] == pytest.approx(
                expected['scores'][score]['perplexity'], rel=1e-4), (row['method'], score)
