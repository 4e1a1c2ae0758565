"""A classifier whose every number can be worked out by hand, for the tests of evaluation.

Word vectors lie in a plane and have length 1 (`<eos>`: a half). The logits of a review are the sum
of its vectors. With two classes the gradient of its loss is then the same at each word, away from
the right class: (−1, 1) for class 0, (1, −1) for class 1.
"""
import chainer
import chainer.functions as F
import chainer.links as L
import numpy as np

ANGLES = {'<eos>': 45, '<unk>': 225, 'good': 0, 'fine': 10, 'dull': 78, 'bad': 90, 'film': 40,
          'rare': 20}  # degrees; the first class is at 0, the second at 90
WORDS = list(ANGLES)
EOS, UNK, GOOD, FINE, DULL, BAD, FILM, RARE = range(8)
N_LABELED = 7  # all but `rare`
VECTORS = np.array([[np.cos(np.radians(angle)), np.sin(np.radians(angle))]
                    for angle in ANGLES.values()], 'f')
VECTORS[EOS] /= 2


class Bag(chainer.Chain):
    """Looks like `nets.Classifier` from outside."""

    def __init__(self, vectors=VECTORS, dropout=0.5):
        super().__init__()
        self.dropout = dropout
        with self.init_scope():
            self.word_embed = L.EmbedID(*vectors.shape, initialW=vectors)

    def embed(self, ids):
        return F.dropout(self.word_embed(ids), self.dropout)

    def classify(self, embedded, lengths):
        parts = F.split_axis(embedded, np.cumsum(lengths)[:-1], 0, force_tuple=True)
        return F.stack([F.sum(part, axis=0) for part in parts])

    def forward(self, sequences, perturbation=None):
        embedded = self.embed(self.xp.concatenate(sequences))
        if perturbation is not None:
            embedded = embedded + perturbation
        return self.classify(embedded, [len(sequence) for sequence in sequences])


def reviews(*words):
    """Reviews as arrays of ids."""
    return [np.array(review, np.int32) for review in words]
