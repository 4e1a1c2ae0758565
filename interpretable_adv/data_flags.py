"""Train's flags about data, for every command that reads the corpus of a trained model."""
import json
import pathlib

from interpretable_adv import cli, data

NAMES = ('lower', 'min_count', 'ignore_unk', 'use_unlabled_to_vocab')


def add(parser, lower=1):
    """Adds the flags.

    Args:
        lower: the default of `--lower`, in which upstream's commands differ.
    """
    parser.add_argument('--data_dir', default='data/imdb',
                        help='folder made by interpretable_adv.data')
    add = parser.add_upstream_group('data').add_argument
    switch = {'type': int, 'choices': (0, 1)}
    add('--lower', **switch, default=lower, help='lower-case all words')
    add('--min_count', type=cli.at_least(0), default=1,
        help='words in so many reviews or fewer are unknown')
    add('--ignore_unk', **switch, default=0, help='drop unknown words')
    add('--use_unlabled_to_vocab', **switch, default=1,
        help='read the unlabelled reviews, and count their words')


def parse_with_model(parser, argv, model='model'):
    """Parses; data flags that are not given are those that the model was trained with.

    Args:
        model: name of the setting that holds the model's path.
    """
    path = getattr(parser.parse_args(argv), model)
    try:
        text = (pathlib.Path(path).parent / 'args.json').read_text(encoding='utf-8')
        trained_with = json.loads(text)
    except (OSError, ValueError):
        return parser.parse_args(argv)
    parser.set_defaults(**{name: trained_with[name] for name in NAMES if name in trained_with})
    return parser.parse_args(argv)


def load_corpus(settings):
    """The corpus that the flags describe."""
    return data.load(settings.data_dir, lower=bool(settings.lower),
                     min_count=settings.min_count, ignore_unk=bool(settings.ignore_unk),
                     use_unlabeled=bool(settings.use_unlabled_to_vocab))
