"""Accuracy under attack: python -m interpretable_adv.robustness --model M --source P --data_dir D

Attacks reviews with SPGD, AdvT, HotFlip and greedy HotFlip, reads the results as words, and counts
how often the classifier is still right. The attacks are on the classifier itself and, with
`--source`, transferred from another one. No language model guides them, whatever a classifier was
trained with, so that all classifiers face the same attacks.
"""
import csv
import dataclasses
import time

import numpy as np

from interpretable_adv import cli, settings
from interpretable_adv.cli import at_least
from interpretable_adv.errors import UserError
from interpretable_adv.evaluation import measures, robustness
from interpretable_adv.evaluation.victim import Adversary, Victim
from interpretable_adv.runs import devices, folder
from interpretable_adv.runs.files import atomic_write, write_json
from interpretable_adv.runs.progress import Counter

# 1. Arguments -------------------------------------------------------------------------------

def make_parser():
    parser = cli.ArgumentParser(prog='python -m interpretable_adv.robustness',
                                description=__doc__.partition('\n')[0])
    group = parser.add_argument_group('what is measured')
    add = group.add_argument
    add('--model', required=True, metavar='M', help="a classifier's best.model")
    add('--source', default='', metavar='P',
        help='another classifier, from which attacks are transferred as well')
    add('--n_samples', type=at_least(0), default=1000, metavar='N',
        help='random reviews that are attacked; 0, or more than there are: all')
    add('--seed', type=at_least(0), default=1234, help='seed of the sample')
    settings.add(group, 'split')
    settings.add(parser.add_argument_group('attacks'), 'epsilon', *(
        name for name in settings.UPSTREAM_ATTACK if name != 'xi_var'), *settings.SPGD)
    group = parser.add_argument_group('results')
    group.add_argument('--json', metavar='FILE', help='write all numbers')
    group.add_argument('--csv', metavar='FILE', help='write whether each review is right')
    settings.add(group, 'progress', 'gpu', 'device')
    settings.add_data(parser)
    settings.show_run_defaults(parser)
    return parser


def parse(argv=None):
    """The flags; data flags that are not given are those that the model was trained with."""
    parser = make_parser()
    model = folder.model_file(parser.parse_args(argv).model)
    settings.set_run_defaults(parser, settings.read_run(model), settings.DATA, model)
    return parser.parse_args(argv)


def unguided(attacks):
    """The settings of attacks without the language model that a classifier was trained with."""
    return {method: dataclasses.replace(attack, class_lm='') for method, attack in attacks.items()}


# 2. Results ---------------------------------------------------------------------------------

def accuracies(right):
    return {name: 100 * float(values.mean()) for name, values in right.items()}


def write_reviews(path, indices, labels, columns):
    """One row per review: `index,label`, then 0 or 1 for each column, and numbers of swaps."""
    with atomic_write(path) as stream:
        writer = csv.writer(stream, lineterminator='\n')
        writer.writerow(['index', 'label', *columns])
        writer.writerows(zip(indices.tolist(), labels.tolist(), *(
            values.astype(int).tolist() for values in columns.values())))


def table(result):
    """The numbers as lines of text."""
    lines = [f'clean: {result["clean"]:.2f} % of {result["n_reviews"]:,} {result["split"]} reviews '
             'right']
    for kind in ('own', 'transferred'):
        if kind in result:
            shown = ', '.join(f'{name} {value:.2f}' for name, value in result[kind].items())
            lines.append(f'{kind} attacks: {shown}')
    return [*lines, f'greedy swaps, median: {result["median_swaps"]:g}']


# 3. All together ----------------------------------------------------------------------------

def main(argv=None):
    flags = parse(argv)
    started = time.time()
    device = devices.choose(flags.gpu, flags.device)
    epsilons = settings.parse_epsilons(flags.epsilon, robustness.ATTACKS)
    paths = {kind: folder.model_file(path) for kind, path in (
        ('own', flags.model), ('transferred', flags.source)) if path}
    attacks = {kind: unguided(settings.resolve_attacks(
        make_parser, argv, dict.fromkeys(robustness.ATTACKS, path), epsilons, flags.seed))
        for kind, path in paths.items()}
    corpus = settings.load_corpus(flags)
    victims = {kind: Victim.load(path, corpus, device) for kind, path in paths.items()}
    split = getattr(corpus, flags.split)
    if not len(split.labels):
        raise UserError(f'{flags.data_dir} has no {flags.split} reviews')
    indices = measures.sample(len(split.labels), flags.n_samples, flags.seed)
    sequences, labels = [split.sequences[i] for i in indices], split.labels[indices]

    own = victims['own']
    columns = {'clean': robustness.right(own, sequences, labels)}
    result = {'model': flags.model, 'source': flags.source, 'split': flags.split,
              'seed': flags.seed, 'n_reviews': len(indices),
              'clean': 100 * float(columns['clean'].mean())}
    progress = Counter(len(indices) * len(paths) * len(robustness.ATTACKS), 'attacks',
                       flags.progress)
    try:
        for kind, victim in victims.items():
            texts = robustness.attacked_texts(
                {method: Adversary(method, victim, attack)
                 for method, attack in attacks[kind].items()}, sequences, labels, progress.add)
            right = robustness.right_on_texts(own, texts, labels)
            result[kind] = accuracies(right)
            columns.update((f'{kind}_{name}', values) for name, values in right.items())
            if kind == 'own':
                columns['swaps'] = texts.swaps
                result['median_swaps'] = float(np.median(texts.swaps))
    finally:
        progress.close()
    result['settings'] = {kind: {method: settings.as_flags(attack, method)
                                 for method, attack in found.items()}
                          for kind, found in attacks.items()}

    print('\n'.join(table(result)))
    if flags.csv:
        write_reviews(flags.csv, indices, labels, columns)
        print(flags.csv)
    if flags.json:
        write_json(flags.json, {**result, 'seconds': time.time() - started,
                                'versions': folder.versions()})
        print(flags.json)


def command():
    cli.run(main)


if __name__ == '__main__':
    command()
