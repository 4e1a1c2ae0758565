"""The paper's tables, its numbers beside ours."""
import glob
import os

import numpy as np

from experiments import results, significance, state
from experiments.presets import METHODS
from experiments.tables import MISSING, Number, Spread, Table
from interpretable_adv import train
from interpretable_adv.cli import UserError
from lm import pretrain

TITLES = {'baseline': 'Baseline', 'pretrained': 'Pretrained',
          'adv': 'Pretrained w/ AdvT-Text', 'iadv': 'Pretrained w/ iAdvT-Text',
          'spgd': 'Pretrained w/ SPGD', 'vat': 'Pretrained w/ VAT', 'ivat': 'Pretrained w/ iVAT'}
ATTACK_TITLES = {'none': 'None (ground-truth corpus)', 'adv': 'Vanilla AdvT-Text',
                 'iadv': 'iAdvT-Text', 'spgd': 'SPGD',
                 'adv_sparse': 'Control: AdvT-Text, sparsified only',
                 'random': 'Control: random, AdvT-Text\'s norms'}
PAPER_TABLE1 = {'none': 117.93, 'adv': 122.53, 'iadv': 123.86, 'spgd': 119.02}
PAPER_TABLE2 = {
    'train': {'examples': 21246, 'min': 12, 'max': 2505, 'mean': 242.44},
    'dev': {'examples': 3754, 'min': 11, 'max': 1101, 'mean': 239.86},
    'test': {'examples': 25000, 'min': 7, 'max': 2379, 'mean': 235.59},
    'unlabeled': {'examples': 50000}}
PAPER_TABLE3 = {'baseline': 89.83, 'pretrained': 92.69, 'adv': 93.58, 'iadv': 93.58, 'spgd': 93.54}
# A − B: each method against the model it starts from, and SPGD against its forerunners.
PAIRS = (('pretrained', 'baseline'), ('adv', 'pretrained'), ('iadv', 'pretrained'),
         ('spgd', 'pretrained'), ('spgd', 'adv'), ('spgd', 'iadv'))

# Settings that say where a run is and not what it is, or that follow from others.
UNREMARKABLE = {*train.FREE_SETTINGS, 'resume', 'random_seed', 'pretrained_model', 'vocab_sha256',
                'method'} - {'n_epoch'}
UNREMARKABLE_LM = {*pretrain.FREE_SETTINGS, 'resume', 'random_seed', 'vocab_sha256'} - {'epoch'}
OF_ATTACKS = {'xi_var', 'nn_k', 'sparsity', 'update_nearest_batch'}


class NoResultsError(UserError):
    """There are no results to make a table of."""


# Table 1 ------------------------------------------------------------------------------------

def table1(folder):
    """Perplexity of attacked reviews, and beside it how strong each attack was.

    `ours (best)` is measured on the classifier that Table 3 shows.
    """
    measured = _perplexities(folder, 'perplexity')
    if not measured:
        raise NoResultsError(f'no Table 1 in {folder}: run table1.sh first')
    runs = results.find(folder)
    first = next(iter(measured.values()))
    rows = []
    for method, title in ATTACK_TITLES.items():
        by_seed = {seed: row for seed, content in measured.items()
                   for row in content['rows'] if row['method'] == method}
        if not by_seed:
            continue
        if method in runs:
            seed = results.best([run for run in runs[method] if run.seed in by_seed]).seed
        else:  # unattacked, or a control that borrows AdvT's classifier
            seed = min(by_seed)
        best, score = by_seed[seed], by_seed[seed]['scores']
        paper = PAPER_TABLE1.get(method)
        rows.append([
            title, f'{best["epsilon"]:g}' if method != 'none' else '', Number(paper),
            Number(None if paper is None else paper - PAPER_TABLE1['none'], signed=True),
            Number(score['continuous']['perplexity']),
            Number(score['continuous']['gap'], signed=True),
            Spread.of([row['scores']['continuous']['gap'] for row in by_seed.values()],
                      signed=True),
            *(Number(score[name]['gap'], signed=True) for name in ('nearest', 'direction')),
            Number(score['continuous']['flipped'], 1), Number(best['norm_per_word'], 3),
            Number(best['words_moved'], 1)])
        if method in ('none', 'spgd'):
            rows.append(None)
    notes = [
        f'{first["n_reviews"]:,} random {first["split"]} reviews. Perplexity and gap: the '
        'perturbation is added to the language model\'s word vectors, the next words stay '
        '(continuous). Nearest gap: each word becomes the one nearest to its perturbed vector. '
        'Direction gap: each moved word becomes the neighbour it moved towards.',
        'Flipped: predictions that change, in per cent; norm: of a word\'s perturbation, mean; '
        'moved: words that are moved, in per cent. Each attack is on a classifier trained with '
        'that method; the two controls are on AdvT\'s.']
    return Table('table1', 'Table 1: adversarial quality', [
        'Attack', 'ε', 'paper', 'paper gap', 'ours', 'gap (best)', 'mean ± sd (n)',
        'nearest gap', 'direction gap', 'flipped', 'norm', 'moved'],
        rows[:-1] if rows[-1] is None else rows,
        [*notes, *_training_notes(runs, first), *corpus_notes(folder),
         *lm_notes(folder)])


