"""extensions.py: logs, progress, the best model, snapshots."""
import io
import json
import os

import chainer
import chainer.links as L
import numpy as np
import pytest
from chainer import training

from interpretable_adv.errors import UserError
from interpretable_adv.runs import checkpoints, extensions


class Updater(training.updaters.StandardUpdater):
    """Ten steps an epoch, whose loss is what the test says."""

    def __init__(self, losses):
        self.model = L.Linear(2, 1, nobias=True)
        self.model.name = 'main'
        optimizer = chainer.optimizers.SGD().setup(self.model)
        super().__init__(chainer.iterators.SerialIterator(np.arange(10), 1, shuffle=False),
                         optimizer)
        self.losses = iter(losses)
        self.n_words = 0

    def update_core(self):
        self.get_iterator('main').next()
        self.n_words += 100
        self.get_optimizer('main').t += 1
        chainer.reporter.report({'main/loss': next(self.losses)})


def build(out, losses, n_epoch=2, *more):
    trainer = training.Trainer(Updater(losses), (n_epoch, 'epoch'), str(out))
    for extra in more:
        trainer.extend(extra)
    return trainer


def run(*arguments):
    trainer = build(*arguments)
    trainer.run(show_loop_exception_msg=False)
    return trainer


def test_the_step_log_holds_every_nth_step(tmp_path):
    run(tmp_path, range(20), 2, extensions.StepLog(5, 'step', ['loss', 'absent']))
    rows = [json.loads(line) for line in (tmp_path / 'steps.jsonl').read_text().splitlines()]
    assert rows == [{'step': n, 'loss': n - 1} for n in (5, 10, 15, 20)]


def test_no_step_log_without_steps(tmp_path):
    run(tmp_path, range(20), 2, extensions.StepLog(0, 'step', ['loss']))
    assert 'steps.jsonl' not in os.listdir(tmp_path)


def test_a_fresh_run_does_not_keep_another_ones_steps(tmp_path):
    (tmp_path / 'steps.jsonl').write_text('{"step": 1, "loss": 99}\n')
    run(tmp_path, range(10), 1, extensions.StepLog(1, 'step', ['loss']))
    assert '99' not in (tmp_path / 'steps.jsonl').read_text()


@pytest.mark.parametrize('loss', [float('nan'), float('inf')])
def test_a_loss_that_is_not_finite_names_the_step(tmp_path, loss):
    with pytest.raises(UserError, match=r'at step 7; there was no snapshot yet'):
        run(tmp_path, [1.] * 6 + [loss], 1, extensions.StopWhenNotFinite())


@pytest.mark.parametrize('sign, expected', [(1, (2, 9.0)), (-1, (1, 3.0))])
def test_the_best_model_is_kept(tmp_path, sign, expected):
    saved = []
    values = iter([3., 9., 9.])

    @training.make_extension(trigger=(1, 'epoch'), priority=300)
    def evaluate(trainer):
        chainer.reporter.report({'dev': next(values)})

    best = extensions.KeepBest('dev', lambda path, model: saved.append(path), sign)
    run(tmp_path, range(30), 3, evaluate, best)
    assert (best.epoch, best.value) == expected
    assert len(saved) == (2 if sign == 1 else 1)  # an equal value is not better


def test_progress_shows_loss_speed_and_time_left(tmp_path):
    stream = io.StringIO()
    run(tmp_path, [2.0] * 10 + [1.0] * 10, 2, extensions.EpochLog(),
        extensions.Progress(2, [('main/loss', 'loss', '.2f')], live=False, stream=stream))
    first, second = stream.getvalue().splitlines()
    assert first.startswith('epoch   1/2  loss 2.00') and first.endswith('left')
    assert second.startswith('epoch   2/2  loss 1.00') and 'words/s' in second


def test_the_live_line_is_overwritten(tmp_path, monkeypatch):
    clock = iter(range(1000))
    monkeypatch.setattr(extensions.time, 'monotonic', lambda: next(clock))
    stream = io.StringIO()
    run(tmp_path, [2.0] * 10, 1, extensions.EpochLog(),
        extensions.Progress(1, [('main/loss', 'loss', '.2f')], live=True, stream=stream))
    *live, last = stream.getvalue().split('\r')
    assert len(live) == 9 and ' 50%' in live[4]
    assert len(last.rstrip('\n')) >= len(live[-1])
    assert last.startswith('epoch   1/1')


def test_a_snapshot_with_broken_parameters_is_never_written(tmp_path):
    trainer = run(tmp_path, range(10), 1)
    path = tmp_path / 'snapshot.npz'
    checkpoints.save_snapshot(path, trainer, {})
    good = path.read_bytes()
    trainer.updater.model.W.array[0, 0] = np.nan
    with pytest.raises(UserError, match='not finite.*keeps the last good state'):
        checkpoints.save_snapshot(path, trainer, {})
    assert path.read_bytes() == good and os.listdir(tmp_path) == ['snapshot.npz']


def test_a_snapshot_restores_the_random_stream(tmp_path):
    trainer = run(tmp_path, range(10), 1)
    np.random.seed(7)
    np.random.normal()  # leaves a second number in store
    checkpoints.save_snapshot(tmp_path / 'snapshot.npz', trainer, {'a': 1})
    expected = np.random.normal(size=3)
    np.random.seed(8)
    checkpoints.load_snapshot(tmp_path / 'snapshot.npz', trainer, {'a': 1})
    np.testing.assert_array_equal(np.random.normal(size=3), expected)


class _Updater:
    iteration, is_new_epoch = 0, False


class _Trainer:
    def __init__(self):
        self.updater = _Updater()


def _triggered(trigger, steps, seconds, monkeypatch, steps_per_epoch=5):
    """The steps at which a trigger fires; each step takes so many seconds."""
    trainer, now = _Trainer(), [trigger._last]
    monkeypatch.setattr(extensions.time, 'monotonic', lambda: now[0])
    fired = []
    for step in range(1, steps + 1):
        now[0] += seconds
        trainer.updater.iteration = step
        trainer.updater.is_new_epoch = step % steps_per_epoch == 0
        if trigger(trainer):
            fired.append(step)
    return fired


def test_when_a_snapshot_is_due(monkeypatch):
    def fired(*arguments, seconds=60):
        return _triggered(extensions.SnapshotTrigger(*arguments), 12, seconds, monkeypatch)

    assert fired() == [5, 10]
    assert fired(4) == [4, 8, 12]
    assert fired(0, 2) == [2, 4, 5, 7, 9, 10, 12]  # the clock starts again at each snapshot
    assert fired(4, 3) == [3, 4, 7, 8, 11, 12]
    assert fired(0, 15, seconds=1) == [5, 10]


def test_the_clock_of_the_writing_process_counts(monkeypatch):
    class Team:
        writes = False

        def sum(self, number):
            return number + self.others

    team = Team()
    team.others = 0
    assert _triggered(extensions.SnapshotTrigger(100, 1, team), 3, 61, monkeypatch) == []
    team.others = 1
    assert _triggered(extensions.SnapshotTrigger(100, 1, team), 3, 1, monkeypatch) == [1, 2, 3]
