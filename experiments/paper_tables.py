"""The paper's tables, its numbers next to ours."""
import glob
import os

import numpy as np

from experiments import effects, results, significance, state
from experiments.tables import MISSING, Number, Spread, Table, interval
from interpretable_adv import methods, paper, settings, train
from interpretable_adv.errors import UserError
from interpretable_adv.methods import METHODS
from lm import pretrain

# A − B: each method against the model it starts from, and the adversarial ones with each other.
PAIRS = (('pretrained', 'baseline'), ('adv', 'pretrained'), ('iadv', 'pretrained'),
         ('spgd', 'pretrained'), ('spgd', 'adv'), ('spgd', 'iadv'), ('iadv', 'adv'),
         ('spgd_lm', 'pretrained'), ('spgd_lm', 'spgd'))

# Settings that say where a run is and not what it is, or that follow from others.
UNREMARKABLE = {*train.FREE_SETTINGS, 'resume', 'random_seed', 'pretrained_model', 'vocab_sha256',
                'method', 'class_lm'} - {'n_epoch', 'patience'}
UNREMARKABLE_LM = {*pretrain.FREE_SETTINGS, 'resume', 'random_seed',
                   'vocab_sha256'} - {'epoch', 'patience', 'min_improvement'}
OF_ATTACKS = {*settings.ATTACK.values(), 'update_nearest_batch'}
# How a note names an attack's settings.
SYMBOLS = {'xi_var': 'ε', 'nn_k': 'K', 'sparsity': 'σ', 'spgd_iters': 'M'}


# What is said of labels at equal strength, and its columns' title.
JUDGED = {'judge_changed': 'judged', 'judge_changed_random': 'chance', 'antonyms': 'antonyms'}


class NoResultsError(UserError):
    """There are no results to make a table of."""


# Table 1 ------------------------------------------------------------------------------------

def table1(folder):
    """Perplexity of attacked reviews, and next to it how strong each attack was.

    `ours (best)` is measured on the classifier that Table 3 shows.
    """
    measured = perplexities(folder, 'perplexity')
    if not measured:
        raise NoResultsError(f'no Table 1 in {folder}: run table1.sh first')
    runs = results.find(folder)
    first = next(iter(measured.values()))
    judged = any(content.get('judge') for content in measured.values())
    has_intervals = all('gap_interval' in row['scores']['continuous']
                        for content in measured.values() for row in content['rows'])
    rows = []
    for method in ('none', *(name for name in methods.attackers() if name != 'none')):
        by_seed = {seed: row for seed, content in measured.items()
                   for row in content['rows'] if row['method'] == method}
        if not by_seed:
            continue
        # A method without a classifier of its own borrows one.
        attacked = method if method in runs else METHODS[method].lender
        measured_runs = [run for run in runs.get(attacked, ()) if run.seed in by_seed]
        seed = results.best(measured_runs).seed if measured_runs else min(by_seed)
        best, score = by_seed[seed], by_seed[seed]['scores']
        rows.append([
            attack_title(method), '' if method == 'none' or best['epsilon'] is None
            else f'{best["epsilon"]:g}',
            Number(paper.PERPLEXITY.get(method)),
            Number(0.0 if method == 'none' else paper.GAP.get(method), signed=True),
            Number(score['continuous']['perplexity']),
            Number(score['continuous']['gap'], signed=True),
            *([interval(score['continuous']['gap_interval'])] if has_intervals else []),
            Spread.of([row['scores']['continuous']['gap'] for row in by_seed.values()],
                      signed=True),
            *(Number(score[name]['gap'], signed=True) for name in ('nearest', 'direction')),
            Number(score['continuous']['flipped'], 1), Number(best['norm_per_word'], 3),
            Number(best['words_moved'], 1), *(
                [Number(score['direction'].get(name), 1) for name in JUDGED] if judged else [])])
    notes = [
        f'{first["n_reviews"]:,} random {first["split"]} reviews. Perplexity and gap: the '
        'perturbation is added to the language model\'s word vectors, the words to predict are '
        'unchanged (continuous). Nearest gap: each word becomes the one nearest to its perturbed '
        'vector. Direction gap: each moved word becomes the neighbour of highest cosine.',
        'Flipped: predictions that change, in per cent; norm: of a word\'s perturbation, mean; '
        'moved: words that are moved, in per cent. Each attack is on a classifier trained with '
        f'that method, the controls on AdvT\'s{_hosts(first)}. Where the notes name no other '
        'setting, it is attacked the way it was trained.']
    if any(METHODS[row['method']].swaps for row in first['rows']):
        notes.append('HotFlip swaps words. Its perturbation is the difference of the '
                     "classifier's vectors of both words; nearest gap is that of its text.")
    if len(measured) > 1:
        notes.append('All columns but mean ± sd are of one seed, that of the run in Table 3.')
    if has_intervals:
        notes.append('95 % (reviews): interval of the gap to its left, by a bootstrap over the '
                     'reviews.')
    if judged:
        notes.append('Judged, chance, antonyms: of the direction text, in per cent; see the table '
                     'of label invariance.')
    return Table('table1', 'Table 1: adversarial quality', [
        'Attack', 'ε', 'paper', 'paper gap', 'ours', 'gap (best)',
        *(['95 % (reviews)'] if has_intervals else []), 'mean ± sd (n)', 'nearest gap',
        'direction gap', 'flipped', 'norm', 'moved', *(JUDGED.values() if judged else ())],
        _with_rules(rows), [*notes, *_training_notes(runs, first), *corpus_notes(folder),
                            *lm_notes(folder)])


