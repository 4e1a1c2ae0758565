"""The adversaries: from a model and a batch to a perturbation of its word vectors.

An attack takes one or more gradients of a loss with respect to a perturbation, and hands them to
the formulas of `perturbations`. Training, analysis and Table 1 use the same attacks; they
differ in the loss (the batch's mean, or each review's own) and in dropout.
"""
import zlib
from collections.abc import Callable
from typing import Any, NamedTuple

import chainer
import numpy as np

from interpretable_adv import perturbations
from interpretable_adv.data.tokens import EOS, UNK
from interpretable_adv.nn import functions, products
from interpretable_adv.perturbations import Array, Lengths

Loss = Callable[[chainer.Variable], chainer.Variable]  # of logits
# Of word ids `(N,)`, lengths, labels and a perturbation `(N, emb_dim)`: the gradient, with respect
# to the perturbation, of the sum over reviews of λ log p(x|y).
Guide = Callable[[Array, Lengths, Array, Array], Array]
BLOCK_WORDS = 2048  # whose neighbours' vectors are held at a time


class Attacked(NamedTuple):
    """What an attack found.

    Attributes:
        perturbation: `(N, emb_dim)`.
        first_loss: the loss before the attack, a Variable; None where none was computed.
        chosen: which of its K neighbours each word moves along, `(N,)`, −1 where it stays; None
            where the attack chooses no neighbour.
        away: which words move away from that neighbour, boolean `(N,)`.
        gradient_norms: per review the norms `(reviews, 2)` of the gradients that were added: of
            the classifier's loss, and of λ log p(x|y). None without a guide.
    """

    perturbation: Array
    first_loss: chainer.Variable | None
    chosen: Array = None
    away: Array = None
    gradient_norms: Array = None


# Losses ---------------------------------------------------------------------------------------

class LabelLoss:
    """Cross entropy of labelled reviews.

    Args:
        labels: `(reviews,)` on the model's device.
        weight: None: the sum of the reviews' own losses; else their mean times this number.
    """

    def __init__(self, labels: Array, weight: float | None = None):
        self.labels, self.weight = labels, weight

    def __call__(self, logits: chainer.Variable) -> chainer.Variable:
        if self.weight is None:
            return functions.total(self.each(logits))
        return _weighted(functions.softmax_cross_entropy(logits, self.labels), self.weight)

    @property
    def scale(self) -> float:
        """What a review's own loss is multiplied by."""
        return 1 if self.weight is None else self.weight / len(self.labels)

    def each(self, logits: chainer.Variable) -> chainer.Variable:
        """The reviews' own losses `(reviews,)`."""
        return functions.softmax_cross_entropy(logits, self.labels, reduce='no')

    def of(self, reviews: Array) -> 'LabelLoss':
        """The same for some of the reviews."""
        return LabelLoss(self.labels[reviews], self.weight)


def own_losses(labels: Array) -> LabelLoss:
    """A loss whose gradient is, for each review, that of the review's own cross entropy."""
    return LabelLoss(labels)


def mean_loss(labels: Array, weight: float = 1) -> LabelLoss:
    """Training's loss: the mean cross entropy of the batch.

    Args:
        weight: what part of a larger batch these reviews are.
    """
    return LabelLoss(labels, weight)


def divergence(logits: Array, weight: float = 1) -> Loss:
    """VAT's loss: mean KL divergence of perturbed outputs from `logits`, held constant."""
    total = own_divergences(logits)
    return lambda other: _weighted(total(other) / len(logits), weight)


def own_divergences(logits: Array) -> Loss:
    """As `own_losses`, for VAT: the sum of the reviews' own divergences."""
    p = functions.softmax(logits).array
    log_p = functions.log_softmax(logits).array
    return lambda other: functions.total(p * (log_p - functions.log_softmax(other)))


def _weighted(loss: chainer.Variable, weight: float) -> chainer.Variable:
    return loss if weight == 1 else weight * loss


# Attacks --------------------------------------------------------------------------------------

