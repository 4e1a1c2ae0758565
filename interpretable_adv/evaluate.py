"""Measures a classifier: python -m interpretable_adv.evaluate --model M --data_dir D"""
import csv

import numpy as np

from interpretable_adv import checkpoints, cli, data_flags, devices, nets
from interpretable_adv.files import atomic_write


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
    parser = cli.ArgumentParser(prog='python -m interpretable_adv.evaluate', description=__doc__)
    parser.add_argument('--model', required=True, help='best.model of a training run')
    parser.add_argument('--split', choices=('train', 'dev', 'test'), default='test',
                        help='reviews to classify')
    parser.add_argument('--predictions', metavar='FILE.csv',
                        help='write label, prediction and logits of every review')
    parser.add_argument('--gpu', '-g', type=int, default=-1, help='number of the GPU')
    parser.add_argument('--device', help="Chainer's name of a device; instead of --gpu")
    data_flags.add(parser)
    settings = data_flags.parse_with_model(parser, argv)

    device = devices.choose(settings.gpu, settings.device)
    corpus = data_flags.load_corpus(settings)
    model = checkpoints.load_classifier(settings.model, corpus.words)
    model.to_device(device)
    split = getattr(corpus, settings.split)
    if not len(split.labels):
        raise cli.UserError(f'{settings.data_dir} has no {settings.split} reviews')

    logits = nets.predict(model, split.sequences)
    correct = logits.argmax(axis=1) == split.labels
    if settings.predictions:
        write_predictions(settings.predictions, split.labels, logits)
    print(f'{settings.split}: {100 * np.mean(correct):.2f} % of {len(correct):,} reviews right')


def command():
    cli.run(main)


if __name__ == '__main__':
    command()
