"""Attacks reviews and records, word by word, what the attack does.

    python -m interpretable_adv.analysis --model M --data_dir D --methods adv,iadv,spgd --out F

writes one JSON object per review and method (see `evaluation.records`), all methods of a review one
after the other. Dropout is off, and each review is attacked through its own loss, so that a record
does not depend on the batch the review was in. Settings that are not given are those that the
method's classifier was trained with, as far as its `args.json` tells.
"""
import contextlib
import json
import os

import chainer
import numpy as np

from interpretable_adv import cli, data, methods, paper, settings
from interpretable_adv.cli import at_least
from interpretable_adv.errors import UserError
from interpretable_adv.evaluation import export, records, reviews
from interpretable_adv.evaluation.victim import Adversary, Victim
from interpretable_adv.runs import devices, folder
from interpretable_adv.runs.files import atomic_write
from interpretable_adv.runs.progress import Counter
from lm.evaluation import Scorer
from lm.guide import find_guide
from lm.nets import load_lm

DEFAULT_METHODS = list(paper.GAP)
# Upstream's flags that decide nothing here: sizes come from the classifier, nothing is trained.
WITHOUT_EFFECT = (
    'emb_dim', 'hidden_dim', 'hidden_cls_dim', 'n_layers', 'n_class', 'dropout',
    'pretrained_model', 'adaptive_softmax', 'word_only', 'freeze_word_emb', 'batchsize_semi',
    'n_epoch', 'alpha', 'alpha_decay', 'use_exp_decay', 'clip', 'nl_factor',
    'add_labeld_to_unlabel', 'online_nn', 'batchsize_nn', 'eval')


# 1. Arguments -----------------------------------------------------------------------------------

def make_parser():
    parser = cli.ArgumentParser(prog='python -m interpretable_adv.analysis',
                                description=__doc__.partition('\n')[0])
    group = parser.add_argument_group('analysis')
    add = group.add_argument
    add('--model', default='', metavar='M',
        help="a classifier's best.model or run for all methods, or adv=PATH,iadv=PATH,…; demo: the "
             'embedded classifier, for --texts')
    add('--methods', default='', help='any of ' + ','.join(_choices()) +
        f' (default: what --use_adv etc. choose, else {",".join(DEFAULT_METHODS)})')
    settings.add(group, 'out', metavar='FILE', default='',
                 help='records (default: --save_name and .jsonl)')
    settings.add(group, 'split')
    add('--texts', default='', metavar='FILE',
        help='attack these texts instead: .txt, one per line, or .csv, .tsv or .jsonl, with labels '
             "or without. Words and labels are those of the classifier's run, or with --data_dir "
             "those of its corpus")
    add('--text_column', default='text', help='column with the text in --texts')
    add('--label_column', default='label', help='column with the label in --texts; a text '
        'without one is attacked away from the predicted class')
    add('--export', default='', metavar='FILE.csv',
        help='write the adversarial texts, a row for each review and method')
    add('--indices', default='', help='attack these reviews, e.g. 3,17')
    add('--sample', type=at_least(1), metavar='N', help='attack N random reviews')
    add('--seed', type=settings.SEED, help='seed of --sample and of VAT (default: --random_seed)')
    add('--lm', default='', type=folder.model_file,
        help="a language model's best.model or run, for perplexities")
    settings.add(group, 'epsilon', 'progress', 'device')

    settings.add(parser.add_argument_group('SPGD'), *settings.SPGD, 'use_spgd')
    settings.add_class_lm(parser)
    settings.add_data(parser, lower=0)
    group = parser.add_upstream_group("upstream's flags")
    group.add_argument('--analysis_limit', '--limit', type=at_least(0), default=100,
                       help='attack the shortest reviews, at most this many; 0: all')
    settings.add(group, 'load_trained_lstm', help='the classifier, where --model is not given')
    settings.add(group, 'batchsize', help='reviews attacked at a time')
    settings.add(group, 'save_name', 'gpu', 'use_adv', 'use_attn_d', 'use_semi_data',
                 *settings.UPSTREAM_ATTACK, 'random_seed', 'debug_mode', 'dataset')
    group = parser.add_upstream_group(
        "upstream's flags without effect here: sizes come from the classifier, nothing is trained")
    settings.add(group, *WITHOUT_EFFECT, help=' ')
    group.add_argument('--analysis_mode', type=int, default=0, help=' ')
    settings.add(group, 'use_rational')
    settings.show_run_defaults(parser)
    return parser


