"""Attacks reviews and records, word by word, what the attack does.

    python -m interpretable_adv.analysis --model M --data_dir D --methods adv,iadv,spgd --out F

writes one JSON object per review and method (see `evaluation.records`), all methods of a review one
after the other. Dropout is off, and each review is attacked through its own loss, so that a record
does not depend on the batch the review was in. Settings that are not given are those that the
method's classifier was trained with, as far as its `args.json` tells.
"""
import json
import os

import chainer
import numpy as np

from interpretable_adv import cli, data, methods, paper, settings
from interpretable_adv.cli import at_least
from interpretable_adv.errors import UserError
from interpretable_adv.evaluation import measures, records
from interpretable_adv.evaluation.victim import Adversary, Victim
from interpretable_adv.runs import devices, folder
from interpretable_adv.runs.files import atomic_write
from interpretable_adv.runs.progress import Counter
from lm.evaluation import Scorer
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
        help="a classifier's best.model or run for all methods, or adv=PATH,iadv=PATH,…")
    add('--methods', default='', help='any of ' + ','.join(_choices()) +
        f' (default: what --use_adv etc. choose, else {",".join(DEFAULT_METHODS)})')
    settings.add(group, 'out', metavar='FILE', default='',
                 help='records (default: --save_name and .jsonl)')
    settings.add(group, 'split')
    add('--texts', default='', metavar='FILE',
        help='attack these texts instead, .csv, .tsv or .jsonl with a label each; --data_dir is '
             "the classifier's corpus, whose words and labels are known")
    add('--text_column', default='text', help='column with the text in --texts')
    add('--label_column', default='label', help='column with the label in --texts')
    add('--indices', default='', help='attack these reviews, e.g. 3,17')
    add('--sample', type=at_least(1), metavar='N', help='attack N random reviews')
    add('--seed', type=settings.SEED, help='seed of --sample and of VAT (default: --random_seed)')
    add('--lm', default='', type=folder.model_path,
        help="a language model's best.model or run, for perplexities")
    settings.add(group, 'epsilon', 'progress', 'device')

    settings.add(parser.add_argument_group('SPGD'), *settings.SPGD, 'use_spgd')
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
    if flags.indices and flags.sample:
        raise UserError('--indices and --sample exclude each other: leave one out')


# 2. Records -------------------------------------------------------------------------------------

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
        self.flipped += records.is_flipped(record)
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


def write_records(path, corpus, split, chosen, adversaries, batchsize, scorer=None,
                  progress=None):
    """Attacks the chosen reviews batch by batch and writes their records.

    The file is written only if everything succeeds.

    Args:
        scorer: reads the attacked reviews for their perplexities; None: no perplexities.
        progress: called with the number of reviews done since the last call.

    Returns:
        `{method: Tally}`.
    """
    tallies = {adversary.method: Tally() for adversary in adversaries}
    with atomic_write(path) as stream:
        for start in range(0, len(chosen), batchsize):
            indices = chosen[start:start + batchsize]
            batch = attack_batch(corpus, split, indices, adversaries, scorer)
            for review in zip(*batch):
                for record in review:
                    tallies[record['method']].add(record)
                    stream.write(json.dumps(record, ensure_ascii=False, allow_nan=False) + '\n')
            if progress:
                progress(len(indices))
    return tallies


def attack_batch(corpus, split, indices, adversaries, scorer=None):
    """The records of some reviews, a list for each adversary."""
    sequences = [split.sequences[index] for index in indices]
    labels = split.labels[indices]
    nll_clean = scorer.nll(sequences) if scorer else None
    result = []
    for adversary in adversaries:
        attacked = adversary(sequences, labels)
        batch = records.make_records(attacked, indices, labels, corpus.words, corpus.label_names)
        if scorer:
            values = measures.review_perplexities(scorer, attacked, nll_clean)
            batch = [{**record, 'perplexity': value} for record, value in zip(batch, values)]
        result.append(batch)
    return result


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
        trained_epsilon=bool(flags.methods) or not (flags.use_adv or flags.use_semi_data))

    chainer.set_debug(bool(flags.debug_mode))
    device = devices.choose(flags.gpu, flags.device)
    devices.seed(device, seed)
    parser, first = make_parser(), paths[names[0]]
    settings.set_run_defaults(parser, settings.read_run(first), settings.DATA, first)
    flags = parser.parse_args(argv)
    corpus = settings.load_corpus(flags)
    split = getattr(corpus, flags.split)
    if flags.texts:
        split = data.read_texts(flags.texts, corpus, flags.lower, flags.ignore_unk,
                                text_column=flags.text_column, label_column=flags.label_column)
    if not len(split.labels):
        raise UserError(f'{flags.data_dir} has no {flags.split} reviews')
    chosen = choose_reviews(split.sequences, flags.analysis_limit, indices, flags.sample, seed)

    victims = {path: Victim.load(path, corpus, device) for path in dict.fromkeys(paths.values())}
    adversaries = [Adversary(name, victims[paths[name]], attacks[name]) for name in names]
    scorer = None
    if flags.lm:
        language_model = load_lm(flags.lm, corpus.words)
        language_model.to_device(device)
        scorer = Scorer(language_model)

    progress = Counter(len(chosen), 'reviews', flags.progress)
    try:
        tallies = write_records(out, corpus, split, chosen, adversaries, flags.batchsize, scorer,
                                progress.add)
    finally:
        progress.close()
    for adversary in adversaries:
        print(tallies[adversary.method].line(adversary.method, adversary.settings.epsilon))
    print(f'{os.path.normpath(out)}: {len(chosen):,} reviews, {len(names)} '
          f'{"method" if len(names) == 1 else "methods"}')


def command():
    cli.run(main)


if __name__ == '__main__':
    command()
