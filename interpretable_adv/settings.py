"""Every flag of the commands, declared once, and what a classifier's own `args.json` says of them.

A command picks its flags from `FLAGS` by name. Where a command works on a trained model, a flag
that is not given has the value that the model was trained with.
"""
import argparse
import dataclasses
import math
import os
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from interpretable_adv import data, nets, paper
from interpretable_adv.cli import LARGEST, ArgumentParser, at_least, numbers, share
from interpretable_adv.errors import UserError
from interpretable_adv.methods import METHODS, SWITCHES, AttackSettings, Method, trainable
from interpretable_adv.perturbations import RANKS
from interpretable_adv.runs import checkpoints, folder, reading
from interpretable_adv.runs.distributed import COMMUNICATORS

PRESETS = ('upstream', 'paper')
SPLITS = ('train', 'dev', 'test')
# Upstream's datasets; it can load only the first.
DATASETS = ('imdb', 'elec', 'rotten', 'dbpedia', 'rcv1')


def _number(kind: Any, default: Any, help: str, *names: str, **more: Any) -> dict[str, Any]:
    return {'type': kind, 'default': default, 'help': help, 'names': names, **more}


def _choice(choices: Sequence[str], default: Any, help: str, *names: str) -> dict[str, Any]:
    return {'choices': choices, 'default': default, 'help': help, 'names': names}


def _text(help: str, *names: str, default: str | None = None, **more: Any) -> dict[str, Any]:
    return {'default': default, 'help': help, 'names': names, **more}


def _switch(default: int, help: str) -> dict[str, Any]:
    """Upstream's kind, which takes 0 or 1."""
    return {'type': int, 'choices': (0, 1), 'default': default, 'help': help}


def _own_switch(help: str) -> dict[str, Any]:
    """A switch of ours, whose 1 may be omitted."""
    return {**_switch(0, help), 'nargs': '?', 'const': 1}


def _action(help: str, *names: str, on: bool = True, **more: Any) -> dict[str, Any]:
    return {'action': 'store_true' if on else 'store_false', 'default': False, 'help': help,
            'names': names, **more}


COUNT, SIZE, AMOUNT = at_least(0), at_least(1), at_least(0, float)
SEED = at_least(0, at_most=2**32 - 1)  # what NumPy's generator takes
UNITS, LAYERS = at_least(1, at_most=2**16), at_least(1, at_most=64)
BATCH = at_least(1, at_most=2**20)
REAL = at_least(-1e9, float)
NORM = at_least(0, float, at_most=math.inf)  # infinite: gradients are never scaled
GPU = at_least(-1000, at_most=1000)

