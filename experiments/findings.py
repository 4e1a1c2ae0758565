"""docs/findings.md: each claim about SPGD, what was measured of it, and whether it holds.

Every number is read from committed result files. An effect whose interval contains 0 is reported as
no difference, whatever its sign.
"""
import dataclasses
import math
import os
import statistics
import textwrap

import numpy as np

from experiments import paper_tables, results, significance
from experiments.tables import Number, Table, interval, markdown
from interpretable_adv import paper

PRESETS = {'paper': "the paper's size", 'small': '`small`', 'toy': '`toy`'}
# 97.5 % quantiles of Student's t for 1, 2, … degrees of freedom; beyond that the normal's.
STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228,
           2.201, 2.179, 2.160, 2.145, 2.131, 2.120, 2.110, 2.101, 2.093, 2.086,
           2.080, 2.074, 2.069, 2.064, 2.060, 2.056, 2.052, 2.048, 2.045, 2.042)
RATES = ('10', '25', '50')
INTRODUCTION = '''# Findings

What the experiments say about the paper's claims, and about questions that it leaves open. This
page is generated from `experiments/results` by `python -m experiments.pages`;
[results.md](results.md) has the tables behind it.

An effect is the mean over seeds with a 95 % interval: over seeds by Student's t, or, where marked
*reviews*, over reviews with the seeds taken as given; then a second interval is over seeds. An
interval that contains 0 is reported as no difference; if only that over seeds does, the answer is
*for these seeds*, and other seeds may give another one. Seeds that all have the same value give no
interval. `toy` is a made-up corpus whose numbers say nothing about film reviews; it is shown where
nothing else has been measured yet. At equal strength, seeds that do not reach the share of flipped
predictions are left out.
'''


@dataclasses.dataclass(frozen=True)
class Effect:
    """A difference and its interval.

    Attributes:
        n: number of seeds.
        by: what the interval is over, 'seeds' or 'reviews'.
        among_seeds: of an effect over reviews, the one over seeds, if there are several.
    """
    mean: float
    low: float
    high: float
    n: int
    by: str = 'seeds'
    among_seeds: 'Effect | None' = None

    @property
    def has_interval(self):
        """A few seeds may agree by chance, which bounds nothing."""
        return self.by == 'reviews' or self.low < self.high

    def __str__(self):
        shown = str(Number(self.mean, 2, True))
        if self.has_interval:
            shown += f' {interval((self.low, self.high))}'
        shown += f' ({self.n}{", reviews" if self.by == "reviews" else ""})'
        if self.among_seeds and self.among_seeds.has_interval:
            shown += f', {interval((self.among_seeds.low, self.among_seeds.high))} over seeds'
        return shown

    def answer(self, expected):
        """Whether the sign is the expected one, −1 or +1."""
        if not self.has_interval:
            return 'no interval'
        if self.low <= 0 <= self.high:
            return 'no difference'
        answer = 'yes' if self.mean * expected > 0 else 'no, the opposite'
        if self.among_seeds and self.among_seeds.answer(expected) == 'no difference':
            answer += ', for these seeds'
        return answer


def over_seeds(values):
    """The effect of a difference known for each seed; None for fewer than two seeds."""
    values = [value for value in values if value is not None]
    n = len(values)
    if n < 2:
        return None
    mean, deviation = statistics.fmean(values), statistics.stdev(values)
    quantile = STUDENT[n - 2] if n - 2 < len(STUDENT) else 1.96
    half = quantile * deviation / math.sqrt(n)
    return Effect(mean, mean - half, mean + half, n)


def over_reviews(differences):
    """The effect of differences `(seeds, reviews)`, in per cent of the reviews."""
    if not len(differences):
        return None
    mean = 100 * np.mean(differences, axis=0)
    return Effect(float(mean.mean()), *significance.paired_bootstrap(mean), len(differences),
                  'reviews', over_seeds((100 * np.mean(differences, axis=1)).tolist()))


# Measurements: each returns [(what, Effect or None, expected sign)] ----------------------------

def table1_gap(folder, a, b, reading='continuous', score='gap'):
    """The difference of a score of Table 1 between the rows of two methods."""
    measured = list(paper_tables.perplexities(folder, 'perplexity').values())
    values = []
    for content in measured:
        rows = {row['method']: row['scores'][reading].get(score) for row in content['rows']}
        if rows.get(a) is not None and rows.get(b) is not None:
            values.append(rows[a] - rows[b])
    return over_seeds(values) or over_reviews_of_one_seed(
        [content.get('spgd_minus', {}).get(reading, {}).get(score, {}) for content in measured],
        a, b)


