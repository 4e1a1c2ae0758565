"""Table 1: how a language model reads attacked test reviews.

    python -m lm.perplexity --lm L --model M --data_dir D --methods none,adv,iadv,spgd

Each review is attacked through its own loss, without dropout, with the settings that its method's
classifier was trained with, and read in three ways (see `interpretable_adv.evaluation.readings`).
Two controls may be added to the paper's methods: `adv_sparse`, AdvT sparsified like SPGD but not
projected, and `random`, random directions with AdvT's norms.
"""
import csv
import dataclasses
import math
import pathlib
import time

import numpy as np

from interpretable_adv import cli, methods, paper, settings
from interpretable_adv.cli import at_least
from interpretable_adv.errors import UserError
from interpretable_adv.evaluation import comparison, measures, sweep, wordnet
from interpretable_adv.evaluation.bootstrap import Bootstrap
from interpretable_adv.evaluation.invariance import Invariance
from interpretable_adv.evaluation.judge import Judge
from interpretable_adv.evaluation.readings import READINGS
from interpretable_adv.evaluation.victim import Adversary, Victim
from interpretable_adv.runs import devices, folder
from interpretable_adv.runs.files import atomic_write, write_json
from interpretable_adv.runs.progress import Counter
from lm.evaluation import Scorer
from lm.guide import find_guide
from lm.nets import load_lm

PLOT_FORMATS = ('.png', '.pdf', '.svg')
BUDGETS = (0.01, 0.02, 0.05, 0.1, 0.25, 0.5)  # of attacks by swaps, which have no ε


# 1. Arguments -------------------------------------------------------------------------------

def make_parser():
    parser = cli.ArgumentParser(
        prog='python -m lm.perplexity', description=__doc__.partition('\n')[0])
    group = parser.add_argument_group('what is measured')
    add = group.add_argument
    add('--lm', required=True, metavar='L', type=folder.model_file,
        help="a language model's best.model or run")
    add('--model', required=True, metavar='M',
        help="a classifier's best.model or run for all methods, or adv=PATH,iadv=PATH,…")
    add('--methods', default=','.join(paper.PERPLEXITY),
        help='any of ' + ','.join(methods.attackers()))
    add('--score', choices=(*READINGS, 'all'), default='all', help='reading')
    add('--n_samples', type=at_least(0), default=1000, metavar='N',
        help='random reviews that are attacked; 0, or more than there are: all')
    add('--seed', type=settings.SEED, default=1234, help='seed of the sample and of random')
    settings.add(group, 'split')
    add('--sweep_epsilon', type=cli.numbers(float), default=[], metavar='E,E,…',
        help='also try every method with these step sizes')
    add('--sweep_budget', type=cli.numbers(cli.share), default=list(BUDGETS), metavar='B,B,…',
        help='shares of the words that HotFlip may swap in a sweep (default: '
             f'{",".join(map(str, BUDGETS))})')

    add('--wordnet', default='', metavar='DIR', help='WordNet database, for antonyms and synonyms '
        "(default: Debian's, or NLTK's, where there is one)")
    add('--no_judge', action='store_true', help='without the independent judge of labels')

    settings.add(parser.add_argument_group('attacks'), 'epsilon', *(
        name for name in settings.UPSTREAM_ATTACK if name != 'xi_var'), *settings.SPGD)
    settings.add_class_lm(parser)
    group = parser.add_argument_group('results')
    add = group.add_argument
    add('--json', metavar='FILE', help='write all numbers')
    add('--csv', metavar='FILE', help='write the numbers of each review and method')
    add('--plot', metavar='FILE',
        help='draw the sweep (default: the name of --json, with .png)')
    settings.add(group, 'progress', 'gpu', 'device')
    settings.add_data(parser, lower=0, ignore_unk=1)
    settings.show_run_defaults(parser)
    return parser


def parse(argv=None):
    """The flags; data flags that are not given are those of the language model."""
    parser = make_parser()
    model = parser.parse_args(argv).lm
    run = settings.read_run(model)
    if run.get('use_full_vocab'):
        run['min_count'] = 0
    settings.set_run_defaults(parser, run, settings.DATA, model)
    flags = parser.parse_args(argv)
    flags.methods = cli.parse_names(flags.methods, methods.attackers(), '--methods')
    _refuse(flags)
    return flags


