"""Turns measurements into a table and plots."""
import matplotlib

matplotlib.use('Agg')
import matplotlib.pyplot as plt  # noqa: E402  (after the choice of a backend)
import numpy as np  # noqa: E402

from experiments.benchmarks.timing import summary  # noqa: E402

# (part, case begins with, ratio) → at least, or at most where the number is negative.
GOALS = {
    ('LSTM', 'H=256, T≤240', 'stock Chainer / ours'): 12,
    ('LSTM', 'H=1024, T≤100', 'stock Chainer / ours'): 10,
    ('LSTM', 'H=256, T≤240', 'stock Chainer / ours, NumPy'): 7,
    ('LSTM', 'H=1024, T≤100', 'stock Chainer / ours, NumPy'): 4,
    ('LSTM', 'H=', 'PyTorch, fastest / ours'): 1.2,
    ('LSTM', 'H=256, real', 'products alone / ours'): 0.7,
    ('LSTM', 'H=1024, real', 'products alone / ours'): 0.7,
    ('Training step', 'adv', 'stock Chainer / ours'): 20,
    ('Training step', '50 steps', 'spgd, neighbours known / adv'): -1.15,
    ('Language model', '256', 'stock Chainer / ours'): 7,
    ('Language model', '256', 'PyTorch / ours'): 1.1,
    ('Adam', 'Adam', 'stock Chainer / ours'): 15,
    ('Neighbours', '', 'stock Chainer / ours'): 20,
    ('Neighbours', '', 'faiss flat / ours'): 4,
    ('Neighbours', '', 'ours / product alone'): -1.8,
}
CLOCKS = {'perf_counter': 'time that passed', 'process_time': 'time of the processor'}
PEAKS = {  # what, and how many megabytes it may take
    'neighbors': ('Neighbours | 66,825 × 256, K=15', 600),
    'step': ('Training step | adv, H=1024, 32 reviews of real lengths', 6000),
}


def goal_of(part, case, ratio):
    for (goal_part, begin, goal_ratio), value in GOALS.items():
        if (part, ratio) == (goal_part, goal_ratio) and case.startswith(begin):
            return value
    return None


def markdown(measurement):
    """The table as text: every ratio with its goal, then every median."""
    machine = measurement['machine']
    lines = ['# Speed', '', f"{machine['processor']}, "
             f"{machine['kernels']}; {CLOCKS[machine['clock']]}; {machine['versions']}. "
             f"{measurement['date']}.",
             'Load average before and after each part (ours alone makes up to the number of '
             'threads; above it, others used the machine, too): ' + ', '.join(
                 f'{part} {before:.1f}–{after:.1f}'
                 for part, (before, after) in measurement['loads'].items()) + '.', '',
             'All results were compared before they were timed. A ratio is the median over runs '
             'taken in turn.', '', '## Ratios', '',
             '| part | case | ratio | measured | goal | |', '|---|---|---|---|---|---|']
    for result in measurement['results']:
        for name, value in result['ratios'].items():
            goal = goal_of(result['part'], result['case'], name)
            lines.append(f"| {result['part']} | {result['case']} | {name} | {value:.2f} | "
                         + verdict(value, goal))
    for name, (what, most) in PEAKS.items():
        peak = measurement['peaks'][name]
        lines.append(f'| {what} | peak memory, MB | {peak:.0f} | ' + verdict(peak, -most))
    lines += ['', '## Times', '', '| part | case | contestant | median | least | runs |',
              '|---|---|---|---|---|---|']
    for result in measurement['results']:
        for name, times in result['times'].items():
            s = summary(times)
            lines.append(f"| {result['part']} | {result['case']} | {name} | {seconds(s['median'])}"
                         f" | {seconds(s['min'])} | {s['count']} |")
    for result in measurement['results']:
        if 'tokens_per_second' in result:
            rates = ', '.join(f'{name} {rate:,.0f}' for name, rate
                              in result['tokens_per_second'].items())
            lines += ['', f"Language model {result['case']}, tokens per second: {rates}."]
    lines += ['', '## Growth', '', '![growth of times](growth.png)', '']
    return '\n'.join(lines)


def verdict(value, goal):
    if goal is None:
        return ' | |'
    if goal < 0:
        return f'≤ {-goal:g} | {"reached" if value <= -goal else "missed"} |'
    return f'≥ {goal:g} | {"reached" if value >= goal else "missed"} |'


def seconds(value):
    return f'{value:.2f} s' if value >= 1 else f'{1000 * value:.1f} ms'


def plot_growth(curves, path):
    """One panel per curve, double logarithmic; the dashed line grows in proportion."""
    figure, axes = plt.subplots(2, 3, figsize=(11, 6), constrained_layout=True)
    for ax, curve in zip(axes.flat, curves):
        names = list(curve['times'])
        medians = [1000 * np.median(curve['times'][name]) for name in names]
        if curve['axis'] == 'threads':
            ax.bar(names, medians, color='#4477aa')
            ax.tick_params(axis='x', labelsize=8)
        else:
            sizes = [int(name) for name in names]
            ax.loglog(sizes, medians, 'o-', color='#4477aa')
            ax.loglog(sizes, [medians[-1] * size / sizes[-1] for size in sizes], '--',
                      color='#bbbbbb', label='in proportion')
            ax.set_xticks(sizes, [f'{size // 1000}k' if size >= 5000 else str(size)
                                  for size in sizes], fontsize=8)
            ax.minorticks_off()
            ax.legend(fontsize=8, frameon=False)
        ax.set_title(curve['title'], fontsize=10)
        ax.set_xlabel(curve['axis'])
        ax.set_ylabel('milliseconds')
        ax.spines[['top', 'right']].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)


def plot_ratios(results, path):
    """How many times faster than stock Chainer, PyTorch and faiss."""
    rows = [(f"{result['part']}: {result['case']}", name.split(' /')[0], value)
            for result in results for name, value in result['ratios'].items()
            if name.endswith('/ ours') and not name.startswith(('ours', 'product'))]
    figure, ax = plt.subplots(figsize=(9, 0.32 * len(rows) + 1), constrained_layout=True)
    colors = {'stock Chainer': '#4477aa', 'faiss flat': '#ccbb44'}
    for place, (_, rival, value) in enumerate(rows):
        ax.barh(place, value, color=colors.get(rival, '#ee6677'))
        ax.text(value * 1.05, place, f'{value:.1f}×', va='center', fontsize=8)
    ax.set_yticks(range(len(rows)), [f'{label}  vs {rival}' for label, rival, _ in rows],
                  fontsize=8)
    ax.invert_yaxis()
    ax.set_xscale('log')
    ax.axvline(1, color='black', linewidth=0.8)
    ax.set_xlabel('times faster')
    ax.spines[['top', 'right']].set_visible(False)
    figure.savefig(path, dpi=130)
    plt.close(figure)
