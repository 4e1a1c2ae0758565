"""Makes corpora and counts them: python -m interpretable_adv.data prepare, stats"""
import argparse
import json
import os

from interpretable_adv import cli, settings
from interpretable_adv.data import custom, imdb, tokens, toy
from interpretable_adv.data.corpus import statistics
from interpretable_adv.errors import UserError


def format_table2(table):
    """Table 2 as the paper lays it out; lengths of unlabelled reviews are left out as there."""
    columns = ['train', 'dev', 'test', 'unlabeled']
    rows = [('Num. examples', 'examples', '{:,}'), ('Min. sequence length', 'min', '{}'),
            ('Max. sequence length', 'max', '{}'), ('Avg. sequence length', 'mean', '{:.2f}')]
    lines = [' ' * 22 + ''.join(f'{name.capitalize():>11}' for name in columns)]
    for title, entry, form in rows:
        cells = [form.format(table[name][entry]) if entry in table[name] else 'N/A'
                 for name in columns]
        lines.append(f'{title:22}' + ''.join(f'{cell:>11}' for cell in cells))
    return '\n'.join(lines)


def make_parser():
    parser = cli.ArgumentParser(prog='python -m interpretable_adv.data', description=__doc__)
    commands = parser.add_subparsers(dest='command', required=True, prog=parser.prog,
                                     metavar='{prepare,stats}')
    # SUPPRESS: a flag that was not given is absent, so those of another dataset can be refused
    prepare = commands.add_parser('prepare', help='make the text files of a corpus',
                                  argument_default=argparse.SUPPRESS)
    prepare.add_argument('--dataset', choices=['imdb', 'toy', 'own'], required=True,
                         help='imdb: the Large Movie Review Dataset; toy: generated reviews; '
                              'own: your files')
    prepare.add_argument('--data_dir', required=True, help='folder to write to')
    group = prepare.add_argument_group('imdb')
    group.add_argument('--archive', help='aclImdb_v1.tar.gz, or the folder it unpacks to')
    group.add_argument('--download', action='store_true', default=argparse.SUPPRESS,
                       help='get the archive (84 MB) into DATA_DIR first; continues where an '
                            'interrupted download stopped')
    group = prepare.add_argument_group(
        'own', 'Files end in .csv or .tsv (with a header line) or .jsonl.')
    group.add_argument('--train', help='labelled texts')
    group.add_argument('--dev', help='labelled texts (default: a share of --train)')
    group.add_argument('--test', help='labelled texts')
    group.add_argument('--unlabeled', help='texts; also .txt, one a line')
    group.add_argument('--text_column', help='column or key of the text (default: text)')
    group.add_argument('--label_column', help='column or key of the label (default: label)')
    group.add_argument('--tokenizer', choices=tokens.TOKENIZERS,
                       help='words: runs of letters, digits and _; whitespace: what white space '
                            'separates, for text that is tokenised already and for other '
                            'languages (default: words)')
    group.add_argument('--dev_share', type=float, help='share of --train (default: 0.1)')
    group.add_argument('--seed', type=int, help='draws the dev set (default: 1234)')

    stats = commands.add_parser('stats', help='print Table 2 of a prepared corpus')
    stats.add_argument('--data_dir', required=True, help='folder with a prepared corpus')
    settings.add(stats, *settings.DATA)
    stats.set_defaults(lower=0, ignore_unk=1)
    stats.add_argument('--json', action='store_true', help='print all numbers and hashes as JSON')
    return parser


def main(argv=None):
    flags = make_parser().parse_args(argv)
    if flags.command == 'stats':
        print_statistics(settings.load_corpus(flags), flags.json)
    else:
        given = vars(flags)
        del given['command']
        _prepare(**given)


def _prepare(dataset, data_dir, **flags):
    allowed = {'imdb': {'archive', 'download'}, 'toy': set(),
               'own': {'train', 'dev', 'test', 'unlabeled', 'text_column', 'label_column',
                       'tokenizer', 'dev_share', 'seed'}}[dataset]
    for name in sorted(set(flags) - allowed):
        raise UserError(f'--{name} does not belong to --dataset {dataset}: leave it out')
    if dataset == 'toy':
        counts = toy.prepare(data_dir)
    elif dataset == 'imdb':
        if len(flags) != 1:
            raise UserError('--dataset imdb needs either --archive FILE or --download')
        counts = imdb.prepare(data_dir, flags.get('archive') or imdb.download(data_dir))
    else:
        if 'train' not in flags:
            raise UserError('--dataset own needs --train FILE')
        counts = custom.prepare(data_dir, **flags)
    for name, count in counts.items():
        print(f'{os.path.join(data_dir, name)}: {count:,} reviews')


def print_statistics(corpus, as_json=False):
    """Table 2 of a corpus, or all numbers and hashes as JSON."""
    result = statistics(corpus)
    if as_json:
        print(json.dumps(result, indent=1))
        return
    print(format_table2(result['table2']))
    print(f'Vocabulary: {corpus.n_vocab:,} entries with <eos> and <unk>, '
          f'{corpus.train_vocab_size:,} of them words of labelled training reviews')


def command():
    cli.run(main)


if __name__ == '__main__':
    command()
