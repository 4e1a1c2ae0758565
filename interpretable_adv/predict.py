"""Classifies texts: python -m interpretable_adv.predict 'A wonderful film.'

Texts are arguments, a file (--texts), or lines of standard input.
"""
import itertools
import json
import sys

from interpretable_adv import api, cli, data, settings
from interpretable_adv.data import custom
from interpretable_adv.errors import UserError
from interpretable_adv.evaluation import export
from interpretable_adv.runs import reading

NOTHING_KNOWN = '(no word that the model knows: this says nothing about the text)'


def make_parser():
    parser = cli.ArgumentParser(
        prog='python -m interpretable_adv.predict', usage='%(prog)s [flags] [text …]',
        description=__doc__.partition('\n')[0])
    parser.add_argument('text', nargs='*',
                        help='texts to classify (default: lines of standard input)')
    parser.add_argument('--model', default='demo', metavar='M',
                        help="a run's folder or its best.model; demo: the embedded classifier of "
                             'English film reviews')
    parser.add_argument('--texts', metavar='FILE',
                        help='classify the texts of this file, .txt with one per line, .csv, .tsv '
                             'or .jsonl')
    parser.add_argument('--text_column', default='text', help='column with the text in --texts')
    formats = parser.add_mutually_exclusive_group()
    formats.add_argument('--json', action='store_true', help='print a list of JSON objects')
    formats.add_argument('--csv', action='store_true',
                         help='print a table that a spreadsheet can open')
    settings.add(parser, 'gpu', 'device')
    return parser


def read_texts(flags):
    """The texts of the arguments, of a file, or of standard input."""
    if flags.text and flags.texts:
        raise UserError('texts as arguments and --texts exclude each other: leave one out')
    if flags.text:
        for text in flags.text:
            if any('\ud800' <= character <= '\udfff' for character in text):
                raise UserError(f'the text {ascii(text)} is not UTF-8; check the terminal')
        return flags.text
    if flags.texts:
        return [row.text for row in custom.read_rows(flags.texts, flags.text_column, None)]
    if sys.stdin.isatty():
        print('reading standard input, one text per line, until Ctrl-D', file=sys.stderr)
    content = reading.decode(sys.stdin.buffer.read(), 'standard input').removeprefix('\ufeff')
    return [line for line in content.split('\n') if line.strip()]


def write(stream, texts, found, labels, form):
    """Prints predictions as `json`, as `csv`, or for a reader."""
    if form == 'json':
        lines = [json.dumps({'text': text, 'label': one.label, 'probability': one.probability,
                             'probabilities': one.probabilities, 'known': one.known,
                             'unknown': one.unknown}, ensure_ascii=False)
                 for text, one in zip(texts, found)]
        stream.write('[' + ',\n '.join(lines) + ']\n')
    elif form == 'csv':
        table = export.Table(stream, ['index', 'label', 'probability', *(
            f'probability_{name}' for name in labels), 'text', 'unknown'])
        for index, (text, one) in enumerate(zip(texts, found)):
            table.add([index, one.label, *(round(value, 6) for value in (
                one.probability, *one.probabilities.values())), text, ' '.join(one.unknown)])
    else:
        width = max(map(len, labels))
        for text, one in zip(texts, found):
            words = export.CONTROL.sub(' ', text).split()
            if not one.known:
                words.append(NOTHING_KNOWN)
            stream.write(f'{one.label:{width}}  {100 * one.probability:5.1f} %  '
                         f'{" ".join(words)}\n')


def main(argv=None):
    flags = make_parser().parse_args(argv)
    texts = read_texts(flags)
    if not texts:
        raise UserError('there is no text: give some as arguments, with --texts FILE, or as lines '
                        'of standard input')
    device = flags.device or (f'@cupy:{flags.gpu}' if flags.gpu >= 0 else None)
    model = api.load(flags.model, device=device)
    found = model.predict(texts)
    write(sys.stdout, texts, found, model.labels,
          'json' if flags.json else 'csv' if flags.csv else 'text')
    sys.stdout.flush()
    report = data.describe_unknown(sum(one.known for one in found), itertools.chain.from_iterable(
        one.unknown for one in found))
    if report:
        print(report, file=sys.stderr)


def command():
    cli.run(main)


if __name__ == '__main__':
    command()
