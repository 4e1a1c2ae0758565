"""Turns a clone into recordings: a folder of what upstream computed.

Its layout is that of the golden files, so that a recorded clone and a real one are compared by
the same code.
"""
import json
import math
import os
import shutil
import subprocess
import sys
from typing import NamedTuple

import numpy as np

from experiments.upstream_diff import corpus
from experiments.upstream_diff.files import ROOT
from interpretable_adv import data
from interpretable_adv.errors import UserError
from interpretable_adv.nets import Classifier
from interpretable_adv.runs import checkpoints
from lm.nets import RNNForLM
from lm.streams import StreamIterator

PROGRAMS = ('train.py', 'pretrain.py', 'analysis.py', 'visualize.py')
STEP_METHODS = {  # method: its flags
    'adv': ['--use_adv', '1'],
    'iadv': ['--use_adv', '1', '--use_attn_d', '1'],
    'vat': ['--use_semi_data', '1', '--batchsize_semi', '6'],
    'ivat': ['--use_semi_data', '1', '--batchsize_semi', '6', '--use_attn_d', '1'],
}
METHODS = {'baseline': [], **STEP_METHODS}
DATA_FLAGS = ['--lower', '0', '--min_count', '1', '--ignore_unk', '1', '--use_unlabled', '1']
SIZES = {'emb_dim': 12, 'hidden_dim': 20, 'hidden_cls_dim': 7}
STEP = {'batchsize': 4, 'xi_var': 5.0, 'nn_k': 5, 'clip': 0.5, 'alpha': 0.001, 'dropout': 0.0}
LM_STEP = {'batchsize': 3, 'bproplen': 8, 'unit': 32, 'n-units-word': 10, 'layer': 1,
           'dropout': 0.0}
LM_WINDOWS = 3
BATCH = 8  # labelled reviews per step of a trajectory


class Recordings(NamedTuple):
    """What upstream computed.

    Attributes:
        folder: of the files.
        corpora: `(prefix, data_dir)` of each set of trajectories: files are `PREFIXtraj_*.json`.
        errors: by the name of a job, why upstream did not come to its end.
        stop: steps of a trajectory after which it was ended; 0: it came to its end.
        demonstrations: by name, what a job that shows a fault of upstream left.
    """

    folder: str
    corpora: list
    errors: dict
    stop: int = 0
    demonstrations: dict = {}

    def path(self, name):
        return os.path.join(self.folder, name)


def from_folder(folder):
    """The golden files, as recordings."""
    corpora = [(prefix, os.path.join(folder, prefix, name))
               for prefix, name in (('', 'mini_imdb'), ('synthetic/', 'mini_synthetic'))
               if os.path.isdir(os.path.join(folder, prefix, name))]
    if not corpora and not os.path.exists(os.path.join(folder, 'upstream_cli.json')):
        raise UserError(f'{folder} holds no recordings of upstream: neither upstream_cli.json nor '
                        'mini_imdb or synthetic/mini_synthetic')
    return Recordings(folder, corpora, {})


SECTIONS = ('files', 'flags', 'checkpoints', 'numbers', 'known')


def from_clone(clone, work, steps, full=None, sections=SECTIONS):
    """Runs a clone of upstream.

    Args:
        clone: path of the clone, in which nothing is written.
        work: folder for everything that is.
        steps: length of the trajectories.
        full: a user's data folder for the trajectories, at upstream's sizes; None: a small
            corpus at small sizes.
        sections: what the report is to hold; other runs are left out.
    """
    clone = os.path.realpath(clone)
    work = os.path.realpath(work)
    small = _working_folder(work, 'small')
    corpus.write(os.path.join(small, 'data', 'imdb'))
    large = _working_folder(work, 'large')
    if {'numbers', 'known'} & set(sections):
        corpus.write_large_vocabulary(os.path.join(large, 'data', 'imdb'))
    where = small
    if full:
        where = _working_folder(work, 'full')
        corpus.link(os.path.join(where, 'data', 'imdb'), full)
    models = _write_models(work, small, 'checkpoints' in sections)
    results = os.path.join(work, 'results')
    os.makedirs(results)
    jobs = []
    if 'flags' in sections:
        jobs += _flag_jobs(clone)
    if 'checkpoints' in sections:
        jobs += _checkpoint_jobs(small, models)
    if 'numbers' in sections:
        jobs += [*_step_jobs(small, models), *_lm_jobs(small, large)]
        if steps:
            jobs += _trajectory_jobs(where, steps, full)
    if 'known' in sections:
        jobs += demonstration_jobs(small, large, models)
    if jobs:
        start('record', {'clone': clone, 'results': results, 'jobs': jobs}, work)
    return _collect(jobs, work, results, small, large, where, steps if full else 0)


