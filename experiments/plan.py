"""What an experiment runs: jobs named by what they are, with the jobs that each needs.

    experiments/data/<dataset>/          the corpus
    experiments/runs/<preset>/
        lm_seed1/, adv_seed1/, …         folders of training runs
        class_lm_seed1/                  the class-conditional language model
        perplexity_seed1/, …             Table 1's numbers
        robustness_adv_seed1/, …         Table 4's numbers
        spgd_sparsity0.5_seed1/, …       SPGD with other σ
        analysis_seed1/, figures/        perturbation records; pictures and the report
        table2/                          Table 2's numbers
        jobs/<job>.{json,txt}            command, inputs and times; what the command printed
        tables/                          the paper's tables
"""
import dataclasses
import difflib
import os

from experiments import presets, results
from interpretable_adv import methods, paper, settings, train
from interpretable_adv.data import text_files
from interpretable_adv.errors import UserError
from interpretable_adv.methods import METHODS
from interpretable_adv.runs.folder import MODEL, RESULT
from lm import pretrain

DATASET_FILES = (*(name for pairs in text_files.UPSTREAM_FILES.values() for name, _ in pairs),
                 text_files.UPSTREAM_UNLABELED)


@dataclasses.dataclass(frozen=True)
class Job:
    """One command.

    Attributes:
        name: also of its record in `jobs/`.
        folder: where its outputs are.
        command: arguments of `python`.
        needs: names of the jobs whose outputs it reads.
        outputs: files in `folder`, all there when it is finished; the first one tells two runs of
            the job apart.
        settings: what the outputs depend on, besides `needs`.
        trains: its kind of training, 'lm' or 'classifier': such a run keeps its own args.json, can
            be resumed, and is never overwritten. None: cheap to run again.
        epochs: of a training.
        trials: folder of runs; one there or in its grid search with this training's settings but
            fewer epochs is its beginning.
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
    trials: str = ''
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
        return os.path.join(self.runs, name, MODEL)


def run_name(method, seed):
    return f'{method}_seed{seed}'


# Jobs ---------------------------------------------------------------------------------------

def data_job(preset, places):
    dataset = preset.plan('dataset')
    source = []
    if dataset == 'imdb':
        source = ['--archive', places.archive] if places.archive else ['--download']
    return Job('data', places.data, (
        '-m', 'interpretable_adv.data', 'prepare', '--dataset', dataset, '--data_dir', places.data,
        *source), outputs=DATASET_FILES)


def table2_job(preset, places):
    """Statistics of the corpus with the paper's vocabulary, whatever the preset's is: rare words
    are dropped, so lengths depend on it."""
    parsed = train.parse(['--preset', 'paper'])
    flags = [part for name in settings.DATA
             for part in ('--' + name, str(getattr(parsed, name)))]
    return Job('table2', places.run('table2'), (
        '-m', 'interpretable_adv.data', 'stats', '--data_dir', places.data, '--json', *flags),
        needs=('data',), outputs=('table2.json',), settings={'flags': flags},
        stdout='table2.json')


def lm_job(preset, places, seed):
    name = run_name('lm', seed)
    arguments = presets.arguments({**preset['lm'], 'random-seed': seed, 'data_dir': places.data,
                                   'out': places.run(name)})
    flags = pretrain.parse(arguments)
    return Job(name, places.run(name), ('-m', 'lm.pretrain', *arguments, *places.device),
               needs=('data',), outputs=(RESULT, MODEL), settings=settings.describe(flags),
               trains='lm', epochs=flags.epoch, weight=15 * flags.epoch)


def class_lm_job(preset, places):
    """The class-conditional language model, which starts from the plain one."""
    lm = lm_job(preset, places, preset.lm_seed)
    name = run_name('class_lm', preset.lm_seed)
    # It must read what the plain model reads, whether that is trained already or not.
    data_flags = {flag: lm.settings[flag] for flag in settings.DATA}
    arguments = presets.arguments({
        **preset.merged('lm', 'class_lm'), **data_flags, 'random-seed': preset.lm_seed,
        'class_conditional': 1, 'init': places.model(lm.name), 'data_dir': places.data,
        'out': places.run(name)})
    flags = pretrain.parse(arguments)
    return Job(name, places.run(name), ('-m', 'lm.pretrain', *arguments, *places.device),
               needs=('data', lm.name), outputs=(RESULT, MODEL), settings=settings.describe(flags),
               trains='lm', epochs=flags.epoch, weight=5 * flags.epoch)


def classifier_arguments(preset, method, seed):
    row = METHODS[method]
    # With a guide, a method is trained as without one.
    sections = ('train', *[row.trained_by] * row.needs_guide, method)
    flags = {**preset.merged(*sections), 'method': row.trained_by, 'random_seed': seed}
    # [train] is for all methods: each takes what concerns it.
    for name in settings.unused(flags, [METHODS[row.trained_by]]):
        del flags[name]
    return presets.arguments(flags)


def classifier_settings(preset, method, seed):
    return train.parse(classifier_arguments(preset, method, seed))


def classifier_job(preset, places, method, seed, name=None, folder=None):
    """Trains one classifier; all but `baseline` start from the language model.

    A run of the tables continues a shorter one with the same settings.
    """
    name = name or run_name(method, seed)
    trials = '' if folder else places.runs
    folder = folder or places.run(name)
    lm = run_name('lm', preset.lm_seed)
    row = METHODS[method]
    start = ('--pretrained_model', places.model(lm)) if row.starts_from_lm else ()
    class_lm = run_name('class_lm', preset.lm_seed)
    guide = ('--class_lm', places.model(class_lm)) if row.needs_guide else ()
    arguments = (*classifier_arguments(preset, method, seed), '--data_dir', places.data, *start,
                 *guide, '--out', folder)
    flags = train.parse(arguments)
    # Measured: the cost of a step relative to a baseline's.
    passes = 4 if guide else 2.7 if row.attack else 1
    return Job(name, folder, ('-m', 'interpretable_adv.train', *arguments, *places.device),
               needs=('data', *[lm] * bool(start), *[class_lm] * bool(guide)),
               outputs=(RESULT, MODEL),
               settings=settings.describe(flags), trains='classifier', epochs=flags.n_epoch,
               trials=trials, weight=2 * passes * flags.n_epoch)


def predictions_job(places, method, seed):
    """Classifies the test reviews with a trained model, for the tests of significance."""
    run = run_name(method, seed)
    return Job(f'predictions_{run}', places.run(run), (
        '-m', 'interpretable_adv.evaluate', '--model', places.model(run), '--data_dir', places.data,
        '--split', 'test', '--predictions', os.path.join(places.run(run), 'predictions.csv'),
        *places.device), needs=(run,), outputs=('predictions.csv',), weight=1)


def perplexity_job(preset, places, seed, common=False, sweep=False):
    """Table 1: the classifiers of one seed under attack, as the language model reads it.

    Args:
        common: attack one classifier, `pretrained`, instead of each method's own.
        sweep: also try many step sizes, for a comparison at equal strength.
    """
    name = run_name('_'.join(['perplexity', *['common'] * common, *['sweep'] * sweep]), seed)
    lm = run_name('lm', preset.lm_seed)
    victims, models = _victims(preset, places, seed, common)
    attackers = attacks_of(preset)
    measured = ['none', *attackers, *methods.controls(attackers), *methods.swapping(attackers)]
    flags = [*presets.arguments(preset.merged('perplexity', *['sweep'] * sweep)), '--methods',
             ','.join(measured)]
    guided = [method for method in attackers if METHODS[method].needs_guide]
    class_lm = run_name('class_lm', preset.lm_seed)
    guides = ','.join(f'{method}={places.model(class_lm)}' for method in guided)
    if guided:
        flags += ['--class_lm_weight', f'{guide_weight(preset, guided[0]):g}']
    return Job(name, places.run(name), (
        '-m', 'lm.perplexity', '--lm', places.model(lm), '--model', models,
        *(('--class_lm', guides) if guided else ()), '--data_dir', places.data, *flags,
        '--json', os.path.join(places.run(name), 'perplexity.json'),
        '--csv', os.path.join(places.run(name), 'reviews.csv'), *places.device),
        needs=(lm, *victims, *[class_lm] * bool(guided)), outputs=('perplexity.json',),
        settings={'flags': flags}, weight=20 if sweep else 5)


def guide_weight(preset, method):
    """λ that a method is trained with."""
    return classifier_settings(preset, method, preset.lm_seed).class_lm_weight


def robustness_job(preset, places, method, seed):
    """Table 4: one classifier under attacks on itself, and, if it is another one, on the pretrained
    classifier."""
    run, source = run_name(method, seed), run_name('pretrained', seed)
    name = run_name(f'robustness_{method}', seed)
    flags = presets.arguments(preset['robustness'])
    transferred = 'pretrained' in preset.methods and method != 'pretrained'
    return Job(name, places.run(name), (
        '-m', 'interpretable_adv.robustness', '--model', places.model(run), *(
            ('--source', places.model(source)) if transferred else ()), '--data_dir', places.data,
        *flags, '--json', os.path.join(places.run(name), 'robustness.json'), '--csv',
        os.path.join(places.run(name), 'reviews.csv'), *places.device),
        needs=tuple(dict.fromkeys([run, *[source] * transferred])),
        outputs=('robustness.json', 'reviews.csv'),
        settings={'flags': flags, 'transferred': transferred}, weight=4)


def analysis_job(preset, places, seed):
    """Perturbation records of test reviews, for heatmaps and the report."""
    name = run_name('analysis', seed)
    lm = run_name('lm', preset.lm_seed)
    victims, models = _victims(preset, places, seed)
    flags = presets.arguments(preset['analysis'])
    return Job(name, places.run(name), (
        '-m', 'interpretable_adv.analysis', '--lm', places.model(lm), '--model', models,
        '--data_dir', places.data, '--methods', ','.join(attacks_of(preset)), *flags,
        '--out', os.path.join(places.run(name), 'records.jsonl'), *places.device),
        needs=(lm, *victims), outputs=('records.jsonl',), settings={'flags': flags}, weight=3)


def heatmaps_job(preset, places, seed):
    analysis = run_name('analysis', seed)
    folder = places.run('figures')
    flags = presets.arguments(preset['visualize'])
    return Job('heatmaps', folder, (
        '-m', 'interpretable_adv.visualize', '--records',
        os.path.join(places.run(analysis), 'records.jsonl'), '--out', folder, *flags),
        needs=(analysis,), outputs=('report.html',), settings={'flags': flags}, weight=4)


def figure1_job(places):
    return Job('figure1', places.run('figures'), (
        '-m', 'figures.figure1', '--out', places.run('figures')),
        outputs=('figure1.png', 'figure1.pdf'), weight=1)


def curves_job(preset, places, seeds):
    names = [run_name(method, seed) for method in preset.methods for seed in seeds]
    return Job('training_curves', places.run('figures'), (
        '-m', 'figures.training_curves', *map(places.run, names), '--out', places.run('figures')),
        needs=tuple(names), outputs=('training_curves.png', 'training_curves.pdf'),
        settings={'runs': names}, weight=1)


def gap_accuracy_job(places, seeds):
    return _perplexity_figure(places, 'gap_accuracy', 'perplexity', seeds)


def label_invariance_job(places, seeds):
    """The picture of the sweeps on one classifier, as a judge and WordNet see them."""
    return _perplexity_figure(places, 'label_invariance', 'perplexity_common_sweep', seeds)


def _perplexity_figure(places, figure, measurement, seeds):
    names = [run_name(measurement, seed) for seed in seeds]
    return Job(figure, places.run('figures'), (
        '-m', f'figures.{figure}', '--perplexity',
        *(os.path.join(places.run(name), 'perplexity.json') for name in names),
        '--out', places.run('figures')),
        needs=tuple(names), outputs=(f'{figure}.png', f'{figure}.pdf'),
        settings={'perplexities': names})


def attacks_of(preset):
    """The preset's methods that attack, in the order of the tables."""
    return [method for method in methods.attackers() if method in preset.methods]


