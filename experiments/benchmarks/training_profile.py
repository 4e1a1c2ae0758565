"""Where the time of a whole training run goes: real IMDB reviews, SPGD at 256/256.

    python -m experiments.benchmarks.training_profile --data_dir experiments/data/imdb

Trains for one epoch on the first reviews of every split, with evaluation, logs and snapshot, and
writes profile.md. What is not in a product, a C kernel or the random numbers is overhead.
"""
import cProfile
import itertools
import os
import pathlib
import pstats
import tempfile

from chainer.training import Trainer

from experiments.benchmarks.__main__ import processor
from interpretable_adv import cli, train
from interpretable_adv.data import text_files
from interpretable_adv.nn import kernels
from interpretable_adv.runs import files

SETTINGS = ('--preset', 'paper', '--method', 'spgd', '--emb_dim', '256', '--hidden_dim', '256',
            '--batchsize', '32', '--n_epoch', '1')
# Functions whose own time is arithmetic, as (end of the file's name, function). NumPy's `dot` and
# `matmul` show up as the own time of the functions that call them.
ARITHMETIC = {
    "NumPy's products": (('~', "<method 'dot' of 'numpy.ndarray' objects>"),
                         ('interpretable_adv/nn/products.py', 'product'),
                         ('interpretable_adv/nn/products.py', 'dots'),
                         ('interpretable_adv/nn/products.py', 'combine'),
                         ('interpretable_adv/neighbors/search.py', '_search_groups')),
    'C kernels': (('interpretable_adv/nn/kernels/__init__.py', '_run'),),
    'random numbers': (('interpretable_adv/nn/kernels/__init__.py', 'dropout_mask'),
                       ('~', "<method 'rand' of 'numpy.random.mtrand.RandomState' objects>")),
}


def parse(argv):
    parser = cli.ArgumentParser(
        prog='python -m experiments.benchmarks.training_profile', description=__doc__)
    parser.add_argument('--data_dir', required=True, help='prepared IMDB')
    parser.add_argument('--steps', type=int, default=100, help='training steps')
    parser.add_argument('--out', default='experiments/benchmarks', help='folder for profile.md')
    return parser.parse_args(argv)


def main(argv=None):
    settings = parse(argv)
    with tempfile.TemporaryDirectory() as folder:
        n_reviews = write_first_reviews(settings.data_dir, folder, 32 * settings.steps)
        profile = profiled([*SETTINGS, '--data_dir', folder,
                            '--out', os.path.join(folder, 'run')])
    text = markdown(profile, n_reviews)
    files.make_directory(settings.out)
    with files.atomic_write(os.path.join(settings.out, 'profile.md'), 'w') as file:
        file.write(text)
    print(text)


def write_first_reviews(source, target, n_train):
    """The first `n_train` training reviews, and of the others the same share; all unlabelled ones,
    which make the vocabulary. Returns the number of reviews of each split."""
    source, target = pathlib.Path(source), pathlib.Path(target)
    counts, share = {}, None
    for split, pairs in text_files.UPSTREAM_FILES.items():
        counts[split] = 0
        for name, _ in pairs:
            lines = (source / name).read_text(encoding='utf-8').splitlines(keepends=True)
            if share is None:  # the first split is the training set
                share = n_train / len(pairs) / len(lines)
            chosen = list(itertools.islice(lines, max(1, round(share * len(lines)))))
            (target / name).write_text(''.join(chosen), encoding='utf-8')
            counts[split] += len(chosen)
    unlabeled = text_files.UPSTREAM_UNLABELED
    (target / unlabeled).symlink_to((source / unlabeled).resolve())
    return counts


def profiled(arguments):
    """The profile of a training run from its first step to the end of its last epoch."""
    profile, run = cProfile.Profile(), Trainer.run

    def profiled_run(*args, **options):
        return profile.runcall(run, *args, **options)

    Trainer.run = profiled_run
    try:
        train.main(arguments)
    finally:
        Trainer.run = run
    return pstats.Stats(profile)


def shares(stats):
    """Share of the time by kind of arithmetic, and the longest of the rest by function."""
    kinds, rest = dict.fromkeys(ARITHMETIC, 0.0), {}
    for (file, _, function), (_, _, own, _, _) in stats.stats.items():
        for kind, functions in ARITHMETIC.items():
            if any(file.endswith(end) and function == name for end, name in functions):
                kinds[kind] += own / stats.total_tt
                break
        else:
            name = function if file == '~' else f'{pathlib.Path(file).name}: {function}'
            rest[name] = rest.get(name, 0.0) + own / stats.total_tt
    return kinds, sorted(rest.items(), key=lambda item: -item[1])


def markdown(stats, n_reviews):
    kinds, rest = shares(stats)
    reviews = ', '.join(f'{count:,} {split}' for split, count in n_reviews.items())
    lines = ['# Where the time goes', '',
             f'{processor()}, {kernels.describe()}. SPGD at 256/256, one epoch on real reviews '
             f'({reviews}), everything from the first step to the end included: '
             f'{stats.total_tt:.0f} s under the profiler, whose own time counts as overhead.', '',
             '| | share of the time |', '|---|---|',
             *(f'| {kind} | {share:.1%} |' for kind, share in kinds.items()),
             f'| **together** (goal: 85 %) | **{sum(kinds.values()):.1%}** |',
             *(f'| {name.replace("|", "")} | {share:.1%} |' for name, share in rest[:6]),
             f'| {len(rest) - 6:,} other functions | '
             f'{sum(share for _, share in rest[6:]):.1%} |', '']
    return '\n'.join(lines)


if __name__ == '__main__':
    cli.run(main)
