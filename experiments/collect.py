"""Copies what is worth keeping of finished runs to where it is committed.

    experiments/results/<preset>/
        <run>/args.json, result.json, log         settings, outcome, epochs
        <run>/predictions.csv.gz                  label and prediction of every test review
        perplexity_seed1/perplexity.json, …       Table 1's numbers
        robustness_adv_seed1/robustness.json, …   Table 4's numbers
            reviews.csv.gz                        whether each review is right under each attack
        table2/table2.json                        Table 2's numbers
        figures/, grid_search/                    plots; no heatmaps, as these quote reviews
        tables/                                   the tables in all forms
        commands.txt                              each command, when it finished, how long it took
        status.md                                 how far the runs are, until all have finished

Models stay where they are. Paths of the machine are replaced, so the same runs give the same files
wherever they were made. What was collected earlier, perhaps on another machine, stays.
"""
import csv
import glob
import gzip
import io
import json
import os
import re

from experiments import results, state
from interpretable_adv.errors import UserError
from interpretable_adv.runs import reading
from interpretable_adv.runs.files import atomic_write, make_directory

# Plots of numbers. Heatmaps and report show the text of reviews, which is not ours to publish.
PLOTS = ('figures/training_curves.png', 'figures/gap_accuracy.png',
         'figures/label_invariance.png', 'grid_search/*.png')
KEPT = ('args.json', 'result.json', 'log', 'perplexity.json', 'perplexity.png', 'table2.json',
        'grid_search.json', 'robustness.json')


def collect(runs, data_dir, target):
    """Fills `target` from the folder `runs`; returns the names of what it took.

    Args:
        data_dir: folder of the corpus.
    """
    finished = {os.path.relpath(folder, runs): folder for folder in _finished(runs)}
    places = {os.path.abspath(runs): 'RUNS', runs: 'RUNS',
              os.path.abspath(data_dir): 'DATA_DIR', data_dir: 'DATA_DIR',
              **_places_at_the_time(finished)}
    taken = []
    for name, folder in finished.items():
        make_directory(os.path.join(target, name))
        for file in KEPT:
            _copy(os.path.join(folder, file), os.path.join(target, name, file), places)
        predictions = os.path.join(folder, 'predictions.csv')
        if os.path.exists(predictions):
            with atomic_write(os.path.join(target, name, 'predictions.csv.gz'), 'wb') as stream:
                stream.write(compact_predictions(predictions))
        if os.path.exists(os.path.join(folder, 'robustness.json')):
            with open(os.path.join(folder, 'reviews.csv'), 'rb') as source, atomic_write(
                    os.path.join(target, name, 'reviews.csv.gz'), 'wb') as stream:
                stream.write(gzip.compress(source.read(), mtime=0))
        taken.append(name)
    for path in (path for pattern in PLOTS
                 for path in sorted(glob.glob(os.path.join(glob.escape(runs), pattern)))):
        plot = os.path.join(target, os.path.relpath(path, runs))
        make_directory(os.path.dirname(plot))
        _copy(path, plot, places)
    if not taken:
        raise UserError(f'no finished run in {runs}: run table3.sh first')
    path = os.path.join(target, 'commands.txt')
    earlier = reading.decode(reading.read_bytes(path), path) if os.path.exists(path) else ''
    with atomic_write(path) as stream:
        stream.write(_commands(os.path.join(runs, 'jobs'), places, earlier))
    return taken


def _finished(runs):
    """Folders of trainings that have a result, and of measurements. A classifier of the tables
    counts when its predictions are there too."""
    names = ('*/result.json', 'grid_search/*/result.json', '*/perplexity.json', '*/robustness.json',
             'table2/table2.json', 'grid_search/grid_search.json')
    folders = sorted({os.path.dirname(path) for pattern in names
                      for path in glob.glob(os.path.join(glob.escape(runs), pattern))})
    return [folder for folder in folders if os.path.dirname(folder) != os.path.normpath(runs)
            or 'dev_accuracy' not in (state.read_json(os.path.join(folder, 'result.json')) or {})
            or os.path.exists(os.path.join(folder, 'predictions.csv'))]


def _places_at_the_time(finished):
    """Where runs and corpus were when the runs were made, which may have been another checkout."""
    places = {}
    for name, folder in finished.items():
        flags = state.read_json(os.path.join(folder, 'args.json')) or {}
        out, data_dir = (str(flags.get(flag, '')) for flag in ('out', 'data_dir'))
        if out.endswith(os.sep + name):
            places |= {out.removesuffix(os.sep + name): 'RUNS', data_dir: 'DATA_DIR'}
    return {place: name for place, name in places.items() if place}


def _copy(source, target, places):
    if not os.path.exists(source):
        return
    if source.endswith('.png'):
        content = reading.read_bytes(source)
        with atomic_write(target, 'wb') as stream:
            stream.write(content)
        return
    content = without_places(state.read_json(source), places)
    with atomic_write(target) as stream:
        json.dump(content, stream, indent=1, ensure_ascii=False)
        stream.write('\n')


def without_places(value, places):
    """The value with paths of the machine replaced in all texts."""
    if isinstance(value, dict):
        return {key: without_places(item, places) for key, item in value.items()}
    if isinstance(value, list):
        return [without_places(item, places) for item in value]
    if isinstance(value, str):
        for place in sorted(places, key=len, reverse=True):
            value = re.sub(rf'(?<![\w/.-]){re.escape(place)}(?=/|$|[\s,])', places[place], value)
    return value


def compact_predictions(path):
    """`label,prediction` of every review, compressed; the same bytes for the same content."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator='\n')
    writer.writerow(['label', 'prediction'])
    writer.writerows(zip(*(column.tolist() for column in results.read_predictions(path))))
    return gzip.compress(text.getvalue().encode(), mtime=0)


def _commands(jobs_folder, places, earlier):
    """The commands of finished jobs in the order of time; `earlier`: those collected before."""
    blocks = {match[1]: (match[2], match[0]) for match in re.finditer(
        r'^# (\S+): finished (.+?) after .*\n(?:[^#].*\n)*', earlier, re.MULTILINE)}
    for path in glob.glob(os.path.join(glob.escape(jobs_folder), '*.json')):
        record = state.read_json(path, 'job')
        if record and {'finished', 'commands', 'seconds'} <= set(record):
            name = os.path.basename(path).removesuffix('.json')
            blocks[name] = record['finished'], _block(name, record, places)
    return ''.join(text for _, _, text in sorted((when, name, text)
                                                 for name, (when, text) in blocks.items()))


def _block(name, record, places):
    remark = ' (interrupted commands not counted)' if len(record['commands']) > 1 else ''
    lines = [f'# {name}: finished {record["finished"]} after {record["seconds"]:,.0f} s{remark}']
    for line in record['commands']:
        archive = re.sub(r'--archive \S+', '--archive ARCHIVE', line)
        lines.append(without_places(archive, places))
    return '\n'.join(lines) + '\n'