def _training_notes(runs, measured):
    """Where classifiers were trained with another ε or K than they are attacked with."""
    epsilons = {row['method']: row['epsilon'] for row in measured['rows']}
    neighbors = dict.fromkeys(('iadv', 'spgd'), measured['nn_k'])
    return [*_trained_with_another('ε', 'xi_var', epsilons, runs),
            *_trained_with_another(f'K than {measured["nn_k"]}', 'nn_k', neighbors, runs)]


def _trained_with_another(name, flag, attacked, runs):
    others = [f'{ATTACK_TITLES[method]} {runs[method][0].settings[flag]:g}'
              for method, value in attacked.items()
              if method in runs and runs[method][0].settings[flag] != value]
    return [f'Trained with another {name}: {", ".join(others)}.'] if others else []


def equal_strength(folder):
    """The gap at equal shares of flipped predictions, since one ε per method compares attacks
    of different strength. None where no sweep was run."""
    sweeps = {'own classifiers': _perplexities(folder, 'perplexity_sweep'),
              'one classifier': _perplexities(folder, 'perplexity_common_sweep')}
    rows, rates, n_reviews = [], (), 0
    for victims, measured in sweeps.items():
        by_seed = [content['gap_at_flip_rate']['continuous'] for content in measured.values()]
        if not by_seed:
            continue
        n_reviews = next(iter(measured.values()))['n_reviews']
        if rows:
            rows.append(None)
        for method, at_rate in by_seed[0].items():
            rates = tuple(at_rate)
            rows.append([f'{ATTACK_TITLES[method]}, {victims}', *(
                Spread.of([gaps[method][rate] for gaps in by_seed], signed=True)
                for rate in rates)])
    if not rows:
        return None
    return Table('equal_strength', 'Perplexity gap (continuous) at equal strength', [
        'Attack', *(f'{rate} % flipped' for rate in rates)], rows, [
        f'ε is what it takes to flip so many predictions, between the values that were tried, on '
        f'{n_reviews:,} reviews. Mean ± sd over the seeds (n) on which one of them flips so many; '
        '– where none does.',
        'Own classifiers: each attack on one trained with that method, the controls on AdvT\'s. '
        'One classifier: all attacks on the pretrained one.'])


def _perplexities(folder, kind):
    """`{seed: perplexity.json}` of all such runs in a folder."""
    found = {}
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), f'{kind}_seed*'))):
        content = state.read_json(os.path.join(path, 'perplexity.json'))
        if content:
            found[int(path.rpartition('_seed')[2])] = content
    return found


# Table 2 ------------------------------------------------------------------------------------

def table2(folder):
    measured = corpus_statistics(folder)['table2']
    splits = list(PAPER_TABLE2)
    rows = []
    for title, entry, decimals in (('Num. examples', 'examples', 0),
                                   ('Min. sequence length', 'min', 0),
                                   ('Max. sequence length', 'max', 0),
                                   ('Avg. sequence length', 'mean', 2)):
        for who, table in (('paper', PAPER_TABLE2), ('ours', measured)):
            rows.append([f'{title}, {who}', *(
                Number(table[split][entry], decimals) if entry in table.get(split, {})
                else 'N/A' for split in splits)])
    same = all(round(measured[split].get(entry, -1), 2) == value
               for split, entries in PAPER_TABLE2.items() for entry, value in entries.items())
    notes = ['Every number is the paper\'s.' if same else
             'Another corpus than the paper\'s.' if measured['train']['examples'] != 21246 else
             'Some numbers differ from the paper\'s.']
    return Table('table2', 'Table 2: dataset information', [
        '', *(split.capitalize() for split in splits)], rows, notes)


def corpus_statistics(folder):
    path = os.path.join(folder, 'table2', 'table2.json')
    statistics = state.read_json(path)
    if statistics is None:
        raise NoResultsError(f'no {path}: run table2.sh first')
    return statistics


# Table 3 ------------------------------------------------------------------------------------

def table3(folder):
    """Test accuracy and error of all finished runs in a folder."""
    runs = results.find(folder)
    if not runs:
        raise NoResultsError(f'no finished run in {folder}: run table3.sh first')
    rows = []
    for method in dict.fromkeys([*PAPER_TABLE3, *runs]):
        paper = PAPER_TABLE3.get(method)
        error = None if paper is None else 100 - paper
        if method not in runs:
            rows.append([TITLES[method], Number(paper), MISSING, MISSING, Number(error), MISSING])
            continue
        best = results.best(runs[method])
        rows.append([TITLES[method] + _spgd_remark(best), Number(paper), Number(best.test),
                     Spread.of([run.test for run in runs[method]]), Number(error),
                     Number(100 - best.test)])
    columns = ['Model', 'paper', 'ours (best)', 'mean ± sd (n)', 'error, paper', 'error, ours']
    return Table('table3', 'Table 3: test accuracy (%)', columns, rows,
                 [*corpus_notes(folder), *run_notes(runs), *lm_notes(folder),
                  _seeds_note(runs)])