def _working_folder(work, name):
    folder = os.path.join(work, name)
    os.makedirs(folder)
    return folder


def _write_models(work, small, large_lm):
    """Models of random weights, written by this port, for upstream to read.

    Args:
        large_lm: whether one of upstream's 1024 units is needed.
    """
    n_vocab = data.load(os.path.join(small, 'data', 'imdb')).n_vocab
    paths = {name: os.path.join(work, name + '.model')
             for name in ('classifier', 'lm', 'small_lm')}
    np.random.seed(5)
    checkpoints.save_classifier(paths['classifier'], Classifier(n_vocab, **SIZES))
    checkpoints.save_lm(paths['small_lm'], RNNForLM(n_vocab, 24, 256))
    if large_lm:
        checkpoints.save_lm(paths['lm'], RNNForLM(n_vocab, 1024, 256))
    return paths


# Jobs ---------------------------------------------------------------------------------------

def _flag_jobs(clone):
    return [{'kind': 'flags', 'name': f'flags_{program}', 'program': program}
            for program in PROGRAMS if os.path.exists(os.path.join(clone, program))]


def _run(name, program, folder, argv, **options):
    return {'kind': 'run', 'name': name, 'program': program, 'folder': folder,
            'argv': list(map(str, argv)), **options}


def _flags(values):
    return [part for name, value in values.items() for part in (f'--{name}', str(value))]


def _step_jobs(small, models):
    for method, flags in STEP_METHODS.items():
        yield _run(f'step_{method}', 'train.py', small, [
            *DATA_FLAGS, *_flags(SIZES), *_flags(STEP), *flags, '--use_limit_vocab', 0,
            '--load_trained_lstm', models['classifier']], stop=1, arrays=True)


def _checkpoint_jobs(small, models):
    yield _run('save_classifier', 'train.py', small, [
        *DATA_FLAGS, *_flags(SIZES), '--n_epoch', 1, '--save_name', 'saved'])
    yield _run('load_classifier', 'train.py', small, [
        *DATA_FLAGS, *_flags(SIZES), '--n_epoch', 1, '--load_trained_lstm',
        models['classifier']], stop=1, arrays=True)
    yield _run('save_lm', 'pretrain.py', small, [
        '--batchsize', 4, '--bproplen', 10, '--epoch', 1, '--out', 'saved_lm', '--unit', 24,
        '--n-units-word', 16])
    yield _run('start_from_lm', 'train.py', small, [
        *DATA_FLAGS, '--batchsize', 1, '--n_epoch', 1, '--pretrained_model', models['lm'],
        '--adaptive_softmax', 0], stop=1, arrays=True)


def _trajectory_jobs(folder, steps, full):
    epochs = 1 if full else math.ceil(steps / math.ceil(40 / BATCH))
    sizes = {} if full else {'emb_dim': 16, 'hidden_dim': 24, 'hidden_cls_dim': 10}
    batch = {} if full else {'batchsize': BATCH}
    for method, flags in METHODS.items():
        yield _run(f'traj_{method}', 'train.py', folder, [
            '--n_epoch', epochs, *DATA_FLAGS, *_flags(sizes), *_flags(batch),
            '--alpha_decay', 0.9998, '--xi_var', 15 if method[0] == 'i' else 5,
            '--use_limit_vocab', 0, '--save_name', method, *flags], stop=steps if full else 0)
    sizes = {} if full else {'unit': 24, 'n-units-word': 16, 'batchsize': 4, 'bproplen': 10,
                             'log-interval': 20}
    yield _run('traj_lm', 'pretrain.py', folder, [
        '--epoch', 1 if full else 2, '--out', 'OUT', *_flags(sizes)], stop=steps if full else 0)


def _lm_jobs(small, large):
    for name, folder, more in (('lm_softmax', small, []),
                               ('lm_adaptive', large, ['--adaptive-softmax'])):
        yield _run(name, 'pretrain.py', folder, [
            *_flags(LM_STEP), *more, '--epoch', 1, '--out', name],
            stop=LM_WINDOWS, arrays=True, never_forget=True)


