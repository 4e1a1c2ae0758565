"""The list of differences, from `differences.toml`, as values and as a page."""
import pathlib
import tomllib
from typing import NamedTuple

FILE = pathlib.Path(__file__).with_name('differences.toml')

INTRODUCTION = """\
# Differences from upstream and from the paper

`bash experiments/diff_upstream.sh PATH_TO_CLONE` compares this port with a clone of upstream:
files, flags, checkpoints, one training step of each method, whole runs, the language model's
windows. It demonstrates what it can of this list, and ends in `agrees` or `differs`. Without a
clone, `--golden FOLDER` compares the port with recordings of one.

`python -m experiments.pages` generates this page from `experiments/upstream_diff/differences.toml`.
"""


class Difference(NamedTuple):
    """One difference: `U` a fault of upstream, `P` an open point of the paper, `D` another."""

    id: str
    theirs: str
    here: str


class Group(NamedTuple):
    title: str
    theirs: str
    differences: list[Difference]


def groups():
    """The differences in their groups."""
    with open(FILE, 'rb') as stream:
        content = tomllib.load(stream)
    return [Group(group['title'], group['theirs'],
                  [Difference(**entry) for entry in group['difference']])
            for group in content['group']]


def markdown():
    """The list as a page."""
    parts = [INTRODUCTION]
    for group in groups():
        rows = [f'| {entry.id} | {entry.theirs} | {entry.here} |' for entry in group.differences]
        parts.append('\n'.join([f'\n## {group.title}\n', f'| # | {group.theirs} | here |',
                                '|---|---|---|', *rows, '']))
    return ''.join(parts)