class AdvT:
    """AdvT (Miyato et al., 2017), and with `virtual` VAT: along the gradient.

    Args:
        epsilon: size of the perturbation, upstream's `xi_var`.
        level: what shares one norm, a `sentence` or a `word`.
        first_scale: upstream's `xi_var_first`, the size of VAT's random start.
        virtual: whether the gradient is taken at a random start instead of at zero.
        mask_eos: whether the end of the review stays in place.
        noise: function of an array module and a shape, draws VAT's random start; None: from
            the module's own stream.
        guide: adds the gradient of λ log p(x|y) of a class-conditional language model, so that
            the attack follows −log p(y|x) + λ log p(x|y), as the paper's discussion proposes.
    """

    def __init__(self, epsilon: float, level: str = 'sentence', first_scale: float = 1.0,
                 virtual: bool = False, mask_eos: bool = False,
                 noise: Callable[[Any, tuple], Array] | None = None,
                 guide: Guide | None = None):
        self.epsilon = epsilon
        self.level = level
        self.first_scale = first_scale
        self.virtual = virtual
        self.mask_eos = mask_eos
        self.noise = noise or _normal
        self.guide = guide

    def __call__(self, model: Any, ids: Array, lengths: Lengths, loss: Loss) -> Attacked:
        """Attacks a batch.

        Args:
            ids: words of all reviews `(N,)`, on the model's device.
            lengths: words per review, on the host.
            loss: function of the logits.
        """
        embedded = _embed(model, ids)
        start = model.xp.zeros_like(embedded)
        if self.virtual:
            start += self.first_scale * perturbations.vat_start(
                self.noise(model.xp, embedded.shape), lengths)
        gradient, first_loss, norms = self._gradient(model, ids, embedded, start, lengths, loss)
        return Attacked(self._step(gradient, lengths), first_loss, gradient_norms=norms)

    def _step(self, gradient: Array, lengths: Lengths) -> Array:
        return perturbations.advt(gradient, lengths, self.epsilon, self.level)

    def _gradient(self, model: Any, ids: Array, embedded: Array, start: Array, lengths: Lengths,
                  loss: Loss) -> tuple[Array, chainer.Variable, Array]:
        """Gradient of the loss with respect to the perturbation in units of `first_scale`, the
        loss, and `Attacked.gradient_norms`."""
        start = chainer.Variable(start)
        first_loss = loss(model.classify(embedded + start, lengths))
        gradient = chainer.grad([first_loss], [start])[0].array
        gradient, norms = guided(gradient, self.guide, ids, lengths, loss, start.array)
        if self.first_scale != 1:
            gradient = self.first_scale * gradient
        if self.mask_eos:
            gradient = gradient * (ids != EOS)[:, None]
        return gradient, first_loss, norms


def guided(gradient: Array, guide: Guide | None, ids: Array, lengths: Lengths, loss: Loss,
           perturbation: Array) -> tuple[Array, Array]:
    """A gradient of the loss with that of λ log p(x|y) added, and `Attacked.gradient_norms`.

    Both terms have one reduction, that of the loss.
    """
    if guide is None:
        return gradient, None
    assert isinstance(loss, LabelLoss), 'a guide needs the labels that the loss is about'
    addition = loss.scale * guide(ids, lengths, loss.labels, perturbation)
    xp = chainer.backend.get_array_module(gradient)
    norms = xp.sqrt(xp.stack([products.segment_totals(products.square_sums(part), lengths)
                              for part in (gradient, addition)], axis=1))
    return gradient + addition, norms


