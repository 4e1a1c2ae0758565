"""Trains the classifier: python -m interpretable_adv.train --method spgd --preset paper"""
import os
import time

import chainer
import numpy as np
from chainer import training
from chainer.training import extension

from interpretable_adv import cli, data, methods, nets, paper, settings, updaters
from interpretable_adv.data.iterators import ReviewIterator
from interpretable_adv.errors import UserError
from interpretable_adv.methods import METHODS, SWITCHES
from interpretable_adv.neighbors import NeighborTable, Refresher
from interpretable_adv.nn.adam import Adam, GradientClipping
from interpretable_adv.runs import checkpoints, devices, distributed, extensions, folder, memory
from interpretable_adv.runs.files import write_json
from interpretable_adv.runs.progress import MODES, duration
from lm.guide import find_guide
from lm.nets import load_lm

STEP_VALUES = ('loss', 'loss_clean', 'loss_first', 'loss_adv', 'loss_vat_first', 'loss_vat',
               'words_kept', 'words_away', 'perturbation_norm', 'gradient_norm',
               'class_lm_gradient_norm')
# What a resumed run may change: how long it is, and what it shows.
FREE_SETTINGS = ('n_epoch', 'patience', 'test_epochs', 'out', 'data_dir', 'log_steps',
                 'snapshot_steps', 'snapshot_minutes', 'progress', 'gpu', 'device', 'communicator',
                 'save_name', 'eval', 'debug_mode', 'preset')
UNFINISHED = ('use_rational', 'use_seq_labeling', 'use_bilstm')  # upstream has no code for them


# 1. Arguments -------------------------------------------------------------------------------

def make_parser():
    parser = cli.ArgumentParser(prog='python -m interpretable_adv.train', description=__doc__)
    add, upstream = settings.add, parser.add_upstream_group

    group = parser.add_argument_group('run')
    add(group, 'out', help='folder for the results (default: models/ and --save_name)')
    settings.add_method_choice(group)
    group.add_argument('--resume', action='store_true', help='continue from the snapshot in --out')
    add(group, 'preset', 'patience', 'test_epochs', 'snapshot_steps', 'snapshot_minutes',
        'log_steps', 'progress', 'device', 'communicator')
    add(parser.add_argument_group('SPGD'), *settings.SPGD, 'use_spgd', 'spgd_directions',
        'update_nearest_batch')
    add(parser.add_argument_group('class-conditional language model'), *settings.CLASS_LM)

    add(upstream("upstream's flags: model"), 'emb_dim', 'hidden_dim', 'hidden_cls_dim', 'n_layers',
        'dropout', 'pretrained_model', 'word_only', 'load_trained_lstm', 'freeze_word_emb')
    settings.add_data(parser)
    group = upstream("upstream's flags: data")
    add(group, 'dataset', choices=(*settings.DATASETS, 'fce'))
    add(group, 'add_labeld_to_unlabel')
    add(upstream("upstream's flags: optimisation"), 'batchsize', 'batchsize_semi', 'n_epoch',
        'alpha', 'alpha_decay', 'use_exp_decay', 'clip', 'random_seed', 'gpu')
    add(upstream("upstream's flags: perturbations"), 'use_adv', 'use_attn_d', 'use_semi_data',
        *settings.UPSTREAM_ATTACK, 'nl_factor', 'update_nearest_epoch', 'online_nn')
    add(upstream("upstream's flags: other"), 'save_name', 'eval', 'debug_mode',
        'adaptive_softmax', 'n_class', 'batchsize_nn', *UNFINISHED)
    return parser


def parse(argv=None):
    """All flags of a run, with the preset's and the method's defaults in place."""
    parser = make_parser()
    flags = parser.parse_args(argv)
    rows = choose_methods(flags)
    if flags.preset == 'paper':
        parser.set_defaults(**paper.CLASSIFIER)
        if rows[0].epsilon is not None and len(rows) == 1:
            parser.set_defaults(xi_var=rows[0].epsilon)
        flags = parser.parse_args(argv)
    if flags.method is not None:  # upstream's switches take any flag, as they always did
        for name in settings.unused(cli.typed(make_parser(), argv), rows):
            raise UserError(f'--{name} has no effect on --method {flags.method}: leave it out')
    flags.method = '+'.join(row.name for row in rows)
    for row in rows:
        for name, value in zip(SWITCHES, row.switches or ()):
            setattr(flags, name, value | getattr(flags, name))
    if flags.update_nearest_batch is None:
        flags.update_nearest_batch = max(row.refresh_steps for row in rows)
    if flags.out is None:
        flags.out = os.path.join('models', flags.save_name)
    _refuse(flags)
    return flags


