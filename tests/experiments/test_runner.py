"""The plan's states and the runner, with a stand-in for the training commands."""
import dataclasses
import io
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import textwrap
import threading
import time

import pytest

from experiments import plan as plans
from experiments import presets, runner, state
from experiments.plan import Job
from interpretable_adv.errors import UserError

# Acts like a training command: writes args.json, one line of log per epoch, a snapshot, and at the
# end its result. What happens is noted in calls.txt.
STAND_IN = '''
import json, os, pathlib, sys, time
arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
out, epochs = pathlib.Path(arguments['--out']), int(arguments['--epochs'])
resume = '--resume' in sys.argv
with open('calls.txt', 'a') as calls:
    calls.write(f"{out.name}{' resumed' if resume else ''}\\n")
out.mkdir(parents=True, exist_ok=True)
(out / 'args.json').write_text(json.dumps({'n_epoch': epochs, 'size': int(arguments['--size'])}))
log = json.loads((out / 'log').read_text()) if resume else []
while len(log) < epochs:
    if pathlib.Path('die').exists():
        print('error: told to die', file=sys.stderr)
        sys.exit(2)
    time.sleep(float(arguments.get('--seconds', 0)))
    log.append({'epoch': len(log) + 1})
    (out / 'snapshot.npz').write_text('state')
    (out / 'log').write_text(json.dumps(log))
(out / 'best.model').write_text('model')
(out / 'result.json').write_text(json.dumps(
    {'n_epoch': epochs, 'dev_accuracy': 90.0, 'test_accuracy': 89.0, 'at': time.time()}))
print('threads', os.environ.get('OMP_NUM_THREADS'))
'''


@pytest.fixture
def place(tmp_path):
    (tmp_path / 'stand_in.py').write_text(STAND_IN)
    return tmp_path


def training(place, name, epochs=2, size=1, needs=(), seconds=0.0):
    folder = str(place / 'runs' / name)
    return Job(name, folder, ('-m', 'stand_in', '--out', folder, '--epochs', str(epochs), '--size',
                              str(size), '--seconds', str(seconds)),
               needs=needs, outputs=('result.json', 'best.model'),
               settings={'n_epoch': epochs, 'size': size}, trains='classifier', epochs=epochs,
               weight=epochs)


def measurement(place, name, needs, value=1):
    folder = str(place / 'runs' / name)
    return Job(name, folder, ('-c', f'print({value})'), needs=needs, outputs=('out.txt',),
               settings={'value': value}, stdout='out.txt')


def run(place, plan, jobs=2, **options):
    stream = io.StringIO()
    runner.Runner(plan, str(place / 'jobs'), jobs, str(place), stream, **options).run()
    return stream.getvalue()


def calls(place):
    path = place / 'calls.txt'
    return path.read_text().split('\n')[:-1] if path.exists() else []


def kinds(place, plan):
    return {job.name: kind for job, kind in runner.settled(plan, str(place / 'jobs'))}


# Finished, interrupted, changed -------------------------------------------------------------

def test_a_finished_run_is_not_repeated(place):
    plan = [training(place, 'lm'), training(place, 'adv', needs=('lm',)),
            measurement(place, 'table', ('adv',))]
    assert set(kinds(place, plan).values()) == {state.NEW}
    text = run(place, plan)
    assert calls(place) == ['lm', 'adv']
    assert 'adv done in' in text and ': dev 90.00 %' in text and '[3/3]' in text
    assert '89.00' not in text  # the test set speaks in the tables only
    assert (place / 'runs/table/out.txt').read_text() == '1\n'
    assert set(kinds(place, plan).values()) == {state.DONE}
    assert run(place, plan) == ''
    assert calls(place) == ['lm', 'adv']


def test_an_interrupted_run_is_resumed(place):
    plan = [training(place, 'adv', epochs=3)]
    run(place, plan)
    (place / 'runs/adv/result.json').unlink()
    log = place / 'runs/adv/log'
    log.write_text(json.dumps(json.loads(log.read_text())[:1]))
    assert kinds(place, plan) == {'adv': state.RESUME}
    assert 'adv resumes' in run(place, plan)
    assert calls(place) == ['adv', 'adv resumed']
    record = json.loads((place / 'jobs/adv.json').read_text())
    assert [command.endswith('--resume') for command in record['commands']] == [False, True]


