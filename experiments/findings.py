"""docs/findings.md: each claim about SPGD, what was measured of it, and whether it holds.

Every number is read from committed result files. An effect whose interval contains 0 is reported as
no difference, whatever its sign.
"""
import collections
import os
import statistics
import textwrap

from experiments import paper_tables, results
from experiments.effects import Effect, Incomparable, over_both, over_reviews, over_seeds
from experiments.tables import MISSING, Number, Table, markdown
from interpretable_adv import paper

PRESETS = {'paper': "the paper's size", 'small': '`small`', 'toy': '`toy`'}
RATES = ('10', '25', '50')
FLIPPED = '% flipped'
# What an answer counts as; the second one if it holds for the seeds that were measured only.
KINDS = ('yes', 'uncertain for other seeds', 'the opposite', 'no difference', 'open',
         'no interval')
INTRODUCTION = '''# Findings

What the experiments say about the paper's claims, and about questions that it leaves open. This
page is generated from `experiments/results` by `python -m experiments.pages`;
[results.md](results.md) has the tables behind it.

An effect is the mean over seeds with a 95 % interval: over seeds by Student's t, or, where marked
*reviews*, over reviews with the seeds taken as given; then a second interval is over seeds. An
interval that contains 0 is reported as no difference; if only that over seeds does, the answer is
*for these seeds*, and other seeds may give another one. Seeds that all have the same value give no
interval. A comparison at equal strength is *open* where, on some seed, an attack never flips that
share of the predictions. Of 95 % intervals one in twenty misses the truth, so a single answer among
many proves little. `toy` is a made-up corpus whose numbers say nothing about film reviews; it is
shown where nothing else has been measured yet.
'''


# Measurements: each returns [(what, effect or None, expected sign)] ----------------------------

def table1_gap(folder, a, b, reading='continuous', score='gap'):
    """The difference of a score of Table 1 between the rows of two methods."""
    found = []
    for content in paper_tables.perplexities(folder, 'perplexity').values():
        values = {row['method']: row['scores'][reading][score] for row in content['rows']
                  if row['scores'][reading].get(score) is not None}
        found.append((values, content.get('spgd_minus', {}).get(reading, {}).get(score, {})))
    return _difference(found, a, b)


def equal_strength(folder, a, b, rate, score='gap', reading='continuous'):
    """The same at equal strength, all attacks on one classifier."""
    found = []
    for content in paper_tables.perplexities(folder, 'perplexity_common_sweep').values():
        by_method = (content.get('gap_at_flip_rate', {}).get(reading, {}) if score == 'gap' else
                     content.get('judged_at_flip_rate', {}).get(reading, {}).get(score, {}))
        values = {method: at_rate.get(rate) for method, at_rate in by_method.items()}
        found.append((values, content.get('spgd_minus_at_flip_rate', {}).get(reading, {}).get(
            score, {}).get(rate, {})))
    return _difference(found, a, b)


def _difference(found, a, b):
    """The effect of a's value minus b's; None where neither seeds nor reviews give an interval.

    Args:
        found: of each seed the values of all methods, and what `lm.perplexity` says of the
            difference between SPGD's and every other one.
    """
    measured = [(values[a], values[b], _interval(differences, a, b))
                for values, differences in found if a in values and b in values]
    known = [entry for entry in measured if None not in entry[:2]]
    if len(known) < len(measured):
        return Incomparable(len(known), len(measured))
    return over_both([ours - theirs for ours, theirs, _ in known],
                     [bounds for _, _, bounds in known])


def _interval(differences, a, b):
    """The interval of a's value minus b's, where one of them is SPGD."""
    if a == 'spgd':
        return differences.get(b, {}).get('interval')
    bounds = differences.get(a, {}).get('interval') if b == 'spgd' else None
    return bounds and [-bounds[1], -bounds[0]]


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
    return [row for title, a, b in (('SPGD − AdvT', 'spgd', 'adv'),
                                    ('SPGD − iAdvT', 'spgd', 'iadv'))
            for row in ((f"{title}, perplexity gap at Table 1's ε", table1_gap(folder, a, b), -1),
                        *((f'{title}, perplexity gap at {rate} % flipped',
                           equal_strength(folder, a, b, rate), -1) for rate in RATES))]


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


def pretraining(folder):
    return [('pretrained − baseline, test accuracy (points)',
             accuracy(folder, 'pretrained', 'baseline'), 1)]