# Keys are the names behind `--`. Defaults are upstream's where upstream has the flag.
FLAGS: dict[str, dict[str, Any]] = {
    # The run
    'out': _text('folder for the results'),
    'preset': _choice(PRESETS, 'upstream', 'set of defaults'),
    'snapshot_steps': _number(COUNT, 0, 'write a snapshot every N steps (0: every epoch)',
                              metavar='N'),
    'snapshot_minutes': _number(AMOUNT, 0.0, 'write a snapshot whenever N minutes have passed, too '
                                '(0: never)', metavar='N'),
    'log_steps': _number(COUNT, 0, 'write the losses of every Nth step to steps.jsonl',
                         metavar='N'),
    'progress': {'nargs': '?', 'const': 'on', **_choice(
        ('auto', 'on', 'off'), 'auto', 'live line: on a terminal, always, never')},
    'gpu': _number(GPU, -1, 'number of the GPU; negative: CPU', '-g'),
    'device': _text("Chainer's name of a device, e.g. @cupy:0"),
    'communicator': _choice(COMMUNICATORS, None, 'train with all processes that mpiexec started; '
                            'a batch is shared among them'),
    'random_seed': _number(SEED, 1234, 'seed'),
    'debug_mode': _switch(0, "Chainer's debug mode"),
    'save_name': _text('name of the results without --out', default='sentiment_model'),

    # The corpus
    'data_dir': _text('folder made by interpretable_adv.data', default='data/imdb'),
    'split': _choice(SPLITS, 'test', 'reviews to work on'),
    'lower': _switch(1, 'lower-case all words'),
    'min_count': _number(COUNT, 1, 'words in at most this many reviews are unknown'),
    'ignore_unk': _switch(0, 'drop unknown words'),
    'use_unlabled_to_vocab': _switch(1, 'read the unlabelled reviews, and count their words'),
    'dataset': _choice(DATASETS, 'imdb', 'only imdb; other corpora are read through --data_dir'),
    'add_labeld_to_unlabel': _switch(1, 'VAT on the labelled reviews as well'),

    # The classifier
    'emb_dim': _number(UNITS, 256, 'size of word vectors'),
    'hidden_dim': _number(UNITS, 1024, 'size of the LSTM'),
    'hidden_cls_dim': _number(UNITS, 30, 'size of the hidden layer'),
    'n_layers': _number(LAYERS, 1, 'layers of the LSTM'),
    'dropout': _number(share, 0.5, 'dropout ratio'),
    'pretrained_model': _text("a language model's best.model or run to start from", default=''),
    'word_only': _switch(0, "take only the language model's word vectors"),
    'load_trained_lstm': _text('a classifier to start from', default=''),
    'freeze_word_emb': _switch(0, 'do not train the word vectors'),
    'adaptive_softmax': _switch(1, 'no effect: read from --pretrained_model'),
    'n_class': _number(int, 2, 'no effect: read from the corpus'),
    'batchsize_nn': _number(SIZE, 10, 'no effect: the neighbour search chooses its own blocks'),
    'use_rational': _switch(0, argparse.SUPPRESS),
    'use_seq_labeling': _switch(0, argparse.SUPPRESS),
    'use_bilstm': _switch(0, argparse.SUPPRESS),

    # Optimisation
    'batchsize': _number(BATCH, 32, 'reviews per step'),
    'batchsize_semi': _number(BATCH, 64, 'unlabelled reviews per step'),
    'n_epoch': _number(SIZE, 30, 'epochs'),
    'alpha': _number(at_least(0, float, at_most=3e38), 0.001, "Adam's step size"),
    'alpha_decay': _number(share, 0.0, 'its factor per step'),
    'use_exp_decay': _switch(1, 'compute it as alpha · decay^step'),
    'clip': _number(NORM, 5.0, 'largest norm of the gradient'),
    'eval': _switch(0, 'print the accuracies before training'),

    # Methods and their attacks
    'method': _text('readable alternative to --use_adv, --use_attn_d, --use_semi_data, --use_spgd'),
    'use_adv': _switch(0, 'adversarial training'),
    'use_attn_d': _switch(0, 'interpretable directions (iAdvT, iVAT)'),
    'use_semi_data': _switch(0, 'virtual adversarial training'),
    'use_spgd': _own_switch('SPGD'),
    'nl_factor': _number(REAL, 1.0, 'λ, weight of the adversarial loss'),
    'xi_var': _number(AMOUNT, 1.0, 'ε, size of the perturbation'),
    'xi_var_first': _number(AMOUNT, 1.0, "size of VAT's start"),
    'norm_sentence_level': _switch(1, 'one norm per review instead of per word'),
    'nn_k': _number(SIZE, 10, 'K, neighbours per word'),
    'nn_k_offset': _number(COUNT, 1, 'rank of the first neighbour (0: the word itself)'),
    'use_limit_vocab': _switch(1, 'neighbours among the words of labelled reviews only'),
    'update_nearest_epoch': _number(COUNT, 1, 'new neighbours after every Nth epoch; 0: never'),
    'update_nearest_batch': _number(
        COUNT, None, 'new neighbours every N steps; 0: by --update_nearest_epoch, as upstream '
        '(default: 50 for SPGD and preset paper, else 0)', metavar='N'),
    'online_nn': _switch(0, 'new neighbours in every step'),
    'sparsity': _number(share, 0.75, 'σ, share of the words that stay in place'),
    'spgd_iters': _number(at_least(1, at_most=10_000), 1, 'M, gradient steps'),
    'spgd_step': _number(AMOUNT, None, 'size of a gradient step (default: ε)'),
    'spgd_toward_only': _own_switch('do not move words whose K cosines are all negative'),
    'sparsity_rank': _choice(RANKS, 'raw', 'which norm ranks the words'),
    'spgd_directions': _choice(('clean', 'dropout'), 'clean',
                               'directions between clean word vectors or ones with dropout'),
    'mask_eos': _own_switch("never perturb a review's end, in any method"),
    'class_lm': _text('a class-conditional language model: attacks follow −log p(y|x) + λ log '
                      'p(x|y)', default='', metavar='LM'),
    'class_lm_weight': _number(AMOUNT, 1.0, 'λ of --class_lm; 0: without it', metavar='LAMBDA'),
    'epsilon': _text('ε, one for all methods or adv=5,iadv=15,… (default: what the classifier was '
                     "trained with, else the paper's)", default='', metavar='E'),

    # The language model; upstream's flags of pretrain.py have dashes
    'unit': _number(UNITS, 1024, 'size of the LSTM', '-u'),
    'n-units-word': _number(UNITS, 256, 'size of word vectors'),
    'layer': _number(LAYERS, 1, 'layers of the LSTM'),
    'share-embedding': _action('output weights are the word vectors; needs --unit equal to '
                               '--n-units-word'),
    'adaptive-softmax': _action('adaptive softmax'),
    'no_adaptive_softmax': _action('plain softmax, also with preset paper',
                                   '--no-adaptive-softmax', on=False, dest='adaptive_softmax'),
    'norm-vecs': _action('word vectors start with length 1'),
    'forget_bias': _number(REAL, None, "start of the LSTM's forget biases (default: 0)",
                           '--forget-bias'),
    'cutoffs': _number(
        numbers(int), None, 'words at which the tails of the adaptive softmax begin (default: '
        '2000,10000, and for at most 10000 words a single tail, from 2000 or from the middle)',
        metavar='N,N,…'),
    'vocab': _text("the vocabulary, one word per line in id order like a run's vocab.txt",
                   metavar='FILE'),
    'use-full-vocab': _action('all training words, as --min_count 0'),
    'test': _action('quick trial on the first 20 reviews of each split'),
    'class_conditional': _own_switch('train p(x|y) on the labelled training reviews, starting from '
                                     '--init'),
    'init': _text('the language model that --class_conditional starts from; its sizes and, unless '
                  'given, its data flags count', default='', metavar='LM'),
    'bproplen': _number(BATCH, 35, 'words per window, over which gradients flow', '-l'),
    'epoch': _number(SIZE, 50, 'epochs', '-e'),
    'gradclip': _number(NORM, 5, 'largest norm of the gradient', '-c'),
    'decay-if-fail': _action('... only after an epoch whose validation perplexity did not fall'),
    'no_decay_if_fail': _action('alpha decays after each epoch, also with preset paper',
                                '--no-decay-if-fail', on=False, dest='decay_if_fail'),
    'decay-every': _action('... after each window instead'),
    'random-seed': _number(SEED, 1234, 'seed'),
    'patience': _number(COUNT, 0, 'stop after N epochs in a row without a better validation (0: '
                        'never)', metavar='N'),
    'test_epochs': _choice(('all', 'best'), 'all', 'test accuracy after all epochs, as upstream '
                           'measures it, or only that of the best epoch, at the end'),
    'min_improvement': _number(share, 0.0, 'stop after an epoch that lowers the validation '
                               'perplexity by less than this share (0: never)', metavar='SHARE'),
    'valid_split': _choice(('dev', 'test'), 'test', 'what chooses the best epoch; upstream takes '
                           'the test set', '--valid-split'),
    'eval_streams': _number(SIZE, 1, 'streams that an evaluation reads side by side: 1 as '
                            'upstream; more are faster, and each starts from a zero state',
                            '--eval-streams', metavar='N'),
    'log-interval': _number(SIZE, 500, 'print the training perplexity every N windows',
                            metavar='N'),
    'validation-interval': _number(
        COUNT, 30000, 'within an epoch print the validation perplexity every N windows, with '
        'no effect on training (0: never)', '--val-interval', metavar='N'),
    'save-all': _number(int, 0, 'keep the model of every epoch as epochN.model', metavar='1'),
}

