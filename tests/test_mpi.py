"""Several processes train as one does: really started with mpiexec, on tiny models.

Jobs of 2 and 4 processes train all methods one after another, without dropout, for more than 50
steps; the last batch of an epoch has two reviews, so that two of four processes get none.
"""
import json
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import time

import chainer
import numpy as np
import psutil
import pytest

from interpretable_adv import train
from interpretable_adv.errors import UserError
from interpretable_adv.runs import checkpoints, distributed, files
from lm import pretrain

ROOT = pathlib.Path(__file__).resolve().parents[1]
MPIEXEC = shutil.which('mpiexec', path=os.path.dirname(sys.executable)) or shutil.which('mpiexec')
pytestmark = pytest.mark.skipif(
    not MPIEXEC, reason='needs mpiexec (pip install mpi4py mpich)')

METHODS = ['baseline', 'adv', 'iadv', 'vat', 'ivat', 'spgd']
TRAIN = ('--lower 0 --ignore_unk 1 --emb_dim 6 --hidden_dim 7 --hidden_cls_dim 5 --batchsize 6 '
         '--batchsize_semi 7 --n_epoch 4 --nn_k 4 --xi_var 5 --log_steps 1 --progress off').split()
PRETRAIN = ('--unit 7 --n-units-word 6 --batchsize 6 --bproplen 7 --epoch 1 --log-steps '
            '--progress off --adaptive-softmax').split()

CLASS_LM = ('--batchsize 5 --bproplen 7 --epoch 2 --log_steps --progress off --dropout 0'
            ).split()

# Everything in one job, since starting Python takes longer than training does.
JOB = '''
import sys
from interpretable_adv import train
from lm import pretrain
runs = [line.split() for line in sys.argv[1].splitlines()]
for program, *flags in runs:
    {'train': train, 'pretrain': pretrain}[program].main(flags)
'''