def training(folder):
    return [(f'{title} − pretrained, test accuracy (points)',
             accuracy(folder, method, 'pretrained'), 1)
            for method, title in (('adv', 'AdvT'), ('iadv', 'iAdvT'), ('spgd', 'SPGD'),
                                  ('spgd_lm', 'SPGD with p(x|y)'))]


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
    return [(f'SPGD − {attack}, {title} at {rate} % flipped',
             equal_strength(folder, 'spgd', method, rate, score, 'nearest'), -1)
            for method, attack in (('hotflip', 'HotFlip'), ('hotflip_greedy', 'greedy HotFlip'))
            for score, title in (('gap', 'perplexity gap of the nearest text'),
                                 ('judge_changed', "judge's labels changed (points)"))
            for rate in RATES]


def class_conditional(folder):
    found = [('with − without, test accuracy (points)', accuracy(folder, 'spgd_lm', 'spgd'), 1),
             ("with − without, perplexity gap at Table 1's ε",
              table1_gap(folder, 'spgd_lm', 'spgd'), -1)]
    return [*found, *((f'with − without, {title} at {rate} % flipped',
                       equal_strength(folder, 'spgd_lm', 'spgd', rate, score, reading), -1)
                      for score, title, reading in (
                          ('gap', 'perplexity gap', 'continuous'),
                          ('judge_changed', "judge's labels changed (points)", 'nearest'),
                          ('antonyms', 'antonyms (points)', 'nearest')) for rate in RATES)]


def _paper_gain(method, other):
    return Number(paper.ACCURACY[method] - paper.ACCURACY[other])


# Claim, what it means here, and what measures it.
CLAIMS = (
    ('Pretraining helps',
     f'The paper gains {_paper_gain("pretrained", "baseline")} points of test accuracy by starting '
     'from a language model (Table 3).',
     pretraining),
    ('Adversarial training helps',
     f'The paper gains {_paper_gain("spgd", "pretrained")} to {_paper_gain("adv", "pretrained")} '
     'points of test accuracy (Table 3). Here it is the mean over seeds; McNemar\'s test in the '
     'tables compares single runs, the best of each method.',
     training),
    ("SPGD's examples are more likely than AdvT's and iAdvT's",
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


def measured(root, measure):
    """`{preset: [(what, effect, answer)]}` of what a claim's measurements give; of `toy`, what no
    other has."""
    found = {}
    for preset in PRESETS:
        folder = os.path.join(root, 'experiments', 'results', preset)
        elsewhere = {what for rows in found.values() for what, _, _ in rows}
        rows = [(what, effect, effect.answer(expected))
                for what, effect, expected in measure(folder) if effect is not None
                and not (preset == 'toy' and what in elsewhere)]
        if rows:
            found[preset] = rows
    return found


def answers(rows):
    """How often each answer was given: by measurements at equal strength last, by others first."""
    def count(given):
        counts = collections.Counter(map(_kind, given))
        if len(given) == 1:
            return next(iter(counts))
        return ', '.join(f'{kind} {counts[kind]}' for kind in KINDS if counts[kind]) or MISSING

    return tuple(count([answer for what, _, answer in rows if (FLIPPED in what) == at_equal])
                 for at_equal in (False, True))


def _kind(answer):
    if answer.endswith(('this seed', 'these seeds')):
        return KINDS[1]
    return answer.removeprefix('no, ')


def claims(root):
    """Each claim and its answers, at all sizes but `toy`."""
    rows = [[title, PRESETS[preset], *answers(rows)] for title, _, measure in CLAIMS
            for preset, rows in measured(root, measure).items() if preset != 'toy']
    return Table('claims', 'Claims', ['claim', 'on', 'holds', 'at equal strength'], rows, titles=4)


def section(root, title, text, measure):
    """A claim with its answers and its table, a row for each measurement and preset."""
    found = measured(root, measure)
    lines, rows = [], []
    for preset, measurements in found.items():
        parts = [f'{kind}{answer}' for kind, answer in zip(
            ('', 'at equal strength: '), answers(measurements)) if answer != MISSING]
        lines.append(f'**On {PRESETS[preset]}:** {"; ".join(parts)}.\n')
        rows += [[what, PRESETS[preset], str(effect), answer]
                 for what, effect, answer in measurements]
    body = (markdown(Table('', '', ['measured', 'on', 'effect [95 %] (seeds)', 'holds'], rows)
                     ).split('\n', 2)[2] if rows else 'Not measured yet.\n')
    return '\n'.join([f'\n## {title}\n', f'{textwrap.fill(text, 120)}\n', *lines, body])


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
