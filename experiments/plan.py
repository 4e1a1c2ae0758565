"""What an experiment runs: jobs named by what they are, with the jobs that each needs.

    experiments/data/<dataset>/          the corpus
    experiments/runs/<preset>/
        lm_seed1/, adv_seed1/, …         folders of training runs
        perplexity_seed1/, analysis_seed1/, figures/, table2/
        jobs/<job>.{json,txt}            command, inputs and times; what the command printed
        tables/                          the paper's tables
"""
import dataclasses
import os

from experiments.presets import METHODS
from interpretable_adv import data_flags, text_files, train
from interpretable_adv.cli import UserError
from lm import pretrain

DATASET_FILES = (*(name for pairs in text_files.UPSTREAM_FILES.values() for name, _ in pairs),
                 text_files.UPSTREAM_UNLABELED)
ATTACKS = ('adv', 'iadv', 'spgd')  # the methods of Table 1 and of the heatmaps


@dataclasses.dataclass(frozen=True)
class Job:
    """One command.

    Attributes:
        name: also of its record in `jobs/`.
        folder: where its outputs are.
        command: module and arguments, for `python -m`.
        needs: names of the jobs whose outputs it reads.
        outputs: files in `folder`, all there when it is finished; the first one tells two runs of
            the job apart.
        settings: what the outputs depend on, beside `needs`.
        trains: its kind of training, 'lm' or 'classifier': such a run keeps its own args.json, can
            be resumed, and is never overwritten. None: cheap to run again.
        epochs: of a training.
        weight: expected time, in an arbitrary unit.
        stdout: file in `folder` that receives what the command prints.
    """
    name: str
    folder: str
    command: tuple
    needs: tuple = ()
    outputs: tuple = ()
    settings: dict = dataclasses.field(default_factory=dict)
    trains: str | None = None
    epochs: int = 0
    weight: float = 1.0
    stdout: str | None = None


@dataclasses.dataclass(frozen=True)
class Places:
    """Where things are.

    Attributes:
        runs: folder of the preset's runs.
        data: folder of the corpus.
        archive: of IMDB; '' downloads it.
        device: flags that choose the device, for every command that computes.
    """
    runs: str
    data: str
    archive: str = ''
    device: tuple = ()

    def run(self, name):
        return os.path.join(self.runs, name)

    def model(self, name):
        return os.path.join(self.runs, name, 'best.model')


def run_name(method, seed):
    return f'{method}_seed{seed}'


# Jobs ---------------------------------------------------------------------------------------

def data_job(preset, places):
    dataset = preset.plan('dataset')
    source = []
    if dataset == 'imdb':
        source = ['--archive', places.archive] if places.archive else ['--download']
    return Job('data', places.data, ('interpretable_adv.data', 'prepare', '--dataset', dataset,
                                     '--data_dir', places.data, *source),
               outputs=DATASET_FILES, weight=1)


def table2_job(preset, places):
    """Statistics of the corpus with the paper's vocabulary, whatever the preset's is: rare words
    are dropped, so lengths depend on it."""
    settings = train.parse(['--preset', 'paper'])
    flags = [part for name in data_flags.NAMES
             for part in ('--' + name, str(getattr(settings, name)))]
    return Job('table2', places.run('table2'), (
        'interpretable_adv.data', 'stats', '--data_dir', places.data, '--json', *flags),
        needs=('data',), outputs=('table2.json',), settings={'flags': flags},
        stdout='table2.json')


def lm_job(preset, places, seed):
    name = run_name('lm', seed)
    arguments = preset.flags('lm', **{'random-seed': seed, 'data_dir': places.data,
                                      'out': places.run(name)})
    settings = pretrain.parse(arguments)
    return Job(name, places.run(name), ('lm.pretrain', *arguments, *places.device),
               needs=('data',), outputs=('result.json', 'best.model'), settings=vars(settings),
               trains='lm', epochs=settings.epoch, weight=15 * settings.epoch)


def classifier_arguments(preset, method, seed):
    return preset.flags('train', method, method=METHODS[method], random_seed=seed)


def classifier_settings(preset, method, seed):
    return train.parse(classifier_arguments(preset, method, seed))


def classifier_job(preset, places, method, seed, folder=None):
    """Trains one classifier; all but `baseline` start from the language model."""
    name = run_name(method, seed)
    folder = folder or places.run(name)
    lm = run_name('lm', preset.lm_seed)
    start = () if method == 'baseline' else ('--pretrained_model', places.model(lm))
    arguments = (*classifier_arguments(preset, method, seed), '--data_dir', places.data, *start,
                 '--out', folder)
    settings = train.parse(arguments)
    passes = {'baseline': 1}.get(METHODS[method], 2.7)  # as a step costs, see README
    return Job(name, folder, ('interpretable_adv.train', *arguments, *places.device),
               needs=('data', lm) if start else ('data',), outputs=('result.json', 'best.model'),
               settings=vars(settings), trains='classifier', epochs=settings.n_epoch,
               weight=2 * passes * settings.n_epoch)


def predictions_job(places, method, seed):
    """Classifies the test reviews with a trained model, for the tests of significance."""
    run = run_name(method, seed)
    return Job(f'predictions_{run}', places.run(run), (
        'interpretable_adv.evaluate', '--model', places.model(run), '--data_dir', places.data,
        '--split', 'test', '--predictions', os.path.join(places.run(run), 'predictions.csv'),
        *places.device), needs=(run,), outputs=('predictions.csv',), weight=1)


# Plans --------------------------------------------------------------------------------------

def table3(preset, places, seeds):
    jobs = [data_job(preset, places), table2_job(preset, places)]
    if set(preset.methods) - {'baseline'}:
        jobs.append(lm_job(preset, places, preset.lm_seed))
    for seed in seeds:
        for method in preset.methods:
            jobs += [classifier_job(preset, places, method, seed),
                     predictions_job(places, method, seed)]
    return jobs


def table2(preset, places, seeds):
    return [data_job(preset, places), table2_job(preset, places)]


def merge(*plans):
    """Several plans as one, each job once."""
    return list({job.name: job for plan in plans for job in plan}.values())


def check(plan):
    """Refuses a plan in which a job needs one that is not there before it."""
    seen = set()
    for job in plan:
        for name in job.needs:
            if name not in seen:
                raise UserError(f'the plan lacks {name}, which {job.name} needs')
        seen.add(job.name)
