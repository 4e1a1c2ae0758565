"""Regenerates the paper's tables and figures: python -m experiments all --preset toy"""
import os
import pathlib
import sys

from experiments import (
    check,
    collect,
    grid_search,
    pages,
    paper_tables,
    presets,
    runner,
    status,
    tables,
)
from experiments import plan as plans
from interpretable_adv import cli
from interpretable_adv.errors import UserError

ROOT = pathlib.Path(__file__).resolve().parents[1]
EXIT_DIFFERS = 1

# What each target runs, and which tables come out.
TABLE1 = (paper_tables.table1, paper_tables.label_invariance, paper_tables.equal_strength,
          paper_tables.labels_at_equal_strength,
          paper_tables.class_lm_table)
TABLE2 = (paper_tables.table2,)
TABLE3 = paper_tables.table3, paper_tables.significance_table
TABLE4 = paper_tables.table4, paper_tables.table4_differences
SPARSITY = (paper_tables.sparsity_table,)
TARGETS = {
    'table1': ((plans.table1,), TABLE1),
    'table2': ((plans.table2,), TABLE2),
    'table3': ((plans.table3,), TABLE3),
    'table4': ((plans.table4,), TABLE4),
    'sparsity': ((plans.sparsity,), SPARSITY),
    'figures': ((plans.figures,), ()),
    'all': ((plans.table2, plans.table3, plans.table1, plans.figures, plans.table4,
             plans.sparsity), TABLE1 + TABLE2 + TABLE3 + TABLE4 + SPARSITY),
}


def make_parser():
    parser = cli.ArgumentParser(
        prog='python -m experiments', description=__doc__,
        usage='%(prog)s TARGET [flags] [section.flag=value …]')
    add = parser.add_argument
    add('target', choices=(*TARGETS, 'grid_search', 'collect', 'check'),
        help='what to regenerate; collect: copy results to experiments/results/PRESET; check: '
             'compare the runs with those results, bit for bit')
    add('overrides', nargs='*', metavar='section.flag=value',
        help="changes of the preset, e.g. train.n_epoch=3 adv.xi_var=2; give RUNS another folder "
             'to keep the runs apart')
    add('--preset', default=os.environ.get('PRESET') or 'toy',
        help=f'{", ".join(presets.names())}, or the path of a file (environment: PRESET)')
    add('--seeds', default=os.environ.get('SEEDS'),
        help="e.g. '1 2 3' (SEEDS; default: the preset's)")
    add('--jobs', type=cli.at_least(1), default=os.environ.get('JOBS') or '2',
        help='commands to run side by side (JOBS)')
    add('--runs', default=os.environ.get('RUNS'),
        help='folder of the runs (RUNS; default: experiments/runs/PRESET)')
    add('--data_dir', default=os.environ.get('DATA_DIR'),
        help='folder of the corpus (DATA_DIR; default: experiments/data/DATASET)')
    add('--archive', default=os.environ.get('ARCHIVE'),
        help="IMDB's archive (ARCHIVE; default: download it)")
    add('--only', metavar='JOBS',
        help="run these jobs of the target and what they need, e.g. 'spgd_seed1 perplexity_seed1'; "
             'prints no tables')
    add('--gpu', type=int, default=os.environ.get('GPU') or '-1', help='number of the GPU (GPU)')
    add('--dry_run', '--dry-run', action='store_true', help='print every command and run none')
    return parser


def main(argv=None):
    settings = make_parser().parse_intermixed_args(argv)
    preset = presets.load(settings.preset, settings.overrides)
    seeds = presets.parse_seeds(settings.seeds) if settings.seeds else None
    places = find_places(settings, preset)
    published = os.path.join('experiments', 'results', preset.results)
    if settings.only and settings.target not in TARGETS:
        raise UserError(f'--only goes with {", ".join(TARGETS)}, not with {settings.target}')
    if settings.target == 'collect':
        plan = make_plan('all', preset, places, seeds or preset.seeds)
        collect_results(plan, places, published)
    elif settings.target == 'check':
        lines, identical = check.report(places.runs, published)
        print('\n'.join(lines))
        sys.exit(0 if identical else EXIT_DIFFERS)
    elif settings.target == 'grid_search':
        search_grid(settings, preset, places, seeds or preset.seeds[:1])
    else:
        regenerate(settings, preset, places, seeds or preset.seeds)


