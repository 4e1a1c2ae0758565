"""Attacks reviews and records, word by word, what the attack does.

    python -m interpretable_adv.analysis --model M --data_dir D --methods adv,iadv,spgd --out F

writes one JSON object per review and method (see `records`), all methods of a review one after
the other. Dropout is off, and each review is attacked through its own loss, so that a record does
not depend on the batch the review was in. Settings that are not given are those that the method's
classifier was trained with, as far as its `args.json` tells.
"""
import argparse
import json
import os
import pathlib
import sys
import time

import chainer
import numpy as np

from interpretable_adv import (
    attack_flags,
    checkpoints,
    cli,
    data,
    data_flags,
    devices,
    readings,
    records,
)
from interpretable_adv.cli import UserError, at_least
from interpretable_adv.files import atomic_write
from interpretable_adv.neighbor_table import NeighborTable
from interpretable_adv.recording import Adversary, Perplexities, make_records
from interpretable_adv.train import METHODS, PAPER_EPSILON
from interpretable_adv.training import duration
from lm.loading import load_lm

ATTACKS = ('adv', 'iadv', 'spgd', 'vat', 'ivat')
DEFAULT_METHODS = 'adv,iadv,spgd'
# What a record takes from the training run of its method's classifier, unless given.
ATTACK_SETTINGS = ('nn_k', 'nn_k_offset', 'use_limit_vocab', 'norm_sentence_level', 'mask_eos',
                   'xi_var_first', 'sparsity', 'spgd_iters', 'spgd_step', 'spgd_toward_only',
                   'sparsity_rank')


# Choice of reviews ----------------------------------------------------------------------------

def choose_reviews(sequences, limit, indices=None, sample=None, seed=0):
    """Numbers of the reviews to attack.

    Either `indices` as they are, or `sample` random ones in ascending order, or the `limit`
    shortest, shortest first (stable), 0 meaning all.
    """
    count = len(sequences)
    if indices is not None:
        beyond = [index for index in indices if index >= count]
        if beyond:
            raise UserError(f'--indices {beyond[0]}: the split has only reviews 0 to {count - 1}')
        return indices
    if sample is not None:
        if sample > count:
            raise UserError(f'--sample {sample}: the split has only {count} reviews')
        generator = np.random.RandomState(seed)
        return sorted(generator.choice(count, sample, replace=False).tolist())
    lengths = [len(sequence) for sequence in sequences]
    order = np.argsort(lengths, kind='stable').tolist()
    return order[:limit] if limit else order


# Command line -----------------------------------------------------------------------------------

