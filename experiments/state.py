"""How far a job is: to be done, to be resumed, finished, or finished with other settings."""
import dataclasses
import glob
import hashlib
import json
import os

from interpretable_adv import data, train
from interpretable_adv.data import text_files
from interpretable_adv.errors import UserError
from interpretable_adv.evaluation.readings import READINGS
from interpretable_adv.methods import METHODS
from interpretable_adv.runs import reading
from interpretable_adv.runs.folder import MODEL, RESULT, SNAPSHOT
from interpretable_adv.runs.reading import shown
from interpretable_adv.settings import checked, read_run
from lm import pretrain

NEW, RESUME, DONE, CHANGED = 'new', 'resume', 'done', 'changed'

# Settings of a training that its result does not depend on, or that are told by the inputs.
OF_CORPUS = ('vocab_sha256', *data.DESCRIPTION)
FREE = {'classifier': {*train.FREE_SETTINGS, 'resume', 'pretrained_model', 'class_lm',
                       *OF_CORPUS},
        'lm': {*pretrain.FREE_SETTINGS, 'resume', 'init', *OF_CORPUS}}
EPOCHS = {'classifier': 'n_epoch', 'lm': 'epoch'}


@dataclasses.dataclass(frozen=True)
class State:
    """`kind` is NEW, RESUME, DONE or CHANGED; `reason` says what has changed."""
    kind: str
    reason: str = ''


# Files that commands leave behind, as far as other commands rely on them.
_INTERVAL = reading.optional(reading.items(reading.number, least=2, most=2))
_SCORE = reading.fields(dict.fromkeys(('perplexity', 'gap', 'flipped'),
                                      reading.optional(reading.number)),
                        {'gap_interval': _INTERVAL})
_DIFFERENCES = reading.mapping(reading.fields({'difference': reading.optional(reading.number),
                                               'interval': _INTERVAL}))
_PERPLEXITIES = reading.fields({
    'rows': reading.items(reading.fields({
        'method': reading.text, 'epsilon': reading.optional(reading.number),
        'scores': reading.fields(dict.fromkeys(READINGS, _SCORE)),
        **dict.fromkeys(('norm_per_word', 'words_moved'), reading.number)}, {
            'settings': reading.mapping(), 'model': reading.text,
            'gradient_norms': reading.optional(reading.fields(
                dict.fromkeys(('loss', 'class_lm'), reading.number)))}), least=1),
    'n_reviews': reading.whole, 'split': reading.text}, {
        'gap_at_flip_rate': reading.mapping(reading.mapping(reading.mapping(
            reading.optional(reading.number)))),
        'judge': reading.optional(reading.fields({'accuracy': reading.number})),
        'judged_at_flip_rate': reading.mapping(reading.mapping(reading.mapping(reading.mapping(
            reading.optional(reading.number))))),
        'spgd_minus': reading.mapping(reading.mapping(_DIFFERENCES)),
        'spgd_minus_at_flip_rate': reading.mapping(reading.mapping(reading.mapping(_DIFFERENCES))),
        'nn_k': reading.whole, 'sparsity': reading.number})
_CLASSES = reading.fields({
    'perplexity': reading.optional(reading.number),
    'perplexity_per_class': reading.mapping(reading.optional(reading.number)),
    'bayes_accuracy': reading.optional(reading.number)})
_SEARCH = reading.fields({
    'points': reading.items(reading.fields({
        'method': reading.text, 'parameter': reading.text, 'value': reading.number,
        'settings': reading.mapping(reading.number),
        'dev_accuracy': reading.items(reading.number, least=1)})),
    'chosen': reading.mapping(reading.mapping(reading.number))})


def _check_perplexities(value, name):
    _PERPLEXITIES(value, name)
    names = [row['method'] for row in value['rows']]
    if len(set(names)) != len(names) or not set(names) <= set(METHODS):
        raise ValueError('it has a method twice, or one that is none')
    # Files of old had one K and one σ for all methods.
    if not {'nn_k', 'sparsity'} <= set(value) and not all(
            'settings' in row for row in value['rows']):
        raise ValueError('it does not say how it attacked')


def _check_search(value, name):
    _SEARCH(value, name)
    for point in value['points']:
        if point['parameter'] not in value['chosen'].get(point['method'], ()):
            raise ValueError(f'it has chosen no {shown(point["parameter"])}')


FORMS = {
    'result.json': reading.fields({}, {
        **dict.fromkeys(('n_epoch', 'epoch'), reading.whole), 'digest': reading.text,
        'versions': reading.mapping(), 'valid_split': reading.text,
        **dict.fromkeys(('valid_perplexity', 'test_perplexity'), reading.real),
        'dev_accuracy': reading.number, 'test_accuracy': reading.optional(reading.number),
        'classes': reading.mapping(_CLASSES)}),
    'log': reading.items(reading.fields({'epoch': reading.whole})),
    'job': reading.fields({}, {
        'commands': reading.items(reading.text), 'inputs': reading.mapping(),
        'settings': reading.mapping(), 'seconds': reading.number, 'finished': reading.text}),
    'perplexity.json': _check_perplexities,
    'robustness.json': reading.fields({
        'clean': reading.number, 'own': reading.mapping(reading.number), 'split': reading.text,
        'n_reviews': reading.whole, 'median_swaps': reading.number,
        'settings': reading.mapping(reading.mapping(reading.mapping()))}, {
            'transferred': reading.mapping(reading.number)}),
    'table2.json': reading.fields({'table2': reading.fields(dict.fromkeys(
        ('train', 'dev', 'test', 'unlabeled'), reading.fields(
            {'examples': reading.whole},
            dict.fromkeys(('min', 'max', 'mean'), reading.number))))}),
    'grid_search.json': _check_search,
    'args.json': reading.mapping(),
}


