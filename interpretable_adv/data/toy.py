"""A corpus of film reviews made up by a small grammar, for trying everything out in minutes.

Sentiment lies in groups of near-synonyms. The words of a group occur in the same sentences and
have the same things said after them, so that a language model places them side by side. A
positive and a negative group belong to each aspect of a film (its plot, its pace, its jokes …)
and are used plainly, under negation, and in concessions, where only the main clause counts:
counting words is not enough to classify the reviews, reading them in order is. A few reviews
praise almost everything and still condemn the film, or the reverse, so nobody scores 100 %.
"""
import random
import re

from interpretable_adv.data import text_files, tokens

SIZES = {'train': 2000, 'dev': 400, 'test': 1000, 'unlabeled': 3000}
SHORTEST, LONGEST = 8, 40  # words of a review

# What is judged; then, for negative (0) and positive (1), interchangeable adjectives and what may
# be said after them.
ASPECTS = [
    (['story was', 'plot was', 'script was', 'screenplay was'],
     (['predictable', 'stale', 'formulaic', 'unoriginal', 'derivative'],
      ['and copied from better films', 'and copied from older films']),
     (['clever', 'smart', 'inventive', 'original', 'imaginative'],
      ['and full of surprises', 'and full of ideas'])),
    (['first half was', 'second half was', 'chase was', 'action was'],
     (['boring', 'dull', 'tedious', 'dreary', 'tiresome'],
      ['and put me to sleep', 'and sent me to sleep']),
     (['gripping', 'thrilling', 'exciting', 'absorbing', 'riveting'],
      ['and kept me on the edge of my seat', 'and kept me awake'])),
    (['jokes were', 'gags were', 'comedy was', 'humour was'],
     (['silly', 'stupid', 'lame', 'childish', 'feeble'],
      ['and made us groan', 'and made us yawn']),
     (['funny', 'hilarious', 'witty', 'amusing', 'comical'],
      ['and had us laughing', 'and had us giggling'])),
    (['ending was', 'romance was', 'farewell was', 'love story was'],
     (['cold', 'hollow', 'shallow', 'empty', 'lifeless'],
      ['and left me indifferent', 'and meant nothing to me']),
     (['touching', 'moving', 'tender', 'heartfelt', 'poignant'],
      ['and brought me to tears', 'and stayed with me for days'])),
    (['photography was', 'scenery was', 'costumes were', 'sets were'],
     (['ugly', 'drab', 'shabby', 'cheap', 'tasteless'],
      ['and hurt the eye', 'and looked like cardboard']),
     (['beautiful', 'gorgeous', 'lovely', 'stunning', 'elegant'],
      ['and pleased the eye', 'and resembled a painting'])),
    (['actors were', 'cast was', 'leading man was', 'performances were'],
     (['terrible', 'awful', 'dreadful', 'horrible', 'atrocious'],
      ['and spoiled every scene', 'and ruined every scene']),
     (['wonderful', 'superb', 'excellent', 'brilliant', 'terrific'],
      ['and carried every scene', 'and lifted every scene'])),
]

# {subject} is 'jokes were'; {noun} is 'jokes'; {same} means what the sentence means, {other} the
# opposite. The second subject of a sentence is about another aspect.
PLAIN = [
    'The {subject} {degree} {same}.',
    'The {subject} {same} {tail}.',
    'The {subject} {degree} {same} {tail}.',
    'I must say the {subject} {same} {tail}.',
    'I thought the {subject} {same} {tail}.',
    'I found the {noun} {degree} {same}.',
    'The {subject} {same} and {same}.',
    'The {subject} not only {same} but also {same}.',
]
NEGATED = [
    'The {subject} not {other}.',
    'The {subject} not {other} at all.',
    'The {subject} never {other}.',
    'I did not find the {noun} {other}.',
    'Nobody could call the {noun} {other}.',
]
CONCESSIONS = [
    'Although the {subject2} {other2}, the {subject} {same} {tail}.',
    'The {subject2} {other2} but the {subject} {same} {tail}.',
    'I expected something {other}, but the {subject} {degree} {same}.',
]
VERDICTS = (
    ['I {hated} {this} {film}.', 'Sadly I {hated} it.', '{Skip} {this} {film}.',
     'My {relative} {hated} it too.', 'I did not {love} {this} {film}.', 'A {waste} of time.',
     'It was not worth the money.', 'I would not watch it again.'],
    ['I {loved} {this} {film}.', 'Happily I {loved} it.', '{See} {this} {film}.',
     'My {relative} {loved} it too.', 'I did not {hate} {this} {film}.', 'A {joy} to watch.',
     'It was worth the money.', 'I would watch it again.'])
