"""This checkout next to another one, part by part: how much faster each part has become.

    python -m experiments.benchmarks.comparison --before CHECKOUT [--threads 2] [--out FOLDER]

CHECKOUT is a built checkout of an earlier commit with its own .venv. Each side runs in a process of
its own; calls alternate, so that a busy machine hits both alike. Writes comparison.md, unless only
some cases are chosen.
"""
import os
import pathlib
import subprocess
import sys
import tempfile
import time

import numpy as np

ROOT = pathlib.Path(__file__).resolve().parents[2]
CASES = {
    'LSTM, H=256, T≤240': ('lstm', 256, 240), 'LSTM, H=1024, T≤100': ('lstm', 1024, 100),
    'LSTM, H=256, real lengths': ('lstm', 256, None),
    'LSTM, H=1024, real lengths': ('lstm', 1024, None),
    'clipping and Adam, 87,008 × 256': ('adam',),
    'neighbours of 2,048 words, 66,825 × 256': ('neighbors',),
    'baseline step, H=256, T≤240': ('step', 'baseline', 256, 240),
    'AdvT step, H=256, T≤240': ('step', 'adv', 256, 240),
    'SPGD step, H=256, T≤240': ('step', 'spgd', 256, 240),
    'AdvT step, H=1024, T≤60': ('step', 'adv', 1024, 60),
    'language model, 256/256': ('language_model', 256),
    'language model, 256/1024': ('language_model', 1024),
    'reading a classifier, 256/1024': ('read_classifier',),
    'reading a snapshot, 256/1024': ('read_snapshot',),
    'reading a corpus of 100,000 reviews': ('read_corpus',),
}


# One side -----------------------------------------------------------------------------------

def lstm(hidden, longest):
    import chainer

    from experiments.benchmarks import batches
    try:
        from interpretable_adv.nn.lstm import LSTM
    except ImportError:  # until version 1.0
        from interpretable_adv.lstm import LSTM
    random = np.random.RandomState(0)
    lengths = (batches.real_lengths(random) if longest is None
               else batches.cut_lengths(random, longest))
    link = LSTM(1, batches.EMBEDDING, hidden, 0.0)
    x = chainer.Variable(random.randn(int(lengths.sum()), batches.EMBEDDING).astype('f'))

    def run():
        link.cleargrads()
        x.cleargrad()
        states, _, _ = link(x, lengths, outputs=False)
        states.grad = np.ones(states.shape, 'f')
        states.backward()
    return run


def adam():
    from experiments.benchmarks import batches, optimizer_benchmark
    try:
        from interpretable_adv.nn.embedding import EmbedID
    except ImportError:
        from interpretable_adv.embedding import EmbedID
    ids = batches.words(np.random.RandomState(0), 7000, batches.VOCABULARY)
    return optimizer_benchmark.setup(EmbedID, ids, False, batches.VOCABULARY)[2]


def neighbors():
    from experiments.benchmarks import batches, neighbors_benchmark
    from interpretable_adv import neighbors
    index = neighbors.Index(np.random.RandomState(0).randn(
        neighbors_benchmark.WORDS, batches.EMBEDDING).astype('f'))
    return lambda: index.nearest(neighbors_benchmark.K, np.arange(2048))


def step(method, hidden, longest):
    from experiments.benchmarks import step_benchmark
    return step_benchmark.stepper(
        method, hidden, step_benchmark.Reviews(640, longest), refresh=False)


def language_model(hidden):
    import chainer

    from experiments.benchmarks import batches
    from experiments.benchmarks.language_model_benchmark import CUTOFF, STREAMS, WINDOW, corpus
    from lm.nets import RNNForLM
    from lm.streams import StreamIterator
    from lm.updater import TruncatedBPTTUpdater
    try:
        from interpretable_adv.nn.adam import Adam, GradientClipping
    except ImportError:
        from interpretable_adv.adam import Adam, GradientClipping
    np.random.seed(0)
    model = RNNForLM(batches.VOCABULARY, hidden, batches.EMBEDDING, adaptive_softmax=True,
                     cutoff=CUTOFF)
    optimizer = Adam().setup(model)
    optimizer.add_hook(GradientClipping(5.0))
    updater = TruncatedBPTTUpdater(StreamIterator(corpus(), STREAMS, WINDOW), optimizer)
    reporter = chainer.Reporter()
    reporter.add_observer('main', model)

    def run():
        with reporter.scope({}):
            updater.update()
    return run


def read_classifier():
    from experiments.benchmarks import batches
    from interpretable_adv import nets
    checkpoints, folder = _checkpoints(), tempfile.TemporaryDirectory()
    load = nets.load_classifier if hasattr(nets, 'load_classifier') else checkpoints.load_classifier
    checkpoints.save_classifier(os.path.join(folder.name, 'best.model'), nets.Classifier(
        batches.VOCABULARY, batches.EMBEDDING, 1024))
    return lambda: load(os.path.join(folder.name, 'best.model'))