def choose_methods(flags):
    """The rows of `METHODS` that `--method` or upstream's switches choose.

    Upstream's `--use_adv 1 --use_semi_data 1` chooses two, which are trained together.
    """
    switches = settings.chosen_switches(flags)
    if flags.method is None:
        rows = methods.by_switches(switches)
        if rows is None:
            raise UserError('--use_spgd 1 excludes --use_attn_d 1 and --use_semi_data 1: leave '
                            'one out')
        return rows
    row = METHODS[flags.method]
    clash = [f'--{name} {on}' for name, on, meant in zip(
        SWITCHES, switches, row.switches or (0, 0, 0, 0)) if on and not meant]
    if clash:
        raise UserError(f'--method {flags.method} and {" ".join(clash)} contradict each other: '
                        'leave one of them out')
    return [row]


def _refuse(flags):
    for name in UNFINISHED:
        if getattr(flags, name):
            raise UserError(f'--{name} 1: upstream has the flag but no working code for it; '
                            'leave it out')
    if flags.dataset != 'imdb':
        raise UserError(f'--dataset {flags.dataset}: upstream cannot load it either; make a '
                        "folder with 'python -m interpretable_adv.data prepare --dataset own' "
                        'and give it as --data_dir')
    if flags.dropout == 1:
        raise UserError('--dropout 1 would drop everything: give a ratio below 1')
    if flags.clip == 0:
        raise UserError('--clip 0 would stop all learning: give a positive norm')
    if flags.class_lm and not all(METHODS[name].guided for name in flags.method.split('+')):
        raise UserError(f'--class_lm guides the attacks of {", ".join(guided())}, not of '
                        f'{flags.method}: leave it out')


def guided():
    """The values of `--method` whose attacks can follow a class-conditional language model."""
    return [name for name in methods.trainable() if METHODS[name].guided]


# 2. Data, 3. model --------------------------------------------------------------------------

def _check_corpus(flags, corpus):
    for name in ('train', 'dev'):  # test reviews are not needed for training
        if not len(getattr(corpus, name).labels):
            raise UserError(f'{flags.data_dir} has no {name} reviews; prepare it again')


def _check_memory(flags, corpus):
    words = len(corpus.train.sequences.flat) / len(corpus.train.labels)  # of a review
    memory.check(
        memory.lstm_numbers(corpus.n_vocab, flags.emb_dim, flags.hidden_dim, flags.n_layers)
        + flags.hidden_dim * flags.hidden_cls_dim,
        memory.kept_per_word(flags.emb_dim, flags.hidden_dim, flags.n_layers)
        * words * min(flags.batchsize, len(corpus.train.labels)),
        '--emb_dim, --hidden_dim, --n_layers or --batchsize')


def build_model(flags, corpus):
    """The classifier with its initial weights; the order of random draws is upstream's."""
    model = nets.Classifier(
        corpus.n_vocab, flags.emb_dim, flags.hidden_dim, flags.hidden_cls_dim, corpus.n_class,
        flags.n_layers, flags.dropout)
    if flags.pretrained_model:
        start_from_lm(model, folder.model_file(flags.pretrained_model), corpus.words,
                      bool(flags.word_only))
    if flags.load_trained_lstm:
        path = folder.model_file(flags.load_trained_lstm)
        checkpoints.check_vocabulary(path, corpus.n_vocab, corpus.words)
        checkpoints.load(model, path)
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