class IAdvT(AdvT):
    """iAdvT (Sato et al., 2018), and with `virtual` iVAT: along a sum of directions.

    Args:
        neighbors: table of neighbour ids, indexed by word ids.
    """

    def __init__(self, epsilon: float, neighbors: Any, **options: Any):
        super().__init__(epsilon, **options)
        self.neighbors = neighbors

    def __call__(self, model: Any, ids: Array, lengths: Lengths, loss: Loss) -> Attacked:
        embedded = _embed(model, ids)
        # Upstream: both ends of a direction have been through dropout.
        directions = perturbations.directions(embedded, _embed(model, self.neighbors[ids]))
        if self.virtual:
            start = self.first_scale * perturbations.ivat_start(directions)
        else:
            start = model.xp.zeros_like(embedded)
        gradient, first_loss, _ = self._gradient(model, ids, embedded, start, lengths, loss)
        weights = perturbations.attention_gradient(gradient, directions, self.virtual)
        return Attacked(perturbations.iadvt(weights, directions, lengths, self.epsilon,
                                            self.level), first_loss)


class SPGD(AdvT):
    """SPGD (Barham and Feizi, 2019): M gradient steps, then project and sparsify once.

    Args:
        neighbors: table of neighbour ids, indexed by word ids.
        sparsity: σ, the share of words that stay in place.
        iterations: M.
        step: size of each gradient step; None: ε.
        toward_only: whether a word never moves away from its neighbours.
        directions: `clean` ones, or ones between vectors after `dropout`.
        rank: words are ranked by their `raw` or their `projected` norm.
    """

    def __init__(self, epsilon: float, neighbors: Any, sparsity: float = 0.75,
                 iterations: int = 1, step: float | None = None, toward_only: bool = False,
                 directions: str = 'clean', rank: str = 'raw', **options: Any):
        super().__init__(epsilon if step is None else step, **options)
        self.neighbors = neighbors
        self.sparsity = sparsity
        self.iterations = iterations
        self.toward_only = toward_only
        self.directions = directions
        self.rank = rank

    def __call__(self, model: Any, ids: Array, lengths: Lengths, loss: Loss) -> Attacked:
        raw, embedded, first_loss, norms = self._raw(model, ids, lengths, loss)
        asked: dict[str, Array] = {}

        def directions(words: Array) -> Array:
            asked.update(words=words, u=self._directions(model, ids[words], embedded[words]))
            return asked['u']

        perturbation, chosen = perturbations.spgd(
            raw, directions, lengths, self.sparsity, self.toward_only, self.rank)
        return Attacked(perturbation, first_loss, chosen, _away(perturbation, chosen, **asked),
                        norms)

    def _raw(self, model: Any, ids: Array, lengths: Lengths,
             loss: Loss) -> tuple[Array, Array, chainer.Variable, Array]:
        """M steps of AdvT, each at the point that the last one reached."""
        raw, firsts = 0, []
        for _ in range(self.iterations):
            embedded = _embed(model, ids)
            start = model.xp.zeros_like(embedded) + raw
            gradient, *first = self._gradient(model, ids, embedded, start, lengths, loss)
            raw = raw + self._step(gradient, lengths)
            firsts.append(first)
        return raw, embedded, *firsts[0]

    def _directions(self, model: Any, ids: Array, embedded: Array) -> Array:
        nearest = self.neighbors[ids]
        if self.directions == 'dropout':
            return perturbations.directions(embedded, _embed(model, nearest))
        return perturbations.table_directions(model.word_embed.W.array, ids, nearest)


def _away(perturbation: Array, chosen: Array, words: Array, u: Array) -> Array:
    """Which words move against the direction of the neighbour that they chose."""
    xp = chainer.backend.get_array_module(perturbation)
    away = xp.zeros(len(perturbation), bool)
    along = u[xp.arange(len(words)), chosen[words]]
    away[words] = products.row_sums(perturbation[words] * along) < 0
    return away


# Discrete attacks -----------------------------------------------------------------------------

