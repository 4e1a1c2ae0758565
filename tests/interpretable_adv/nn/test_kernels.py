"""What the C kernels promise beyond their results, which the tests of their users compare."""
import ctypes
import mmap
import os
import pathlib
import re
import shutil
import subprocess
import sys
import sysconfig
import threading

import numpy as np
import pytest

from interpretable_adv.nn import kernels
from interpretable_adv.nn.kernels import coefficients
from tests import sanitized
from tests.interpretable_adv.codes import VARIANTS, running

built = pytest.mark.skipif(not kernels.available, reason='the C kernels are not built')
compiler = pytest.mark.skipif(shutil.which('gcc') is None, reason='there is no gcc')
ROOT = pathlib.Path(kernels.__file__).parents[3]


def batch(units=112, reviews=13, steps=5, shift=0):
    """Arguments of both LSTM kernels; `shift` moves all arrays by so many floats in memory."""
    random = np.random.RandomState(0)

    def array(*shape):
        memory = np.empty(int(np.prod(shape)) + shift, np.float32)
        memory[shift:] = random.randn(memory.size - shift) * 0.3
        return memory[shift:].reshape(shape)

    counts = np.sort(random.randint(1, reviews + 1, steps))[::-1]
    counts[0] = reviews
    offsets = np.concatenate([[0], np.cumsum(counts)])
    rows = offsets[-1]
    forward = (array(rows, 4 * units), array(4 * units), [array(units, units) for _ in range(4)],
               array(reviews, units), array(reviews, units), offsets)
    return forward, (array(rows, units), array(reviews, units), array(reviews, units))


def run_all(shift=0):
    """Results of every kernel on fixed inputs, as one list of arrays."""
    (gates, bias, weights, h0, c0, offsets), gradients = batch(shift=shift)
    results = [gates, *kernels.lstm_forward(gates, bias, weights, h0, c0, offsets)]
    results += kernels.lstm_backward(gates, *results[1:3], weights, c0, *gradients, offsets)

    random = np.random.RandomState(1)
    table = random.randn(4, 900, 100).astype('f')
    ids = np.unique(random.randint(0, 900, 200))
    active = np.ones(900, np.uint8)
    kernels.adam(*table[:3], table[3], 0.1, 0.001, 0.01, 1e-8, 1.0)
    kernels.adam(*table[:3], table[3, :len(ids)], 0.1, 0.001, 0.01, 1e-8, 1.0, ids, active)
    results += [table, np.array([kernels.square_sum(table[:, :, :99].copy())])]

    order = random.randint(0, 900, 3000)
    starts = np.sort(np.concatenate([[0, 3000], random.choice(np.arange(1, 3000), 40, False)]))
    results.append(kernels.segment_sum([table[0]], order, starts))

    best, found = np.full((90, 7), -np.inf, np.float32), np.zeros((90, 7), np.int32)
    for first in (0, 450):
        scores = table[0, :90] @ table[0, first:first + 450].T
        kernels.top_k(scores, best, found, np.arange(90, dtype=np.int32), first)
    nearest = random.randint(0, 900, (60, 9))
    return results + [best, found, kernels.directions(table[0], ids[:60], nearest, 1e-6)]


@built
@pytest.mark.parametrize('variant', VARIANTS)
def test_neither_threads_nor_alignment_change_a_bit(variant):
    with running(variant, threads=1):
        expected = run_all()
    for threads, shift in ((2, 0), (3, 1), (7, 3)):
        with running(variant, threads):
            for one, other in zip(run_all(shift), expected):
                np.testing.assert_array_equal(one, other)


