"""From a batch of reviews to its perturbation records: attack, describe, write down."""
import chainer
import chainer.functions as F
import numpy as np

from interpretable_adv import attacks, readings
from lm import evaluation

DIGITS = 6  # of the numbers in a record; float32 holds no more


class Adversary:
    """One method with the classifier it attacks.

    Args:
        method: name for the records.
        model: the classifier.
        attack: one of `attacks`, called on the model.
        table: neighbours that the records list, indexed by word ids.
        nearest_words: a `readings.NearestWords` of the model's embeddings.
        epsilon: step size of the attack.
        virtual: whether the attack is against the model's own output instead of the label.
    """

    def __init__(self, method, model, attack, table, nearest_words, epsilon, virtual=False):
        self.method, self.model, self.attack, self.table = method, model, attack, table
        self.nearest_words, self.epsilon, self.virtual = nearest_words, epsilon, virtual

    def __call__(self, sequences, labels):
        """Attacks a batch of reviews.

        Args:
            sequences: int32 arrays on the host.
            labels: int32 `(len(sequences),)` on the host.

        Returns:
            dict of host arrays. One row per review: `logits`, `logits_adv`. One row per word of
            all reviews: `perturbation`, `norm`, `toward`, `nearest`, `cosines`, `max_cosine`,
            `neighbors`, `neighbor_distance`.
        """
        xp = self.model.xp
        lengths = [len(sequence) for sequence in sequences]
        ids = xp.asarray(np.concatenate(sequences))
        with chainer.using_config('train', False):
            with chainer.no_backprop_mode():
                embedded = self.model.embed(ids)
                logits = self.model.classify(embedded, lengths)
            attacked = self.attack(self.model, ids, lengths, self._loss(logits, labels))
            with chainer.no_backprop_mode():
                logits_adv = self.model.classify(embedded + attacked.perturbation, lengths)
        found = {'logits': logits.array, 'logits_adv': logits_adv.array,
                 'perturbation': attacked.perturbation,
                 **self._describe(ids, attacked.perturbation, attacked.chosen)}
        return {name: chainer.cuda.to_cpu(array) for name, array in found.items()}

    def _loss(self, logits, labels):
        """Sum of the reviews' own losses, so that no review's gradient depends on the others."""
        if not self.virtual:
            return attacks.own_losses(self.model.xp.asarray(labels))
        mean_divergence = attacks.divergence(logits)
        return lambda other: mean_divergence(other) * len(labels)

    def _describe(self, ids, perturbation, chosen):
        xp = self.model.xp
        embeddings = self.model.word_embed.W.array
        neighbors = self.table[ids]
        cosines = readings.neighbor_cosines(embeddings, ids, neighbors,
                                            perturbation / (self.epsilon or 1))
        norm = xp.sqrt((perturbation * perturbation).sum(axis=1))
        if chosen is None:
            index = cosines.argmax(axis=1)
        else:  # SPGD has chosen, and may even move away from its choice
            index = (neighbors == chosen[:, None]).argmax(axis=1)
        rows = xp.arange(len(ids))
        toward = xp.where(norm > 0, neighbors[rows, index], ids)
        step = embeddings[toward] - embeddings[ids]
        return {'norm': norm, 'toward': toward, 'neighbors': neighbors, 'cosines': cosines,
                'max_cosine': cosines[rows, index],
                'nearest': self.nearest_words(ids, perturbation),
                'neighbor_distance': xp.sqrt((step * step).sum(axis=1))}


