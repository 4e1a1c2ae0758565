"""The language model: word embedding, LSTM, and a plain or adaptive softmax over the words."""
from collections.abc import Sequence
from typing import Any

import chainer
import chainer.links as L
import numpy as np
from chainer import backend

from interpretable_adv.errors import UserError
from interpretable_adv.nn import functions, products
from interpretable_adv.nn.dropout import dropout
from interpretable_adv.nn.embedding import EmbedID
from interpretable_adv.nn.lstm import LSTM
from interpretable_adv.runs import checkpoints
from lm.adaptive_softmax import AdaptiveSoftmax
from lm.softmax import softmax_nll

WEIGHT_RANGE = 0.1


class RNNForLM(chainer.Chain):
    """Predicts each next word.

    Parameters are upstream's: `embed/W`, `rnn/I/w0 … b7`, and `output/{W,b}` or those of
    `AdaptiveSoftmax`. All matrices are uniform in ±0.1, biases 0. The model keeps no state
    between calls: `forward` takes and returns it.

    A class-conditional model p(x|y) has one parameter more, `class_embed/W`: a vector for each
    class, zero at the start, that is added to all word vectors of a review of that class.

    Args:
        n_vocab: number of words.
        n_units: size of the LSTM.
        n_units_word: size of a word vector.
        n_layers: LSTM layers.
        dropout: ratio of dropout on word vectors, between LSTM layers, and on LSTM outputs.
        adaptive_softmax: whether the output is an adaptive softmax.
        cutoff, reduce_k: see `AdaptiveSoftmax`.
        share_embedding: whether the output's weights are the word vectors (plain softmax only;
            then there is no `output/W`).
        forget_bias: if not None, the value of the LSTM's forget biases b1 and b5 in every layer.
        norm_vecs: whether the initial word vectors are scaled to unit length.
        n_class: classes of a class-conditional model; 0: a plain one.
    """

    def __init__(self, n_vocab, n_units=1024, n_units_word=256, n_layers=1, dropout=0.5,
                 adaptive_softmax=False, cutoff=None, reduce_k=4, share_embedding=False,
                 forget_bias=None, norm_vecs=False, n_class=0):
        super().__init__()
        if share_embedding and adaptive_softmax:
            raise UserError('the adaptive softmax has no weights to share with the embedding: '
                            'leave out one of --share-embedding and --adaptive-softmax')
        if share_embedding and n_units != n_units_word:
            raise UserError(f'a shared embedding needs word vectors as large as the LSTM: '
                            f'{n_units_word} and {n_units} given')
        self.dropout = dropout
        with self.init_scope():
            self.embed = EmbedID(n_vocab, n_units_word)
            self.rnn = LSTM(n_layers, n_units_word, n_units, dropout)
            if adaptive_softmax:
                self.output = AdaptiveSoftmax(n_units, n_vocab, cutoff, reduce_k)
            elif share_embedding:
                self.output = L.Bias(1, (n_vocab,))
            else:
                self.output = L.Linear(n_units, n_vocab)
        # Chainer's initialisers have drawn above; upstream then draws again, and so the weights
        # of a seed are these.
        for _, parameter in self.namedparams():
            if parameter.ndim > 1:
                parameter.array[...] = np.random.uniform(
                    -WEIGHT_RANGE, WEIGHT_RANGE, parameter.shape)
        if norm_vecs:
            vectors = self.embed.W.array
            vectors /= np.sqrt(products.square_sums(vectors))[:, None]
        if forget_bias is not None:
            for layer in self.rnn:
                layer.b1.array[...] = forget_bias
                layer.b5.array[...] = forget_bias
        self.n_class = n_class
        if n_class:
            with self.init_scope():
                self.class_embed = EmbedID(n_class, n_units_word, initialW=0)

    @property
    def n_vocab(self):
        return len(self.embed.W)

    def inputs(self, words, classes=None):
        """Input vectors `(N, n_units_word)` of words `(N,)`, a Variable; a class-conditional model
        takes the class of each word's review, `(N,)`, too."""
        embedded = self.embed(words)
        return embedded if classes is None else embedded + self.class_embed(classes)

    def forward(self, words, targets, state=None):
        """Negative log-likelihood of the next words of parallel streams.

        Args:
            words: int32 `(streams, time)`.
            targets: the next words, int32 `(streams, time)`, best on the host.
            state: `(hx, cx)` arrays of the call before; zero when None.

        Returns:
            `-log p` as a Variable `(streams · time,)`, stream by stream, and the new state as
            arrays, so that no gradient flows back over the window's edge.
        """
        streams, time = words.shape
        return self.score(self.embed(self.xp.asarray(words.ravel())), targets,
                          np.full(streams, time), state)

    def score(self, embedded, targets, lengths, state=None):
        """As `forward`, for word vectors `(sum(lengths), n_units_word)` of sequences."""
        hidden, state = self.hidden(embedded, lengths, state)
        return self.nll(hidden, targets), state

    def hidden(self, embedded, lengths, state=None):
        """Outputs of the LSTM `(sum(lengths), n_units)` and its state after each sequence."""
        hx, cx = state or (None, None)
        hy, cy, ys = self.rnn(dropout(embedded, self.dropout), lengths, hx, cx)
        return dropout(ys, self.dropout), (hy.array, cy.array)

    def nll(self, hidden, targets):
        """`-log p(target)` at each row of `hidden`, a Variable `(N,)`."""
        if isinstance(self.output, AdaptiveSoftmax):
            return self.output(hidden, targets)
        return softmax_nll(hidden, targets, self._output_weight(), self.output.b)

    def log_probabilities(self, hidden):
        """`log p` of all words at each row of `hidden`, a Variable `(N, n_vocab)`."""
        if isinstance(self.output, AdaptiveSoftmax):
            return self.output.log_probabilities(hidden)
        return functions.log_softmax(
            functions.linear(hidden, self._output_weight(), self.output.b))

    def score_embeddings(self, embeddings: Any, targets: Any,
                         lengths: Sequence[int] | None = None) -> Any:
        """Negative log-likelihood of the next words for given input vectors, without dropout.

        Args:
            embeddings: input vectors `(N, n_units_word)`.
            targets: `(N,)` the word that follows each of them, best on the host.
            lengths: inputs per review if there are several, each read from the zero state;
                None for a single review. A review of length 0 is allowed.

        Returns:
            `-log p(target)`, an array `(N,)`.
        """
        if isinstance(embeddings, chainer.Variable):
            embeddings = embeddings.array
        lengths = [len(embeddings)] if lengths is None else list(lengths)
        if sum(lengths) != len(embeddings) or len(targets) != len(embeddings):
            raise ValueError(f'{len(embeddings)} vectors, {len(targets)} targets, lengths that '
                             f'sum to {sum(lengths)}')
        if len(embeddings) == 0:
            return backend.get_array_module(embeddings).zeros(0, embeddings.dtype)
        with chainer.using_config('train', False), chainer.no_backprop_mode():
            loss, _ = self.score(chainer.Variable(embeddings), targets,
                                 np.array([n for n in lengths if n > 0]))
        return loss.array

    def _output_weight(self):
        return self.embed.W if isinstance(self.output, L.Bias) else self.output.W