DATA = ('lower', 'min_count', 'ignore_unk', 'use_unlabled_to_vocab')

# `AttackSettings` and the flags that give them.
ATTACK = {
    'epsilon': 'xi_var', 'level': 'norm_sentence_level', 'first_scale': 'xi_var_first',
    'mask_eos': 'mask_eos', 'k': 'nn_k', 'k_offset': 'nn_k_offset',
    'limit_vocabulary': 'use_limit_vocab', 'sparsity': 'sparsity', 'iterations': 'spgd_iters',
    'step': 'spgd_step', 'toward_only': 'spgd_toward_only', 'rank': 'sparsity_rank',
    'directions': 'spgd_directions', 'class_lm': 'class_lm',
    'class_lm_weight': 'class_lm_weight',
}
CLASS_LM = ('class_lm', 'class_lm_weight')
# Parts of a run that are described only where they are used, so that runs without them are those
# of versions that did not know them.
OPTIONAL = {'class_lm': CLASS_LM, 'class_conditional': ('class_conditional', 'init')}
SPGD = ('sparsity', 'spgd_iters', 'spgd_step', 'spgd_toward_only', 'sparsity_rank', 'mask_eos')
UPSTREAM_ATTACK = ('xi_var', 'xi_var_first', 'norm_sentence_level', 'nn_k', 'nn_k_offset',
                   'use_limit_vocab')