def test_a_job_that_was_killed_names_the_signal(place):
    job = dataclasses.replace(measurement(place, 'table', ()), command=(
        '-c', 'import os, sys; print("last words", file=sys.stderr); os.kill(os.getpid(), 9)'))
    with pytest.raises(UserError, match='table failed: killed by SIGKILL .out of memory'):
        run(place, [job])


def test_a_run_that_ended_without_its_runner_is_recorded(place):
    plan = [training(place, 'adv')]
    run(place, plan)
    record = place / 'jobs/adv.json'
    unfinished = {name: value for name, value in json.loads(record.read_text()).items()
                  if name != 'finished'}
    record.write_text(json.dumps(unfinished))
    (place / 'runs/adv/.lock').write_text('process 1')
    (place / 'jobs/.adv.json.x.tmp').write_text('{')
    assert run(place, plan) == '' and calls(place) == ['adv']
    assert 'finished' in json.loads(record.read_text())
    assert not (place / 'runs/adv/.lock').exists()
    assert sorted(path.name for path in (place / 'jobs').iterdir()) == ['adv.json', 'adv.txt']


def test_an_incomplete_corpus_is_prepared_again(place):
    corpus = place / 'data'
    corpus.mkdir()
    (corpus / 'text').write_text('x')
    job = Job('data', str(corpus), ('-c', 'pass'), outputs=('text',))
    assert kinds(place, [job]) == {'data': state.DONE}
    (corpus / '.prepare.incomplete').touch()
    assert kinds(place, [job]) == {'data': state.NEW}


def test_more_epochs_are_added_to_a_finished_run_and_fewer_refused(place):
    run(place, [training(place, 'adv', epochs=2)])
    longer = [training(place, 'adv', epochs=4)]
    assert kinds(place, longer) == {'adv': state.RESUME}
    run(place, longer)
    assert len(json.loads((place / 'runs/adv/log').read_text())) == 4
    with pytest.raises(UserError, match='n_epoch was 4 and is 3'):
        run(place, [training(place, 'adv', epochs=3)])


def test_a_trial_with_the_same_settings_is_the_beginning_of_a_run(place):
    """Only a finished one, and only with the same settings."""
    lm = training(place, 'lm')
    trials = [dataclasses.replace(training(place, f'grid_search/{name}', size=size, needs=('lm',)),
                                  name=f'grid_search_{name}')
              for name, size in (('small', 1), ('large', 2))]
    run(place, [lm, *trials])
    wanted = [lm, *(dataclasses.replace(training(place, name, epochs, size, needs=('lm',)),
                                        trials=str(place / 'runs'))
                    for name, epochs, size in [('adv', 4, 2), ('iadv', 4, 3), ('spgd', 2, 1)])]
    assert kinds(place, wanted) == {'lm': state.DONE, 'adv': state.RESUME, 'iadv': state.NEW,
                                    'spgd': state.RESUME}
    text = run(place, wanted, jobs=1)
    assert calls(place)[-2:] == ['adv resumed', 'iadv']
    assert 'adv begins with the run of' in text and 'grid_search/large' in text
    assert len(json.loads((place / 'runs/adv/log').read_text())) == 4
    assert len(json.loads((place / 'runs/grid_search/large/log').read_text())) == 2
    assert set(kinds(place, wanted).values()) == {state.DONE}
    commands = json.loads((place / 'jobs/adv.json').read_text())['commands']
    assert ['grid_search/large' in command for command in commands] == [True, False]

    (place / 'runs/grid_search/large/result.json').unlink()  # as if it were running
    shutil.rmtree(place / 'runs/adv')
    run(place, wanted)
    assert calls(place)[-1] == 'adv'

    # Without the language model it would be another run, with the same settings.
    other = dataclasses.replace(training(place, 'other', 6, 2), trials=str(place / 'runs'))
    run(place, [other])
    assert calls(place)[-1] == 'other'

    longer = dataclasses.replace(training(place, 'longer', 6, 2, needs=('lm',)),
                                 trials=str(place / 'runs'))
    (place / 'runs/adv/predictions.csv').write_text('of the shorter run')
    run(place, [lm, longer])
    assert calls(place)[-1] == 'longer resumed'
    assert not (place / 'runs/longer/predictions.csv').exists()
    assert json.loads((place / 'jobs/longer.json').read_text())['commands'][0] == json.loads(
        (place / 'jobs/adv.json').read_text())['commands'][0]