def equal_strength(folder, a, b, rate, score='gap', reading='continuous'):
    """The same at equal strength, all attacks on one classifier."""
    measured = list(paper_tables.perplexities(folder, 'perplexity_common_sweep').values())
    values = []
    for content in measured:
        if score == 'gap':
            found = content.get('gap_at_flip_rate', {}).get(reading, {})
        else:
            found = content.get('judged_at_flip_rate', {}).get(reading, {}).get(score, {})
        ours, theirs = found.get(a, {}).get(rate), found.get(b, {}).get(rate)
        if ours is not None and theirs is not None:
            values.append(ours - theirs)
    return over_seeds(values) or over_reviews_of_one_seed(
        [content.get('spgd_minus_at_flip_rate', {}).get(reading, {}).get(score, {}).get(rate, {})
         for content in measured], a, b)


def over_reviews_of_one_seed(differences, a, b):
    """The effect where a single seed was measured: what `lm.perplexity` says of SPGD and another.

    Args:
        differences: of each seed, SPGD's score minus that of every other method.
    """
    if len(differences) != 1 or 'spgd' not in (a, b):
        return None
    sign, other = (1, b) if a == 'spgd' else (-1, a)
    found = differences[0].get(other)
    if found is None or found['interval'] is None:
        return None
    low, high = sorted(sign * bound for bound in found['interval'])
    return Effect(sign * found['difference'], low, high, 1, 'reviews')


def accuracy(folder, a, b):
    """The difference of test accuracy."""
    runs = results.find(folder)
    if a not in runs or b not in runs:
        return None
    return over_reviews(paper_tables.gains(runs[a], runs[b]))


def under_attack(folder, a, b, column):
    """The difference of accuracy under attack."""
    found = results.robustness(folder)
    seeds = [seed for seed in found.get(a, {}) if seed in found.get(b, {})
             and column in found[a][seed].right and column in found[b][seed].right]
    return over_reviews([found[a][seed].right[column].astype(float) - found[b][seed].right[column]
                         for seed in seeds])


def likelihood(folder):
    return [("SPGD − AdvT, perplexity gap at Table 1's ε", table1_gap(folder, 'spgd', 'adv'), -1),
            *((f'SPGD − AdvT, perplexity gap at {rate} % flipped',
               equal_strength(folder, 'spgd', 'adv', rate), -1) for rate in RATES)]


def parts(folder):
    """SPGD is sparsified AdvT with a projection."""
    found = [("sparsified AdvT − AdvT, perplexity gap at Table 1's ε",
              table1_gap(folder, 'adv_sparse', 'adv'), -1)]
    return [*found, *((f'{title}, perplexity gap at {rate} % flipped',
                       equal_strength(folder, a, b, rate), -1)
                      for title, a, b in (('sparsified AdvT − AdvT', 'adv_sparse', 'adv'),
                                          ('SPGD − sparsified AdvT', 'spgd', 'adv_sparse'))
                      for rate in RATES)]


def invariance(folder):
    found = [(f"SPGD − AdvT, judge's labels changed in the {reading} text (points)",
              table1_gap(folder, 'spgd', 'adv', reading, 'judge_changed'), -1)
             for reading in ('nearest', 'direction')]
    found += [(f"SPGD − random swaps, judge's labels changed in the {reading} text (points)",
               _excess(folder, 'spgd', reading), -1) for reading in ('nearest', 'direction')]
    return [*found, *((f'SPGD − AdvT, {title} at {rate} % flipped (points)',
                       equal_strength(folder, 'spgd', 'adv', rate, score, 'nearest'), -1)
                      for score, title in (('judge_changed', "judge's labels changed"),
                                           ('antonyms', 'antonyms')) for rate in RATES)]


def _excess(folder, method, reading):
    """How much more often the judge's label changes than by chance; over reviews, by the standard
    errors that were measured. All seeds have the same reviews, so more seeds do not make the error
    smaller: it is the mean of theirs."""
    scores = [row['scores'][reading] for content in
              paper_tables.perplexities(folder, 'perplexity').values() for row in content['rows']
              if row['method'] == method and 'judge_excess' in row['scores'][reading]]
    if not scores:
        return None
    mean = statistics.fmean(score['judge_excess'] for score in scores)
    half = 1.96 * statistics.fmean(score['judge_excess_error'] for score in scores)
    return Effect(mean, mean - half, mean + half, len(scores), 'reviews',
                  over_seeds([score['judge_excess'] for score in scores]))


def regularisation(folder):
    return [(f'SPGD − {title}, test accuracy (points)', accuracy(folder, 'spgd', other), 1)
            for other, title in (('adv', 'AdvT'), ('iadv', 'iAdvT'))]


def training(folder):
    return [(f'{title} − pretrained, test accuracy (points)',
             accuracy(folder, method, 'pretrained'), 1)
            for method, title in (('adv', 'AdvT'), ('iadv', 'iAdvT'), ('spgd', 'SPGD'))]


def sparsity(folder):
    """The paper's σ against lower ones, and higher ones against it."""
    runs, own = results.sparsities(folder), paper.CLASSIFIER['sparsity']
    pairs = [(max(own, other), min(own, other)) for other in runs if other != own]
    return [(f'σ = {high:g} − σ = {low:g}, test accuracy (points)',
             over_reviews(paper_tables.gains(runs[high], runs[low])), 1)
            for high, low in pairs if high in runs and low in runs]


