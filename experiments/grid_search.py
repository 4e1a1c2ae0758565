"""The paper's elided grid search: one parameter at a time, by accuracy on dev.

The paper assumes that the error is convex in each parameter by itself. So a search starts at
the value in use, looks at its two neighbours in the list, and walks on in the better direction as
long as dev accuracy rises. The best value stays for the parameters that follow. A list that begins
with `all` is tried as a whole.
"""
import os

from experiments import plan as plans
from experiments import presets, results, state
from experiments.tables import Number, Spread, Table
from interpretable_adv.errors import UserError
from interpretable_adv.runs.files import atomic_write, write_json
from interpretable_adv.runs.folder import RESULT

ALL = 'all '


def climb(values, start, evaluate):
    """Finds the best of `values` as far as climbing from `start` does.

    Args:
        values: in ascending order; `start` is one of them.
        evaluate: function of a list of values, which returns their scores; more is better.

    Returns:
        best value, and `{value: score}` of all that were tried. Of equals the one closer to the
        start is kept.
    """
    position = values.index(start)
    first = values[max(0, position - 1):position + 2]
    scores = dict(zip(first, evaluate(first)))
    best = max(first, key=lambda value: (scores[value], value == start))
    step = values.index(best) - position
    while step and 0 <= values.index(best) + step < len(values):
        following = values[values.index(best) + step]
        scores[following], = evaluate([following])
        if scores[following] <= scores[best]:
            break
        best = following
    return best, scores


def parameters(preset):
    """What [grid_search] lists: `(method, flag, ascending values)`, in the file's order; its
    entries without a method are flags of all trainings in the search."""
    found = []
    for name, text in preset['grid_search'].items():
        method, dot, flag = name.partition('.')
        if not dot:
            continue
        presets.check_method(method, f'[grid_search] {name}')
        try:
            values = sorted({float(value) for value in text.removeprefix(ALL).split()})
        except ValueError:
            raise UserError(f'[grid_search] {name} = {text}: give numbers, e.g. 1 2 5') from None
        if method in preset.methods and values:
            found.append((method, flag, values))
    if not found:
        raise UserError(f'preset {preset.name} has nothing to search: write for example '
                        'spgd.xi_var = 10 25 into its section [grid_search]')
    return found


def for_search(preset):
    """The preset with the changes that [grid_search] makes to all trainings, e.g. n_epoch."""
    shared = {name: value for name, value in preset['grid_search'].items() if '.' not in name}
    for method in preset.methods:
        preset = preset.changed(method, **shared)
    return preset


class Search:
    """A search in progress.

    Args:
        preset, places, seeds: as for the plans.
        run: function that runs a list of jobs.
    """

    def __init__(self, preset, places, seeds, run):
        self.preset, self.places, self.seeds, self.run = for_search(preset), places, seeds, run
        self.searched = parameters(preset)
        self.points, self.chosen = [], {}

    def jobs(self, method, values):
        """The trainings of one point: `values` are those of the method's searched parameters."""
        preset = self.preset.changed(
            method, **{flag: f'{value:g}' for flag, value in values.items()})
        described = '_'.join([method, *(f'{flag}-{value:g}' for flag, value in values.items())])
        folder = self.places.run('grid_search')
        return [plans.classifier_job(
            preset, self.places, method, seed, name=f'grid_search_{name}',
            folder=os.path.join(folder, name))
            for seed in self.seeds for name in [plans.run_name(described, seed)]]

    def first_jobs(self):
        """What can be said before anything is known: the trainings around each start."""
        return [job for method, flag, values in self.searched
                for value in values for job in self.jobs(method, {**self._start(method),
                                                                  flag: value})]

    def search(self):
        """Runs the search. Afterwards `points` and `chosen` say what came out."""
        current = {}
        for method, flag, values in self.searched:
            settings = current.setdefault(method, self._start(method))
            values = sorted({*values, settings[flag]})
            def evaluate(tried, method=method, flag=flag):
                return self._train(method, flag, tried, current[method])

            if self.preset['grid_search'][f'{method}.{flag}'].startswith(ALL):
                scores = dict(zip(values, evaluate(values)))
                best = max(values, key=scores.get)
            else:
                best, _ = climb(values, settings[flag], evaluate)
            settings[flag] = best
            self.chosen.setdefault(method, {})[flag] = best
        return self.chosen

    def _start(self, method):
        """The searched parameters of a method, as the preset has them."""
        settings = vars(plans.classifier_settings(self.preset, method, self.seeds[0]))
        flags = [flag for searched, flag, _ in self.searched if searched == method]
        for flag in flags:
            if not isinstance(settings.get(flag), int | float):
                raise UserError(f'[grid_search] {method}.{flag}: no such number among the flags '
                                'of interpretable_adv.train')
        return {flag: float(settings[flag]) for flag in flags}

    def _train(self, method, flag, tried, settings):
        """Trains with each of the values; returns their mean dev accuracies."""
        jobs = {value: self.jobs(method, {**settings, flag: value}) for value in tried}
        self.run([job for group in jobs.values() for job in group])
        means = []
        for value, group in jobs.items():
            dev = [dev_accuracy(job.folder) for job in group]
            self.points.append({'method': method, 'parameter': flag, 'value': value,
                                'settings': {**settings, flag: value}, 'dev_accuracy': dev})
            means.append(sum(dev) / len(dev))
        return means


