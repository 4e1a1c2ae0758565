"""Accuracy under attack: how often a classifier is right on texts that attacks have made."""
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from interpretable_adv.evaluation.measures import WORDS_PER_BATCH
from interpretable_adv.evaluation.victim import Adversary, Sequences, Victim
from interpretable_adv.nets import by_length

# Discrete texts: the attack and the reading, in the order of Table 4.
TEXTS = (('spgd', 'direction'), ('spgd', 'nearest'), ('adv', 'direction'), ('adv', 'nearest'),
         ('hotflip', 'direction'), ('hotflip_greedy', 'direction'))
ATTACKS = tuple(dict.fromkeys(method for method, _ in TEXTS))


class Texts(NamedTuple):
    """What attacks on one classifier have made of reviews.

    Attributes:
        words: `{(attack, reading): [review, …]}`.
        swaps: words that the greedy attack has swapped in each review.
    """

    words: dict[tuple[str, str], list[np.ndarray]]
    swaps: np.ndarray


def attacked_texts(adversaries: Mapping[str, Adversary], sequences: Sequences, labels: np.ndarray,
                   progress: Callable[[int], None] | None = None) -> Texts:
    """Attacks reviews with all of `ATTACKS`.

    Args:
        labels: int32 on the host.
        progress: called with the number of reviews done since the last call.
    """
    words: dict[tuple[str, str], list] = {text: [None] * len(sequences) for text in TEXTS}
    for batch in by_length(sequences, WORDS_PER_BATCH):
        for method in ATTACKS:
            attacked = adversaries[method]([sequences[i] for i in batch], labels[batch])
            for text in TEXTS:
                if text[0] == method:
                    for i, review in zip(batch, attacked.reading(text[1])):
                        words[text][i] = review
            if progress:
                progress(len(batch))
    swaps = np.array([int((old != new).sum()) for old, new in zip(
        sequences, words['hotflip_greedy', 'direction'])])
    return Texts(words, swaps)


def right(victim: Victim, sequences: Sequences, labels: np.ndarray) -> np.ndarray:
    """Whether the classifier is right on each review, boolean."""
    result = np.zeros(len(sequences), bool)
    for batch in by_length(sequences, WORDS_PER_BATCH):
        logits = victim.logits([sequences[i] for i in batch])
        result[batch] = logits.argmax(axis=1) == labels[batch]
    return result


def right_on_texts(victim: Victim, texts: Texts, labels: np.ndarray) -> dict[str, np.ndarray]:
    """Whether the classifier is right on each review under each attack: `{column: boolean}`."""
    return {column(text): right(victim, words, labels) for text, words in texts.words.items()}


def column(text: Sequence[str]) -> str:
    """The name of a text in files, such as `spgd_nearest`; an attack by swaps has one text."""
    method, reading = text
    return method if method.startswith('hotflip') else f'{method}_{reading}'


COLUMNS = tuple(column(text) for text in TEXTS)