def regenerate(settings, preset, places, seeds):
    """Runs what a target needs, then prints its tables and the paths of its figures."""
    builders, table_makers = TARGETS[settings.target]
    plan = make_plan(settings.target, preset, places, seeds)
    if not plan:
        raise UserError(f'preset {preset.name} lists no σ to compare: give some, e.g. '
                        'sparsity.values="0 0.5 0.75"')
    if settings.only:
        plan = plans.only(plan, settings.only.split())
    if settings.dry_run:
        runner.dry_run(plan, places.run('jobs'))
        return
    runner.Runner(plan, places.run('jobs'), settings.jobs).run()
    if settings.only:
        return
    for make in table_makers:
        show(make(places.runs), places.run('tables'))
    if plans.figures in builders:
        print('\nFigures:', *figure_paths(places.run('figures')), sep='\n  ')
    if settings.target == 'all':
        lines, _ = check.report(places.runs, os.path.join('experiments', 'results', preset.results))
        print('', *lines, sep='\n')


def make_plan(target, preset, places, seeds):
    builders, _ = TARGETS[target]
    return plans.merge(*(build(preset, places, seeds) for build in builders))


def show(table, folder):
    """Writes a table in all forms and prints it."""
    if table is not None:
        path = tables.write(table, folder)
        print(f'\n{tables.terminal(table)}({path}.{{{",".join(tables.FORMS)}}})')


def search_grid(settings, preset, places, seeds):
    before = [plans.data_job(preset, places), plans.lm_job(preset, places, preset.lm_seed),
              *plans.guides_of(preset, places)]

    def with_needs(jobs):
        return plans.only(plans.merge(before, jobs), [job.name for job in jobs])

    def run(jobs):
        runner.Runner(with_needs(jobs), places.run('jobs'), settings.jobs).run()

    search = grid_search.Search(preset, places, seeds, run)
    if settings.dry_run:
        runner.dry_run(with_needs(search.first_jobs()), places.run('jobs'))
        return
    search.search()
    pictures = grid_search.write_results(search, places.run('grid_search'))
    show(grid_search.table(places.runs), places.run('tables'))
    print('', *pictures, '', 'For the preset:', grid_search.as_preset(search.chosen), sep='\n')


def collect_results(plan, places, target):
    taken = collect.collect(places.runs, places.data, target)
    status.write(plan, places.run('jobs'), target)
    for table in pages.tables_of(target):
        tables.write(table, os.path.join(target, 'tables'))
    print(f'{target}: {len(taken)} runs and measurements')


def figure_paths(folder):
    """What to look at: single pictures and the report, then the heatmaps in one line."""
    names = sorted(name for name in os.listdir(folder) if name.endswith(('.png', '.html')))
    heatmaps = [name for name in names if name.startswith('review_')]
    shown = [os.path.join(folder, name) for name in names if name not in heatmaps]
    if heatmaps:
        shown.append(f'{os.path.join(folder, heatmaps[0])} … {heatmaps[-1]} '
                     f'({len(heatmaps)} heatmaps, as PDF too)')
    return shown


def find_places(settings, preset):
    """Where runs, corpus and archive are. Afterwards the working directory is the project's."""
    given = {name: _below_root(getattr(settings, name)) for name in ('runs', 'data_dir', 'archive')}
    if given['archive'] and not os.path.isfile(settings.archive):
        raise UserError(f'no archive {settings.archive}: give the path of aclImdb_v1.tar.gz')
    os.chdir(ROOT)
    return plans.Places(
        runs=given['runs'] or os.path.join('experiments', 'runs', preset.name),
        data=given['data_dir'] or os.path.join('experiments', 'data', preset.plan('dataset')),
        archive=given['archive'], device=('--gpu', str(settings.gpu)) if settings.gpu >= 0 else ())


def _below_root(path):
    """The path as seen from the project's folder; absolute where it lies elsewhere."""
    if not path:
        return ''
    path = os.path.abspath(path)
    return os.path.relpath(path, ROOT) if path.startswith(f'{ROOT}{os.sep}') else path


if __name__ == '__main__':
    cli.run(main)