def make_records(words, label_names, method, epsilon, indices, sequences, labels, found):
    """The records of a batch, as dictionaries.

    Args:
        words: vocabulary in id order.
        indices: the reviews' numbers.
        found: what `Adversary` returned.
    """
    probability, probability_adv = (
        _softmax(found[name])[np.arange(len(labels)), labels] for name in ('logits', 'logits_adv'))
    prediction, prediction_adv = (found[name].argmax(axis=1) for name in ('logits', 'logits_adv'))
    ends = np.cumsum([len(sequence) for sequence in sequences])
    columns = {name: found[name].tolist() for name in ('toward', 'nearest', 'neighbors')}
    for name in ('norm', 'max_cosine', 'cosines', 'neighbor_distance'):
        columns[name] = _rounded(found[name])
    batch = []
    for i, (sequence, stop) in enumerate(zip(sequences, ends)):
        start = stop - len(sequence)
        relative = _rounded(found['norm'][start:stop] / (found['norm'][start:stop].max() or 1))
        batch.append({
            'index': int(indices[i]), 'method': method, 'label': int(labels[i]),
            'prediction': int(prediction[i]), 'prediction_adv': int(prediction_adv[i]),
            'correct': bool(prediction[i] == labels[i]), 'label_names': label_names,
            'epsilon': epsilon, 'probability': round(float(probability[i]), DIGITS),
            'probability_adv': round(float(probability_adv[i]), DIGITS),
            'words': [{
                'word': words[word],
                'toward': words[columns['toward'][row]],
                'nearest': words[columns['nearest'][row]],
                'norm': columns['norm'][row],
                'relative_norm': share_,
                'max_cosine': columns['max_cosine'][row],
                'cosines': columns['cosines'][row],
                'neighbors': [words[neighbor] for neighbor in columns['neighbors'][row]],
                'neighbor_distance': columns['neighbor_distance'][row],
            } for word, row, share_ in zip(sequence.tolist(), range(start, stop), relative)]})
    return batch


def _rounded(array):
    """A list of float64 that print with at most `DIGITS` digits after the point.

    A norm below that would read as a word at rest, so it keeps its leading digits.
    """
    array = array.astype('d')
    tiny = (array != 0) & (np.abs(array) < 10.0 ** -(DIGITS - 2))
    if not tiny.any():
        return np.round(array, DIGITS).tolist()
    rounded = np.round(array, DIGITS)
    rounded[tiny] = [float(f'{value:.4g}') for value in array[tiny]]
    return rounded.tolist()


def _softmax(logits):
    with chainer.no_backprop_mode():
        return F.softmax(logits).array


class Perplexities:
    """Perplexity of each version of a review under a language model.

    Args:
        model: an `RNNForLM` with the corpus's vocabulary.
    """

    def __init__(self, model):
        self.model = model

    def clean(self, sequences):
        return self._of_words(sequences)

    def attacked(self, sequences, found):
        """`{'continuous': …, 'nearest': …, 'direction': …}`, each a list with one per review."""
        ends = np.cumsum([len(sequence) for sequence in sequences])[:-1]
        result = {name: self._of_words(np.split(found[column].astype(np.int32), ends))
                  for name, column in (('nearest', 'nearest'), ('direction', 'toward'))}
        result['continuous'] = self._of_vectors(sequences, found['perturbation'], ends)
        return result

    def _of_words(self, sequences):
        return self._perplexities(evaluation.review_nll(self.model, sequences)[0], sequences)

    def _of_vectors(self, sequences, perturbation, ends):
        vectors = self.model.embed.W.array
        if vectors.shape[1] != perturbation.shape[1]:  # then the vectors live in other spaces
            return [None] * len(sequences)
        inputs = self.model.xp.asarray(np.concatenate([s[:-1] for s in sequences]))
        shift = np.concatenate([part[:-1] for part in np.split(perturbation, ends)])
        nll = evaluation.embedded_review_nll(
            self.model, vectors[inputs] + self.model.xp.asarray(shift), sequences)
        return self._perplexities(nll, sequences)

    @staticmethod
    def _perplexities(nll, sequences):
        """None for a review of one word, which predicts nothing, and beyond float's range."""
        values = [evaluation.perplexity(total, len(sequence) - 1) if len(sequence) > 1 else None
                  for total, sequence in zip(nll, sequences)]
        return [round(value, 4) if value is not None and np.isfinite(value) else None
                for value in values]
