"""Perturbs test reviews. Ends in an error: the network asks for a flag that is missing here."""
import argparse
import pickle

import nets
import utils
from train import FLOATS, INTEGERS, STRINGS


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument('--gpu', '-g', type=int, default=-1)
    flags = {**INTEGERS, 'lower': 0, 'analysis_mode': 0, 'analysis_limit': 100}
    for name in ('update_nearest_epoch', 'use_seq_labeling', 'use_bilstm'):
        del flags[name]
    for kind, defaults in ((int, flags), (float, FLOATS), (str, STRINGS)):
        for name, default in defaults.items():
            parser.add_argument('--' + name, type=kind, default=default)
    parser.add_argument('--dataset', default='imdb',
                        choices=['imdb', 'elec', 'rotten', 'dbpedia', 'rcv1'])
    args = parser.parse_args()
    (vocab, _), _, _, _ = utils.load_dataset_imdb(lower=args.lower == 1)
    model = nets.uniLSTM_iVAT(n_vocab=len(vocab), args=args)
    with open(args.save_name, 'wb') as stream:
        pickle.dump(model.word_embed.W.array, stream)


if __name__ == '__main__':
    main()
