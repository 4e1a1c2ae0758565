"""Trains the classifier: python -m interpretable_adv.train --method spgd --preset paper"""
import argparse
import os
import time

import chainer
import numpy as np
from chainer import training
from chainer.training import extension

from interpretable_adv import (
    attack_flags,
    checkpoints,
    cli,
    data,
    data_flags,
    devices,
    distributed,
    memory,
    nets,
    updaters,
)
from interpretable_adv import training as runs
from interpretable_adv.adam import Adam, GradientClipping
from interpretable_adv.cli import ArgumentParser, UserError, at_least, share
from interpretable_adv.iterators import ReviewIterator
from interpretable_adv.neighbor_table import NeighborTable
from lm.loading import load_lm

METHODS = {  # what each name sets of use_adv, use_attn_d, use_semi_data, use_spgd
    'baseline': (0, 0, 0, 0),
    'adv': (1, 0, 0, 0),
    'iadv': (1, 1, 0, 0),
    'vat': (0, 0, 1, 0),
    'ivat': (0, 1, 1, 0),
    'spgd': (1, 0, 0, 1),
}
METHOD_FLAGS = ('use_adv', 'use_attn_d', 'use_semi_data', 'use_spgd')

PAPER = {  # Appendix B, and for what it leaves to Sato et al. (2018) upstream's README
    'lower': 0, 'min_count': 1, 'ignore_unk': 1,
    'emb_dim': 256, 'hidden_dim': 1024, 'hidden_cls_dim': 30, 'n_layers': 1, 'dropout': 0.5,
    'batchsize': 32, 'n_epoch': 30, 'alpha': 0.001, 'alpha_decay': 0.9998, 'use_exp_decay': 1,
    'clip': 4.0, 'nn_k': 15, 'sparsity': 0.75, 'spgd_iters': 1, 'update_nearest_batch': 50,
}
PAPER_EPSILON = {'adv': 5.0, 'iadv': 15.0, 'vat': 5.0, 'ivat': 15.0, 'spgd': 25.0}

STEP_VALUES = ('loss', 'loss_clean', 'loss_first', 'loss_adv', 'loss_vat_first', 'loss_vat',
               'words_kept', 'words_away', 'perturbation_norm')
# What a resumed run may change: how long it is, and what it shows.
FREE_SETTINGS = ('n_epoch', 'out', 'data_dir', 'log_steps', 'snapshot_steps', 'progress',
                 'gpu', 'device', 'communicator', 'save_name', 'eval', 'debug_mode', 'preset')


# 1. Arguments -------------------------------------------------------------------------------

