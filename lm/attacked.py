"""Reviews under attack, read by a language model: the numbers behind Table 1.

A language model reads words, an attack moves vectors. Three readings of a perturbed review:

* continuous: the perturbation is added to the language model's own input vectors; the words to
  be predicted stay the original ones.
* nearest: each word is replaced by the one nearest to its perturbed vector.
* direction: each word that moved is replaced by the neighbour it moved towards.

Every review is attacked through its own loss, without dropout, so that nothing depends on the
batch it happens to be in.
"""
import zlib

import chainer
import numpy as np

from interpretable_adv import attacks, perturbations
from interpretable_adv.neighbor_table import NeighborTable
from interpretable_adv.nets import by_length
from interpretable_adv.readings import NearestWords, neighbor_cosines
from lm import evaluation

SCORES = ('continuous', 'nearest', 'direction')


# Attacks beside those of the paper --------------------------------------------------------------

class NoAttack:
    """Leaves every word where it is."""

    def __call__(self, model, ids, lengths, loss):
        vectors = model.word_embed.W.array
        return attacks.Attacked(model.xp.zeros((len(ids), vectors.shape[1]), vectors.dtype), None)


class SparseAdvT(attacks.AdvT):
    """AdvT of which only the largest perturbations are kept: SPGD without its projection.

    Args:
        sparsity: σ, the share of words that stay in place.
    """

    def __init__(self, epsilon, sparsity, **options):
        super().__init__(epsilon, **options)
        self.sparsity = sparsity

    def __call__(self, model, ids, lengths, loss):
        attacked = super().__call__(model, ids, lengths, loss)
        raw = attacked.perturbation
        return attacked._replace(
            perturbation=perturbations.sparsify(raw, raw, lengths, self.sparsity))


class RandomDirections(attacks.AdvT):
    """Moves each word as far as AdvT does, in a random direction.

    The directions of a review depend on the seed and on its words, not on its batch.
    """

    def __init__(self, epsilon, seed, **options):
        super().__init__(epsilon, **options)
        self.seed = seed

    def __call__(self, model, ids, lengths, loss):
        attacked = super().__call__(model, ids, lengths, loss)
        reviews = np.split(chainer.cuda.to_cpu(ids).astype(np.int32), np.cumsum(lengths)[:-1])
        size = attacked.perturbation.shape[1]
        noise = np.concatenate([
            np.random.RandomState([self.seed, zlib.crc32(review.tobytes())]).normal(
                size=(len(review), size)) for review in reviews])
        noise /= np.linalg.norm(noise, axis=1, keepdims=True)
        direction = model.xp.asarray(noise.astype(np.float32))
        return attacked._replace(perturbation=direction * _norms(attacked.perturbation)[:, None])


def _norms(perturbation):
    return chainer.backend.get_array_module(perturbation).sqrt(
        (perturbation * perturbation).sum(axis=1))


# A classifier and its attackers -----------------------------------------------------------------

class Victim:
    """A classifier, with what it takes to read its perturbed vectors as words.

    Args:
        model: the classifier.
        n_neighbors: K, among which the neighbour that a word moves towards is found.
        limit: neighbours come from the first `limit` ids only.
    """

    def __init__(self, model, n_neighbors, limit=None):
        self.model = model
        self.neighbors = NeighborTable(model.word_embed.W.array, n_neighbors, limit)
        self._nearest = NearestWords(model.word_embed.W.array)

    def attack(self, attack, sequences, labels):
        """Attacks reviews through their own losses.

        Args:
            attack: one of `interpretable_adv.attacks` or of this module.
            sequences: int32 arrays on the host.
            labels: int32 on the host.

        Returns:
            `ids` `(N,)` and an `attacks.Attacked`, on the model's device.
        """
        ids = self.model.xp.asarray(np.concatenate(sequences))
        with chainer.using_config('train', False):
            return ids, attack(self.model, ids, _lengths(sequences),
                               attacks.own_losses(self.model.xp.asarray(labels)))

    def predict(self, sequences, perturbation=None):
        """Predicted classes `(len(sequences),)` on the host."""
        with chainer.using_config('train', False), chainer.no_backprop_mode():
            logits = self.model([self.model.xp.asarray(s) for s in sequences], perturbation)
        return chainer.cuda.to_cpu(logits.array).argmax(axis=1)

    def predict_all(self, sequences):
        """`predict` for any number of reviews, in the batches in which they are attacked."""
        result = np.zeros(len(sequences), np.int64)
        for batch in by_length(sequences, evaluation.WORDS_PER_BATCH):
            result[batch] = self.predict([sequences[i] for i in batch])
        return result

    def nearest(self, ids, perturbation):
        """The word nearest to each perturbed vector, `(N,)` on the host."""
        return chainer.cuda.to_cpu(self._nearest(ids, perturbation))

    def towards(self, ids, perturbation, chosen=None):
        """The neighbour that each word moves towards, itself where it stays; on the host.

        It is the neighbour whose direction has the largest cosine with the perturbation;
        SPGD's own choice, `chosen`, which is −1 where the word stays, goes first.
        """
        xp = self.model.xp
        moved = _norms(perturbation) > 0
        if chosen is None:
            neighbors = self.neighbors[ids]
            cosines = neighbor_cosines(self.model.word_embed.W.array, ids, neighbors, perturbation)
            chosen = neighbors[xp.arange(len(ids)), cosines.argmax(axis=1)]
        return chainer.cuda.to_cpu(xp.where(moved, chosen, ids).astype(np.int32))


