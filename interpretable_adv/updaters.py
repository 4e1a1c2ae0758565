"""One training step per method, as Chainer updaters.

Every step draws from the random stream in upstream's order: the clean pass, then the attack's
first pass, then the pass on the perturbed batch, each with dropout masks of its own.
"""
import chainer
import chainer.functions as F
import numpy as np
from chainer.training.updaters import StandardUpdater

from interpretable_adv import attacks, perturbations
from interpretable_adv.nn import doubles, products
from interpretable_adv.runs.distributed import ALONE


class BaselineUpdater(StandardUpdater):
    """Minimises the cross entropy of labelled reviews.

    Args:
        iterator: a `ReviewIterator`.
        optimizer: set up with the classifier.
        train: labelled reviews, a `data.Split`.
        alpha_decay: factor of Adam's alpha per step; 0: none.
        exponential: whether alpha is computed as `base · decay^step`, or multiplied each step.
        refresher: keeps the neighbours of interpretable methods fresh; None: there are none.
        team: the processes that train together.
    """

    def __init__(self, iterator, optimizer, train, alpha_decay=0.0, exponential=True,
                 refresher=None, team=ALONE):
        super().__init__(iterator, optimizer)
        self.refresher = refresher
        self.team = team
        self.model = optimizer.target
        self.train = train
        self.alpha_decay = alpha_decay
        self.exponential = exponential
        self.base_alpha = optimizer.alpha
        self.n_words = 0  # seen so far, for the progress line

    def update_core(self):
        optimizer = self.get_optimizer('main')
        labeled, unlabeled = self.get_iterator('main').next()
        with self.team.step(self.iteration):
            loss, parts = self.loss(labeled, unlabeled)
        self.model.cleargrads()
        values = self.team.backward(
            loss, {'loss': loss.array, **parts}, self.model, self.model.word_embed.W)
        optimizer.update()
        self._decay_alpha(optimizer)
        if self.refresher is not None:
            self.refresher.after_step(
                self.model, self.iteration + 1, self.epoch, self.is_new_epoch)
        chainer.report(values, self.model)

    def loss(self, labeled, unlabeled):
        """The loss to minimise, and named parts of it to report."""
        ids, lengths, share = self._batch(self.train.sequences, labeled)
        labels = self.model.xp.asarray(self.train.labels[share.indices])
        logits = self.model.classify(self.model.embed(ids), lengths)
        loss = attacks.mean_loss(labels, share.weight)(logits)
        parts = {'loss_clean': loss.array,
                 'accuracy': 100 * share.weight * F.accuracy(logits, labels).array}
        for term in self.terms(ids, lengths, labels, share, unlabeled, parts):
            loss += term
        return loss, parts

    def terms(self, ids, lengths, labels, share, unlabeled, parts):
        """What a method adds to the loss; subclasses also report into `parts`."""
        return []

    def _batch(self, sequences, indices):
        """Words of this process's reviews in one array on the device, words per review, and
        the process's `distributed.Share` of the batch."""
        share = self.team.reviews(sequences, indices)
        chosen = [sequences[i] for i in share.indices]
        ids = np.concatenate(chosen)
        if share.batch_ids is None:
            self.n_words += len(ids)
        else:
            self.n_words += len(share.batch_ids)
            if self.refresher is not None:
                self.refresher.table.prepare(share.batch_ids)
        return self.model.xp.asarray(ids), [len(sequence) for sequence in chosen], share

    def _decay_alpha(self, optimizer):
        if self.alpha_decay > 0:
            if self.exponential:
                optimizer.hyperparam.alpha = self.base_alpha * doubles.power(
                    self.alpha_decay, self.iteration + 1)
            else:
                optimizer.hyperparam.alpha *= self.alpha_decay

    def serialize(self, serializer):
        super().serialize(serializer)
        hyperparam = self.get_optimizer('main').hyperparam
        hyperparam.alpha = serializer('alpha', hyperparam.alpha)
        self.n_words = serializer('n_words', self.n_words)
        if hyperparam.alpha < 0:
            raise ValueError(f'alpha is {hyperparam.alpha}')
        if self.refresher is not None:
            self.refresher.table.serialize(serializer['neighbors'])


class AdversarialUpdater(BaselineUpdater):
    """AdvT, iAdvT: adds the loss of the perturbed labelled reviews.

    Args:
        attack: an attack of `attacks`, called with the batch's mean loss.
        weight: of the added loss, the paper's λ and upstream's `nl_factor`.
    """

    def __init__(self, *arguments, attack, weight=1.0, **options):
        super().__init__(*arguments, **options)
        self.attack = attack
        self.weight = weight

    def terms(self, ids, lengths, labels, share, unlabeled, parts):
        loss = attacks.mean_loss(labels, share.weight)
        attacked = self.attack(self.model, ids, lengths, loss)
        logits = self.model.classify(self.model.embed(ids) + attacked.perturbation, lengths)
        loss_adv = loss(logits)
        parts.update(loss_first=attacked.first_loss.array, loss_adv=loss_adv.array,
                     accuracy_adv=100 * share.weight * F.accuracy(logits, labels).array)
        parts.update((name, share.word_weight * value)
                     for name, value in self.describe(attacked).items())
        if attacked.gradient_norms is not None:
            means = products.column_sums(attacked.gradient_norms) * (share.weight / len(lengths))
            parts.update(gradient_norm=means[0], class_lm_gradient_norm=means[1])
        return [loss_adv * self.weight]

    def describe(self, attacked):
        """Statistics of the perturbation to report: means over words, by name."""
        return {}


class SPGDUpdater(AdversarialUpdater):
    """SPGD, which also reports what its perturbations look like."""

    def describe(self, attacked):
        return {'words_kept': (attacked.chosen >= 0).mean(), 'words_away': attacked.away.mean(),
                'perturbation_norm': products.mean(perturbations.norms(attacked.perturbation))}


class VirtualUpdater(BaselineUpdater):
    """VAT, iVAT: adds the divergence of outputs on perturbed unlabelled reviews.

    Args:
        unlabeled: id sequences; upstream's are the unlabelled reviews, then the labelled.
        virtual_attack: an attack of `attacks` made with `virtual`.
    """

    def __init__(self, *arguments, unlabeled, virtual_attack, **options):
        super().__init__(*arguments, **options)
        self.unlabeled = unlabeled
        self.virtual_attack = virtual_attack

    def terms(self, ids, lengths, labels, share, unlabeled, parts):
        terms = super().terms(ids, lengths, labels, share, unlabeled, parts)
        ids, lengths, share = self._batch(self.unlabeled, unlabeled)
        with chainer.no_backprop_mode():
            logits = self.model.classify(self.model.embed(ids), lengths).array
        loss = attacks.divergence(logits, share.weight)
        attacked = self.virtual_attack(self.model, ids, lengths, loss)
        loss_vat = loss(
            self.model.classify(self.model.embed(ids) + attacked.perturbation, lengths))
        parts.update(loss_vat_first=attacked.first_loss.array, loss_vat=loss_vat.array)
        return [*terms, loss_vat]


class AdversarialVirtualUpdater(VirtualUpdater, AdversarialUpdater):
    """Both terms, as upstream does with `use_adv` and `use_semi_data` together."""
