"""Computes here what recordings say upstream computed. Started by `numbers` as a process:

    python -m experiments.upstream_diff.ours PLAN.json

The plan names recorded steps of the classifier and of the language model, and runs to repeat.
"""
import contextlib
import io
import json
import os
import sys

import chainer
import chainer.functions as F
import numpy as np

from experiments.upstream_diff.recorder import Enough, Recorder, parameters
from experiments.upstream_diff.stand_ins import replaced
from interpretable_adv import analysis, attacks, data, train, updaters
from interpretable_adv.data import Split
from interpretable_adv.data.iterators import ReviewIterator
from interpretable_adv.errors import UserError
from interpretable_adv.neighbors import NeighborTable
from interpretable_adv.nets import Classifier, load_classifier, predict
from interpretable_adv.nn.adam import Adam, GradientClipping
from interpretable_adv.runs import checkpoints
from lm import pretrain
from lm.nets import RNNForLM

COMMANDS = {'train': train, 'pretrain': pretrain, 'analysis': analysis}


def main():
    with open(sys.argv[1], encoding='utf-8') as stream:
        plan = json.load(stream)
    for name, path in plan['steps'].items():
        arrays = checkpoints.read_arrays(path)
        compute = language_model_windows if name.startswith('lm_') else classifier_step
        np.savez(os.path.join(plan['results'], name + '.npz'), **compute(arrays))
    for run in plan['runs']:
        with open(os.path.join(plan['results'], run['name'] + '.json'), 'w',
                  encoding='utf-8') as stream:
            json.dump(repeat(**run), stream)
    for name, evaluation in plan['evaluations'].items():
        np.savez(os.path.join(plan['results'], name + '.npz'), logits=evaluate(**evaluation))


# One step -----------------------------------------------------------------------------------

def classifier_step(recorded):
    """Losses, perturbation, gradients and update from recorded parameters and batch.

    Args:
        recorded: arrays in the layout of the golden classifier files.
    """
    meta = json.loads(str(recorded['meta']))
    model = Classifier(meta['n_vocab'], meta['emb_dim'], meta['hidden_dim'],
                       meta['hidden_cls_dim'], n_layers=meta['n_layers'], dropout=0)
    _assign(model, recorded)
    optimizer = Adam(meta['alpha']).setup(model)
    optimizer.add_hook(GradientClipping(meta['clip']))

    virtual, interpretable = 'vat' in meta['method'], meta['method'].startswith('i')
    reviews = _reviews(recorded['x'], recorded['lengths'])
    attacked = reviews
    if 'x_semi' in recorded:
        attacked = _reviews(recorded['x_semi'], recorded['lengths_semi'])
    table = NeighborTable(model.word_embed.W.array, meta['nn_k'])
    if interpretable:
        attack = attacks.IAdvT(meta['xi_var'], table, virtual=virtual)
    else:
        attack = attacks.AdvT(meta['xi_var'], virtual=virtual)

    options = {'train': Split(reviews, recorded['y'])}
    iterator = ReviewIterator(len(reviews), len(reviews))
    if virtual:
        updater = updaters.VirtualUpdater(
            iterator, optimizer, unlabeled=attacked, virtual_attack=attack, **options)
    else:
        updater = updaters.AdversarialUpdater(iterator, optimizer, attack=attack, **options)

    ids = np.concatenate(attacked)
    lengths = [len(review) for review in attacked]
    parts = _backward(updater, reviews, attacked, recorded)
    result = {f'grad/{name.lstrip("/")}': parameter.grad.copy()
              for name, parameter in model.namedparams()}
    with _noise(recorded.get('first_noise')):
        logits = model.classify(model.embed(ids), lengths).array
        found = attack(model, ids, lengths, attacks.divergence(logits) if virtual
                       else attacks.mean_loss(recorded['y']))
    result.update(
        logits=model(reviews).array, perturbation=found.perturbation,
        loss_clean=parts['loss_clean'],
        loss_first=parts['loss_vat_first' if virtual else 'loss_first'],
        loss_adv=parts['loss_vat' if virtual else 'loss_adv'])
    if interpretable:
        # One rank more than asked for, to tell by how much another choice is off.
        result['ranks'] = NeighborTable(
            model.word_embed.W.array, meta['nn_k'] + 2, offset=0)[ids]
        result['neighbors'] = table[ids]
    # Reading a gradient of single rows made it one of all rows; training has it in rows.
    _backward(updater, reviews, attacked, recorded)
    optimizer.update()
    result.update({f'after/{name}': value for name, value in parameters(model).items()})
    return result


