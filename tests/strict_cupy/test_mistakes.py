"""Every kind of mistake that works on a CPU and fails with CuPy must fail here too."""
import copy
import json

import chainer
import chainer.functions as F
import cupy
import numpy as np
import pytest
import strict_cupy
from chainer.backends import cuda

HOST = np.arange(6, dtype=np.float32).reshape(2, 3)


@pytest.fixture
def x():
    return cupy.asarray(HOST)


IMPLICIT_CONVERSIONS = {
    'asarray': lambda x: np.asarray(x),
    'array': lambda x: np.array(x),
    'list of device arrays': lambda x: np.array([x, x]),
    'numpy scalar type': lambda x: np.float32(x[0, 0]),
    'write into a host array': lambda x: HOST.copy().__setitem__(0, x[0]),
    'index a host array': lambda x: HOST[x[0].astype('i')],
    'bytes of memory': lambda x: memoryview(x),
}


@pytest.mark.parametrize('mistake', IMPLICIT_CONVERSIONS.values(), ids=IMPLICIT_CONVERSIONS)
def test_implicit_conversion(x, mistake):
    with pytest.raises((TypeError, IndexError)):
        mistake(x)


MIXED = {
    'device + host': lambda x: x + HOST,
    'host + device': lambda x: HOST + x,
    'device @ host': lambda x: x @ HOST.T,
    'in place': lambda x: x.__iadd__(HOST),
    'host in place': lambda x: HOST.copy().__iadd__(x),
    'comparison': lambda x: x == HOST,
    '0-d host array': lambda x: x * np.array(2.0),
    'ufunc': lambda x: cupy.maximum(x, HOST),
    'function': lambda x: cupy.dot(x, HOST.T),
    'method': lambda x: x.dot(HOST.T),
    'where': lambda x: cupy.where(x > 0, x, HOST),
    'concatenate': lambda x: cupy.concatenate([x, HOST]),
    'stack': lambda x: cupy.stack([x, HOST]),
    'assignment': lambda x: x.__setitem__(Ellipsis, HOST),
    'scatter_add': lambda x: x.scatter_add(0, HOST[0]),
    'output on the host': lambda x: cupy.add(x, x, out=np.empty_like(HOST)),
    'list as an operand': lambda x: x + [1, 2, 3],
    'kernel': lambda x: cuda.elementwise('T x, T y', 'T z', 'z = x + y', 'mixed_sum')(x, HOST),
    'chainer function': lambda x: F.linear(x, HOST),
    'chainer variables': lambda x: chainer.Variable(x) + chainer.Variable(HOST),
}


@pytest.mark.parametrize('mistake', MIXED.values(), ids=MIXED)
def test_mixing_host_and_device(x, mistake):
    with pytest.raises(TypeError):
        mistake(x)


NUMPY_FUNCTIONS = {
    'sum': lambda x: np.sum(x), 'concatenate': lambda x: np.concatenate([x, x]),
    'norm': lambda x: np.linalg.norm(x), 'where': lambda x: np.where(x > 0, x, 0),
    'sqrt': lambda x: np.sqrt(x), 'maximum': lambda x: np.maximum(x, x),
    'zeros_like': lambda x: np.zeros_like(x), 'add.reduce': lambda x: np.add.reduce(x),
    'add.at': lambda x: np.add.at(x, 0, 1), 'cumsum': lambda x: np.cumsum(x),
}


@pytest.mark.parametrize('mistake', NUMPY_FUNCTIONS.values(), ids=NUMPY_FUNCTIONS)
def test_numpy_function_on_device_array(x, mistake):
    with pytest.raises(TypeError):
        mistake(x)


