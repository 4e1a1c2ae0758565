"""The LSTM, forward and backward, on one batch."""
import contextlib
import os
import tempfile

import chainer
import chainer.functions as F
import numpy as np

from experiments.benchmarks import batches, stock, timing
from interpretable_adv.nn import kernels
from interpretable_adv.nn.lstm import LSTM

CASES = {
    'H=256, T≤240': (256, 240, True),
    'H=1024, T≤100': (1024, 100, True),
    'H=256, real lengths': (256, None, False),  # stock Chainer would take minutes,
    'H=1024, real lengths': (1024, None, False),  # and tens of gigabytes
}


@contextlib.contextmanager
def on_numpy():
    """Without the C kernels."""
    before, kernels.available = kernels.available, False
    yield
    kernels.available = before


def forward_backward(forward, link, x, lengths):
    """Final states, and gradients of x and of the recurrent weights of the input gate."""
    link.cleargrads()
    x = chainer.Variable(x)
    states = forward(link, x, lengths)
    F.sum(states).backward()
    return states.array, x.grad, link[0].w4.grad


def fast(link, x, lengths):
    return link(x, lengths, outputs=False)[0][-1]


def products(x, hidden, forward=1, backward=1, weights=1):
    """The same multiplications alone, as large as they come.

    Args:
        forward, backward: passes; each multiplies by input weights and by recurrent weights.
        weights: backward passes that also make the weights' gradients.
    """
    n, units = len(x), hidden
    random = np.random.RandomState(0)
    state = random.randn(n, units).astype('f')
    gates = random.randn(n, 4 * units).astype('f')
    inner = random.randn(x.shape[1], 4 * units).astype('f')
    recurrent = random.randn(units, 4 * units).astype('f')
    out_gates, out_x, out_state = (np.empty_like(a) for a in (gates, x, state))

    def run():
        for _ in range(forward):
            np.dot(x, inner, out=out_gates)
            np.dot(state, recurrent, out=out_gates)
        for _ in range(backward):
            np.dot(gates, recurrent.T, out=out_state)
            np.dot(gates, inner.T, out=out_x)
        for _ in range(weights):
            np.dot(gates.T, x)
            np.dot(gates.T, state)
    return run


def measure(torch_side, repetitions, cases=CASES):
    """One result per case: seconds of all contestants, taken in turn."""
    results = []
    for name, (hidden, longest, with_stock) in cases.items():
        random = np.random.RandomState(0)
        lengths = (batches.real_lengths(random) if longest is None
                   else batches.cut_lengths(random, longest))
        x = random.randn(lengths.sum(), batches.EMBEDDING).astype('f')
        np.random.seed(0)
        link = LSTM(1, batches.EMBEDDING, hidden, 0.0)

        def ours(link=link, x=x, lengths=lengths):
            return forward_backward(fast, link, x, lengths)

        def ours_on_numpy(ours=ours):
            with on_numpy():
                return ours()

        def upstream(link=link, x=x, lengths=lengths):
            return forward_backward(stock.lstm, link, x, lengths)

        expected = ours()
        check(ours_on_numpy(), expected, 1e-4)
        contestants = {'ours': ours, 'ours, NumPy': ours_on_numpy,
                       timing.PRODUCTS: products(x, hidden)}
        if torch_side:
            contestants.update(torch_contestants(torch_side, link, x, lengths, expected))
        runs = repetitions if hidden < 1024 else max(3, repetitions // 2)
        times = timing.interleave(contestants, runs)
        ratios = {f'{timing.PRODUCTS} / ours': timing.ratio(times[timing.PRODUCTS], times['ours'])}
        for contestant in contestants:
            if contestant.startswith('PyTorch'):
                ratios['PyTorch, fastest / ours'] = timing.ratio(
                    times[contestant], times['ours'])
        if with_stock:
            check(upstream(), expected, 1e-4)
            again = timing.interleave(
                {timing.STOCK: upstream, 'ours': ours, 'ours, NumPy': ours_on_numpy},
                runs, warm_up=0)
            times[timing.STOCK] = again[timing.STOCK]
            ratios.update({f'{timing.STOCK} / {other}': timing.ratio(
                again[timing.STOCK], again[other]) for other in ('ours', 'ours, NumPy')})
        results.append({'part': 'LSTM', 'case': name, 'words': int(lengths.sum()),
                        'times': times, 'ratios': ratios})
    return results


def torch_contestants(torch_side, link, x, lengths, expected):
    """PyTorch's LSTM with the same parameters on the same batch, its results compared.

    It is run packed (several times slower, and so left out where some review is long), padded,
    and padded in groups of like length; the fastest is the contestant.
    """
    seconds = {}
    kinds = ['bucketed', 'padded'] + ['packed'] * (max(lengths) <= 240)
    with tempfile.TemporaryDirectory() as folder:
        case, result = (os.path.join(folder, name) for name in ('case.npz', 'result.npz'))
        parameters = {name.strip('/'): p.array for name, p in link[0].namedparams()}
        np.savez(case, x=x, **parameters)
        torch_side('lstm_setup', file=case, lengths=lengths.tolist())
        for kind in kinds:
            seconds[kind] = torch_side('lstm_run', kind=kind, result=result)
            out = np.load(result)
            check((out['states'], out['x'], out['w'][:link.out_size]), expected, 1e-4)
            if kind != 'packed':
                seconds[kind] = torch_side('lstm_run', kind=kind)
    fastest = min(seconds, key=seconds.get)
    return {f'PyTorch, {fastest}': lambda: torch_side('lstm_run', kind=fastest)}


def check(actual, expected, tolerance):
    """All arrays agree relative to the largest number of each."""
    for one, other in zip(actual, expected):
        error = np.abs(one - other).max() / np.abs(other).max()
        if not error <= tolerance:
            raise RuntimeError(f'results differ by {error:.1e}: nothing to compare')