def test_killed_while_epochs_are_added_it_goes_on(place):
    """The old result must not pass for the new one."""
    run(place, [training(place, 'adv', epochs=2)])
    (place / 'runs/adv/args.json').write_text(json.dumps({'n_epoch': 4, 'size': 1}))
    assert kinds(place, [training(place, 'adv', epochs=4)]) == {'adv': state.RESUME}


def test_a_changed_preset_is_noticed(place):
    run(place, [training(place, 'adv', size=1)])
    with pytest.raises(UserError, match=r'adv was made with other settings \(size was 1 and is 2'):
        run(place, [training(place, 'adv', size=2)])
    assert calls(place) == ['adv']


def test_a_changed_measurement_is_made_again(place):
    run(place, [training(place, 'adv'), measurement(place, 'table', ('adv',), 1)])
    run(place, [training(place, 'adv'), measurement(place, 'table', ('adv',), 2)])
    assert (place / 'runs/table/out.txt').read_text() == '2\n'
    assert calls(place) == ['adv']


def test_what_a_retrained_model_was_used_for_is_noticed(place):
    plan = [training(place, 'lm'), training(place, 'adv', needs=('lm',)),
            measurement(place, 'table', ('lm',))]
    run(place, plan)
    for path in (place / 'runs/lm').iterdir():
        path.unlink()
    with pytest.raises(UserError, match='adv was made with other settings .lm changed since'):
        run(place, plan)
    for path in (place / 'runs/adv').iterdir():
        path.unlink()
    run(place, plan)
    assert calls(place) == ['lm', 'adv'] * 2


def test_a_measurement_follows_a_model_that_is_trained_further(place):
    run(place, [training(place, 'adv', 2), measurement(place, 'table', ('adv',))])
    before = (place / 'jobs/table.json').read_text()
    plan = [training(place, 'adv', 3), measurement(place, 'table', ('adv',))]
    assert kinds(place, plan) == {'adv': state.RESUME, 'table': state.NEW}
    run(place, plan)
    assert (place / 'jobs/table.json').read_text() != before


def test_a_run_made_by_hand_counts(place):
    job = training(place, 'adv')
    subprocess.run([sys.executable, *job.command], cwd=place, check=True)
    assert kinds(place, [job]) == {'adv': state.DONE}


@pytest.mark.parametrize('damage', ['', '{', '[]', 'null'])
def test_with_damaged_settings_the_command_decides(place, damage):
    run(place, [training(place, 'adv')])
    (place / 'runs/adv/args.json').write_text(damage)
    assert kinds(place, [training(place, 'adv')]) == {'adv': state.RESUME}
    (place / 'runs/adv/snapshot.npz').unlink()
    assert kinds(place, [training(place, 'adv')]) == {'adv': state.NEW}


# Running ------------------------------------------------------------------------------------

def test_a_failure_stops_what_needs_it_and_nothing_else(place):
    plan = [Job('bad', str(place / 'runs/bad'), ('-c', 'import sys; sys.exit("error: no luck")'),
                outputs=('x',)),
            measurement(place, 'after', ('bad',)), training(place, 'adv')]
    with pytest.raises(UserError, match=r'bad failed: no luck \(and 1 more'):
        run(place, plan)
    assert calls(place) == ['adv']
    assert kinds(place, plan) == {'bad': 'new', 'after': 'new', 'adv': 'done'}


def test_a_failed_training_goes_on_the_next_time(place):
    run(place, [training(place, 'adv', 1)])
    (place / 'die').write_text('')
    plan = [training(place, 'adv', 3)]
    with pytest.raises(UserError, match='adv failed: told to die; run the same command again'):
        run(place, plan)
    (place / 'die').unlink()
    run(place, plan)
    assert calls(place) == ['adv', 'adv resumed', 'adv resumed']


def test_jobs_run_side_by_side(place):
    """Each waits for the other to start: one after the other they would never end well."""
    meet = ('import pathlib, sys, time; mine, other = map(pathlib.Path, sys.argv[1:]); '
            'mine.touch(); deadline = time.monotonic() + 60\n'
            'while not other.exists(): time.sleep(0.02); assert time.monotonic() < deadline')
    run(place, [Job(name, str(place), ('-c', meet, name, other), outputs=(name,))
                for name, other in (('left', 'right'), ('right', 'left'))])