def start(processes, *command, **environment):
    return subprocess.Popen(
        [MPIEXEC, '-n', str(processes), sys.executable, *map(str, command)], cwd=ROOT,
        env=dict(os.environ, OMP_NUM_THREADS='1', OPENBLAS_NUM_THREADS='1', **environment),
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def mpiexec(processes, *command, **environment):
    job = start(processes, *command, **environment)
    output, errors = job.communicate(timeout=300)
    assert job.returncode == 0, output + errors
    return output


def run_job(processes, *runs):
    """Runs `['train' or 'pretrain', flag, …]` one after another in a single job."""
    return mpiexec(processes, '-c', JOB, '\n'.join(
        ' '.join(map(str, [*run, '--communicator', 'naive'])) for run in runs))


def train_run(corpus, out, method, *more):
    return ['train', '--data_dir', corpus, '--out', out, '--method', method, *TRAIN, *more]


def pretrain_run(corpus, out, *more):
    return ['pretrain', '--data_dir', corpus, '--out', out, *PRETRAIN, *more]


def steps(out):
    with open(out / 'steps.jsonl', encoding='utf-8') as stream:
        return [json.loads(line) for line in stream]


def read(path):
    return json.loads(path.read_text(encoding='utf-8'))


def assert_same_steps(got, expected, tolerance=1e-5):
    assert len(got) == len(expected)
    for ours, theirs in zip(got, expected):
        assert ours == pytest.approx(theirs, abs=tolerance)


@pytest.fixture(scope='module')
def corpus(golden):
    return golden / 'synthetic' / 'mini_synthetic'


# The same numbers as one process --------------------------------------------------------------

class OneProcess:
    """ChainerMN's communicator of a single process, without MPI."""

    rank, size = 0, 1

    @property
    def mpi_comm(self):
        return self

    def multi_node_mean_grad(self, model):
        pass

    def Allreduce(self, send, receive):  # noqa: N802  (mpi4py's name)
        receive[...] = send

    def Allgather(self, send, receive):  # noqa: N802
        receive[...] = send

    def Allgatherv(self, send, receive):  # noqa: N802
        receive[0][...] = send

    def Barrier(self):  # noqa: N802
        pass


@pytest.fixture(scope='module')
def one_process(corpus, tmp_path_factory):
    """The folder of all runs by one process that draws its random numbers as a team does."""
    out = tmp_path_factory.mktemp('one')
    for program, *flags in all_runs(corpus, out):
        module = {'train': train, 'pretrain': pretrain}[program]
        settings = module.parse(list(map(str, flags)))
        module.run(settings, distributed.Team(OneProcess(), 1234))
    return out


def all_runs(corpus, out):
    return [*(train_run(corpus, out / method, method, '--dropout', 0) for method in METHODS),
            pretrain_run(corpus, out / 'lm', '--dropout', 0),
            class_lm_run(corpus, out / 'class_lm', out / 'lm'),
            train_run(corpus, out / 'spgd_lm', 'spgd', '--dropout', 0, '--class_lm',
                      out / 'class_lm' / 'best.model', '--class_lm_weight', 0.1)]


def class_lm_run(corpus, out, lm, *more):
    return ['pretrain', '--data_dir', corpus, '--out', out, '--class_conditional', 1, '--init',
            lm / 'best.model', *CLASS_LM, *more]


@pytest.mark.slow
@pytest.mark.parametrize('processes', [2, 4])
def test_several_processes_train_as_one_does(corpus, one_process, tmp_path, processes):
    output = run_job(processes, *all_runs(corpus, tmp_path))
    for method in [*METHODS, 'lm', 'class_lm', 'spgd_lm']:
        expected = steps(one_process / method)
        assert len(expected) > 50
        assert_same_steps(steps(tmp_path / method), expected)
        models = [checkpoints.read_arrays(out / method / 'best.model')
                  for out in (tmp_path, one_process)]
        for name in models[1]:
            np.testing.assert_allclose(models[0][name], models[1][name], atol=1e-4, err_msg=name)
    for method in METHODS:
        for epoch, expected in zip(read(tmp_path / method / 'log'),
                                   read(one_process / method / 'log')):
            for split in ('dev', 'test'):
                assert epoch[f'{split}/main/accuracy'] == expected[f'{split}/main/accuracy']
    results = [read(out / 'lm' / 'result.json') for out in (tmp_path, one_process)]
    for key in ('valid_perplexity', 'test_perplexity', 'test_perplexity_per_review'):
        assert results[0][key] == pytest.approx(results[1][key], rel=1e-5)
    results = [read(out / 'class_lm' / 'result.json') for out in (tmp_path, one_process)]
    for split in ('dev', 'test'):
        ours, theirs = (result['classes'][split] for result in results)
        assert ours.pop('perplexity_per_class') == pytest.approx(
            theirs.pop('perplexity_per_class'), rel=1e-5)
        assert ours == pytest.approx(theirs, rel=1e-5)
    # One process writes and prints.
    assert output.count('spgd: 80 reviews') == 2 and f', {processes} processes' in output
    assert output.count('best epoch') == len(METHODS) + 3
    assert sorted(os.listdir(tmp_path / 'spgd')) == [
        'args.json', 'best.model', 'log', 'result.json', 'snapshot.npz', 'steps.jsonl',
        'vocab.txt']


@pytest.mark.parametrize('method', [method for method in METHODS if method != 'vat'])
def test_first_epoch_is_that_of_a_run_without_mpi(corpus, one_process, tmp_path, method):
    """Later ones have another order: there dropout draws from the stream of the order, even
    where nothing drops out. VAT's noise has a stream of its own from the start."""
    _, *flags = train_run(corpus, tmp_path, method, '--dropout', 0, '--n_epoch', 1)
    train.main(list(map(str, flags)))
    assert_same_steps(steps(one_process / method)[:14], steps(tmp_path))


# A dead process -------------------------------------------------------------------------------

KILLED = ['--snapshot_steps', 5, '--communicator', 'naive']


def worker(job, rank):
    """The process of the given rank, once it is there."""
    for _ in range(300):
        for process in psutil.Process(job.pid).children(recursive=True):
            try:
                if process.environ().get('PMI_RANK') == str(rank) and process.name() != 'sh':
                    return process
            except psutil.Error:
                pass
        time.sleep(0.1)
    raise AssertionError('there is no such process')


@pytest.mark.slow
@pytest.mark.parametrize('victim, method', [(0, 'baseline'), (1, 'iadv')])
def test_dead_process_ends_the_job_and_a_new_one_goes_on(corpus, tmp_path, victim, method):
    out, whole = tmp_path / 'killed', tmp_path / 'whole'
    _, *flags = train_run(corpus, out, method, *KILLED, '--n_epoch', 10000)
    job = start(2, '-m', 'interpretable_adv.train', *flags)
    while not (out / 'snapshot.npz').exists() or len(steps(out)) < 12:
        assert job.poll() is None, job.stderr.read()
        time.sleep(0.05)
    worker(job, victim).send_signal(signal.SIGKILL)
    killed = time.monotonic()
    _, errors = job.communicate(timeout=60)
    assert time.monotonic() - killed < 30
    assert job.returncode != 0
    lines = [line for line in errors.splitlines() if line.startswith('error:')]
    assert len(lines) == 1 and f'{out} is intact' in lines[0] and '--resume' in lines[0]

    epochs = ('--n_epoch', -(-len(steps(out)) // 14) + 1)
    run_job(2, train_run(corpus, out, method, *KILLED, *epochs, '--resume'),
            train_run(corpus, whole, method, *KILLED, *epochs))
    assert steps(out) == steps(whole)
    ends = [checkpoints.read_arrays(folder / 'snapshot.npz') for folder in (out, whole)]
    for name in ends[0]:
        if name.startswith('trainer/updater/'):
            np.testing.assert_array_equal(ends[0][name], ends[1][name], err_msg=name)


@pytest.mark.slow
def test_resumed_language_model(corpus, tmp_path):
    flags = ('--snapshot_steps', 20)
    run_job(2, pretrain_run(corpus, tmp_path / 'parts', *flags),
            pretrain_run(corpus, tmp_path / 'parts', *flags, '--epoch', 2, '--resume'),
            pretrain_run(corpus, tmp_path / 'whole', *flags, '--epoch', 2))
    assert len(steps(tmp_path / 'whole')) == 150
    assert steps(tmp_path / 'parts') == steps(tmp_path / 'whole')
    # The same for a class-conditional model, which reads reviews instead of streams.
    runs = {name: class_lm_run(corpus, tmp_path / name, tmp_path / 'whole', *flags)
            for name in ('class_parts', 'class_whole')}
    run_job(2, [*runs['class_parts'], '--epoch', 1], [*runs['class_parts'], '--resume'],
            runs['class_whole'])
    assert steps(tmp_path / 'class_parts') == steps(tmp_path / 'class_whole')


def test_a_folder_in_use_ends_the_job_in_one_line(corpus, tmp_path):
    out = tmp_path / 'out'
    with files.locked(out, '--out'):
        _, *flags = train_run(corpus, out, 'baseline', '--communicator', 'naive')
        job = start(2, '-m', 'interpretable_adv.train', *flags)
        _, errors = job.communicate(timeout=120)
        for _ in range(100):  # for seconds there is a mark for the processes that are ended
            if '.job-ends' not in os.listdir(out):
                break
            time.sleep(0.2)
        assert os.listdir(out) == ['.lock']
    assert job.returncode != 0
    lines = [line for line in errors.splitlines() if line.startswith('error:')]
    assert len(lines) == 1 and f'in use by process {os.getpid()}' in lines[0]


ONE_FAILS = '''
import sys
from interpretable_adv import cli
from interpretable_adv.errors import UserError
from interpretable_adv.runs import distributed

def main(argv):
    with distributed.join('naive', sys.argv[1], 0) as team:
        if team.rank == 1:
            raise UserError('the disk of one is full: make room')
        team.wait()

cli.run(main)
'''


def test_error_of_one_process_ends_all_with_its_line(tmp_path):
    job = start(2, '-c', ONE_FAILS, tmp_path)
    output, errors = job.communicate(timeout=60)
    assert job.returncode == 2
    assert errors.count('error: the disk of one is full: make room\n') == 1
    assert 'Traceback' not in errors and 'died' not in errors


def test_communicators_of_gpus_need_gpus(corpus, tmp_path):
    script = '''
import sys
from interpretable_adv import train
from interpretable_adv.errors import UserError
for name in ('pure_nccl', 'flat'):
    try:
        train.main(['--data_dir', sys.argv[1], '--out', sys.argv[2], '--communicator', name])
    except UserError as error:
        print(error)
'''
    lines = mpiexec(1, '-c', script, corpus, tmp_path).splitlines()
    assert [line.split(' cannot')[0] for line in lines] == ['--communicator pure_nccl',
                                                            '--communicator flat']


@pytest.mark.parametrize('name', ['pure_nccl', 'flat'])
def test_communicators_of_gpus_are_refused_on_a_cpu(name):
    with pytest.raises(UserError, match='add --gpu 0'):
        distributed.check_device(name, chainer.get_device('@numpy'))


# On a device ----------------------------------------------------------------------------------

@pytest.mark.slow
@pytest.mark.skipif(not shutil.which('g++'), reason='the stand-in for CuPy needs g++')
def test_processes_with_a_device_each(corpus, tmp_path):
    """The stand-in's arrays are in the host's memory, where MPI finds them."""
    few = tmp_path / 'few'
    few.mkdir()
    for path in corpus.glob('imdb_*.txt'):
        lines = [' '.join(line.split()[:5]) for line in path.read_text().splitlines()[:6]]
        (few / path.name).write_text('\n'.join(lines) + '\n')
    options = '--dropout', 0, '--n_epoch', 2
    _, *flags = train_run(few, tmp_path / 'cupy', 'spgd', *options, '--gpu', 0)
    mpiexec(2, '-m', 'strict_cupy', 'interpretable_adv.train', *flags, '--communicator', 'naive',
            PYTHONPATH=os.pathsep.join([str(ROOT), str(ROOT / 'tests')]), STRICT_CUPY_DEVICES='2')
    _, *flags = train_run(few, tmp_path / 'numpy', 'spgd', *options)
    train.run(train.parse(list(map(str, flags))), distributed.Team(OneProcess(), 1234))
    assert_same_steps(steps(tmp_path / 'cupy'), steps(tmp_path / 'numpy'))


# Shares, without MPI --------------------------------------------------------------------------

class Communicator:
    """What a `Team` asks of ChainerMN's communicator before it sends anything."""

    def __init__(self, rank, size):
        self.rank, self.size = rank, size


@pytest.mark.parametrize('size', [1, 2, 3, 4, 7])
@pytest.mark.parametrize('count', [0, 1, 2, 5, 8, 32])
def test_parts_make_the_whole(count, size):
    items = np.arange(count)
    parts = [distributed.Team(Communicator(rank, size), 0).part(items) for rank in range(size)]
    np.testing.assert_array_equal(np.concatenate(parts), items)
    assert max(map(len, parts)) - min(map(len, parts)) <= 1
    for rank, part in enumerate(parts):
        assert all(i * size // count == rank for i in part)


@pytest.mark.parametrize('count', [1, 2, 3, 9])
def test_shares_of_a_batch_add_up(count):
    sequences = [np.arange(length) for length in (4, 1, 3, 2, 6, 1, 1, 2, 5)]
    indices = np.arange(9)[::-1][:count]
    shares = []
    for rank in range(4):
        team = distributed.Team(Communicator(rank, 4), 0)
        with team.step(0):
            shares.append(team.reviews(sequences, indices))
    assert sum(share.weight for share in shares) == pytest.approx(1)
    assert sum(share.word_weight for share in shares) == pytest.approx(1)
    assert all(len(share.indices) for share in shares)
    owned = np.concatenate([share.indices for share in shares if share.weight])
    assert sorted(owned) == sorted(indices)


def test_shares_have_about_as_many_words():
    lengths = np.random.RandomState(0).geometric(1 / 240, 32)
    words = [lengths[distributed.Team(Communicator(rank, 4), 0)._deal(lengths)].sum()
             for rank in range(4)]
    assert sum(words) == lengths.sum()
    assert max(words) < 1.2 * min(words)


def test_noise_is_that_of_one_process():
    sequences = [np.arange(length) for length in (4, 1, 3, 2, 6)]

    def noise(rank, size, step):
        """Noise of the process's reviews, by number."""
        team = distributed.Team(Communicator(rank, size), seed=5)
        with team.step(step):
            share = team.reviews(sequences, np.arange(5))
            lengths = [len(sequences[i]) for i in share.indices]
            rows = team.noise(np, (sum(lengths), 3))
        assert rows.shape == (sum(lengths), 3) and rows.dtype == np.float32
        return dict(zip(share.indices, np.split(rows, np.cumsum(lengths)[:-1])))

    whole = noise(0, 1, step=8)
    assert len(whole) == 5
    for rank in range(3):
        for number, rows in noise(rank, 3, step=8).items():
            np.testing.assert_array_equal(rows, whole[number])
    assert not np.array_equal(noise(0, 1, step=9)[0], whole[0])


def test_random_streams_of_a_step():
    def draw(rank, step):
        team = distributed.Team(Communicator(rank, 2), seed=5)
        np.random.seed(3)
        before = np.random.rand()
        with team.step(step):
            inside = np.random.rand()
        return before, inside, np.random.rand()

    draws = {(rank, step): draw(rank, step) for rank in (0, 1) for step in (0, 1)}
    assert draw(0, 0) == draws[0, 0]
    assert len({inside for _, inside, _ in draws.values()}) == 4
    assert len({(before, after) for before, _, after in draws.values()}) == 1
