"""Nearest neighbours of words: the search, and the table that training looks them up in."""
from interpretable_adv.neighbors.search import Index, nearest
from interpretable_adv.neighbors.table import NeighborTable, Refresher

__all__ = ['Index', 'NeighborTable', 'Refresher', 'nearest']
