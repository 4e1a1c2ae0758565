"""Presets: plain files that say what an experiment runs, one setting a line.

A section holds flags of one command, written as that command takes them:

    [plan]         corpus, seeds and methods of the experiment
    [lm]           python -m lm.pretrain
    [class_lm]     the same for the class-conditional model; wins over [lm]
    [train]        python -m interpretable_adv.train, every classifier
    [adv], …       the same, one method only; wins over [train]
    [perplexity]   python -m lm.perplexity
    [sweep]        the same at many step sizes; wins over [perplexity]
    [robustness]   python -m interpretable_adv.robustness
    [sparsity]     SPGD with several σ, `values = 0 0.5 0.75`; its flags win over [spgd]
    [analysis]     python -m interpretable_adv.analysis
    [visualize]    python -m interpretable_adv.visualize
    [grid_search]  values to try, e.g. `adv.xi_var = 1 2 5`

A flag without a value is a switch. Text after # is a comment.
"""
import configparser
import pathlib
import re

from interpretable_adv import methods, paper
from interpretable_adv.errors import UserError
from interpretable_adv.runs import reading

FOLDER = pathlib.Path(__file__).parent / 'presets'

DATASETS = ('imdb', 'toy')
PLAN = {'dataset': 'toy', 'seeds': '1', 'lm_seed': '1', 'methods': ' '.join(paper.ACCURACY),
        'results': ''}


def sections():
    """The sections that a preset may have."""
    return ('plan', 'lm', 'class_lm', 'train', *methods.classifiers(), 'perplexity', 'sweep',
            'robustness', 'sparsity', 'analysis', 'visualize', 'grid_search')


class Preset:
    """A named set of settings: `preset['train']` is a dict of flags and their text."""

    def __init__(self, name, sections):
        self.name = name
        self._sections = sections

    def __getitem__(self, section):
        return self._sections.get(section, {})

    def plan(self, key):
        return self['plan'].get(key, PLAN[key])

    @property
    def methods(self):
        names = self.plan('methods').split()
        for name in names:
            check_method(name, f'preset {self.name}')
        return names

    @property
    def seeds(self):
        return parse_seeds(self.plan('seeds'))

    @property
    def lm_seed(self):
        return parse_seeds(self.plan('lm_seed'))[0]

    @property
    def results(self):
        """Name of the folder below experiments/results."""
        return self.plan('results') or self.name

    @property
    def sparsities(self):
        """The σ that [sparsity] compares, and the flags of those trainings."""
        flags = dict(self['sparsity'])
        text = flags.pop('values', '')
        try:
            values = [float(value) for value in text.split()]
        except ValueError:
            raise UserError(f'[sparsity] values = {text}: give numbers, e.g. 0 0.5 0.75') from None
        if flags and not values:
            raise UserError('[sparsity] has no values: give some, e.g. values = 0 0.5 0.75')
        return values, flags

    def check(self):
        """Refuses a [plan] that no command could carry out."""
        if self.plan('dataset') not in DATASETS:
            raise UserError(f'preset {self.name}: no dataset {self.plan("dataset")!r}; there are '
                            f'{", ".join(DATASETS)}')
        if not re.fullmatch(r'\w[\w.-]*', self.results):
            raise UserError(f'preset {self.name}: results = {self.results} is no plain name')
        _ = self.methods, self.seeds, self.lm_seed, self.sparsities

    def merged(self, *sections, **first):
        """Settings of several sections; later ones win, and all win over `first`."""
        for section in sections:
            first.update(self[section])
        return first

    def changed(self, section, **values):
        """The preset with other values in one section."""
        return Preset(self.name, {**self._sections, section: {**self[section], **values}})


def check_method(name, place):
    """Refuses what is no classifier."""
    if name not in methods.classifiers():
        raise UserError(f'{place}: no method {name!r}; there are '
                        f'{", ".join(methods.classifiers())}')


def arguments(settings):
    """Settings as a command's arguments; an empty value makes a switch."""
    return [part for name, value in settings.items()
            for part in ('--' + name, *([str(value)] if str(value) else []))]


def names():
    """The presets that come with the project."""
    return sorted(path.stem for path in FOLDER.glob('*.ini'))


def load(name, overrides=()):
    """Reads a preset.

    Args:
        name: of a file in `experiments/presets`, or a path.
        overrides: texts `section.flag=value`, which win over the file.
    """
    path = FOLDER / f'{name}.ini'
    if not path.is_file():
        path = pathlib.Path(name)
    parser = configparser.ConfigParser(
        interpolation=None, inline_comment_prefixes=('#',), comment_prefixes=('#',),
        delimiters=('=',), allow_no_value=True, empty_lines_in_values=False)
    parser.optionxform = str  # flags keep their case
    try:
        text = reading.decode(reading.read_bytes(path), path)
        parser.read_string(text, str(path))
    except reading.MissingFileError:
        raise UserError(f'preset {name!r}: No such file or directory; there are '
                        f'{", ".join(names())}, or give the path of a preset file') from None
    except configparser.Error as error:
        raise UserError(f'{path}: {error}') from error
    found = {section: {flag: value or '' for flag, value in parser.items(section)}
             for section in parser.sections()}
    for text in overrides:
        section, flag, value = _parse_override(text)
        found.setdefault(section, {})[flag] = value
    for section, values in found.items():
        if section not in sections():
            raise UserError(f'{path}: no section [{section}]; there are {", ".join(sections())}')
        if section == 'plan' and not set(values) <= set(PLAN):
            raise UserError(f'{path}: [plan] takes {", ".join(PLAN)}, not '
                            f'{", ".join(sorted(set(values) - set(PLAN)))}')
    preset = Preset(path.stem, found)
    preset.check()
    return preset


def _parse_override(text):
    target, equals, value = text.partition('=')
    section, dot, flag = target.partition('.')
    if not (equals and dot and flag) or section not in sections():
        raise UserError(f'{text!r}: overrides read section.flag=value, e.g. train.n_epoch=3, with '
                        f'a section of {", ".join(sections())}')
    return section, flag, value


def parse_seeds(text):
    """`'1 2 5'` → `[1, 2, 5]`."""
    try:
        seeds = [int(part) for part in text.replace(',', ' ').split()]
    except ValueError:
        seeds = []
    if not seeds or min(seeds) < 0 or len(set(seeds)) < len(seeds):
        raise UserError(f'seeds {text!r}: give different whole numbers, e.g. "1 2 3"')
    return seeds
