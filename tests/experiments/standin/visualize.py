"""Draws what analysis.py wrote."""
import argparse
import pickle

import seaborn as sns


def vis(items_obj, figsave='a'):
    sns.heatmap(items_obj)


if __name__ == '__main__':
    parser = argparse.ArgumentParser()
    parser.add_argument('--pickle_filename', type=str, default='')
    parser.add_argument('--savefig_dir', type=str, default='figs')
    parser.add_argument('--xi_var', type=float, default=15.0)
    args = parser.parse_args()
    with open(args.pickle_filename, 'rb') as stream:
        vis(pickle.load(stream))