def _refuse(flags):
    """Rejects early what would otherwise fail after an hour's work."""
    for name in ('json', 'csv', 'plot'):
        path = pathlib.Path(getattr(flags, name) or '.')
        if not path.parent.is_dir():
            raise UserError(f'--{name} {path}: there is no folder {path.parent}; make it first')
    if flags.plot and pathlib.Path(flags.plot).suffix not in PLOT_FORMATS:
        raise UserError(f'--plot {flags.plot}: give a name that ends in one of '
                        f'{", ".join(PLOT_FORMATS)}')
    if not flags.sweep_epsilon:
        if flags.plot:
            raise UserError('--plot draws a sweep: add --sweep_epsilon')
        return
    if not (flags.json or flags.plot):
        raise UserError('--sweep_epsilon: give --json or --plot for its results')
    if flags.score == 'direction':
        raise UserError('--sweep_epsilon: the reading direction does not depend on ε; choose '
                        'another --score')
    if flags.spgd_step is not None:
        raise UserError('--sweep_epsilon and --spgd_step exclude each other: leave one out')


# 2. Measuring ---------------------------------------------------------------------------------

def load_victims(paths, corpus, device, scorer, lm):
    """`{path: Victim}` of classifiers whose perturbations fit the language model's vectors."""
    victims = {path: Victim.load(path, corpus, device) for path in dict.fromkeys(paths)}
    for path, victim in victims.items():
        size = victim.embeddings.shape[1]
        if size != scorer.word_size:
            raise UserError(f'{path} has word vectors of {size}, {lm} of {scorer.word_size}; the '
                            'perturbation of one must fit the other: give models of the same size')
    return victims


def strengths(method, attack, flags):
    """The settings of a method's attack at all strengths of a sweep, the weakest first."""
    if not flags.sweep_epsilon:
        return []
    if methods.METHODS[method].swaps:
        return [dataclasses.replace(attack, sparsity=round(1 - budget, 6))
                for budget in sorted(flags.sweep_budget)]
    return [dataclasses.replace(attack, epsilon=epsilon, step=None)
            for epsilon in sorted(flags.sweep_epsilon)]


def train_judge(corpus, wordnet_folder, seed):
    """An independent judge of labels, trained on the training reviews."""
    database = wordnet.WordNet(wordnet_folder) if wordnet_folder else wordnet.find()
    judge = Judge(corpus.train.sequences, corpus.train.labels, corpus.n_class, corpus.n_vocab)
    return Invariance(judge, corpus.words, database, seed)


class Measurer:
    """Measures attacks on the same reviews; what does not depend on the attack is computed once.

    Args:
        victims: `{method: Victim}`.
        guides: `{method: Guide or None}`.
        invariance: an independent judge, or None.
        progress: called with the number of reviews done since the last call.
    """

    def __init__(self, scorer, victims, guides, invariance, sequences, labels, progress):
        self.scorer, self.victims, self.guides, self.progress = scorer, victims, guides, progress
        self.invariance = invariance
        self.sequences, self.labels = sequences, labels
        self.nll_clean = scorer.nll(sequences)
        self.n_predictions = sum(len(sequence) - 1 for sequence in sequences)
        if not self.n_predictions:
            raise UserError('the sampled reviews hold nothing to predict: take more of them')
        self.perplexity_clean = float(
            measures.perplexity(self.nll_clean.sum(), self.n_predictions))
        self._before = {victim: measures.predictions(victim, sequences)
                        for victim in dict.fromkeys(victims.values())}

    def __call__(self, method, attack, readings):
        """The `Measurement` of a method with the settings `attack`."""
        victim = self.victims[method]
        return measures.measure(
            Adversary(method, victim, attack, self.guides[method]), self.scorer, self.sequences,
            self.labels, self._before[victim], self.nll_clean, readings, self.progress,
            self.invariance)


# 3. Results -----------------------------------------------------------------------------------