def _victims(preset, places, seed, common=False):
    """The classifiers that are attacked, as job names and as a value of `--model`."""
    if common:
        name = run_name('pretrained', seed)
        return (name,), places.model(name)
    names = {method: run_name(method, seed) for method in attacks_of(preset)}
    if not names:
        raise UserError(f'preset {preset.name} trains none of {", ".join(paper.GAP)}, so there is '
                        'nothing to attack: add one to methods')
    return tuple(names.values()), ','.join(
        f'{method}={places.model(name)}' for method, name in names.items())


# Plans --------------------------------------------------------------------------------------

def table1(preset, places, seeds):
    """Every seed with the methods' own classifiers at Table 1's step sizes; then at many, also with
    one classifier for all methods."""
    jobs = [data_job(preset, places), table2_job(preset, places),
            lm_job(preset, places, preset.lm_seed)]
    jobs += guides_of(preset, places)
    for seed in seeds:
        jobs += [classifier_job(preset, places, method, seed) for method in attacks_of(preset)]
        jobs.append(perplexity_job(preset, places, seed))
    for seed in seeds if preset['sweep'] else ():
        jobs.append(perplexity_job(preset, places, seed, sweep=True))
        if 'pretrained' in preset.methods:
            jobs += [classifier_job(preset, places, 'pretrained', seed),
                     perplexity_job(preset, places, seed, common=True, sweep=True)]
    if preset['sweep'] and 'pretrained' in preset.methods:
        jobs.append(label_invariance_job(places, seeds))
    return jobs


