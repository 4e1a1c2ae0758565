"""Time and memory at the paper's size: every kind of training on real IMDB, a few steps each.

    python -m experiments.benchmarks.paper_size --data_dir experiments/data/imdb

Each kind trains in a process of its own, under a profiler, then evaluates and writes a snapshot.
Writes paper_size.md.
"""
import cProfile
import multiprocessing
import os
import pstats
import tempfile
import time

import numpy as np
from chainer.training import extension

from experiments.benchmarks import timing
from experiments.benchmarks.__main__ import processor
from experiments.benchmarks.training_profile import shares
from interpretable_adv import cli, nets, settings, train
from interpretable_adv.nn import kernels
from interpretable_adv.runs import checkpoints, devices, distributed, files, memory
from lm import pretrain

# Name → method, None: the language model; and how many steps are measured. SPGD looks for
# neighbours again every 50 steps.
KINDS = {'language model': (None, 50), 'baseline': ('baseline', 15), 'AdvT': ('adv', 10),
         'iAdvT': ('iadv', 10), 'SPGD': ('spgd', 50)}
SIZE = ('--preset', 'paper')
EVALUATED = 500  # reviews


class Clock(extension.Extension):
    """Writes down when each step ends."""

    trigger = 1, 'iteration'

    def __init__(self):
        self.ends = [time.perf_counter()]

    def __call__(self, trainer):
        self.ends.append(time.perf_counter())


# One kind, in a process of its own ----------------------------------------------------------

def classifier(method, arguments):
    """A trainer, its steps per epoch, and a function that evaluates the first test reviews."""
    flags = train.parse(['--method', method, *arguments])
    devices.seed(devices.choose(), flags.random_seed)
    corpus = settings.load_corpus(flags)
    model = train.build_model(flags, corpus)
    trainer = train.build_trainer(flags, corpus, model, {}, distributed.ALONE)
    return (trainer, trainer.updater.get_iterator('main').steps_per_epoch,
            lambda: nets.predict(model, corpus.test.sequences[:EVALUATED]))


def language_model(arguments):
    """The same for the language model, which reads 32 streams side by side."""
    flags = pretrain.parse(['--eval_streams', '32', *arguments])
    devices.seed(devices.choose(), flags.random_seed)
    text = pretrain.load_texts(flags)
    model = pretrain.build_model(flags, len(text.words))
    trainer, _ = pretrain.build_trainer(flags, model, text, {}, distributed.ALONE)
    return (trainer, -(-len(text.train.flat) // (flags.batchsize * flags.bproplen)),
            lambda: pretrain.stream_perplexity(flags, model, text.first(EVALUATED).test,
                                               distributed.ALONE))


def seconds_of(action):
    start = time.perf_counter()
    action()
    return time.perf_counter() - start


def measure(kind, steps, arguments):
    """What one kind of training takes, in seconds and megabytes."""
    method, _ = KINDS[kind]
    memory.keep_freed_memory()  # as training does
    out = tempfile.TemporaryDirectory()
    arguments = [*arguments, '--out', out.name, '--progress', 'off']
    trainer, steps_per_epoch, evaluate = (
        classifier(method, arguments) if method else language_model(arguments))
    trainer.stop_trigger = lambda trainer: trainer.updater.iteration >= steps
    clock = Clock()
    trainer.extend(clock)
    profile = cProfile.Profile()
    profile.runcall(trainer.run)
    stats = pstats.Stats(profile)
    kinds, rest = shares(stats)
    peak = timing.peak_megabytes()
    snapshot = os.path.join(out.name, 'measured.npz')
    return {
        'kind': kind, 'steps': np.diff(clock.ends).tolist(), 'steps_per_epoch': steps_per_epoch,
        'search': sum(row[3] for (file, _, name), row in stats.stats.items()
                      if file.endswith('neighbors/table.py') and name in ('_fill', 'refresh')),
        'arithmetic': sum(kinds.values()), 'largest_rest': rest[0], 'megabytes': peak,
        'evaluation': seconds_of(evaluate),
        'snapshot': seconds_of(lambda: checkpoints.save_snapshot(snapshot, trainer, {})),
        'snapshot_megabytes': os.path.getsize(snapshot) / 1e6}


# All kinds ----------------------------------------------------------------------------------

def markdown(found):
    lines = ["# The paper's size on a CPU", '',
             f'{processor()}, {kernels.describe()}. `--preset paper` (256/1024) on real IMDB, each '
             'kind of training in a process of its own, profiler included. A step has 32 reviews, '
             f'or 20 windows of 35 words. An evaluation reads {EVALUATED} test reviews. '
             "SPGD's and iAdvT's steps include the search for neighbours; SPGD's are one interval "
             'of 50 steps with one search.', '',
             '| | steps measured | step, median | step, mean | neighbours, per step | hours per '
             'epoch | evaluation | snapshot | peak memory | products, kernels, random numbers | '
             'largest of the rest |', '|---|' + '---:|' * 9 + '---|']
    for one in found:
        mean, (rest, share) = np.mean(one['steps']), one['largest_rest']
        lines.append(' | '.join([
            f'| {one["kind"]}', f'{len(one["steps"])}', f'{np.median(one["steps"]):.2f} s',
            f'{mean:.2f} s', f'{one["search"] / len(one["steps"]):.2f} s',
            f'{mean * one["steps_per_epoch"] / 3600:.2f}', f'{one["evaluation"]:.1f} s',
            f'{one["snapshot"]:.1f} s, {one["snapshot_megabytes"]:.0f} MB',
            f'{one["megabytes"]:.0f} MB', f'{one["arithmetic"]:.1%}',
            f'{rest.replace("|", "")} {share:.1%} |']))
    return '\n'.join(lines) + '\n'


def main(argv=None):
    parser = cli.ArgumentParser(prog='python -m experiments.benchmarks.paper_size',
                                description=__doc__.partition('\n')[0])
    parser.add_argument('--data_dir', required=True, help='prepared IMDB')
    parser.add_argument('--steps', type=cli.at_least(2), help='measured of each kind')
    parser.add_argument('--out', default='experiments/benchmarks', help='folder for paper_size.md')
    flags = parser.parse_args(argv)
    found = []
    for kind, (_, steps) in KINDS.items():
        print(f'{kind} ...', flush=True)
        with multiprocessing.get_context('spawn').Pool(1) as process:
            found.append(process.apply(
                measure, (kind, flags.steps or steps, (*SIZE, '--data_dir', flags.data_dir))))
    files.make_directory(flags.out)
    text = markdown(found)
    with files.atomic_write(os.path.join(flags.out, 'paper_size.md')) as stream:
        stream.write(text)
    print(text)


if __name__ == '__main__':
    cli.run(main)
