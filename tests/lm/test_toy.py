"""The language model learns what the toy corpus has to teach."""
import json

import numpy as np
import pytest

from interpretable_adv import data, neighbors
from interpretable_adv.data import toy
from lm import pretrain
from lm.nets import load_lm


@pytest.fixture(scope='module')
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp('toy')
    toy.prepare(str(folder / 'data'))
    pretrain.main([
        '--data_dir', str(folder / 'data'), '--out', str(folder / 'lm'), '--unit', '32',
        '--n-units-word', '12', '--dropout', '0', '--epoch', '6', '--alpha', '0.02',
        '--batchsize', '64', '--bproplen', '20', '--adaptive-softmax', '--valid-split', 'dev',
        '--eval-streams', '32'])
    return folder


@pytest.mark.slow
def test_perplexity_falls_far_below_that_of_single_words(trained):
    corpus = data.load(str(trained / 'data'))
    counts = 1 + np.bincount(corpus.lm_train(), minlength=corpus.n_vocab)
    unigram = np.exp(-np.log(counts / counts.sum())[corpus.lm_test()].mean())
    result = json.loads((trained / 'lm' / 'result.json').read_text())
    print(f"test perplexity {result['test_perplexity']:.2f}, of single words {unigram:.2f}")
    assert result['test_perplexity'] < unigram / 20


@pytest.mark.slow
def test_nearest_neighbours_of_sentiment_words_are_their_synonyms(trained):
    corpus = data.load(str(trained / 'data'))
    vectors = load_lm(str(trained / 'lm' / 'best.model')).embed.W.array
    found = []
    for _, negative, positive in toy.ASPECTS:
        for synonyms, _ in (negative, positive):
            ids = np.array([corpus.vocab[word] for word in synonyms])
            for nearest in neighbors.nearest(vectors, len(synonyms) - 1, rows=ids):
                found.append(np.isin(nearest, ids).mean())
    print(f'{100 * np.mean(found):.0f} % of the nearest neighbours are synonyms')
    assert np.mean(found) > 0.8
