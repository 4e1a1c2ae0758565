"""Trains the classifier."""
import argparse
import logging
import os
import random

import chainer
import chainer.functions as F
import lm_nets
import nets
import numpy as np
import utils
from chainer import optimizers, serializers

to_gpu = chainer.cuda.to_gpu

INTEGERS = {
    'batchsize': 32, 'batchsize_semi': 64, 'n_epoch': 30, 'use_unlabled_to_vocab': 1,
    'use_rational': 0, 'n_layers': 1, 'debug_mode': 0, 'use_exp_decay': 1, 'freeze_word_emb': 0,
    'use_adv': 0, 'lower': 1, 'min_count': 1, 'ignore_unk': 0, 'use_semi_data': 0,
    'add_labeld_to_unlabel': 1, 'norm_sentence_level': 1, 'eval': 0, 'emb_dim': 256,
    'hidden_dim': 1024, 'hidden_cls_dim': 30, 'adaptive_softmax': 1, 'random_seed': 1234,
    'n_class': 2, 'word_only': 0, 'use_attn_d': 0, 'nn_k': 10, 'nn_k_offset': 1, 'online_nn': 0,
    'use_limit_vocab': 1, 'batchsize_nn': 10, 'update_nearest_epoch': 1, 'use_seq_labeling': 0,
    'use_bilstm': 0,
}
FLOATS = {'alpha': 0.001, 'alpha_decay': 0.0, 'clip': 5.0, 'dropout': 0.5, 'xi_var': 1.0,
          'xi_var_first': 1.0, 'nl_factor': 1.0}
STRINGS = {'pretrained_model': '', 'save_name': 'sentiment_model', 'load_trained_lstm': ''}


def direction(model, interpretable):
    """Gradient of the first step's loss, as a direction for every word."""
    if not interpretable:
        return model.d_var.grad
    weights = F.normalize(model.attention_d_var.grad, axis=1).array
    return (weights * model.dir_normed.array).sum(axis=1)


def main():
    logging.basicConfig(level=logging.INFO)
    parser = argparse.ArgumentParser()
    parser.add_argument('--gpu', '-g', type=int, default=-1)
    for kind, flags in ((int, INTEGERS), (float, FLOATS), (str, STRINGS)):
        for name, default in flags.items():
            parser.add_argument('--' + name, type=kind, default=default)
    parser.add_argument('--dataset', default='imdb',
                        choices=['imdb', 'elec', 'rotten', 'dbpedia', 'rcv1', 'fce'])
    args = parser.parse_args()
    random.seed(args.random_seed)
    np.random.seed(args.random_seed)
    os.makedirs('models', exist_ok=True)

    (vocab, _), splits, semi, train_vocab_size = utils.load_dataset_imdb(
        include_pretrain=args.use_unlabled_to_vocab, lower=args.lower == 1,
        min_count=args.min_count, ignore_unk=args.ignore_unk, use_semi_data=args.use_semi_data,
        add_labeld_to_unlabel=args.add_labeld_to_unlabel)
    train, dev, test = splits[:3], splits[3:6], splits[6:]

    model = nets.uniLSTM_iVAT(
        n_vocab=len(vocab), emb_dim=args.emb_dim, hidden_dim=args.hidden_dim,
        use_dropout=args.dropout, n_layers=args.n_layers, hidden_classifier=args.hidden_cls_dim,
        use_adv=args.use_adv, xi_var=args.xi_var, args=args)
    model.train_vocab_size, model.vocab_size = train_vocab_size, len(vocab)
    if args.pretrained_model:
        pretrained = lm_nets.RNNForLM(len(vocab), 1024, args.n_layers, 0.50,
                                      share_embedding=False,
                                      adaptive_softmax=args.adaptive_softmax)
        serializers.load_npz(args.pretrained_model, pretrained)
        pretrained.lstm = pretrained.rnn
        model.set_pretrained_lstm(pretrained, word_only=args.word_only)
    if args.load_trained_lstm:
        serializers.load_hdf5(args.load_trained_lstm, model)
    if args.use_attn_d:
        model.compute_all_nearest_words(top_k=args.nn_k)

    optimizer = optimizers.Adam(alpha=args.alpha)
    optimizer.setup(model)
    optimizer.add_hook(chainer.optimizer.GradientClipping(args.clip))

    def accuracy(ids, lengths, labels):
        right = 0
        with chainer.using_config('train', False), chainer.no_backprop_mode():
            for start in range(0, len(ids), args.batchsize):
                part = slice(start, start + args.batchsize)
                logits = model([to_gpu(x) for x in ids[part]], lengths[part]).array
                right += (logits.argmax(axis=1) == labels[part]).sum()
        return right / float(len(ids)) * 100

    def step(x, lengths, y, semi_x, semi_lengths):
        output = model(x, lengths)
        loss = F.softmax_cross_entropy(output, y)
        if args.use_adv:
            first = F.softmax_cross_entropy(model(x, lengths, first_step=True), y)
            model.cleargrads()
            first.backward()
            d = direction(model, args.use_attn_d)
            output = model(x, lengths, d=d)
            loss += F.softmax_cross_entropy(output, y) * args.nl_factor
        if args.use_semi_data:
            clean = model(semi_x, semi_lengths).array
            first = nets.kl_loss(np, clean, model(semi_x, semi_lengths, first_step=True))
            model.cleargrads()
            first.backward()
            d = direction(model, args.use_attn_d)
            loss += nets.kl_loss(np, clean, model(semi_x, semi_lengths, d=d))
        model.cleargrads()
        loss.backward()
        optimizer.update()
        return float(loss.array), int((output.array.argmax(axis=1) == y).sum())

    if args.eval:
        # The second value is missing, as upstream.
        logging.info(' [dev] accuracy:{}, length:{}'.format(accuracy(*dev)))  # noqa: F524
    best, global_step = 0.0, 0.0
    for epoch in range(args.n_epoch):
        total, right = [], 0
        order = np.random.permutation(len(train[0]))
        if args.use_semi_data:
            semi_order = np.concatenate([np.random.permutation(len(semi[0])) for _ in range(2)])
        for number, start in enumerate(range(0, len(order), args.batchsize)):
            global_step += 1
            model.set_train(True)
            batch = order[start:start + args.batchsize]
            semi_batch = (semi_order[number * args.batchsize_semi:][:args.batchsize_semi]
                          if args.use_semi_data else [])
            loss, correct = step(
                [to_gpu(train[0][i]) for i in batch], [train[1][i] for i in batch],
                to_gpu(train[2][batch]), [to_gpu(semi[0][i]) for i in semi_batch],
                [semi[1][i] for i in semi_batch])
            total.append(loss)
            right += correct
            if args.alpha_decay > 0:
                optimizer.hyperparam.alpha = args.alpha * args.alpha_decay ** global_step
        logging.info(f' [train] sum_loss: {sum(total) / len(total)}')
        logging.info(f' [train] accuracy:{right / float(len(order)) * 100}')
        model.set_train(False)
        on_dev, on_test = accuracy(*dev), accuracy(*test)
        logging.info(f' [dev] accuracy:{on_dev}')
        logging.info(f' [test] accuracy:{on_test}')
        if on_dev > best:
            best = on_dev
            serializers.save_hdf5(f'./models/{args.save_name}_{epoch}.model', model)
        if args.use_attn_d and args.update_nearest_epoch and (
                epoch % args.update_nearest_epoch == 0):
            model.compute_all_nearest_words(top_k=args.nn_k)


if __name__ == '__main__':
    main()