def attack_title(method):
    """A row's title in Table 1."""
    row = METHODS[method]
    return f'Control: {row.title}' if row.control_of else row.title


def _with_rules(rows):
    """Rows with a rule after the clean corpus and one before the controls."""
    controls = [row for row in rows if row[0].startswith('Control: ')]
    attacks = [row for row in rows[1:] if row not in controls]
    return [rows[0], None, *attacks, *([None, *controls] if controls else [])]


def _training_notes(runs, measured, ignored=('spgd_directions', 'class_lm')):
    """Every setting in which an attack differs from the one that its method was trained with.

    Args:
        ignored: flags that say nothing here; without dropout, all directions are clean.
    """
    notes = []
    for row in measured['rows']:
        method = row['method']
        if method not in runs:
            continue
        trained = runs[method][0].settings
        attacked = row.get('settings') or _old_settings(measured, row)
        others = [f'{SYMBOLS.get(flag, flag)} {_plain(trained[flag])} ({_plain(value)})'
                  for flag, value in attacked.items()
                  if flag in trained and flag not in ignored and trained[flag] != value]
        if others:
            notes.append(f'{attack_title(method)} was trained with {", ".join(others)}; in '
                         'parentheses: the value used in the attack.')
    if not all('settings' in row for row in measured['rows']):
        notes.append(f'Measured before every attack took its settings from its classifier: K = '
                     f'{measured["nn_k"]} and σ = {measured["sparsity"]:g} for all.')
    return notes


def _old_settings(measured, row):
    """What an attack was, in files that had one K and one σ for all methods."""
    known = {'xi_var': row['epsilon'], 'nn_k': measured['nn_k'],
             'sparsity': measured['sparsity']}
    used = {settings.ATTACK.get(name) for name in METHODS[row['method']].settings} | {'xi_var'}
    return {flag: value for flag, value in known.items() if flag in used}