def test_shared_cores(monkeypatch):
    monkeypatch.delenv('OMP_NUM_THREADS', raising=False)
    assert runner.shared_cores(2, cores=4)['OMP_NUM_THREADS'] == '2'
    assert runner.shared_cores(3, cores=2)['OMP_NUM_THREADS'] == '1'
    monkeypatch.setenv('OMP_NUM_THREADS', '7')
    assert runner.shared_cores(2, cores=4)['OMP_NUM_THREADS'] == '7'


def test_two_runners_share_the_work(place):
    plan = [training(place, f'run{i}', 1, seconds=0.2) for i in range(4)]
    others = threading.Thread(target=_run_elsewhere, args=(place, plan))
    others.start()
    run(place, plan, jobs=1)
    others.join()
    assert sorted(calls(place)) == ['run0', 'run1', 'run2', 'run3']


def _run_elsewhere(place, plan):
    # signal handlers belong to the main thread, so another process does it
    code = textwrap.dedent('''
        import sys
        sys.path[:0] = [sys.argv[1], sys.argv[2]]
        from test_runner import runner, training
        import pathlib
        place = pathlib.Path(sys.argv[3])
        plan = [training(place, f'run{i}', 1, seconds=0.2) for i in range(4)]
        runner.Runner(plan, str(place / 'jobs'), 1, str(place)).run()
    ''')
    here = pathlib.Path(__file__).resolve()
    subprocess.run([sys.executable, '-c', code, here.parents[2], here.parent, place], check=True,
                   stdout=subprocess.DEVNULL)