class HotFlip:
    """HotFlip (Ebrahimi et al., 2018) over the K neighbours: all swaps at once.

    The gain of a swap is `(e_k − e_i) · g_i`, with g the gradient of the review's own loss without
    dropout. The ⌊(1 − σ) N⌋ words of largest positive best gain become that neighbour. `<eos>` and
    `<unk>` are never swapped and never chosen. Perturbations lead exactly to the chosen word.

    Args:
        neighbors: table of neighbour ids, indexed by word ids.
        sparsity: σ, the share of words that stay.
        guide: see `AdvT`.
    """

    def __init__(self, neighbors: Any, sparsity: float = 0.75, guide: Guide | None = None):
        self.neighbors = neighbors
        self.sparsity = sparsity
        self.guide = guide

    def __call__(self, model: Any, ids: Array, lengths: Lengths, loss: LabelLoss) -> Attacked:
        nearest = self.neighbors[ids]
        gradient, losses, _, norms = self._look(model, ids, ids, lengths, loss)
        gains = _gains(model.word_embed.W.array, ids, nearest, gradient)
        chosen = perturbations.hotflip(
            gains, lengths, perturbations.n_kept(lengths, self.sparsity))
        return self._swapped(model, ids, nearest, chosen, losses, norms)

    def _look(self, model: Any, ids: Array, text: Array, lengths: Lengths,
              loss: LabelLoss) -> tuple[Array, chainer.Variable, Array, Array]:
        """Of reviews whose words `ids` have become `text`: the gradient with respect to the word
        vectors, each review's own loss, the logits, and `Attacked.gradient_norms`."""
        vectors = model.word_embed.W.array
        with chainer.using_config('train', False):
            words = chainer.Variable(vectors[text])
            logits = model.classify(words, lengths)
            losses = loss.each(logits)
            gradient = chainer.grad([functions.total(losses)], [words])[0].array
            gradient, norms = guided(gradient, self.guide, ids, lengths, loss,
                                     words.array - vectors[ids])
        return gradient, losses, logits.array, norms

    def _swapped(self, model: Any, ids: Array, nearest: Array, chosen: Array,
                 losses: chainer.Variable, norms: Array) -> Attacked:
        vectors = model.word_embed.W.array
        return Attacked(vectors[_text(ids, nearest, chosen)] - vectors[ids],
                        functions.total(losses), chosen, gradient_norms=norms)


class GreedyHotFlip(HotFlip):
    """HotFlip one swap at a time, with the gradient of the text as it has become.

    A review is attacked until its prediction differs from its label, no swap has a positive gain,
    or the budget is spent. Neighbours are those of the original words, and no word is swapped
    twice. The result is the text of highest loss seen: the original where it is wrong already, and
    with two classes the one that changed the prediction, where there is one.
    """

    def __call__(self, model: Any, ids: Array, lengths: Lengths, loss: LabelLoss) -> Attacked:
        xp, lengths = model.xp, np.asarray(lengths)
        nearest = self.neighbors[ids]
        budget = perturbations.n_kept(lengths, self.sparsity)
        starts = np.cumsum(lengths) - lengths
        chosen = xp.full(len(ids), -1, np.int64)
        best, highest = chosen.copy(), xp.full(len(lengths), -np.inf, np.float32)
        active, swaps, first = np.arange(len(lengths)), 0, None
        while len(active):
            # Only reviews that are still attacked are read; a review does not depend on others.
            rows = xp.asarray(np.concatenate([
                np.arange(starts[i], starts[i] + lengths[i]) for i in active]))
            reviews, here = xp.asarray(active), lengths[active]
            part = loss.of(reviews)
            gradient, losses, logits, norms = self._look(
                model, ids[rows], _text(ids[rows], nearest[rows], chosen[rows]), here, part)
            first = first or (losses, norms)
            rises = losses.array > highest[reviews]
            highest[reviews] = xp.where(rises, losses.array, highest[reviews])
            rising = xp.repeat(rises, here.tolist())
            best[rows] = xp.where(rising, chosen[rows], best[rows])

            gains = _gains(model.word_embed.W.array, ids[rows], nearest[rows], gradient)
            gains[chosen[rows] >= 0] = -np.inf
            swap = perturbations.hotflip(gains, here, np.minimum(budget[active] - swaps, 1))
            chosen[rows] = xp.where(swap >= 0, swap, chosen[rows])
            resists = logits.argmax(axis=1) == part.labels
            active = active[chainer.cuda.to_cpu(resists & _any(swap >= 0, here))]
            swaps += 1
        assert first is not None
        return self._swapped(model, ids, nearest, best, *first)