def _spgd_remark(run):
    if run.method != 'spgd' or 'sparsity' not in run.settings:
        return ''
    return (f' ({run.settings["spgd_iters"]} iter, {100 * run.settings["sparsity"]:g}% sparsity)')


def _seeds_note(runs):
    by_seeds = {}
    for method in runs:
        by_seeds.setdefault(tuple(run.seed for run in runs[method]), []).append(method)
    parts = [f'{", ".join(map(str, seeds))}' + (f' ({", ".join(methods)})'
                                                if len(by_seeds) > 1 else '')
             for seeds, methods in by_seeds.items()]
    return (f'Ours (best): the run with the highest dev accuracy, each at its best dev epoch (the '
            f'paper: the best of at least five). Seeds: {"; ".join(parts)}.')


def significance_table(folder):
    """Differences between methods, on the saved predictions of the test reviews. None where no
    two methods can be compared."""
    runs = results.find(folder)
    rows = []
    for a, b in PAIRS:
        if a not in runs or b not in runs:
            continue
        paired = paired_runs(runs[a], runs[b])
        if not paired:
            continue
        per_seed = [100 * (run_a.correct.mean() - run_b.correct.mean()) for run_a, run_b in paired]
        differences = np.mean([run_a.correct.astype(float) - run_b.correct
                               for run_a, run_b in paired], axis=0)
        low, high = significance.paired_bootstrap(100 * differences)
        only_a, only_b = significance.discordant(results.best(runs[a]).correct,
                                                 results.best(runs[b]).correct)
        rows.append([f'{a} − {b}', Spread.of(per_seed, signed=True),
                     f'[{Number(low, signed=True)}, {Number(high, signed=True)}]',
                     Number(only_a, 0), Number(only_b, 0),
                     _p_value(significance.mcnemar(only_a, only_b))])
    if not rows:
        return None
    notes = ['Points of test accuracy. Mean and sd are over seeds that both have; the interval '
             'resamples the test reviews (10,000 times) and takes the seeds as they are, so it '
             'does not hold the spread between seeds.',
             "McNemar's exact test compares the best run of each, as in Table 3: reviews that only "
             'one of them got right.']
    return Table('significance', 'Differences in test accuracy (points)', [
        'A − B', 'mean ± sd (n)', '95 % interval', 'only A right', 'only B right', 'p'],
        rows, notes)


def paired_runs(runs_a, runs_b):
    """Pairs of runs of the same seed."""
    by_seed = {run.seed: run for run in runs_b}
    return [(run, by_seed[run.seed]) for run in runs_a if run.seed in by_seed]


def _p_value(p):
    return '< 0.0001' if p < 0.0001 else f'{p:.4f}'


# Footnotes ----------------------------------------------------------------------------------

def corpus_notes(folder):
    """One note when the corpus is not the paper's."""
    measured = corpus_statistics(folder)['table2']
    ours = {split: measured[split]['examples'] for split in PAPER_TABLE2}
    if all(ours[split] == PAPER_TABLE2[split]['examples'] for split in ours):
        return []
    return ['Corpus: ' + ', '.join(
        f'{ours[split]:,} ({PAPER_TABLE2[split]["examples"]:,}) {split}' for split in ours)
        + ' reviews; in parentheses the paper\'s.']


def run_notes(runs):
    """Settings of classifiers that differ from preset `paper`, those of all methods first."""
    differences = {method: deviations(runs[method][0]) for method in runs}
    shared = [entry for entry in next(iter(differences.values()))
              if all(entry in other for other in differences.values())]
    notes = []
    if shared:
        notes.append(f'Classifiers, in parentheses preset paper: {", ".join(shared)}.')
    for method, entries in differences.items():
        own = [entry for entry in entries if entry not in shared]
        if own:
            notes.append(f'{TITLES[method]}: {", ".join(own)}.')
    return notes


def deviations(run):
    """Texts `name ours (theirs)` of a classifier's settings that are not preset paper's."""
    paper = vars(train.parse(['--preset', 'paper', '--method', METHODS[run.method]]))
    ignored = UNREMARKABLE | (OF_ATTACKS if METHODS[run.method] == 'baseline' else set())
    ours = {**run.settings, 'n_epoch': run.result['n_epoch']}
    return _deviations(ours, paper, ignored)


def lm_notes(folder):
    found = results.language_model(folder)
    if found is None:
        return []
    result, settings = found
    paper = vars(pretrain.parse(['--preset', 'paper']))
    entries = _deviations({**settings, 'epoch': result['epoch']}, paper, UNREMARKABLE_LM)
    text = f'Language model: test perplexity {result["test_perplexity"]:.2f} (paper: 114.77)'
    return [f'{text}; {", ".join(entries)}.' if entries else f'{text}.']


def _deviations(ours, paper, ignored):
    return [f'{name} {_plain(ours[name])} ({_plain(paper[name])})' for name in paper
            if name in ours and name not in ignored and ours[name] != paper[name]]


def _plain(value):
    return f'{value:g}' if isinstance(value, float) else str(value)
