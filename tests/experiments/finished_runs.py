"""Writes finished runs, as the commands leave them."""
import csv
import json

import numpy as np

from interpretable_adv import settings, train
from interpretable_adv.methods import METHODS, AttackSettings
from lm import pretrain

N_TEST = 400


def write_json(path, value):
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(json.dumps(value), encoding='utf-8')


def write_classifier(folder, method, seed, test, dev=None, flags=(), n_test=N_TEST, name=None,
                     predicted=None):
    """A run whose saved predictions have exactly the accuracy `test` (in per cent), or another."""
    run = folder / f'{name or method}_seed{seed}'
    kind = METHODS[method].trained_by
    flags = vars(train.parse([
        '--preset', 'paper', '--method', kind, '--random_seed', str(seed), '--out', str(run),
        '--data_dir', str(folder / 'data'), *flags]))
    write_json(run / 'args.json', {**flags, 'vocab_sha256': 'v'})
    write_json(run / 'result.json', {
        'method': kind, 'seed': seed, 'n_epoch': flags['n_epoch'], 'best_epoch': 2,
        'dev_accuracy': test if dev is None else dev, 'test_accuracy': test})
    write_json(run / 'log', [{'epoch': 1}])
    labels = np.arange(n_test) % 2
    right = np.random.RandomState(seed).permutation(n_test) < round(
        n_test * (test if predicted is None else predicted) / 100)
    with open(run / 'predictions.csv', 'w', encoding='utf-8', newline='') as stream:
        writer = csv.writer(stream)
        writer.writerow(['index', 'label', 'prediction', 'logit_0', 'logit_1'])
        for index, (label, good) in enumerate(zip(labels, right)):
            writer.writerow([index, label, label if good else 1 - label, 0.5, -0.5])
    return run


def write_lm(folder, perplexity=101.5, flags=()):
    run = folder / 'lm_seed1'
    flags = vars(pretrain.parse(['--preset', 'paper', *flags]))
    write_json(run / 'args.json', {**flags, 'vocab_sha256': 'v'})
    write_json(run / 'result.json', {'epoch': flags['epoch'], 'test_perplexity': perplexity})


def write_table2(folder, examples=(21246, 3754, 25000, 50000)):
    table = {'train': {'min': 12, 'max': 2505, 'mean': 242.4386},
             'dev': {'min': 11, 'max': 1101, 'mean': 239.8588},
             'test': {'min': 7, 'max': 2379, 'mean': 235.59},
             'unlabeled': {}}
    for split, count in zip(table, examples):
        table[split]['examples'] = count
    write_json(folder / 'table2' / 'table2.json', {'table2': table, 'n_vocab': 87008})


def perplexity_row(method, epsilon, gap, flipped=20.0):
    attack = AttackSettings(epsilon, k=15)
    return {'method': method, 'epsilon': epsilon, 'norm_per_word': 0.1, 'words_moved': 25.0,
            'settings': settings.as_flags(attack, method),
            'scores': {name: {'perplexity': 100 + factor * gap, 'gap': factor * gap,
                              'flipped': flipped, 'accuracy': 70.0}
                       for name, factor in (('continuous', 1), ('nearest', 2),
                                            ('direction', 300))}}


def write_perplexity(folder, kind='perplexity', seed=1, shift=0.0, sweep=False):
    rows = [perplexity_row('none', 0, 0), perplexity_row('adv', 5, 4 + shift),
            perplexity_row('iadv', 15, 6 + shift), perplexity_row('spgd', 25, 1 + shift),
            perplexity_row('adv_sparse', 5, 3 + shift), perplexity_row('random', 5, 0.5 + shift)]
    rates = {method: {'10': 0.5, '25': 1.5, '50': None} for method in
             ('adv', 'iadv', 'spgd', 'adv_sparse', 'random')}
    write_json(folder / f'{kind}_seed{seed}' / 'perplexity.json', {
        'n_reviews': 200, 'split': 'test', 'rows': rows, 'sweep': [],
        'gap_at_flip_rate': {'continuous': rates} if sweep else {}})