HOST_ARGUMENTS = {
    'sum': lambda: cupy.sum(HOST), 'sum of a list': lambda: cupy.sum([1, 2]),
    'cumsum of a list': lambda: cupy.cumsum([1, 2]), 'sqrt': lambda: cupy.sqrt(HOST),
    'sqrt of a list': lambda: cupy.sqrt([1.0]), 'zeros_like': lambda: cupy.zeros_like(HOST),
    'norm': lambda: cupy.linalg.norm(HOST), 'split': lambda: cupy.split(HOST, 2),
    'lexsort of a tuple': lambda: cupy.lexsort((cupy.arange(3), cupy.arange(3))),
}


@pytest.mark.parametrize('mistake', HOST_ARGUMENTS.values(), ids=HOST_ARGUMENTS)
def test_host_argument_of_device_function(mistake):
    with pytest.raises(TypeError):
        mistake()


def test_repeats_are_a_list(x):
    assert cupy.repeat(x, [1, 2], axis=0).shape == (3, 3)
    for repeats in (np.array([1, 2]), cupy.array([1, 2])):
        with pytest.raises(ValueError):
            cupy.repeat(x, repeats, axis=0)


MISSING_NAMES = {
    'function': lambda x: cupy.nditer, 'index function': lambda x: cupy.put_along_axis,
    'alias': lambda x: cupy.in2d, 'linalg': lambda x: cupy.linalg.cond,
    'random': lambda x: cupy.random.get_state, 'method': lambda x: x.byteswap,
    'generator state': lambda x: cupy.random.RandomState(0).get_state,
    'operator': lambda x: x.__index__,
}


@pytest.mark.parametrize('mistake', MISSING_NAMES.values(), ids=MISSING_NAMES)
def test_name_that_only_numpy_has(x, mistake):
    with pytest.raises(AttributeError):
        mistake(x)


UNKNOWN_KEYWORDS = {
    'sum initial': lambda x: cupy.sum(x, initial=0),
    'sum where': lambda x: cupy.sum(x, where=x > 0),
    'method': lambda x: x.sum(initial=0), 'ufunc where': lambda x: cupy.exp(x, where=x > 0),
    'max initial': lambda x: x.max(initial=0), 'normal': lambda x: cupy.random.normal(scales=1.0),
    'argsort kind': lambda x: x.argsort(kind='stable'), 'clip': lambda x: cupy.clip(x, min=0),
    'norm': lambda x: cupy.linalg.norm(x, order=2),
}


@pytest.mark.parametrize('mistake', UNKNOWN_KEYWORDS.values(), ids=UNKNOWN_KEYWORDS)
def test_keyword_that_only_numpy_has(x, mistake):
    with pytest.raises(TypeError):
        mistake(x)


@pytest.mark.parametrize('mistake', [
    lambda x: cupy.maximum.reduceat(x, cupy.array([0, 1])), lambda x: cupy.maximum.reduce(x),
    lambda x: cupy.maximum.accumulate(x), lambda x: cupy.multiply.at(x, 0, 2.0)])
def test_ufunc_method_that_only_numpy_has(x, mistake):
    with pytest.raises(NotImplementedError):
        mistake(x)


def test_device_array_is_no_index(x):
    count = cupy.asarray(3)
    with pytest.raises(TypeError):
        range(count)
    with pytest.raises(TypeError):
        [1, 2, 3][count]


def test_device_array_is_no_json(x):
    with pytest.raises(TypeError):
        json.dumps({'loss': x.sum()})


def test_device_array_is_no_dictionary_key(x):
    with pytest.raises(TypeError):
        {x[0, 0]: 1}


def test_dtype_of_kernel_arguments_must_agree(x):
    kernel = cuda.elementwise('T x, T y', 'T z', 'z = x + y', 'strict_sum')
    with pytest.raises(TypeError, match='mismatched'):
        kernel(x, x.astype('d'))


def test_reductions_stay_on_the_device(x):
    for result in (x.sum(), x.max(), x[0].dot(x[0]), x[0, 0], cupy.mean(x), cupy.argmax(x),
                   cupy.linalg.norm(x), (x > 0).any()):
        assert isinstance(result, cupy.ndarray)
        assert result.shape == ()


