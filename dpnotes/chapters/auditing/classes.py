"""Classes of a mechanism's outputs, for `audit`: it looks for its event among unions of them.

Outputs can be anything. Few different ones are a class each; real numbers fall into bins; real
vectors into bins of an estimated likelihood ratio. Whatever the classes, the audit is valid; they
decide how much it finds.
"""

from typing import Any

import numpy as np
import contextlib

FEW = 512  # at most so many different numbers are a class each; beyond, bins lie between quantiles


def log_ratio(seen_x, seen_y):
    """Estimated log likelihood ratios of the classes; half a count keeps them finite."""
    return np.log((seen_x + 0.5) / (seen_y + 0.5))


def counts_of(labels, size):
    """How many outputs are in each class; the label `size` means no class."""
    return np.bincount(labels, minlength=size + 1)[:size]


def classes_of(at_x, at_y):
    """The systems of classes that the first half suggests, one or two to choose from."""
    try:
        rows = np.concatenate([np.array(at, dtype=float) for at in (at_x, at_y)])  # None is NaN
    except (TypeError, ValueError, OverflowError):
        return [_Outcomes([*at_x, *at_y])]
    if rows.ndim == 1:
        return [_Bins(rows)]
    if rows.size == 0:
        return [_Outcomes([*at_x, *at_y])]
    outcomes = _Outcomes(rows, rows.shape[1:])
    if outcomes.size <= len(rows) / 100:
        return [outcomes]
    return [_Scores(rows)] if outcomes.size > len(rows) / 5 else [outcomes, _Scores(rows)]


class _Outcomes:
    """One class for each different outcome; `shape` is that of real vectors, None for the rest."""

    def __init__(self, outputs, shape=None):
        self.shape = shape
        self.codes: dict[Any, int] = {}
        for key in self.keys(outputs):
            self.codes.setdefault(key, len(self.codes))
        self.size = len(self.codes)

    def keys(self, outputs):
        if self.shape is None:
            return map(_hashable, outputs)
        rows = _numbers(outputs, self.shape).reshape(len(outputs), -1) + 0.0  # no negative zeros
        rows = np.ascontiguousarray(rows)
        rows[np.isnan(rows)] = np.nan  # one of its many bit patterns
        return rows.view(f"V{8 * rows.shape[1]}").ravel().tolist()  # a row's bytes: quick to hash

    def label(self, outputs):
        """The class of each output; `size` for outcomes that the first half didn't show."""
        return np.array([self.codes.get(key, self.size) for key in self.keys(outputs)], dtype=int)

    def words(self, members):
        keys = [key for key, code in self.codes.items() if members[code]]
        if self.shape is not None:
            keys = [f"({', '.join(f'{y:.6g}' for y in np.frombuffer(key))})" for key in keys]
        return "output " + _first_six(list(map(str, keys)))


class _Bins:
    """Classes of numbers: each its own if they are few, else bins between pooled quantiles."""

    def __init__(self, numbers):
        numbers = np.sort(numbers[~np.isnan(numbers)])
        self.edges = np.unique(numbers)
        self.few = len(self.edges) <= min(FEW, len(numbers) / 10)
        if not self.few:
            pieces = min(max(len(numbers) // 50, 2), 128)
            tails = 2.0 ** -np.arange(1, np.log2(max(len(numbers) / 16, 2)))
            levels = np.concatenate([tails, np.arange(1, pieces) / pieces, 1 - tails])
            cuts = numbers[np.sort((levels * len(numbers)).astype(int))]
            atoms = cuts[1:][cuts[1:] == cuts[:-1]]  # numbers that repeat get a bin of their own
            self.edges = np.unique(np.concatenate([cuts, np.nextafter(atoms, -np.inf)]))
        self.size = len(self.edges) + 1

    def label(self, outputs):
        """Bin i is (edges[i-1], edges[i]], or that edge alone; the last holds NaN and the rest."""
        numbers = _numbers(outputs, ())
        bins = np.searchsorted(self.edges, numbers)
        if self.few and len(self.edges):
            bins[self.edges[np.minimum(bins, len(self.edges) - 1)] != numbers] = len(self.edges)
        return bins

    def words(self, members):
        if self.few:
            names = [*(f"{edge:.6g}" for edge in self.edges), "none of the others"]
            return "output " + _first_six([n for n, m in zip(names, members, strict=True) if m])
        ends = np.concatenate([[-np.inf], self.edges, [np.inf]])
        changes = np.flatnonzero(np.diff(np.concatenate([[0], members, [0]])))
        pieces = [f"({ends[i]:.6g}, {ends[j]:.6g}]" for i, j in changes.reshape(-1, 2)]
        return "output in " + _first_six(pieces)


class _Scores:
    """Bins of an estimated log likelihood ratio of real vectors, as if entries were independent."""

    def __init__(self, rows):
        self.shape, rows, half = rows.shape[1:], rows.reshape(len(rows), -1), len(rows) // 2
        fit = np.arange(len(rows)) % half % 2 == 0  # the audit's first quarter; the second chooses
        at_x, self.entries = (np.arange(len(rows)) < half)[fit], []
        for column in rows[fit].T:
            bins = _Bins(column)
            seen = [counts_of(bins.label(column[at]), bins.size) for at in (at_x, ~at_x)]
            self.entries.append((bins, log_ratio(*seen)))
        self.bins = _Bins(self.score(rows))
        self.size = self.bins.size

    def score(self, rows):
        entries = zip(self.entries, rows.T, strict=True)
        return sum(ratio[bins.label(column)] for (bins, ratio), column in entries)

    def label(self, outputs):
        rows = _numbers(outputs, self.shape).reshape(len(outputs), -1)
        return self.bins.label(self.score(rows))

    def words(self, members):
        return self.bins.words(members).replace("output", "estimated log ratio", 1)


def _first_six(names):
    """At most six of the names, and how many more there are."""
    more = f" or {len(names) - 6} more" if len(names) > 6 else ""
    return " or ".join(names[:6]) + more


def _numbers(outputs, shape):
    """Outputs as floats of one shape each; what doesn't fit (it is rare) is NaN throughout."""
    try:
        return np.array(outputs, dtype=float).reshape(len(outputs), *shape)
    except (TypeError, ValueError, OverflowError):
        rows = np.full((len(outputs), *shape), np.nan)
        for i, output in enumerate(outputs):
            with contextlib.suppress(TypeError, ValueError, OverflowError):
                rows[i] = np.array(output, dtype=float).reshape(shape)
        return rows


def _hashable(output):
    """A hashable form, the same for equal outcomes: tuples for arrays and lists, None for NaN."""
    if isinstance(output, np.ndarray | np.generic):
        output = output.tolist()
    if isinstance(output, list | tuple):
        return tuple(map(_hashable, output))
    return None if isinstance(output, float) and output != output else output
