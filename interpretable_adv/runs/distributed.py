"""Several processes that train one model: each takes a share of every batch (ChainerMN).

All processes hold the same parameters and draw the same batches. Each computes the losses of
its share as parts of the *global* batch's mean, so that losses, gradients and reported values
add up to those of one process that has the whole batch; the perturbations' gradients, whose
normalisation depends on their scale, are those of one process as they are.

Random numbers: what concerns all (the order of reviews, when the language model forgets) comes
from NumPy's global stream, which every process advances alike. What concerns a share (dropout)
comes from a stream of its own, seeded for each step from the run's seed, the step and the
process. VAT's noise is drawn for the global batch from a stream that is seeded for each step,
and each process takes the rows of its share. So a snapshot needs no more than the global stream.
"""
import contextlib
import os
import subprocess
import sys
import time
import traceback
from typing import Any, NamedTuple

import chainer
import numpy as np
from chainer import backend

from interpretable_adv.errors import UserError
from interpretable_adv.nn.embedding import RowParameter
from interpretable_adv.runs import devices

COMMUNICATORS = ('naive', 'flat', 'pure_nccl')


class Share(NamedTuple):
    """A process's share of a batch of reviews.

    Attributes:
        indices: of its reviews; at least one, so that every process goes through the same steps.
        weight: its part of the batch's reviews; 0 where there are more processes than reviews.
        word_weight: its part of the batch's words.
        batch_ids: words of the whole batch, on the host; None for a process alone.
    """

    indices: Any
    weight: float = 1.0
    word_weight: float = 1.0
    batch_ids: Any = None


class Alone:
    """The only process: its share is everything. Also what a `Team` offers."""

    rank, size, writes = 0, 1, True
    noise = None  # attacks draw it themselves

    def part(self, items):
        """Those of `items` that this process looks after; may be none."""
        return items

    def reviews(self, sequences, indices):
        """The `Share` of the reviews `indices` of `sequences`."""
        return Share(indices)

    def step(self, number):
        """Context of the step `number`, within which random numbers concern the share."""
        return contextlib.nullcontext()

    def touch(self, ids):
        """Notes words of the step's global batch; `reviews` does so by itself."""

    def backward(self, loss, values, model, embedding=None):
        """Leaves the global batch's gradient in the model's parameters.

        Args:
            loss: of this process, a Variable.
            values: named parts of it and such, to be reported.
            embedding: parameter of which only the rows of the step's words have a gradient;
                None: there is none.

        Returns:
            `values`, added up over all processes.
        """
        loss.backward()
        return values

    def sum(self, number):
        """Adds up a number over all processes."""
        return number

    def gather(self, array):
        """Joins the processes' arrays along their first axis, on the host, in their order."""
        return array

    def wait(self):
        """Returns when all processes have come here."""


ALONE = Alone()


