"""Reviews under attack: one classifier, one method, and what the attack makes of each review.

Every review is attacked through its own loss, without dropout, so that nothing depends on the
batch it happens to be in.
"""
import functools
import zlib
from collections.abc import Sequence
from typing import Any

import chainer
import numpy as np

from interpretable_adv import attacks, nets, perturbations
from interpretable_adv.data import Corpus
from interpretable_adv.evaluation.readings import NearestWords, neighbor_cosines
from interpretable_adv.methods import METHODS, AttackSettings
from interpretable_adv.neighbors import NeighborTable
from interpretable_adv.perturbations import Array
from interpretable_adv.settings import Reading

Sequences = Sequence[np.ndarray]  # reviews, int32 word ids on the host


class Victim:
    """A classifier, with what it takes to read its perturbed vectors as words.

    Args:
        model: a `nets.Classifier`, on its device.
        n_labeled_words: how many ids belong to words of labelled reviews; neighbours come from
            these where an attack's settings say so. None: all.
    """

    def __init__(self, model: nets.Classifier, n_labeled_words: int | None = None):
        self.model = model
        self.n_labeled_words = n_labeled_words
        self._tables: dict[tuple, NeighborTable] = {}

    @classmethod
    def load(cls, path: str, corpus: Corpus | Reading, device: Any) -> 'Victim':
        """The classifier of a checkpoint that was trained on a corpus like this one.

        Args:
            corpus: what has `words`, `n_class` and `n_labeled_words`.
        """
        model = nets.load_classifier(path, corpus.words, corpus.n_class)
        model.to_device(device)
        return cls(model, corpus.n_labeled_words)

    @property
    def embeddings(self) -> Array:
        return self.model.word_embed.W.array

    @functools.cached_property
    def nearest_words(self) -> NearestWords:
        return NearestWords(self.embeddings)

    def neighbors(self, settings: AttackSettings) -> Any:
        """The table of neighbours that an attack with these settings sees.

        Attacks share it: one of smaller K looks at the first neighbours of the largest table.
        """
        limit = self.n_labeled_words if settings.limit_vocabulary else None
        key = limit, settings.k_offset
        if key not in self._tables or self._tables[key].k < settings.k:
            self._tables[key] = NeighborTable(self.embeddings, settings.k, *key)
        return self._tables[key].first(settings.k)

    def logits(self, sequences: Sequences, perturbation: Array = None) -> np.ndarray:
        """Logits `(len(sequences), n_class)` on the host, of one batch."""
        with chainer.using_config('train', False), chainer.no_backprop_mode():
            logits = self.model([self.model.xp.asarray(s) for s in sequences], perturbation)
        return chainer.cuda.to_cpu(logits.array)


class Adversary:
    """One method's attack on a classifier.

    Args:
        method: of `METHODS`.
        victim: the classifier.
        settings: of the attack.
        guide: the class-conditional language model that the settings name, see `attacks.Guide`.
    """

    def __init__(self, method: str, victim: Victim, settings: AttackSettings,
                 guide: attacks.Guide | None = None):
        self.method, self.victim, self.settings = method, victim, settings
        self.table = victim.neighbors(settings)
        self.guide = guide

    @property
    def epsilon(self) -> float | None:
        """Its ε; None for attacks that have none."""
        return None if METHODS[self.method].swaps else self.settings.epsilon

    def neighbors_of(self, ids: np.ndarray) -> np.ndarray:
        """The neighbours `(n, K)` of words `(n,)`, both on the host."""
        return chainer.cuda.to_cpu(self.table[self.victim.model.xp.asarray(ids)])

    def __call__(self, sequences: Sequences, labels: np.ndarray) -> 'AttackedReviews':
        """Attacks a batch of reviews.

        Args:
            labels: int32 `(len(sequences),)` on the host.
        """
        model = self.victim.model
        ids = model.xp.asarray(np.concatenate(sequences))
        attack = METHODS[self.method].build_attack(
            self.settings, self.table, functools.partial(self._noise, sequences), self.guide)
        with chainer.using_config('train', False):
            if METHODS[self.method].virtual:
                logits = model.xp.asarray(self.victim.logits(sequences))
                loss = attacks.own_divergences(logits)
            else:
                loss = attacks.own_losses(model.xp.asarray(labels))
            attacked = attack(model, ids, _lengths(sequences), loss)
        return AttackedReviews(self, sequences, ids, attacked)

    def _noise(self, sequences: Sequences, xp: Any, shape: tuple) -> Array:
        """VAT's random start; each review's depends on the seed and its words alone."""
        return xp.asarray(np.concatenate([
            np.random.RandomState([self.settings.seed, zlib.crc32(sequence.tobytes())]).normal(
                size=(len(sequence), shape[1])) for sequence in sequences]).astype(np.float32))