def demonstration_jobs(small, large, models):
    """Runs that end in a fault, or show one; `known` explains them."""
    tiny = [*DATA_FLAGS, *_flags(SIZES), '--n_epoch', 1, '--use_limit_vocab', 0]
    interpretable = ['--use_adv', 1, '--use_attn_d', 1, '--nn_k', 3]
    yield _run('demo_cpu', 'train.py', small, tiny, stand_ins=False, stop=1)
    yield _run('demo_analysis', 'analysis.py', small,
               [*_flags(SIZES), '--analysis_mode', 1, '--n_epoch', 1], stop=1)
    yield _run('demo_eval', 'train.py', small, [*tiny, '--eval', 1], stop=1)
    yield _run('demo_limit_vocab', 'train.py', small,
               [*DATA_FLAGS, *_flags(SIZES), '--n_epoch', 1, *interpretable])
    yield _run('demo_missing_tail', 'pretrain.py', large, [
        '--batchsize', 1, '--bproplen', 1, '--unit', 32, '--n-units-word', 8,
        '--adaptive-softmax', '--epoch', 1, '--out', 'tail'], stop=LM_WINDOWS)
    yield _run('demo_resume', 'pretrain.py', small, [
        '--batchsize', 4, '--bproplen', 10, '--unit', 8, '--n-units-word', 8, '--epoch', 1,
        '--out', 'resume', '--resume', 'no_such_snapshot'], stop=1)
    yield _run('demo_lm_size', 'train.py', small, [
        *tiny, '--pretrained_model', models['small_lm'], '--adaptive_softmax', 0], stop=1)


def start(module, plan, work):
    """Runs one of our modules as a process that may not write in the clone."""
    path = os.path.join(work, module + '.json')
    with open(path, 'w', encoding='utf-8') as stream:
        json.dump(plan, stream)
    environment = {**os.environ, 'PYTHONDONTWRITEBYTECODE': '1', 'PYTHONPATH': ROOT,
                   'PYTHONUTF8': '1', 'MPLBACKEND': 'Agg'}
    with open(os.path.join(work, module + '.log'), 'w', encoding='utf-8') as log:
        done = subprocess.run(
            [sys.executable, '-P', '-m', f'experiments.upstream_diff.{module}', path],
            cwd=work, env=environment, stdout=log, stderr=subprocess.STDOUT)
    if done.returncode:
        with open(log.name, encoding='utf-8') as stream:
            last = (stream.read().strip().splitlines() or ['it printed nothing'])[-1]
        raise UserError(f'the process that runs the programs ended with status '
                        f'{done.returncode}: {last}')


# Results ------------------------------------------------------------------------------------

def _collect(jobs, work, results, small, large, where, stop):
    folder = os.path.join(work, 'recordings')
    os.makedirs(folder)
    found = {job['name']: _read(results, job['name']) for job in jobs}
    errors = {name: result['error'] for name, (result, _) in found.items()
              if result['error'] and not name.startswith('demo_')}
    flags = {job['program']: found[job['name']][0]['flags'] for job in jobs
             if job['kind'] == 'flags' and not found[job['name']][0]['error']}
    _write_json(folder, 'upstream_cli.json', flags)
    for name, (result, arrays) in found.items():
        kind, _, method = name.partition('_')
        if name in errors:
            continue
        if kind == 'step':
            try:
                step = as_golden_step(arrays, method)
            except UserError as error:
                errors[name] = str(error)
            else:
                np.savez(os.path.join(folder, f'classifier_{method}.npz'), **step)
        elif kind == 'traj':
            _write_json(folder, name + '.json', result)
        elif kind == 'lm':
            place = large if method == 'adaptive' else small
            step = lm_step(arrays, os.path.join(place, 'data', 'imdb'), name)
            np.savez(os.path.join(folder, name + '.npz'), **step)
        elif arrays:
            np.savez(os.path.join(folder, name + '.npz'), **arrays)
    for name, found_in in (('upstream_classifier.model', os.path.join(small, 'models')),
                           ('upstream_lm.model', os.path.join(small, 'saved_lm'))):
        path = _model_in(found_in, 'word_embed/W' if 'classifier' in name else 'embed/W')
        if path:
            shutil.copyfile(path, os.path.join(folder, name))
    for name in ('classifier', 'lm'):
        path = os.path.join(work, name + '.model')
        if os.path.exists(path):
            shutil.copyfile(path, os.path.join(folder, f'our_{name}.model'))
    demonstrations = {name: result for name, (result, _) in found.items()
                      if name.startswith('demo_')}
    return Recordings(folder, [('', os.path.join(where, 'data', 'imdb'))], errors, stop,
                      demonstrations)