def label_invariance(folder):
    """What an independent judge and WordNet say of the texts of Table 1. None where no judge was
    asked."""
    measured = {seed: content for seed, content in perplexities(folder, 'perplexity').items()
                if content.get('judge')}
    if not measured:
        return None
    first = next(iter(measured.values()))
    rows = []
    for method in (row['method'] for row in first['rows'] if row['method'] != 'none'):
        by_seed = [row['scores'] for content in measured.values() for row in content['rows']
                   if row['method'] == method]
        rows.append([attack_title(method), *(
            Spread.of([scores[reading].get(name) for scores in by_seed], 1)
            for reading in ('nearest', 'direction')
            for name in ('flipped', 'judge_changed', 'judge_changed_random', 'antonyms',
                         'synonyms'))])
    accuracy = Spread.of([content['judge']['accuracy'] for content in measured.values()])
    notes = [
        'In per cent, mean ± sd over seeds (n). Flipped: predictions of the classifier on the '
        'discrete text; judged: reviews whose label changes for an independent judge, '
        'naive-Bayes-weighted n-grams that know no embeddings; chance: the same after random '
        'neighbour swaps of as many words; antonyms, synonyms: share of the swaps, by WordNet.',
        f'The judge is right on {Number(accuracy.mean)} % of the clean reviews.']
    if not first['judge']['wordnet']:
        notes.append('No WordNet database was found, so antonyms and synonyms were not counted.')
    return Table('label_invariance', 'Label invariance of the texts of Table 1 (%)', [
        'Attack', *(f'{title}, {reading}' for reading in ('nearest', 'direction') for title in (
            'flipped', 'judged', 'chance', 'antonyms', 'synonyms'))], rows, notes)


def class_lm_table(folder):
    """The class-conditional language model, and how large both terms of its attacks are. None
    where there is none."""
    found = results.class_lm(folder)
    if found is None:
        return None
    rows = []
    for split, values in found['classes'].items():
        if values['bayes_accuracy'] is not None:
            rows += [[f'perplexity given the class, {split}', Number(values['perplexity'])],
                     *([f'perplexity of {name}, {split}', Number(value)]
                       for name, value in values['perplexity_per_class'].items()),
                     [f'Bayes decision right (%), {split}', Number(values['bayes_accuracy'])]]
    measured = perplexities(folder, 'perplexity')
    for method in METHODS:
        norms = [row['gradient_norms'] for content in measured.values() for row in content['rows']
                 if row['method'] == method and row.get('gradient_norms')]
        if norms:
            rows += [None, *([f'{attack_title(method)}: norm of the gradient of {title}',
                              Spread.of([norm[name] for norm in norms], 4)]
                             for name, title in (('loss', '−log p(y|x)'),
                                                 ('class_lm', 'λ log p(x|y)')))]
    return Table('class_lm', 'The class-conditional language model', ['', 'ours'], rows, [
        'Bayes decision: the class of higher p(x|y), equal priors. Norms: mean over reviews of the '
        'gradients that are added, before normalising; over seeds mean ± sd (n).'])


def equal_strength(folder):
    """The gap at equal shares of flipped predictions, since one ε per method compares attacks
    of different strength. None where no sweep was run."""
    sweeps = {'own classifiers': perplexities(folder, 'perplexity_sweep'),
              'one classifier': perplexities(folder, 'perplexity_common_sweep')}
    rows, rates, n_reviews, notes = [], (), 0, []
    runs = results.find(folder)
    for victims, measured in sweeps.items():
        by_seed = [content.get('gap_at_flip_rate', {}).get('continuous', {})
                   for content in measured.values()]
        if not by_seed:
            continue
        first = next(iter(measured.values()))
        n_reviews = first['n_reviews']
        notes += [f'{victims.capitalize()}: {note}' for note in _training_notes(
            runs, first, ('spgd_directions', 'class_lm', 'xi_var'))]
        if victims == 'own classifiers':
            trained = ', '.join(
                f'{METHODS[method].title} {_plain(_checked(runs[method][0], "xi_var"))}'
                for method in by_seed[0] if method in runs)
            notes.append(f'The own classifiers also differ in the ε of their training ({trained}), '
                         'so their rows compare methods, not attacks.')
        if rows:
            rows.append(None)
        for method, at_rate in by_seed[0].items():
            rates = tuple(at_rate)
            rows.append([f'{attack_title(method)}, {victims}', *(
                Spread.of([gaps.get(method, {}).get(rate) for gaps in by_seed], signed=True)
                for rate in rates)])
    if not rows:
        return None
    return Table('equal_strength', 'Perplexity gap (continuous) at equal strength', [
        'Attack', *(f'{rate} % flipped' for rate in rates)], rows, [
        f'The gap at the ε{" (HotFlip: the budget)" if _hosts(first) else ""} that flips this '
        f'share of predictions, interpolated between the values tried, on {n_reviews:,} reviews. '
        'Mean ± sd over the seeds (n) that reach it; – where none does.',
        'Own classifiers: each attack on one trained with that method, the controls on AdvT\'s'
        f'{_hosts(first)}. One classifier: all attacks on the pretrained one.', *notes])


