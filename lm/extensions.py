"""Trainer extensions of the language model: validation, decay, printed perplexities."""
import os

import chainer
import numpy as np
from chainer.training import extension

from interpretable_adv.runs import checkpoints
from lm.evaluation import perplexity


class TrainingPerplexity(extension.Extension):
    """Prints the perplexity of the last `interval` windows, in upstream's words.

    Args:
        interval: windows between two lines.
        window: words per stream and window; the loss is a sum over them.
        write: prints a line.
    """

    priority = extension.PRIORITY_READER
    trigger = 1, 'iteration'
    name = 'training_perplexity'

    def __init__(self, interval, window, write=print):
        self.interval, self.window, self.write = interval, window, write
        self.total = np.float64(0)

    def __call__(self, trainer):
        # On a GPU the sum stays there until it is printed.
        self.total = self.total + trainer.observation['main/loss'].astype(np.float64)
        count = trainer.updater.iteration
        if count % self.interval == 0:
            value = perplexity(float(self.total), self.interval * self.window)
            self.write(f'i {count}\tperp {value:.3f}')
            self.total = np.float64(0)

    def serialize(self, serializer):
        self.total = np.float64(serializer('total', float(self.total)))


class Validation(extension.Extension):
    """Reports the validation perplexity of the model as `validation/perplexity`.

    Args:
        evaluate: function without arguments, returns the perplexity.
        write: prints a line.
    """

    priority = extension.PRIORITY_WRITER
    trigger = 1, 'epoch'
    name = 'validation'

    def __init__(self, evaluate, write=print):
        self.evaluate, self.write = evaluate, write

    def __call__(self, trainer):
        value = self.evaluate()
        chainer.report({'validation/perplexity': value,
                        'alpha': trainer.updater.get_optimizer('main').alpha})
        self.write(f'Epoch {trainer.updater.epoch}: val perp {value:.3f}')


class InterimValidation(extension.Extension):
    """Prints the validation perplexity in the middle of an epoch. It has no effect on training."""

    priority = extension.PRIORITY_READER
    name = 'interim_validation'

    def __init__(self, evaluate, write=print):
        self.evaluate, self.write = evaluate, write

    def __call__(self, trainer):
        if not trainer.updater.is_new_epoch:
            self.write(f'i {trainer.updater.iteration}\tval perp {self.evaluate():.3f}')


class AlphaDecay(extension.Extension):
    """Multiplies Adam's alpha by a factor.

    Args:
        factor: the factor.
        best: if given, a `KeepBest`; alpha decays only when this epoch is not the best one.
        write: prints a line; None: nothing is printed.
    """

    priority = extension.PRIORITY_EDITOR - 1  # after KeepBest
    trigger = 1, 'epoch'
    name = 'alpha_decay'

    def __init__(self, factor, best=None, write=print):
        self.factor, self.best, self.write = factor, best, write

    def __call__(self, trainer):
        if self.best is not None and self.best.epoch == trainer.updater.epoch:
            return
        optimizer = trainer.updater.get_optimizer('main')
        optimizer.alpha *= self.factor
        if self.write:
            self.write(f'*lr = {optimizer.alpha:.8f}')


@extension.make_extension((1, 'epoch'))
def keep_every_model(trainer):
    """Writes the model of this epoch, beside the best one."""
    checkpoints.save_lm(
        os.path.join(trainer.out, f'epoch{trainer.updater.epoch}.model'),
        trainer.updater.get_optimizer('main').target)
