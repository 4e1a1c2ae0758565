"""Trains the language model."""
import argparse
import math
import os

import chainer
import numpy as np
from chainer import optimizers, serializers
from lm_nets import RNNForLM
from utils import load_dataset_imdb
from utils_pretrain import Streams


def main():
    parser = argparse.ArgumentParser()
    add = parser.add_argument
    add('--batchsize', '-b', type=int, default=20)
    add('--bproplen', '-l', type=int, default=35)
    add('--epoch', '-e', type=int, default=50)
    add('--gpu', '-g', type=int, default=-1)
    add('--gradclip', '-c', type=float, default=5)
    add('--out', '-o', default='result')
    add('--resume', '-r', default='')
    add('--unit', '-u', type=int, default=1024)
    add('--n-units-word', type=int, default=256)
    add('--layer', type=int, default=1)
    add('--dropout', type=float, default=0.5)
    add('--alpha', type=float, default=0.001)
    add('--alpha_decay', type=float, default=0.9999)
    add('--dataset', default='imdb', choices=['imdb', 'elec', 'rotten', 'dbpedia', 'rcv1'])
    add('--vocab')
    add('--log-interval', type=int, default=500)
    add('--validation-interval', '--val-interval', type=int, default=30000)
    add('--random-seed', type=int, default=1234)
    add('--save-all', type=int, default=0)
    for name in ('test', 'share-embedding', 'adaptive-softmax', 'decay-if-fail',
                 'use-full-vocab', 'decay-every', 'norm-vecs'):
        add('--' + name, action='store_true')
    args = parser.parse_args()
    os.makedirs(args.out, exist_ok=True)

    (vocab, _), _, (text, test), _ = load_dataset_imdb(
        include_pretrain=True, lower=False, min_count=1, ignore_unk=True)
    model = RNNForLM(len(vocab), args.unit, args.layer, args.dropout, args.share_embedding,
                     args.adaptive_softmax, args.n_units_word)
    optimizer = optimizers.Adam(alpha=args.alpha)
    optimizer.setup(model)
    optimizer.add_hook(chainer.optimizer.GradientClipping(args.gradclip))

    def perplexity():
        """Of the test set, which upstream takes for validation too."""
        state, total = model.state, 0.0
        model.reset_state()
        targets = np.roll(test, -1)
        window = 2 * args.batchsize * args.bproplen
        with chainer.using_config('train', False), chainer.no_backprop_mode():
            for start in range(0, len(test), window):
                part = slice(start, start + window)
                total += float(model(test[part][None], targets[part][None]).array)
        model.state = state
        return math.exp(total / len(test))

    streams = Streams(text, args.batchsize)
    best, epoch, seen, count = math.inf, 0, [], 0
    path = os.path.join(args.out, 'best.model')
    while epoch < args.epoch:
        words, targets = streams.window(args.bproplen)
        if np.random.rand() < 0.01:
            model.reset_state()
        loss = model(words, targets) / args.batchsize
        model.cleargrads()
        loss.backward()
        optimizer.update()
        seen.append(float(loss.array))
        count += 1
        if count % args.log_interval == 0:
            print(f'i {count}\tperp {math.exp(sum(seen) / len(seen) / args.bproplen):.3f}')
            seen = []
        if streams.epoch > epoch:
            epoch = streams.epoch
            value = perplexity()
            print(f'Epoch {epoch}: val perp {value:.3f}')
            if value < best:
                best = value
                serializers.save_npz(path, model)
            optimizer.alpha *= args.alpha_decay
            print(f'*lr = {optimizer.alpha:.8f}')
    serializers.load_npz(path, model)
    print('valid perplexity:', perplexity())
    print('test perplexity:', perplexity())


if __name__ == '__main__':
    main()