def before_a_forbidden_page(values):
    """A copy of an array whose next byte no one may read."""
    page = mmap.PAGESIZE
    memory = mmap.mmap(-1, (values.nbytes // page + 2) * page)
    end = len(memory) - page
    start = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    nothing_allowed = 0
    assert ctypes.CDLL(None).mprotect(ctypes.c_void_p(start + end), ctypes.c_size_t(page),
                                      nothing_allowed) == 0
    copy = np.frombuffer(memory, values.dtype, values.size, end - values.nbytes)
    copy[...] = values.ravel()
    return copy.reshape(values.shape)


def run_on_rows(columns, place):
    """Results of the kernels that read rows of this length; `place` says where arrays stand."""
    random = np.random.RandomState(columns)

    def array(*shape):
        return place(random.randn(*shape).astype('f'))

    table, rows, square = array(9, columns), array(3, columns), array(columns, columns)
    nearest = random.randint(0, 9, (3, 4))
    units = place(kernels.directions(table, np.arange(3), nearest, 1e-6))
    return [units, kernels.dots(units, rows), kernels.combine(array(3, 4), units),
            kernels.row_sums(rows), kernels.column_sums(rows), kernels.square_sum(rows),
            kernels.tanh(rows), kernels.product(rows, square),
            kernels.segment_sum([table], np.arange(9), np.array([0, 4, 9])),
            *kernels.softmax(rows, array(columns)), rows]


@built
@pytest.mark.parametrize('variant', VARIANTS)
@pytest.mark.parametrize('columns', [1, 2, 7, 13, 37])
def test_nothing_behind_an_array_is_read(variant, columns):
    """tests/deep.sh runs this under qemu too, whose masked loads read the masked lanes as well."""
    with running(variant, threads=1):
        for one, other in zip(run_on_rows(columns, before_a_forbidden_page),
                              run_on_rows(columns, np.copy)):
            np.testing.assert_array_equal(one, other)


@built
@pytest.mark.parametrize('variant', VARIANTS)
def test_tanh(variant):
    """Through a cell whose input gate is open and whose forget gate is shut."""
    units = 192
    z = np.concatenate([np.linspace(-12, 12, 20 * units - 8), 10.0 ** np.arange(-8, -2),
                        [0, 1e30]]).astype('f').reshape(20, units)
    gates = np.zeros((20, 4 * units), 'f')
    gates[:, :units], gates[:, units:2 * units], gates[:, 3 * units:] = 50, -50, z
    state, offsets = np.zeros((20, units), 'f'), np.array([0, 20])
    with running(variant):
        cells, tanh_cells, hidden = kernels.lstm_forward(
            gates, np.zeros(4 * units, 'f'), [np.zeros((units, units), 'f')] * 4, state, state,
            offsets)
    exact = np.tanh(z.astype('d'))
    np.testing.assert_allclose(cells, exact, rtol=4e-7)
    assert np.abs(cells).max() <= 1
    np.testing.assert_allclose(tanh_cells, np.tanh(exact), rtol=1e-6)
    np.testing.assert_allclose(hidden, 0.5 * np.tanh(exact), rtol=1e-6)


@built
def test_nan_comes_through():
    (gates, bias, weights, h0, c0, offsets), _ = batch(units=16)
    gates[0, 5] = np.nan
    cells, _, hidden = kernels.lstm_forward(gates, bias, weights, h0, c0, offsets)
    assert np.isnan(cells[0, 5]) and np.isnan(hidden[0, 5])


@pytest.mark.parametrize('name, start, derive', [
    ('E', 'vector e =', coefficients.fit_exp), ('L', 'vector l =', coefficients.fit_log),
    ('T', 'vector t =', coefficients.fit_tanh)])
def test_coefficients_are_the_derived_ones(name, start, derive):
    text = (ROOT / 'interpretable_adv/nn/kernels/functions.h').read_text()
    derived, error = derive()
    lines = text[text.index(start):].splitlines()[:len(derived) - 1]
    written = [float(n) for n in re.findall(r'spread\(([\d.e+-]+)f\)', '\n'.join(lines))]
    np.testing.assert_allclose(written, derived[::-1], rtol=1e-5)
    assert error < 1e-8


def numpy_mask(shape, ratio):
    return np.float32(1 / (1 - ratio)) * (np.random.rand(*shape) >= ratio)


@built
@pytest.mark.parametrize('variant', VARIANTS)
@pytest.mark.parametrize('count, ratio, drawn', [
    (0, 0.5, 0), (1, 0.5, 3), (311, 0.0, 1), (312, 0.2, 2), (313, 0.73, 623), (5000, 0.5, 624),
    (12345, 1 / 3, 1001)])
def test_dropout_masks_have_numpys_numbers_to_the_last_bit(variant, count, ratio, drawn):
    streams = []
    for mask in (numpy_mask, kernels.dropout_mask):
        np.random.seed(count)
        np.random.randint(0, 1 << 32, drawn, np.uint32)  # one word each
        np.random.randn()  # leaves another one for later
        with running(variant):
            streams.append((mask((count,), ratio), np.random.randn(3), np.random.rand(3)))
    for expected, actual in zip(*streams):
        assert actual.dtype == expected.dtype
        np.testing.assert_array_equal(actual, expected)


@built
@pytest.mark.parametrize('position', [625, 700, 2 ** 31 - 1, -5])
def test_a_random_stream_at_an_impossible_position_is_refused(position):
    """NumPy takes any position, and the kernel would read beyond the state."""
    before = np.random.get_state()
    np.random.set_state((*before[:2], position, *before[3:]))
    try:
        with pytest.raises(IndexError, match='position'):
            kernels.dropout_mask((3,), 0.5)
    finally:
        np.random.set_state(before)


@built
def test_moments_of_another_shape_are_refused():
    parameter, gradient = np.zeros((6, 3), 'f'), np.zeros((6, 3), 'f')
    for m, v in ((np.zeros(1, 'f'), gradient.copy()), (gradient.copy(), np.zeros(1, 'f'))):
        with pytest.raises(ValueError, match='shape'):
            kernels.adam(parameter, m, v, gradient, 0.1, 0.001, 0.01, 1e-8, 1.0)


@built
def test_an_array_that_is_not_aligned_is_refused():
    crooked = np.zeros(41, np.uint8)[1:].view(np.float32)
    with pytest.raises(ValueError, match='aligned'):
        kernels.square_sum(crooked)


@built
def test_denormals_are_flushed_inside_only():
    tiny = np.full(64, 1e-39, np.float32)
    parameter, m, v = np.ones(64, 'f'), tiny.copy(), tiny.copy()
    kernels.adam(parameter, m, v, np.zeros(64, 'f'), 0.1, 0.001, 0.01, 1e-8, 1.0)
    assert not m.any() and not v.any()
    assert (tiny * np.float32(0.5)).all()  # the mode is as it was


@built
def test_several_python_threads():
    expected = run_all()
    results = [None] * 4

    def run(place):
        results[place] = run_all()

    threads = [threading.Thread(target=run, args=(place,)) for place in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for result in results:
        for one, other in zip(result, expected):
            np.testing.assert_array_equal(one, other)


def python(code, root=ROOT, **environment):
    return subprocess.run(
        [sys.executable, '-c', code], cwd=root, capture_output=True, text=True, timeout=120,
        env={**os.environ, kernels.VARIABLE: '', **environment})


@built
def test_forked_child():
    """A child has none of the parent's threads, and must start its own."""
    result = python('''
import os
import numpy as np
from interpretable_adv.nn import kernels
kernels.threads = 3
values = np.ones(1 << 18, np.float32)
assert kernels.square_sum(values) == 1 << 18
child = os.fork()
if not child:
    os._exit(0 if kernels.square_sum(values) == 1 << 18 else 1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert kernels.square_sum(values) == 1 << 18
''')
    assert result.returncode == 0, result.stderr


SELECTION = '''
from interpretable_adv import cli
from interpretable_adv.nn import kernels, lstm
cli.run(lambda _: print(kernels.available, kernels.variant, kernels.arithmetic(),
                        kernels.describe(), sep='|'))
'''


@built
@pytest.mark.parametrize('wish', ['', 'plain', 'avx2', 'avx512', 'none', 'sse9'])
def test_the_environment_selects_a_variant(wish, monkeypatch):
    monkeypatch.setattr(kernels, '_wish', '')  # whatever these tests run with
    result = python(SELECTION, INTERPRETABLE_ADV_KERNELS=wish)
    if wish == 'none':
        assert result.stdout.startswith('False|None|numpy|C kernels: switched off by INTERPRETABLE')
    elif wish == 'sse9':
        assert result.returncode == 2 and not result.stdout
        assert result.stderr == ('error: INTERPRETABLE_ADV_KERNELS=sse9: there are plain, avx2, '
                                 'avx512 and none\n')
    elif wish in VARIANTS and not kernels.select(wish):
        assert result.returncode == 2 and result.stderr == (
            f'error: INTERPRETABLE_ADV_KERNELS={wish}: this processor does not have it\n')
    else:
        kernels.select(wish)
        assert result.stdout.startswith(f'True|{kernels.variant}|kernels|C kernels:')
    monkeypatch.undo()
    kernels.select()


@pytest.mark.parametrize('value, expected', [('3', '3'), ('2,4', '2'), ('', None), ('x', None)])
def test_number_of_threads(value, expected):
    result = python('from interpretable_adv.nn import kernels; print(kernels.threads)',
                    OMP_NUM_THREADS=value)
    assert result.stdout.strip() == (expected or str(kernels.usable_processors()))


def copy_package(destination):
    """The package and its tests, without anything that was built."""
    ignore = shutil.ignore_patterns('*.so', '__pycache__', 'golden', 'strict_cupy')
    for name in ('interpretable_adv', 'tests'):
        shutil.copytree(ROOT / name, destination / name, ignore=ignore)
    for name in ('setup.py', 'README.md', 'pyproject.toml', 'requirements.txt',
                 'requirements-dev.txt'):
        shutil.copy(ROOT / name, destination)
    (destination / 'lm').mkdir()
    return destination


def test_works_without_a_compiler(tmp_path):
    root = copy_package(tmp_path)
    build = subprocess.run([sys.executable, 'setup.py', 'build_ext', '--inplace'], cwd=root,
                           capture_output=True, text=True, env={**os.environ, 'CC': 'no-such-cc'})
    assert build.returncode == 0, build.stderr
    result = python('''
import numpy as np
from interpretable_adv.nn import kernels, lstm
print(kernels.describe())
print(lstm.LSTM(1, 3, 4, 0.0)(np.ones((5, 3), 'f'), [2, 3])[0].shape)
''', root)
    assert result.stdout.splitlines() == [
        'C kernels: not built, NumPy is used (python setup.py build_ext --inplace)', '(1, 2, 4)']


@compiler
def test_an_outdated_library_is_not_used(tmp_path):
    root = copy_package(tmp_path)
    folder = root / 'interpretable_adv' / 'nn' / 'kernels'
    (tmp_path / 'old.c').write_text('long kernels_argument_bytes(void) { return 8; }')
    subprocess.run(['gcc', '-shared', '-fPIC', tmp_path / 'old.c', '-o',
                    folder / ('_kernels' + sysconfig.get_config_var('EXT_SUFFIX'))], check=True)
    result = python('from interpretable_adv.nn import kernels; print(kernels.available)', root)
    assert result.stdout.strip() == 'False'


@compiler
@pytest.mark.slow
@pytest.mark.deep
def test_no_undefined_behaviour(tmp_path):
    """Tests of all kernels under the address and undefined-behaviour sanitisers."""
    runtime = subprocess.run(['gcc', '-print-file-name=libasan.so'], capture_output=True,
                             text=True).stdout.strip()
    if not os.path.isabs(runtime):
        pytest.skip('gcc has no address sanitiser here')
    root = copy_package(tmp_path)
    sanitized.build(root)
    result = subprocess.run(
        [sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-k',
         '(neither or large or test_rows or find_the_same or last_bit) and (plain or avx2) '
         'or test_arithmetic and not (recorded or round_once or float64 or chains or in_all)',
         'tests/interpretable_adv/nn', 'tests/interpretable_adv/neighbors'],
        cwd=root, capture_output=True, text=True,
        env={**os.environ, 'LD_PRELOAD': runtime, 'PYTHONMALLOC': 'malloc',
             'ASAN_OPTIONS': 'detect_leaks=0', 'OPENBLAS_NUM_THREADS': '1'})
    assert result.returncode == 0, result.stdout[-3000:] + result.stderr[-3000:]
    assert ' passed' in result.stdout