def _hosts(measured):
    """For a note: whose classifiers attacks by swaps are on, if there are any."""
    swaps = any(METHODS[row['method']].swaps for row in measured['rows'])
    return ', HotFlip on SPGD\'s' if swaps else ''


def labels_at_equal_strength(folder):
    """What the judge and WordNet say at equal strength, all attacks on one classifier. None where
    they were not asked."""
    by_seed = [content['judged_at_flip_rate']['nearest'] for content in
               perplexities(folder, 'perplexity_common_sweep').values()
               if content.get('judged_at_flip_rate')]
    if not by_seed:
        return None
    first = by_seed[0]['judge_changed']
    rates = list(next(iter(first.values())))
    rows = [[attack_title(method), *(
        Spread.of([values[name].get(method, {}).get(rate) for values in by_seed], 1)
        for name in JUDGED for rate in rates)] for method in first]
    return Table('labels_at_equal_strength', 'Labels at equal strength, one classifier (%)', [
        'Attack', *(f'{title}, {rate} %' for title in JUDGED.values() for rate in rates)], rows, [
        'All attacks on the pretrained classifier, read as nearest words, at the strength at which '
        'it flips its predictions for this share of the texts, interpolated between the strengths '
        'tried. Judged, chance, antonyms: as in the table of label invariance. Mean ± sd over the '
        'seeds (n) that reach it; – where none does.'])


def perplexities(folder, kind):
    """`{seed: perplexity.json}` of all such runs in a folder."""
    found = {}
    for path in sorted(glob.glob(os.path.join(glob.escape(folder), f'{kind}_seed*'))):
        content = state.read_json(os.path.join(path, 'perplexity.json'))
        seed = path.rpartition('_seed')[2]
        if content and seed.isdecimal():
            found[int(seed)] = content
    return found


# Table 2 ------------------------------------------------------------------------------------

def table2(folder):
    measured = corpus_statistics(folder)['table2']
    splits = list(paper.DATASET)
    rows = []
    for title, entry, decimals in (('Num. examples', 'examples', 0),
                                   ('Min. sequence length', 'min', 0),
                                   ('Max. sequence length', 'max', 0),
                                   ('Avg. sequence length', 'mean', 2)):
        for who, table in (('paper', paper.DATASET), ('ours', measured)):
            rows.append([f'{title}, {who}', *(
                Number(table[split][entry], decimals) if entry in table.get(split, {})
                else 'N/A' for split in splits)])
    same = all(round(measured[split].get(entry, -1), 2) == value
               for split, entries in paper.DATASET.items() for entry, value in entries.items())
    notes = ['Every number is the paper\'s.' if same else
             'Not the paper\'s corpus.' if _is_other_corpus(measured) else
             'Some numbers differ from the paper\'s.']
    return Table('table2', 'Table 2: dataset information', [
        '', *(split.capitalize() for split in splits)], rows, notes)


