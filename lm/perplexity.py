"""Table 1: how a language model reads attacked test reviews.

    python -m lm.perplexity --lm L --model M --data_dir D --methods none,adv,iadv,spgd

Each review is attacked through its own loss, without dropout, and read in three ways (see
`lm.attacked`): continuous, nearest, direction. Two controls can stand beside the paper's methods:
`adv_sparse`, AdvT sparsified like SPGD but not projected, and `random`, random directions with
AdvT's norms.
"""
import csv
import json
import math
import pathlib
import sys
import time

import numpy as np

from interpretable_adv import attack_flags, checkpoints, cli, data_flags, devices
from interpretable_adv.cli import UserError, at_least
from interpretable_adv.files import atomic_write
from interpretable_adv.training import duration, versions, write_json
from lm import attacked, evaluation
from lm.loading import load_lm

METHODS = ('none', 'adv', 'iadv', 'spgd', 'adv_sparse', 'random')
CONTROLS = ('adv_sparse', 'random')  # take AdvT's epsilon and AdvT's classifier
PAPER_EPSILON = {'none': 0.0, 'adv': 5.0, 'iadv': 15.0, 'spgd': 25.0}
PAPER_CLEAN, PAPER_GAP = 117.93, {'adv': 4.60, 'iadv': 5.93, 'spgd': 1.09}
# Names and colours of the drawing; the colours are Okabe and Ito's, for all eyes.
DRAWN = {'adv': ('AdvT', '#0072B2', 'o'), 'iadv': ('iAdvT', '#E69F00', 's'),
         'spgd': ('SPGD', '#009E73', 'D'), 'adv_sparse': ('AdvT, sparsified', '#56B4E9', '^'),
         'random': ("random, AdvT's norms", '#999999', 'v')}
PLOT_FORMATS = ('.png', '.pdf', '.svg')
FLIP_RATES = (10, 25, 50)  # per cent, at which the sweep compares methods


# 1. Arguments -------------------------------------------------------------------------------

def make_parser():
    parser = cli.ArgumentParser(
        prog='python -m lm.perplexity', description=__doc__.partition('\n')[0])
    add = parser.add_argument_group('what is measured').add_argument
    add('--lm', required=True, metavar='L', help="a language model's best.model")
    add('--model', required=True, metavar='M',
        help="a classifier's best.model for all methods, or adv=PATH,iadv=PATH,…")
    add('--methods', default='none,adv,iadv,spgd', help='any of ' + ','.join(METHODS))
    add('--score', choices=(*attacked.SCORES, 'all'), default='all', help='reading')
    add('--n_samples', type=at_least(0), default=1000, metavar='N',
        help='random reviews that are attacked; 0, or more than there are: all')
    add('--seed', type=at_least(0), default=1234, help='seed of the sample and of random')
    add('--split', choices=('train', 'dev', 'test'), default='test', help='where they come from')
    add('--sweep_epsilon', type=_numbers, default=[], metavar='E,E,…',
        help='also try every method with these step sizes')

    add = parser.add_argument_group('attacks').add_argument
    add('--epsilon', default='', metavar='E',
        help="step size, one for all or adv=5,iadv=15,…; without it the paper's")
    add('--nn_k', type=at_least(1), default=15, help='K, neighbours per word')
    add('--norm_sentence_level', type=int, choices=(0, 1), default=1,
        help='one norm per review instead of per word')
    add('--use_limit_vocab', type=int, choices=(0, 1), default=1,
        help='neighbours among the words of labelled reviews only')

    attack_flags.add(parser)
    add = parser.add_argument_group('results').add_argument
    add('--json', metavar='FILE', help='write all numbers')
    add('--csv', metavar='FILE', help='write the numbers of each review and method')
    add('--plot', metavar='FILE',
        help='draw the sweep; without it the name of --json, with .png')
    add('--progress', nargs='?', const='on', default='auto', choices=('auto', 'on', 'off'),
        help='live line: on a terminal, always, never')
    add('--gpu', '-g', type=int, default=-1, help='number of the GPU; negative: CPU')
    add('--device', help="Chainer's name of a device, e.g. @cupy:0; instead of --gpu")
    data_flags.add(parser, lower=0)
    parser.set_defaults(ignore_unk=1)
    return parser


