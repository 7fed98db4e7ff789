"""Linear queries on a histogram over a finite universe: what `release` answers.

A query is a vector of values in [0, 1], one for each element of the universe, and its answer the
mean over the rows. All marginals of a table have a form of their own, which is quicker.
"""

from collections.abc import Iterable
from itertools import combinations

import numpy as np

from . import _validate as check

__all__ = ["Marginals"]


class Marginals:
    """All marginals of `order` attributes of a coded table, as linear queries.

    `shape`: how many codes each attribute has; the universe is their product, in C order. Query i
    is the share of rows with given codes of `order` given attributes: `attributes[i]`, `codes[i]`.
    `self @ weights` costs a few passes over the universe for all cells of a table together.
    """

    def __init__(self, shape: Iterable[int], order: int) -> None:
        self.shape = tuple(check.count("shape", size) for size in shape)
        most = len(self.shape)
        order = check.count_up_to("order", order, most)
        self.tables = list(combinations(range(most), order))
        self.attributes, self.codes = [], []
        for table in self.tables:
            for code in np.ndindex(*(self.shape[a] for a in table)):
                self.attributes.append(table)
                self.codes.append(code)

    def __len__(self):
        return len(self.codes)

    def __getitem__(self, i):
        query = np.zeros(self.shape)
        where = [slice(None)] * len(self.shape)
        for axis, code in zip(self.attributes[i], self.codes[i], strict=True):
            where[axis] = code
        query[tuple(where)] = 1.0
        return query.ravel()

    def __matmul__(self, weights):
        cube, axes = np.reshape(weights, self.shape), set(range(len(self.shape)))
        return np.concatenate([cube.sum(tuple(axes - set(t))).ravel() for t in self.tables])


def histogram_rows(histogram):
    """A histogram as a float array, and its number of rows."""
    found = check.array("histogram", histogram, 1)
    rows = found.sum()
    if (found < 0).any() or not rows >= 1 or abs(rows - round(rows)) > 1e-6:
        raise ValueError(f"histogram must hold counts of at least one row, got {histogram!r}")
    return found, int(round(rows))


def on_universe(queries, size):
    """Marginals of the right universe, or a (k, size) array of values in [0, 1]."""
    if isinstance(queries, Marginals):
        if np.prod(queries.shape) != size:
            raise ValueError(f"queries must be on a universe of {size}, got {queries.shape}")
        return queries
    found = check.array("queries", queries, 2)
    if found.shape[1] != size or not found.size or found.min() < 0 or found.max() > 1:
        raise ValueError(f"queries must be rows of {size} values in [0, 1], got {queries!r}")
    return found
