"""The adversaries: from a model and a batch to a perturbation of its word vectors.

An attack takes one or more gradients of a loss with respect to a perturbation, and hands them to
the formulas of `perturbations`. Training, analysis and Table 1 use the same attacks; they
differ in the loss (the batch's mean, or each review's own) and in dropout.
"""
from typing import Any, NamedTuple

import chainer
import chainer.functions as F
import numpy as np

from interpretable_adv import perturbations

EOS = 0


class Attacked(NamedTuple):
    """What an attack found.

    Attributes:
        perturbation: `(N, emb_dim)`.
        first_loss: the loss before the attack, a Variable.
        chosen: for SPGD the neighbour of each word, an id, or −1 where the word stays.
        away: for SPGD, which words move away from their neighbour, a boolean.
    """

    perturbation: Any
    first_loss: Any
    chosen: Any = None
    away: Any = None


def own_losses(labels):
    """A loss whose gradient is, for each review, that of the review's own cross entropy."""
    return lambda logits: F.sum(F.softmax_cross_entropy(logits, labels, reduce='no'))


def mean_loss(labels, weight=1):
    """Training's loss: the mean cross entropy of the batch.

    Args:
        weight: what part of a larger batch these reviews are.
    """
    return lambda logits: _weighted(F.softmax_cross_entropy(logits, labels), weight)


def divergence(logits, weight=1):
    """VAT's loss: mean KL divergence of perturbed outputs from `logits`, held constant."""
    p = F.softmax(logits).array
    log_p = F.log_softmax(logits).array
    return lambda other: _weighted(
        F.sum(p * (log_p - F.log_softmax(other))) / len(logits), weight)


def _weighted(loss, weight):
    return loss if weight == 1 else weight * loss


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
    """

    def __init__(self, epsilon, level='sentence', first_scale=1.0, virtual=False,
                 mask_eos=False, noise=None):
        self.epsilon = epsilon
        self.level = level
        self.first_scale = first_scale
        self.virtual = virtual
        self.mask_eos = mask_eos
        self.noise = noise or _normal

    def __call__(self, model, ids, lengths, loss):
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
        gradient, first_loss = self._gradient(model, ids, embedded, start, lengths, loss)
        return Attacked(self._step(gradient, lengths), first_loss)

    def _step(self, gradient, lengths):
        return perturbations.advt(gradient, lengths, self.epsilon, self.level)

    def _gradient(self, model, ids, embedded, start, lengths, loss):
        """Gradient of the loss with respect to the perturbation in units of `first_scale`."""
        start = chainer.Variable(start)
        first_loss = loss(model.classify(embedded + start, lengths))
        gradient = chainer.grad([first_loss], [start])[0].array
        if self.first_scale != 1:
            gradient = self.first_scale * gradient
        if self.mask_eos:
            gradient = gradient * (ids != EOS)[:, None]
        return gradient, first_loss


class IAdvT(AdvT):
    """iAdvT (Sato et al., 2018), and with `virtual` iVAT: along a sum of directions.

    Args:
        neighbors: table of neighbour ids, indexed by word ids.
    """

    def __init__(self, epsilon, neighbors, **options):
        super().__init__(epsilon, **options)
        self.neighbors = neighbors

    def __call__(self, model, ids, lengths, loss):
        embedded = _embed(model, ids)
        # Upstream: both ends of a direction have been through dropout.
        directions = perturbations.directions(embedded, _embed(model, self.neighbors[ids]))
        if self.virtual:
            start = self.first_scale * perturbations.ivat_start(directions)
        else:
            start = model.xp.zeros_like(embedded)
        gradient, first_loss = self._gradient(model, ids, embedded, start, lengths, loss)
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

    def __init__(self, epsilon, neighbors, sparsity=0.75, iterations=1, step=None,
                 toward_only=False, directions='clean', rank='raw', **options):
        super().__init__(epsilon if step is None else step, **options)
        self.neighbors = neighbors
        self.sparsity = sparsity
        self.iterations = iterations
        self.toward_only = toward_only
        self.directions = directions
        self.rank = rank

    def __call__(self, model, ids, lengths, loss):
        raw, embedded, first_loss = self._raw(model, ids, lengths, loss)
        # Ranked by their raw norm, words that stay in place need no directions: sparsifying
        # first gives the same result as Algorithm 1's order, with a quarter of the work.
        words = (perturbations.kept_positions(raw, lengths, self.sparsity)
                 if self.rank == 'raw' else model.xp.arange(len(ids)))
        nearest = self.neighbors[ids[words]]
        directions = self._directions(model, ids[words], embedded[words], nearest)
        moved, index = perturbations.project(raw[words], directions, self.toward_only)
        perturbation = model.xp.zeros_like(raw)
        perturbation[words] = moved
        rows = model.xp.arange(len(words))
        chosen = model.xp.full(len(ids), -1, np.int32)
        chosen[words] = nearest[rows, index]
        away = model.xp.zeros(len(ids), bool)
        away[words] = (moved * directions[rows, index]).sum(axis=1) < 0
        if self.rank == 'projected':
            kept = perturbations.kept_words(perturbation, lengths, self.sparsity)
            perturbation *= kept[:, None]
            chosen[~kept] = -1
            away &= kept
        return Attacked(perturbation, first_loss, chosen, away)

    def _raw(self, model, ids, lengths, loss):
        """M steps of AdvT, each at the point that the last one reached."""
        raw, losses = 0, []
        for _ in range(self.iterations):
            embedded = _embed(model, ids)
            start = model.xp.zeros_like(embedded) + raw
            gradient, first_loss = self._gradient(model, ids, embedded, start, lengths, loss)
            raw = raw + self._step(gradient, lengths)
            losses.append(first_loss)
        return raw, embedded, losses[0]

    def _directions(self, model, ids, embedded, nearest):
        if self.directions == 'dropout':
            return perturbations.directions(embedded, _embed(model, nearest))
        return perturbations.table_directions(model.word_embed.W.array, ids, nearest)


def _embed(model, ids):
    with chainer.no_backprop_mode():
        return model.embed(ids).array


def _normal(xp, shape):
    if xp is np:
        return np.random.normal(size=shape).astype('f')
    return xp.random.normal(size=shape, dtype='f')
