"""Trains the language model: python -m lm.pretrain --preset paper --data_dir data/imdb"""
import hashlib
import os
import shutil
import time

import numpy as np
from chainer import training

from interpretable_adv import checkpoints, cli, data, devices, distributed, memory
from interpretable_adv import training as runs
from interpretable_adv.adam import Adam, GradientClipping
from interpretable_adv.cli import ArgumentParser, UserError, at_least, share
from interpretable_adv.files import make_directory
from lm import evaluation, extensions, texts
from lm.nets import RNNForLM
from lm.streams import StreamIterator
from lm.updater import TruncatedBPTTUpdater

PAPER = {  # Appendix B; the adaptive softmax that it mentions can only be the language model's
    'unit': 1024, 'n_units_word': 256, 'bproplen': 35, 'gradclip': 5.0, 'alpha': 0.001,
    'alpha_decay': 0.9999, 'adaptive_softmax': True, 'forget_bias': 1.0, 'decay_if_fail': True,
    'valid_split': 'dev',
}
FROM_OUT = 'out'  # --resume without a value
QUICK_REVIEWS = 20  # of each split, with --test
# What a resumed run may change: how long it is, and what it shows.
FREE_SETTINGS = ('epoch', 'patience', 'out', 'data_dir', 'log_steps', 'log_interval',
                 'validation_interval', 'snapshot_steps', 'save_all', 'progress', 'gpu', 'device',
                 'communicator', 'preset')


# 1. Arguments -------------------------------------------------------------------------------

def make_parser():
    parser = ArgumentParser(prog='python -m lm.pretrain', description=__doc__)

    add = parser.add_argument_group('run').add_argument
    add('--data_dir', default='data/imdb', help='folder made by interpretable_adv.data')
    add('--preset', choices=('upstream', 'paper'), default='upstream', help='set of defaults')
    add('--snapshot_steps', '--snapshot-steps', type=at_least(0), default=0, metavar='N',
        help='write a snapshot every N windows (0: every epoch)')
    add('--log-steps', action='store_true', help='write the loss of each window to steps.jsonl')
    add('--progress', nargs='?', const='on', default='auto', choices=('auto', 'on', 'off'),
        help='live line: on a terminal, always, never')
    add('--device', help="Chainer's name of a device, e.g. @cupy:0; instead of --gpu")
    add('--communicator', choices=distributed.COMMUNICATORS,
        help='train with all processes that mpiexec started; the streams are shared among them')
    add('--patience', type=at_least(0), default=0, metavar='N',
        help='stop after N epochs in a row without a better validation (0: never)')
    add('--valid-split', choices=('dev', 'test'), default='test',
        help='what chooses the best epoch; upstream takes the test set')
    add('--eval-streams', type=at_least(1), default=1, metavar='N',
        help='streams that an evaluation reads side by side: 1 as upstream; more are faster, and '
             'each starts without a past')

    add = parser.add_argument_group('model').add_argument
    add('--forget-bias', type=float, help="start of the LSTM's forget biases; without it 0")
    add('--cutoffs', type=_numbers, metavar='N,N,…',
        help='words at which the tails of the adaptive softmax begin; without it 2000,10000, and '
             'for at most 10000 words a single tail, from 2000 or from the middle')
    # What a preset switches on can be switched off again.
    add('--no-adaptive-softmax', dest='adaptive_softmax', action='store_false', default=False,
        help='plain softmax, also with preset paper')
    add('--no-decay-if-fail', dest='decay_if_fail', action='store_false', default=False,
        help='alpha decays after each epoch, also with preset paper')

    add = parser.add_argument_group('data').add_argument
    add('--lower', type=int, choices=(0, 1), default=0, help='lower-case all words')
    add('--min_count', type=at_least(0), default=1,
        help='words in so many reviews or fewer are unknown')
    add('--ignore_unk', type=int, choices=(0, 1), default=1, help='drop unknown words')
    add('--use_unlabled_to_vocab', type=int, choices=(0, 1), default=1,
        help='read the unlabelled reviews too')

    add = parser.add_upstream_group("upstream's flags: model").add_argument
    add('--unit', '-u', type=at_least(1), default=1024, help='size of the LSTM')
    add('--n-units-word', type=at_least(1), default=256, help='size of word vectors')
    add('--layer', type=at_least(1), default=1, help='layers of the LSTM')
    add('--dropout', type=share, default=0.5, help='dropout ratio')
    add('--share-embedding', action='store_true',
        help='output weights are the word vectors; needs --unit equal to --n-units-word')
    add('--adaptive-softmax', action='store_true', default=False, help='adaptive softmax')
    add('--norm-vecs', action='store_true', help='word vectors start with length 1')

    add = parser.add_upstream_group("upstream's flags: data").add_argument
    add('--dataset', default='imdb', help='only imdb; own corpora come through --data_dir',
        choices=('imdb', 'elec', 'rotten', 'dbpedia', 'rcv1'))
    add('--vocab', metavar='FILE',
        help="the vocabulary, one word a line in id order like a run's vocab.txt")
    add('--use-full-vocab', action='store_true', help='all training words, as --min_count 0')
    add('--test', action='store_true',
        help=f'quick trial on the first {QUICK_REVIEWS} reviews of each split')

    add = parser.add_upstream_group("upstream's flags: optimisation").add_argument
    add('--batchsize', '-b', type=at_least(1), default=20, help='parallel streams')
    add('--bproplen', '-l', type=at_least(1), default=35,
        help='words per window, over which gradients flow')
    add('--epoch', '-e', type=at_least(1), default=50, help='epochs')
    add('--gradclip', '-c', type=at_least(0, float), default=5, help='largest norm of the gradient')
    add('--alpha', type=at_least(0, float), default=0.001, help="Adam's step size")
    add('--alpha_decay', type=at_least(0, float), default=0.9999,
        help='its factor after each epoch')
    add('--decay-if-fail', action='store_true', default=False,
        help='... only after an epoch whose validation perplexity did not fall')
    add('--decay-every', action='store_true', help='... after each window instead')
    add('--random-seed', type=at_least(0), default=1234, help='seed')
    add('--gpu', '-g', type=int, default=-1, help='number of the GPU; negative: CPU')

    add = parser.add_upstream_group("upstream's flags: other").add_argument
    add('--out', '-o', default='result', help='folder for the results')
    add('--resume', '-r', nargs='?', const=FROM_OUT, default='', metavar='SNAPSHOT',
        help='go on from a snapshot; without a value from the one in --out, if there is one')
    add('--log-interval', type=at_least(1), default=500, metavar='N',
        help='print the training perplexity every N windows')
    add('--validation-interval', '--val-interval', type=at_least(0), default=30000, metavar='N',
        help='within an epoch print the validation perplexity every N windows, which decides '
             'nothing (0: never)')
    add('--save-all', type=int, default=0, metavar='1',
        help='keep the model of every epoch as epochN.model')
    return parser