def guides_of(preset, places):
    """The class-conditional language model, if a method needs it."""
    needed = any(METHODS[method].needs_guide for method in preset.methods)
    return [class_lm_job(preset, places)] if needed else []


def table2(preset, places, seeds):
    return [data_job(preset, places), table2_job(preset, places)]


def table3(preset, places, seeds):
    jobs = table2(preset, places, seeds)
    if set(preset.methods) - {'baseline'}:
        jobs.append(lm_job(preset, places, preset.lm_seed))
    jobs += guides_of(preset, places)
    for seed in seeds:
        for method in preset.methods:
            jobs += [classifier_job(preset, places, method, seed),
                     predictions_job(places, method, seed)]
    return jobs


def table4(preset, places, seeds):
    """Accuracy under attack of all classifiers, on the same reviews with the same settings."""
    jobs = table3(preset, places, seeds)
    return [*jobs, *(robustness_job(preset, places, method, seed)
                     for seed in seeds for method in preset.methods)]


def sparsity(preset, places, seeds):
    """SPGD with several σ, for the paper's remark that a higher one gives a better accuracy."""
    values, flags = preset.sparsities
    jobs = [data_job(preset, places), lm_job(preset, places, preset.lm_seed)] if values else []
    for seed in seeds:
        for value in values:
            method = f'{results.SPARSITY}{value:g}'
            changed = preset.changed('spgd', **flags, sparsity=f'{value:g}')
            jobs += [classifier_job(changed, places, 'spgd', seed, run_name(method, seed)),
                     predictions_job(places, method, seed)]
    return jobs