def _is_other_corpus(measured):
    return measured['train']['examples'] != paper.DATASET['train']['examples']


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
    for method in dict.fromkeys([*paper.ACCURACY, *runs]):
        theirs = paper.ACCURACY.get(method)
        error = None if theirs is None else 100 - theirs
        if method not in runs:
            rows.append([classifier_title(method), Number(theirs), MISSING, MISSING, Number(error),
                         MISSING])
            continue
        best = results.best(runs[method])
        rows.append([classifier_title(method) + _spgd_remark(best), Number(theirs),
                     Number(best.test),
                     Spread.of([run.test for run in runs[method]]), Number(error),
                     Number(100 - best.test)])
    columns = ['Model', 'paper', 'ours (best)', 'mean ± sd (n)', 'error, paper', 'error, ours']
    return Table('table3', 'Table 3: test accuracy (%)', columns, rows,
                 [*corpus_notes(folder), *run_notes(runs), *lm_notes(folder),
                  _seeds_note(runs)])


def classifier_title(method):
    """A row's title in Table 3."""
    row = METHODS[method]
    return f'Pretrained w/ {row.title}' if row.attack else row.title


def _spgd_remark(run):
    if run.method != 'spgd' or 'sparsity' not in run.settings:
        return ''
    return (f' ({_checked(run, "spgd_iters")} iter, {100 * _checked(run, "sparsity"):g}% '
            'sparsity)')


def _checked(run, name):
    return settings.checked(name, run.settings.get(name), run.folder + os.sep)


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
    rows, p_values = [], []
    for a, b in PAIRS:
        if a not in runs or b not in runs:
            continue
        paired = paired_runs(runs[a], runs[b])
        if not paired:
            continue
        for run in (*runs[a], *runs[b]):
            if not np.array_equal(run.predictions[0], paired[0][0].predictions[0]):
                raise UserError(f'the predictions of {run.folder} are not of the reviews of '
                                f'{paired[0][0].folder}: delete them, and run table3.sh again')
        differences = 100 * np.array(gains(runs[a], runs[b]))
        bounds = significance.paired_bootstrap(differences.mean(axis=0))
        only_a, only_b = significance.discordant(results.best(runs[a]).correct,
                                                 results.best(runs[b]).correct)
        rows.append([f'{a} − {b}', Spread.of(differences.mean(axis=1).tolist(), signed=True),
                     interval(bounds), Number(only_a, 0), Number(only_b, 0)])
        p_values.append(significance.mcnemar(only_a, only_b))
    if not rows:
        return None
    for row, p, corrected in zip(rows, p_values, significance.holm(p_values)):
        row += [_p_value(p), _p_value(corrected)]
    notes = ['Points of test accuracy. Mean and sd are over seeds that both have; the interval '
             'resamples the test reviews (10,000 times) and takes the seeds as they are, so it '
             'does not include the spread between seeds.',
             "McNemar's exact test compares the best run of each, as in Table 3: reviews that only "
             f'one of them got right. p (Holm) is corrected for the {len(rows)} comparisons.']
    return Table('significance', 'Differences in test accuracy (points)', [
        'A − B', 'mean ± sd (n)', '95 % interval', 'only A right', 'only B right', 'p', 'p (Holm)'],
        rows, notes)


def paired_runs(runs_a, runs_b):
    """Pairs of runs of the same seed."""
    by_seed = {run.seed: run for run in runs_b}
    return [(run, by_seed[run.seed]) for run in runs_a if run.seed in by_seed]


def gains(runs_a, runs_b):
    """What each test review adds to A's accuracy minus B's: an array `(reviews,)` per seed."""
    return [run_a.correct.astype(float) - run_b.correct
            for run_a, run_b in paired_runs(runs_a, runs_b)]


def _p_value(p):
    return '< 0.0001' if p < 0.0001 else f'{p:.4f}'


# Sparsity -----------------------------------------------------------------------------------

