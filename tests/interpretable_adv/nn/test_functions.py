"""The functions of the networks against Chainer's: values, gradients, parameters, bits."""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np
import pytest

from interpretable_adv.nn import functions, kernels
from tests.interpretable_adv.codes import CODES, running


def numbers(*shape, seed=0):
    return np.random.RandomState(seed).randn(*shape).astype('f')


def value_and_gradients(function, *inputs):
    variables = [chainer.Variable(x) for x in inputs]
    result = function(*variables)
    weights = numbers(*result.shape, seed=9) if result.ndim else np.float32(1)
    F.sum(result * weights).backward()
    return [result.array] + [variable.grad for variable in variables]


LABELS = np.array([0, 2, 1, 1, 2, 0, 0], 'i')
CASES = {
    'linear': (lambda x, w, b: functions.linear(x, w, b), F.linear,
               [numbers(7, 5), numbers(3, 5, seed=1), numbers(3, seed=2)]),
    'linear without bias': (functions.linear, F.linear, [numbers(7, 5), numbers(3, 5, seed=1)]),
    'softmax': (functions.softmax, F.softmax, [numbers(7, 3)]),
    'log_softmax': (functions.log_softmax, F.log_softmax, [numbers(7, 40)]),
    'total': (functions.total, F.sum, [numbers(7, 3)]),
    'mean': (functions.mean, F.mean, [numbers(7, 3)]),
    'cross entropy': (lambda x: functions.softmax_cross_entropy(x, LABELS),
                      lambda x: F.softmax_cross_entropy(x, LABELS), [numbers(7, 3)]),
    'cross entropies': (lambda x: functions.softmax_cross_entropy(x, LABELS, reduce='no'),
                        lambda x: F.softmax_cross_entropy(x, LABELS, reduce='no'),
                        [numbers(7, 3)])}


@pytest.mark.parametrize('code', CODES)
@pytest.mark.parametrize('dtype', ['f', 'd'])
@pytest.mark.parametrize('case', CASES)
def test_equals_chainer(code, dtype, case):
    own, stock, inputs = CASES[case]
    inputs = [x.astype(dtype) for x in inputs]
    expected = value_and_gradients(stock, *inputs)
    with running(code):
        results = value_and_gradients(own, *inputs)
    for one, other in zip(results, expected):
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=2e-6, atol=1e-6)


def test_linear_has_chainers_parameters():
    links = []
    for kind in (L.Linear, functions.Linear):
        np.random.seed(3)
        links.append(kind(5, 4))
    for (name, one), (other_name, other) in zip(*(sorted(link.namedparams()) for link in links)):
        assert name == other_name
        np.testing.assert_array_equal(one.array, other.array)
    x = numbers(6, 5)
    np.testing.assert_allclose(links[1](x).array, links[0](x).array, rtol=1e-5, atol=1e-6)
    later = functions.Linear(4)  # its input size comes with the first input
    assert later(x).shape == (6, 4)


def test_rows_do_not_depend_on_each_other():
    if not kernels.available:
        pytest.skip('the C kernels are not built')
    link, x = functions.Linear(300, 30), numbers(50, 300)
    output = functions.Linear(30, 3)

    def losses(part):
        return functions.softmax_cross_entropy(
            output(link(x[part])), np.zeros(len(x[part]), 'i'), reduce='no').array

    np.testing.assert_array_equal(losses(slice(17, 22)), losses(slice(None))[17:22])
    np.testing.assert_array_equal(losses(slice(49, 50)), losses(slice(None))[49:])


@pytest.mark.parametrize('labels, reduce', [
    (np.array([0, 3]), 'no'), (np.array([-1, 0]), 'mean'), (np.array([0]), 'no'),
    (np.array([0, 1]), 'sum')])
def test_wrong_labels(labels, reduce):
    if not kernels.available:
        pytest.skip('the C kernels are not built')
    with pytest.raises(ValueError):
        functions.softmax_cross_entropy(numbers(2, 3), labels, reduce)


def test_a_loss_that_is_not_finite_stays_so():
    scores = np.array([[np.nan, 1], [np.inf, 0], [1e38, -1e38]], 'f')
    losses = functions.softmax_cross_entropy(scores, np.array([1, 0, 1]), 'no').array
    assert np.isnan(losses[:2]).all() and losses[2] > 1e38