def _read(results, name):
    path = os.path.join(results, name)
    with open(path + '.json', encoding='utf-8') as stream:
        result = json.load(stream)
    arrays = {}
    if os.path.exists(path + '.npz'):
        arrays = checkpoints.read_arrays(path + '.npz')
    return result, arrays


def _write_json(folder, name, value):
    with open(os.path.join(folder, name), 'w', encoding='utf-8') as stream:
        json.dump(value, stream)


def _model_in(folder, key):
    """The model among the files of a folder; its name, and what lies beside it, may be any."""
    for name in sorted(os.listdir(folder) if os.path.isdir(folder) else []):
        path = os.path.join(folder, name)
        try:
            if os.path.isfile(path) and key in checkpoints.read_arrays(path):
                return path
        except UserError:
            continue
    return None


def as_golden_step(arrays, method):
    """One step of `train.py` in the layout of the golden classifier files."""
    semi = 'vat' in method
    passes = [_with_prefix(arrays, f'pass{number}/') for number in range(9)]
    passes = [each for each in passes if each]
    if len(passes) != 3 + semi or any('logits' not in each for each in passes):
        raise UserError(f"upstream's step has {len(passes)} passes, {3 + semi} were expected")
    clean, first, last = passes[-3:]
    losses, divergences = arrays['losses'], arrays['kl']
    step = {
        'x': passes[0]['ids'], 'lengths': passes[0]['lengths'], 'y': arrays['labels'],
        'logits': passes[0]['logits'], 'loss_clean': losses[0],
        'perturbation': last['inputs'] - clean['inputs'],
        'loss_first': divergences[0] if semi else losses[1],
        'loss_adv': divergences[1] if semi else losses[2],
    }
    if semi:
        step.update(x_semi=clean['ids'], lengths_semi=clean['lengths'],
                    first_noise=first['inputs'] - clean['inputs'])
    if 'neighbors' in arrays:
        step['neighbors'] = arrays['neighbors']
    for theirs, ours in (('param', 'param'), ('grad', 'grad'), ('after_first', 'after')):
        step.update({f'{ours}/{name}': value
                     for name, value in _with_prefix(arrays, theirs + '/').items()})
    step['meta'] = np.array(json.dumps({
        **SIZES, 'method': method, 'n_layers': 1, 'n_vocab': len(arrays['param/word_embed/W']),
        **{name: STEP[name] for name in ('xi_var', 'nn_k', 'clip', 'alpha', 'dropout')}}))
    return step


def lm_step(arrays, data_dir, name):
    """Windows of `pretrain.py` in the layout of the golden language model files.

    Words and targets are those that upstream's description says it reads.
    """
    size, window = LM_STEP['batchsize'], LM_STEP['bproplen']
    stream = StreamIterator(data.load(data_dir).lm_train(), size, window)
    windows = [next(stream) for _ in range(LM_WINDOWS)]
    step = {'x': np.array([words for words, _ in windows]),
            't': np.array([targets for _, targets in windows]), 'losses': arrays['totals']}
    for kind in ('param', 'grad', 'after'):
        step.update({f'{kind}/{key}': value
                     for key, value in _with_prefix(arrays, kind + '/').items()})
    step['meta'] = np.array(json.dumps({
        'n_vocab': len(arrays['param/embed/W']), 'n_units': LM_STEP['unit'],
        'n_units_word': LM_STEP['n-units-word'], 'n_layers': 1, 'dropout': 0.0, 'alpha': 0.001,
        'clip': 5.0, 'normalize': size, 'adaptive_softmax': name == 'lm_adaptive',
        'cutoff': [2000, 10000], 'reduce_k': 4}))
    return step


def _with_prefix(arrays, prefix):
    return {name[len(prefix):]: value for name, value in arrays.items()
            if name.startswith(prefix)}
