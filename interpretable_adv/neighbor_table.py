"""The neighbours that a training run works with: computed now and then, looked up often."""
import numpy as np
from chainer import backend

from interpretable_adv import neighbors
from interpretable_adv.distributed import ALONE


class NeighborTable:
    """Each word's K nearest neighbours at the time of the last refresh.

    On the host a row is computed when it is first looked up, from a copy of the embeddings
    of that time: between two refreshes a run meets only part of the vocabulary. On a
    device all rows are computed at once, since asking which ones are missing would have to
    wait for it.

    Args:
        k: neighbours per word.
        limit: neighbours come from the first `limit` ids; None: from all.
        offset: rank of the first neighbour; 1, since rank 0 is the word itself.
        team: processes that share the work, and refresh and prepare together.
    """

    def __init__(self, embeddings, k, limit=None, offset=1, team=ALONE):
        self.k, self.limit, self.offset, self.team = k, limit, offset, team
        self.refresh(embeddings)

    def refresh(self, embeddings):
        """Starts anew from the embeddings as they are now."""
        xp = backend.get_array_module(embeddings)
        self._embeddings = embeddings.copy()
        self._index = None
        self._rows = xp.zeros((len(embeddings), self.k), np.int32)
        self._known = np.zeros(len(embeddings), bool)
        if xp is not np:
            self._fill(np.arange(len(embeddings)))
            self._index = None

    def __getitem__(self, ids):
        """Neighbours `(len(ids), k)` of words `(len(ids),)`."""
        if isinstance(ids, np.ndarray):
            self.prepare(ids)
        return self._rows[ids]

    def prepare(self, ids):
        """Computes the rows of words `(n,)`, given on the host, that are not known yet."""
        missing = ids[~self._known[ids]]
        if len(missing):
            self._fill(np.unique(missing))

    def _fill(self, ids):
        n_wanted = self.k + self.offset - 1
        if self._index is None:
            self._index = neighbors.Index(self._embeddings, self.limit)
        xp = backend.get_array_module(self._embeddings)
        found = xp.asarray(self.team.gather(self._index.nearest(n_wanted, self.team.part(ids)))
                           if n_wanted else np.empty((len(ids), 0), np.int32))
        if self.offset == 0:
            found = xp.concatenate([xp.asarray(ids, np.int32)[:, None], found], axis=1)
        self._rows[ids] = found[:, max(self.offset - 1, 0):]
        self._known[ids] = True

    def serialize(self, serializer):
        serializer('embeddings', self._embeddings)
        serializer('rows', self._rows)
        serializer('known', self._known)
        self._index = None
