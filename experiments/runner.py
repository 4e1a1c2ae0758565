"""Runs a plan: several jobs side by side; skips finished ones, resumes interrupted ones.

Several runners may work on one plan at a time, also on machines that share the folder: a job's
output file is locked as long as its command lives.
"""
import dataclasses
import fcntl
import os
import shlex
import shutil
import signal
import subprocess
import sys
import time

from experiments import state
from experiments.state import CHANGED, DONE, RESUME
from interpretable_adv.errors import UserError
from interpretable_adv.nn.kernels import usable_processors
from interpretable_adv.runs.files import make_directory, remove_leftovers, write_json
from interpretable_adv.runs.folder import LOG, RESULT
from interpretable_adv.runs.progress import LiveLine, duration

POLL_SECONDS = 0.05
LIVE_SECONDS = 1.0


def shell_line(job, resume=False):
    """The command as one would type it."""
    line = shlex.join(['python', *command(job, resume)])
    return f'{line} > {shlex.quote(os.path.join(job.folder, job.stdout))}' if job.stdout else line


def command(job, resume=False):
    return [*job.command, *(['--resume'] if resume else [])]


def dry_run(plan, jobs_folder, write=print):
    """Prints every command of the plan, and which of them there is no need to run."""
    counts = dict.fromkeys((DONE, RESUME, state.NEW), 0)
    for job, kind in settled(plan, jobs_folder):
        counts[kind] += 1
        remark = {DONE: '  # finished', RESUME: '  # resumes'}.get(kind, '')
        write(shell_line(job, kind == RESUME) + remark)
    write(f'# {len(plan)} commands: {counts[DONE]} finished, {counts[RESUME]} to resume, '
          f'{counts[state.NEW]} to start')


def settled(plan, jobs_folder):
    """Pairs of job and DONE, RESUME or NEW; a training with other settings is refused.

    What is cheap is made again when its settings or inputs changed, or its inputs will.
    """
    kinds = {}
    for job in plan:
        found = state.look(job, plan, jobs_folder)
        if found.kind == CHANGED and job.trains:
            raise UserError(
                f'{job.folder} was made with other settings ({found.reason}): delete the folder '
                'to train it again, or keep it and choose another folder with RUNS=folder')
        kind = state.NEW if found.kind == CHANGED else found.kind
        if kind == DONE and not all(kinds[name] == DONE for name in job.needs):
            kind = DONE if job.trains else state.NEW
        if kind == state.NEW and state.job_in_trial(job, plan, jobs_folder):
            kind = RESUME
        kinds[job.name] = kind
    return [(job, kinds[job.name]) for job in plan]


@dataclasses.dataclass
class _Running:
    job: object
    process: object
    output: object
    started: float
    line: str  # the command
    start_share: float  # of the job, done before
    inputs: dict