def make_parser():
    parser = ArgumentParser(prog='python -m interpretable_adv.train', description=__doc__)
    switch = {'type': int, 'choices': (0, 1)}

    add = parser.add_argument_group('run').add_argument
    add('--out', help='folder for the results (default: models/ and --save_name)')
    add('--method', choices=METHODS,
        help='a readable front for --use_adv, --use_attn_d, --use_semi_data and --use_spgd')
    add('--preset', choices=('upstream', 'paper'), default='upstream', help='set of defaults')
    add('--resume', action='store_true', help='go on from the snapshot in --out')
    add('--snapshot_steps', type=at_least(0), default=0, metavar='N',
        help='write a snapshot every N steps (0: every epoch)')
    add('--log_steps', type=at_least(0), default=0, metavar='N',
        help='write the losses of every Nth step to steps.jsonl')
    add('--progress', nargs='?', const='on', default='auto', choices=('auto', 'on', 'off'),
        help='live line: on a terminal, always, never')
    add('--device', help="Chainer's name of a device, e.g. @cupy:0; instead of --gpu")
    add('--communicator', choices=distributed.COMMUNICATORS,
        help='train with all processes that mpiexec started; --batchsize is shared among them')

    add = attack_flags.add(parser).add_argument
    add('--use_spgd', **switch, nargs='?', const=1, default=0, help='SPGD')
    add('--spgd_directions', choices=('clean', 'dropout'), default='clean',
        help='directions between clean word vectors or ones with dropout')
    add('--update_nearest_batch', type=at_least(0), metavar='N',
        help='neighbours anew every N steps; 0: by --update_nearest_epoch, as upstream (default: '
             '50 for SPGD and preset paper, else 0)')

    add = parser.add_upstream_group("upstream's flags: model").add_argument
    add('--emb_dim', type=at_least(1), default=256, help='size of word vectors')
    add('--hidden_dim', type=at_least(1), default=1024, help='size of the LSTM')
    add('--hidden_cls_dim', type=at_least(1), default=30, help='size of the hidden layer')
    add('--n_layers', type=at_least(1), default=1, help='layers of the LSTM')
    add('--dropout', type=share, default=0.5, help='dropout ratio')
    add('--pretrained_model', default='', help="a language model's best.model to start from")
    add('--word_only', **switch, default=0, help="take only the language model's word vectors")
    add('--load_trained_lstm', default='', help='a classifier to start from')
    add('--freeze_word_emb', **switch, default=0, help='do not train the word vectors')

    data_flags.add(parser)
    add = parser.add_upstream_group("upstream's flags: data").add_argument
    add('--dataset', default='imdb', help='only imdb; own corpora come through --data_dir',
        choices=('imdb', 'elec', 'rotten', 'dbpedia', 'rcv1', 'fce'))
    add('--add_labeld_to_unlabel', **switch, default=1,
        help='VAT on the labelled reviews as well')

    add = parser.add_upstream_group("upstream's flags: optimisation").add_argument
    add('--batchsize', type=at_least(1), default=32, help='reviews per step')
    add('--batchsize_semi', type=at_least(1), default=64, help='unlabelled reviews per step')
    add('--n_epoch', type=at_least(1), default=30, help='epochs')
    add('--alpha', type=at_least(0, float), default=0.001, help="Adam's step size")
    add('--alpha_decay', type=at_least(0, float), default=0.0, help='its factor per step')
    add('--use_exp_decay', **switch, default=1, help='compute it as alpha · decay^step')
    add('--clip', type=at_least(0, float), default=5.0, help='largest norm of the gradient')
    add('--random_seed', type=at_least(0), default=1234, help='seed')
    add('--gpu', '-g', type=int, default=-1, help='number of the GPU; negative: CPU')

    add = parser.add_upstream_group("upstream's flags: perturbations").add_argument
    add('--use_adv', **switch, default=0, help='adversarial training')
    add('--use_attn_d', **switch, default=0, help='interpretable directions (iAdvT, iVAT)')
    add('--use_semi_data', **switch, default=0, help='virtual adversarial training')
    add('--xi_var', type=at_least(0, float), default=1.0, help='ε, size of the perturbation')
    add('--xi_var_first', type=at_least(0, float), default=1.0, help="size of VAT's start")
    add('--nl_factor', type=float, default=1.0, help='λ, weight of the adversarial loss')
    add('--norm_sentence_level', **switch, default=1,
        help='one norm per review instead of per word')
    add('--nn_k', type=at_least(1), default=10, help='K, neighbours per word')
    add('--nn_k_offset', type=at_least(0), default=1,
        help='rank of the first neighbour (0: the word itself)')
    add('--use_limit_vocab', **switch, default=1,
        help='neighbours among the words of labelled reviews only')
    add('--update_nearest_epoch', type=at_least(0), default=1,
        help='neighbours anew after every Nth epoch; 0: never')
    add('--online_nn', **switch, default=0, help='neighbours anew in every step')

    add = parser.add_upstream_group("upstream's flags: other").add_argument
    add('--save_name', default='sentiment_model', help='name of the folder below models/')
    add('--eval', **switch, default=0, help='print the accuracies before training')
    add('--debug_mode', **switch, default=0, help="Chainer's debug mode")
    add('--adaptive_softmax', **switch, default=1,
        help='nothing to decide here: read off --pretrained_model')
    add('--n_class', type=at_least(2), default=2,
        help='nothing to decide here: read off the corpus')
    add('--batchsize_nn', type=at_least(1), default=10,
        help='nothing to decide here: the neighbour search chooses its own blocks')
    for name in ('use_rational', 'use_seq_labeling', 'use_bilstm'):
        add('--' + name, **switch, default=0, help=argparse.SUPPRESS)
    return parser