def _lengths(sequences):
    return [len(sequence) for sequence in sequences]


# Measuring ----------------------------------------------------------------------------------------

class Measurement:
    """What an attack did to each review; arrays `(reviews,)`.

    Attributes:
        words: length with `<eos>`.
        predictions: words that the language model predicts, one less.
        moved: words whose perturbation is not zero.
        norm: sum of the words' norms.
        right, right_after: whether the classifier is right before, and by score after.
        flipped: by score, whether its prediction changed.
        changed: by score, how many words are other words than before (continuous: none).
        nll_clean, nll: of the review as it is, and by score.
    """

    def __init__(self, sequences, scores):
        count = len(sequences)
        self.scores = scores
        self.words = np.array(_lengths(sequences))
        self.predictions = self.words - 1
        self.moved, self.norm, self.nll_clean = (np.zeros(count) for _ in range(3))
        self.right = np.zeros(count, bool)
        self.right_after, self.flipped = ({s: np.zeros(count, bool) for s in scores}
                                          for _ in range(2))
        self.changed, self.nll = ({s: np.zeros(count) for s in scores} for _ in range(2))

    def summary(self):
        """The figures of one row of Table 1, as a dictionary."""
        clean = evaluation.perplexity(self.nll_clean.sum(), self.predictions.sum())
        result = {
            'accuracy_clean': 100 * float(self.right.mean()),
            'words_moved': 100 * float(self.moved.sum() / self.words.sum()),
            'norm_per_word': float(self.norm.sum() / self.words.sum()),
            'norm_per_moved_word': float(self.norm.sum() / max(1, self.moved.sum())),
            'perplexity_clean': clean, 'scores': {},
        }
        for score in self.scores:
            value = evaluation.perplexity(self.nll[score].sum(), self.predictions.sum())
            per_review = self.perplexities(score) - self.perplexities()
            result['scores'][score] = {
                'perplexity': value, 'gap': value - clean,
                'mean_perplexity': float(np.nanmean(self.perplexities(score))),
                'mean_gap': float(np.nanmean(per_review)),
                'flipped': 100 * float(self.flipped[score].mean()),
                'accuracy': 100 * float(self.right_after[score].mean()),
                'words_changed': 100 * float(self.changed[score].sum() / self.words.sum()),
            }
        return result

    def perplexities(self, score=None):
        """Perplexity of each review by itself; NaN where it predicts nothing."""
        nll = self.nll_clean if score is None else self.nll[score]
        with np.errstate(over='ignore', invalid='ignore', divide='ignore'):
            return np.exp(nll / self.predictions)


def measure(language_model, victim, attack, sequences, labels, before, nll_clean, scores=SCORES,
            progress=None):
    """Attacks reviews and lets the language model read the result.

    Args:
        language_model: an `RNNForLM` with the classifier's vocabulary and size of word vectors.
        victim: a `Victim`.
        attack: what it suffers.
        sequences: int32 arrays on the host; labels: int32 on the host.
        before: `victim.predict_all(sequences)`.
        nll_clean: `evaluation.review_nll(language_model, sequences)[0]`.
        scores: which readings are wanted.
        progress: called with the number of reviews done since the last call.

    Returns:
        a `Measurement`.
    """
    found = Measurement(sequences, scores)
    found.right, found.nll_clean = before == labels, nll_clean
    for batch in by_length(sequences, evaluation.WORDS_PER_BATCH):
        reviews, truth = [sequences[i] for i in batch], labels[batch]
        ids, attacked = victim.attack(attack, reviews, truth)
        norms = chainer.cuda.to_cpu(_norms(attacked.perturbation))
        found.norm[batch] = _sums(norms, reviews)
        found.moved[batch] = _sums(norms > 0, reviews)
        for score in scores:
            if score == 'continuous':
                after = victim.predict(reviews, attacked.perturbation)
                nll = _nll(language_model, reviews, chainer.cuda.to_cpu(attacked.perturbation))
            else:
                words = (victim.nearest(ids, attacked.perturbation) if score == 'nearest' else
                         victim.towards(ids, attacked.perturbation, attacked.chosen))
                found.changed[score][batch] = _sums(words != np.concatenate(reviews), reviews)
                replaced = np.split(words, np.cumsum(_lengths(reviews))[:-1])
                after = victim.predict(replaced)
                nll = _nll(language_model, replaced)
            found.nll[score][batch] = nll
            found.right_after[score][batch] = after == truth
            found.flipped[score][batch] = after != before[batch]
        if progress:
            progress(len(batch))
    return found


def _sums(values, reviews):
    """Sums of values `(N,)` over the words of each review."""
    review = np.repeat(np.arange(len(reviews)), _lengths(reviews))
    return np.bincount(review, weights=values, minlength=len(reviews))


def _nll(language_model, reviews, perturbation=None):
    """NLL of each review, its input vectors perturbed by rows `(N, D)` for all its words.

    The last word is never an input, so its row has no part in this.
    """
    xp = language_model.xp
    inputs = xp.asarray(np.concatenate([review[:-1] for review in reviews]))
    vectors = language_model.embed.W.array[inputs]
    if perturbation is not None:
        rows = np.split(perturbation, np.cumsum(_lengths(reviews))[:-1])
        vectors = vectors + xp.asarray(np.concatenate([part[:-1] for part in rows]))
    return evaluation.embedded_review_nll(language_model, vectors, reviews)
