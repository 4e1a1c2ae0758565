"""Digests of tiny trainings, one for each kind of run: python -m tests.same_bits [--check]

Prints them as a line of JSON. They must be the same on every machine, for every number of threads,
variant of the kernels, interpreter and NumPy: `tests/data/digests.json` has them, and `--check`
compares.
"""
import contextlib
import io
import json
import os
import shutil
import sys
import tempfile

import numpy as np

import interpretable_adv  # noqa: F401  (it comes before the first import of NumPy)
from interpretable_adv import train
from interpretable_adv.nn import kernels
from lm import perplexity, pretrain

FOLDER = os.path.dirname(os.path.abspath(__file__))
CORPUS = os.path.join(FOLDER, 'data', 'golden', 'synthetic', 'mini_synthetic')
RECORDED = os.path.join(FOLDER, 'data', 'digests.json')
# Sizes that no vector width divides.
CLASSIFIER = ['--emb_dim', '13', '--hidden_dim', '37', '--hidden_cls_dim', '7', '--n_epoch', '1',
              '--batchsize', '16', '--batchsize_semi', '8', '--nn_k', '5', '--random_seed', '3',
              '--ignore_unk', '1', '--lower', '0', '--alpha_decay', '0.999']
LM = ['--n-units-word', '13', '--unit', '37', '--epoch', '1', '--batchsize', '6', '--bproplen',
      '12', '--random-seed', '3']
METHODS = {'baseline': [], 'adv': ['--xi_var', '2'], 'iadv': ['--xi_var', '3'],
           'vat': ['--xi_var', '2'], 'ivat': ['--xi_var', '3'],
           'spgd': ['--xi_var', '9', '--update_nearest_batch', '2']}
CLASS_LM = ['--class_conditional', '1', '--epoch', '1', '--batchsize', '6', '--bproplen', '12',
            '--random-seed', '3']
LANGUAGE_MODELS = {'lm_adaptive': ['--adaptive-softmax', '--cutoffs', '40,90'], 'lm_softmax': [],
                   'lm_two_layers': ['--layer', '2', '--adaptive-softmax']}


def digests(folder):
    """Trains everything below a folder; returns the digests by name."""
    data = os.path.join(folder, 'data')
    shutil.copytree(CORPUS, data, ignore=shutil.ignore_patterns('*.cache'))

    def run(command, name, arguments):
        out = os.path.join(folder, name)
        command(['--data_dir', data, '--out', out, *arguments])
        with open(os.path.join(out, 'result.json'), encoding='utf-8') as stream:
            return json.load(stream)['digest']

    found = {name: run(pretrain.main, name, [*LM, *flags])
             for name, flags in LANGUAGE_MODELS.items()}
    start = ['--pretrained_model', os.path.join(folder, 'lm_adaptive', 'best.model')]
    for method, flags in METHODS.items():
        found[method] = run(train.main, method,
                            ['--method', method, *CLASSIFIER, *flags, *start])
    found['two_layers'] = run(train.main, 'two_layers', [
        '--method', 'iadv', *CLASSIFIER, '--n_layers', '2', '--xi_var', '3'])
    found['class_lm'] = run(pretrain.main, 'class_lm', [
        *CLASS_LM, '--init', os.path.join(folder, 'lm_adaptive', 'best.model')])
    found['spgd_lm'] = run(train.main, 'spgd_lm', [
        '--method', 'spgd', *CLASSIFIER, *METHODS['spgd'], *start, '--class_lm',
        os.path.join(folder, 'class_lm', 'best.model'), '--class_lm_weight', '0.1'])
    return found


def table1_numbers(folder):
    """Every number of Table 1 on these models, as text."""
    out = os.path.join(folder, 'table1.json')
    models = ','.join(f'{method}={os.path.join(folder, method, "best.model")}'
                      for method in ('adv', 'iadv', 'spgd', 'spgd_lm'))
    perplexity.main(['--lm', os.path.join(folder, 'lm_adaptive', 'best.model'), '--model', models,
                     '--methods', 'none,adv,iadv,spgd,spgd_lm,adv_sparse,random,hotflip,'
                     'hotflip_greedy', '--data_dir',
                     os.path.join(folder, 'data'), '--n_samples', '20', '--json', out])
    with open(out, encoding='utf-8') as stream:
        return json.load(stream)['rows']


def main():
    with tempfile.TemporaryDirectory() as folder, \
            contextlib.redirect_stdout(io.StringIO()) as printed:
        found = digests(folder)
    assert printed.getvalue()
    if '--check' in sys.argv:
        check(found)
        return
    print(json.dumps({'arithmetic': kernels.arithmetic(), 'variant': kernels.variant,
                      'python': sys.version.split()[0], 'digests': found}))


def check(found):
    """Says how many digests are the recorded ones; exit status 1 unless all are."""
    with open(RECORDED, encoding='utf-8') as stream:
        recorded = json.load(stream)
    others = [name for name in recorded if found.get(name) != recorded[name]]
    print(f'Python {sys.version.split()[0]}, NumPy {np.__version__}, kernels {kernels.variant}: '
          f'{len(recorded) - len(others)} of {len(recorded)} digests as recorded'
          + (f'; others: {", ".join(others)}' if others else ''))
    sys.exit(1 if others else 0)


if __name__ == '__main__':
    main()
