"""Trainer extensions: snapshots, logs, progress, the best model.

Used by the classifier's and the language model's trainers alike. All of it is Chainer
extensions, so that their state travels in the snapshot.
"""
import contextlib
import json
import math
import os
import time

import chainer
import numpy as np
from chainer.training import extension
from chainer.training.extensions import LogReport

from interpretable_adv.errors import UserError
from interpretable_adv.runs import checkpoints, reading
from interpretable_adv.runs.distributed import ALONE
from interpretable_adv.runs.files import atomic_write
from interpretable_adv.runs.folder import LOG, MODEL, SNAPSHOT, STEPS
from interpretable_adv.runs.progress import LiveLine, duration


class Snapshot(extension.Extension):
    """Writes the whole state of the run; the old snapshot is kept until the new one is complete."""

    priority = extension.PRIORITY_READER - 200  # after everything else has run
    name = 'snapshot'

    def __init__(self, settings, writes=True):
        self.settings, self.writes = settings, writes

    def __call__(self, trainer):
        checkpoints.save_snapshot(os.path.join(trainer.out, SNAPSHOT), trainer, self.settings,
                                  self.writes)


class SnapshotTrigger:
    """When to write a snapshot: every `steps` steps, 0: at each epoch's end; and whenever so many
    `minutes` have passed, 0: never.

    Where several processes train one model, the clock of the writing one counts for all.
    """

    def __init__(self, steps=0, minutes=0, team=ALONE):
        self.steps, self.minutes, self.team = steps, minutes, team
        self._last = time.monotonic()

    def __call__(self, trainer):
        updater = trainer.updater
        due = updater.iteration % self.steps == 0 if self.steps else updater.is_new_epoch
        if self.minutes:
            late = time.monotonic() - self._last >= 60 * self.minutes
            due = bool(self.team.sum(int(self.team.writes and late))) or due
        if due:
            self._last = time.monotonic()
        return due


def resume(trainer, settings, free=(), path=None):
    """Resumes from a snapshot, by default from that in the trainer's folder; see
    `checkpoints.load_snapshot`."""
    path = path or os.path.join(trainer.out, SNAPSHOT)
    checkpoints.load_snapshot(path, trainer, settings, free)
    logged = [row['epoch'] for extra in (entry.extension for entry in trainer._extensions.values())
              if isinstance(extra, EpochLog) for row in extra.log]
    best = trainer.get_extension(KeepBest.name).epoch
    if (logged != sorted(set(logged)) or logged[-1:] > [trainer.updater.epoch]
            or best is not None and logged and best not in logged):
        raise UserError(f'{path} is not a snapshot of such a run (its log has the epochs {logged}, '
                        f'the best one is {best}); {checkpoints.AGAIN}')


class StepLog(extension.Extension):
    """Appends the values of every n-th step to `steps.jsonl`.

    After a resume the file is first cut back to the steps that the snapshot knows, so that it
    has neither repeats nor gaps.

    Args:
        every: n; 0 writes nothing.
        count: name of the step's number in the file.
        names: of the observed values, without their prefix `main/`; absent ones are left out.
    """

    priority = extension.PRIORITY_READER
    trigger = 1, 'iteration'
    name = 'step_log'

    def __init__(self, every, count, names):
        self.every, self.count, self.names = every, count, names
        self._stream = None

    def initialize(self, trainer):
        path = os.path.join(trainer.out, STEPS)
        kept = list(_lines_up_to(path, self.count, trainer.updater.iteration))
        if self.every or os.path.exists(path):
            with atomic_write(path) as stream:
                stream.writelines(kept)
        if self.every:
            self._stream = open(path, 'a', encoding='utf-8')

    def __call__(self, trainer):
        step = trainer.updater.iteration
        if self._stream is None or step % self.every:
            return
        values = {self.count: step}
        for name in self.names:
            if f'main/{name}' in trainer.observation:
                values[name] = float(trainer.observation[f'main/{name}'])
        try:
            self._stream.write(json.dumps(values) + '\n')
            self._stream.flush()  # so that the line is there if the run is killed
        except OSError as error:
            self.finalize()
            raise UserError(f'cannot write {self._stream.name}: {error.strerror}; '
                            'continue with --resume when there is space') from error

    def finalize(self):
        if self._stream is not None:
            with contextlib.suppress(OSError):  # of what could not be written before
                self._stream.close()


def _lines_up_to(path, count, last):
    """The whole lines of an earlier part of the run, up to the step `last`."""
    advice = 'move it elsewhere to resume without it'
    if not last or not os.path.lexists(path):
        return
    form = reading.fields({count: reading.whole})
    content = reading.decode(reading.read_bytes(path, advice), path)
    for number, line in enumerate(content.split('\n')[:-1], 1):  # what has no end is not whole
        try:
            values = reading.parse_json(line)
            form(values, 'it')
        except ValueError as error:
            raise UserError(f'{path}, line {number} is damaged ({error}); {advice}') from error
        if values[count] > last:
            return
        yield line + '\n'


