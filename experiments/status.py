"""How far the runs of a plan are: `status.md`, which `collect` writes until all are finished."""
import dataclasses
import os

from experiments import state, tables
from experiments.tables import MISSING, Number, Table
from interpretable_adv.runs.files import atomic_write
from interpretable_adv.runs.folder import MODEL
from interpretable_adv.runs.progress import duration

FILE = 'status.md'
ELSEWHERE = 'elsewhere'
TITLES = {state.DONE: 'finished', ELSEWHERE: 'finished elsewhere', state.RESUME: 'in progress',
          state.NEW: 'to do', state.CHANGED: 'made with other settings'}
# Of each kind of training: the key in its log of the figure on dev, its name, and which is best.
ON_DEV = {'lm': ('validation/perplexity', 'perplexity', min),
          'classifier': ('dev/main/accuracy', 'accuracy', max)}


def write(plan, jobs_folder, target):
    """Writes the page into the folder `target`; a plan that is finished needs none.

    What is not finished here may have been collected on another machine.
    """
    path = os.path.join(target, FILE)
    collected = [_collected(job, target) for job in plan]
    states = {job.name: state.look(job, plan, jobs_folder).kind for job in plan}
    for job in collected:
        if states[job.name] in (state.NEW, state.RESUME) and _is_finished(job, collected):
            states[job.name] = ELSEWHERE
    if all(kind in (state.DONE, ELSEWHERE) for kind in states.values()):
        if os.path.exists(path):
            os.remove(path)
        return
    shown = [there if states[job.name] == ELSEWHERE else job
             for job, there in zip(plan, collected)]
    with atomic_write(path) as stream:
        stream.write(tables.markdown(table(shown, states, jobs_folder)))


def _collected(job, target):
    """The job as if its folder were the one that `collect` fills, which has no models."""
    return dataclasses.replace(
        job, folder=os.path.join(target, os.path.basename(job.folder)),
        outputs=tuple(name for name in job.outputs if name != MODEL))


def _is_finished(job, plan):
    if job.trains:
        return state.look(job, plan, jobs_folder='').kind == state.DONE
    paths = (os.path.join(job.folder, name) for name in job.outputs)
    return all(os.path.exists(path) or os.path.exists(f'{path}.gz') for path in paths)


def table(plan, states, jobs_folder):
    """A row for each job: its state, epochs, best figure on dev, and time so far."""
    finished = sum(kind in (state.DONE, ELSEWHERE) for kind in states.values())
    rows = []
    for job in plan:
        log = []
        if job.trains and states[job.name] != state.NEW:
            log = state.read_json(os.path.join(job.folder, 'log')) or []
        record = state.read_json(state.record_path(jobs_folder, job), 'job') or {}
        seconds = log[-1]['elapsed_time'] if log else record.get('seconds') or None
        rows.append([job.name, TITLES[states[job.name]],
                     f'{len(log)} of at most {job.epochs}' if job.trains else MISSING,
                     _best(job, log) if log else MISSING,
                     duration(seconds) if seconds is not None else MISSING])
    return Table('status', f'{finished} of {len(plan)} jobs are finished',
                 ['job', 'state', 'epochs', 'best on dev', 'time'], rows)


def _best(job, log):
    key, name, best = ON_DEV[job.trains]
    return f'{name} {Number(best(entry[key] for entry in log))}'
