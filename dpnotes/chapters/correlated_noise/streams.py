"""Correlated noise, step by step, in the memory of as many noises as the strategy has bands."""

from __future__ import annotations

from typing import Annotated
from uuid import uuid4

import numpy as np

from ...checks import (
    Array, ArrayLike, Counts, Generator, Many, PositiveNumber, Unique, array, checked,
)  # fmt: skip
from .participation import check_triangular, count_bands

BLOCK, COLUMNS = 8, 8192  # steps of a stream, and entries of a noise, that are summed at once
MOST_NUMBERS = 10**9  # in the memory of a stream
FIELDS = {"lags", "sigma", "shape", "steps", "step", "past", "name"}  # of what is stored
_resumed: set[str] = set()  # what was resumed in this process


def _streamed(name, value):
    """Such a matrix, or the first column of one that is constant along its diagonals."""
    column = array(name, value, 1, 2)
    if column.ndim == 2:
        return check_triangular(name, column)
    if not column.size or not column[0]:
        raise ValueError(f"{name} must begin with a number that is not zero")
    return column


Streamed = Annotated[ArrayLike, _streamed]


class NoiseStream(Unique):
    """The noise C^-1 Z of one step after the other, to be added to the contributions of the step.

    Then the noise of the prefix sums is A C^-1 Z (X-factorization). `strategy`: C, or the first
    column of a Toeplitz C with as many `steps` as are said. Z has independent normal entries of
    standard deviation `sigma`; each step's noise has the form `shape`. With b bands a stream holds
    b noises (from 8 on rounded up to a multiple of 8) and takes time in proportion to b. For study:
    floats leak (X-low-bits).

    >>> first_column, rng = [1.0, 0.5], np.random.default_rng(1)
    >>> stream = correlated_noise.NoiseStream(first_column, sigma=2.0, steps=9, rng=rng)
    >>> stream.draw(), stream.draw()
    (array([0.69116838]), array([1.29765209]))
    >>> kept = stream.store()
    >>> stream = correlated_noise.NoiseStream.resume(kept, rng=rng)
    """

    @checked
    def __init__(
        self,
        strategy: Streamed,
        sigma: PositiveNumber,
        shape: Counts = 1,
        steps: Many | None = None,
        *,
        rng: Generator,
    ) -> None:
        n = len(strategy)
        steps = n if steps is None else steps
        if strategy.ndim == 2:
            if steps > n:
                raise ValueError(f"steps must be at most {n}, the rows of strategy, got {steps}")
            lags = np.zeros((n, count_bands(strategy)))
            for lag in range(lags.shape[1]):
                lags[lag:, lag] = strategy.diagonal(-lag)
        else:
            lags = strategy[None, : np.flatnonzero(strategy)[-1] + 1].copy()
        numbers, bands = np.prod(shape), lags.shape[1]
        if numbers * bands > MOST_NUMBERS:
            raise ValueError(f"shape must hold at most {MOST_NUMBERS // bands:,} numbers")
        block = min(BLOCK, bands)
        past = np.zeros((-(-bands // block) * block, int(numbers)))
        shape = tuple(int(length) for length in shape.ravel())
        self._begin(dict(lags=lags, sigma=sigma, shape=shape, steps=steps, step=0, past=past), rng)

    def _begin(self, state, rng):
        self._state, self._rng = state, rng
        self._rows = np.broadcast_to(state["lags"], (state["steps"], state["lags"].shape[1]))
        self._block = min(BLOCK, state["lags"].shape[1])

    def draw(self) -> Array:
        """The noise of the next step; a ValueError after the last, or when this was stored."""
        if self._state is None:
            raise ValueError("this stream was stored: draw from the one that resume() returns")
        state, past = self._state, self._state["past"]
        step = state["step"]
        if step == state["steps"]:
            raise ValueError(f"the stream was planned for {step} steps, and all are drawn")
        slot, done = step % len(past), step % self._block
        if not done:
            self._look_back(step)
        row, noise = self._rows[step], np.empty(past.shape[1])
        for start in range(0, len(noise), COLUMNS):  # as much as a processor holds near it
            here = slice(start, start + COLUMNS)
            part = self._rng.standard_normal(out=noise[here])
            part *= state["sigma"]
            part -= past[slot, here]
            if done:
                part -= row[done:0:-1] @ past[slot - done : slot, here]
            part /= row[0]
            past[slot, here] = part
        state["step"] = step + 1
        return noise.reshape(state["shape"])

    def _look_back(self, first):
        """What earlier noises add to the steps of a block, put in the place of the oldest.

        Many steps at once: so memory is read once a block, which takes longer than the sums.
        """
        past = self._state["past"]
        rows = self._rows[first : first + self._block]
        age = (first - 1 - np.arange(len(past))) % len(past)  # 0: of the step before
        lag = age + 1 + np.arange(len(rows))[:, None]
        weights = np.take_along_axis(rows, np.minimum(lag, rows.shape[1] - 1), axis=1)
        weights *= (lag < rows.shape[1]) & (age < first)
        oldest = first % len(past)
        for start in range(0, past.shape[1], COLUMNS):
            part = past[:, start : start + COLUMNS]
            part[oldest : oldest + len(rows)] = weights @ part

    def store(self) -> dict:
        """What `resume` needs, as numbers, arrays and a name; this stream is closed.

        Keep it secret: it holds noise that was added to earlier steps.
        """
        if self._state is None:
            raise ValueError("this stream was stored already")
        state, self._state = self._state, None
        return {**state, "name": uuid4().hex}

    @classmethod
    def resume(cls, state: dict, *, rng: np.random.Generator) -> NoiseStream:
        """The stream that was stored, at most once in a process: a ValueError the second time.

        Other processes cannot be seen. Where two go on from one state, their steps are two
        releases. `rng` draws what is new.
        """
        if not isinstance(state, dict) or set(state) != FIELDS:
            raise ValueError("state must be what store() returned")
        if not isinstance(rng, np.random.Generator):
            raise ValueError("rng must be a NumPy Generator (default_rng)")
        if state["name"] in _resumed:
            raise ValueError("state must be resumed once: a second stream would share its noise")
        _resumed.add(state["name"])
        stream = cls.__new__(cls)
        kept = {key: value for key, value in state.items() if key != "name"}
        stream._begin({**kept, "past": np.array(kept["past"])}, rng)
        return stream
