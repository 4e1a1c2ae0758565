"""The results in one look: the paper's numbers next to ours at each size."""
import math
import os

from experiments import findings, paper_tables, results
from experiments.effects import Effect
from experiments.tables import MISSING, Number, Spread, Table, interval
from interpretable_adv import paper
from interpretable_adv.methods import METHODS

SIZES = {"ours, the paper's size": 'paper', 'ours, `small`': 'small'}
GAINS = (('pretrained', 'baseline'), ('adv', 'pretrained'), ('iadv', 'pretrained'),
         ('spgd', 'pretrained'), ('spgd_lm', 'pretrained'), ('spgd', 'adv'))
STARTS = 'baseline', 'pretrained'
SIZE = 'emb_dim', 'hidden_dim', 'hidden_cls_dim'
STRENGTHS = ('spgd', 'adv'), ('spgd', 'iadv'), ('spgd_lm', 'spgd')


def trained(root):
    """What was trained: sizes, seeds, and how good the language model is."""
    rows = [['the paper', '/'.join(str(paper.CLASSIFIER[name]) for name in SIZE),
             Number(paper.N_VOCAB, 0), f'≥ {paper.MIN_RUNS}', Number(paper.LM_PERPLEXITY)]]
    for preset, title in findings.PRESETS.items():
        folder = os.path.join(root, 'experiments', 'results', preset)
        runs = [run for method in results.find(folder).values() for run in method]
        lm, _ = results.language_model(folder) or ({}, {})
        if runs:
            rows.append([title, '/'.join(str(runs[0].settings.get(name)) for name in SIZE),
                         Number(lm.get('n_vocab'), 0), Number(len({run.seed for run in runs}), 0),
                         Number(lm.get('test_perplexity'))])
    return Table('trained', 'What was trained', [
        '', 'embedding/LSTM/hidden', 'words', 'seeds', "language model's test perplexity"], rows)


def accuracies(root):
    """Table 3: the classifiers' test accuracy."""
    columns = _columns(root)
    found = [results.find(folder) for folder in columns.values()]
    rows = [[paper_tables.classifier_title(method), Number(paper.ACCURACY.get(method)), *(
        Spread.of([run.test for run in runs[method]]) if method in runs else MISSING
        for runs in found)]
        for method in dict.fromkeys([*paper.ACCURACY, *(name for runs in found for name in runs)])]
    return Table('accuracies', 'Test accuracy on IMDB (%)', ['Model', 'paper', *columns], rows)


def effects(root):
    """What the paper's claims rest on: gains in accuracy, perplexity gaps, and their strength; of
    the sizes that have any of it."""
    columns = _columns(root)
    rows = [[f'accuracy: {_minus(a, b)}',
             Number(paper.ACCURACY[a] - paper.ACCURACY[b], signed=True)
             if a in paper.ACCURACY else MISSING,
             *(findings.accuracy(folder, a, b) or MISSING for folder in columns.values())]
            for a, b in GAINS]
    for score, theirs in (('gap', paper.GAP), ('flipped', {})):
        rows += [[f'{score}: {METHODS[method].title}', Number(theirs.get(method), signed=True),
                  *(_of_table1(folder, method, score) for folder in columns.values())]
                 for method in (*paper.GAP, 'spgd_lm')]
    rows += [[f'gap at {rate} % flipped: {_minus(a, b)}', MISSING, *(
        findings.equal_strength(folder, a, b, rate) or MISSING for folder in columns.values())]
        for a, b in STRENGTHS for rate in findings.RATES]
    rows = [row for row in rows if set(map(str, row[1:])) != {MISSING}]
    titles = ['', 'paper', *columns]
    kept = [place for place in range(len(titles))
            if place < 2 or any(row[place] != MISSING for row in rows)]
    return Table('effects', 'Effects', [titles[place] for place in kept],
                 [[row[place] for place in kept] for row in rows])


def baselines(root):
    """What a classifier without a language model reaches, and what it was trained with."""
    rows = [['paper', '/'.join(str(paper.CLASSIFIER[name]) for name in SIZE), '1', MISSING,
             *(Number(paper.ACCURACY[method]) for method in STARTS)]]
    for title, folder in _columns(root).items():
        found = results.find(folder)
        runs = found.get('baseline', [])
        if runs:
            rows.append([
                title, '/'.join(str(runs[0].settings.get(name)) for name in SIZE),
                str(runs[0].settings.get('min_count')), ', '.join(str(run.result.get(
                    'epochs_trained', run.result['n_epoch'])) for run in runs),
                *(Spread.of([run.test for run in found.get(method, [])]) for method in STARTS)])
    return Table('baselines', 'The baseline', [
        '', 'embedding/LSTM/hidden', 'words in more than … reviews', 'epochs trained',
        *(paper_tables.classifier_title(method) for method in STARTS)], rows)


def _minus(a, b):
    return f'{METHODS[a].title} − {METHODS[b].title}'


def against_paper(root):
    """Ours at the paper's size: which numbers differ from the paper's by more than the sample of
    reviews explains.

    An accuracy may be off by two standard errors, those of a share of the test reviews; a gap
    is within where its interval over reviews contains the paper's. Neither knows how much one
    training differs from another.
    """
    folder = os.path.join(root, 'experiments', 'results', 'paper')
    runs, rows = results.find(folder), []
    for method, theirs in paper.ACCURACY.items():
        if method in runs:
            ours = results.best(runs[method]).test
            error = math.sqrt(ours * (100 - ours) / paper.DATASET['test']['examples'])
            rows.append([f'accuracy: {METHODS[method].title}', Number(theirs), Number(ours),
                         Number(ours - theirs, signed=True), f'± {Number(2 * error)}',
                         _yes(abs(ours - theirs) <= 2 * error)])
    for content in paper_tables.perplexities(folder, 'perplexity').values():
        found = {row['method']: row['scores']['continuous'] for row in content['rows']}
        for method, theirs in paper.GAP.items():
            bounds = found.get(method, {}).get('gap_interval')
            if bounds:
                ours = found[method]['gap']
                rows.append([f'gap: {METHODS[method].title}', Number(theirs, signed=True),
                             Number(ours, signed=True), Number(ours - theirs, signed=True),
                             interval(bounds), _yes(bounds[0] <= theirs <= bounds[1])])
    return Table('against_paper', "The paper's size: ours against the paper's", [
        '', 'paper', 'ours', 'difference', 'margin', 'within'], rows)


def _yes(within):
    return 'yes' if within else 'no'


def _columns(root):
    """`{title: folder}` of the sizes that have results."""
    folders = {title: os.path.join(root, 'experiments', 'results', name)
               for title, name in SIZES.items()}
    return {title: folder for title, folder in folders.items() if results.find(folder)}


def _of_table1(folder, method, score):
    """A score of Table 1's continuous reading: over seeds, or with one seed over reviews."""
    found = [row['scores']['continuous'] for content in
             paper_tables.perplexities(folder, 'perplexity').values() for row in content['rows']
             if row['method'] == method]
    if not found:
        return MISSING
    if score == 'gap' and len(found) == 1 and found[0].get('gap_interval'):
        return Effect(found[0]['gap'], *found[0]['gap_interval'], 1, 'reviews')
    decimals, signed = (2, True) if score == 'gap' else (1, False)
    return Spread.of([scores[score] for scores in found], decimals, signed)