def build_updater(flags, corpus, iterator, optimizer, team):
    """The updater of the chosen method, or of upstream's two methods at once."""
    rows = [METHODS[name] for name in flags.method.split('+')]
    kind = rows[0].updater if len(rows) == 1 else updaters.AdversarialVirtualUpdater
    options = {'train': corpus.train, 'alpha_decay': flags.alpha_decay,
               'exponential': bool(flags.use_exp_decay), 'team': team}
    attack = settings.attack_settings(flags)
    table = None
    if any(row.needs_neighbors for row in rows):
        table = NeighborTable(
            optimizer.target.word_embed.W.array, attack.k,
            corpus.n_labeled_words if attack.limit_vocabulary else None, attack.k_offset, team)
        options['refresher'] = Refresher(
            table, every_steps=1 if flags.online_nn else flags.update_nearest_batch,
            every_epochs=flags.update_nearest_epoch)

    guide = find_guide(attack, corpus, flags.emb_dim, optimizer.target.device)

    def build():
        # Of two methods at once, upstream starts both from VAT's random point.
        return rows[-1].build_attack(attack, table, team.noise, guide)

    if issubclass(kind, updaters.AdversarialUpdater):
        options.update(weight=flags.nl_factor, attack=build())
    if issubclass(kind, updaters.VirtualUpdater):
        options.update(unlabeled=unlabeled_reviews(flags, corpus), virtual_attack=build())
    return kind(iterator, optimizer, **options)


def _is_virtual(method):
    return any(METHODS[name].virtual for name in method.split('+'))


def unlabeled_reviews(flags, corpus):
    """VAT's reviews: the unlabelled ones, then with `--add_labeld_to_unlabel` the labelled."""
    if flags.add_labeld_to_unlabel:
        return data.Sequences(corpus.lm_train())
    if not len(corpus.unlabeled):
        raise UserError(f'{flags.data_dir} has no unlabelled reviews for VAT: leave out '
                        '--add_labeld_to_unlabel 0 or --use_unlabled_to_vocab 0')
    return corpus.unlabeled


# 5. Evaluation --------------------------------------------------------------------------------

class Accuracy(extension.Extension):
    """Reports the accuracy in per cent on a split, e.g. as `dev/main/accuracy`.

    Args:
        reports: whether it does so, after every epoch.
    """

    trigger = 1, 'epoch'
    priority = extension.PRIORITY_WRITER

    def __init__(self, model, split, name, team, reports=True):
        self.model, self.split, self.name, self.team = model, split, name, team
        self.reports = reports

    def __call__(self, trainer):
        if self.reports:
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
    flags = parse(argv)
    with distributed.join(flags.communicator, flags.out, flags.random_seed) as team:
        with folder.claim(flags.out, team.writes):
            run(flags, team)


def run(flags, team=distributed.ALONE):
    """One training run; `team` are the processes that take part in it."""
    started = time.time()
    memory.keep_freed_memory()
    chainer.set_debug(bool(flags.debug_mode))
    resumes = folder.find_snapshot(flags.out, flags.resume)

    device = devices.choose(distributed.device_number(flags.gpu, team), flags.device)
    distributed.check_device(flags.communicator, device)
    devices.seed(device, flags.random_seed)
    corpus = settings.load_corpus(flags)
    _check_corpus(flags, corpus)
    _check_memory(flags, corpus)
    model = build_model(flags, corpus)
    model.to_device(device)

    identity = {**settings.describe(flags), 'vocab_sha256': corpus.vocab_sha256}
    del identity['resume']
    trainer = build_trainer(flags, corpus, model, identity, team)
    if resumes:
        extensions.resume(trainer, identity, FREE_SETTINGS)
    if team.writes:
        folder.describe_run(flags.out, {**identity, **data.describe(flags.data_dir),
                                        'train_vocab_size': corpus.train_vocab_size}, corpus.words)
        devices.say_what_is_missing(device)
    print(f'{flags.method}: {len(corpus.train.labels):,} reviews, {corpus.n_vocab:,} words, '
          f'{trainer.updater.get_iterator("main").steps_per_epoch:,} steps per epoch'
          + (f', {team.size} processes' if team.size > 1 else '')
          + (f', resuming after step {trainer.updater.iteration:,}' if resumes else ''),
          flush=True)
    if flags.eval:
        accuracies = (f'{name} {trainer.get_extension(name).measure():.2f}'
                      for name in evaluated(corpus))
        print('before training:', '  '.join(accuracies), flush=True)

    trainer.run(show_loop_exception_msg=False)
    if team.writes:
        finish(flags, corpus, device, trainer, started)