# Parsers --------------------------------------------------------------------------------------

def add(group: Any, *names: str, **changes: Any) -> None:
    """Adds flags to a parser or a group of one.

    Args:
        changes: of their declaration, for the few that differ between commands.
    """
    for name in names:
        flag = {**FLAGS[name], **changes}
        group.add_argument(f'--{name}', *flag.pop('names', ()), **flag)


def add_data(parser: ArgumentParser, **defaults: int) -> None:
    """Adds the flags that say which corpus is read and how its words are numbered."""
    add(parser, 'data_dir')
    add(parser.add_upstream_group('data'), *DATA)
    parser.set_defaults(**defaults)


def add_class_lm(parser: ArgumentParser) -> None:
    """Adds the flags of a class-conditional language model to a command that evaluates."""
    group = parser.add_argument_group('class-conditional language model')
    add(group, 'class_lm', metavar='C', help='attacks follow −log p(y|x) + λ log p(x|y) of this '
        'class-conditional language model, one for all methods or spgd=PATH,… (default: what the '
        'classifier was trained with)')
    add(group, 'class_lm_weight')


def add_method_choice(group: Any) -> None:
    add(group, 'method', choices=trainable())


# A trained model's own settings -----------------------------------------------------------------

RESTORE = 'restore it, or move the model elsewhere to use it without its settings'


def read_run(model: str) -> dict[str, Any]:
    """The settings of the run that a model lies in, from its `args.json`; `{}` without one."""
    path = os.path.join(os.path.dirname(model), folder.SETTINGS)
    try:
        return reading.read_json(path, reading.mapping(), RESTORE)
    except reading.MissingFileError:
        return {}


