"""Perplexity of a text or of reviews under a language model, without dropout.

    perplexity = exp(total negative log-likelihood / number of predicted words)
"""
import math

import chainer
import numpy as np

from interpretable_adv.nets import by_length
from interpretable_adv.nn import doubles
from interpretable_adv.runs.distributed import ALONE
from lm.streams import evaluation_windows

WORDS_PER_BATCH = 10000


def perplexity(nll, words):
    """`exp(nll / words)`; infinite rather than an error where that is too large."""
    return float(doubles.exp(np.float64(nll) / words))


def stream_nll(model, words, window, streams=1, team=ALONE):
    """Total NLL of a text read from end to end, the state carried over windows.

    Args:
        words: int32 `(length,)` on the host.
        window: words per stream and call; bounds the memory, not the result.
        streams: 1 reads as upstream does. More streams are faster; each but the first starts
            from the zero state in the middle of the text.
        team: the processes among which the streams are shared.

    Returns:
        The sum over all words of `-log p(next word)`, where the last is followed by the first.
    """
    total, state = 0.0, None
    with chainer.using_config('train', False), chainer.no_backprop_mode():
        for inputs, targets, lengths in evaluation_windows(words, streams, window, team.part):
            if state is not None:
                state = tuple(part[:, :len(lengths)] for part in state)
            nll, state = model.score(
                model.embed(model.xp.asarray(inputs)), targets, lengths, state)
            total += math.fsum(chainer.cuda.to_cpu(nll.array).tolist())
    return team.sum(total)


def review_nll(model, sequences, perturbation=None, words_per_batch=None, classes=None):
    """NLL of each review, the state reset at its start.

    Each word but the first is predicted from those before it, `<eos>` included. A review of n
    ids thus has n - 1 predictions.

    Args:
        sequences: int32 arrays on the host, each ending in id 0.
        perturbation: `(words of all reviews, n_units_word)` on the model's device, added to the
            word vectors; the words to be predicted stay.
        classes: int `(len(sequences),)` on the host, of a class-conditional model.

    Returns:
        `nll, predictions`: float64 and int64 `(len(sequences),)`.
    """
    total = np.zeros(len(sequences))
    vectors = model.embed.W.array
    starts = np.cumsum([0, *map(len, sequences)])
    for batch in by_length(sequences, words_per_batch or WORDS_PER_BATCH):
        reviews = [sequences[i] for i in batch]
        embedded = vectors[model.xp.asarray(np.concatenate([review[:-1] for review in reviews]))]
        if classes is not None:
            counts = [len(review) - 1 for review in reviews]
            embedded = embedded + model.class_embed.W.array[
                model.xp.asarray(np.repeat(np.asarray(classes)[batch], counts))]
        if perturbation is not None:
            # The last word is never an input, so its row has no part in this.
            rows = np.concatenate([np.arange(starts[i], starts[i + 1] - 1) for i in batch])
            embedded = embedded + perturbation[model.xp.asarray(rows)]
        total[batch] = _embedded_review_nll(model, embedded, reviews)
    return total, np.array([len(sequence) - 1 for sequence in sequences])


def _embedded_review_nll(model, embeddings, sequences):
    """NLL of each review when the model reads `embeddings` in place of its words but the last."""
    lengths = np.array([len(sequence) - 1 for sequence in sequences])
    targets = np.concatenate([sequence[1:] for sequence in sequences])
    nll = chainer.cuda.to_cpu(model.score_embeddings(embeddings, targets, lengths))
    review = np.repeat(np.arange(len(lengths)), lengths)
    return np.bincount(review, weights=nll, minlength=len(lengths))


def class_nll(model, sequences):
    """NLL of each review under each class of a class-conditional model, `(reviews, classes)`."""
    return np.stack([review_nll(model, sequences, classes=np.full(len(sequences), label))[0]
                     for label in range(model.n_class)], axis=1)


def class_results(model, split, label_names, team=ALONE):
    """What a class-conditional model makes of labelled reviews.

    Args:
        split: `data.Split`; its reviews are shared among the processes of `team`.

    Returns:
        `perplexity` of the reviews given their classes, `perplexity_per_class` by the classes'
        names, and `bayes_accuracy`: the share, in per cent, of reviews whose class is the one of
        highest p(x|y), that is of equal priors; None without reviews, or without any of a class.
    """
    mine = team.part(range(len(split.labels)))
    nll = class_nll(model, [split.sequences[i] for i in mine])
    labels = np.asarray(split.labels)[list(mine)]
    predictions = np.array([len(split.sequences[i]) - 1 for i in mine])
    right = team.sum(float((nll.argmin(axis=1) == labels).sum()))
    own = nll[np.arange(len(labels)), labels]
    totals = [(team.sum(own[labels == label].sum()), team.sum(predictions[labels == label].sum()))
              for label in range(model.n_class)]
    return {
        'perplexity': _perplexity_or_none(*map(sum, zip(*totals))),
        'perplexity_per_class': dict(zip(label_names, (
            _perplexity_or_none(*total) for total in totals))),
        'bayes_accuracy': 100 * right / len(split.labels) if len(split.labels) else None,
    }


def _perplexity_or_none(nll, words):
    return perplexity(nll, words) if words else None


class Scorer:
    """A language model as `interpretable_adv.evaluation` asks for one.

    Args:
        model: an `RNNForLM` with the vocabulary of the reviews.
    """

    def __init__(self, model):
        self.model = model

    @property
    def word_size(self):
        return self.model.embed.W.shape[1]

    def nll(self, sequences, perturbation=None):
        """See `review_nll`."""
        return review_nll(self.model, sequences, perturbation)[0]
