"""Adam and gradient clipping against Chainer's: same numbers, same state, same files."""
import io

import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from interpretable_adv.nn import adam, kernels
from interpretable_adv.nn.embedding import EmbedID
from tests.interpretable_adv.codes import CODES, running


class Model(chainer.Chain):
    def __init__(self, embed=EmbedID, n_vocab=300, size=7):
        super().__init__()
        with self.init_scope():
            np.random.seed(2)
            self.embed = embed(n_vocab, size)
            self.linear = L.Linear(size, 33)
            self.unused = L.Linear(2, 2)

    def forward(self, ids):
        return F.sum(self.linear(self.embed(ids)) ** 2) + F.sum(self.embed(ids[:3]))


def train(optimizer, hook, model, steps=6, first=0, threshold=2.0):
    optimizer.setup(model)
    optimizer.add_hook(hook(threshold))
    return go_on(optimizer, model, steps, first)


def go_on(optimizer, model, steps, first=0):
    for step in range(first, first + steps):
        ids = np.random.RandomState(step).randint(0, 300, 20).astype('i')
        model.cleargrads()
        model(ids).backward()
        optimizer.update()
    return optimizer


def stock_run(steps=6, threshold=2.0, **options):
    model = Model(L.EmbedID)
    optimizer = train(chainer.optimizers.Adam(**options),
                      chainer.optimizer_hooks.GradientClipping, model, steps,
                      threshold=threshold)
    return model, optimizer


def assert_close(one, other, **tolerance):
    for (name, a), (_, b) in zip(sorted(one.namedparams()), sorted(other.namedparams())):
        np.testing.assert_allclose(a.array, b.array, err_msg=name, **tolerance)
        for key in ('m', 'v'):
            np.testing.assert_allclose(
                a.update_rule.state[key], b.update_rule.state[key], err_msg=name, **tolerance)


@pytest.mark.parametrize('code', CODES)
@pytest.mark.parametrize('threshold', [2.0, 1e9])
@pytest.mark.parametrize('options', [
    {}, {'alpha': 0.1, 'beta1': 0.5, 'beta2': 0.9, 'eps': 1e-4, 'eta': 0.3},
    {'amsgrad': True}, {'weight_decay_rate': 0.1}, {'adabound': True}])
def test_equals_stock(code, threshold, options):
    expected, _ = stock_run(threshold=threshold, **options)
    model = Model()
    with running(code):
        train(adam.Adam(**options), adam.GradientClipping, model, threshold=threshold)
    assert_close(model, expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize('code', CODES)
@pytest.mark.parametrize('n', [1, 31, 1000, 70001])
def test_dense_update_is_equal_to_the_last_bit(code, n):
    random = np.random.RandomState(0)
    results = []
    for optimizer in (chainer.optimizers.Adam(), adam.Adam()):
        link = chainer.Link()
        with link.init_scope():
            link.w = chainer.Parameter(np.random.RandomState(1).randn(n).astype('f'))
        optimizer.setup(link)
        random.seed(3)
        with running(code, threads=3):
            for _ in range(5):
                link.w.grad = random.randn(n).astype('f')
                optimizer.update()
        results.append((link.w.array, link.w.update_rule.state))
    (stock, stock_state), (own, own_state) = results
    np.testing.assert_array_equal(own, stock)
    for key in ('m', 'v'):
        np.testing.assert_array_equal(own_state[key], stock_state[key])


@pytest.mark.parametrize('code', CODES)
def test_rows_are_equal_to_the_whole_to_the_last_bit(code):
    """Leaving out rows that were never touched changes nothing."""
    by_rows, whole = Model(), Model()
    with running(code, threads=3):
        train(adam.Adam(), adam.GradientClipping, by_rows, threshold=1e9)
        optimizer = adam.Adam().setup(whole)
        whole.embed.W.keeps_rows = False
        go_on(optimizer, whole, 6)
    assert_close(by_rows, whole, rtol=0, atol=0)
    assert by_rows.embed.W.update_rule._active.sum() < 120


@pytest.mark.parametrize('first, second', [
    (adam.Adam, adam.Adam), (chainer.optimizers.Adam, adam.Adam),
    (adam.Adam, chainer.optimizers.Adam)])
def test_resume(first, second):
    """Snapshots of both optimisers are the same; going on from one gives the same numbers."""
    straight = Model()
    train(adam.Adam(), adam.GradientClipping, straight, 6)

    model = Model()
    optimizer = train(first(), adam.GradientClipping, model, 3)
    file = io.BytesIO()
    chainer.serializers.save_npz(file, optimizer)
    file.seek(0)
    resumed = Model()
    resumed.copyparams(model)
    optimizer = second().setup(resumed)
    optimizer.add_hook(adam.GradientClipping(2.0))
    chainer.serializers.load_npz(file, optimizer)
    go_on(optimizer, resumed, 3, first=3)
    exact = {'rtol': 0, 'atol': 0} if first is second else {'rtol': 1e-6, 'atol': 1e-6}
    assert_close(resumed, straight, **exact)
    assert resumed.embed.W.update_rule.t == 6


def test_disabled_rules_do_nothing():
    model = Model()
    before = model.embed.W.array.copy()
    optimizer = adam.Adam().setup(model)
    model.embed.disable_update()
    go_on(optimizer, model, 2)
    np.testing.assert_array_equal(model.embed.W.array, before)
    assert model.embed.W.update_rule.t == 0


def test_a_step_without_words_moves_by_momentum():
    """As with Chainer, where a missing gradient is zero."""
    models = Model(L.EmbedID), Model()
    for model, optimizer in zip(models, (chainer.optimizers.Adam(), adam.Adam())):
        optimizer.setup(model)
        go_on(optimizer, model, 2)
        model.cleargrads()
        optimizer.update()
    assert_close(models[1], models[0], rtol=1e-6, atol=1e-7)


def test_clipping_needs_no_whole_gradient():
    model = Model()
    optimizer = train(adam.Adam(), adam.GradientClipping, model, 1)
    ids, rows = model.embed.W.row_gradient()
    others = [p.grad for name, p in model.namedparams() if name != '/embed/W']
    norm = np.sqrt(sum(float((g.astype('d') ** 2).sum()) for g in (*others, rows)))
    assert norm == pytest.approx(2.0, rel=1e-5)
    assert optimizer.t == 1


def test_clipping_spreads_nan():
    model = Model()
    optimizer = adam.Adam().setup(model)
    model.cleargrads()
    model(np.array([1, 2, 3], 'i')).backward()
    optimizer.reallocate_cleared_grads()
    model.linear.b.grad[0] = np.nan
    adam.GradientClipping(1.0)(optimizer)
    assert np.isnan(model.linear.W.grad).all()


@pytest.mark.skipif(not kernels.available, reason='the C kernels are not built')
def test_threads_do_not_change_anything():
    results = []
    for threads in (1, 2, 5):
        model = Model(n_vocab=3000, size=64)
        with running(kernels.variant, threads):
            train(adam.Adam(), adam.GradientClipping, model)
        results.append(model)
    for model in results[1:]:
        assert_close(model, results[0], rtol=0, atol=0)