class AttackedReviews:
    """A batch of reviews after an attack. Arrays `(N, …)` have a row per word of all reviews.

    Attributes:
        sequences: the reviews, on the host.
        ids: their words `(N,)`, on the model's device, as is
        perturbation: `(N, emb_dim)`.
        gradient_norms: see `attacks.Attacked`.
    """

    def __init__(self, adversary: Adversary, sequences: Sequences, ids: Array,
                 attacked: attacks.Attacked):
        self.adversary, self.sequences, self.ids = adversary, sequences, ids
        self.perturbation = attacked.perturbation
        self.gradient_norms = attacked.gradient_norms
        self._chosen = attacked.chosen
        self._victim = adversary.victim

    @functools.cached_property
    def logits(self) -> np.ndarray:
        """Of the reviews as they are, on the host."""
        return self._victim.logits(self.sequences)

    @functools.cached_property
    def norms(self) -> np.ndarray:
        """Lengths of the words' perturbations, on the host."""
        return chainer.cuda.to_cpu(perturbations.norms(self.perturbation))

    @functools.cached_property
    def neighbors(self) -> Array:
        """The neighbours of each word `(N, K)`, ids on the device."""
        return self.adversary.table[self.ids]

    @functools.cached_property
    def cosines(self) -> Array:
        """Cosines between the perturbation and the directions to the neighbours `(N, K)`."""
        # An ε below float32's range moves nothing, like one of 0; swaps have none.
        epsilon = np.float32(self.adversary.epsilon or 0) or 1
        return neighbor_cosines(self._victim.embeddings, self.ids, self.neighbors,
                                self.perturbation / epsilon)

    @functools.cached_property
    def neighbor_index(self) -> Array:
        """Which of its neighbours each word moves along `(N,)`, on the device: the one of highest
        cosine, or the attack's own choice, from which it may even move away."""
        if self._chosen is None:
            return self.cosines.argmax(axis=1)
        return self._chosen.clip(0)  # a word that stays has chosen none

    @functools.cached_property
    def toward(self) -> Array:
        """The neighbour that each word moves along, the word itself where it stays `(N,)`."""
        xp = self._victim.model.xp
        rows = xp.arange(len(self.ids))
        moved = xp.asarray(self.norms > 0)
        return xp.where(moved, self.neighbors[rows, self.neighbor_index], self.ids)

    @functools.cached_property
    def nearest(self) -> Array:
        """The word nearest to each perturbed vector `(N,)`, ids on the device."""
        return self._victim.nearest_words(self.ids, self.perturbation)

    def reading(self, name: str) -> list[np.ndarray]:
        """The reviews with their words replaced: read as `nearest` words, or in the `direction`
        in which they move."""
        words = {'nearest': lambda: self.nearest, 'direction': lambda: self.toward}[name]()
        return self.split(chainer.cuda.to_cpu(words).astype(np.int32))

    def logits_after(self, name: str) -> np.ndarray:
        """Logits of the attacked reviews in one of `readings.READINGS`, on the host."""
        if name == 'continuous':
            return self._victim.logits(self.sequences, self.perturbation)
        return self._victim.logits(self.reading(name))

    def split(self, rows: np.ndarray) -> list[np.ndarray]:
        """Rows of all words, by review."""
        return np.split(rows, np.cumsum(_lengths(self.sequences))[:-1])


def _lengths(sequences: Sequences) -> list[int]:
    return [len(sequence) for sequence in sequences]
