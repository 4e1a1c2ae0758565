"""Turns measurements into a page of tables."""
from experiments.benchmarks.timing import summary

PEAKS = {  # what the peak memory is of
    'neighbors': 'Neighbours | 66,825 × 256, K=15',
    'step': 'Training step | adv, H=1024, 32 reviews of real lengths',
}


def markdown(measurement):
    """The tables as text: every ratio, then every median."""
    machine = measurement['machine']
    lines = ['# Speed', '', f"{machine['processor']}, "
             f"{machine['kernels']}; {machine['versions']}. "
             f"{measurement['date']}.",
             'Load average before and after each part (above the number of threads, other jobs '
             'used the machine): ' + ', '.join(
                 f'{part} {before:.1f}–{after:.1f}'
                 for part, (before, after) in measurement['loads'].items()) + '.', '',
             'All results were compared before they were timed. A ratio is the median over runs '
             'taken in turn.', '', '## Ratios', '',
             '| part | case | ratio | measured |', '|---|---|---|---:|']
    for result in measurement['results']:
        for name, value in result['ratios'].items():
            lines.append(f"| {result['part']} | {result['case']} | {name} | {value:.2f} |")
    for name, what in PEAKS.items():
        lines.append(f'| {what} | peak memory, MB | {measurement["peaks"][name]:.0f} |')
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
    return '\n'.join(lines) + '\n'


def seconds(value):
    return f'{value:.2f} s' if value >= 1 else f'{1000 * value:.1f} ms'
