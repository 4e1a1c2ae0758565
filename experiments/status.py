"""How far the runs of a plan are: `status.md`, which `collect` writes until all are finished."""
import os

from experiments import state, tables
from experiments.tables import MISSING, Number, Table
from interpretable_adv.runs.files import atomic_write
from interpretable_adv.runs.progress import duration

FILE = 'status.md'
TITLES = {state.DONE: 'finished', state.RESUME: 'in progress', state.NEW: 'to do',
          state.CHANGED: 'made with other settings'}
# Of each kind of training: the key in its log of the figure on dev, its name, and which is best.
ON_DEV = {'lm': ('validation/perplexity', 'perplexity', min),
          'classifier': ('dev/main/accuracy', 'accuracy', max)}


def write(plan, jobs_folder, target):
    """Writes the page into the folder `target`; a plan that is finished needs none."""
    path = os.path.join(target, FILE)
    states = {job.name: state.look(job, plan, jobs_folder).kind for job in plan}
    if all(kind == state.DONE for kind in states.values()):
        if os.path.exists(path):
            os.remove(path)
        return
    with atomic_write(path) as stream:
        stream.write(tables.markdown(table(plan, states, jobs_folder)))


def table(plan, states, jobs_folder):
    """A row for each job: its state, epochs, best figure on dev, and time so far."""
    finished = sum(kind == state.DONE for kind in states.values())
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
