"""Prepared text files → vocabulary → ids."""
import numpy as np


def read(name, lower):
    with open(f'data/imdb/imdb_{name}.txt') as stream:  # without an encoding, as upstream
        lines = stream.read().splitlines()
    return [(line.lower() if lower else line).split() for line in lines]


def load_dataset_imdb(include_pretrain=False, lower=True, min_count=0, ignore_unk=False,
                      use_semi_data=False, add_labeld_to_unlabel=True):
    pos_train, neg_train = read('pos_train', lower), read('neg_train', lower)
    unlabeled = read('unlabled', lower) if include_pretrain else []
    seen_in = {}
    for review in pos_train + neg_train + unlabeled:
        for word in dict.fromkeys(review):
            seen_in[word] = seen_in.get(word, 0) + 1
    vocab = {'<eos>': 0, '<unk>': 1}
    for review in pos_train + neg_train + unlabeled:
        for word in review:
            if seen_in[word] > min_count:
                vocab.setdefault(word, len(vocab))
    in_train = {word for review in pos_train + neg_train for word in review if word in vocab}

    def number(reviews):
        return [np.array([vocab.get(word, 1) for word in review
                          if word in vocab or not ignore_unk] + [0], np.int32)
                for review in reviews]

    def split(pos, neg):
        ids = number(pos + neg)
        labels = np.array([1] * len(pos) + [0] * len(neg), np.int32)
        return ids, [len(review) for review in ids], labels

    train = split(pos_train, neg_train)
    dev = split(read('pos_dev', lower), read('neg_dev', lower))
    test = split(read('pos_test', lower), read('neg_test', lower))
    texts = None
    if include_pretrain:
        reviews = number(unlabeled) + (train[0] if add_labeld_to_unlabel else [])
        texts = ((reviews, [len(review) for review in reviews]) if use_semi_data
                 else (np.concatenate(reviews), np.concatenate(test[0])))
    return (vocab, seen_in), train + dev + test, texts, len(in_train)


def load_fce(lower=False):
    return load_file_preprocess_fce('fce-public.train.original.tsv')  # noqa: F821  as upstream