def show_run_defaults(parser: ArgumentParser) -> None:
    """Lets `--help` say which flags have a classifier's own settings as their defaults."""
    names = {*DATA, *ATTACK.values()} - {'xi_var'}
    for action in parser._actions:
        if action.dest in names and '(default' not in (action.help or ''):
            action.help = f"{action.help} (default: the classifier's)"


def set_run_defaults(parser: ArgumentParser, run: dict[str, Any], names: Iterable[str],
                     model: str) -> None:
    """Makes what a model was trained with the defaults of a parser's flags.

    Args:
        run: what `read_run` found next to `model`.
    """
    parser.set_defaults(**{name: checked(name, run[name], model) for name in names
                           if name in run})


def checked(name: str, value: Any, model: str) -> Any:
    """A value of `args.json`, if the flag takes it."""
    flag = FLAGS[name]
    if value is None and flag['default'] is None:
        return None
    try:
        converted = flag['type'](str(value)) if 'type' in flag else value
        if 'choices' in flag and converted not in flag['choices']:
            raise ValueError
    except (ValueError, TypeError, OverflowError, argparse.ArgumentTypeError):
        raise _damaged(name, value, model) from None
    return converted


def _damaged(name: str, value: Any, model: str) -> UserError:
    path = os.path.join(os.path.dirname(model), folder.SETTINGS)
    return UserError(f'{path} is damaged: {name} is {reading.shown(value)}; {RESTORE}')


class Reading(NamedTuple):
    """How a classifier reads texts: what of its corpus its run's folder tells.

    Attributes:
        words: the vocabulary in id order.
        label_names, tokenizer: as a `data.Corpus` has them.
        lower, ignore_unk: see `data.TextReader`.
        n_labeled_words: how many ids belong to words of labelled reviews; None: not known.
    """

    words: list[str]
    label_names: list[str]
    tokenizer: str
    lower: bool
    ignore_unk: bool
    n_labeled_words: int | None

    @property
    def n_class(self) -> int:
        return len(self.label_names)


def read_reading(model: str) -> Reading:
    """How a classifier reads texts, from the files beside it.

    Runs of older versions store neither labels nor tokenizer, upstream's models only words. Their
    classes are called by their numbers, and a vocabulary without capitals is taken for that of
    lower-cased text.
    """
    run = read_run(model)
    path = os.path.join(os.path.dirname(model), folder.VOCABULARY)
    words = data.read_vocabulary(path)
    if run.get('vocab_sha256') not in (None, data.vocabulary_sha256(words)):
        raise UserError(f'{path} does not list the words of its run: restore it, or use another '
                        'copy of both')
    names = run.get('label_names')
    if names is None:
        sizes = nets.sizes(checkpoints.read_headers(model), model)
        names = [str(number) for number in range(sizes['n_class'])]
    if not (isinstance(names, list) and all(isinstance(name, str) for name in names)
            and len(set(names)) == len(names)):
        raise _damaged('label_names', names, model)
    tokenizer = run.get('tokenizer', data.TOKENIZERS[0])
    if tokenizer not in list(data.TOKENIZERS):
        raise _damaged('tokenizer', tokenizer, model)
    n_labeled = run.get('train_vocab_size')
    if n_labeled is not None:
        if type(n_labeled) is not int or not 0 < n_labeled <= len(words) - len(data.SPECIALS):
            raise _damaged('train_vocab_size', n_labeled, model)
        n_labeled += len(data.SPECIALS)
    lower = (checked('lower', run['lower'], model) if 'lower' in run
             else all(word == word.lower() for word in words))
    ignore_unk = checked('ignore_unk', run.get('ignore_unk', 1), model)
    return Reading(words, names, tokenizer, bool(lower), bool(ignore_unk), n_labeled)


def describe(flags: argparse.Namespace) -> dict[str, Any]:
    """All flags of a training run, without those of parts that it does not use."""
    unused = {name for part, names in OPTIONAL.items() for name in names
              if not getattr(flags, part, None)}
    return {name: value for name, value in vars(flags).items() if name not in unused}