def figures(preset, places, seeds):
    """Figure 1; heatmaps and report of the first seed; for all seeds the curves of the trainings,
    and perplexity gap against accuracy."""
    jobs = [figure1_job(places), data_job(preset, places),
            lm_job(preset, places, preset.lm_seed), *guides_of(preset, places)]
    jobs += [classifier_job(preset, places, method, seed)
             for seed in seeds for method in preset.methods]
    jobs += [perplexity_job(preset, places, seed) for seed in seeds]
    return [*jobs, analysis_job(preset, places, seeds[0]),
            heatmaps_job(preset, places, seeds[0]), curves_job(preset, places, seeds),
            gap_accuracy_job(places, seeds)]


def merge(*plans):
    """Several plans as one, each job once and after those it needs."""
    jobs = {job.name: job for plan in plans for job in plan}
    return _in_order(jobs, jobs)


def only(plan, names):
    """The jobs with these names, in this order, each after those it needs."""
    jobs = {job.name: job for job in plan}
    for name in names:
        if name not in jobs:
            nearest = difflib.get_close_matches(name, jobs, cutoff=0)
            raise UserError(f'--only: no job {name!r}; the nearest are {", ".join(nearest)}')
    return _in_order(jobs, names)


def _in_order(jobs, names):
    """Those of `jobs`, a dict, that are named or needed, each once and after those it needs."""
    ordered = {}

    def add(name):
        for other in jobs[name].needs:
            add(other)
        ordered.setdefault(name, jobs[name])

    for name in names:
        add(name)
    return list(ordered.values())
