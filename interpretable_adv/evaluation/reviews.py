"""One attacked review at a time: what is left of a batch when it is over, on the host and small."""
import dataclasses
from collections.abc import Sequence

import chainer
import numpy as np

from interpretable_adv import perturbations
from interpretable_adv.data import NO_LABEL
from interpretable_adv.evaluation import measures
from interpretable_adv.evaluation.victim import Adversary, AttackedReviews, Sequences
from interpretable_adv.methods import METHODS, AttackSettings
from interpretable_adv.nn import functions

DISCRETE = ('nearest', 'direction')  # readings that are texts


@dataclasses.dataclass(frozen=True)
class AttackedReview:
    """What an attack did to one review of n words, `<eos>` included. Ids are of words.

    Attributes:
        method, settings: the attack.
        label: the class whose loss was attacked.
        is_labeled: whether the label was given; if not, it is the prediction.
        ids, toward, nearest: `(n,)`, the word, what it moves along, what it is nearest to now.
        neighbors, cosines: `(n, K)`.
        norm, max_cosine, neighbor_distance: `(n,)`, see `records`.
        logits, logits_adv: before and after, `(n_class,)`.
        logits_read: after, by reading of `DISCRETE`, as far as they were asked for.
        perplexity: by `clean` and reading; None without a language model.
    """

    method: str
    settings: AttackSettings
    label: int
    is_labeled: bool
    ids: np.ndarray
    toward: np.ndarray
    nearest: np.ndarray
    neighbors: np.ndarray
    cosines: np.ndarray
    norm: np.ndarray
    max_cosine: np.ndarray
    neighbor_distance: np.ndarray
    logits: np.ndarray
    logits_adv: np.ndarray
    logits_read: dict[str, np.ndarray] = dataclasses.field(default_factory=dict)
    perplexity: dict[str, float] | None = None

    @property
    def epsilon(self) -> float | None:
        """Its ε; None for attacks that have none."""
        return None if METHODS[self.method].swaps else self.settings.epsilon


def attack(adversary: Adversary, sequences: Sequences, labels: np.ndarray,
           readings: Sequence[str] = (), scorer: measures.Scorer | None = None,
           nll_clean: np.ndarray | None = None) -> list[AttackedReview]:
    """Attacks a batch of reviews.

    Args:
        labels: int32 on the host; `NO_LABEL`: the class that the classifier predicts.
        readings: of `DISCRETE`, in which the classifier reads the result as well.
        scorer: a language model that reads it, for perplexities.
        nll_clean: `scorer.nll(sequences)`, where it is known already.
    """
    labels = np.asarray(labels, np.int32)
    given = labels != NO_LABEL
    logits = adversary.victim.logits(sequences)
    labels = np.where(given, labels, logits.argmax(axis=1)).astype(np.int32)
    attacked = adversary(sequences, labels)
    attacked.logits = logits  # known already
    perplexities = None
    if scorer is not None:
        if nll_clean is None:
            nll_clean = scorer.nll(sequences)
        perplexities = measures.review_perplexities(scorer, attacked, nll_clean)
    return split(attacked, labels, given, readings, perplexities)


def split(attacked: AttackedReviews, labels: np.ndarray, given: np.ndarray | None = None,
          readings: Sequence[str] = (),
          perplexities: Sequence[dict[str, float]] | None = None) -> list[AttackedReview]:
    """The reviews of an attacked batch, see `attack`."""
    embeddings = attacked.adversary.victim.embeddings
    rows = chainer.backend.get_array_module(embeddings).arange(len(attacked.ids))
    step = embeddings[attacked.toward] - embeddings[attacked.ids]
    columns = {'ids': attacked.ids, 'toward': attacked.toward, 'nearest': attacked.nearest,
               'neighbors': attacked.neighbors, 'cosines': attacked.cosines,
               'norm': attacked.norms,
               'max_cosine': attacked.cosines[rows, attacked.neighbor_index],
               'neighbor_distance': perturbations.norms(step)}
    parts = {name: attacked.split(chainer.cuda.to_cpu(array)) for name, array in columns.items()}
    after = attacked.logits_after('continuous')
    read = {name: attacked.logits_after(name) for name in readings}
    return [AttackedReview(
        attacked.adversary.method, attacked.adversary.settings, int(labels[i]),
        bool(given is None or given[i]), logits=attacked.logits[i], logits_adv=after[i],
        logits_read={name: logits[i] for name, logits in read.items()},
        perplexity=perplexities[i] if perplexities else None,
        **{name: part[i] for name, part in parts.items()})
        for i in range(len(attacked.sequences))]


def probabilities(logits: np.ndarray) -> np.ndarray:
    """Of the classes, `(n_class,)` from logits `(n_class,)`."""
    with chainer.no_backprop_mode():
        return functions.softmax(logits[None]).array[0]
