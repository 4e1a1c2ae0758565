"""The Python API: load a classifier, predict, attack.

    import interpretable_adv as ia
    model = ia.load('demo')
    model.predict(['A wonderful film.'])
    model.attack(['A wonderful film.'], method='spgd')

Texts are strings, results come in their order and do not depend on which texts are given together.
An invalid argument raises a `ValueError` that names it and says what is accepted.
"""
import dataclasses
import functools
import operator
import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from interpretable_adv import data, methods, nets, settings
from interpretable_adv.data import NO_LABEL, Text
from interpretable_adv.errors import ArgumentError, UserError
from interpretable_adv.evaluation import records, reviews
from interpretable_adv.evaluation.measures import WORDS_PER_BATCH
from interpretable_adv.evaluation.reviews import DISCRETE, AttackedReview
from interpretable_adv.evaluation.victim import Adversary, Victim
from interpretable_adv.methods import AttackSettings
from interpretable_adv.perturbations import RANKS
from interpretable_adv.runs import devices, folder
from lm.evaluation import Scorer
from lm.nets import load_lm


@dataclasses.dataclass(frozen=True)
class Prediction:
    """A classifier's prediction for a text.

    Attributes:
        label: name of the most probable class.
        probabilities: of each class, by name.
        known: how many words of the text the classifier knows; all else it does not see.
        unknown: the words that it does not know, in order.
    """

    label: str
    probabilities: dict[str, float]
    known: int = dataclasses.field(repr=False)
    unknown: list[str] = dataclasses.field(repr=False)

    @property
    def probability(self) -> float:
        """Of the predicted class."""
        return self.probabilities[self.label]


class Attack:
    """A text under attack.

    Attributes:
        text: as it was given.
        method, epsilon: the attack.
        label: name of the class that the attack leads away from.
        prediction, prediction_adv: names of the predicted class before the attack, and after it.
        flipped: whether the two differ.
        probabilities, probabilities_adv: of each class, by name.
        nearest_text: the text with each word replaced by the one nearest to its perturbed vector.
        direction_text: the text with each moved word replaced by the neighbour it moves along.
        readings: the predictions for these two texts, a `Prediction` by `nearest` and
            `direction`. (It reads what the end of the text moved to, too, which no text can hold.)
        words: a dict for each word that the classifier knows, and for the end of the text
            (`<eos>`): see `evaluation.records`.
        known, unknown: how many words it knows, and those that it does not.
        perplexity: under the language model, by `clean`, `continuous`, `nearest` and
            `direction`; None without one.
    """

    def __init__(self, model: 'Model', index: int, text: Text, review: AttackedReview):
        self._model, self._index, self._text, self._review = model, index, text, review
        self.text, self.known, self.unknown = text.text, text.known, text.unknown
        self.method, self.epsilon = review.method, review.epsilon
        self.label = model.labels[review.label]
        self.perplexity = review.perplexity
        self.prediction, self.probabilities = model._named(review.logits)
        self.prediction_adv, self.probabilities_adv = model._named(review.logits_adv)
        self.flipped = self.prediction != self.prediction_adv
        self.readings = {
            name: Prediction(*model._named(review.logits_read[name]), text.known, text.unknown)
            for name in DISCRETE}

    @property
    def nearest_text(self) -> str:
        return self._text.replace(self._review.nearest, self._model.words)

    @property
    def direction_text(self) -> str:
        return self._text.replace(self._review.toward, self._model.words)

    @functools.cached_property
    def words(self) -> list[dict[str, Any]]:
        return self.to_dict()['words']

    def to_dict(self) -> records.Record:
        """The record that `analysis` writes for this text, see `evaluation.records`."""
        # Made when it is asked for: the records of thousands of texts would take gigabytes.
        return records.make_record(self._review, self._index, self._model.words,
                                   self._model.labels, self._text)

    def __repr__(self) -> str:
        return (f'Attack(method={self.method!r}, prediction={self.prediction!r}, '
                f'prediction_adv={self.prediction_adv!r}, direction_text={self.direction_text!r})')


