"""Chainer's own functions, kernels and optimiser on the stand-in agree with NumPy."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest
import strict_cupy
from chainer.backends import cuda

random = np.random.RandomState(0)
X = random.randn(6, 4).astype('f')
INDEX = np.array([2, 0, 2, 5], dtype='i')
T = np.array([0, 3, 1, -1, 2, 0], dtype='i')

FUNCTIONS = {
    'relu': F.relu, 'softmax': F.softmax, 'log_softmax': F.log_softmax, 'tanh': F.tanh,
    'sigmoid': F.sigmoid, 'normalize': F.normalize, 'sum': lambda x: F.sum(x, axis=1),
    'sqrt': lambda x: F.sqrt(x * x + 1e-6), 'concat': lambda x: F.concat([x, 2 * x], axis=0),
    'split_axis': lambda x: F.split_axis(x, [1, 4], axis=0)[1],
    'get_item': lambda x: F.get_item(x, (slice(1, 3), 2)),
    'pad_sequence': lambda x: F.pad_sequence(F.split_axis(x, [1, 4], axis=0)),
    'softmax_cross_entropy': lambda x: F.softmax_cross_entropy(
        x, chainer.backend.get_device_from_array(x.array).send(T)),
    'linear': lambda x: F.linear(x, 2 * x), 'matmul': lambda x: F.matmul(x, x, transb=True),
    'broadcast': lambda x: x * F.broadcast_to(F.sum(x, axis=1, keepdims=True), x.shape),
    'embed_id': lambda x: F.embed_id(
        chainer.backend.get_device_from_array(x.array).send(INDEX), x),
    'dropout': lambda x: F.dropout(x, 0.4), 'exp': F.exp, 'pow': lambda x: x ** 3,
    'divide': lambda x: x / (x * x + 1), 'logsumexp': lambda x: F.logsumexp(x, axis=1),
}


def value_and_gradient(function, device):
    np.random.seed(3)
    x = chainer.Variable(device.send(X.copy()))
    y = function(x)
    y.grad = device.send(np.cos(np.arange(y.size, dtype='f')).reshape(y.shape))
    y.backward()
    return cuda.to_cpu(y.array), cuda.to_cpu(x.grad)


@pytest.mark.parametrize('name', FUNCTIONS)
def test_function(name):
    device = chainer.get_device('@cupy:0')
    with strict_cupy.shared_random_stream():
        on_device = value_and_gradient(FUNCTIONS[name], device)
    on_host = value_and_gradient(FUNCTIONS[name], chainer.get_device('@numpy'))
    for got, expected in zip(on_device, on_host):
        assert got.dtype == expected.dtype
        np.testing.assert_allclose(got, expected, atol=1e-6, rtol=1e-5)


class Model(chainer.Chain):
    def __init__(self):
        super().__init__()
        with self.init_scope():
            self.embed = L.EmbedID(20, 5)
            self.rnn = L.NStepLSTM(2, 5, 6, 0.3)
            self.output = L.Linear(6, 3)

    def forward(self, ids, lengths, labels):
        xs = F.split_axis(self.embed(ids), np.cumsum(lengths)[:-1], axis=0)
        hidden, _, _ = self.rnn(None, None, xs)
        return F.softmax_cross_entropy(self.output(F.dropout(hidden[-1])), labels)


def train(device):
    random = np.random.RandomState(1)
    np.random.seed(2)
    model = Model()
    device.use()
    model.to_device(device)
    optimizer = chainer.optimizers.Adam(1e-2).setup(model)
    optimizer.add_hook(chainer.optimizer_hooks.GradientClipping(0.1))
    losses = []
    for _ in range(4):
        lengths = [5, 3, 3, 1]
        ids = device.send(random.randint(0, 20, sum(lengths)).astype('i'))
        labels = device.send(random.randint(0, 3, 4).astype('i'))
        with strict_cupy.count_transfers() as counts:
            loss = model(ids, lengths, labels)
            model.cleargrads()
            loss.backward()
            optimizer.update()
        assert counts.to_host == []
        losses.append(float(loss.array))
    return losses, {name: cuda.to_cpu(p.array) for name, p in sorted(model.namedparams())}


def test_training():
    with strict_cupy.shared_random_stream():
        losses, parameters = train(chainer.get_device('@cupy:0'))
    expected_losses, expected = train(chainer.get_device('@numpy'))
    np.testing.assert_allclose(losses, expected_losses, atol=1e-6)
    for name in expected:
        np.testing.assert_allclose(parameters[name], expected[name], atol=1e-5, err_msg=name)


def test_cudnn_is_off():
    assert cuda.available and not cuda.cudnn_enabled


def test_kernel_with_strided_output_and_raw_input():
    xp = cuda.cupy
    table = xp.zeros((4, 6), 'f')
    kernel = cuda.elementwise('raw S values, S scale', 'T out',
                              'out = values[_ind.size() - 1 - i] * scale', 'reversed')
    kernel(xp.arange(3), 10, table[1, ::2])
    np.testing.assert_array_equal(table.get()[1], [20, 0, 10, 0, 0, 0])
    assert not table.get()[[0, 2, 3]].any()


@pytest.mark.parametrize('axis, keepdims', [(None, False), (1, False), (0, True), ((0, 2), False)])
def test_reduction_kernel(axis, keepdims):
    values = np.random.RandomState(4).randn(2, 3, 4).astype('f')
    kernel = cuda.reduce('T x', 'T y', 'x * x', 'a + b', 'y = sqrt(a)', '0', 'norm')
    got = kernel(cuda.cupy.asarray(values), axis=axis, keepdims=keepdims)
    expected = np.sqrt((values ** 2).sum(axis=axis, keepdims=keepdims))
    np.testing.assert_allclose(got.get(), expected, rtol=1e-6)
