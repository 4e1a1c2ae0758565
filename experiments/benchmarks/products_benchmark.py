"""Matrix products in the shapes that training uses, beside OpenBLAS."""
import numpy as np

from experiments.benchmarks import timing
from interpretable_adv.nn import kernels

# What it is for → rows, columns, depth, and which of the two factors is transposed.
WORDS, REVIEWS, WINDOW = 8000, 32, 1120
SHAPES = {
    'inputs, H=1024': (WORDS, 4096, 256, 'b'),
    'gradient of inputs, H=1024': (WORDS, 256, 4096, ''),
    'gradient of W, H=1024': (4096, 256, WORDS, 'a'),
    'gradient of U, H=1024': (4096, 1024, WORDS, 'a'),
    'inputs, H=256': (WORDS, 1024, 256, 'b'),
    'gradient of inputs, H=256': (WORDS, 256, 1024, ''),
    'gradient of W and U, H=256': (1024, 256, WORDS, 'a'),
    'softmax head': (WINDOW, 2002, 1024, 'b'),
    'gradient of hidden, head': (WINDOW, 1024, 2002, ''),
    'gradient of the head': (2002, 1024, WINDOW, 'a'),
    'first tail': (200, 8000, 256, 'b'),
    'gradient of hidden, first tail': (200, 256, 8000, ''),
    'gradient of the first tail': (8000, 256, 200, 'a'),
    'second tail': (250, 77008, 64, 'b'),
    'gradient of hidden, second tail': (250, 64, 77008, ''),
    'gradient of the second tail': (77008, 64, 250, 'a'),
    'first reduction': (200, 256, 1024, 'b'),
    'second reduction': (250, 64, 1024, 'b'),
    'neighbours': (512, 4096, 256, 'b'),
    'hidden layer': (REVIEWS, 30, 1024, 'b'),
}
LEAST_OPERATIONS, MOST_TIMES = 2e8, 500  # small products are repeated


def factors(rows, columns, depth, transposed):
    random = np.random.RandomState(0)
    a = random.randn(*((depth, rows) if transposed == 'a' else (rows, depth))).astype('f')
    b = random.randn(*((columns, depth) if transposed == 'b' else (depth, columns))).astype('f')
    return a, b


def measure(repetitions, shapes=SHAPES):
    return [measure_shape(repetitions, name, *shape) for name, shape in shapes.items()]


def measure_shape(repetitions, name, rows, columns, depth, transposed):
    a, b = factors(rows, columns, depth, transposed)
    # Views: OpenBLAS takes these as transposed without moving anything.
    left, right = a.T if transposed == 'a' else a, b.T if transposed == 'b' else b
    theirs, own = (np.empty((rows, columns), np.float32) for _ in range(2))
    times = max(1, min(MOST_TIMES, int(LEAST_OPERATIONS / (2 * rows * columns * depth))))

    def openblas():
        for _ in range(times):
            np.dot(left, right, out=theirs)

    def ours():
        for _ in range(times):
            kernels.product(a, b, own, transposed == 'a', transposed == 'b')

    openblas()
    ours()
    difference = np.abs(own - theirs).max()
    if difference > 1e-4 * np.sqrt(depth):
        raise RuntimeError(f'{name}: products differ by {difference}')
    seconds = timing.interleave({'OpenBLAS': openblas, 'ours': ours}, repetitions)
    seconds = {who: [s / times for s in values] for who, values in seconds.items()}
    return {'part': 'Products', 'case': f'{name}, {rows} × {columns} × {depth}', 'times': seconds,
            'ratios': {'OpenBLAS / ours': timing.ratio(seconds['OpenBLAS'], seconds['ours'])}}
