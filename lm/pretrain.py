"""Trains the language model: python -m lm.pretrain --preset paper --data_dir data/imdb"""
import os
import shutil
import time

import numpy as np
from chainer import training

from interpretable_adv import cli, data, paper, settings
from interpretable_adv.errors import UserError
from interpretable_adv.nn.adam import Adam, GradientClipping
from interpretable_adv.runs import checkpoints, devices, distributed, extensions, folder, memory
from interpretable_adv.runs.files import atomic_write, make_directory, write_json
from interpretable_adv.runs.progress import MODES, duration
from lm import evaluation, streams
from lm.extensions import (
    AlphaDecay,
    InterimValidation,
    TrainingPerplexity,
    Validation,
    keep_every_model,
)
from lm.nets import RNNForLM, with_classes
from lm.updater import ReviewUpdater, TruncatedBPTTUpdater

FROM_OUT = 'out'  # --resume without a value
QUICK_REVIEWS = 20  # of each split, with --test
# What a resumed run may change: how long it is, and what it shows.
FREE_SETTINGS = ('epoch', 'patience', 'min_improvement', 'out', 'data_dir', 'log_steps',
                 'log_interval', 'validation_interval', 'snapshot_steps', 'snapshot_minutes',
                 'save_all', 'progress', 'gpu', 'device', 'communicator', 'preset')


# 1. Arguments -------------------------------------------------------------------------------

def make_parser():
    parser = cli.ArgumentParser(prog='python -m lm.pretrain', description=__doc__)
    add, upstream = settings.add, parser.add_upstream_group

    group = parser.add_argument_group('run')
    add(group, 'data_dir', 'preset')
    add(group, 'snapshot_steps', names=('--snapshot-steps',),
        help='write a snapshot every N windows (0: every epoch)')
    add(group, 'log_steps', names=('--log-steps',), nargs='?', const=1,
        help='write the loss of every Nth window to steps.jsonl')
    add(group, 'snapshot_minutes', 'progress', 'device', 'communicator', 'patience',
        'min_improvement', 'valid_split', 'eval_streams')
    # What a preset switches on can be switched off again.
    add(parser.add_argument_group('model'), 'forget_bias', 'cutoffs', 'no_adaptive_softmax',
        'no_decay_if_fail')
    add(parser.add_argument_group('class-conditional model'), 'class_conditional', 'init')
    add(parser.add_argument_group('data'), *settings.DATA)
    parser.set_defaults(lower=0, ignore_unk=1)

    add(upstream("upstream's flags: model"), 'unit', 'n-units-word', 'layer', 'dropout',
        'share-embedding', 'adaptive-softmax', 'norm-vecs')
    add(upstream("upstream's flags: data"), 'dataset', 'vocab', 'use-full-vocab', 'test')
    group = upstream("upstream's flags: optimisation")
    add(group, 'batchsize', names=('-b',), default=20, help='parallel streams')
    add(group, 'bproplen', 'epoch', 'gradclip', 'alpha')
    add(group, 'alpha_decay', default=0.9999, help='its factor after each epoch')
    add(group, 'decay-if-fail', 'decay-every', 'random-seed', 'gpu')

    group = upstream("upstream's flags: other")
    add(group, 'out', names=('-o',), default='result')
    group.add_argument('--resume', '-r', nargs='?', const=FROM_OUT, default='', metavar='SNAPSHOT',
                       help='continue from a snapshot; without a value from the one in --out, if '
                            'there is one')
    add(group, 'log-interval', 'validation-interval', 'save-all')
    return parser


def parse(argv=None):
    """All flags of a run, with the preset's defaults in place."""
    parser = make_parser()
    flags = parser.parse_args(argv)
    if flags.preset == 'paper':
        parser.set_defaults(**paper.LANGUAGE_MODEL)
    if flags.init:
        model = folder.model_file(flags.init)
        run = settings.read_run(model)
        settings.set_run_defaults(parser, run, settings.DATA, model)
        parser.set_defaults(use_full_vocab=bool(run.get('use_full_vocab')))
    flags = parser.parse_args(argv)
    _refuse(flags)
    return flags