def sizes(headers, path):
    """The arguments of `RNNForLM`, read off a checkpoint's shapes."""
    try:
        n_vocab, n_units_word = headers['embed/W'].shape
        n_units, = headers['rnn/0/b0'].shape
        found = {'n_vocab': n_vocab, 'n_units': n_units, 'n_units_word': n_units_word,
                 'n_layers': checkpoints.count_layers(headers, 'rnn'),
                 'adaptive_softmax': 'output/head' in headers,
                 'n_class': headers['class_embed/W'].shape[0] if 'class_embed/W' in headers else 0,
                 'share_embedding': not {'output/W', 'output/head'} & set(headers)}
        if found['adaptive_softmax']:
            bounds = checkpoints.read_arrays(path, ['output/cutoff'])['output/cutoff']
            found['cutoff'] = [int(bound) for bound in bounds[1:-1]]
            found['reduce_k'] = max(1, n_units // max(1, headers['output/reduce1'].shape[0]))
            if [0, *found['cutoff'], n_vocab] != bounds.tolist() or sorted(
                    set(bounds.tolist())) != bounds.tolist() or len(bounds) < 3:
                raise ValueError
    except (KeyError, ValueError, IndexError, OverflowError):
        raise UserError(f'{path} is not a language model: it lacks embed/W, rnn/0/b0 or the '
                        'output layer; give a model that lm.pretrain wrote') from None
    return found


def shapes(n_vocab, n_units, n_units_word, n_layers, adaptive_softmax, share_embedding,
           cutoff=(), reduce_k=4, n_class=0):
    """`{parameter: shape}` of an `RNNForLM`, known without building it."""
    found = {'embed/W': (n_vocab, n_units_word),
             **checkpoints.lstm_shapes('rnn', n_layers, n_units_word, n_units)}
    if n_class:
        found['class_embed/W'] = n_class, n_units_word
    if not adaptive_softmax:
        found['output/b'] = (n_vocab,)
        return found if share_embedding else {**found, 'output/W': (n_vocab, n_units)}
    bounds = [0, *cutoff, n_vocab]
    found['output/cutoff'] = (len(bounds),)
    found['output/head'] = (bounds[1] + len(cutoff), n_units)
    for i in range(1, len(cutoff) + 1):
        units = max(1, n_units // reduce_k ** i)
        found[f'output/reduce{i}'] = units, n_units
        found[f'output/tail{i}'] = bounds[i + 1] - bounds[i], units
    return found


def with_classes(path, words, n_class, dropout):
    """The plain language model of a checkpoint as a class-conditional one that knows no difference
    between its classes yet."""
    found, arrays = _read(path, words)
    if found['n_class']:
        raise UserError(f'{path} is class-conditional already; give a plain language model')
    model = RNNForLM(dropout=dropout, **{**found, 'n_class': n_class})
    checkpoints.assign(model, {**arrays, 'class_embed/W': model.class_embed.W.array}, path)
    return model


def load_lm(path, words=None, class_conditional=False):
    """The language model of a checkpoint, without dropout.

    Building it draws its initial weights from NumPy's global stream, as upstream does before it
    reads a checkpoint.

    Args:
        words: the corpus's vocabulary, to be checked against the checkpoint's.
        class_conditional: whether it must be a class-conditional model; else it must be none.
    """
    found, arrays = _read(path, words)
    if class_conditional and not found['n_class']:
        raise UserError(f'{path} is not a class-conditional language model: it lacks '
                        'class_embed/W; make one with python -m lm.pretrain --class_conditional')
    if found['n_class'] and not class_conditional:
        raise UserError(f'{path} is a class-conditional language model, for --class_lm; give a '
                        'plain one here')
    model = RNNForLM(dropout=0, **found)
    checkpoints.assign(model, arrays, path)
    return model


def _read(path, words):
    """The arguments of `RNNForLM` and the arrays of a checkpoint, checked."""
    headers = checkpoints.read_headers(path)
    found = sizes(headers, path)
    if words is not None:
        checkpoints.check_vocabulary(path, found['n_vocab'], words)
    checkpoints.check_shapes(headers, shapes(**found), path)
    if not found['n_vocab'] * found['n_units'] * found['n_units_word']:
        raise UserError(f'{path} is damaged: it is a language model without weights; use another '
                        'copy')
    return found, checkpoints.read_arrays(path)