def _numbers(text):
    values = [float(number) for number in text.split(',')]
    if not all(0 <= value < math.inf for value in values):
        raise ValueError
    return values


_numbers.__name__ = 'list of step sizes'


def parse(argv=None):
    """The settings; data flags that are not given are those of the language model."""
    parser = make_parser()
    settings = parser.parse_args(argv)
    run = _run_settings(settings.lm)
    if run.get('use_full_vocab'):
        run['min_count'] = 0
    parser.set_defaults(**{name: run[name] for name in data_flags.NAMES if name in run})
    settings = parser.parse_args(argv)
    settings.methods = _names(settings.methods)
    return settings


def _run_settings(path):
    """The `args.json` beside a model, or nothing."""
    try:
        text = (pathlib.Path(path).parent / 'args.json').read_text(encoding='utf-8')
        values = json.loads(text)
    except (OSError, ValueError):
        return {}
    return values if isinstance(values, dict) else {}


def _names(text):
    names = list(dict.fromkeys(name.strip() for name in text.split(',') if name.strip()))
    for name in names:
        if name not in METHODS:
            raise UserError(f'--methods: {name} is not one of {", ".join(METHODS)}')
    if not names:
        raise UserError(f'--methods is empty: give any of {", ".join(METHODS)}')
    return names


def refuse_what_cannot_be(settings):
    """Ends here what would otherwise fail after an hour's work."""
    for flag in ('json', 'csv', 'plot'):
        path = pathlib.Path(getattr(settings, flag) or '.')
        if not path.parent.is_dir():
            raise UserError(f'--{flag} {path}: there is no folder {path.parent}; make it first')
    if settings.plot and pathlib.Path(settings.plot).suffix not in PLOT_FORMATS:
        raise UserError(f'--plot {settings.plot}: give a name that ends in one of '
                        f'{", ".join(PLOT_FORMATS)}')
    if not settings.sweep_epsilon:
        if settings.plot:
            raise UserError('--plot draws a sweep: add --sweep_epsilon')
        return
    if not (settings.json or settings.plot):
        raise UserError('--sweep_epsilon: give --json or --plot for its results')
    if settings.score == 'direction':
        raise UserError('--sweep_epsilon: the reading direction does not depend on ε; choose '
                        'another --score')
    if settings.spgd_step is not None:
        raise UserError('--sweep_epsilon and --spgd_step exclude each other: leave one out')


def per_method(text, methods, flag, defaults=None):
    """`{method: value}` from one value for all, or from `adv=X,iadv=Y`.

    A control without a value of its own has AdvT's; `none` has that of the first method.
    """
    parts = [part.strip() for part in text.split(',') if part.strip()]
    named = [part.partition('=') for part in parts if part.partition('=')[0] in METHODS]
    if not named:
        values = dict.fromkeys(METHODS, text.strip()) if text.strip() else dict(defaults or {})
    elif len(named) < len(parts) or not all(value for _, _, value in named):
        raise UserError(f'{flag} {text}: give one value, or method=value for each method')
    else:
        values = {**(defaults or {}), **{name: value for name, _, value in named}}
    for control in CONTROLS:
        if 'adv' in values:
            values.setdefault(control, values['adv'])
    if values:
        values.setdefault('none', next(iter(values.values())))
    for method in methods:
        if method not in values:
            raise UserError(f'{flag} names nothing for the method {method}: add {method}=…')
    return {method: values[method] for method in methods}


def epsilons(settings):
    """`{method: step size}`."""
    values = per_method(settings.epsilon, settings.methods, '--epsilon', PAPER_EPSILON)
    try:
        values = {method: float(value) for method, value in values.items()}
        if not all(0 <= value < math.inf for value in values.values()):
            raise ValueError
    except ValueError:
        raise UserError(f'--epsilon {settings.epsilon}: give numbers from 0') from None
    if 'none' in values:
        values['none'] = 0.0
    return values