def dev_accuracy(folder):
    """The only number of a run that a choice may depend on."""
    result = state.read_json(os.path.join(folder, RESULT)) or {}
    results.require(folder, result, 'dev_accuracy')
    return result['dev_accuracy']


# Results ------------------------------------------------------------------------------------

def table(folder):
    """What a search in a folder of runs has tried and kept. None where none has ended."""
    search = state.read_json(os.path.join(folder, 'grid_search', 'grid_search.json'))
    if search is None:
        return None
    groups = {}
    for point in search['points']:
        groups.setdefault((point['method'], point['parameter']), []).append(point)
    rows, ends = [], []
    for (method, flag), points in groups.items():
        points.sort(key=lambda point: point['value'])
        chosen = search['chosen'][method][flag]
        # The search goes one step beyond the best where there is one.
        if chosen in (points[0]['value'], points[-1]['value']):
            ends.append(f'{method} {flag} {chosen:g}')
        rows += [None] if rows else []
        for point in points:
            others = ', '.join(f'{other} {value:g}' for other, value in point['settings'].items()
                               if other != flag)
            rows.append([f'{method} {flag}', f'{point["value"]:g}',
                         Spread.of(point['dev_accuracy']), Number(max(point['dev_accuracy'])),
                         others, 'kept' if point['value'] == chosen else ''])
    notes = ['One parameter at a time, from a start in the direction in which dev accuracy rises, '
             'or all values where the preset says so; test accuracy is not used for the choice.']
    if ends:
        notes.append('Kept at the end of its list, beyond which this search did not look: '
                     f'{", ".join(ends)}.')
    return Table('grid_search', 'Elided grid search: dev accuracy (%)', [
        'Parameter', 'value', 'mean ± sd (n)', 'best', 'with', ''], rows, notes)


def write_results(search, folder):
    """grid_search.json, and a picture for each parameter; returns the paths of the pictures."""
    write_json(os.path.join(folder, 'grid_search.json'),
               {'points': search.points, 'chosen': search.chosen, 'seeds': search.seeds})
    return [_draw(method, flag, [point for point in search.points
                                 if (point['method'], point['parameter']) == (method, flag)],
                  search.chosen[method][flag], os.path.join(folder, f'{method}_{flag}.png'))
            for method, flag, _ in search.searched]


def _draw(method, flag, points, chosen, path):
    from matplotlib.figure import Figure
    figure = Figure(figsize=(4.5, 3.2), layout='constrained')
    axis = figure.subplots()
    points = sorted(points, key=lambda point: point['value'])
    positions = range(len(points))  # values are seldom evenly spaced
    means = [sum(point['dev_accuracy']) / len(point['dev_accuracy']) for point in points]
    axis.plot(positions, means, color='#d55e00', marker='o')
    for position, point in zip(positions, points):
        axis.plot([position] * len(point['dev_accuracy']), point['dev_accuracy'], '.',
                  color='0.5', zorder=1)
        if point['value'] == chosen:
            axis.plot(position, means[position], 'o', markersize=13, markerfacecolor='none',
                      markeredgecolor='#1a1a1a')
    axis.set_xticks(positions, [f'{point["value"]:g}' for point in points])
    axis.margins(x=0.15, y=0.15)
    axis.set_xlabel({'xi_var': 'ε', 'nn_k': 'K', 'sparsity': 'σ'}.get(flag, flag))
    axis.set_ylabel('dev accuracy (%)')
    axis.set_title(f'{method}: {flag} (circled: kept)', fontsize=10)
    axis.grid(alpha=0.3, linewidth=0.5)
    with atomic_write(path, 'wb') as stream:
        figure.savefig(stream, format='png', dpi=150)
    return path


def as_preset(chosen):
    """The choice as lines for a preset file."""
    return '\n'.join(f'[{method}]\n' + '\n'.join(f'{flag} = {value:g}'
                                                 for flag, value in values.items())
                     for method, values in chosen.items())