class Model:
    """A classifier of texts; `load` makes one.

    Attributes:
        path: its file.
        labels: names of the classes, in order.
        words: the vocabulary in id order; 0 is the end of a text, 1 stands for unknown words.
        tokenizer, lower: how texts become words.
        methods: names of the attacks.
        run: the settings that it was trained with, as its `args.json` has them.
    """

    def __init__(self, path: str, victim: Victim, reading: settings.Reading, scorer: Any = None):
        self.path, self.run = path, settings.read_run(path)
        self.words, self.labels = reading.words, reading.label_names
        self.tokenizer, self.lower = reading.tokenizer, reading.lower
        # Methods that need another language model are the commands'.
        self.methods = [name for name in methods.attackers()
                        if name != 'none' and not methods.METHODS[name].needs_guide]
        self.has_lm = scorer is not None
        self._trained = {name: settings.trained_attack(name, self.run, path)
                         for name in self.methods}
        self._reader = data.TextReader(self.words, self.tokenizer, self.lower, reading.ignore_unk)
        self._victim, self._scorer = victim, scorer

    def __repr__(self) -> str:
        return f'Model({self.path!r}, labels={self.labels}, {len(self.words):,} words)'

    def predict(self, texts: Sequence[str]) -> list[Prediction]:
        """The class of each text and its probabilities."""
        read = self._read(texts)
        if not read:
            return []
        logits = nets.predict(self._victim.model, [text.ids for text in read])
        return [Prediction(*self._named(row), text.known, text.unknown)
                for row, text in zip(logits, read)]

    def attack(self, texts: Sequence[str], method: str = 'spgd',
               labels: Sequence[str | int | None] | None = None, *,
               epsilon: float | None = None, sparsity: float | None = None,
               k: int | None = None, iterations: int | None = None, step: float | None = None,
               toward_only: bool | None = None, rank: str | None = None,
               mask_eos: bool | None = None, level: str | None = None,
               seed: int | None = None) -> list[Attack]:
        """Attacks each text through its own loss.

        Settings that are not given are those of `settings(method)`. A setting that the method
        does not use has no effect.

        Args:
            method: one of `methods`.
            labels: for each text its class, by name (a string) or by number (an integer); None,
                also for single texts: the predicted class.
            epsilon: ε, size of the perturbation.
            sparsity: σ, share of the words that stay in place.
            k: K, neighbours per word.
            iterations: M, gradient steps.
            step: size of a gradient step; without it ε.
            toward_only: whether a word never moves away from its neighbours.
            rank: words are ranked by their `raw` or their `projected` norm.
            mask_eos: whether the end of the text stays in place.
            level: what shares one norm, a `sentence` or a `word`.
            seed: of attacks that draw random numbers.
        """
        read = self._read(texts)
        numbers = self._numbers(labels, len(read))
        given = {'epsilon': epsilon, 'sparsity': sparsity, 'k': k, 'iterations': iterations,
                 'step': step, 'toward_only': toward_only, 'rank': rank, 'mask_eos': mask_eos,
                 'level': level, 'seed': seed}
        adversary = self._adversary(self.settings(method, **given), method)
        found: list[Any] = [None] * len(read)
        for batch in nets.by_length([text.ids for text in read], WORDS_PER_BATCH):
            attacked = reviews.attack(adversary, [read[i].ids for i in batch], numbers[batch],
                                      DISCRETE, self._scorer)
            for i, review in zip(batch, attacked):
                found[i] = Attack(self, i, read[i], review)
        return found

    def settings(self, method: str = 'spgd', **given: Any) -> AttackSettings:
        """The settings of an attack: those given, else what the classifier was trained with.

        ε, if not given, is the one it was trained with if that was by this method, else the
        paper's. None counts as not given.
        """
        if method not in self.methods:
            raise ArgumentError(f'method is {method!r}: give one of {", ".join(self.methods)}')
        checks = _checks(len(self.words))
        values = {}
        for name, value in given.items():
            if name not in checks:
                raise ArgumentError(f'{name} is no setting: give any of {", ".join(checks)}')
            if value is not None:
                values[name] = _checked(name, value, *checks[name])
        return dataclasses.replace(self._trained[method], **values)

    @property
    def largest_k(self) -> int:
        """The largest K that there are enough neighbours for."""
        attack = self._trained['spgd']
        limit = self._victim.n_labeled_words if attack.limit_vocabulary else None
        return min(limit or len(self.words), len(self.words)) - max(1, attack.k_offset)

    def _adversary(self, attack: AttackSettings, method: str) -> Adversary:
        try:
            return Adversary(method, self._victim, attack)
        except UserError:
            raise ArgumentError(f'k is {attack.k}: there are not that many words to choose '
                                'neighbours from; give a smaller number') from None

    def _read(self, texts: Sequence[str]) -> list[Text]:
        if isinstance(texts, str):
            raise ArgumentError('texts is one string: give a list of strings, such as [text]')
        try:
            texts = list(texts)
        except TypeError:
            raise ArgumentError(f'texts is {_shown(texts)}: give a list of strings') from None
        for index, text in enumerate(texts):
            if not isinstance(text, str):
                raise ArgumentError(f'texts[{index}] is {_shown(text)}: give strings')
        return [self._reader(text) for text in texts]

    def _numbers(self, labels: Sequence[str | int | None] | None, count: int) -> np.ndarray:
        """Class of each text, `NO_LABEL` where none is given."""
        if labels is None:
            return np.full(count, NO_LABEL, np.int32)
        if isinstance(labels, str) or not hasattr(labels, '__len__'):
            raise ArgumentError(f'labels is {_shown(labels)}: give a list with one for each text')
        if len(labels) != count:
            raise ArgumentError(f'labels has {len(labels)} entries for {count} texts: give one '
                                'for each text, or None')
        return np.array([self._number(label, index) for index, label in enumerate(labels)],
                        np.int32)

    def _number(self, label: Any, index: int) -> int:
        if label is None:
            return NO_LABEL
        if isinstance(label, str) and label in self.labels:
            return self.labels.index(label)
        try:
            number = -1 if isinstance(label, (str, bool, np.bool_)) else operator.index(label)
        except TypeError:
            number = -1
        if not 0 <= number < len(self.labels):
            raise ArgumentError(
                f'labels[{index}] is {_shown(label)}: give one of {", ".join(self.labels)}, a '
                f'number from 0 to {len(self.labels) - 1}, or None')
        return number

    def _named(self, logits: np.ndarray) -> tuple[str, dict[str, float]]:
        """Name of the predicted class, and all probabilities by name."""
        values = reviews.probabilities(logits)
        return self.labels[int(logits.argmax())], dict(zip(self.labels, values.tolist()))