class Team:
    """One of several processes; see `Alone` for what its methods do.

    Args:
        communicator: ChainerMN's.
        seed: of the run.
    """

    def __init__(self, communicator, seed):
        self.communicator, self.seed = communicator, seed
        self.rank, self.size = communicator.rank, communicator.size
        self.writes = self.rank == 0
        self._generator = None

    def part(self, items):
        return items[-(-self.rank * len(items) // self.size):
                     -(-(self.rank + 1) * len(items) // self.size)]

    def reviews(self, sequences, indices):
        lengths = np.array([len(sequences[i]) for i in indices])
        mine = self._deal(lengths)
        weight = len(mine) / len(indices)
        if not len(mine):
            mine = np.array([0])
        ends = np.cumsum(lengths)
        self._n_words = int(ends[-1])
        self._words = np.concatenate([np.arange(ends[i] - lengths[i], ends[i]) for i in mine])
        batch_ids = np.concatenate([sequences[i] for i in indices])
        self._touched.append(batch_ids)
        word_weight = float(weight and lengths[mine].sum() / lengths.sum())
        return Share(np.asarray(indices)[mine], weight, word_weight, batch_ids)

    def _deal(self, lengths):
        """Numbers of this process's reviews. They are dealt out from long to short, alternating in
        direction, so that all processes get about as many words and none waits long."""
        block, place = np.divmod(np.arange(len(lengths)), self.size)
        owner = np.where(block % 2, self.size - 1 - place, place)
        return np.sort(np.argsort(-lengths, kind='stable')[owner == self.rank])

    @contextlib.contextmanager
    def step(self, number):
        self._number, self._touched = number, []
        common = np.random.get_state()
        np.random.seed(self._entropy(1 + self.rank).generate_state(8))
        try:
            yield
        finally:
            np.random.set_state(common)

    def touch(self, ids):
        self._touched.append(ids.ravel())

    def noise(self, xp, shape):
        """The share's rows of normally distributed noise for the last batch of reviews."""
        shape_of_batch = (self._n_words, *shape[1:])
        entropy = self._entropy(0)
        if xp is np:
            noise = np.random.default_rng(entropy).standard_normal(shape_of_batch, np.float32)
        else:
            if self._generator is None:
                self._generator = devices.philox(self.seed)
            self._generator.seed(int(entropy.generate_state(1, np.uint64)[0]))
            noise = self._generator.normal(size=shape_of_batch, dtype=np.float32)
        return noise[xp.asarray(self._words)]

    def _entropy(self, who):
        return np.random.SeedSequence([self.seed, self._number, who])

    def backward(self, loss, values, model, embedding=None):
        # ChainerMN takes the mean over processes; the sum is wanted.
        xp = backend.get_array_module(loss.array)
        loss.grad = xp.full_like(loss.array, self.size)
        loss.backward()
        rows = None
        if embedding is not None:
            ids = np.unique(np.concatenate(self._touched)).astype(np.int64)
            rows = _Rows(embedding, ids)
        parameters = [parameter for _, parameter in sorted(model.namedparams())
                      if parameter is not embedding]
        pieces = [xp.zeros_like(parameter.array) if parameter.grad is None else parameter.grad
                  for parameter in parameters]
        pieces += [rows.gradient()] if rows else []
        pieces.append(self.size * xp.stack([xp.asarray(value, np.float32)
                                            for value in values.values()]))
        # All in one array: fewer messages, and no gradient that two parameters share.
        everything = chainer.Parameter(xp.concatenate([piece.ravel() for piece in pieces]))
        everything.grad = everything.array
        self.communicator.multi_node_mean_grad(_Message(everything))
        ends = np.cumsum([piece.size for piece in pieces])[:-1].tolist()
        pieces = [flat.reshape(piece.shape)
                  for flat, piece in zip(xp.split(everything.grad, ends), pieces)]
        for parameter, gradient in zip(parameters, pieces):
            parameter.grad = gradient
        if rows:
            rows.set_gradient(pieces[-2])
        return dict(zip(values, pieces[-1]))

    def sum(self, number):
        total = np.array(number, np.float64)
        self.communicator.mpi_comm.Allreduce(total.copy(), total)
        return total[()]

    def gather(self, array):
        array = np.ascontiguousarray(backend.CpuDevice().send(array))
        counts = np.zeros(self.size, np.int64)
        self.communicator.mpi_comm.Allgather(np.array([array.size], np.int64), counts)
        width = int(np.prod(array.shape[1:], dtype=np.int64))
        result = np.empty((int(counts.sum()) // max(width, 1), *array.shape[1:]), array.dtype)
        self.communicator.mpi_comm.Allgatherv(array, (result, counts))
        return result

    def wait(self):
        self.communicator.mpi_comm.Barrier()


class _Message:
    """The part of a model that ChainerMN looks at when it exchanges gradients."""

    def __init__(self, parameter):
        self._parameter = parameter

    def namedparams(self):
        return [('everything', self._parameter)]


class _Rows:
    """The gradient of an embedding, of which only the rows `ids` can differ from zero."""

    def __init__(self, embedding, ids):
        self.embedding, self.ids = embedding, ids

    def gradient(self):
        """The rows `(len(ids), D)`."""
        self._kept = (self.embedding.row_gradient() if isinstance(self.embedding, RowParameter)
                      else None)
        if self._kept is None:
            self._on_device = self.embedding.xp.asarray(self.ids)
            return self.embedding.grad[self._on_device]
        ids, values = self._kept
        rows = np.zeros((len(self.ids), values.shape[1]), values.dtype)
        rows[np.searchsorted(self.ids, ids)] = values
        return rows

    def set_gradient(self, rows):
        if self._kept is None:
            self.embedding.grad[self._on_device] = rows
        else:
            self.embedding.cleargrad()
            self.embedding.add_rows(self.ids, np.ascontiguousarray(rows))


# Joining and leaving ------------------------------------------------------------------------

@contextlib.contextmanager
def join(name, out, seed):
    """Yields the `Team` of the processes that `mpiexec` started, or `ALONE` without a name.

    Only process 0 prints. An error in one process ends them all, with one line. So does the
    death of one; its line comes from a small helper, since a killed process says nothing.

    Args:
        name: of ChainerMN's communicator; None: this process trains alone.
        out: folder of the run.
        seed: of the run.
    """
    if name is None:
        yield ALONE
        return
    team = Team(_communicator(name), seed)
    helper = _announce_death(team, out)
    with contextlib.ExitStack() as stack:
        if not team.writes:
            stack.enter_context(contextlib.redirect_stdout(
                stack.enter_context(open(os.devnull, 'w'))))
        try:
            yield team
        except BaseException as error:
            if team.size > 1:
                _tell(helper, 'spoken')
                _end_all(team, error)
            raise
        if team.size > 1:
            _tell(helper, 'well')
            helper.wait()


def device_number(gpu, team):
    """The number of this process's GPU: those of one machine take `--gpu`, `--gpu` + 1, …"""
    return gpu if gpu < 0 or team.size == 1 else gpu + team.communicator.intra_rank


def check_device(name, device):
    """Refuses a communicator that needs a GPU on a CPU."""
    if name in ('flat', 'pure_nccl') and device.xp is np:
        raise UserError(f'--communicator {name} exchanges the memory of GPUs: add --gpu 0 (the '
                        'processes of a machine take GPU 0, 1, …), or choose naive')


def _communicator(name):
    try:
        import chainermn
        return chainermn.create_communicator(name)
    except (ImportError, RuntimeError) as error:
        if _number_in_job() > 0:  # all processes fail alike; the first one says so
            sys.exit(2)
        reason = str(error).strip().partition('\n')[0]
        raise UserError(f'--communicator {name} cannot be used ({reason}): pip install mpi4py '
                        'mpich, and for flat and pure_nccl CuPy and NCCL; naive needs no GPU'
                        ) from error


def _number_in_job():
    try:
        from mpi4py import MPI
    except (ImportError, RuntimeError):
        return 0
    return MPI.COMM_WORLD.rank


def _announce_death(team, out):
    """Starts a process that prints a line when this one dies silently.

    When one ends, `mpiexec` kills the others; whoever makes the folder first speaks for all. It is
    there for the seconds in which the others die.
    """
    if team.size == 1:
        return None
    marker = os.path.join(out, '.job-ends')
    line = (f'error: worker {team.rank} of {team.size} has died, so the job is ending; the last '
            f'snapshot in {out} is intact: run the same command again with --resume')
    script = ('exec 3>&2 2>/dev/null; read word; [ "$word" = well ] && exit; mkdir "$0" || exit; '
              'if [ "$word" = spoken ]; then echo; else echo "$1" >&3; fi; sleep 5; rmdir "$0"')
    return subprocess.Popen(['sh', '-c', script, marker, line], stdin=subprocess.PIPE,
                            stdout=subprocess.PIPE, start_new_session=True)


def _tell(helper, word):
    """Says how this process ends: `well`, or with a line of its own, `spoken`. Returns when the
    helper has made the folder, or there is nothing to make."""
    with contextlib.suppress(BrokenPipeError):
        helper.stdin.write(f'{word}\n'.encode())
        helper.stdin.close()
    helper.stdout.readline()


def _end_all(team, error):
    """Says what went wrong and ends every process; an error of all is said by process 0."""
    if not team.writes:
        time.sleep(2)
    if isinstance(error, UserError):
        print(f'error: {" ".join(str(error).split())}', file=sys.stderr, flush=True)
    elif isinstance(error, KeyboardInterrupt):
        print('interrupted', file=sys.stderr, flush=True)
    else:
        traceback.print_exc()
    status = 130 if isinstance(error, KeyboardInterrupt) else 2
    time.sleep(0.5)  # mpiexec drops what it has not passed on when the job is aborted
    team.communicator.mpi_comm.Abort(status)
    os._exit(status)  # before anything waits for processes that no longer exist
