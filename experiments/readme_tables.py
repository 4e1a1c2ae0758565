"""Writes the tables of committed results into README.md: python -m experiments.readme_tables

They go between two comments, and nothing else of the file changes:

    <!-- tables of experiments/results/small -->
    <!-- end of tables -->
"""
import os
import pathlib
import re

from experiments import grid_search, paper_tables, tables
from interpretable_adv import cli
from interpretable_adv.cli import UserError
from interpretable_adv.files import atomic_write

ROOT = pathlib.Path(__file__).resolve().parents[1]
BLOCK = re.compile(r'(<!-- tables of ([\w./-]+) -->\n).*?(<!-- end of tables -->)', re.DOTALL)
MAKERS = (paper_tables.table3, paper_tables.significance_table, paper_tables.table1,
          paper_tables.equal_strength, paper_tables.table2, grid_search.table)


def filled(text, root):
    """The text of a README with all its blocks of tables made anew."""
    if not BLOCK.search(text):
        raise UserError('README.md has no place for tables: add the lines '
                        '"<!-- tables of experiments/results/small -->" and '
                        '"<!-- end of tables -->"')

    def block(match):
        return match[1] + block_body(os.path.join(root, match[2])) + match[3]
    return BLOCK.sub(block, text)


def block_body(folder):
    """All tables that a folder of results gives, as Markdown."""
    found = []
    for make in MAKERS:
        try:
            table = make(folder)
        except paper_tables.NoResultsError:
            continue
        if table is not None:
            found.append(tables.markdown(table))
    if not found:
        return '\nNo results are committed yet.\n\n'
    return '\n' + '\n'.join(found) + '\n'


def main(argv=None):
    parser = cli.ArgumentParser(prog='python -m experiments.readme_tables',
                                description=__doc__.partition('\n')[0])
    parser.add_argument('--readme', default=str(ROOT / 'README.md'), help='file to fill in')
    parser.add_argument('--check', action='store_true',
                        help='only say whether the tables are those of the results')
    settings = parser.parse_args(argv)
    try:
        text = pathlib.Path(settings.readme).read_text(encoding='utf-8')
    except OSError as error:
        raise UserError(f'cannot read {settings.readme}: {error.strerror}') from error
    new = filled(text, ROOT)
    if new == text:
        print(f'{settings.readme} is up to date')
    elif settings.check:
        raise UserError(f'{settings.readme} is not what the results give: run python -m '
                        'experiments.readme_tables')
    else:
        with atomic_write(settings.readme) as stream:
            stream.write(new)
        print(f'{settings.readme} has new tables')


if __name__ == '__main__':
    cli.run(main)