class StopWhenNotFinite(extension.Extension):
    """Ends the run with one line when the loss is NaN or infinite.

    On the host the loss is looked at in every step; on a device, where looking means
    waiting, every 50 steps. A snapshot is never written with parameters that are not finite.
    """

    priority = extension.PRIORITY_EDITOR
    trigger = 1, 'iteration'
    name = 'stop_when_not_finite'

    def __call__(self, trainer):
        loss, step = trainer.observation['main/loss'], trainer.updater.iteration
        if not isinstance(loss, chainer.get_cpu_array_types()) and not np.isscalar(loss):
            if step % 50:
                return
        if not math.isfinite(float(loss)):
            snapshot = os.path.join(trainer.out, SNAPSHOT)
            kept = (f'{snapshot} keeps the last good state' if os.path.exists(snapshot)
                    else 'there was no snapshot yet')
            raise UserError(f'the loss became {float(loss)} at step {step}; {kept} (try a '
                            'smaller --alpha or a smaller perturbation)')


class KeepBest(extension.Extension):
    """Writes the model whenever an observed value is better than ever before.

    Args:
        key: of the observed value.
        save: function of a path and the model.
        sign: 1 where more is better, −1 where less is.
        writes: whether this process is the one that writes.

    Attributes:
        epoch, value: of the best model; None before the first.
        gain: by what share the last epoch was better than all before; infinite for the first.
    """

    priority = extension.PRIORITY_EDITOR
    trigger = 1, 'epoch'
    name = 'keep_best'

    def __init__(self, key, save, sign=1, start=-math.inf, filename=MODEL, writes=True):
        self.key, self.save, self.sign = key, save, sign
        self.filename = filename
        self.writes = writes
        self.epoch = None
        self.value = None
        self.gain = math.inf
        self._start = start

    def __call__(self, trainer):
        value = float(trainer.observation[self.key])
        best = self._start if self.value is None else self.sign * self.value
        if self.value is not None:
            self.gain = self.sign * (value - self.value) / abs(self.value or 1)
        if self.sign * value > best:
            self.value, self.epoch = value, trainer.updater.epoch
            if self.writes:
                self.save(os.path.join(trainer.out, self.filename),
                          trainer.updater.get_optimizer('main').target)

    def serialize(self, serializer):
        # −1 stands for None, which could only be written with pickle.
        epoch = serializer('epoch', -1 if self.epoch is None else self.epoch)
        value = serializer('value', 0.0 if self.value is None else self.value)
        self.gain = float(serializer('gain', self.gain))
        if epoch != -1:
            self.epoch, self.value = epoch, value


class EpochLog(LogReport):
    """Chainer's `LogReport`; a resumed run continues the file exactly where its snapshot is."""

    def __init__(self):
        super().__init__()
        self._log_name = None  # Chainer's own way of writing leaves a folder when it is killed

    def initialize(self, trainer):
        """Cuts the file back to the epochs that the snapshot knows."""
        if self.log or os.path.exists(os.path.join(trainer.out, LOG)):
            self._write(trainer.out)

    def __call__(self, trainer):
        before = len(self.log)
        super().__call__(trainer)
        if len(self.log) > before:
            self._write(trainer.out)

    def _write(self, out):
        with atomic_write(os.path.join(out, LOG)) as stream:
            json.dump(self.log, stream, indent=4)


class Progress(extension.Extension):
    """One line per epoch, and on a terminal a live line in between.

    Args:
        n_epoch: epochs of the whole run.
        columns: `(key, label, format)` of the values shown, e.g. `('main/loss', 'loss', '.4f')`;
            the format may also be a function of the mean, which returns text.
        live: whether to show the live line; None: when standard output is a terminal.
    """

    priority = extension.PRIORITY_READER - 100  # after the log
    trigger = 1, 'iteration'
    name = 'progress'

    def __init__(self, n_epoch, columns, live=None, stream=None):
        self.n_epoch, self.columns = n_epoch, columns
        self._line = LiveLine(live, stream)

    def initialize(self, trainer):
        self._begin = self._last = time.monotonic()
        self._begin_words = trainer.updater.n_words
        self._begin_detail = trainer.updater.epoch_detail
        self._sums = {}  # of the running epoch: total and count

    def __call__(self, trainer):
        updater, now = trainer.updater, time.monotonic()
        for key, _, _ in self.columns:
            if key in trainer.observation:
                total, count = self._sums.get(key, (0, 0))
                self._sums[key] = total + trainer.observation[key], count + 1
        if updater.is_new_epoch:
            # The log knows the whole epoch, also where the run was resumed within it.
            self._line.print(self._text(updater, now, f'epoch {updater.epoch:>3}/{self.n_epoch}',
                                        trainer.get_extension('EpochLog').log[-1]))
            self._sums = {}
        elif self._line.live and now - self._last > 0.5:
            done = updater.epoch_detail - updater.epoch
            means = {key: float(total) / count for key, (total, count) in self._sums.items()}
            self._line.show(self._text(
                updater, now, f'epoch {updater.epoch + 1:>3}/{self.n_epoch} {done:4.0%}', means))
            self._last = now

    def _text(self, updater, now, head, means):
        parts = [head]
        for key, label, form in self.columns:
            if key in means:
                mean = means[key]
                parts.append(f'{label} {form(mean) if callable(form) else format(mean, form)}')
        seconds = max(now - self._begin, 1e-9)
        done = updater.epoch_detail - self._begin_detail
        left = seconds / done * (self.n_epoch - updater.epoch_detail) if done else 0
        parts.append(f'{(updater.n_words - self._begin_words) / seconds:,.0f} words/s')
        parts.append(f'{duration(left)} left' if left > 0 else duration(seconds))
        return '  '.join(parts)

    def write(self, line):
        """Prints a line above the live one."""
        self._line.print(line)