def test_zero_dimensional_arrays_promote_as_arrays(x):
    assert (x * 2.0).dtype == np.float32
    with_scalar = (np.ones(1, 'f') * np.float64(2)).dtype  # float32, from NumPy 2 on float64
    assert (x * np.float64(2)).dtype == (np.float64(2) * x).dtype == with_scalar
    assert (x * cupy.array(2.0)).dtype == np.float64
    assert (x.sum() * 2.0).dtype == np.float32
    assert cupy.where(x > 0, x, cupy.array(0.0)).dtype == np.float64


ROUND_TRIPS = {
    'float': lambda x: float(x[0, 0]), 'int': lambda x: int(x[0, 0]),
    'item': lambda x: x.sum().item(),
    'bool': lambda x: bool((x > 0).all()), 'get': lambda x: x.get(),
    'asnumpy': lambda x: cupy.asnumpy(x), 'tolist': lambda x: x.tolist(),
    'if': lambda x: 1 if x.sum() > 0 else 0, 'boolean index': lambda x: x[x > 0],
    'nonzero': lambda x: cupy.nonzero(x), 'unique': lambda x: cupy.unique(x),
    'format': lambda x: f'{x.sum():.3f}', 'print': lambda x: str(x),
    'chainer to_cpu': lambda x: cuda.to_cpu(x), 'synchronize': lambda x: x.device.synchronize(),
}


@pytest.mark.parametrize('round_trip', ROUND_TRIPS.values(), ids=ROUND_TRIPS)
def test_round_trips_are_counted(x, round_trip):
    with strict_cupy.count_transfers() as counts:
        round_trip(x)
    assert len(counts.to_host) == 1
    assert 'test_mistakes.py' in counts.to_host[0] or 'chainer' in counts.to_host[0]


def test_work_on_the_device_counts_nothing(x):
    with strict_cupy.count_transfers() as counts:
        y = cupy.exp(x) @ x.T + x.sum() * 2
        y[0] = x[0, 0]
        copy.copy(y)
        F.softmax(F.dropout(y)).array.argmax(axis=1)
    assert counts.to_host == [] and counts.to_device == []


@pytest.mark.parametrize('send', [
    lambda: cupy.asarray(HOST), lambda: cupy.array([1, 2]), lambda: cupy.arange(3)[np.array([0])],
    lambda: cuda.to_gpu(HOST), lambda: cupy.zeros((2, 3), 'f').set(HOST)])
def test_sending_is_counted(send):
    with strict_cupy.count_transfers() as counts:
        send()
    assert len(counts.to_device) == 1


def test_largest_array_is_noted(x):
    with strict_cupy.count_transfers() as counts:
        (x + 1).T[:2]
        cupy.zeros((10, 100), 'f')
    assert counts.largest == 4000


def test_unknown_device(x):
    with pytest.raises(cupy.cuda.runtime.CUDARuntimeError):
        chainer.get_device('@cupy:1').use()


def test_memory_reports_what_the_test_says():
    with strict_cupy.device_memory(free=12345):
        assert cupy.cuda.Device().mem_info[0] == 12345
    assert cupy.cuda.Device().mem_info[0] > 1 << 30


def test_random_numbers(x):
    cupy.random.seed(5)
    first = cupy.random.normal(size=(3, 2), dtype='f')
    cupy.random.seed(5)
    assert first.dtype == np.float32
    np.testing.assert_array_equal(cupy.random.normal(size=(3, 2), dtype='f').get(), first.get())
    with pytest.raises(TypeError):
        cupy.random.rand(3, dtype='e')
    with strict_cupy.shared_random_stream():
        np.random.seed(7)
        drawn = cupy.random.rand(4).get()
    np.testing.assert_array_equal(drawn, np.random.RandomState(7).rand(4))
