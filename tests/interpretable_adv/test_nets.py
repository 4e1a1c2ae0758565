"""nets.py: the classifier and one whole step of every method, against upstream's recordings."""
import json

import chainer
import chainer.functions as F
import numpy as np
import pytest

from interpretable_adv import attacks, nets
from interpretable_adv.nn.adam import Adam, GradientClipping
from interpretable_adv.runs import checkpoints

TOLERANCE = 1e-4  # what two correct float32 implementations meet


@pytest.fixture(params=['adv', 'adv_2layers', 'iadv', 'vat', 'ivat'])
def recorded(golden, request):
    arrays = dict(np.load(golden / f'classifier_{request.param}.npz'))
    arrays['meta'] = json.loads(str(arrays['meta']))
    arrays['sequences'] = np.split(arrays['x'], np.cumsum(arrays['lengths'])[:-1])
    return arrays


def build(recorded):
    meta = recorded['meta']
    model = nets.Classifier(meta['n_vocab'], meta['emb_dim'], meta['hidden_dim'],
                            meta['hidden_cls_dim'], n_layers=meta['n_layers'], dropout=0)
    parameters = {name.removeprefix('param/'): value for name, value in recorded.items()
                  if name.startswith('param/')}
    checkpoints.assign(model, parameters, 'the recording')
    return model


def build_attack(recorded, monkeypatch):
    meta = recorded['meta']
    virtual = meta['method'].endswith('vat')
    if virtual and 'first_noise' in recorded:
        # The recorded start is used in place of a random one; it has unit length already.
        monkeypatch.setattr(attacks, '_normal', lambda xp, shape: recorded['first_noise'])
    if meta['method'].startswith('i'):
        return attacks.IAdvT(meta['xi_var'], recorded['nearest_ids'], virtual=virtual)
    return attacks.AdvT(meta['xi_var'], virtual=virtual)


def test_a_step_matches_upstream(recorded, monkeypatch):
    """Forward, perturbation, all gradients, and all parameters after Adam with clipping."""
    model, attack = build(recorded), build_attack(recorded, monkeypatch)
    labels, lengths = recorded['y'], recorded['lengths']
    optimizer = Adam(alpha=recorded['meta']['alpha'])
    optimizer.setup(model)
    optimizer.add_hook(GradientClipping(recorded['meta']['clip']))

    logits = model(recorded['sequences'])
    np.testing.assert_allclose(logits.array, recorded['logits'], atol=TOLERANCE)
    clean = F.softmax_cross_entropy(logits, labels)
    np.testing.assert_allclose(clean.array, recorded['loss_clean'], atol=TOLERANCE)

    loss = (attacks.divergence(logits.array) if recorded['meta']['method'].endswith('vat')
            else attacks.mean_loss(labels))
    attacked = attack(model, recorded['x'], lengths, loss)
    np.testing.assert_allclose(
        attacked.first_loss.array, recorded['loss_first'], atol=TOLERANCE)
    np.testing.assert_allclose(
        attacked.perturbation, recorded['perturbation'], atol=TOLERANCE)

    adversarial = loss(model(recorded['sequences'], attacked.perturbation))
    np.testing.assert_allclose(adversarial.array, recorded['loss_adv'], atol=TOLERANCE)
    model.cleargrads()
    (clean + adversarial).backward()
    for name, parameter in model.namedparams():
        np.testing.assert_allclose(
            parameter.grad, recorded['grad' + name], atol=TOLERANCE, err_msg=name)
    optimizer.update()
    for name, parameter in model.namedparams():
        np.testing.assert_allclose(
            parameter.array, recorded['after' + name], atol=TOLERANCE, err_msg=name)


@pytest.mark.parametrize('m', [1, 2, 3])
@pytest.mark.parametrize('sigma', [0.0, 0.25, 0.5, 0.75, 1.0])
def test_spgd_with_m_steps_matches_the_independent_reading(golden, m, sigma):
    adv = dict(np.load(golden / 'classifier_adv.npz'))
    adv['meta'] = json.loads(str(adv['meta']))
    spgd = dict(np.load(golden / 'spgd.npz'))
    epsilon = json.loads(str(spgd['meta']))['epsilon']
    model = build(adv)
    attack = attacks.SPGD(epsilon, spgd['nearest_ids'], sigma, iterations=m)
    attacked = attack(model, spgd['x'], spgd['lengths'], attacks.mean_loss(spgd['y']))
    np.testing.assert_allclose(
        attacked.perturbation, spgd[f'perturbation_M{m}_sigma{sigma}'],
        atol=TOLERANCE)
    sequences = np.split(spgd['x'], np.cumsum(spgd['lengths'])[:-1])
    loss = F.softmax_cross_entropy(model(sequences, attacked.perturbation), spgd['y'])
    np.testing.assert_allclose(loss.array, spgd[f'loss_M{m}_sigma{sigma}'], atol=TOLERANCE)
    if m == 1:
        moved = attacked.chosen >= 0
        targets = spgd['nearest_ids'][spgd['x'], attacked.chosen]
        np.testing.assert_array_equal(targets[moved], spgd['target_ids_M1'][moved])


def test_initial_weights_depend_on_the_seed_alone():
    models = []
    for seed in (1, 1, 2):
        np.random.seed(seed)
        models.append(nets.Classifier(20, 4, 5, 3))
    first, same, other = ([p.array for p in model.params()] for model in models)
    assert all((a == b).all() for a, b in zip(first, same))
    assert any((a != b).any() for a, b in zip(first, other))


def test_forget_biases_are_one_in_every_layer():
    model = nets.Classifier(20, 4, 5, 3, n_layers=3)
    for layer in model.uni_lstm:
        assert (layer.b1.array == 1).all() and (layer.b5.array == 1).all()
        assert (layer.b0.array == 0).all()


@pytest.mark.parametrize('n_class', [2, 5])
def test_predict_is_the_forward_pass_without_dropout(n_class):
    random = np.random.RandomState(0)
    model = nets.Classifier(30, 4, 5, 3, n_class=n_class)
    sequences = [random.randint(0, 30, n).astype('i') for n in (5, 1, 9, 3, 3, 7)]
    with chainer.using_config('train', False):
        expected = np.concatenate([model([sequence]).array for sequence in sequences])
    state = np.random.get_state()[1].copy()
    actual = nets.predict(model, sequences, words_per_batch=10)
    np.testing.assert_allclose(actual, expected, atol=1e-6)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # draws nothing


def test_by_length_covers_every_review_once_within_bounds():
    sequences = [np.zeros(n) for n in (5, 1, 40, 3, 3, 7)]
    batches = nets.by_length(sequences, 10)
    assert sorted(i for batch in batches for i in batch) == list(range(6))
    assert all(len(batch) == 1 or sum(len(sequences[i]) for i in batch) <= 10
               for batch in batches)