def _refuse(flags):
    if flags.dataset != 'imdb':
        raise UserError(f'--dataset {flags.dataset}: upstream cannot load it either; make a '
                        "folder with 'python -m interpretable_adv.data prepare --dataset own' "
                        'and give it as --data_dir')
    if flags.vocab and flags.use_full_vocab:
        raise UserError('--vocab and --use-full-vocab exclude each other: leave one out')
    if flags.decay_if_fail and flags.decay_every:
        raise UserError('--decay-if-fail and --decay-every exclude each other: leave one out')
    if flags.cutoffs and not flags.adaptive_softmax:
        raise UserError('--cutoffs need --adaptive-softmax')
    if flags.dropout == 1:
        raise UserError('--dropout 1 would drop everything: give a ratio below 1')
    if flags.gradclip == 0:
        raise UserError('--gradclip 0 would stop all learning: give a positive norm')
    if bool(flags.class_conditional) != bool(flags.init):
        raise UserError('--class_conditional 1 and --init LM belong together: a class-conditional '
                        'model starts from a plain one')
    if flags.class_conditional and (flags.vocab or flags.test):
        raise UserError('--class_conditional 1 reads the labelled reviews of --data_dir: leave out '
                        '--vocab and --test')


# 2. Texts, 3. model ---------------------------------------------------------------------------

def load_texts(flags):
    """The words and ids that the data flags ask for."""
    options = {'lower': bool(flags.lower), 'use_unlabeled': bool(flags.use_unlabled_to_vocab)}
    if flags.vocab:
        words = data.read_vocabulary(flags.vocab)
        corpus = data.load(flags.data_dir, min_count=0, ignore_unk=False, **options)
        text = streams.with_vocabulary(corpus, words, bool(flags.ignore_unk))
    else:
        text = streams.from_corpus(data.load(
            flags.data_dir, min_count=0 if flags.use_full_vocab else flags.min_count,
            ignore_unk=bool(flags.ignore_unk), **options))
    if flags.test:
        text = text.first(QUICK_REVIEWS)
    for split in ('train', flags.valid_split, 'test'):
        if not len(getattr(text, split)):
            raise UserError(f'{flags.data_dir} has no {split} reviews')
        if len(getattr(text, split).flat) < 2:
            raise UserError(f'the {split} reviews hold no word of the vocabulary: choose another '
                            'by --min_count or --vocab')
    return text


def _check_memory(flags, n_vocab):
    memory.check(
        memory.lstm_numbers(n_vocab, flags.n_units_word, flags.unit, flags.layer),
        memory.kept_per_word(flags.n_units_word, flags.unit, flags.layer)
        * flags.batchsize * flags.bproplen,
        '--unit, --n-units-word, --layer, --batchsize or --bproplen')


def build_model(flags, n_vocab):
    return RNNForLM(
        n_vocab, flags.unit, flags.n_units_word, flags.layer, flags.dropout,
        adaptive_softmax=flags.adaptive_softmax, cutoff=flags.cutoffs,
        share_embedding=flags.share_embedding, forget_bias=flags.forget_bias,
        norm_vecs=flags.norm_vecs)


def load_class_corpus(flags):
    """The corpus of a class-conditional model."""
    corpus = data.load(
        flags.data_dir, lower=bool(flags.lower), use_unlabeled=bool(flags.use_unlabled_to_vocab),
        min_count=0 if flags.use_full_vocab else flags.min_count,
        ignore_unk=bool(flags.ignore_unk))
    for split in ('train', flags.valid_split):
        if not any(len(sequence) > 1 for sequence in getattr(corpus, split).sequences):
            raise UserError(f'{flags.data_dir} has no {split} reviews with a word to predict')
    return corpus


# 4. Evaluation --------------------------------------------------------------------------------