def add_judgements(row, changed, chance, antonyms):
    """What an independent judge and WordNet add to a row of Table 1."""
    for reading in ('nearest', 'direction'):
        row['scores'][reading].update(
            judge_changed=changed, judge_changed_random=chance, judge_excess=changed - chance,
            judge_excess_error=1.0, antonyms=antonyms, synonyms=2.0)
    return row


def write_judged(folder, seed=1, shift=0.0, wordnet=True):
    """Table 1 and the sweep on one classifier with HotFlip, a guided method and a judge."""
    rows = [add_judgements(perplexity_row(method, epsilon, gap + shift), changed + shift, 3.0,
                           5.0 if wordnet else None)
            for method, epsilon, gap, changed in (
                ('none', 0, 0, 0), ('adv', 5, 4, 6), ('spgd', 25, 1, 8), ('spgd_lm', 25, 2, 7),
                ('hotflip', None, 9, 12))]
    rows[3]['gradient_norms'] = {'loss': 0.5, 'class_lm': 0.25}
    names = [row['method'] for row in rows[1:]]
    gaps = {name: {'10': i + shift, '25': 2 * i + shift, '50': None}
            for i, name in enumerate(names)}
    judged = {name: {method: {'10': 10 * i, '25': 20 * i + shift, '50': None}
                     for i, method in enumerate(names)}
              for name in ('judge_changed', 'judge_changed_random', 'antonyms')}
    content = {'n_reviews': 200, 'split': 'test', 'rows': rows, 'sweep': [],
               'judge': {'accuracy': 88.5, 'wordnet': wordnet}}
    write_json(folder / f'perplexity_seed{seed}' / 'perplexity.json',
               {**content, 'gap_at_flip_rate': {}})
    write_json(folder / f'perplexity_common_sweep_seed{seed}' / 'perplexity.json', {
        **content, 'gap_at_flip_rate': {'continuous': gaps},
        'judged_at_flip_rate': {'nearest': judged}})


COLUMNS = ('spgd_direction', 'spgd_nearest', 'adv_direction', 'adv_nearest', 'hotflip',
           'hotflip_greedy')


def write_robustness(folder, method, seed, accuracy, swaps=3.0, n_reviews=100):
    """Table 4 of a classifier that is right on the first reviews: as many as `accuracy` says when
    nothing is attacked, one less under each attack than under the one before."""
    run = folder / f'robustness_{method}_seed{seed}'
    columns = {'clean': accuracy, **{f'{kind}_{name}': accuracy - i - (kind == 'own')
                                     for kind in ('own', 'transferred')
                                     for i, name in enumerate(COLUMNS, 1)}}
    attacks = {name: settings.as_flags(AttackSettings(epsilon, k=15), name) for name, epsilon in (
        ('adv', 5.0), ('spgd', 25.0), ('hotflip', 0.0), ('hotflip_greedy', 0.0))}
    write_json(run / 'robustness.json', {
        'n_reviews': n_reviews, 'split': 'test', 'clean': columns['clean'],
        **{kind: {name: columns[f'{kind}_{name}'] for name in COLUMNS}
           for kind in ('own', 'transferred')},
        'median_swaps': swaps, 'settings': {'own': attacks, 'transferred': attacks}})
    with open(run / 'reviews.csv', 'w', encoding='utf-8', newline='') as stream:
        writer = csv.writer(stream)
        writer.writerow(['index', 'label', *columns, 'swaps'])
        for index in range(n_reviews):
            writer.writerow([index, 0, *(int(index < right) for right in columns.values()), 1])
    return run


def write_class_lm(folder):
    of_split = {'perplexity': 60.0, 'perplexity_per_class': {'negative': 61.0, 'positive': 59.0},
                'bayes_accuracy': 81.25}
    write_json(folder / 'class_lm_seed1' / 'result.json',
               {'epoch': 3, 'classes': {'dev': of_split, 'test': of_split}})