def make_parser():
    parser = cli.ArgumentParser(prog='python -m interpretable_adv.analysis',
                                description=__doc__.partition('\n')[0])
    switch = {'type': int, 'choices': (0, 1)}

    add = parser.add_argument_group('analysis').add_argument
    add('--model', default='', metavar='M',
        help="a classifier's best.model for all methods, or adv=PATH,iadv=PATH,…")
    add('--methods', default='', help='any of ' + ','.join(ATTACKS) +
        f' (default: what --use_adv etc. choose, else {DEFAULT_METHODS})')
    add('--out', default='', metavar='FILE', help='records (default: --save_name and .jsonl)')
    add('--split', choices=('train', 'dev', 'test'), default='test', help='reviews to attack')
    add('--texts', default='', metavar='FILE',
        help='attack these texts instead, .csv, .tsv or .jsonl with a label each; --data_dir is '
             "the classifier's corpus, whose words and labels are known")
    add('--text_column', default='text', help='column with the text in --texts')
    add('--label_column', default='label', help='column with the label in --texts')
    add('--indices', default='', help='attack these reviews, e.g. 3,17')
    add('--sample', type=at_least(1), metavar='N', help='attack N random reviews')
    add('--seed', type=at_least(0), help='seed of --sample and of VAT (default: --random_seed)')
    add('--epsilon', default='', metavar='E',
        help="step size, one for all or adv=5,iadv=15,…; default: --xi_var, or with --methods the "
             "training run's, else the paper's")
    add('--lm', default='', help="a language model's best.model, for perplexities")
    add('--progress', nargs='?', const='on', default='auto', choices=('auto', 'on', 'off'),
        help='live line: on a terminal, always, never')
    add('--device', help="Chainer's name of a device, e.g. @cupy:0; instead of --gpu")

    attack_flags.add(parser).add_argument(
        '--use_spgd', **switch, nargs='?', const=1, default=0, help='attack with SPGD')

    data_flags.add(parser, lower=0)
    add = parser.add_upstream_group("upstream's flags").add_argument
    add('--analysis_limit', '--limit', type=at_least(0), default=100,
        help='attack the so many shortest reviews; 0: all')
    add('--load_trained_lstm', default='', help='the classifier, where --model is not given')
    add('--save_name', default='sentiment_model', help='name for the records without --out')
    add('--batchsize', type=at_least(1), default=32, help='reviews attacked at a time')
    add('--gpu', '-g', type=int, default=-1, help='number of the GPU; negative: CPU')
    add('--use_adv', **switch, default=0, help='attack with AdvT')
    add('--use_attn_d', **switch, default=0, help='interpretable directions (iAdvT, iVAT)')
    add('--use_semi_data', **switch, default=0, help='attack with VAT')
    add('--xi_var', type=at_least(0, float), default=1.0, help='ε, size of the perturbation')
    add('--xi_var_first', type=at_least(0, float), default=1.0, help="size of VAT's start")
    add('--norm_sentence_level', **switch, default=1,
        help='one norm per review instead of per word')
    add('--nn_k', type=at_least(1), default=10, help='K, neighbours per word')
    add('--nn_k_offset', type=at_least(0), default=1,
        help='rank of the first neighbour (0: the word itself)')
    add('--use_limit_vocab', **switch, default=1,
        help='neighbours among the words of labelled reviews only')
    add('--random_seed', type=at_least(0), default=1234, help='seed')
    add('--debug_mode', **switch, default=0, help="Chainer's debug mode")
    add('--dataset', default='imdb', help='only imdb; own corpora come through --data_dir',
        choices=('imdb', 'elec', 'rotten', 'dbpedia', 'rcv1'))

    add = parser.add_upstream_group(
        "upstream's flags without effect here: sizes come from the classifier, nothing is trained"
    ).add_argument
    for name, kind, default in (
            ('emb_dim', int, 256), ('hidden_dim', int, 1024), ('hidden_cls_dim', int, 30),
            ('n_layers', int, 1), ('n_class', int, 2), ('dropout', float, 0.5),
            ('pretrained_model', str, ''), ('adaptive_softmax', int, 1), ('word_only', int, 0),
            ('freeze_word_emb', int, 0), ('batchsize_semi', int, 64), ('n_epoch', int, 30),
            ('alpha', float, 0.001), ('alpha_decay', float, 0.0), ('use_exp_decay', int, 1),
            ('clip', float, 5.0), ('nl_factor', float, 1.0), ('add_labeld_to_unlabel', int, 1),
            ('online_nn', int, 0), ('batchsize_nn', int, 10), ('eval', int, 0),
            ('analysis_mode', int, 0)):
        add('--' + name, type=kind, default=default, help=' ')
    add('--use_rational', **switch, default=0, help=argparse.SUPPRESS)
    return parser


def choose_methods(settings):
    """The names of the methods, from `--methods` or from upstream's switches."""
    if settings.methods:
        methods = list(dict.fromkeys(
            name.strip() for name in settings.methods.split(',') if name.strip()))
        for method in methods:
            if method not in ATTACKS:
                raise UserError(f'--methods: {method} is not one of {", ".join(ATTACKS)}')
        if methods:
            return methods
    switches = settings.use_adv, settings.use_attn_d, settings.use_semi_data, settings.use_spgd
    by_switches = {on: name for name, on in METHODS.items() if name in ATTACKS}
    if any(switches):
        if switches not in by_switches:
            raise UserError('--use_adv, --use_attn_d, --use_semi_data and --use_spgd as given '
                            'choose no single attack: give --methods instead')
        return [by_switches[switches]]
    return DEFAULT_METHODS.split(',')


def per_method(text, methods, flag):
    """`{method: value}` from one value for all or `adv=X,iadv=Y`; empty text gives `{}`."""
    parts = [part.strip() for part in text.split(',')]
    names = [part.partition('=')[0].strip() for part in parts]
    if not text.strip() or not any(name in ATTACKS and '=' in part
                                   for name, part in zip(names, parts)):
        return dict.fromkeys(methods, text.strip()) if text.strip() else {}
    values = {}
    for name, part in zip(names, parts):
        if name not in ATTACKS or '=' not in part or not part.partition('=')[2].strip():
            raise UserError(f'{flag} {part}: give {flag} as one value or as adv=…,iadv=…')
        values[name] = part.partition('=')[2].strip()
    missing = [method for method in methods if method not in values]
    if missing:
        raise UserError(f'{flag} names nothing for the method {missing[0]}; '
                        f'add {missing[0]}=…')
    return values