def robustness(folder):
    return [(f'SPGD − {title}, accuracy under {attack}, {kind} (points)',
             under_attack(folder, 'spgd', other, f'{column}_{name}'), 1)
            for other, title in (('pretrained', 'pretrained'), ('adv', 'AdvT'))
            for column, kind in (('own', 'attacked itself'), ('transferred', 'transferred'))
            for name, attack in (('hotflip', 'HotFlip'), ('hotflip_greedy', 'greedy HotFlip'))]


def discrete(folder):
    return [(f'SPGD − HotFlip, {title} at {rate} % flipped',
             equal_strength(folder, 'spgd', 'hotflip', rate, score, 'nearest'), -1)
            for score, title in (('gap', 'perplexity gap of the nearest text'),
                                 ('judge_changed', "judge's labels changed (points)"))
            for rate in RATES]


def class_conditional(folder):
    return [('with − without, test accuracy (points)', accuracy(folder, 'spgd_lm', 'spgd'), 1),
            *((f'with − without, perplexity gap at {rate} % flipped',
               equal_strength(folder, 'spgd_lm', 'spgd', rate), -1) for rate in RATES),
            *((f"with − without, judge's labels changed at {rate} % flipped (points)",
               equal_strength(folder, 'spgd_lm', 'spgd', rate, 'judge_changed', 'nearest'), -1)
              for rate in RATES)]


# Claim, what it means here, and what measures it.
CLAIMS = (
    ('Adversarial training helps',
     'The paper gains 0.85 to 0.89 points of test accuracy (Table 3). Here it is the mean over '
     "seeds; McNemar's test in the tables compares single runs, the best of each method.",
     training),
    ("SPGD's examples are more likely than AdvT's",
     'The paper compares one ε per method (Table 1). At equal strength, every method attacks the '
     'same classifier, at the ε that flips the same share of predictions.', likelihood),
    ('Sparsification and projection make examples more likely',
     'The paper says that sparsification alone significantly improves the likelihood. '
     "At Table 1's ε, both attack AdvT's classifier, and the sparsified attack is the weaker one.",
     parts),
    ("SPGD's examples keep their label",
     'The paper argues that few changed words rarely invert a label, and does not measure it. Here '
     'an independent judge reads the texts, next to random swaps of as many words. Antonyms are '
     "WordNet's.", invariance),
    ('More realistic examples regularise better',
     'The paper infers it from a smaller perplexity gap at nearly equal accuracy. *Yes* means that '
     'SPGD is more accurate.',
     regularisation),
    ('Higher sparsity gives better test accuracy',
     'The paper observed it in its search for hyperparameters (σ ≈ 0.75). Here only σ differs. '
     '*Yes* means that the higher σ is more accurate.', sparsity),
    ('Training with SPGD makes a classifier robust',
     'Not a claim of the paper: accuracy on discrete adversarial texts (Table 4).', robustness),
    ('A plain discrete attack does worse',
     'HotFlip swaps words outright, for the same neighbours. Texts are compared, so each word of '
     "SPGD's becomes the one nearest to its vector. *Yes* means that SPGD has the smaller gap, or "
     'changes fewer labels.', discrete),
    ('A class-conditional language model in the attack helps',
     'The paper proposes it as future work, without a weight: the gradient of −log p(y|x) + '
     'λ log p(x|y). Accuracy: of classifiers trained with and without this term. At equal '
     'strength, both attacks are on the pretrained classifier.', class_conditional),
)


def section(root, title, text, measure):
    """A claim with its table, a row for each measurement and preset that has it; of `toy`, what no
    other has."""
    rows, elsewhere = [], set()
    for preset, name in PRESETS.items():
        folder = os.path.join(root, 'experiments', 'results', preset)
        for what, effect, expected in measure(folder):
            if effect is not None and not (preset == 'toy' and what in elsewhere):
                rows.append([what, name, str(effect), effect.answer(expected)])
                elsewhere.add(what)
    body = (markdown(Table('', '', ['measured', 'on', 'effect [95 %] (seeds)', 'holds'], rows)
                     ).split('\n', 2)[2] if rows else 'Not measured yet.\n')
    return f'\n## {title}\n\n{textwrap.fill(text, 120)}\n\n{body}'


def page(root):
    """The text of docs/findings.md."""
    figure = 'experiments/results/{}/figures/label_invariance.png'
    shown = next((preset for preset in PRESETS
                  if os.path.exists(os.path.join(root, figure.format(preset)))), None)
    picture = '' if shown is None else (
        f'\n![Perplexity gap, judged labels and antonyms against flipped predictions]'
        f'(../{figure.format(shown)})\n\n*All attacks on the pretrained classifier, '
        f'{PRESETS[shown]}, means over seeds. Dotted: random swaps of as many words.*\n')
    return INTRODUCTION + picture + ''.join(section(root, *claim) for claim in CLAIMS)