def _backward(updater, reviews, attacked, recorded):
    with _noise(recorded.get('first_noise')):
        loss, parts = updater.loss(np.arange(len(reviews)), np.arange(len(attacked)))
    updater.model.cleargrads()
    loss.backward()
    return parts


def _reviews(ids, lengths):
    return np.split(np.asarray(ids, np.int32), np.cumsum(lengths)[:-1])


def _assign(model, recorded):
    for name, parameter in model.namedparams():
        parameter.array[...] = recorded[f'param{name}']


@contextlib.contextmanager
def _noise(recorded):
    """VAT's random start is the recorded one."""
    if recorded is None:
        yield
        return
    with replaced(np.random, 'normal', lambda size: recorded.reshape(size)):
        yield


def language_model_windows(recorded):
    """Losses of some windows, the first one's gradients, and the parameters at the end."""
    meta = json.loads(str(recorded['meta']))
    model = RNNForLM(
        meta['n_vocab'], meta['n_units'], meta['n_units_word'], meta['n_layers'], 0,
        meta['adaptive_softmax'], meta['cutoff'] if meta['adaptive_softmax'] else None,
        meta['reduce_k'])
    _assign(model, recorded)
    optimizer = Adam(meta['alpha']).setup(model)
    optimizer.add_hook(GradientClipping(meta['clip']))
    losses, state, result = [], None, {}
    for words, targets in zip(recorded['x'], recorded['t']):
        nll, state = model(words, targets, state)
        loss = F.sum(nll) / meta['normalize']
        model.cleargrads()
        loss.backward()
        if not losses:
            result.update({f'grad/{name.lstrip("/")}': parameter.grad.copy()
                           for name, parameter in model.namedparams()})
        optimizer.update()
        losses.append(float(loss.array))
    result.update({f'after/{name}': value for name, value in parameters(model).items()})
    return {**result, 'losses': np.array(losses)}


# Runs ---------------------------------------------------------------------------------------

def repeat(name, command, argv, out, stop):
    """Runs one of our commands; a run of `stop` steps is ended after them."""
    # One update more than wanted is begun, so that the last wanted one is logged.
    recorder = _CountOnly(stop + 1 if stop else 0)
    printed = io.StringIO()
    error = None
    try:
        with recorder.watching(), contextlib.redirect_stdout(printed):
            COMMANDS[command].main(argv)
    except Enough:
        pass
    except UserError as problem:
        error = str(problem)
    log = []
    if os.path.exists(os.path.join(out, 'log')):
        with open(os.path.join(out, 'log'), encoding='utf-8') as stream:
            log = json.load(stream)
    after = parameters(recorder.target) if recorder.target and not stop else {}
    return {
        'error': error, 'steps': _json_lines(os.path.join(out, 'steps.jsonl')), 'log': log,
        'stdout': printed.getvalue().splitlines(),
        'param_norms': {'/' + key: float(np.linalg.norm(value))
                        for key, value in after.items()},
        'param_sums': {'/' + key: float(value.sum()) for key, value in after.items()},
    }


class _CountOnly(Recorder):
    """Only knows the model, and ends a run in time."""

    @contextlib.contextmanager
    def watching(self):
        recorder, update = self, chainer.optimizers.Adam.update

        def counting(optimizer, *arguments, **options):
            recorder.updates += 1
            recorder.target = optimizer.target
            if recorder.updates == recorder.stop:
                raise Enough
            return update(optimizer, *arguments, **options)

        with replaced(chainer.optimizers.Adam, 'update', counting):
            yield self


def _json_lines(path):
    if not os.path.exists(path):
        return []
    with open(path, encoding='utf-8') as stream:
        return [json.loads(line) for line in stream]


def evaluate(model, data_dir, words):
    """Test logits of a checkpoint, in the corpus's order.

    Args:
        words: the vocabulary that upstream had.
    """
    corpus = data.load(data_dir)
    if corpus.words != words:
        raise UserError(f'{data_dir} has another vocabulary than {model}')
    return predict(load_classifier(model), corpus.test.sequences)


if __name__ == '__main__':
    main()
