"""Tables as values, and their four forms: terminal, Markdown, LaTeX, CSV."""
import csv
import dataclasses
import io
import os
import statistics
import textwrap

from interpretable_adv.runs.files import atomic_write, make_directory

MISSING = '–'
LATEX = {'\\': r'\textbackslash{}', '&': r'\&', '%': r'\%', '$': r'\$', '#': r'\#', '_': r'\_',
         '{': r'\{', '}': r'\}', '~': r'\textasciitilde{}', '^': r'\textasciicircum{}',
         '±': r'$\pm$', 'ε': r'$\varepsilon$', 'σ': r'$\sigma$', 'λ': r'$\lambda$',
         '−': r'$-$', '→': r'$\rightarrow$', '≥': r'$\geq$', '≤': r'$\leq$',
         '–': '--', '…': r'\dots{}'}


@dataclasses.dataclass(frozen=True)
class Number:
    """A number and how many decimals of it to show; None is a missing one."""
    value: float | None
    decimals: int = 2
    signed: bool = False

    def __str__(self):
        if self.value is None:
            return MISSING
        # Four digits before the point make those behind it noise; adding 0 turns −0 into 0.
        decimals = self.decimals if abs(self.value) < 10000 else 0
        text = f'{round(self.value, decimals) + 0:{"+" if self.signed else ""},.{decimals}f}'
        return text.replace('-', '−')

    def fields(self):
        return ['' if self.value is None else f'{self.value:.6g}']


@dataclasses.dataclass(frozen=True)
class Spread:
    """Mean and standard deviation over n runs; the deviation of the sample (n − 1)."""
    mean: float | None
    deviation: float | None
    n: int
    decimals: int = 2
    signed: bool = False

    @classmethod
    def of(cls, values, decimals=2, signed=False):
        values = [value for value in values if value is not None]
        n = len(values)
        if not n:
            return cls(None, None, 0)
        deviation = statistics.stdev(values) if n > 1 else None
        return cls(statistics.fmean(values), deviation, n, decimals, signed)

    def __str__(self):
        if self.mean is None:
            return MISSING
        deviation = '' if self.deviation is None else f' ± {Number(self.deviation, self.decimals)}'
        return f'{Number(self.mean, self.decimals, self.signed)}{deviation} ({self.n})'

    def fields(self):
        return [*Number(self.mean).fields(), *Number(self.deviation).fields(), str(self.n)]


def interval(bounds, decimals=2):
    """An interval of differences, `[−0.21, +0.11]`; a dash where there is none."""
    if bounds is None:
        return MISSING
    low, high = (Number(bound, decimals, signed=True) for bound in bounds)
    return f'[{low}, {high}]'


@dataclasses.dataclass
class Table:
    """
    Attributes:
        name: of its files, e.g. 'table3'.
        columns: headings.
        rows: lists of `str`, `Number` or `Spread`; None draws a rule.
        notes: footnotes, in order.
        titles: how many columns say what a row is about; they are text, the others numbers.
    """
    name: str
    title: str
    columns: list
    rows: list
    notes: list = dataclasses.field(default_factory=list)
    titles: int = 1


def terminal(table, width=120):
    """Text of at most `width` columns: what does not fit follows below, behind the same titles."""
    cells = [table.columns, *([str(cell) for cell in row] for row in table.rows if row)]
    widths = [max(len(row[column]) for row in cells) for column in range(len(table.columns))]

    def block(columns):
        def line(row):
            return '  '.join(
                str(row[column]).ljust(widths[column]) if column < table.titles
                else str(row[column]).rjust(widths[column]) for column in columns).rstrip()

        rule = '-' * (sum(widths[column] for column in columns) + 2 * (len(columns) - 1))
        return '\n'.join([rule, line(table.columns), rule, *(
            line(row) if row else rule for row in table.rows), rule])

    lines = [table.title, '\n\n'.join(map(block, _blocks(widths, table.titles, width)))]
    for note in table.notes:
        lines += textwrap.wrap(note, 100, initial_indent='* ', subsequent_indent='  ')
    return '\n'.join(lines) + '\n'


def _blocks(widths, titles, width):
    """Columns in groups that fit into `width`, each behind those of the titles."""
    blocks = [list(range(titles))]
    for column in range(titles, len(widths)):
        used = sum(widths[other] + 2 for other in blocks[-1])
        if used + widths[column] > width and len(blocks[-1]) > titles:
            blocks.append(list(range(titles)))
        blocks[-1].append(column)
    return blocks


def markdown(table):
    def line(cells):
        return '| ' + ' | '.join(str(cell).replace('|', r'\|') for cell in cells) + ' |'

    lines = [f'**{table.title}**', '', line(table.columns),
             '|' + '|'.join(['---'] * table.titles
                            + ['---:'] * (len(table.columns) - table.titles)) + '|',
             *(line(row) for row in table.rows if row)]
    if table.notes:
        lines += ['', *(f'- {note}' for note in table.notes)]
    return '\n'.join(lines) + '\n'


def latex(table):
    """A `table` environment; needs the package booktabs."""
    def line(cells):
        return ' & '.join(latex_text(str(cell)) for cell in cells) + r' \\'

    lines = [r'\begin{table}[ht]', r'    \caption{' + latex_text(table.title) + '}',
             r'    \centering',
             r'    \begin{tabular}{@{}' + 'l' * table.titles
             + 'r' * (len(table.columns) - table.titles) + '@{}}',
             r'        \toprule', '        ' + line(table.columns), r'        \midrule',
             *('        ' + (line(row) if row else r'\midrule') for row in table.rows),
             r'        \bottomrule', r'    \end{tabular}']
    if table.notes:
        lines += ['', r'    \begin{flushleft}\footnotesize',
                  *('    ' + latex_text(note) + r'\\' for note in table.notes),
                  r'    \end{flushleft}']
    return '\n'.join([*lines, r'\end{table}']) + '\n'


def latex_text(text):
    return ''.join(LATEX.get(character, character) for character in text)


def _spread_headings(name):
    """'mean ± sd (n)' is three columns already; of '10 % flipped' they are made."""
    return ['mean', 'sd', 'n'] if ' ± ' in name else [name, f'{name}: sd', f'{name}: n']


def comma_separated(table):
    """All digits; mean, deviation and n in columns of their own; no footnotes."""
    stream = io.StringIO()
    writer = csv.writer(stream, lineterminator='\n')
    rows = [row for row in table.rows if row]
    spread = [any(isinstance(row[column], Spread) for row in rows)
              for column in range(len(table.columns))]
    writer.writerow([heading for name, several in zip(table.columns, spread) for heading in (
        _spread_headings(name) if several else [name])])
    for row in rows:
        fields = []
        for cell, several in zip(row, spread):
            cell_fields = [cell] if isinstance(cell, str) else cell.fields()
            fields += cell_fields if not several or len(cell_fields) == 3 else ['', '', '']
        writer.writerow(fields)
    return stream.getvalue()


FORMS = {'txt': terminal, 'md': markdown, 'tex': latex, 'csv': comma_separated}


def write(table, folder):
    """Writes all forms of a table; returns the path without its ending."""
    make_directory(folder)
    path = os.path.join(folder, table.name)
    for ending, form in FORMS.items():
        with atomic_write(f'{path}.{ending}') as stream:
            stream.write(form(table))
    return path