# 2. Attacks -----------------------------------------------------------------------------------

def build_attack(settings, method, epsilon, victim):
    if method == 'none':
        return attacked.NoAttack()
    if method in CONTROLS:
        options = {'level': 'sentence' if settings.norm_sentence_level else 'word',
                   'mask_eos': bool(settings.mask_eos)}
        if method == 'adv_sparse':
            return attacked.SparseAdvT(epsilon, settings.sparsity, **options)
        return attacked.RandomDirections(epsilon, settings.seed, **options)
    return attack_flags.build(method, epsilon, victim.neighbors, settings)


def load_victims(settings, corpus, device, word_size):
    """`{method: Victim}`; methods with the same classifier share it."""
    limit = corpus.train_vocab_size + 2 if settings.use_limit_vocab else corpus.n_vocab
    if settings.nn_k >= limit:
        raise UserError(f'--nn_k {settings.nn_k}: there are only {limit} words to choose '
                        'neighbours from; give a smaller number')
    paths = per_method(settings.model, settings.methods, '--model')
    victims = {}
    for path in dict.fromkeys(paths.values()):
        model = checkpoints.load_classifier(path, corpus.words)
        if len(model.output_layer.b) != corpus.n_class:
            raise UserError(f'{path} tells {len(model.output_layer.b)} classes apart, '
                            f'{settings.data_dir} has {corpus.n_class}; use the data folder it '
                            'was trained with')
        if model.word_embed.W.shape[1] != word_size:
            raise UserError(f'{path} has word vectors of {model.word_embed.W.shape[1]}, '
                            f'{settings.lm} of {word_size}; the perturbation of one must fit the '
                            'other: give models of the same size')
        model.to_device(device)
        victims[path] = attacked.Victim(model, settings.nn_k, limit)
    return {method: victims[path] for method, path in paths.items()}, paths


# 3. Results -----------------------------------------------------------------------------------

def table(rows, scores):
    """Table 1 as lines of text, and below it what each attack did to words and predictions."""
    discrete = [score for score in scores if score != 'continuous']
    perplexities = [['', 'ε', *scores, 'paper']]
    words = [['', 'norm per word', 'moved', *(f'changed, {score}' for score in discrete)]]
    predictions = [['', 'before', *scores]]
    for row in rows:
        method, values = row['method'], row['scores']
        gap = PAPER_GAP.get(method)
        perplexities.append([
            method, f"{row['epsilon']:g}",
            *(f"{values[s]['perplexity']:.2f} ({values[s]['gap']:+.2f})" for s in scores),
            '' if gap is None else f'{PAPER_CLEAN + gap:.2f} ({gap:+.2f})'])
        words.append([
            method, f"{row['norm_per_word']:.3f}", f"{row['words_moved']:.1f} %",
            *(f"{values[s]['words_changed']:.1f} %" for s in discrete)])
        predictions.append([
            method, f"({row['accuracy_clean']:.1f} %)",
            *(f"{values[s]['flipped']:.1f} % ({values[s]['accuracy']:.1f} %)" for s in scores)])
    return ['Perplexity (gap to the clean reviews)', *_aligned(perplexities), '',
            'Words', *_aligned(words), '',
            'Predictions flipped (accuracy)', *_aligned(predictions)]


def _aligned(lines):
    widths = [max(map(len, column)) for column in zip(*lines)]
    return ['  '.join([line[0].ljust(widths[0]), *(
        cell.rjust(width) for cell, width in zip(line[1:], widths[1:]))]).rstrip()
        for line in lines]


def gap_at_flip_rate(points, score, rate):
    """The gap at which a method flips `rate` per cent of predictions, between two step sizes.

    Args:
        points: summaries of one method, in order of ε.

    Returns:
        the gap at the first crossing, by linear interpolation from (0, 0); None if the method
        never flips so many.
    """
    previous = 0.0, 0.0
    for point in points:
        here = point['scores'][score]['flipped'], point['scores'][score]['gap']
        if here[0] >= rate:
            weight = (rate - previous[0]) / (here[0] - previous[0])
            return previous[1] + weight * (here[1] - previous[1])
        previous = here
    return None