def test_terminated_it_takes_its_commands_along(place):
    code = textwrap.dedent('''
        import sys
        sys.path[:0] = [sys.argv[1], sys.argv[2]]
        from test_runner import runner, training
        from interpretable_adv import cli
        import pathlib
        place = pathlib.Path(sys.argv[3])
        cli.run(lambda argv: runner.Runner([training(place, 'slow', 500, seconds=0.1)],
                                           str(place / 'jobs'), 1, str(place)).run())
    ''')
    here = pathlib.Path(__file__).resolve()
    process = subprocess.Popen([sys.executable, '-c', code, here.parents[2], here.parent, place],
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _wait_for(lambda: (place / 'runs/slow/log').exists())
    process.send_signal(signal.SIGTERM)
    assert process.wait(30) == 130
    size = (place / 'runs/slow/log').read_text()
    time.sleep(0.5)
    assert (place / 'runs/slow/log').read_text() == size
    assert kinds(place, [training(place, 'slow', 500)]) == {'slow': state.RESUME}


def _wait_for(condition, seconds=60):
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def test_time_left_is_weighed(place):
    plan = [training(place, 'a', 2), training(place, 'b', 4), training(place, 'c', 10)]
    work = runner.Runner(plan, str(place / 'jobs'), jobs=2)
    assert work.seconds_left() is None
    work.done, work._spent, work._earned = {'a'}, 20.0, 2.0  # ten seconds per unit
    assert work.seconds_left() == pytest.approx(10 * 10)  # the longest, not (4 + 10) / 2
    work.jobs = 1
    assert work.seconds_left() == pytest.approx(10 * 14)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_live_line_on_a_terminal(place, monkeypatch):
    monkeypatch.setattr(runner, 'LIVE_SECONDS', 0.05)
    stream = Terminal()
    runner.Runner([training(place, 'adv', 4, seconds=0.3)], str(place / 'jobs'), 1, str(place),
                  stream).run()
    live = [part for part in stream.getvalue().split('\n') if '\r' in part]
    assert any(f'adv {share}%' in part and '1 running, 0 left, about' in part
               for part in live for share in (25, 50, 75))


# Dry run, and the plans of the presets ------------------------------------------------------

def test_dry_run_prints_commands_and_runs_nothing(place):
    plan = [training(place, 'lm'), training(place, 'adv', needs=('lm',)),
            measurement(place, 'table', ('adv',))]
    lines = []
    runner.dry_run(plan, str(place / 'jobs'), lines.append)
    assert len(lines) == 4 and lines[0].startswith('python -m stand_in --out')
    assert lines[2].endswith('table/out.txt') and ' > ' in lines[2]
    assert lines[3] == '# 3 commands: 0 finished, 0 to resume, 3 to start'
    assert not (place / 'runs').exists() and not (place / 'jobs').exists()


PLANS = (plans.table1, plans.table2, plans.table3, plans.figures)


@pytest.mark.parametrize('name', presets.names())
@pytest.mark.parametrize('methods', [
    '', 'baseline', 'pretrained spgd', 'baseline adv', 'baseline pretrained adv iadv spgd vat'])
def test_plans_are_complete_and_in_order(name, methods):
    preset = presets.load(name, [f'plan.methods={methods}'] if methods else [])
    places = plans.Places('runs', 'data')
    builders = PLANS if methods != 'baseline' else (plans.table2, plans.table3)
    for build in (*builders, None):
        chosen = [build] if build else builders
        plan = plans.merge(*(build(preset, places, [1, 2]) for build in chosen))
        seen = set()
        for job in plan:
            assert set(job.needs) <= seen
            assert job.name not in seen
            seen.add(job.name)
    assert {f'{method}_seed{seed}' for method in preset.methods for seed in (1, 2)} <= seen


def test_nothing_to_attack_is_told():
    with pytest.raises(UserError, match='nothing to attack'):
        plans.table1(presets.load('toy', ['plan.methods=baseline']), plans.Places('r', 'd'), [1])


def test_commands_of_a_preset():
    preset = presets.load('paper', ['train.n_epoch=3', 'spgd.xi_var=9'])
    places = plans.Places('runs', 'data', device=('--gpu', '0'))
    plan = {job.name: job for job in plans.merge(
        *(build(preset, places, [7]) for build in PLANS))}
    baseline, pretrained, spgd = (plan[f'{method}_seed7'] for method in
                                  ('baseline', 'pretrained', 'spgd'))
    assert '--pretrained_model' not in baseline.command and baseline.needs == ('data',)
    assert pretrained.settings['method'] == 'baseline'
    assert pretrained.settings['pretrained_model'] == os.path.join('runs', 'lm_seed1', 'best.model')
    assert pretrained.needs == ('data', 'lm_seed1')
    assert (spgd.settings['xi_var'], spgd.settings['n_epoch'], spgd.settings['gpu']) == (9, 3, -1)
    assert spgd.command[-2:] == ('--gpu', '0')
    # Attacks take their settings from the classifiers; the preset's own choice is passed on.
    flags = {'--epsilon', '--nn_k', '--sparsity', '--spgd_iters'}
    assert not flags & set(plan['perplexity_seed7'].command)
    small = plans.perplexity_job(presets.load('small'), places, 7).command
    assert small[small.index('--epsilon') + 1] == 'adv=5,iadv=15,spgd=25'
    assert flags & set(small) == {'--epsilon'}
    assert set(plan['perplexity_seed7'].needs) == {'lm_seed1', 'adv_seed7', 'iadv_seed7',
                                                   'spgd_seed7'}
    assert plan['perplexity_common_sweep_seed7'].needs == ('lm_seed1', 'pretrained_seed7')
    assert plan['gap_accuracy'].needs == ('perplexity_seed7',)
    assert plan['data'].command[:5] == ('-m', 'interpretable_adv.data', 'prepare', '--dataset',
                                        'imdb')


def test_every_seed_is_compared_at_equal_strength():
    places = plans.Places('runs', 'data')
    jobs = plans.table1(presets.load('small'), places, [4, 5])
    names = [job.name for job in plans.merge(jobs) if 'sweep' in job.name]
    assert names == [f'perplexity_{kind}_seed{seed}' for seed in (4, 5)
                     for kind in ('sweep', 'common_sweep')]


def test_imdb_comes_from_the_archive_or_the_network():
    preset = presets.load('small')
    given = plans.data_job(preset, plans.Places('r', 'd', archive='a.tar.gz')).command
    assert given[-2:] == ('--archive', 'a.tar.gz')
    assert plans.data_job(preset, plans.Places('r', 'd')).command[-1] == '--download'


def test_wrong_flags_of_a_preset_are_told_before_anything_runs():
    with pytest.raises(UserError, match='n_epochs'):
        plans.table3(presets.load('toy', ['train.n_epochs=3']), plans.Places('r', 'd'), [1])