def load(path: str | os.PathLike, lm: str | os.PathLike | None = None,
         device: str | None = None) -> Model:
    """Loads a classifier.

    Args:
        path: a run's folder, a `best.model` with its `vocab.txt` beside it, or `'demo'`, the
            embedded classifier of English film reviews.
        lm: a language model with the same vocabulary, its run's folder or `best.model`; attacks
            then have perplexities.
        device: `'@cupy:0'` for the first GPU; None or `'@numpy'` for the CPU.
    """
    try:
        return _load(path, lm, device)
    except ArgumentError:
        raise
    except UserError as error:
        raise ArgumentError(str(error)) from error


def _load(path: Any, lm: Any, device: str | None) -> Model:
    path = _model_file(path, 'path')
    if device is not None and not isinstance(device, str):
        raise ArgumentError(f"device is {_shown(device)}: give '@numpy' or '@cupy:N'")
    if device is None:
        device = '@numpy'
    try:
        chosen = devices.choose(name=device)
    except UserError as error:
        raise ArgumentError(f'device is {_shown(device)}: {error}') from error
    reading = settings.read_reading(path)
    victim = Victim.load(path, reading, chosen)
    scorer = None
    if lm is not None:
        state = np.random.get_state()  # which `load_lm` draws from
        language_model = load_lm(_model_file(lm, 'lm'), reading.words)
        np.random.set_state(state)
        language_model.to_device(chosen)
        scorer = Scorer(language_model)
    return Model(path, victim, reading, scorer)


def _model_file(path: Any, name: str) -> str:
    given = path
    if isinstance(path, os.PathLike):
        path = os.fspath(path)
    if not isinstance(path, str) or not path or '\0' in path:
        raise ArgumentError(f"{name} is {_shown(given)}: give the path of a run's folder or of its "
                            f'{folder.MODEL}')
    path = folder.model_file(path)
    if not os.path.isfile(path):
        raise ArgumentError(f"{name} is {given!r}: there is no such file; give a run's folder or "
                            f'its {folder.MODEL}' + (", or 'demo'" if name == 'path' else ''))
    return path


# Arguments ------------------------------------------------------------------------------------

LARGEST = 1_000_000  # of ε and steps: sums of squares stay within float32's range


def _checks(n_words: int) -> dict[str, tuple]:
    """By setting: its type, a check, and what is accepted."""
    size = float, lambda value: 0 <= value <= LARGEST, f'a number from 0 to {LARGEST:,}'
    switch = bool, lambda value: True, 'True or False'
    return {
        'epsilon': size, 'step': size,
        'sparsity': (float, lambda value: 0 <= value <= 1, 'a number from 0 to 1'),
        'k': (int, lambda value: 1 <= value < n_words, f'a whole number from 1 to {n_words - 1}'),
        'iterations': (int, lambda value: 1 <= value <= 1000, 'a whole number from 1 to 1000'),
        'toward_only': switch, 'mask_eos': switch,
        'rank': (str, RANKS.__contains__, ' or '.join(map(repr, RANKS))),
        'level': (str, ('sentence', 'word').__contains__, "'sentence' or 'word'"),
        'seed': (int, lambda value: 0 <= value < 2 ** 32, 'a whole number from 0 to 2³² − 1'),
    }


def _checked(name: str, value: Any, kind: type, accepts: Any, accepted: str) -> Any:
    try:
        if isinstance(value, (bool, np.bool_)) != (kind is bool):
            raise TypeError
        if kind is str and not isinstance(value, str) or kind is float and isinstance(value, str):
            raise TypeError
        converted = operator.index(value) if kind is int else kind(value)
        if not accepts(converted):
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise ArgumentError(f'{name} is {_shown(value)}: give {accepted}') from None
    return converted


def _shown(value: Any) -> str:
    """A value for a message, however long its own name of itself is."""
    text = repr(value)
    return text if len(text) <= 60 else text[:57] + '…'