def load_corpus(settings: argparse.Namespace) -> data.Corpus:
    """The corpus that the flags of `add_data` describe."""
    return data.load(settings.data_dir, lower=bool(settings.lower),
                     min_count=settings.min_count, ignore_unk=bool(settings.ignore_unk),
                     use_unlabeled=bool(settings.use_unlabled_to_vocab))


# Methods and their attacks ------------------------------------------------------------------------

def per_method(text: str, methods: Sequence[str], flag: str,
               required: bool = True) -> dict[str, str]:
    """`{method: value}` from one value for all methods, or from `adv=X,iadv=Y`.

    A control without a value of its own has that of the method it belongs to, an attack that
    trains no classifier that of its host; `none` has the first. Empty text gives `{}`.

    Args:
        required: whether every method must have a value.
    """
    parts = [part.strip() for part in text.split(',') if part.strip()]
    if not any('=' in part and part.partition('=')[0].strip() in METHODS for part in parts):
        return dict.fromkeys(methods, text.strip()) if text.strip() else {}
    values = {}
    for part in parts:
        name, _, given = (piece.strip() for piece in part.partition('='))
        if name not in METHODS or not given:
            raise UserError(f'{flag} {part}: give {flag} as one value or as adv=…,iadv=…')
        values[name] = given
    first = next(iter(values.values()))
    found: dict[str, str] = {}
    for method in methods:
        value = values.get(method) or values.get(METHODS[method].lender or '')
        if value is None and method == 'none':
            value = first
        if value is None and required:
            raise UserError(f'{flag} has no value for the method {method}: add {method}=…')
        if value is not None:
            found[method] = value
    return found


def model_paths(text: str, methods: Sequence[str]) -> dict[str, str]:
    """The classifier of each method, from `--model`: files, or folders of runs."""
    return {method: folder.model_file(path)
            for method, path in per_method(text, methods, '--model').items()}


def parse_epsilons(text: str, methods: Sequence[str]) -> dict[str, float]:
    """The values of `--epsilon`, for the methods that it names."""
    values = {}
    for method, value in per_method(text, methods, '--epsilon', required=False).items():
        try:
            values[method] = AMOUNT(value)
        except (ValueError, argparse.ArgumentTypeError):
            raise UserError(f'--epsilon {value}: give numbers from 0 to {LARGEST[float]:,.0f}'
                            ) from None
    return values


def attack_settings(flags: argparse.Namespace, seed: int = 1234) -> AttackSettings:
    """The settings that a command's flags describe."""
    values = {name: getattr(flags, flag) for name, flag in ATTACK.items() if hasattr(flags, flag)}
    values['level'] = 'sentence' if values['level'] else 'word'
    for name in ('mask_eos', 'limit_vocabulary', 'toward_only'):
        values[name] = bool(values[name])
    if not values.get('class_lm_weight', 1):  # then there is nothing to add
        values['class_lm'] = ''
    return AttackSettings(seed=seed, **values)


