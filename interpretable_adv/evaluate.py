"""Measures a classifier: python -m interpretable_adv.evaluate --model M --data_dir D"""
import csv

import numpy as np

from interpretable_adv import cli, nets, settings
from interpretable_adv.errors import UserError
from interpretable_adv.runs import devices, folder
from interpretable_adv.runs.files import atomic_write


def make_parser():
    parser = cli.ArgumentParser(prog='python -m interpretable_adv.evaluate', description=__doc__)
    parser.add_argument('--model', required=True, type=folder.model_file,
                        help='best.model of a training run, or its folder; demo: the embedded one')
    settings.add(parser, 'split')
    parser.add_argument('--predictions', metavar='FILE.csv',
                        help='write label, prediction and logits of every review')
    settings.add(parser, 'gpu', 'device')
    settings.add_data(parser)
    settings.show_run_defaults(parser)
    return parser


def parse(argv=None):
    """The flags; data flags that are not given are those that the model was trained with."""
    parser = make_parser()
    model = parser.parse_args(argv).model
    settings.set_run_defaults(parser, settings.read_run(model), settings.DATA, model)
    flags = parser.parse_args(argv)
    flags.model = model
    return flags


def write_predictions(path, labels, logits):
    """One row per review: `index,label,prediction,logit_0,logit_1,…`."""
    with atomic_write(path) as stream:
        writer = csv.writer(stream, lineterminator='\n')
        writer.writerow(['index', 'label', 'prediction',
                         *(f'logit_{k}' for k in range(logits.shape[1]))])
        predictions = logits.argmax(axis=1)
        for index, (label, prediction, row) in enumerate(zip(labels, predictions, logits)):
            writer.writerow([index, label, prediction, *map(repr, row.tolist())])


def main(argv=None):
    flags = parse(argv)
    device = devices.choose(flags.gpu, flags.device)
    corpus = settings.load_corpus(flags)
    model = nets.load_classifier(flags.model, corpus.words, corpus.n_class)
    model.to_device(device)
    split = getattr(corpus, flags.split)
    if not len(split.labels):
        raise UserError(f'{flags.data_dir} has no {flags.split} reviews')

    logits = nets.predict(model, split.sequences)
    correct = logits.argmax(axis=1) == split.labels
    if flags.predictions:
        write_predictions(flags.predictions, split.labels, logits)
    print(f'{flags.split}: {100 * np.mean(correct):.2f} % of {len(correct):,} reviews right')


def command():
    cli.run(main)


if __name__ == '__main__':
    command()