def stream_perplexity(flags, model, reviews, team):
    """Perplexity of reviews end to end, `2 · batchsize · bproplen` words at a time."""
    words = reviews.flat
    window = max(1, 2 * flags.batchsize * flags.bproplen // flags.eval_streams)
    return evaluation.perplexity(
        evaluation.stream_nll(model, words, window, flags.eval_streams, team), len(words))


# 5. Trainer -----------------------------------------------------------------------------------

def build_trainer(flags, model, text, identity, team):
    """The trainer with its extensions, and among them the one that keeps the best model.

    Args:
        text: `Texts`, or the `Corpus` of a class-conditional model.
    """
    optimizer = Adam(alpha=flags.alpha)
    optimizer.setup(model)
    optimizer.add_hook(GradientClipping(flags.gradclip))
    if flags.class_conditional:
        updater = ReviewUpdater(streams.ReviewIterator(
            *text.train, flags.batchsize, flags.bproplen), optimizer, team)
    else:
        updater = TruncatedBPTTUpdater(streams.StreamIterator(
            text.train.flat, flags.batchsize, flags.bproplen), optimizer, team)
    best = extensions.KeepBest('validation/perplexity', checkpoints.save_lm, sign=-1,
                         writes=team.writes)

    def done(trainer):
        return (updater.epoch >= flags.epoch
                or best.gain < flags.min_improvement > 0
                or updater.epoch - (best.epoch or 0) >= flags.patience > 0)

    def validate():
        if flags.class_conditional:
            return evaluation.class_results(
                model, getattr(text, flags.valid_split), text.label_names, team)['perplexity']
        return stream_perplexity(flags, model, getattr(text, flags.valid_split), team)

    def perplexity(loss):
        return f'{evaluation.perplexity(loss, flags.bproplen):.2f}'

    trainer = training.Trainer(updater, done, flags.out)
    progress = extensions.Progress(
        flags.epoch, live=MODES[flags.progress],
        columns=(('main/loss', 'perplexity', perplexity),
                 ('validation/perplexity', flags.valid_split, '.2f')))
    for extra in (extensions.StopWhenNotFinite(),
                  TrainingPerplexity(
                      flags.log_interval, flags.bproplen, progress.write),
                  Validation(validate, progress.write), best):
        trainer.extend(extra)
    if team.writes:
        for extra in (extensions.StepLog(flags.log_steps, 'window', ['loss']),
                      extensions.EpochLog(), progress):
            trainer.extend(extra)
    if flags.decay_every:
        trainer.extend(AlphaDecay(flags.alpha_decay, write=None),
                       trigger=(1, 'iteration'))
    else:
        trainer.extend(AlphaDecay(
            flags.alpha_decay, best if flags.decay_if_fail else None, progress.write))
    if flags.validation_interval:
        trainer.extend(InterimValidation(validate, progress.write),
                       trigger=(flags.validation_interval, 'iteration'))
    if flags.save_all and team.writes:
        trainer.extend(keep_every_model)
    trainer.extend(extensions.Snapshot(identity, team.writes), trigger=extensions.SnapshotTrigger(
        flags.snapshot_steps, flags.snapshot_minutes, team))
    return trainer, best


def resume(flags, trainer, identity, team):
    """Puts the trainer into the state of the snapshot that `--resume` names.

    A run resumed in another folder copies its best model and its log of steps.
    """
    if flags.resume == FROM_OUT:
        extensions.resume(trainer, identity, FREE_SETTINGS)
        return
    extensions.resume(trainer, identity, FREE_SETTINGS, flags.resume)
    source = os.path.dirname(os.path.abspath(flags.resume))
    if team.writes and source != os.path.abspath(flags.out):
        make_directory(flags.out)
        for name in (folder.MODEL, folder.STEPS):
            if os.path.exists(os.path.join(source, name)):
                with (open(os.path.join(source, name), 'rb') as original,
                      atomic_write(os.path.join(flags.out, name), 'wb') as copy):
                    shutil.copyfileobj(original, copy)


# 6. All together ------------------------------------------------------------------------------

def main(argv=None):
    flags = parse(argv)
    with distributed.join(flags.communicator, flags.out, flags.random_seed) as team:
        with folder.claim(flags.out, team.writes):
            run(flags, team)


def run(flags, team=distributed.ALONE):
    """One training run; `team` are the processes that take part in it."""
    if team.size > flags.batchsize:
        raise UserError(f'--batchsize {flags.batchsize} leaves some of {team.size} processes '
                        'without a stream: start fewer')
    started = time.time()
    memory.keep_freed_memory()
    found = folder.find_snapshot(flags.out, flags.resume)
    resumes = found if flags.resume == FROM_OUT else bool(flags.resume)

    device = devices.choose(distributed.device_number(flags.gpu, team), flags.device)
    distributed.check_device(flags.communicator, device)
    devices.seed(device, flags.random_seed)
    if flags.class_conditional:
        text = load_class_corpus(flags)
        model = with_classes(folder.model_file(flags.init), text.words, text.n_class, flags.dropout)
    else:
        text = load_texts(flags)
        _check_memory(flags, len(text.words))
        model = build_model(flags, len(text.words))
    model.to_device(device)

    identity = {**settings.describe(flags), 'vocab_sha256': data.vocabulary_sha256(text.words)}
    del identity['resume']
    trainer, best = build_trainer(flags, model, text, identity, team)
    if device.xp is not np:
        trainer.extend(devices.StepStream(flags.random_seed, team.rank))
    if resumes:
        resume(flags, trainer, identity, team)
    if team.writes:
        folder.describe_run(flags.out, {**identity, **data.describe(flags.data_dir)}, text.words)
        devices.say_what_is_missing(device)
    if flags.class_conditional:
        described = (f'class-conditional language model: {len(text.train.labels):,} reviews, '
                     f'{text.n_class} classes, vocabulary {len(text.words):,}')
    else:
        windows = -(-len(text.train.flat) // (flags.batchsize * flags.bproplen))
        described = (f'language model: {len(text.train.flat):,} words of training text, vocabulary '
                     f'{len(text.words):,}, {windows:,} windows per epoch')
    print(described + (f', {team.size} processes' if team.size > 1 else '')
          + (f', resuming after window {trainer.updater.iteration:,}' if resumes else ''),
          flush=True)

    trainer.run(show_loop_exception_msg=False)
    finish(flags, model, text, best, trainer.updater.epoch, started, trainer.elapsed_time, team)


def finish(flags, model, text, best, epochs, started, elapsed, team):
    """Tests the best model, and writes result.json."""
    if best.epoch is None:
        raise UserError('the validation perplexity was never finite, so there is no best model; '
                        'try a smaller --alpha')
    path = os.path.join(flags.out, folder.MODEL)
    team.wait()
    checkpoints.load(model, path)
    print('valid perplexity:', best.value)
    measured = (measure_classes if flags.class_conditional else measure_texts)(
        flags, model, text, team)
    result = {
        'seed': flags.random_seed, 'preset': flags.preset, 'epoch': flags.epoch,
        'epochs_trained': epochs,
        'best_epoch': best.epoch, 'valid_perplexity': best.value, **measured,
        'valid_split': flags.valid_split, 'eval_streams': flags.eval_streams,
        'n_vocab': len(text.words), 'training_seconds': elapsed,
        'seconds': time.time() - started, 'versions': folder.versions(),
        **folder.identity_of_model(path),
    }
    if team.writes:
        write_json(os.path.join(flags.out, folder.RESULT), result)
    print(f'best epoch {best.epoch}, {duration(elapsed)}; {path}')


def measure_texts(flags, model, text, team):
    """The test perplexities of a plain language model."""
    print(f'testing on {len(text.test.flat):,} words, in two passes', flush=True)
    test = stream_perplexity(flags, model, text.test, team)
    print('test perplexity:', test, flush=True)
    mine = team.part(range(len(text.test)))
    nll, predictions = evaluation.review_nll(model, [text.test[i] for i in mine])
    per_review = evaluation.perplexity(team.sum(nll.sum()), team.sum(predictions.sum()))
    print('test perplexity with the state reset at each review:', per_review)
    return {'test_perplexity': test, 'test_perplexity_per_review': per_review}


def measure_classes(flags, model, corpus, team):
    """What a class-conditional language model makes of dev and test reviews."""
    found = {}
    for split in ('dev', 'test'):
        found[split] = evaluation.class_results(
            model, getattr(corpus, split), corpus.label_names, team)
        if found[split]['bayes_accuracy'] is None:
            continue
        print(f'{split}: perplexity {found[split]["perplexity"]:.2f} given the class ('
              + ', '.join(f'{name} {value:.2f}' for name, value in
                          found[split]['perplexity_per_class'].items() if value is not None)
              + f'), Bayes decision {found[split]["bayes_accuracy"]:.2f} % right', flush=True)
    return {'classes': found}


def command():
    cli.run(main)


if __name__ == '__main__':
    command()
