"""Streams of correlated noise: the numbers of a solved system, memory, and what is refused."""

import copy
import pickle
import tracemalloc

import numpy as np
import pytest
from scipy.linalg import solve_triangular

from dpnotes.chapters import correlated_noise as noise
from evidence import equal, holds


def triangular(rng, n, bands):
    c = np.triu(np.tril(rng.normal(size=(n, n)) * 0.3), -(bands - 1))
    np.fill_diagonal(c, 1 + rng.random(n))
    return c


def drawn(stream, steps):
    return np.array([stream.draw() for _ in range(steps)])


@pytest.mark.parametrize("n", [1, 5, 40, 41])
@pytest.mark.parametrize("bands", [1, 2, 7, 8, 9, 17, 41])
def test_a_stream_solves_its_triangular_system(n, bands):
    c = triangular(np.random.default_rng(n), n, min(n, bands))
    found = drawn(noise.NoiseStream(c, 1.5, (2, 3), rng=np.random.default_rng(7)), n)
    fresh = 1.5 * np.random.default_rng(7).standard_normal((n, 6))
    equal(found, solve_triangular(c, fresh, lower=True).reshape(n, 2, 3), rtol=1e-9, atol=1e-12)


def test_wide_noise_is_summed_in_parts_and_a_column_stands_for_its_matrix():
    first = noise.square_root(20)[:, 0]
    wide = drawn(noise.NoiseStream(first, 1.0, 20_000, rng=np.random.default_rng(1)), 20)
    written = noise.NoiseStream(noise.square_root(20), 1.0, 20_000, rng=np.random.default_rng(1))
    equal(wide, drawn(written, 20))
    back = noise.square_root(20) @ wide  # independent and standard: 6.5 sigma of each mean square
    holds(np.abs((back**2).mean(axis=1) - 1) < 6.5 * np.sqrt(2 / 20_000))


def test_a_stored_stream_goes_on_where_it_was_at_every_step():
    c = triangular(np.random.default_rng(3), 30, 11)
    whole = drawn(noise.NoiseStream(c, 1.0, 4, rng=np.random.default_rng(5)), 30)
    for stop in (0, 1, 7, 8, 13, 29):
        rng = np.random.default_rng(5)
        stream = noise.NoiseStream(c, 1.0, 4, rng=rng)
        first = drawn(stream, stop)
        kept = pickle.loads(pickle.dumps(stream.store()))
        rest = drawn(noise.NoiseStream.resume(kept, rng=rng), 30 - stop)
        equal(np.concatenate([first.reshape(stop, 4), rest]), whole)


def test_a_stream_is_resumed_once_and_a_stored_one_is_closed():
    stream = noise.NoiseStream([1.0, 0.5], 1.0, steps=3, rng=np.random.default_rng(1))
    assert copy.deepcopy(stream) is stream
    with pytest.raises(TypeError):
        pickle.dumps(stream)
    stream.draw()
    kept = stream.store()
    for call in (stream.draw, stream.store):
        with pytest.raises(ValueError, match="this stream was stored"):
            call()
    resumed = noise.NoiseStream.resume(kept, rng=np.random.default_rng(2))
    for again in (kept, pickle.loads(pickle.dumps(kept)), dict(kept)):
        with pytest.raises(ValueError, match="state must be resumed once"):
            noise.NoiseStream.resume(again, rng=np.random.default_rng(3))
    other = resumed.store()
    past = other["past"].copy()
    noise.NoiseStream.resume(other, rng=np.random.default_rng(4)).draw()
    equal(other["past"], past)  # what is kept is the caller's


def test_a_stream_ends_where_it_was_planned_to():
    rng = np.random.default_rng(1)
    for stream in (
        noise.NoiseStream(np.eye(3), 1.0, rng=rng),
        noise.NoiseStream([1.0, 0.5], 1.0, steps=3, rng=rng),
    ):
        drawn(stream, 3)
        with pytest.raises(ValueError, match="planned for 3 steps"):
            stream.draw()