def parse(argv=None):
    """All settings of a run, with the preset's and the method's defaults in place."""
    parser = make_parser()
    settings = parser.parse_args(argv)
    if settings.preset == 'paper':
        parser.set_defaults(**PAPER)
        given = parser.parse_args(argv)
        epsilon = PAPER_EPSILON.get(method_name(given))
        if epsilon is not None:
            parser.set_defaults(xi_var=epsilon)
        settings = parser.parse_args(argv)
    settings.method = method_name(settings)
    if settings.update_nearest_batch is None:
        settings.update_nearest_batch = 50 if settings.use_spgd else 0
    if settings.out is None:
        settings.out = os.path.join('models', settings.save_name)
    _refuse_what_cannot_be(settings)
    return settings


def method_name(settings):
    """The name of the method that the switches choose; sets them where `--method` does."""
    settings.use_adv |= settings.use_spgd  # SPGD is a kind of adversarial training
    chosen = tuple(getattr(settings, name) for name in METHOD_FLAGS)
    if settings.method is not None:
        wanted = METHODS.get(settings.method, chosen)
        clash = [f'--{name} {on}' for name, on, meant in zip(METHOD_FLAGS, chosen, wanted)
                 if on and not meant]
        if clash:
            raise UserError(f'--method {settings.method} and {" ".join(clash)} contradict each '
                            'other: leave one of them out')
        for name, value in zip(METHOD_FLAGS, wanted):
            setattr(settings, name, value)
        return settings.method
    use_adv, use_attn_d, use_semi_data, use_spgd = chosen
    prefix = 'i' if use_attn_d else ''
    parts = [('spgd' if use_spgd else prefix + 'adv') if use_adv else '',
             prefix + 'vat' if use_semi_data else '']
    return '+'.join(part for part in parts if part) or 'baseline'


def _refuse_what_cannot_be(settings):
    for name in ('use_rational', 'use_seq_labeling', 'use_bilstm'):
        if getattr(settings, name):
            raise UserError(f'--{name} 1: upstream has the flag but no code that works for it; '
                            'leave it out')
    if settings.dataset != 'imdb':
        raise UserError(f'--dataset {settings.dataset}: upstream cannot load it either; make a '
                        "folder with 'python -m interpretable_adv.data prepare --dataset own' "
                        'and give it as --data_dir')
    for name in ('use_attn_d', 'use_semi_data'):
        if settings.use_spgd and getattr(settings, name):
            raise UserError(f'--use_spgd 1 and --{name} 1 exclude each other: leave one out')
    if settings.dropout == 1:
        raise UserError('--dropout 1 would drop everything: give a ratio below 1')


# 2. Data, 3. model --------------------------------------------------------------------------

def load_corpus(settings):
    corpus = data_flags.load_corpus(settings)
    for name in ('train', 'dev'):  # test reviews are not needed for training
        if not len(getattr(corpus, name).labels):
            raise UserError(f'{settings.data_dir} has no {name} reviews; prepare it anew')
    return corpus


def build_model(settings, corpus):
    """The classifier with its initial weights; the order of random draws is upstream's."""
    model = nets.Classifier(
        corpus.n_vocab, settings.emb_dim, settings.hidden_dim, settings.hidden_cls_dim,
        corpus.n_class, settings.n_layers, settings.dropout)
    if settings.pretrained_model:
        start_from_lm(model, settings.pretrained_model, corpus.words, bool(settings.word_only))
    if settings.load_trained_lstm:
        path = settings.load_trained_lstm
        checkpoints.check_vocabulary(path, corpus.n_vocab, corpus.words)
        checkpoints.assign(model, checkpoints.read_arrays(path), path)
    return model


def start_from_lm(model, path, words, word_only=False):
    """Takes word vectors, and unless `word_only` the LSTM, from a language model."""
    # Upstream builds the language model before it reads it, and so draws its initial
    # weights from the random stream; `load_lm` does the same.
    pretrained = load_lm(path)
    checkpoints.check_vocabulary(path, pretrained.n_vocab, words)
    pairs = [('word vectors', '--emb_dim', pretrained.embed.W.shape[1],
              model.word_embed.W.shape[1])]
    if not word_only:
        pairs += [('LSTM units', '--hidden_dim', pretrained.rnn.out_size,
                   model.uni_lstm.out_size),
                  ('LSTM layers', '--n_layers', len(pretrained.rnn), len(model.uni_lstm))]
    for what, flag, theirs, ours in pairs:
        if theirs != ours:
            raise UserError(f'{path} has {what} of {theirs}, the classifier of {ours}: give '
                            f'{flag} {theirs}')
    model.word_embed.W.array[...] = pretrained.embed.W.array
    if not word_only:
        model.uni_lstm.copyparams(pretrained.rnn)


