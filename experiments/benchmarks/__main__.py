"""Runs the benchmarks and writes table and numbers."""
import datetime
import json
import os
import pathlib
import platform

import chainer
import numpy as np

from experiments.benchmarks import (
    language_model_benchmark,
    lstm_benchmark,
    neighbors_benchmark,
    optimizer_benchmark,
    products_benchmark,
    report,
    step_benchmark,
    timing,
)
from interpretable_adv import cli
from interpretable_adv.nn import kernels
from interpretable_adv.runs import files, memory

PARTS = ('products', 'lstm', 'adam', 'neighbors', 'steps', 'lm', 'memory')


def parse(argv):
    parser = cli.ArgumentParser(
        prog='python -m experiments.benchmarks', description=__doc__)
    parser.add_argument('--out', default='experiments/benchmarks',
                        help='folder for results.md and results.json')
    parser.add_argument('--torch_python', default=None,
                        help='interpreter with PyTorch and faiss; without, they are left out')
    parser.add_argument('--repetitions', type=int, default=9, help='runs of each contestant')
    parser.add_argument('--parts', default=','.join(PARTS),
                        help='which to measure; the others stay as results.json has them')
    return parser.parse_args(argv)


def main(argv=None):
    settings = parse(argv)
    parts = settings.parts.split(',')
    unknown = set(parts) - set(PARTS)
    if unknown:
        raise cli.UserError(f'--parts {",".join(sorted(unknown))}: there are {", ".join(PARTS)}')
    files.make_directory(settings.out)
    path = os.path.join(settings.out, 'results.json')
    measurement = read(path)
    torch_side = settings.torch_python and timing.TorchSide(
        settings.torch_python, kernels.threads)
    memory.keep_freed_memory()  # as our training commands do
    n = settings.repetitions
    measure = {
        'products': lambda: products_benchmark.measure(n),
        'lstm': lambda: lstm_benchmark.measure(torch_side, n),
        'adam': lambda: optimizer_benchmark.measure(3 * n),
        'neighbors': lambda: neighbors_benchmark.measure(torch_side, max(3, n // 2)),
        'steps': lambda: step_benchmark.measure(max(3, n // 2)),
        'lm': lambda: language_model_benchmark.measure(torch_side, n),
        'memory': lambda: {'neighbors': neighbors_benchmark.peak_memory(),
                           'step': step_benchmark.peak_memory()},
    }
    for part in PARTS:
        if part in parts:
            print(f'{part} ...', flush=True)
            before = os.getloadavg()[0]
            measurement['parts'][part] = measure[part]()
            measurement['loads'][part] = [before, os.getloadavg()[0]]
            measurement.update(date=f'{datetime.datetime.now():%Y-%m-%d}',
                               machine=machine(torch_side))
            with files.atomic_write(path, 'w') as file:
                json.dump(measurement, file, indent=1)
    if torch_side:
        torch_side.close()
    write_report(measurement, settings.out)


def read(path):
    if os.path.exists(path):
        return json.loads(pathlib.Path(path).read_text(encoding='utf-8'))
    return {'parts': {}, 'loads': {}}


def machine(torch_side):
    others = torch_side('versions') if torch_side else {}
    versions = {'Chainer': chainer.__version__, 'NumPy': np.__version__,
                'Python': platform.python_version(), **others}
    return {'processor': processor(), 'threads': kernels.threads,
            'kernels': kernels.describe(),
            'versions': ', '.join(f'{name} {version}' for name, version in versions.items())}


def processor():
    try:
        lines = pathlib.Path('/proc/cpuinfo').read_text().splitlines()
        return next(line.split(':')[1].strip() for line in lines if 'model name' in line)
    except (OSError, StopIteration):
        return platform.processor() or platform.machine()


def write_report(measurement, out):
    parts = measurement['parts']
    missing = [part for part in PARTS if part not in parts]
    if missing:
        print(f'no table yet: {", ".join(missing)} have not been measured')
        return
    results = [result for part in ('products', 'lstm', 'adam', 'neighbors', 'steps', 'lm')
               for result in parts[part]]
    text = report.markdown({**measurement, 'results': results, 'peaks': parts['memory']})
    with files.atomic_write(os.path.join(out, 'results.md'), 'w') as file:
        file.write(text)
    print(text)


if __name__ == '__main__':
    cli.run(main)