def trained_with(path):
    """The settings of the training run beside whose results a classifier lies, or `{}`."""
    try:
        text = (pathlib.Path(path).parent / 'args.json').read_text(encoding='utf-8')
        settings = json.loads(text)
    except (OSError, ValueError):
        return {}
    return settings if isinstance(settings, dict) else {}


def method_settings(argv, settings, method, path, epsilons):
    """The settings of one method, with what its classifier was trained with as defaults."""
    run = trained_with(path)
    parser = make_parser()
    parser.set_defaults(**{name: run[name] for name in ATTACK_SETTINGS if name in run})
    if settings.methods or not (settings.use_adv or settings.use_semi_data):
        same = run.get('method') == method
        parser.set_defaults(xi_var=run['xi_var'] if same and 'xi_var' in run
                            else PAPER_EPSILON[method])
    chosen = parser.parse_args(argv)
    if method in epsilons:
        try:
            chosen.xi_var = at_least(0, float)(epsilons[method])
        except (ValueError, argparse.ArgumentTypeError):
            raise UserError(f'--epsilon {epsilons[method]}: give a number from 0') from None
    return chosen


def build_adversary(method, victim, corpus, settings):
    """An `Adversary` from the settings of its method."""
    limit = corpus.train_vocab_size + 2 if settings.use_limit_vocab else corpus.n_vocab
    if settings.nn_k + settings.nn_k_offset > limit:
        raise UserError(f'--nn_k {settings.nn_k}: there are only {limit} words to choose '
                        'neighbours from; give a smaller number')
    table = victim.neighbors(settings.nn_k, limit, settings.nn_k_offset)
    virtual = method in ('vat', 'ivat')
    attack = attack_flags.build(method, settings.xi_var, table, settings,
                                first_scale=settings.xi_var_first, virtual=virtual)
    return Adversary(method, victim.model, attack, table, victim.nearest_words, settings.xi_var,
                     virtual)


class Victim:
    """A classifier with its tables of neighbours, which methods may share."""

    def __init__(self, path, corpus, device):
        self.model = checkpoints.load_classifier(path, corpus.words)
        n_class = len(self.model.output_layer.b)
        if n_class != corpus.n_class:
            raise UserError(f'{path} tells {n_class} classes apart, the corpus has '
                            f'{corpus.n_class}; use the data folder it was trained with')
        self.model.to_device(device)
        self.nearest_words = readings.NearestWords(self.model.word_embed.W.array)
        self._tables = {}

    def neighbors(self, k, limit, offset):
        """The `NeighborTable` with these settings."""
        if (k, limit, offset) not in self._tables:
            self._tables[k, limit, offset] = NeighborTable(
                self.model.word_embed.W.array, k, limit, offset)
        return self._tables[k, limit, offset]


class Progress:
    """A live line with the reviews done and the time left, on a terminal or where asked for."""

    def __init__(self, total, mode, stream=None):
        self.total, self.stream = total, stream or sys.stderr
        self.live = mode == 'on' or (mode == 'auto' and self.stream.isatty())
        self.begin = self.last = time.monotonic()
        self.shown = 0

    def show(self, done):
        now = time.monotonic()
        if not self.live or (now - self.last < 0.5 and done < self.total):
            return
        self.last = now
        rate = done / max(now - self.begin, 1e-9)
        line = f'{done:,} of {self.total:,} reviews, {rate:,.1f} a second'
        if done < self.total:
            line += f', {duration((self.total - done) / rate)} left'
        self.stream.write('\r' + line.ljust(self.shown))
        self.stream.flush()
        self.shown = len(line)

    def close(self):
        if self.shown:
            self.stream.write('\n')


class Tally:
    """Counts for the summary of one method."""

    def __init__(self):
        self.reviews = self.right = self.right_adv = self.flipped = 0
        self.words = self.moved = 0
        self.norm = 0.0

    def add(self, record):
        self.reviews += 1
        self.right += record['correct']
        self.right_adv += record['prediction_adv'] == record['label']
        self.flipped += record['prediction'] != record['prediction_adv']
        norms = [word['norm'] for word in record['words']]
        self.words += len(norms)
        self.moved += sum(norm > 0 for norm in norms)
        self.norm += sum(norms)

    def line(self, method, epsilon):
        flipped, right, right_adv = (
            100 * count / self.reviews for count in (self.flipped, self.right, self.right_adv))
        return (f'{method}: ε {epsilon:g}, {flipped:.1f} % of predictions flipped, accuracy '
                f'{right:.1f} → {right_adv:.1f} %, {100 * self.moved / self.words:.1f} % of words '
                f'moved, mean norm {self.norm / self.words:.3g}')