class Runner:
    """Works through a plan.

    Args:
        plan: jobs, each after those it needs.
        jobs_folder: for records and outputs of the commands.
        jobs: how many commands run side by side.
        root: folder that the commands run in.
        stream: for the progress; a terminal gets a live line too.
        environment: of the commands; default: ours, with the cores shared out among the jobs.
    """

    def __init__(self, plan, jobs_folder, jobs=2, root='.', stream=None, environment=None):
        self.plan, self.jobs_folder, self.jobs, self.root = plan, jobs_folder, jobs, root
        self.stream = stream or sys.stdout
        self.environment = environment or shared_cores(jobs)
        self.done, self.failed, self.running = set(), {}, {}
        self._spent = self._earned = 0.0  # seconds, and weight that they were worth
        self._line, self._last_live = LiveLine(stream=self.stream), 0.0

    def run(self):
        """Runs all jobs. Raises `UserError` at the end when some failed."""
        make_directory(self.jobs_folder)
        for folder in {self.jobs_folder, *(job.folder for job in self.plan)}:
            remove_leftovers(folder)
        self.done = {job.name for job, kind in settled(self.plan, self.jobs_folder)
                     if kind == DONE}
        for job in self.plan:
            if job.name in self.done:
                self._complete_record(job)
        left = len(self.plan) - len(self.done)
        if not left:
            return
        self._line.print(f'{len(self.plan)} jobs: {len(self.done)} done, {left} to run, '
                    f'{self.jobs} at a time')
        previous = signal.signal(signal.SIGTERM, _interrupt)
        try:
            while len(self.done) + len(self.failed) < len(self.plan):
                self._start_ready()
                self._reap()
                self._live()
                time.sleep(POLL_SECONDS)
        except KeyboardInterrupt:
            raise KeyboardInterrupt('run the same command again to resume') from None
        finally:
            self._stop_running()
            signal.signal(signal.SIGTERM, previous)
        if self.failed:
            name, reason = next(iter(self.failed.items()))
            others = len(self.failed) - 1
            raise UserError(f'{name} failed: {reason}' + (
                f' (and {others} more jobs that failed or need it)' if others else '')
                + '; run the same command again to resume')

    # Starting -------------------------------------------------------------------------------

    def _start_ready(self):
        for job in self.plan:
            if job.name in self.done or job.name in self.failed or job.name in self.running:
                continue
            broken = [name for name in job.needs if name in self.failed]
            if broken:
                self.failed[job.name] = f'needs {broken[0]}'
            elif len(self.running) < self.jobs and all(name in self.done for name in job.needs):
                self._start(job)

    def _start(self, job):
        path = os.path.join(self.jobs_folder, job.name + '.txt')
        output = open(path, 'a', encoding='utf-8')
        try:
            fcntl.flock(output, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:  # another runner has the lock: look again later
            output.close()
            return
        self._begin_with_trial(job)
        found = state.look(job, self.plan, self.jobs_folder)
        if found.kind == DONE:  # another runner has finished it, or been killed meanwhile
            self._complete_record(job)
            output.close()
            self.done.add(job.name)
            return
        if found.kind == CHANGED and job.trains:
            output.close()
            self.failed[job.name] = f'{job.folder} was made with other settings ({found.reason})'
            return
        make_directory(job.folder)
        resumed = found.kind == RESUME
        line = shell_line(job, resumed)
        inputs = state.input_fingerprints(job, self.plan)
        if job.trains:
            self._record_start(job, line, inputs)
        output.write(f'$ {line}\n')
        output.flush()
        # The command inherits the lock: it lasts as long as the command, even without us.
        target = open(self._partial(job), 'wb') if job.stdout else None
        process = subprocess.Popen(
            [sys.executable, *command(job, resumed)], cwd=self.root, env=self.environment,
            stdin=subprocess.DEVNULL, stdout=target or output, stderr=output,
            pass_fds=[output.fileno()])
        if target:
            target.close()
        self.running[job.name] = _Running(job, process, output, time.monotonic(), line,
                                          epochs_done(job) / max(job.epochs, 1), inputs)
        if job.trains:  # the others are quick
            self._line.print(f'{self._count()}  {job.name} {"resumes" if resumed else "starts"}')

    def _begin_with_trial(self, job):
        trial = state.job_in_trial(job, self.plan, self.jobs_folder)
        if trial is None:
            return
        temporary = job.folder + '.partial'
        shutil.rmtree(temporary, ignore_errors=True)
        shutil.copytree(trial.folder, temporary,
                        ignore=shutil.ignore_patterns('predictions.csv'))
        record = state.read_json(state.record_path(self.jobs_folder, trial), 'job')
        write_json(state.record_path(self.jobs_folder, job), record or {})
        os.replace(temporary, job.folder)
        self._line.print(f'{self._count()}  {job.name} begins with the run of {trial.folder}')

    @staticmethod
    def _partial(job):
        return os.path.join(job.folder, f'.{job.stdout}.partial')

    # Ending ---------------------------------------------------------------------------------

    def _reap(self):
        for name, running in list(self.running.items()):
            status = running.process.poll()
            if status is None:
                continue
            del self.running[name]
            job, seconds = running.job, time.monotonic() - running.started
            if job.stdout and status == 0:
                os.replace(self._partial(job), os.path.join(job.folder, job.stdout))
            if status == 0:
                self._record_end(job, running.line, running.inputs, seconds)
            running.output.close()
            if status == 0:
                self.done.add(name)
                if job.trains:  # what takes moments says little about what takes long
                    self._spent += seconds
                    self._earned += job.weight * (1 - running.start_share)
                self._line.print(f'{self._count()}  {name} done in {duration(seconds)}'
                            f'{self._say(job)}   {self._outlook()}')
            else:
                self.failed[name] = self._reason(job, status)
                self._line.print(f'{self._count()}  {name} FAILED: {self.failed[name]}')

    def _stop_running(self):
        for running in self.running.values():
            running.process.terminate()
        for running in self.running.values():
            running.process.wait()
            running.output.close()

    def _record_start(self, job, line, inputs):
        """A training is recorded when it starts, so that a resume knows what it began with."""
        path = state.record_path(self.jobs_folder, job)
        before = state.read_json(path, 'job') or {}
        write_json(path, {'commands': [*before.get('commands', []), line], 'inputs': inputs,
                          'seconds': before.get('seconds', 0)})

    def _complete_record(self, job):
        """Records the end of a training that ended after its runner was killed."""
        path = state.record_path(self.jobs_folder, job)
        record = state.read_json(path, 'job') if job.trains else None
        if record and 'finished' not in record:
            write_json(path, {**record, 'finished': _now()})

    def _record_end(self, job, line, inputs, seconds):
        path = state.record_path(self.jobs_folder, job)
        record = {'commands': [line], 'inputs': inputs, 'settings': job.settings, 'seconds': 0}
        if job.trains:
            record = {'commands': [line], 'seconds': 0, **(state.read_json(path, 'job') or {})}
        write_json(path, {**record, 'seconds': round(record['seconds'] + seconds, 1),
                          'finished': _now()})

    def _reason(self, job, status):
        """Why a command has failed."""
        if status < 0:
            return f'killed by {signal.Signals(-status).name}' + (
                ' (out of memory?)' if -status == signal.SIGKILL else '')
        return self._last_line(job) or f'exit status {status}'

    def _last_line(self, job):
        path = os.path.join(self.jobs_folder, job.name + '.txt')
        with open(path, encoding='utf-8', errors='replace') as stream:
            lines = [line.strip() for line in stream if line.strip() and not line.startswith('$')]
        return lines[-1].removeprefix('error: ') if lines else ''

    def _say(self, job):
        """How a training did on dev; test accuracy is shown only in the tables."""
        result = state.read_json(os.path.join(job.folder, RESULT)) if job.trains else None
        if not result:
            return ''
        if job.trains == 'lm':
            return f': {result["valid_split"]} perplexity {result["valid_perplexity"]:.2f}'
        return f': dev {result["dev_accuracy"]:.2f} %'

    # Progress -------------------------------------------------------------------------------

    def _count(self):
        width = len(str(len(self.plan)))
        return f'[{len(self.done):>{width}}/{len(self.plan)}]'

    def _outlook(self):
        left = len(self.plan) - len(self.done) - len(self.running) - len(self.failed)
        text = f'{len(self.running)} running, {left} left'
        seconds = self.seconds_left()
        if seconds:
            finish = time.strftime('%H:%M', time.localtime(time.time() + seconds))
            text += f', about {duration(seconds)} (until {finish})'
        return text

    def seconds_left(self):
        """Expected time until all is done, or None as long as nothing is known.

        Jobs are weighed by what they are expected to cost; what a unit of weight takes is
        measured on the trainings finished so far and on the epochs of those that run.
        """
        now = time.monotonic()
        spent, earned, left, longest = self._spent, self._earned, 0.0, 0.0
        for job in self.plan:
            if job.name in self.done or job.name in self.failed:
                continue
            share = 0.0
            if job.name in self.running:
                running = self.running[job.name]
                share = epochs_done(job) / job.epochs if job.epochs else 0.0
                if share > running.start_share:
                    spent += now - running.started
                    earned += job.weight * (share - running.start_share)
            left += job.weight * (1 - share)
            longest = max(longest, job.weight * (1 - share))
        if not earned:
            return None
        return spent / earned * max(left / self.jobs, longest)

    def _live(self):
        now = time.monotonic()
        if not self._line.live or now - self._last_live < LIVE_SECONDS:
            return
        self._last_live = now
        shown = [name + (f' {epochs_done(running.job) / running.job.epochs:.0%}'
                         if running.job.epochs else '')
                 for name, running in self.running.items()]
        self._line.show(f'{self._count()}  {self._outlook()}: {", ".join(shown)}'[:150])


def epochs_done(job):
    """Epochs that a training has had, as its log tells."""
    try:
        log = state.read_json(os.path.join(job.folder, LOG)) if job.epochs else None
    except UserError:  # only the progress line would show it
        log = None
    return min(len(log or ()), job.epochs)


def shared_cores(jobs, cores=None):
    """Our environment, with as many threads for each job as there are cores for it.

    One thread each for two small models side by side beats two threads for one after the other.
    """
    if cores is None:
        cores = usable_processors()
    threads = str(max(1, cores // jobs))
    return {'OPENBLAS_NUM_THREADS': threads, 'OMP_NUM_THREADS': threads,
            'OMP_WAIT_POLICY': 'passive', **os.environ}


def _now():
    return time.strftime('%Y-%m-%d %H:%M UTC', time.gmtime())


def _interrupt(number, frame):
    raise KeyboardInterrupt
