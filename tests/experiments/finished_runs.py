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


def write_classifier(folder, method, seed, test, dev=None, flags=(), n_test=N_TEST):
    """A run whose saved predictions have exactly the accuracy `test` (in per cent)."""
    run = folder / f'{method}_seed{seed}'
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
    right = np.random.RandomState(seed).permutation(n_test) < round(n_test * test / 100)
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
