import json

import chainer
import chainer.functions as F
import numpy as np
import pytest

from interpretable_adv.errors import UserError
from lm.nets import RNNForLM


def _model(seed=0, **kwargs):
    np.random.seed(seed)
    settings = {'n_vocab': 30, 'n_units': 8, 'n_units_word': 5, 'dropout': 0.0}
    return RNNForLM(**{**settings, **kwargs})


def _check_against_upstream(path):
    """Three truncated-BPTT windows: losses, first gradients, final parameters."""
    arrays = np.load(path)
    meta = json.loads(str(arrays['meta']))
    np.random.seed(11)  # the seed of the recording, found by trying
    model = RNNForLM(
        meta['n_vocab'], meta['n_units'], meta['n_units_word'], meta['n_layers'], meta['dropout'],
        meta['adaptive_softmax'], meta['cutoff'] if meta['adaptive_softmax'] else None,
        meta['reduce_k'])
    for name, parameter in model.namedparams():
        np.testing.assert_array_equal(parameter.array, arrays['param' + name])
    optimizer = chainer.optimizers.Adam(meta['alpha']).setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(meta['clip']))
    state = None
    for window, (words, targets) in enumerate(zip(arrays['x'], arrays['t'])):
        nll, state = model(words, targets, state)
        loss = F.sum(nll) / meta['normalize']
        np.testing.assert_allclose(float(loss.array), arrays['losses'][window], rtol=1e-6)
        model.cleargrads()
        loss.backward()
        if window == 0:
            for name, parameter in model.namedparams():
                np.testing.assert_allclose(parameter.grad, arrays['grad' + name], atol=1e-6)
        optimizer.update()
    for name, parameter in model.namedparams():
        np.testing.assert_allclose(parameter.array, arrays['after' + name], atol=1e-6)


def test_three_windows_match_upstream(golden):
    _check_against_upstream(golden / 'lm_softmax.npz')


def test_three_windows_with_adaptive_softmax_match_upstream(shared):
    _check_against_upstream(shared / 'golden' / 'lm_adaptive.npz')


@pytest.mark.parametrize('adaptive', [False, True])
def test_weights_are_uniform_and_biases_zero(adaptive):
    for name, parameter in _model(adaptive_softmax=adaptive).namedparams():
        if parameter.ndim == 1:
            assert not parameter.array.any(), name
        else:
            assert np.abs(parameter.array).max() <= 0.1, name
            assert parameter.array.std() > 0.02, name


def test_state_is_carried_over_windows():
    model = _model(adaptive_softmax=True, n_layers=2)
    random = np.random.RandomState(2)
    words, targets = random.randint(0, 30, (2, 4, 12)).astype(np.int32)
    whole, whole_state = model(words, targets)
    first, state = model(words[:, :5], targets[:, :5])
    second, state = model(words[:, 5:], targets[:, 5:], state)
    pieces = np.hstack([first.array.reshape(4, 5), second.array.reshape(4, 7)])
    np.testing.assert_allclose(pieces, whole.array.reshape(4, 12), rtol=1e-5)
    for a, b in zip(state, whole_state):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-7)
    assert isinstance(state[0], np.ndarray)  # an array has no graph behind it


@pytest.mark.parametrize('adaptive', [False, True])
def test_loss_is_the_negative_log_probability(adaptive):
    model = _model(adaptive_softmax=adaptive)
    words = np.arange(6, dtype=np.int32)[None]
    hidden, _ = model.hidden(model.embed(words[0]), [6])
    log_p = model.log_probabilities(hidden).array
    np.testing.assert_allclose(np.exp(log_p).sum(axis=1), 1, rtol=1e-5)
    nll, _ = model(words, words + 20)
    np.testing.assert_allclose(nll.array, -log_p[np.arange(6), np.arange(20, 26)], rtol=1e-5)


def test_score_embeddings_of_the_words_is_the_loss_without_dropout():
    model = _model(dropout=0.5)
    words = np.array([[3, 7, 7, 2, 29]], np.int32)
    targets = np.array([7, 7, 2, 29, 0], np.int32)
    with chainer.using_config('train', False):
        expected = model(words, targets)[0].array
    vectors = model.embed.W.array[words[0]]
    scores = model.score_embeddings(vectors, targets)
    assert isinstance(scores, np.ndarray) and scores.shape == (5,)
    np.testing.assert_array_equal(scores, expected)
    np.testing.assert_array_equal(
        model.score_embeddings(chainer.Variable(vectors), targets), expected)


def test_score_embeddings_in_batches_resets_the_state_at_each_review():
    model = _model(adaptive_softmax=True)
    random = np.random.RandomState(4)
    lengths = [3, 0, 5, 1]
    vectors = random.normal(size=(9, 5)).astype(np.float32)
    targets = random.randint(0, 30, 9)
    together = model.score_embeddings(vectors, targets, lengths)
    ends = np.cumsum(lengths)
    alone = [model.score_embeddings(vectors[end - n:end], targets[end - n:end])
             for n, end in zip(lengths, ends)]
    np.testing.assert_allclose(together, np.concatenate(alone), rtol=1e-5)


def test_score_embeddings_refuses_lengths_that_do_not_add_up():
    with pytest.raises(ValueError, match='sum to 4'):
        _model().score_embeddings(np.zeros((5, 5), np.float32), np.zeros(5, int), [2, 2])


def test_dropout_acts_in_training_only():
    model = _model(dropout=0.5)
    words = np.zeros((1, 20), np.int32)
    assert (model(words, words)[0].array != model(words, words)[0].array).any()
    with chainer.using_config('train', False):
        np.testing.assert_array_equal(model(words, words)[0].array, model(words, words)[0].array)


def test_forget_biases():
    model = _model(n_layers=2, forget_bias=1.0)
    for name, parameter in model.rnn.namedparams():
        if parameter.ndim == 1:
            assert (parameter.array == (1 if name[-2:] in ('b1', 'b5') else 0)).all(), name


def test_norm_vecs_gives_unit_length():
    model = _model(norm_vecs=True)
    np.testing.assert_allclose(np.linalg.norm(model.embed.W.array, axis=1), 1, rtol=1e-6)
    np.testing.assert_array_equal(model.output.W.array, _model().output.W.array)


def test_shared_embedding_learns_from_both_sides():
    model = _model(n_units_word=8, share_embedding=True)
    assert '/output/W' not in dict(model.namedparams())
    words = np.array([[1, 2, 3]], np.int32)
    F.sum(model(words, words + 1)[0]).backward()
    assert model.embed.W.grad[20].any()  # a word that was no input: from the output's side
    np.testing.assert_allclose(
        np.exp(model.log_probabilities(np.ones((2, 8), np.float32)).array).sum(axis=1), 1,
        rtol=1e-5)


@pytest.mark.parametrize('kwargs,message', [
    ({'share_embedding': True}, 'as large as the LSTM'),
    ({'share_embedding': True, 'adaptive_softmax': True}, 'leave out one of'),
])
def test_impossible_sharing_is_refused(kwargs, message):
    with pytest.raises(UserError, match=message):
        _model(**kwargs)
