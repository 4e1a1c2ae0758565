"""What a comparison finds."""
from typing import NamedTuple

UNIT_TOLERANCE = 1e-4  # one step, absolute
TRAJECTORY_TOLERANCE = 1e-3  # losses of many steps, absolute
PERPLEXITY_TOLERANCE = 1e-3  # relative


class Check(NamedTuple):
    """One comparison.

    Attributes:
        name: what was compared.
        agrees: True or False; None: only a piece of information.
        detail: one line for the reader.
        difference: the largest one, where numbers were compared.
        tolerance: up to which two correct implementations may differ.
    """

    name: str
    agrees: bool | None
    detail: str = ''
    difference: float | None = None
    tolerance: float | None = None


class Section(NamedTuple):
    """A part of the report."""

    title: str
    checks: list
    note: str = ''

    @property
    def agrees(self):
        return all(check.agrees is not False for check in self.checks)
