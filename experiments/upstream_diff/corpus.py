"""Small corpora of made-up words in upstream's text format."""
import os
import random

NAMES = ['pos_train', 'neg_train', 'pos_dev', 'neg_dev', 'pos_test', 'neg_test', 'unlabled']


def write(folder, seed=7, n_words=60, sizes=(20, 20, 8, 8, 12, 12, 30), longest=12):
    """A corpus on which a handful of training steps takes a second."""
    draw = random.Random(seed)
    words = [f'w{number}' for number in range(n_words)]
    # Every word is in two unlabelled reviews, so that it is in the vocabulary.
    shuffled = draw.sample(words, n_words) + draw.sample(words, n_words)
    every = [shuffled[start:start + 10] for start in range(0, len(shuffled), 10)]
    reviews = {
        name: [[draw.choice(words) for _ in range(draw.randint(2, longest))]
               for _ in range(size)]
        for name, size in zip(NAMES, sizes)}
    reviews['unlabled'] += every
    _write(folder, reviews)


def write_large_vocabulary(folder, n_words=10100):
    """A corpus whose vocabulary fills both tails of upstream's adaptive softmax.

    Each word is in two unlabelled reviews. Frequent and rare words alternate, so that every
    window of two dozen words has some of all clusters.
    """
    head, middle, rare = range(0, 1998), range(1998, 9998), range(9998, n_words)
    labeled = [f'w{number}' for number in [*head, *middle]]
    mixed = []
    for place, number in enumerate(middle):
        mixed += [f'w{number}', f'w{head[place % len(head)]}', f'w{rare[place % len(rare)]}']
    half = len(labeled) // 2
    reviews = {
        'pos_train': [labeled[:half]], 'neg_train': [labeled[half:]],
        'pos_dev': [mixed[:9]], 'neg_dev': [mixed[9:18]],
        'pos_test': [mixed[:9]], 'neg_test': [mixed[9:18]],
        'unlabled': [mixed[start:start + 600] for start in range(0, len(mixed), 600)],
    }
    _write(folder, reviews)


def link(folder, source):
    """Makes a corpus of upstream's layout out of links to the text files of another."""
    os.makedirs(folder, exist_ok=True)
    for name in NAMES:
        path = os.path.join(source, f'imdb_{name}.txt')
        if os.path.exists(path):
            os.symlink(os.path.abspath(path), os.path.join(folder, f'imdb_{name}.txt'))


def _write(folder, reviews):
    os.makedirs(folder, exist_ok=True)
    for name in NAMES:
        with open(os.path.join(folder, f'imdb_{name}.txt'), 'w', encoding='utf-8') as stream:
            stream.writelines(' '.join(review) + '\n' for review in reviews[name])
