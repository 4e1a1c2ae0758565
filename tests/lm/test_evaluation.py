import chainer
import numpy as np
import pytest

from lm import evaluation
from lm.nets import RNNForLM


@pytest.fixture(scope='module', params=[False, True], ids=['plain', 'adaptive'])
def model(request):
    np.random.seed(0)
    model = RNNForLM(40, 12, 6, dropout=0.5, adaptive_softmax=request.param)
    for parameter in model.params():  # far from the uniform start, so that mistakes show
        parameter.array[...] = np.random.normal(0, 1, parameter.shape)
    return model


def _reference(model, words, targets):
    """NLL word by word, from the full log-probabilities."""
    with chainer.using_config('train', False), chainer.no_backprop_mode():
        hidden, _ = model.hidden(model.embed(words), [len(words)])
        log_p = model.log_probabilities(hidden).array.astype(np.float64)
    return -log_p[np.arange(len(targets)), targets].sum()


@pytest.mark.parametrize('window', [1, 7, 1000])
def test_one_stream_is_the_whole_text_in_a_circle(model, window):
    text = np.random.RandomState(1).randint(0, 40, 83).astype(np.int32)
    assert evaluation.stream_nll(model, text, window) == pytest.approx(
        _reference(model, text, np.roll(text, -1)), rel=1e-5)


@pytest.mark.parametrize('window', [3, 1000])
def test_many_streams_start_without_a_past(model, window):
    text = np.random.RandomState(1).randint(0, 40, 83).astype(np.int32)
    following = np.roll(text, -1)
    parts = [slice(0, 28), slice(28, 56), slice(56, 83)]
    assert evaluation.stream_nll(model, text, window, streams=3) == pytest.approx(
        sum(_reference(model, text[part], following[part]) for part in parts), rel=1e-5)


@pytest.mark.parametrize('words_per_batch', [1, 30, 10000])
def test_reviews_are_scored_one_by_one(model, words_per_batch):
    random = np.random.RandomState(2)
    reviews = [np.append(random.randint(2, 40, n), 0).astype(np.int32) for n in (5, 0, 1, 17, 9)]
    nll, predictions = evaluation.review_nll(
        model, reviews, words_per_batch=words_per_batch)
    assert predictions.tolist() == [5, 0, 1, 17, 9]
    expected = [_reference(model, review[:-1], review[1:]) if len(review) > 1 else 0
                for review in reviews]
    np.testing.assert_allclose(nll, expected, rtol=1e-5)


def _reference_of_vectors(model, vectors, targets):
    """NLL of a review that is read as vectors, from the full log-probabilities."""
    with chainer.using_config('train', False), chainer.no_backprop_mode():
        hidden, _ = model.hidden(chainer.Variable(vectors), [len(vectors)])
        log_p = model.log_probabilities(hidden).array.astype(np.float64)
    return -log_p[np.arange(len(targets)), targets].sum()


@pytest.mark.parametrize('words_per_batch', [1, 30, 10000])
def test_a_perturbation_is_added_to_the_vectors_and_the_targets_stay(model, words_per_batch):
    random = np.random.RandomState(2)
    reviews = [np.append(random.randint(2, 40, n), 0).astype(np.int32) for n in (5, 0, 1, 17, 9)]
    shift = random.normal(size=(sum(map(len, reviews)), 6)).astype('f')
    nll, predictions = evaluation.review_nll(model, reviews, shift, words_per_batch)
    assert predictions.tolist() == [5, 0, 1, 17, 9]
    shifts = np.split(shift, np.cumsum([len(review) for review in reviews])[:-1])
    expected = [_reference_of_vectors(model, model.embed.W.array[review[:-1]] + part[:-1],
                                      review[1:]) if len(review) > 1 else 0
                for review, part in zip(reviews, shifts)]
    np.testing.assert_allclose(nll, expected, rtol=1e-5)
    assert (np.abs(nll - evaluation.review_nll(model, reviews)[0])[[0, 3, 4]] > 0.01).all()


def test_a_scorer_is_the_language_model_as_measures_ask_for_it(model):
    random = np.random.RandomState(3)
    reviews = [np.append(random.randint(2, 40, n), 0).astype(np.int32) for n in (4, 8)]
    shift = random.normal(size=(14, 6)).astype('f')
    scorer = evaluation.Scorer(model)
    assert scorer.word_size == 6
    np.testing.assert_array_equal(scorer.nll(reviews), evaluation.review_nll(model, reviews)[0])
    np.testing.assert_array_equal(scorer.nll(reviews, shift),
                                  evaluation.review_nll(model, reviews, shift)[0])
    assert (scorer.nll(reviews, shift) != scorer.nll(reviews)).all()


def test_perplexity():
    assert evaluation.perplexity(10 * np.log(7), 10) == pytest.approx(7)
    assert evaluation.perplexity(1e6, 1) == float('inf')