def _numbers(text):
    return [int(number) for number in text.split(',')]


_numbers.__name__ = 'list of numbers'


def parse(argv=None):
    """All settings of a run, with the preset's defaults in place."""
    parser = make_parser()
    settings = parser.parse_args(argv)
    if settings.preset == 'paper':
        parser.set_defaults(**PAPER)
        settings = parser.parse_args(argv)
    _refuse_what_cannot_be(settings)
    return settings


def _refuse_what_cannot_be(settings):
    if settings.dataset != 'imdb':
        raise UserError(f'--dataset {settings.dataset}: upstream cannot load it either; make a '
                        "folder with 'python -m interpretable_adv.data prepare --dataset own' "
                        'and give it as --data_dir')
    if settings.vocab and settings.use_full_vocab:
        raise UserError('--vocab and --use-full-vocab exclude each other: leave one out')
    if settings.decay_if_fail and settings.decay_every:
        raise UserError('--decay-if-fail and --decay-every exclude each other: leave one out')
    if settings.cutoffs and not settings.adaptive_softmax:
        raise UserError('--cutoffs need --adaptive-softmax')
    if settings.dropout == 1:
        raise UserError('--dropout 1 would drop everything: give a ratio below 1')
    if settings.gradclip == 0:
        raise UserError('--gradclip 0 would stop all learning: give a positive norm')


# 2. Texts, 3. model ---------------------------------------------------------------------------