def read_json(path, form=None):
    """The checked value in a JSON file, or None where there is none.

    Args:
        form: key of `FORMS`; None: the name of the file.
    """
    try:
        return reading.read_json(path, FORMS[form or os.path.basename(path)],
                                 'delete it, and run the same command again')
    except reading.MissingFileError:
        return None


def record_path(jobs_folder, job):
    return os.path.join(jobs_folder, job.name + '.json')


def fingerprint(job):
    """Tells one run of a job from another: the hash of its first output."""
    try:
        with open(os.path.join(job.folder, job.outputs[0]), 'rb') as stream:
            return hashlib.file_digest(stream, 'sha256').hexdigest()
    except OSError:
        return None


def input_fingerprints(job, plan):
    by_name = {other.name: other for other in plan}
    return {name: fingerprint(by_name[name]) for name in job.needs}


def look(job, plan, jobs_folder):
    """The state of a job, from its outputs and the record of the command that made them."""
    record = read_json(record_path(jobs_folder, job), 'job') or {}
    if job.trains:
        return _look_at_training(job, plan, record)
    if not _has_outputs(job) or text_files.is_incomplete(job.folder):
        return State(NEW)
    if job.name == 'data':
        return State(DONE)
    if not record:  # nobody knows what it was made from
        return State(NEW)
    reason = (difference(record.get('settings', {}), _plain(job.settings))
              or _changed_input(job, plan, record))
    return State(CHANGED, reason) if reason else State(DONE)


def _look_at_training(job, plan, record):
    # With a snapshot the command itself checks once more that it is one of such a run.
    unfinished = State(
        RESUME if os.path.exists(os.path.join(job.folder, SNAPSHOT)) else NEW)
    try:
        made_with = read_run(os.path.join(job.folder, MODEL))
    except UserError:  # damaged: then the command itself says so
        return unfinished
    if not made_with:
        return unfinished
    wanted = _plain(job.settings)
    free = FREE[job.trains]
    reason = (difference(made_with, wanted, ignoring=free)
              or _changed_input(job, plan, record))
    if reason:
        return State(CHANGED, reason)
    # More epochs than the run has had are added to it; fewer would be another run.
    name = EPOCHS[job.trains]
    made_with = {name: checked(name, made_with.get(name, 1), os.path.join(job.folder, MODEL))}
    result = read_json(os.path.join(job.folder, RESULT)) or {}
    if result.get(name, 0) > job.epochs or made_with.get(name, 0) > job.epochs:
        longer = max(result.get(name, 0), made_with.get(name, 0))
        return State(CHANGED, f'{name} was {longer} and is {job.epochs}')
    if result.get(name) == job.epochs and _has_outputs(job):
        return State(DONE)
    return unfinished


def job_in_trial(job, plan, jobs_folder):
    """The job as if it were the shorter run that it can begin with, or None."""
    if os.path.exists(job.folder) or not job.trials:
        return None
    for name in sorted(name for pattern in ('*', 'grid_search/*')
                       for name in glob.glob(pattern, root_dir=job.trials)):
        there = dataclasses.replace(job, name=name.replace(os.sep, '_'),
                                    folder=os.path.join(job.trials, name))
        record = read_json(record_path(jobs_folder, there), 'job') or {}
        # Only the inputs tell a baseline from a classifier that starts from a language model.
        if (set(record.get('inputs', ())) == set(job.needs) and _has_outputs(there)
                and look(there, plan, jobs_folder).kind in (RESUME, DONE)):
            return there
    return None


def _has_outputs(job):
    return all(os.path.exists(os.path.join(job.folder, name)) for name in job.outputs)


def _plain(settings):
    """The settings after a JSON round trip."""
    return json.loads(json.dumps(settings))


def difference(old, new, ignoring=()):
    names = [name for name in sorted(set(old) | set(new))
             if name not in ignoring and old.get(name) != new.get(name)]
    shown = [f'{name} was {old.get(name)!r} and is {new.get(name)!r}' for name in names[:3]]
    return ', '.join(shown) + (' …' if len(names) > 3 else '')


def _changed_input(job, plan, record):
    by_name = {other.name: other for other in plan}
    old = record.get('inputs', {})
    # A missing input that is cheap will be made again, and probably the same; a training will be
    # another run.
    changed = [name for name, value in input_fingerprints(job, plan).items()
               if name in old and value != old[name]
               and (value is not None or by_name[name].trains)]
    return f'{", ".join(changed)} changed since' if changed else ''