def table(rows, readings):
    """Table 1 as lines of text, and below it what each attack did to words and predictions."""
    discrete = [name for name in readings if name != 'continuous']
    perplexities = [['', 'ε', *readings, 'paper']]
    words = [['', 'norm per word', 'moved', *(f'changed, {name}' for name in discrete)]]
    predictions = [['', 'before', *readings]]
    for row in rows:
        method, values = row['method'], row['scores']
        gap = paper.GAP.get(method)
        perplexities.append([
            method, '–' if row['epsilon'] is None else f"{row['epsilon']:g}",
            *(f"{values[name]['perplexity']:.2f} ({values[name]['gap']:+.2f})"
              for name in readings),
            '' if gap is None else f'{paper.PERPLEXITY[method]:.2f} ({gap:+.2f})'])
        words.append([
            method, f"{row['norm_per_word']:.3f}", f"{row['words_moved']:.1f} %",
            *(f"{values[name]['words_changed']:.1f} %" for name in discrete)])
        predictions.append([
            method, f"({row['accuracy_clean']:.1f} %)",
            *(f"{values[name]['flipped']:.1f} % ({values[name]['accuracy']:.1f} %)"
              for name in readings)])
    attacks = [[row['method'], ', '.join(f'{flag} {value:g}' if isinstance(value, float)
                                         else f'{flag} {value}'
                                         for flag, value in row['settings'].items()
                                         if value is not None)]
               for row in rows if row['method'] != 'none']
    return ['Perplexity (gap to the clean reviews)', *_aligned(perplexities), '',
            'Words', *_aligned(words), '',
            'Predictions flipped (accuracy)', *_aligned(predictions), '',
            *_judgements(rows, discrete),
            'Attacks', *(f'{method}: {flags}' for method, flags in attacks)]


def _judgements(rows, readings):
    """What the independent judge and WordNet say of the discrete texts, as lines of text."""
    readings = [name for name in readings if 'judge_changed' in rows[0]['scores'][name]]
    if not readings:
        return []
    lines = [['', *(f'{title}, {name}' for name in readings
                    for title in ('changed (random)', 'antonyms', 'synonyms'))]]
    for row in rows:
        lines.append([row['method']])
        for name in readings:
            values = row['scores'][name]
            lines[-1] += [f"{values['judge_changed']:.1f} % ({values['judge_changed_random']:.1f} "
                          '%)', *('–' if values[kind] is None else f'{values[kind]:.1f} %'
                                  for kind in measures.OF_SWAPS)]
    return ["Labels changed for the judge (by random swaps of as many words); swaps that are …",
            *_aligned(lines), '']


def equal_strength_table(values):
    """Gaps at equal shares of flipped predictions, as lines of text."""
    return _aligned([
        ['', *(f'{rate} % flipped' for rate in comparison.FLIP_RATES)],
        *([method, *('–' if gap is None else f'{gap:+.2f}' for gap in gaps.values())]
          for method, gaps in values.items())])


def _aligned(lines):
    widths = [max(map(len, column)) for column in zip(*lines)]
    return ['  '.join([line[0].ljust(widths[0]), *(
        cell.rjust(width) for cell, width in zip(line[1:], widths[1:]))]).rstrip()
        for line in lines]


def write_reviews(path, indices, labels, measurements):
    """One row per review and method."""
    readings = next(iter(measurements.values())).readings
    with atomic_write(path) as stream:
        writer = csv.writer(stream, lineterminator='\n')
        writer.writerow([
            'index', 'label', 'method', 'words', 'words_moved', 'norm', 'right',
            'perplexity_clean', *(f'{name}_{reading}' for reading in readings for name in (
                'perplexity', 'gap', 'words_changed', 'flipped', 'right'))])
        for method, found in measurements.items():
            clean = found.perplexities()
            after = {reading: found.perplexities(reading) for reading in readings}
            for i, (index, label) in enumerate(zip(indices, labels)):
                row = [index, label, method, found.words[i], int(found.moved[i]),
                       repr(float(found.norm[i])), int(found.right[i]), _text(clean[i])]
                for reading in readings:
                    row += [_text(after[reading][i]), _text(after[reading][i] - clean[i]),
                            int(found.changed[reading][i]), int(found.flipped[reading][i]),
                            int(found.right_after[reading][i])]
                writer.writerow(row)


def _text(value):
    return repr(float(value)) if np.isfinite(value) else ''