def load_texts(settings):
    """The words and ids that the data flags ask for."""
    flags = {'lower': bool(settings.lower), 'use_unlabeled': bool(settings.use_unlabled_to_vocab)}
    if settings.vocab:
        words = texts.read_vocabulary(settings.vocab)
        corpus = data.load(settings.data_dir, min_count=0, ignore_unk=False, **flags)
        text = texts.with_vocabulary(corpus, words, bool(settings.ignore_unk))
    else:
        text = texts.from_corpus(data.load(
            settings.data_dir, min_count=0 if settings.use_full_vocab else settings.min_count,
            ignore_unk=bool(settings.ignore_unk), **flags))
    if settings.test:
        text = text.first(QUICK_REVIEWS)
    for split in ('train', settings.valid_split, 'test'):
        if not len(getattr(text, split)):
            raise UserError(f'{settings.data_dir} has no {split} reviews')
        if len(getattr(text, split).flat) < 2:
            raise UserError(f'the {split} reviews hold no word of the vocabulary: choose another '
                            'by --min_count or --vocab')
    return text


def build_model(settings, n_vocab):
    return RNNForLM(
        n_vocab, settings.unit, settings.n_units_word, settings.layer, settings.dropout,
        adaptive_softmax=settings.adaptive_softmax, cutoff=settings.cutoffs,
        share_embedding=settings.share_embedding, forget_bias=settings.forget_bias,
        norm_vecs=settings.norm_vecs)


# 4. Evaluation --------------------------------------------------------------------------------