def _choices():
    return [name for name in methods.attackers() if name != 'none']


def choose_methods(flags):
    """The names of the methods, from `--methods` or from upstream's switches."""
    if flags.methods:
        return cli.parse_names(flags.methods, _choices(), '--methods')
    switches = settings.chosen_switches(flags)
    if not any(switches):
        return DEFAULT_METHODS
    rows = methods.by_switches(switches)
    if rows is None or len(rows) > 1 or rows[0].attack is None:
        raise UserError('--use_adv, --use_attn_d, --use_semi_data and --use_spgd as given choose '
                        'no single attack: give --methods instead')
    return [rows[0].name]


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


def _refuse(flags):
    """Rejects impossible flags before anything is read."""
    if flags.use_rational:
        raise UserError('--use_rational 1: upstream has the flag but no working code for it; '
                        'leave it out')
    if flags.dataset != 'imdb':
        raise UserError(f'--dataset {flags.dataset}: give the folder of the corpus as '
                        '--data_dir instead')
    if flags.export and os.path.abspath(flags.export) == os.path.abspath(
            flags.out or flags.save_name + '.jsonl'):
        raise UserError('--export and --out name one file: choose two')
    if flags.indices and flags.sample:
        raise UserError('--indices and --sample exclude each other: leave one out')


# 2. Records -------------------------------------------------------------------------------------

class Tally:
    """Counts for the summary of one method."""

    def __init__(self):
        self.reviews = self.labeled = self.right = self.right_adv = self.flipped = 0
        self.words = self.moved = 0
        self.norm = 0.0

    def add(self, record):
        self.reviews += 1
        if 'correct' in record:
            self.labeled += 1
            self.right += record['correct']
            self.right_adv += record['prediction_adv'] == record['label']
        self.flipped += records.is_flipped(record)
        norms = [word['norm'] for word in record['words']]
        self.words += len(norms)
        self.moved += sum(norm > 0 for norm in norms)
        self.norm += sum(norms)

    def line(self, method, epsilon):
        strength = '' if epsilon is None else f'ε {epsilon:g}, '
        flipped = 100 * self.flipped / self.reviews
        parts = [f'{method}: {strength}{flipped:.1f} % of predictions flipped']
        if self.labeled:
            right, right_adv = (100 * count / self.labeled
                                for count in (self.right, self.right_adv))
            parts.append(f'accuracy {right:.1f} → {right_adv:.1f} %')
        return ', '.join([*parts, f'{100 * self.moved / self.words:.1f} % of words moved',
                          f'mean norm {self.norm / self.words:.3g}'])


def write_records(path, corpus, split, chosen, adversaries, batchsize, scorer=None,
                  progress=None, exported=None):
    """Attacks the chosen reviews batch by batch and writes their records.

    The files are written only if everything succeeds.

    Args:
        split: `data.Split`, or `data.corpus.Texts` whose labels may be missing.
        scorer: reads the attacked reviews for their perplexities; None: no perplexities.
        progress: called with the number of reviews done since the last call.
        exported: a CSV file for the adversarial texts, see `evaluation.export`.

    Returns:
        `{method: Tally}`.
    """
    tallies = {adversary.method: Tally() for adversary in adversaries}
    with contextlib.ExitStack() as files:
        stream = files.enter_context(atomic_write(path))
        table = export.Table(files.enter_context(atomic_write(exported)), export.columns(
            scorer is not None)) if exported else None
        for start in range(0, len(chosen), batchsize):
            indices = chosen[start:start + batchsize]
            batch = attack_batch(split, indices, adversaries, scorer,
                                 reviews.DISCRETE if table else ())
            for index, *attacked in zip(indices, *batch):
                text = split.texts[index] if hasattr(split, 'texts') else None
                for review in attacked:
                    record = records.make_record(review, index, corpus.words,
                                                 corpus.label_names, text)
                    tallies[record['method']].add(record)
                    stream.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + '\n')
                    if table:
                        table.add(export.row(
                            review, index, text or data.from_ids(review.ids, corpus.words),
                            corpus.words, corpus.label_names))
            if progress:
                progress(len(indices))
    return tallies