def sparsity_table(folder):
    """Accuracy of SPGD trained with several σ, each against the paper's. None without such runs."""
    runs = results.sparsities(folder)
    if not runs:
        return None
    reference = runs.get(paper.CLASSIFIER['sparsity'], [])
    rows = [[f'{sparsity:g}', Spread.of([run.dev for run in own]),
             Spread.of([run.test for run in own]), MISSING if own is reference else
             str(effects.over_reviews(gains(own, reference)) or MISSING)]
            for sparsity, own in runs.items()]
    epochs = next(iter(runs.values()))[0].result['n_epoch']
    return Table('sparsity', 'SPGD trained with several σ: accuracy (%)', [
        'σ', 'dev', 'test', f'test − that of σ = {paper.CLASSIFIER["sparsity"]:g} [95 %]'], rows,
        [f'{epochs} epochs each; all other settings are those of Table 3. A classifier is trained '
         'with 1 − σ of the words moved. Dev and test: mean ± sd over seeds (n). The first '
         'interval resamples the test reviews and takes the seeds as they are.'])


# Table 4 ------------------------------------------------------------------------------------

ATTACK_COLUMNS = {
    'spgd_direction': 'SPGD, direction', 'spgd_nearest': 'SPGD, nearest',
    'adv_direction': 'AdvT, direction', 'adv_nearest': 'AdvT, nearest', 'hotflip': 'HotFlip',
    'hotflip_greedy': 'greedy'}
KINDS = {'own': 'itself', 'transferred': 'pretrained'}  # whom the attacks were computed on


def table4(folder):
    """Accuracy of all classifiers under attack."""
    measured = results.robustness(folder)
    if not measured:
        raise NoResultsError(f'no Table 4 in {folder}: run table4.sh first')
    rows, first = [], next(iter(next(iter(measured.values())).values()))
    for kind, title in KINDS.items():
        rows += [None] if rows else []
        for method, by_seed in measured.items():
            found = [run.result for run in by_seed.values() if kind in run.result]
            if found:
                rows.append([
                    classifier_title(method), title,
                    Spread.of([result['clean'] for result in found]),
                    *(Spread.of([result[kind][name] for result in found])
                      for name in ATTACK_COLUMNS),
                    Spread.of([result['median_swaps'] for result in found], 1)
                    if kind == 'own' else MISSING])
    attack = first.result['settings']['own']
    notes = [
        f'Accuracy in per cent on {first.result["n_reviews"]:,} random {first.result["split"]} '
        'reviews, mean ± sd over seeds (n). Attacks are computed on the model itself or on the '
        'pretrained one, never with a language model. Direction: each moved word becomes the '
        'neighbour of highest cosine; nearest: the word nearest to its vector. HotFlip swaps '
        f'{100 * (1 - attack["hotflip"]["sparsity"]):g} % of the words at once; greedy swaps one '
        'word at a time, up to as many, until the prediction changes; swaps: their median number '
        'over all reviews, 0 where the prediction was wrong already.',
        f'All classifiers are attacked with ε = {attack["adv"]["xi_var"]:g} (AdvT) and '
        f'{attack["spgd"]["xi_var"]:g} (SPGD), K = {attack["spgd"]["nn_k"]}, σ = '
        f'{attack["spgd"]["sparsity"]:g}.']
    return Table('table4', 'Table 4: accuracy under attack (%)', [
        'Model', 'attacks on', 'clean', *ATTACK_COLUMNS.values(), 'swaps'], rows,
        [*notes, *corpus_notes(folder)], titles=2)