REFUSED = [
    (dict(strategy=np.ones((3, 3))), "strategy must be square, lower triangular"),
    (dict(strategy=np.tri(3) - np.diag([0, 1, 0])), "strategy must be square, lower triangular"),
    (dict(strategy=np.tri(4, 3)), "strategy must be square, lower triangular"),
    (dict(strategy=[0.0, 1.0]), "strategy must begin with a number that is not zero"),
    (dict(strategy=[]), "strategy must begin"),
    (dict(strategy=np.eye(3), steps=4), "steps must be at most 3"),
    (dict(strategy=[1.0], shape=0), "shape must be"),
    (dict(strategy=[1.0], shape=(10**5, 10**5)), "shape must hold at most"),
    (dict(strategy=[1.0], sigma=0), "sigma must be"),
    (dict(strategy=[1.0], rng=3), "rng must be"),
]


@pytest.mark.parametrize(("given", "said"), REFUSED)
def test_no_stream_of_what_makes_no_sense(given, said):
    with pytest.raises(ValueError, match=said):
        noise.NoiseStream(**{"sigma": 1.0, "rng": np.random.default_rng(1), **given})


def test_no_state_of_what_store_did_not_return():
    rng = np.random.default_rng(1)
    for state in (None, {}, {"step": 1}, "x"):
        with pytest.raises(ValueError, match="state must be what store"):
            noise.NoiseStream.resume(state, rng=rng)
    kept = noise.NoiseStream([1.0], 1.0, rng=rng).store()
    with pytest.raises(ValueError, match="rng must be"):
        noise.NoiseStream.resume(kept, rng=None)
    noise.NoiseStream.resume(kept, rng=rng).draw()  # a refusal does not use it up


def test_what_does_not_fit_or_cannot_be_decoded_is_refused():
    with pytest.raises(ValueError, match="participations must be at most 3"):
        noise.sensitivity(np.eye(7), participations=4, separation=3)
    with pytest.raises(ValueError, match="participations must be at most 3"):
        noise.best_banded(7, 2, participations=4, separation=3)
    with pytest.raises(ValueError, match="bands must be at most n"):
        noise.best_banded(3, 4)
    with pytest.raises(ValueError, match="strategy must reach every prefix sum"):
        noise.largest_error(np.ones((2, 2)))
    with pytest.raises(ValueError, match="strategy must reach every prefix sum"):
        noise.largest_error(np.ones((1, 2)))
    with pytest.raises(ValueError, match="decoder must give the prefix sums"):
        noise.largest_error(np.eye(3), np.eye(3))
    with pytest.raises(ValueError, match="decoder must have the shape"):
        noise.largest_error(np.eye(3), np.eye(2))


def test_a_stream_takes_the_memory_of_its_bands():
    """16 bands of 100,000 numbers: 12.8 MB, a noise in hand, and little else."""
    tracemalloc.start()
    stream = noise.NoiseStream(
        np.r_[1.0, np.full(15, 0.01)], 1.0, 100_000, 10_000, rng=np.random.default_rng(1)
    )
    for _ in range(20):
        stream.draw()
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 18 * 100_000 * 8


def test_the_best_banded_strategy_is_no_worse_than_others_near_it():
    """Random steps away from it, and the cut-off square root, have a larger mean error."""

    def mean_error(first, n=64):
        c = np.tri(n) * 0
        for lag, value in enumerate(first):
            c += value * np.eye(n, k=-lag)
        moved = noise.sensitivity(c, 4, 16)
        return moved * np.linalg.norm(np.tri(n) @ np.linalg.inv(c))

    best = noise.best_banded(64, 8, 4, 16)[:8, 0]
    holds(np.diff(best) <= 0)
    least, rng = mean_error(best), np.random.default_rng(1)
    assert least < mean_error(noise.square_root(8)[:, 0])
    for size in (1e-3, 1e-2, 0.1):
        for _ in range(30):
            assert mean_error(best + size * rng.normal(size=8)) >= least * (1 - 1e-9)
