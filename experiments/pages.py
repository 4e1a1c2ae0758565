"""Writes what is generated into the pages: python -m experiments.pages

README.md and docs/results.md hold blocks between two comments, and nothing else of them changes:

    <!-- generated: trained -->
    <!-- generated: accuracies -->
    <!-- generated: effects -->
    <!-- generated: against_paper -->
    <!-- generated: baselines -->
    <!-- generated: claims -->
    <!-- generated: tables of experiments/results/small -->
    <!-- end of generated -->

docs/differences.md is generated as a whole, from experiments/upstream_diff/differences.toml, and
docs/findings.md from experiments/results; so are the tables in every folder of
experiments/results.
"""
import os
import pathlib
import re

from experiments import findings, glance, grid_search, paper_tables, tables
from experiments.upstream_diff import differences
from interpretable_adv import cli
from interpretable_adv.errors import UserError
from interpretable_adv.runs.files import atomic_write

ROOT = pathlib.Path(__file__).resolve().parents[1]
RESULTS = 'experiments/results'
PAGES = ('README.md', 'docs/results.md')
AT_A_GLANCE = {'trained': glance.trained, 'accuracies': glance.accuracies,
               'effects': glance.effects, 'against_paper': glance.against_paper,
               'baselines': glance.baselines, 'claims': findings.claims}
BLOCK = re.compile(rf'(<!-- generated: ({"|".join(AT_A_GLANCE)}|tables of ([\w./-]+)) -->\n)'
                   r'.*?(<!-- end of generated -->)', re.DOTALL)
MAKERS = (paper_tables.table3, paper_tables.significance_table, paper_tables.table1,
          paper_tables.label_invariance, paper_tables.equal_strength,
          paper_tables.labels_at_equal_strength, paper_tables.class_lm_table,
          paper_tables.table4, paper_tables.table4_differences, paper_tables.sparsity_table,
          paper_tables.table2,
          grid_search.table)


def tables_of(folder):
    """All tables that a folder of results gives."""
    found = []
    for make in MAKERS:
        try:
            table = make(folder)
        except paper_tables.NoResultsError:
            continue
        if table is not None:
            found.append(table)
    return found


def filled(text, root):
    """The text of a page with all its generated blocks made again."""
    def block(match):
        if match[2] in AT_A_GLANCE:
            table = AT_A_GLANCE[match[2]](root)
            body = tables.markdown(table).split('\n', 2)[2] if table.rows else ''  # without title
        else:
            body = '\n'.join(map(tables.markdown, tables_of(os.path.join(root, match[3]))))
        body = body or 'No results are committed yet.\n'
        return f'{match[1]}\n{body}\n{match[4]}'
    return BLOCK.sub(block, text)


def generated(root):
    """`{path: content}` of all pages and tables."""
    contents = {}
    for name in PAGES:
        path = os.path.join(root, name)
        try:
            contents[path] = filled(pathlib.Path(path).read_text(encoding='utf-8'), root)
        except OSError as error:
            raise UserError(f'cannot read {path}: {error.strerror}') from error
    contents[os.path.join(root, 'docs', 'differences.md')] = differences.markdown()
    contents[os.path.join(root, 'docs', 'findings.md')] = findings.page(root)
    for folder in sorted(pathlib.Path(root, RESULTS).iterdir()):
        for table in tables_of(str(folder)):
            for ending, form in tables.FORMS.items():
                path = folder / 'tables' / f'{table.name}.{ending}'
                contents[str(path)] = form(table)
    return contents


def main(argv=None):
    parser = cli.ArgumentParser(prog='python -m experiments.pages',
                                description=__doc__.partition('\n')[0])
    parser.add_argument('--root', default=str(ROOT), help='folder of the project')
    parser.add_argument('--check', action='store_true',
                        help='only check whether the pages are up to date')
    flags = parser.parse_args(argv)
    changed = []
    for path, content in generated(flags.root).items():
        if not os.path.exists(path) or pathlib.Path(path).read_text(encoding='utf-8') != content:
            changed.append(os.path.relpath(path, flags.root))
            if not flags.check:
                os.makedirs(os.path.dirname(path), exist_ok=True)
                with atomic_write(path) as stream:
                    stream.write(content)
    if changed and flags.check:
        raise UserError(f'{", ".join(changed[:3])}{" …" if len(changed) > 3 else ""}: out of date; '
                        'run python -m experiments.pages')
    print(*(changed or ['all pages are up to date']), sep='\n')


if __name__ == '__main__':
    cli.run(main)