def evaluated(corpus):
    """Names of the splits that are evaluated: a corpus may come without test reviews."""
    return [name for name in ('dev', 'test') if len(getattr(corpus, name).labels)]


def build_trainer(flags, corpus, model, identity, team):
    """Iterator, optimiser and updater, and the extensions around them."""
    optimizer = Adam(alpha=flags.alpha)
    optimizer.setup(model)
    optimizer.add_hook(GradientClipping(flags.clip))
    if flags.freeze_word_emb:
        model.word_embed.W.update_rule.enabled = False
    iterator = ReviewIterator(
        len(corpus.train.labels), flags.batchsize,
        len(unlabeled_reviews(flags, corpus)) if _is_virtual(flags.method) else 0,
        flags.batchsize_semi)
    updater = build_updater(flags, corpus, iterator, optimizer, team)

    best = extensions.KeepBest('dev/main/accuracy', checkpoints.save_classifier, start=0,
                               writes=team.writes)

    def done(trainer):
        return (updater.epoch >= flags.n_epoch
                or updater.epoch - (best.epoch or 0) >= flags.patience > 0)

    trainer = training.Trainer(updater, done, flags.out)
    for name in evaluated(corpus):
        trainer.extend(Accuracy(model, getattr(corpus, name), name, team,
                                reports=name == 'dev' or flags.test_epochs == 'all'))
    trainer.extend(best)
    trainer.extend(extensions.StopWhenNotFinite())
    if team.writes:
        trainer.extend(extensions.EpochLog())
        trainer.extend(extensions.StepLog(flags.log_steps, 'step', STEP_VALUES))
        trainer.extend(extensions.Progress(
            flags.n_epoch, live=MODES[flags.progress],
            columns=(('main/loss', 'loss', '.4f'), ('main/accuracy', 'train', '.2f'),
                     ('dev/main/accuracy', 'dev', '.2f'),
                     ('test/main/accuracy', 'test', '.2f'))))
    if model.xp is not np:
        trainer.extend(devices.StepStream(flags.random_seed, team.rank))
    trainer.extend(extensions.Snapshot(identity, team.writes), trigger=extensions.SnapshotTrigger(
        flags.snapshot_steps, flags.snapshot_minutes, team))
    return trainer


def finish(flags, corpus, device, trainer, started):
    """Writes result.json and says where things are."""
    best, elapsed = trainer.get_extension('keep_best'), trainer.elapsed_time
    if best.epoch is None:
        raise UserError('no epoch got a single dev review right, so there is no best model; '
                        'look at the labels of the dev set')
    row = next(row for row in trainer.get_extension('EpochLog').log
               if row['epoch'] == best.epoch)
    accuracies = {split: row.get(f'{split}/main/accuracy') for split in ('dev', 'test')}
    if accuracies['test'] is None and 'test' in evaluated(corpus):
        accuracies['test'] = test_accuracy(flags, corpus, device)
    write_json(os.path.join(flags.out, folder.RESULT), {
        'method': flags.method, 'seed': flags.random_seed, 'n_epoch': flags.n_epoch,
        'epochs_trained': trainer.updater.epoch,
        'best_epoch': best.epoch, 'dev_accuracy': accuracies['dev'],
        'test_accuracy': accuracies['test'], 'training_seconds': elapsed,
        'seconds': time.time() - started, 'versions': folder.versions(),
        **folder.identity_of_model(os.path.join(flags.out, folder.MODEL)),
    })
    shown = ', '.join(f'{split} {value:.2f} %' for split, value in accuracies.items()
                      if value is not None)
    print(f'best epoch {best.epoch}: {shown}, {duration(elapsed)}; '
          f'{os.path.join(flags.out, folder.MODEL)}')


def test_accuracy(flags, corpus, device):
    """That of the best model."""
    path = os.path.join(flags.out, folder.MODEL)
    model = nets.load_classifier(path, corpus.words, corpus.n_class)
    model.to_device(device)
    return Accuracy(model, corpus.test, 'test', distributed.ALONE).measure()


def command():
    cli.run(main)


if __name__ == '__main__':
    command()