def read_snapshot():
    from chainer import training

    from experiments.benchmarks import step_benchmark
    checkpoints, folder = _checkpoints(), tempfile.TemporaryDirectory()
    updater = step_benchmark.updater('baseline', 1024, step_benchmark.Reviews(64, 20))
    trainer = training.Trainer(updater, (1, 'iteration'), folder.name)
    trainer.run()
    checkpoints.save_snapshot(os.path.join(folder.name, 'snapshot.npz'), trainer, {})
    return lambda: checkpoints.load_snapshot(
        os.path.join(folder.name, 'snapshot.npz'), trainer, {})


def _checkpoints():
    try:
        from interpretable_adv.runs import checkpoints
    except ImportError:
        from interpretable_adv import checkpoints
    return checkpoints


def read_corpus():
    """A corpus that was read before, so that the cache of its ids is there."""
    from experiments.benchmarks import batches
    from interpretable_adv import data
    folder = tempfile.TemporaryDirectory()
    random = np.random.RandomState(0)
    sizes = {'pos_train': 11000, 'neg_train': 11000, 'pos_dev': 2000, 'neg_dev': 2000,
             'pos_test': 12500, 'neg_test': 12500, 'unlabled': 49000}
    for name, size in sizes.items():
        ends = np.cumsum(random.randint(50, 400, size))
        words = [f'w{word}' for word in batches.words(random, ends[-1])]
        with open(os.path.join(folder.name, f'imdb_{name}.txt'), 'w', encoding='utf-8') as stream:
            for start, end in zip([0, *ends], ends):
                stream.write(' '.join(words[start:end]) + '\n')
    return lambda: data.load(folder.name)


def work():
    """Answers each name of a case on standard input with the seconds that one run of it takes."""
    try:
        from interpretable_adv.runs import memory
    except ImportError:
        from interpretable_adv import memory
    memory.keep_freed_memory()  # as the training commands do
    name = run = None
    for line in sys.stdin:
        if line.strip() != name:
            name = line.strip()
            run = None  # the last one's memory first
            kind, *arguments = CASES[name]
            run = globals()[kind](*arguments)
            run()
        start = time.perf_counter()
        run()
        print(time.perf_counter() - start, flush=True)


# Both sides ---------------------------------------------------------------------------------

class Side:
    """A process that runs cases with the code of a checkout."""

    def __init__(self, checkout, threads):
        environment = {**os.environ, 'PYTHONPATH': str(checkout), 'OMP_NUM_THREADS': str(threads),
                       'OPENBLAS_NUM_THREADS': str(threads)}
        self._process = subprocess.Popen(
            [str(pathlib.Path(checkout) / '.venv/bin/python'), '-P', __file__], cwd=checkout,
            env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __call__(self, name):
        self._process.stdin.write(name + '\n')
        self._process.stdin.flush()
        return float(self._process.stdout.readline())

    def close(self):
        self._process.stdin.close()
        self._process.wait()


def compare(before, threads, repetitions, cases=''):
    """`{case: (repetitions, 2) seconds}`, before and now, of cases whose names hold `cases`."""
    sides = [Side(os.path.abspath(before), threads), Side(ROOT, threads)]
    found = {}
    for name in (name for name in CASES if cases in name):
        found[name] = np.array([[side(name) for side in sides] for _ in range(repetitions)])
        ratio = np.median(found[name][:, 0] / found[name][:, 1])
        print(f'{name}, {threads} threads: {ratio:.3f}', flush=True)
    for side in sides:
        side.close()
    return found


def markdown(measured, repetitions):
    lines = ['# Before and now', '',
             f'Medians of {repetitions} runs that alternate between two processes, one for each '
             'checkout. A ratio above 1 means that the part has become faster.', '',
             '| part | threads | before, ms | now, ms | before / now |',
             '|---|---:|---:|---:|---:|']
    for threads, found in measured.items():
        for name, seconds in found.items():
            old, new = 1e3 * np.median(seconds, axis=0)
            ratio = np.median(seconds[:, 0] / seconds[:, 1])
            lines.append(f'| {name} | {threads} | {old:.1f} | {new:.1f} | {ratio:.2f} |')
    return '\n'.join(lines) + '\n'


def main(argv=None):
    from interpretable_adv import cli
    from interpretable_adv.runs.files import atomic_write
    parser = cli.ArgumentParser(prog='python -m experiments.benchmarks.comparison',
                                description=__doc__.partition('\n')[0])
    parser.add_argument('--before', required=True, help='a built checkout of an earlier commit')
    parser.add_argument('--threads', default='1,2', help='numbers of threads to compare')
    parser.add_argument('--repetitions', type=cli.at_least(1), default=9, help='runs of each side')
    parser.add_argument('--cases', default='', help='only cases with this in their name')
    parser.add_argument('--out', default='experiments/benchmarks', help='folder for comparison.md')
    flags = parser.parse_args(argv)
    measured = {threads: compare(flags.before, int(threads), flags.repetitions, flags.cases)
                for threads in flags.threads.split(',')}
    text = markdown(measured, flags.repetitions)
    if not flags.cases:
        with atomic_write(os.path.join(flags.out, 'comparison.md')) as stream:
            stream.write(text)
    print(text)


if __name__ == '__main__':
    if __spec__ is None:  # started as a file, by the other side
        work()
    else:
        from interpretable_adv import cli
        cli.run(main)