def compare_at_equal_strength(sweep, methods, score='continuous'):
    """`{method: {rate: gap}}` at the flip rates of `FLIP_RATES`."""
    return {method: {str(rate): gap_at_flip_rate(
        [row for row in sweep if row['method'] == method], score, rate) for rate in FLIP_RATES}
        for method in methods}


def draw_sweep(path, sweep, methods, scores):
    """Gap against flip rate: a panel for each reading, a line for each method, numbers are ε."""
    import matplotlib
    matplotlib.use('Agg')
    from matplotlib import pyplot
    figure, axes = pyplot.subplots(1, len(scores), figsize=(5.5 * len(scores), 4.2), squeeze=False)
    for axis, score in zip(axes[0], scores):
        for method in methods:
            label, color, marker = DRAWN[method]
            points = [row for row in sweep if row['method'] == method]
            flipped = [row['scores'][score]['flipped'] for row in points]
            gap = [row['scores'][score]['gap'] for row in points]
            axis.plot(flipped, gap, marker=marker, markersize=4, linewidth=1.2, label=label,
                      color=color)
            for row, x, y in zip(points, flipped, gap):
                if x >= 3:  # near the origin there is no room for numbers
                    axis.annotate(f"{row['epsilon']:g}", (x, y), textcoords='offset points',
                                  xytext=(4, 3), fontsize=6, color=color)
        axis.set_yscale('symlog', linthresh=1)
        axis.set_ylim(bottom=min(0, axis.get_ylim()[0]))
        axis.set_xlabel('predictions flipped (%)')
        axis.set_ylabel('perplexity gap')
        axis.set_title(score)
        axis.grid(alpha=0.3, linewidth=0.5)
    axes[0, 0].legend(fontsize=8)
    figure.tight_layout()
    with atomic_write(path, 'wb') as stream:
        figure.savefig(stream, format=pathlib.Path(path).suffix[1:], dpi=150)
    pyplot.close(figure)


def write_reviews(path, indices, labels, measurements):
    """One row per review and method."""
    scores = next(iter(measurements.values())).scores
    with atomic_write(path) as stream:
        writer = csv.writer(stream, lineterminator='\n')
        writer.writerow([
            'index', 'label', 'method', 'words', 'words_moved', 'norm', 'right',
            'perplexity_clean', *(f'{name}_{score}' for score in scores for name in (
                'perplexity', 'gap', 'words_changed', 'flipped', 'right'))])
        for method, found in measurements.items():
            clean = found.perplexities()
            after = {score: found.perplexities(score) for score in scores}
            for i, (index, label) in enumerate(zip(indices, labels)):
                row = [index, label, method, found.words[i], int(found.moved[i]),
                       repr(float(found.norm[i])), int(found.right[i]), _text(clean[i])]
                for score in scores:
                    row += [_text(after[score][i]), _text(after[score][i] - clean[i]),
                            int(found.changed[score][i]), int(found.flipped[score][i]),
                            int(found.right_after[score][i])]
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


class Progress:
    """A live line on standard error."""

    def __init__(self, total, mode):
        self.total, self.done = total, 0
        self.live = mode == 'on' or (mode == 'auto' and sys.stderr.isatty())
        self.begin = self.last = time.monotonic()

    def __call__(self, reviews):
        self.done += reviews
        now = time.monotonic()
        if self.live and (now - self.last > 0.5 or self.done == self.total):
            left = (now - self.begin) / self.done * (self.total - self.done)
            end = '\n' if self.done == self.total else ''
            sys.stderr.write(f'\r{self.done:,} of {self.total:,} attacks, '
                             f'{duration(left)} left'.ljust(60) + end)
            sys.stderr.flush()
            self.last = now