def attack_batch(split, indices, adversaries, scorer=None, readings=()):
    """Attacks some reviews: for each adversary a list of `reviews.AttackedReview`."""
    sequences = [split.sequences[index] for index in indices]
    nll_clean = scorer.nll(sequences) if scorer else None
    return [reviews.attack(adversary, sequences, split.labels[indices], readings, scorer,
                           nll_clean) for adversary in adversaries]


def read_texts(flags, model):
    """The texts of `--texts`, and what has the words and labels that they are read with.

    Those of the classifier's own run; where `--data_dir` is given, of that corpus.
    """
    if flags.data_dir is None:
        corpus = settings.read_reading(model)
        lower, ignore_unk = corpus.lower, corpus.ignore_unk
    else:
        corpus = settings.load_corpus(flags)
        lower, ignore_unk = flags.lower, flags.ignore_unk
    texts = data.read_texts(flags.texts, corpus, lower, ignore_unk, flags.text_column,
                            flags.label_column)
    print(f'{flags.texts}: {len(texts.texts):,} texts, '
          f'{int((texts.labels != data.NO_LABEL).sum()):,} of them with a label')
    report = data.describe_unknown(sum(text.known for text in texts.texts), (
        word for text in texts.texts for word in text.unknown))
    if report:
        print(report)
    return corpus, texts


# 3. All together --------------------------------------------------------------------------------

def main(argv=None):
    flags = make_parser().parse_args(argv)
    _refuse(flags)
    names = choose_methods(flags)
    paths = settings.model_paths(flags.model or flags.load_trained_lstm, names)
    if not paths:
        raise UserError('--model is missing: give the best.model of a training run')
    indices = records.parse_indices(flags.indices) if flags.indices else None
    seed = flags.random_seed if flags.seed is None else flags.seed
    out = flags.out or flags.save_name + '.jsonl'
    attacks = settings.resolve_attacks(
        make_parser, argv, paths, settings.parse_epsilons(flags.epsilon, names), seed,
        upstream_defaults=not flags.methods and bool(flags.use_adv or flags.use_semi_data),
        class_lms=settings.per_method(flags.class_lm, names, '--class_lm', required=False))

    chainer.set_debug(bool(flags.debug_mode))
    device = devices.choose(flags.gpu, flags.device)
    devices.seed(device, seed)
    parser, first = make_parser(), paths[names[0]]
    settings.set_run_defaults(parser, settings.read_run(first), settings.DATA, first)
    if flags.texts:
        parser.set_defaults(data_dir=None)
        flags = parser.parse_args(argv)
        corpus, split = read_texts(flags, first)
    else:
        flags = parser.parse_args(argv)
        corpus = settings.load_corpus(flags)
        split = getattr(corpus, flags.split)
    if not len(split.labels):
        raise UserError(f'{flags.data_dir} has no {flags.split} reviews')
    chosen = choose_reviews(split.sequences, flags.analysis_limit, indices, flags.sample, seed)

    victims = {path: Victim.load(path, corpus, device) for path in dict.fromkeys(paths.values())}
    guides = {name: find_guide(attacks[name], corpus, victims[paths[name]].embeddings.shape[1],
                               device) for name in names}
    adversaries = [Adversary(name, victims[paths[name]], attacks[name], guides[name])
                   for name in names]
    scorer = None
    if flags.lm:
        language_model = load_lm(flags.lm, corpus.words)
        language_model.to_device(device)
        scorer = Scorer(language_model)

    progress = Counter(len(chosen), 'reviews', flags.progress)
    try:
        tallies = write_records(out, corpus, split, chosen, adversaries, flags.batchsize, scorer,
                                progress.add, flags.export)
    finally:
        progress.close()
    for adversary in adversaries:
        print(tallies[adversary.method].line(adversary.method, adversary.epsilon))
    if flags.export:
        print(f'{os.path.normpath(flags.export)}: {len(chosen) * len(names):,} adversarial texts')
    print(f'{os.path.normpath(out)}: {len(chosen):,} reviews, {len(names)} '
          f'{"method" if len(names) == 1 else "methods"}')


def command():
    cli.run(main)


if __name__ == '__main__':
    command()