def table4_differences(folder):
    """Differences of accuracy under attack, review by review. None where no two classifiers can be
    compared."""
    measured = results.robustness(folder)
    rows = []
    for kind, title in KINDS.items():
        names = ['clean', *(f'{kind}_{name}' for name in ATTACK_COLUMNS)]
        block = []
        for a, b in PAIRS:
            seeds = [seed for seed in measured.get(a, {}) if seed in measured.get(b, {})]
            if not seeds or not all(f'{kind}_hotflip' in measured[method][seed].right
                                    for method in (a, b) for seed in seeds):
                continue
            block.append([f'{a} − {b}', title])
            for name in names:
                difference = np.mean([measured[a][seed].right[name].astype(float)
                                      - measured[b][seed].right[name] for seed in seeds], axis=0)
                bounds = significance.paired_bootstrap(100 * difference)
                block[-1].append(f'{Number(100 * difference.mean(), 1, True)} '
                                 f'{interval(bounds, 1)}')
        rows += [*([None] if rows and block else []), *block]
    if not rows:
        return None
    return Table('table4_differences', 'Differences in accuracy under attack (points)', [
        'A − B', 'attacks on', 'clean', *ATTACK_COLUMNS.values()], rows, [
        'Mean over the seeds that both have, with the 95 % interval of a bootstrap over the '
        'reviews (10,000 times), which are the same for both; it does not include the spread '
        'between seeds.'], titles=2)


# Footnotes ----------------------------------------------------------------------------------

def corpus_notes(folder):
    """One note when the corpus is not the paper's."""
    measured = corpus_statistics(folder)['table2']
    ours = {split: measured[split]['examples'] for split in paper.DATASET}
    if all(ours[split] == paper.DATASET[split]['examples'] for split in ours):
        return []
    return ['Corpus: ' + ', '.join(
        f'{ours[split]:,} ({paper.DATASET[split]["examples"]:,}) {split}' for split in ours)
        + ' reviews; in parentheses the paper\'s.']


def run_notes(runs):
    """Settings of classifiers that differ from preset `paper`, those of all methods first."""
    differences = {method: deviations(runs[method][0]) + _stopped_early(runs[method])
                   for method in runs}
    shared = [entry for entry in next(iter(differences.values()))
              if all(entry in other for other in differences.values())]
    notes = []
    if shared:
        notes.append(f'Classifiers, in parentheses preset paper: {", ".join(shared)}.')
    for method, entries in differences.items():
        own = [entry for entry in entries if entry not in shared]
        if own:
            notes.append(f'{classifier_title(method)}: {", ".join(own)}.')
    return notes


def _stopped_early(runs):
    """A text, in a list, with the epochs that were trained where `patience` ended a run."""
    trained = sorted({run.result.get('epochs_trained', run.result['n_epoch']) for run in runs})
    if trained[0] == runs[0].result['n_epoch']:
        return []
    return [f'stopped after {" to ".join(map(str, dict.fromkeys([trained[0], trained[-1]])))}']


def deviations(run):
    """Texts `name ours (theirs)` of a classifier's settings that are not preset paper's."""
    row = METHODS[run.method]
    theirs = vars(train.parse(['--preset', 'paper', '--method', row.trained_by]))
    ignored = UNREMARKABLE | (set() if row.attack else OF_ATTACKS)
    ours = {**run.settings, 'n_epoch': run.result['n_epoch']}
    return _deviations(ours, theirs, ignored)


def lm_notes(folder):
    found = results.language_model(folder)
    if found is None:
        return []
    result, ours = found
    theirs = vars(pretrain.parse(['--preset', 'paper']))
    entries = _deviations({**ours, 'epoch': result['epoch']}, theirs, UNREMARKABLE_LM)
    if result.get('epochs_trained', result['epoch']) < result['epoch']:
        entries.append(f'stopped after {result["epochs_trained"]}')
    text = (f'Language model: test perplexity {result["test_perplexity"]:.2f} (paper: '
            f'{paper.LM_PERPLEXITY})')
    return [f'{text}; {", ".join(entries)}.' if entries else f'{text}.']


def _deviations(ours, theirs, ignored):
    return [f'{name} {_plain(ours[name])} ({_plain(theirs[name])})' for name in theirs
            if name in ours and name not in ignored and ours[name] != theirs[name]]


def _plain(value):
    return f'{value:g}' if isinstance(value, float) else str(value)