FILLER = [
    'I saw {this} {film} on {day} with my {relative}.',
    'We watched it at the {place} in {month}.',
    'My {relative} gave me the tape.',
    'The {film} was made in {country}.',
    'It runs for {number} hours.',
    'It follows a {young} {job} who moves to {a_town}.',
    'It tells of a {job} and a {job} in {a_town}.',
    'A {young} {job} meets a {job} in {a_town}.',
    'The director also wrote a book about {country}.',
    'I had not read the book.',
    'I did not know the director.',
    'I never read reviews before.',
]
SLOTS = {
    'degree': ['really', 'truly', 'very', 'so', 'extremely', 'quite'],
    'film': ['film', 'movie', 'picture'],
    'this': ['this', 'the'],
    'hated': ['hated', 'disliked', 'loathed', 'despised'],
    'loved': ['loved', 'enjoyed', 'liked', 'adored'],
    'hate': ['hate', 'dislike', 'loathe', 'despise'],
    'love': ['love', 'enjoy', 'like', 'adore'],
    'Skip': ['Skip', 'Avoid', 'Forget'],
    'See': ['See', 'Watch', 'Rent'],
    'waste': ['waste', 'loss'],
    'joy': ['joy', 'pleasure', 'delight'],
    'relative': ['sister', 'brother', 'mother', 'father', 'wife', 'husband', 'cousin', 'uncle',
                 'aunt'],
    'day': ['Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday', 'Sunday'],
    'month': ['January', 'February', 'April', 'June', 'July', 'August', 'October', 'December'],
    'place': ['cinema', 'theatre', 'festival', 'school', 'library', 'museum', 'club'],
    'country': ['France', 'Italy', 'Spain', 'Japan', 'China', 'Brazil', 'Mexico', 'Poland',
                'Canada'],
    'number': ['two', 'three', 'four'],
    'young': ['young', 'poor', 'shy', 'tall', 'famous'],
    'job': ['teacher', 'doctor', 'farmer', 'soldier', 'baker', 'lawyer', 'painter', 'singer',
            'nurse', 'sailor', 'widow', 'thief', 'spy', 'clown'],
    'a_town': ['a small town', 'a quiet village', 'a big city', 'a lonely valley'],
}


class Grammar:
    """Draws reviews from a seed, apart from all other random numbers of the program."""

    def __init__(self, seed):
        # Only `random()` is used: Python promises the same numbers from it in every version.
        self._random = random.Random(seed).random

    def chance(self, probability):
        return self._random() < probability

    def choose(self, options):
        return options[int(self._random() * len(options))]

    def fill(self, frame, values):
        """Replaces each {slot} of `frame` by a word that `values[slot]` lists, never one twice."""
        used = set()

        def word(match):
            options = [option for option in values[match.group(1)] if option not in used]
            chosen = self.choose(options)
            used.add(chosen)
            return chosen
        return re.sub(r'\{(\w+)\}', word, frame)

    def opinion(self, sentiment):
        """One sentence that judges an aspect of the film."""
        first = self.choose(ASPECTS)
        second = self.choose([aspect for aspect in ASPECTS if aspect is not first])
        subject = self.choose(first[0])
        same, tails = first[1 + sentiment]
        values = {
            'subject': [subject], 'noun': [subject.rsplit(' ', 1)[0]],
            'same': same, 'tail': tails, 'other': first[2 - sentiment][0],
            'subject2': second[0], 'other2': second[2 - sentiment][0]}
        kind = self._random()
        frames = PLAIN if kind < 0.7 else NEGATED if kind < 0.9 else CONCESSIONS
        return self.fill(self.choose(frames), {**SLOTS, **values})

    def review(self, sentiment):
        """The words of a review whose author feels `sentiment` (0 or 1) about the film."""
        while True:
            n_opinions = self.choose([2, 2, 3])
            opinions = [sentiment] * n_opinions
            if n_opinions == 3 and self.chance(0.15):
                opinions[self.choose([0, 1, 2])] = 1 - sentiment
            elif self.chance(0.02):  # in spite of everything
                opinions = [1 - sentiment] * n_opinions
            sentences = [self.opinion(each) for each in opinions]
            for _ in range(self.choose([0, 1, 1, 2])):
                place = int(self._random() * (len(sentences) + 1))
                sentences.insert(place, self.fill(self.choose(FILLER), SLOTS))
            if self.chance(0.3):
                sentences.append(self.fill(self.choose(VERDICTS[sentiment]), SLOTS))
            words = tokens.tokenize(' '.join(sentences))
            if SHORTEST <= len(words) <= LONGEST:
                return words


def generate(seed=1234, sizes=SIZES):
    """Returns the corpus as `{file name: [review, …]}`; no two reviews are the same."""
    grammar, seen = Grammar(seed), set()

    def draw(sentiment):
        while True:
            review = ' '.join(grammar.review(sentiment))
            if review not in seen:
                seen.add(review)
                return review

    corpus = {name: [draw(label) for _ in range(sizes[split] // 2)]
              for split, pairs in text_files.UPSTREAM_FILES.items() for name, label in pairs}
    corpus[text_files.UPSTREAM_UNLABELED] = [draw(i % 2) for i in range(sizes['unlabeled'])]
    return corpus


def prepare(data_dir):
    """Writes the toy corpus; returns the number of reviews per file."""
    corpus = generate()
    text_files.write_upstream(data_dir, corpus)
    return {name: len(reviews) for name, reviews in corpus.items()}