def write_records(path, corpus, split, chosen, adversaries, batchsize, perplexities=None,
                  progress=None):
    """Attacks the chosen reviews batch by batch and writes their records.

    The file appears when all is done, and holds nothing when anything fails.

    Returns:
        `{method: Tally}`.
    """
    tallies = {adversary.method: Tally() for adversary in adversaries}
    with atomic_write(path) as stream:
        for start in range(0, len(chosen), batchsize):
            indices = chosen[start:start + batchsize]
            sequences = [split.sequences[index] for index in indices]
            labels = split.labels[indices]
            clean = perplexities.clean(sequences) if perplexities else None
            batches = []
            for adversary in adversaries:
                found = adversary(sequences, labels)
                batch = make_records(corpus.words, corpus.label_names, adversary.method,
                                     adversary.epsilon, indices, sequences, labels, found)
                if perplexities:
                    _add_perplexities(batch, clean, perplexities.attacked(sequences, found))
                batches.append(batch)
            for review in zip(*batches):
                for record in review:
                    tallies[record['method']].add(record)
                    stream.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + '\n')
            if progress:
                progress.show(start + len(indices))
    return tallies


def _add_perplexities(batch, clean, attacked):
    for i, record in enumerate(batch):
        values = {'clean': clean[i], **{name: column[i] for name, column in attacked.items()}}
        record['perplexity'] = {name: value for name, value in values.items() if value is not None}


def main(argv=None):
    settings = make_parser().parse_args(argv)
    if settings.use_rational:
        raise UserError('--use_rational 1: upstream has the flag but no code that works for it; '
                        'leave it out')
    if settings.dataset != 'imdb':
        raise UserError(f'--dataset {settings.dataset}: give the folder of the corpus as '
                        '--data_dir instead')
    if settings.indices and settings.sample:
        raise UserError('--indices and --sample exclude each other: leave one out')
    methods = choose_methods(settings)
    paths = per_method(settings.model or settings.load_trained_lstm, methods, '--model')
    if not paths:
        raise UserError('--model is missing: give the best.model of a training run')
    epsilons = per_method(settings.epsilon, methods, '--epsilon')
    indices = records.parse_indices(settings.indices) if settings.indices else None
    seed = settings.random_seed if settings.seed is None else settings.seed
    out = settings.out or settings.save_name + '.jsonl'

    chainer.set_debug(bool(settings.debug_mode))
    device = devices.choose(settings.gpu, settings.device)
    devices.seed(device, seed)
    parser = make_parser()
    run = trained_with(paths[methods[0]])
    parser.set_defaults(**{name: run[name] for name in data_flags.NAMES if name in run})
    data_settings = parser.parse_args(argv)
    corpus = data_flags.load_corpus(data_settings)
    if settings.texts:
        split = data.read_texts(
            settings.texts, corpus, data_settings.lower, data_settings.ignore_unk,
            text_column=settings.text_column, label_column=settings.label_column)
    else:
        split = getattr(corpus, settings.split)
    if not len(split.labels):
        raise UserError(f'{settings.data_dir} has no {settings.split} reviews')
    chosen = choose_reviews(split.sequences, settings.analysis_limit, indices, settings.sample,
                            seed)

    victims = {path: Victim(path, corpus, device)
               for path in dict.fromkeys(paths[method] for method in methods)}
    adversaries = [
        build_adversary(method, victims[paths[method]], corpus,
                        method_settings(argv, settings, method, paths[method], epsilons))
        for method in methods]
    perplexities = None
    if settings.lm:
        language_model = load_lm(settings.lm, corpus.words)
        language_model.to_device(device)
        perplexities = Perplexities(language_model)

    progress = Progress(len(chosen), settings.progress)
    try:
        tallies = write_records(out, corpus, split, chosen, adversaries, settings.batchsize,
                                perplexities, progress)
    finally:
        progress.close()
    for adversary in adversaries:
        print(tallies[adversary.method].line(adversary.method, adversary.epsilon))
    print(f'{os.path.normpath(out)}: {len(chosen):,} reviews, {len(methods)} '
          f'{"method" if len(methods) == 1 else "methods"}')


def command():
    cli.run(main)


if __name__ == '__main__':
    command()