def resolve_attacks(make_parser: Callable[[], ArgumentParser], argv: Sequence[str] | None,
                    models: dict[str, str], epsilons: dict[str, float], seed: int,
                    upstream_defaults: bool = False,
                    class_lms: dict[str, str] | None = None) -> dict[str, AttackSettings]:
    """The settings of each method's attack.

    A flag counts where it is given, else what the method's classifier was trained with, else the
    command's default; for ε, the paper's. A control has the settings of the method it belongs to.

    Args:
        make_parser: makes the command's parser.
        models: path of the classifier that each method attacks.
        epsilons: what `--epsilon` says.
        seed: of attacks that draw random numbers.
        upstream_defaults: what neither a flag nor the run says is upstream's default instead of the
            paper's, and so is ε without `--xi_var`, whatever the run says.
        class_lms: what `--class_lm` says.
    """
    found = {}
    for method, path in models.items():
        row, run, parser = METHODS[method], read_run(path), make_parser()
        _set_attack_defaults(parser, method, run, path, upstream_defaults)
        flags = parser.parse_args(argv)
        flags.xi_var = (0.0 if method == 'none' or row.swaps
                        else epsilons.get(method, flags.xi_var))
        if flags.xi_var is None:
            raise UserError(f'the paper has no ε for the method {method}: give --epsilon '
                            f'{method}=E')
        flags.class_lm = ((class_lms or {}).get(method) or run.get('class_lm') or ''
                          if row.guided else '')
        if row.needs_guide and not (flags.class_lm and flags.class_lm_weight):
            raise UserError(f'the method {method} needs a class-conditional language model: give '
                            f'--class_lm {method}=PATH and a --class_lm_weight above 0')
        found[method] = attack_settings(flags, seed)
    return {method: dataclasses.replace(settings, **{
        name: getattr(found[other], name)
        for name, other in METHODS[method].borrows.items() if other in found})
        for method, settings in found.items()}


def trained_attack(method: str, run: dict[str, Any], model: str) -> AttackSettings:
    """The settings of a method's attack on a classifier where nothing else is asked for.

    Args:
        run: what `read_run` found next to `model`.
    """
    parser = ArgumentParser()
    add(parser, *ATTACK.values())
    _set_attack_defaults(parser, method, run, model)
    flags = parser.parse_args([])
    flags.xi_var = flags.xi_var or 0.0  # where the paper has no ε
    return attack_settings(flags)


def _set_attack_defaults(parser: ArgumentParser, method: str, run: dict[str, Any], model: str,
                         upstream_defaults: bool = False) -> None:
    """Makes a classifier's own settings the defaults of the flags of `ATTACK`.

    ε is the one it was trained with if that was by this method. What the classifier does not say is
    the paper's.

    Args:
        upstream_defaults: see `resolve_attacks`.
    """
    row = METHODS[method]
    if not upstream_defaults:
        parser.set_defaults(xi_var=row.epsilon, **{
            flag: paper.CLASSIFIER[flag] for flag in ATTACK.values() if flag in paper.CLASSIFIER})
        if run.get('method') in [name for name in (row.trained_by, row.control_of) if name]:
            set_run_defaults(parser, run, ['xi_var'], model)
    set_run_defaults(parser, run, [flag for flag in ATTACK.values()
                                   if flag not in ('xi_var', 'class_lm')], model)


def unused(names: Iterable[str], rows: Sequence[Method]) -> list[str]:
    """Those of the flags that no method of `rows` depends on. Upstream's flags never are."""
    taken = {'update_nearest_batch'} if any(row.needs_neighbors for row in rows) else set()
    taken.update(ATTACK.get(name, name) for row in rows if row.attack for name in row.settings)
    ours = {*SPGD, 'spgd_directions', 'update_nearest_batch'}
    return sorted(ours.intersection(names) - taken)


def as_flags(settings: AttackSettings, method: str) -> dict[str, Any]:
    """The settings that a method's attack depends on, as flags and their values."""
    row = METHODS[method]
    values = {ATTACK.get(name, name): getattr(settings, name)
              for name in row.all_settings}
    if 'norm_sentence_level' in values:
        values['norm_sentence_level'] = settings.level == 'sentence'
    if not settings.class_lm:
        values = {flag: value for flag, value in values.items() if flag not in CLASS_LM}
    return {flag: int(value) if isinstance(value, bool) else value
            for flag, value in values.items()}


def chosen_switches(flags: argparse.Namespace) -> tuple[int, ...]:
    """The values of `SWITCHES`; SPGD is a kind of adversarial training."""
    return (flags.use_adv | flags.use_spgd, *(getattr(flags, name) for name in SWITCHES[1:]))


