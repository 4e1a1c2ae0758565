"""Whether an attacked text still has its label, for readers other than the classifier.

Three answers for a discrete text: whether an independent judge changes its mind, how often it would
after random swaps of as many words, and how many swaps are antonyms or synonyms.
"""
import zlib
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from interpretable_adv.data.tokens import SPECIALS
from interpretable_adv.evaluation.judge import Judge, Sequences
from interpretable_adv.evaluation.wordnet import WordNet


class Judgement(NamedTuple):
    """What is said of each review; arrays `(reviews,)`.

    Attributes:
        before, after: the judged labels of the texts.
        random: that of the original after random swaps of as many words.
        antonyms, synonyms: how many swapped words are one of the word that they replace; None
            without WordNet.
    """

    before: np.ndarray
    after: np.ndarray
    random: np.ndarray
    antonyms: np.ndarray | None = None
    synonyms: np.ndarray | None = None


class Invariance:
    """An independent judge, and WordNet where there is one.

    Args:
        judge: trained on clean reviews.
        words: vocabulary in id order.
        wordnet: the database; None: antonyms and synonyms are not counted.
        seed: of the random swaps.
    """

    def __init__(self, judge: Judge, words: Sequence[str], wordnet: WordNet | None = None,
                 seed: int = 1234):
        self.judge, self.words, self.wordnet, self.seed = judge, words, wordnet, seed

    def __call__(self, before: Sequences, after: Sequences,
                 neighbors: Callable[[np.ndarray], np.ndarray]) -> Judgement:
        """Reads reviews and what became of them.

        Args:
            neighbors: function of word ids `(n,)` that gives their neighbours `(n, K)`.
        """
        swapped = [np.flatnonzero(old != new) for old, new in zip(before, after)]
        other = random_swaps(before, [len(places) for places in swapped], neighbors, self.seed)
        found = Judgement(*(self.judge.predict(texts) for texts in (before, after, other)))
        if self.wordnet is None:
            return found
        relations = [[self.wordnet.relation(self.words[old[i]], self.words[new[i]])
                      for i in places] for old, new, places in zip(before, after, swapped)]
        antonyms, synonyms = (np.array([kinds.count(kind) for kinds in relations])
                              for kind in ('antonym', 'synonym'))
        return found._replace(antonyms=antonyms, synonyms=synonyms)


def random_swaps(sequences: Sequences, counts: Sequence[int],
                 neighbors: Callable[[np.ndarray], np.ndarray], seed: int) -> list[np.ndarray]:
    """Reviews in which random words have become random ones of their neighbours.

    The swaps of a review depend on the seed and its words, not on its batch. As for HotFlip,
    `<eos>` and `<unk>` are neither swapped nor chosen.

    Args:
        counts: how many words of each review; all that can be, where there are fewer.
    """
    result = []
    for sequence, count in zip(sequences, counts):
        review = np.array(sequence)
        if count:
            random = np.random.RandomState([seed, zlib.crc32(review.astype(np.int32).tobytes())])
            others = neighbors(review)
            usable = np.flatnonzero(
                (review >= len(SPECIALS)) & (others >= len(SPECIALS)).any(axis=1))
            for place in random.permutation(usable)[:count]:
                candidates = others[place][others[place] >= len(SPECIALS)]
                review[place] = candidates[random.randint(len(candidates))]
        result.append(review)
    return result