# 4. The method's updater ----------------------------------------------------------------------

def build_updater(settings, corpus, iterator, optimizer, team):
    """The updater that `--method` names."""
    options = {'train': corpus.train, 'alpha_decay': settings.alpha_decay,
               'exponential': bool(settings.use_exp_decay), 'team': team}
    table = None
    if settings.use_attn_d or settings.use_spgd:
        table = build_neighbors(settings, corpus, optimizer.target, team)
        options['refresher'] = updaters.Refresher(
            table, every_steps=1 if settings.online_nn else settings.update_nearest_batch,
            every_epochs=settings.update_nearest_epoch)

    def attack(method, **more):
        return attack_flags.build(
            method, settings.xi_var, table, settings, first_scale=settings.xi_var_first,
            virtual=bool(settings.use_semi_data), noise=team.noise, **more)

    plain = 'iadv' if settings.use_attn_d else 'adv'
    kind = updaters.BaselineUpdater
    if settings.use_adv:
        kind = updaters.SPGDUpdater if settings.use_spgd else updaters.AdversarialUpdater
        options['weight'] = settings.nl_factor
        options['attack'] = (attack('spgd', directions=settings.spgd_directions)
                             if settings.use_spgd else attack(plain))
    if settings.use_semi_data:
        kind = (updaters.AdversarialVirtualUpdater if settings.use_adv
                else updaters.VirtualUpdater)
        options['unlabeled'] = unlabeled_reviews(settings, corpus)
        options['virtual_attack'] = attack(plain)
    return kind(iterator, optimizer, **options)


def unlabeled_reviews(settings, corpus):
    """VAT's reviews: the unlabelled ones, then with `--add_labeld_to_unlabel` the labelled."""
    if settings.add_labeld_to_unlabel:
        return data.Sequences(corpus.lm_train())
    if not len(corpus.unlabeled):
        raise UserError(f'{settings.data_dir} has no unlabelled reviews for VAT: leave out '
                        '--add_labeld_to_unlabel 0 or --use_unlabled_to_vocab 0')
    return corpus.unlabeled


def build_neighbors(settings, corpus, model, team):
    # Words of labelled reviews have the ids after the two special ones.
    limit = corpus.train_vocab_size + 2 if settings.use_limit_vocab else corpus.n_vocab
    if settings.nn_k + settings.nn_k_offset > limit:
        raise UserError(f'--nn_k {settings.nn_k}: there are only {limit} words to choose '
                        'neighbours from; give a smaller number')
    return NeighborTable(model.word_embed.W.array, settings.nn_k, limit, settings.nn_k_offset,
                         team)


# 5. Evaluation --------------------------------------------------------------------------------

class Accuracy(extension.Extension):
    """Reports the accuracy in per cent on a split, e.g. as `dev/main/accuracy`."""

    trigger = 1, 'epoch'
    priority = extension.PRIORITY_WRITER

    def __init__(self, model, split, name, team):
        self.model, self.split, self.name, self.team = model, split, name, team

    def __call__(self, trainer):
        chainer.reporter.report({f'{self.name}/main/accuracy': self.measure()})

    def measure(self):
        mine = self.team.part(np.arange(len(self.split.labels)))
        right = 0
        if len(mine):
            logits = nets.predict(self.model, [self.split.sequences[i] for i in mine])
            right = np.sum(logits.argmax(axis=1) == self.split.labels[mine])
        return 100 * float(self.team.sum(right)) / len(self.split.labels)


# 6. All together --------------------------------------------------------------------------------

def main(argv=None):
    settings = parse(argv)
    with distributed.join(settings.communicator, settings.out, settings.random_seed) as team:
        run(settings, team)


