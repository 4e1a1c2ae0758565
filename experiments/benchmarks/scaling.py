"""How training scales with processes on this machine: one thread each, one shared batch.

    python -m experiments.benchmarks.scaling [--processes 1,2] [--out experiments/benchmarks]

starts jobs of 1, 2, … processes in turn, several times, and writes scaling.json and scaling.md. A
step's time has three parts: computing, waiting for the slowest process, exchanging gradients.
A barrier before the exchange, which training does without, tells the last two apart. Beside the
time that passes is the processor's time of the slowest process's computing, with the exchange
added: what a step would take on a machine that nobody else uses.
"""
import json
import os
import shutil
import subprocess
import sys
import time

import chainer
import numpy as np

from experiments.benchmarks import batches, step_benchmark
from interpretable_adv import cli
from interpretable_adv.nn import kernels
from interpretable_adv.runs import distributed, files

METHODS = ('baseline', 'adv')
EPOCH = -(-21246 // batches.BATCH)  # steps, of IMDB's training reviews
COLUMNS = ('seconds', 'waiting', 'exchanging', 'computing')  # the last: of the processor


# One process of a job ---------------------------------------------------------------------------

class TimedCommunicator:
    """Notes how long a communicator waits, how long it then exchanges, and the processor's time
    of both."""

    def __init__(self, communicator):
        self._communicator = communicator
        self.reset()

    def reset(self):
        self.waited = self.exchanged = self.processor = 0.0

    def __getattr__(self, name):
        return getattr(self._communicator, name)

    def multi_node_mean_grad(self, model):
        start, processor = time.perf_counter(), time.process_time()
        self._communicator.mpi_comm.Barrier()
        ready = time.perf_counter()
        self._communicator.multi_node_mean_grad(model)
        self.waited += ready - start
        self.exchanged += time.perf_counter() - ready
        self.processor += time.process_time() - processor
        self.megabytes = sum(p.grad.nbytes for _, p in model.namedparams()) / 1e6


def measure_steps(team, method, hidden, steps, warm_up=2):
    """Per step: seconds in all, waiting, exchanging, and the processor's of computing."""
    updater = step_benchmark.updater(
        method, hidden, step_benchmark.Reviews(batches.BATCH * (steps + warm_up)))
    updater.team = team
    reporter = chainer.Reporter()
    reporter.add_observer('main', updater.model)
    clock = team.communicator
    rows = []
    for number in range(warm_up + steps):
        clock.reset()
        team.wait()
        start, processor = time.perf_counter(), time.process_time()
        with reporter.scope({}):
            updater.update()
        seconds = time.perf_counter() - start
        if number >= warm_up:
            rows.append([seconds, clock.waited, clock.exchanged,
                         time.process_time() - processor - clock.processor])
    return rows


def work(hidden, steps):
    """What each process of a job does; process 0 prints the rows of all as JSON."""
    kernels.threads = 1
    with distributed.join('naive', os.curdir, seed=0) as team:
        team.communicator = TimedCommunicator(team.communicator)
        result = {}
        for method in METHODS:
            rows = np.array(measure_steps(team, method, hidden, steps))
            gathered = team.gather(rows).reshape(team.size, steps, len(COLUMNS))
            result[method] = {'rows': gathered.tolist(), 'megabytes': team.communicator.megabytes}
        print(json.dumps(result))


# All jobs -----------------------------------------------------------------------------------------

def run_job(processes, hidden, steps):
    mpiexec = shutil.which('mpiexec', path=os.path.dirname(sys.executable)) or 'mpiexec'
    done = subprocess.run(
        [mpiexec, '-n', str(processes), sys.executable, '-m', __spec__.name, '--work',
         '--hidden', str(hidden), '--steps', str(steps)],
        env=dict(os.environ, OMP_NUM_THREADS='1', OPENBLAS_NUM_THREADS='1'),
        capture_output=True, text=True)
    if done.returncode:
        raise cli.UserError(f'mpiexec -n {processes} failed: {done.stderr.strip()[-500:]}')
    return json.loads(done.stdout.splitlines()[-1])


def summarise(rounds, processes):
    """Means over all steps of a round, of these the median; a step lasts as long as its slowest
    process computes."""
    summary = []
    for method in METHODS:
        alone = None
        for n in processes:
            # (rounds, processes, steps, columns)
            rows = np.array([one[n][method]['rows'] for one in rounds])
            seconds, waiting, exchanging, computing = np.moveaxis(rows, -1, 0)
            passed = float(np.median(seconds.max(axis=1).mean(axis=1)))
            exchange = float(np.median(exchanging.min(axis=1)))
            undisturbed = float(np.median(computing.max(axis=1).mean(axis=1))) + exchange
            alone = alone or (passed, undisturbed)
            summary.append({
                'method': method, 'processes': n, 'megabytes': rounds[0][n][method]['megabytes'],
                'step_ms': 1e3 * passed, 'epoch_min': passed * EPOCH / 60,
                'speed_up': alone[0] / passed,
                'waiting_share': float(waiting.sum() / seconds.sum()),
                'exchange_ms': 1e3 * exchange,
                'undisturbed_step_ms': 1e3 * undisturbed,
                'undisturbed_epoch_min': undisturbed * EPOCH / 60,
                'undisturbed_speed_up': alone[1] / undisturbed,
                'undisturbed_exchange_share': exchange / undisturbed})
    return summary


def markdown(summary, hidden, load):
    lines = [
        f'Embedding {batches.EMBEDDING}, LSTM {hidden}, {batches.VOCABULARY:,} words, '
        f'{batches.BATCH} reviews of real lengths per step whatever the number of processes, one '
        'thread each, communicator `naive`. "As measured" is the time that passed, on '
        f'{os.cpu_count()} cores with a load of {load[0]:.1f} to {load[1]:.1f}; "by processor '
        'time" is the slowest process\'s computing and the exchange.', '',
        '| | | as measured | | | by processor time | | | |',
        '|---|---|---|---|---|---|---|---|---|',
        '| method | processes | epoch, min | speed-up | waiting | epoch, min | speed-up | '
        'exchange | MB exchanged |']
    lines += [
        f"| {row['method']} | {row['processes']} | {row['epoch_min']:.1f} "
        f"| {row['speed_up']:.2f} | {row['waiting_share']:.0%} "
        f"| {row['undisturbed_epoch_min']:.1f} | {row['undisturbed_speed_up']:.2f} "
        f"| {row['exchange_ms']:.1f} ms, {row['undisturbed_exchange_share']:.1%} "
        f"| {row['megabytes']:.1f} |" for row in summary]
    return '\n'.join(lines) + '\n'


def main(argv=None):
    parser = cli.ArgumentParser(prog=f'python -m {__spec__.name}',
                                description=__doc__.partition('\n')[0])
    parser.add_argument('--processes', default='1,2', help='numbers of processes to compare')
    parser.add_argument('--hidden', type=cli.at_least(1), default=256, help='size of the LSTM')
    parser.add_argument('--steps', type=cli.at_least(1), default=8, help='steps per method and job')
    parser.add_argument('--rounds', type=cli.at_least(1), default=3, help='jobs of each kind')
    parser.add_argument('--out', default='experiments/benchmarks', help='folder for the results')
    parser.add_argument('--work', action='store_true', help='internal: run as a worker')
    settings = parser.parse_args(argv)
    if settings.work:
        work(settings.hidden, settings.steps)
        return
    processes = [int(n) for n in settings.processes.split(',')]
    files.make_directory(settings.out)
    load, rounds = [os.getloadavg()[0]], []
    for number in range(settings.rounds):
        print(f'round {number + 1} of {settings.rounds} ...', flush=True)
        rounds.append({n: run_job(n, settings.hidden, settings.steps) for n in processes})
    load.append(os.getloadavg()[0])
    summary = summarise(rounds, processes)
    text = markdown(summary, settings.hidden, load)
    with files.atomic_write(os.path.join(settings.out, 'scaling.json')) as stream:
        json.dump({'hidden': settings.hidden, 'load': load, 'summary': summary}, stream, indent=1)
        stream.write('\n')
    with files.atomic_write(os.path.join(settings.out, 'scaling.md')) as stream:
        stream.write(text)
    print(text)


if __name__ == '__main__':
    cli.run(main)
