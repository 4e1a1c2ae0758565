"""Tests of `interpretable_adv.data.toy`: the generated corpus has the properties it is made for."""
import collections
import hashlib
import random

import numpy as np
import pytest

from interpretable_adv import data
from interpretable_adv.data import toy

GROUPS = [adjectives for _, *polarities in toy.ASPECTS for adjectives, _ in polarities]


@pytest.fixture(scope='module')
def corpus(tmp_path_factory):
    folder = tmp_path_factory.mktemp('toy')
    toy.prepare(folder)
    return data.load(folder)


def test_always_the_same_reviews():
    random.seed(1)
    first = toy.generate()
    state = random.getstate()
    np.random.seed(2)
    assert toy.generate() == first
    assert random.getstate() == state  # nobody else's random numbers are touched
    assert toy.generate(seed=1) != first


def test_the_reviews_of_this_version():
    """Committed results are about exactly this corpus: changing it means running them again."""
    digest = hashlib.sha256()
    for name, reviews in sorted(toy.generate().items()):
        digest.update('\n'.join([name, *reviews, '']).encode())
    assert digest.hexdigest() == '16652bc6b1a81bff1ad74ff885887dbfa6a96d98cf3340a61dae63b1cf82c85e'


def test_sizes(corpus):
    assert len(corpus.train.sequences) == 2000
    assert len(corpus.dev.sequences) == 400
    assert len(corpus.test.sequences) == 1000
    assert len(corpus.unlabeled) == 3000
    for split in (corpus.train, corpus.dev, corpus.test):
        assert split.labels.mean() == 0.5
        assert split.sequences.lengths.min() >= toy.SHORTEST + 1
        assert split.sequences.lengths.max() <= toy.LONGEST + 1
    assert 300 <= corpus.n_vocab <= 500


def test_no_review_occurs_twice():
    reviews = [review for reviews in toy.generate().values() for review in reviews]
    assert len(set(reviews)) == len(reviews) == sum(toy.SIZES.values())


def test_every_test_word_is_known(corpus):
    texts = [' '.join(corpus.words[i] for i in ids[:-1]) for ids in corpus.test.sequences]
    generated = toy.generate()
    assert texts == generated['imdb_pos_test.txt'] + generated['imdb_neg_test.txt']


def test_groups_do_not_overlap():
    words = [word for group in GROUPS for word in group]
    assert len(words) == len(set(words))


def bag_of_words(split, n_vocab):
    counts = np.zeros((len(split.sequences), n_vocab))
    for row, ids in zip(counts, split.sequences):
        np.add.at(row, ids, 1)
    return counts


def test_counting_words_is_not_enough(corpus):
    """A linear classifier of word counts gets beyond chance, and stays below 92 %."""
    train, test = (bag_of_words(split, corpus.n_vocab) for split in (corpus.train, corpus.test))
    target = corpus.train.labels * 2.0 - 1
    weights = np.linalg.solve(train.T @ train + 3 * np.eye(corpus.n_vocab), train.T @ target)
    accuracy = ((test @ weights > 0) == corpus.test.labels).mean()
    assert 0.8 < accuracy < 0.92


def test_synonyms_keep_the_same_company(corpus):
    """Words of a group are each other's nearest in a space of co-occurrences, as in a LM's.

    Rows: how often each word stands 1 to 4 places after the given one, as positive pointwise
    mutual information.
    """
    stream, n_vocab = corpus.lm_train(), corpus.n_vocab
    counts = np.zeros((4, n_vocab, n_vocab))
    for distance in range(1, 5):
        np.add.at(counts[distance - 1], (stream[:-distance], stream[distance:]), 1)
    expected = counts.sum(2, keepdims=True) * counts.sum(1, keepdims=True) / len(stream)
    information = np.maximum(np.log(np.maximum(counts, 1e-9) / np.maximum(expected, 1e-9)), 0)
    vectors = np.concatenate(information, axis=1)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-9
    found = collections.Counter()
    for group in GROUPS:
        for word in group:
            order = np.argsort(-(vectors @ vectors[corpus.vocab[word]]))
            nearest = [corpus.words[i] for i in order if corpus.words[i] != word][:4]
            found.update(other in group for other in nearest)
    assert found[True] / found.total() > 0.9