def run(settings, team=distributed.ALONE):
    """One training run; `team` are the processes that take part in it."""
    started = time.time()
    memory.keep_freed_memory()
    chainer.set_debug(bool(settings.debug_mode))
    goes_on = runs.find_snapshot(settings.out, settings.resume)

    device = devices.choose(distributed.device_number(settings.gpu, team), settings.device)
    distributed.check_device(settings.communicator, device)
    devices.seed(device, settings.random_seed)
    corpus = load_corpus(settings)
    model = build_model(settings, corpus)
    model.to_device(device)

    identity = {**vars(settings), 'vocab_sha256': corpus.vocab_sha256}
    del identity['resume']
    trainer = build_trainer(settings, corpus, model, identity, team)
    if goes_on:
        runs.resume(trainer, identity, FREE_SETTINGS)
    if team.writes:
        runs.describe_run(settings.out, identity, corpus.words)
        devices.say_what_is_missing(device)
    print(f'{settings.method}: {len(corpus.train.labels):,} reviews, {corpus.n_vocab:,} words, '
          f'{trainer.updater.get_iterator("main").steps_per_epoch:,} steps per epoch'
          + (f', {team.size} processes' if team.size > 1 else '')
          + (f', going on after step {trainer.updater.iteration:,}' if goes_on else ''),
          flush=True)
    if settings.eval:
        accuracies = (f'{name} {trainer.get_extension(name).measure():.2f}'
                      for name in evaluated(corpus))
        print('before training:', '  '.join(accuracies), flush=True)

    trainer.run(show_loop_exception_msg=False)
    if team.writes:
        finish(settings, trainer, started)


def evaluated(corpus):
    """Names of the splits that are evaluated: a corpus may come without test reviews."""
    return [name for name in ('dev', 'test') if len(getattr(corpus, name).labels)]


def build_trainer(settings, corpus, model, identity, team):
    """Iterator, optimiser and updater, and the extensions around them."""
    optimizer = Adam(alpha=settings.alpha)
    optimizer.setup(model)
    optimizer.add_hook(GradientClipping(settings.clip))
    if settings.freeze_word_emb:
        model.word_embed.W.update_rule.enabled = False
    iterator = ReviewIterator(
        len(corpus.train.labels), settings.batchsize,
        len(unlabeled_reviews(settings, corpus)) if settings.use_semi_data else 0,
        settings.batchsize_semi)
    updater = build_updater(settings, corpus, iterator, optimizer, team)

    trainer = training.Trainer(updater, (settings.n_epoch, 'epoch'), settings.out)
    for name in evaluated(corpus):
        trainer.extend(Accuracy(model, getattr(corpus, name), name, team))
    trainer.extend(runs.KeepBest('dev/main/accuracy', checkpoints.save_classifier, start=0,
                                 writes=team.writes))
    trainer.extend(runs.StopWhenNotFinite())
    if team.writes:
        trainer.extend(runs.EpochLog())
        trainer.extend(runs.StepLog(settings.log_steps, 'step', STEP_VALUES))
        trainer.extend(runs.Progress(
            settings.n_epoch, live={'auto': None, 'on': True, 'off': False}[settings.progress],
            columns=(('main/loss', 'loss', '.4f'), ('main/accuracy', 'train', '.2f'),
                     ('dev/main/accuracy', 'dev', '.2f'),
                     ('test/main/accuracy', 'test', '.2f'))))
    if model.xp is not np:
        trainer.extend(devices.StepStream(settings.random_seed, team.rank))
    trainer.extend(runs.Snapshot(identity, team.writes), trigger=(
        (settings.snapshot_steps, 'iteration') if settings.snapshot_steps else (1, 'epoch')))
    return trainer


def finish(settings, trainer, started):
    """Writes result.json and says where things are."""
    best, elapsed = trainer.get_extension('keep_best'), trainer.elapsed_time
    if best.epoch is None:
        raise UserError('no epoch got a single dev review right, so there is no best model; '
                        'look at the labels of the dev set')
    row = next(row for row in trainer.get_extension('EpochLog').log
               if row['epoch'] == best.epoch)
    accuracies = {split: row.get(f'{split}/main/accuracy') for split in ('dev', 'test')}
    runs.write_json(os.path.join(settings.out, runs.RESULT), {
        'method': settings.method, 'seed': settings.random_seed, 'n_epoch': settings.n_epoch,
        'best_epoch': best.epoch, 'dev_accuracy': accuracies['dev'],
        'test_accuracy': accuracies['test'], 'training_seconds': elapsed,
        'seconds': time.time() - started, 'versions': runs.versions(),
    })
    shown = ', '.join(f'{split} {value:.2f} %' for split, value in accuracies.items()
                      if value is not None)
    print(f'best epoch {best.epoch}: {shown}, {runs.duration(elapsed)}; '
          f'{os.path.join(settings.out, "best.model")}')


def command():
    cli.run(main)


if __name__ == '__main__':
    command()