def _finite(value):
    """The value with None for numbers that JSON cannot hold."""
    if isinstance(value, dict):
        return {key: _finite(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_finite(item) for item in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value


def draw_sweep(path, rows, attackers, readings):
    figure = sweep.make_figure(rows, attackers, readings)
    with atomic_write(path, 'wb') as stream:
        figure.savefig(stream, format=pathlib.Path(path).suffix[1:], dpi=150)


# 4. All together --------------------------------------------------------------------------------

def main(argv=None):
    flags = parse(argv)
    started = time.time()
    readings = READINGS if flags.score == 'all' else (flags.score,)
    # The neighbour that a word moves towards does not depend on how far it moves.
    sweep_readings = tuple(name for name in readings if name != 'direction')
    paths = settings.model_paths(flags.model, flags.methods)
    attacks = settings.resolve_attacks(
        make_parser, argv, paths, settings.parse_epsilons(flags.epsilon, flags.methods),
        flags.seed, class_lms=settings.per_method(flags.class_lm, flags.methods, '--class_lm',
                                                  required=False))

    device = devices.choose(flags.gpu, flags.device)
    corpus = settings.load_corpus(flags)
    language_model = load_lm(flags.lm, corpus.words)
    language_model.to_device(device)
    scorer = Scorer(language_model)
    victims = load_victims(paths.values(), corpus, device, scorer, flags.lm)

    split = getattr(corpus, flags.split)
    if not len(split.labels):
        raise UserError(f'{flags.data_dir} has no {flags.split} reviews')
    indices = measures.sample(len(split.labels), flags.n_samples, flags.seed)
    labels = split.labels[indices]
    attackers = [method for method in flags.methods if method != 'none']
    swept = [(method, attack) for method in attackers
             for attack in strengths(method, attacks[method], flags)]
    progress = Counter(len(indices) * (len(flags.methods) + len(swept)), 'attacks',
                       flags.progress)
    guides = {method: find_guide(attack, corpus, scorer.word_size, device)
              for method, attack in attacks.items()}
    invariance = None if flags.no_judge else train_judge(corpus, flags.wordnet, flags.seed)
    measure = Measurer(scorer, {method: victims[path] for method, path in paths.items()}, guides,
                       invariance, [split.sequences[i] for i in indices], labels, progress.add)

    def row(method, attack, found):
        swaps = methods.METHODS[method].swaps
        return {'method': method, 'epsilon': None if swaps else attack.epsilon,
                'budget': attack.budget if swaps else None, 'model': paths[method],
                'settings': settings.as_flags(attack, method), **found.summary()}

    measurements = {method: measure(method, attacks[method], readings)
                    for method in flags.methods}
    rows = [row(method, attacks[method], found) for method, found in measurements.items()]
    points = [(method, attack, measure(method, attack, sweep_readings))
              for method, attack in swept]
    sweep_rows = [row(*point) for point in points]
    progress.close()
    at_equal_strength = comparison.at_equal_strength(sweep_rows)
    draws = Bootstrap(len(indices))
    comparison.add_intervals(rows, measurements, draws)

    print(f'{len(indices):,} of {len(split.labels):,} {flags.split} reviews, '
          f'{measure.n_predictions:,} words to predict, clean perplexity '
          f'{measure.perplexity_clean:.2f} (paper: {paper.PERPLEXITY["none"]})\n')
    print('\n'.join(table(rows, readings)))
    for name, values in at_equal_strength['gap_at_flip_rate'].items():
        print(f'\nGap at equal strength, {name}')
        print('\n'.join(equal_strength_table(values)))
    print()
    if flags.csv:
        write_reviews(flags.csv, indices, labels, measurements)
        print(flags.csv)
    if sweep_rows:
        plot = flags.plot or str(pathlib.Path(flags.json).with_suffix('.png'))
        draw_sweep(plot, sweep_rows, attackers, sweep_readings)
        print(plot)
    if flags.json:
        write_json(flags.json, _finite({
            'lm': flags.lm, 'split': flags.split, 'seed': flags.seed,
            'n_reviews': len(indices), 'n_predictions': measure.n_predictions,
            'perplexity_clean': measure.perplexity_clean, 'rows': rows, 'sweep': sweep_rows,
            **at_equal_strength,
            'spgd_minus': comparison.spgd_minus(rows, measurements, draws),
            'spgd_minus_at_flip_rate': comparison.spgd_minus_at_flip_rate(
                at_equal_strength, [(method, found) for method, _, found in points], draws),
            'judge': None if invariance is None else {
                'accuracy': invariance.judge.accuracy(split.sequences, split.labels),
                'wordnet': invariance.wordnet is not None},
            'seconds': time.time() - started, 'versions': folder.versions()}))
        print(flags.json)


def command():
    cli.run(main)


if __name__ == '__main__':
    command()
