"""The neighbours that a training run works with: computed now and then, looked up often."""
from typing import Any

import numpy as np
from chainer import backend

from interpretable_adv.errors import UserError
from interpretable_adv.neighbors.search import Array, Index
from interpretable_adv.runs.distributed import ALONE


class NeighborTable:
    """Each word's K nearest neighbours at the time of the last refresh.

    On the host a row is computed when it is first looked up, from a copy of the embeddings
    of that time: between two refreshes a run encounters only part of the vocabulary. On a
    device all rows are computed at once, since asking which ones are missing would have to
    wait for it.

    Args:
        k: neighbours per word.
        limit: neighbours come from the first `limit` ids; None: from all.
        offset: rank of the first neighbour; 1, since rank 0 is the word itself.
        team: processes that share the work, and refresh and prepare together.
    """

    def __init__(self, embeddings: Array, k: int, limit: int | None = None, offset: int = 1,
                 team: Any = ALONE):
        candidates = len(embeddings) if limit is None else min(limit, len(embeddings))
        if k + offset > candidates:
            raise UserError(f'--nn_k {k}: there are only {candidates} words to choose neighbours '
                            'from; give a smaller number')
        self.k, self.limit, self.offset, self.team = k, limit, offset, team
        self.refresh(embeddings)

    def refresh(self, embeddings: Array) -> None:
        """Forgets all rows; new ones come from the embeddings as they are now."""
        xp = backend.get_array_module(embeddings)
        self._embeddings = embeddings.copy()
        self._index: Index | None = None
        self._rows = xp.zeros((len(embeddings), self.k), np.int32)
        self._known = np.zeros(len(embeddings), bool)
        if xp is not np:
            self._fill(np.arange(len(embeddings)))
            self._index = None

    def __getitem__(self, ids: Array) -> Array:
        """Neighbours `(len(ids), k)` of words `(len(ids),)`."""
        if isinstance(ids, np.ndarray):
            self.prepare(ids)
        return self._rows[ids]

    def first(self, k: int) -> 'NeighborTable | _FirstNeighbors':
        """The table of only the first `k` neighbours, which shares this one's rows."""
        return self if k == self.k else _FirstNeighbors(self, k)

    def prepare(self, ids: np.ndarray) -> None:
        """Computes the rows of words `(n,)`, given on the host, that are not known yet."""
        missing = ids[~self._known[ids]]
        if len(missing):
            self._fill(np.unique(missing))

    def _fill(self, ids: np.ndarray) -> None:
        n_wanted = self.k + self.offset - 1
        if self._index is None:
            self._index = Index(self._embeddings, self.limit)
        xp = backend.get_array_module(self._embeddings)
        found = xp.asarray(self.team.gather(self._index.nearest(n_wanted, self.team.part(ids)))
                           if n_wanted else np.empty((len(ids), 0), np.int32))
        if self.offset == 0:
            found = xp.concatenate([xp.asarray(ids, np.int32)[:, None], found], axis=1)
        self._rows[ids] = found[:, max(self.offset - 1, 0):]
        self._known[ids] = True

    def serialize(self, serializer: Any) -> None:
        serializer('embeddings', self._embeddings)
        serializer('rows', self._rows)
        serializer('known', self._known)
        self._index = None
        if self._rows.size and not 0 <= self._rows.min() <= self._rows.max() < len(self._rows):
            raise ValueError('a neighbour is no word')


class _FirstNeighbors:
    """The first columns of a `NeighborTable`: neighbours are in order, nearest first."""

    def __init__(self, table: NeighborTable, k: int):
        self._table, self.k = table, k

    def __getitem__(self, ids: Array) -> Array:
        rows = self._table[ids]
        return backend.get_array_module(rows).ascontiguousarray(rows[:, :self.k])


class Refresher:
    """Says when the neighbours are refreshed.

    Args:
        table: a `NeighborTable`.
        every_steps: after this many steps; 0: by epochs.
        every_epochs: after the first epoch and every n-th one from there, as upstream; 0: never.
    """

    def __init__(self, table: NeighborTable, every_steps: int, every_epochs: int):
        self.table, self.every_steps, self.every_epochs = table, every_steps, every_epochs

    def after_step(self, model: Any, step: int, epoch: int, is_new_epoch: bool) -> None:
        """
        Args:
            step, epoch: how many are done.
            is_new_epoch: whether the step was its epoch's last.
        """
        if self.every_steps:
            due = step % self.every_steps == 0
        else:
            due = (is_new_epoch and self.every_epochs > 0
                   and (epoch - 1) % self.every_epochs == 0)
        if due:
            self.table.refresh(model.word_embed.W.array)
