"""The classifier: embedding, LSTM, one hidden layer."""
import chainer
import chainer.functions as F
import numpy as np

from interpretable_adv.errors import UserError
from interpretable_adv.nn.dropout import dropout
from interpretable_adv.nn.embedding import EmbedID
from interpretable_adv.nn.functions import Linear
from interpretable_adv.nn.lstm import LSTM
from interpretable_adv.runs import checkpoints


class Classifier(chainer.Chain):
    """Classifies a review by the LSTM's state after its last word.

    Parameter names, the order of construction (which fixes the random stream) and the
    initialisation are upstream's, so checkpoints and losses carry over.

    Args:
        initialW: of all weights, as Chainer's links take it; None: upstream's random numbers.
    """

    def __init__(self, n_vocab, emb_dim=256, hidden_dim=1024, hidden_cls_dim=30, n_class=2,
                 n_layers=1, dropout=0.5, initialW=None):  # noqa: N803 (Chainer's name)
        super().__init__()
        self.dropout = dropout
        with self.init_scope():
            self.word_embed = EmbedID(n_vocab, emb_dim, initialW)
            self.hidden_layer = Linear(hidden_dim, hidden_cls_dim, initialW=initialW)
            self.output_layer = Linear(hidden_cls_dim, n_class, initialW=initialW)
            self.uni_lstm = LSTM(n_layers, emb_dim, hidden_dim, dropout, initialW=initialW)
        for layer in self.uni_lstm:
            # Two biases add up in the forget gate; upstream sets both.
            layer.b1.array[...] = 1
            layer.b5.array[...] = 1

    def embed(self, ids):
        """Word vectors with dropout: ids `(N,)` or `(N, K)` → `(N, …, emb_dim)`."""
        return dropout(self.word_embed(ids), self.dropout)

    def classify(self, embedded, lengths):
        """Logits `(len(lengths), n_class)` of reviews given as word vectors `(N, emb_dim)`."""
        states, _, _ = self.uni_lstm(embedded, lengths, outputs=False)
        hidden = F.relu(self.hidden_layer(states[-1]))
        return self.output_layer(dropout(hidden, self.dropout))

    def forward(self, sequences, perturbation=None):
        """Logits of reviews given as a list of id arrays.

        Args:
            perturbation: `(N, emb_dim)`, added to the word vectors.
        """
        embedded = self.embed(self.xp.concatenate(sequences))
        if perturbation is not None:
            embedded = embedded + perturbation
        return self.classify(embedded, [len(sequence) for sequence in sequences])


def by_length(sequences, words_per_batch):
    """Batches of indices into `sequences`: alike in length, and of bounded size.

    Without dropout a review's logits do not depend on its batch, so the order is free.
    """
    lengths = np.array([len(sequence) for sequence in sequences])
    order = np.argsort(lengths, kind='stable')
    batches, words = [[]], 0
    for index in order:
        if batches[-1] and words + lengths[index] > words_per_batch:
            batches.append([])
            words = 0
        batches[-1].append(int(index))
        words += lengths[index]
    return [batch for batch in batches if batch]


def predict(model, sequences, words_per_batch=20000):
    """Logits `(len(sequences), n_class)` on the host, without dropout."""
    logits = None
    with chainer.using_config('train', False), chainer.no_backprop_mode():
        for batch in by_length(sequences, words_per_batch):
            output = model([model.xp.asarray(sequences[i]) for i in batch]).array
            if logits is None:
                logits = np.empty((len(sequences), output.shape[1]), np.float32)
            logits[batch] = chainer.cuda.to_cpu(output)
    return logits


def sizes(headers, path):
    """The arguments of `Classifier`, read off a checkpoint's shapes."""
    try:
        n_vocab, emb_dim = headers['word_embed/W'].shape
        hidden_cls_dim, hidden_dim = headers['hidden_layer/W'].shape
        n_class, = headers['output_layer/b'].shape
    except (KeyError, ValueError):
        raise UserError(f'{path} is not a classifier: it lacks word_embed/W, hidden_layer/W or '
                        'output_layer/b; give a model that interpretable_adv.train wrote'
                        ) from None
    return {'n_vocab': n_vocab, 'emb_dim': emb_dim, 'hidden_dim': hidden_dim,
            'hidden_cls_dim': hidden_cls_dim, 'n_class': n_class,
            'n_layers': checkpoints.count_layers(headers, 'uni_lstm')}


def shapes(n_vocab, emb_dim, hidden_dim, hidden_cls_dim, n_class, n_layers):
    """`{parameter: shape}` of a `Classifier`, known without building it."""
    return {'word_embed/W': (n_vocab, emb_dim),
            'hidden_layer/W': (hidden_cls_dim, hidden_dim), 'hidden_layer/b': (hidden_cls_dim,),
            'output_layer/W': (n_class, hidden_cls_dim), 'output_layer/b': (n_class,),
            **checkpoints.lstm_shapes('uni_lstm', n_layers, emb_dim, hidden_dim)}


def load_classifier(path, words=None, n_class=None):
    """A `Classifier` of the checkpoint's own sizes, without dropout.

    Args:
        words, n_class: the corpus's vocabulary and number of classes, to be checked against the
            checkpoint's.
    """
    headers = checkpoints.read_headers(path)
    found = sizes(headers, path)
    if words is not None:
        checkpoints.check_vocabulary(path, found['n_vocab'], words)
    if n_class is not None and found['n_class'] != n_class:
        raise UserError(f'{path} has {found["n_class"]} classes, the corpus {n_class}; use the '
                        'data folder it was trained with')
    checkpoints.check_shapes(headers, shapes(**found), path)
    if 0 in found.values():
        raise UserError(f'{path} is damaged: it is a classifier without weights; use another copy')
    arrays = checkpoints.read_arrays(path)
    model = Classifier(dropout=0, initialW=0, **found)  # random numbers would be overwritten
    checkpoints.assign(model, arrays, path)
    return model