# 4. All together --------------------------------------------------------------------------------

def main(argv=None):
    settings = parse(argv)
    started = time.time()
    step_sizes = epsilons(settings)
    refuse_what_cannot_be(settings)
    scores = attacked.SCORES if settings.score == 'all' else (settings.score,)
    # The neighbour that a word moves towards does not depend on how far it moves.
    sweep_scores = tuple(score for score in scores if score != 'direction')

    device = devices.choose(settings.gpu, settings.device)
    corpus = data_flags.load_corpus(settings)
    language_model = load_lm(settings.lm, corpus.words)
    language_model.to_device(device)
    victims, paths = load_victims(settings, corpus, device, language_model.embed.W.shape[1])

    split = getattr(corpus, settings.split)
    count = len(split.labels)
    if not count:
        raise UserError(f'{settings.data_dir} has no {settings.split} reviews')
    indices = np.arange(count)
    if 0 < settings.n_samples < count:
        indices = np.sort(np.random.RandomState(settings.seed).choice(
            count, settings.n_samples, replace=False))
    sequences, labels = [split.sequences[i] for i in indices], split.labels[indices]

    attackers = [method for method in settings.methods if method != 'none']
    progress = Progress(len(indices) * (
        len(settings.methods) + len(settings.sweep_epsilon) * len(attackers)), settings.progress)
    nll_clean, predictions = evaluation.review_nll(language_model, sequences)
    if not predictions.sum():
        raise UserError('the sampled reviews hold nothing to predict: take more of them')
    before = {victim: victim.predict_all(sequences) for victim in dict.fromkeys(victims.values())}

    def measure(method, epsilon, scores):
        victim = victims[method]
        return attacked.measure(
            language_model, victim, build_attack(settings, method, epsilon, victim), sequences,
            labels, before[victim], nll_clean, scores, progress)

    def row(method, epsilon, found):
        return {'method': method, 'epsilon': epsilon, 'model': paths[method], **found.summary()}

    measurements = {method: measure(method, step_sizes[method], scores)
                    for method in settings.methods}
    rows = [row(method, step_sizes[method], found) for method, found in measurements.items()]
    sweep = [row(method, epsilon, measure(method, epsilon, sweep_scores))
             for method in attackers for epsilon in sorted(settings.sweep_epsilon)]
    equal_strength = {score: compare_at_equal_strength(sweep, attackers, score)
                      for score in sweep_scores} if sweep else {}

    clean = evaluation.perplexity(nll_clean.sum(), predictions.sum())
    print(f'{len(indices):,} of {count:,} {settings.split} reviews, {predictions.sum():,} words to '
          f'predict, clean perplexity {clean:.2f} (paper: {PAPER_CLEAN})\n')
    print('\n'.join(table(rows, scores)))
    for score, values in equal_strength.items():
        print(f'\nGap at equal strength, {score}')
        print('\n'.join(_aligned([
            ['', *(f'{rate} % flipped' for rate in FLIP_RATES)],
            *([method, *('–' if gap is None else f'{gap:+.2f}' for gap in gaps.values())]
              for method, gaps in values.items())])))
    print()
    if settings.csv:
        write_reviews(settings.csv, indices, labels, measurements)
        print(settings.csv)
    if sweep:
        plot = settings.plot or str(pathlib.Path(settings.json).with_suffix('.png'))
        draw_sweep(plot, sweep, attackers, sweep_scores)
        print(plot)
    if settings.json:
        write_json(settings.json, _finite({
            'lm': settings.lm, 'split': settings.split, 'seed': settings.seed,
            'n_reviews': len(indices), 'n_predictions': int(predictions.sum()),
            'perplexity_clean': clean, 'nn_k': settings.nn_k, 'sparsity': settings.sparsity,
            'rows': rows, 'sweep': sweep, 'gap_at_flip_rate': equal_strength,
            'seconds': time.time() - started, 'versions': versions()}))
        print(settings.json)


def command():
    cli.run(main)


if __name__ == '__main__':
    command()