def stream_perplexity(settings, model, reviews, team):
    """Perplexity of reviews end to end, `2 · batchsize · bproplen` words at a time."""
    words = reviews.flat
    window = max(1, 2 * settings.batchsize * settings.bproplen // settings.eval_streams)
    return evaluation.perplexity(
        evaluation.stream_nll(model, words, window, settings.eval_streams, team), len(words))


# 5. Trainer -----------------------------------------------------------------------------------

def build_trainer(settings, model, text, identity, team):
    """The trainer with its extensions, and among them the one that keeps the best model."""
    optimizer = Adam(alpha=settings.alpha)
    optimizer.setup(model)
    optimizer.add_hook(GradientClipping(settings.gradclip))
    iterator = StreamIterator(text.train.flat, settings.batchsize, settings.bproplen)
    updater = TruncatedBPTTUpdater(iterator, optimizer, team)
    best = runs.KeepBest('validation/perplexity', checkpoints.save_lm, sign=-1,
                         writes=team.writes)

    def done(trainer):
        return updater.epoch >= settings.epoch or (
            settings.patience > 0 and updater.epoch - (best.epoch or 0) >= settings.patience)

    def validate():
        return stream_perplexity(settings, model, getattr(text, settings.valid_split), team)

    def perplexity(loss):
        return f'{evaluation.perplexity(loss, settings.bproplen):.2f}'

    trainer = training.Trainer(updater, done, settings.out)
    progress = runs.Progress(
        settings.epoch, live={'auto': None, 'on': True, 'off': False}[settings.progress],
        columns=(('main/loss', 'perplexity', perplexity),
                 ('validation/perplexity', settings.valid_split, '.2f')))
    for extra in (runs.StopWhenNotFinite(),
                  extensions.TrainingPerplexity(
                      settings.log_interval, settings.bproplen, progress.write),
                  extensions.Validation(validate, progress.write), best):
        trainer.extend(extra)
    if team.writes:
        for extra in (runs.StepLog(int(settings.log_steps), 'window', ['loss']),
                      runs.EpochLog(), progress):
            trainer.extend(extra)
    if settings.decay_every:
        trainer.extend(extensions.AlphaDecay(settings.alpha_decay, write=None),
                       trigger=(1, 'iteration'))
    else:
        trainer.extend(extensions.AlphaDecay(
            settings.alpha_decay, best if settings.decay_if_fail else None, progress.write))
    if settings.validation_interval:
        trainer.extend(extensions.InterimValidation(validate, progress.write),
                       trigger=(settings.validation_interval, 'iteration'))
    if settings.save_all and team.writes:
        trainer.extend(extensions.keep_every_model)
    trainer.extend(runs.Snapshot(identity, team.writes), trigger=(
        (settings.snapshot_steps, 'iteration') if settings.snapshot_steps else (1, 'epoch')))
    return trainer, best


def resume(settings, trainer, identity, team):
    """Puts the trainer into the state of the snapshot that `--resume` names.

    A run that goes on in another folder takes along its best model and its log of steps.
    """
    if settings.resume == FROM_OUT:
        runs.resume(trainer, identity, FREE_SETTINGS)
        return
    checkpoints.load_snapshot(settings.resume, trainer, identity, FREE_SETTINGS)
    folder = os.path.dirname(os.path.abspath(settings.resume))
    if team.writes and folder != os.path.abspath(settings.out):
        make_directory(settings.out)
        for name in ('best.model', runs.STEPS):
            if os.path.exists(os.path.join(folder, name)):
                shutil.copyfile(os.path.join(folder, name), os.path.join(settings.out, name))


# 6. All together ------------------------------------------------------------------------------

def main(argv=None):
    settings = parse(argv)
    with distributed.join(settings.communicator, settings.out, settings.random_seed) as team:
        run(settings, team)


def run(settings, team=distributed.ALONE):
    """One training run; `team` are the processes that take part in it."""
    if team.size > settings.batchsize:
        raise UserError(f'--batchsize {settings.batchsize} leaves some of {team.size} processes '
                        'without a stream: start fewer')
    started = time.time()
    memory.keep_freed_memory()
    found = runs.find_snapshot(settings.out, settings.resume)
    goes_on = found if settings.resume == FROM_OUT else bool(settings.resume)

    device = devices.choose(distributed.device_number(settings.gpu, team), settings.device)
    distributed.check_device(settings.communicator, device)
    devices.seed(device, settings.random_seed)
    text = load_texts(settings)
    model = build_model(settings, len(text.words))
    model.to_device(device)

    identity = {**vars(settings), 'vocab_sha256': _sha256(text.words)}
    del identity['resume']
    trainer, best = build_trainer(settings, model, text, identity, team)
    if device.xp is not np:
        trainer.extend(devices.StepStream(settings.random_seed, team.rank))
    if goes_on:
        resume(settings, trainer, identity, team)
    if team.writes:
        runs.describe_run(settings.out, identity, text.words)
        devices.say_what_is_missing(device)
    windows = -(-len(text.train.flat) // (settings.batchsize * settings.bproplen))
    print(f'language model: {len(text.train.flat):,} words of training text, vocabulary '
          f'{len(text.words):,}, {windows:,} windows per epoch'
          + (f', {team.size} processes' if team.size > 1 else '')
          + (f', going on after window {trainer.updater.iteration:,}' if goes_on else ''),
          flush=True)

    trainer.run(show_loop_exception_msg=False)
    finish(settings, model, text, best, started, trainer.elapsed_time, team)


def finish(settings, model, text, best, started, elapsed, team):
    """Tests the best model, and writes result.json."""
    if best.epoch is None:
        raise UserError('the validation perplexity was never finite, so there is no best model; '
                        'try a smaller --alpha')
    path = os.path.join(settings.out, 'best.model')
    team.wait()
    checkpoints.assign(model, checkpoints.read_arrays(path), path)
    print('valid perplexity:', best.value)
    print(f'testing on {len(text.test.flat):,} words, which are read twice', flush=True)
    test = stream_perplexity(settings, model, text.test, team)
    print('test perplexity:', test, flush=True)
    mine = team.part(range(len(text.test)))
    nll, predictions = evaluation.review_nll(model, [text.test[i] for i in mine])
    per_review = evaluation.perplexity(team.sum(nll.sum()), team.sum(predictions.sum()))
    result = {
        'seed': settings.random_seed, 'preset': settings.preset, 'epoch': settings.epoch,
        'best_epoch': best.epoch, 'valid_perplexity': best.value, 'test_perplexity': test,
        'test_perplexity_per_review': per_review,
        'valid_split': settings.valid_split, 'eval_streams': settings.eval_streams,
        'n_vocab': len(text.words), 'training_seconds': elapsed,
        'seconds': time.time() - started, 'versions': runs.versions(),
    }
    if team.writes:
        runs.write_json(os.path.join(settings.out, runs.RESULT), result)
    print('test perplexity with the state reset at each review:', per_review)
    print(f'best epoch {best.epoch}, {runs.duration(elapsed)}; {path}')


def _sha256(words):
    return hashlib.sha256('\n'.join(words).encode()).hexdigest()


def command():
    cli.run(main)


if __name__ == '__main__':
    command()
