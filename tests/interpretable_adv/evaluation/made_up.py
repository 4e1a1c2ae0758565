"""Measurements of attacks that never happened, of any strength."""
import numpy as np

from interpretable_adv.evaluation.measures import Judgement, Measurement


def measurement(strength, n_reviews=12, seed=0, wordnet=True):
    """Stronger attacks flip more, cost more likelihood and swap more words."""
    rng = np.random.RandomState(seed)
    found = Measurement([np.zeros(length, int) for length in rng.randint(1, 9, n_reviews)],
                        ('continuous', 'nearest'))
    found.nll_clean = rng.uniform(2, 5, n_reviews) * found.predictions
    before = rng.randint(0, 2, n_reviews)
    for reading in found.readings:
        found.nll[reading] = found.nll_clean * (1 + strength * rng.uniform(0, 0.1, n_reviews))
        found.flipped[reading] = rng.uniform(size=n_reviews) < strength
    found.changed['nearest'] = rng.binomial(found.words, min(1, strength)).astype(float)
    antonyms, synonyms = (rng.binomial(found.changed['nearest'].astype(int), share)
                          if wordnet else None for share in (0.3, 0.1))
    found.judgements['nearest'] = Judgement(
        before, np.where(rng.uniform(size=n_reviews) < strength / 2, 1 - before, before),
        before, antonyms, synonyms)
    return found


def repeated(found, counts):
    """A measurement of the reviews of a draw, each as often as it was drawn."""
    rows = np.repeat(np.arange(len(counts)), counts)
    drawn = Measurement([np.zeros(length, int) for length in found.words[rows]], found.readings)
    drawn.nll_clean = found.nll_clean[rows]
    for name in ('nll', 'flipped', 'changed'):
        for reading in found.readings:
            getattr(drawn, name)[reading] = getattr(found, name)[reading][rows]
    drawn.judgements = {reading: Judgement(*(part if part is None else part[rows]
                                             for part in judgement))
                        for reading, judgement in found.judgements.items()}
    return drawn