def _text(ids: Array, nearest: Array, chosen: Array) -> Array:
    """The words after swaps `(N,)`: the chosen neighbours, the words themselves where −1."""
    xp = chainer.backend.get_array_module(ids)
    return xp.where(chosen >= 0, nearest[xp.arange(len(ids)), chosen.clip(0)], ids)


def _gains(vectors: Array, ids: Array, nearest: Array, gradient: Array) -> Array:
    """The gains of all swaps `(N, K)`, −∞ where a word or its neighbour is none."""
    xp = chainer.backend.get_array_module(gradient)
    gains = xp.concatenate([perturbations.swap_gains(
        gradient[start:start + BLOCK_WORDS], vectors[ids[start:start + BLOCK_WORDS]],
        vectors[nearest[start:start + BLOCK_WORDS]]) for start in range(0, len(ids), BLOCK_WORDS)])
    gains[(nearest == EOS) | (nearest == UNK)] = -np.inf
    gains[(ids == EOS) | (ids == UNK)] = -np.inf
    return gains


def _any(words: Array, lengths: Lengths) -> Array:
    """Whether a condition `(N,)` holds for any word of each review."""
    return products.segment_totals(words.astype(np.float32), lengths) > 0


# Controls -------------------------------------------------------------------------------------

class NoAttack:
    """Leaves every word where it is."""

    def __init__(self, epsilon: float = 0.0, **options: Any):
        pass

    def __call__(self, model: Any, ids: Array, lengths: Lengths, loss: Loss) -> Attacked:
        vectors = model.word_embed.W.array
        return Attacked(model.xp.zeros((len(ids), vectors.shape[1]), vectors.dtype), None)


class SparseAdvT(AdvT):
    """AdvT of which only the largest perturbations are kept: SPGD without its projection.

    Args:
        sparsity: σ, the share of words that stay in place.
    """

    def __init__(self, epsilon: float, sparsity: float, **options: Any):
        super().__init__(epsilon, **options)
        self.sparsity = sparsity

    def __call__(self, model: Any, ids: Array, lengths: Lengths, loss: Loss) -> Attacked:
        attacked = super().__call__(model, ids, lengths, loss)
        raw = attacked.perturbation
        return attacked._replace(
            perturbation=perturbations.sparsify(raw, raw, lengths, self.sparsity))


class RandomDirections(AdvT):
    """Moves each word as far as AdvT does, in a random direction.

    The directions of a review depend on the seed and on its words, not on its batch.
    """

    def __init__(self, epsilon: float, seed: int, **options: Any):
        super().__init__(epsilon, **options)
        self.seed = seed

    def __call__(self, model: Any, ids: Array, lengths: Lengths, loss: Loss) -> Attacked:
        attacked = super().__call__(model, ids, lengths, loss)
        reviews = np.split(chainer.cuda.to_cpu(ids).astype(np.int32), np.cumsum(lengths)[:-1])
        emb_dim = attacked.perturbation.shape[1]
        noise = np.concatenate([
            np.random.RandomState([self.seed, zlib.crc32(review.tobytes())]).normal(
                size=(len(review), emb_dim)) for review in reviews])
        direction = model.xp.asarray(noise.astype(np.float32))
        size = perturbations.norms(attacked.perturbation) / perturbations.norms(direction)
        return attacked._replace(perturbation=direction * size[:, None])


def _embed(model: Any, ids: Array) -> Array:
    with chainer.no_backprop_mode():
        return model.embed(ids).array


def _normal(xp: Any, shape: tuple) -> Array:
    if xp is np:
        return np.random.normal(size=shape).astype('f')
    return xp.random.normal(size=shape, dtype='f')
