"""Arrays of queries are answered like the queries one by one, to the widths of both."""

import numpy as np
import pytest

import dpnotes as dp
from dpnotes.accountant import contour, many
from evidence import holds

RUNS = {
    "sampled gaussian": dp.subsample(dp.gaussian(1.0), 0.01).compose(10_000),
    "rare jumps": dp.subsample(dp.gaussian(0.8), 0.001).compose(5000),
    "mixture": dp.gaussian(2.0) + dp.laplace(1.5) + dp.subsample(dp.gaussian(1.0), 0.1).compose(20),
    "many laplaces": dp.laplace(20.0).compose(2000),
    "gaussian": dp.gaussian(1.2),
    "laplace": dp.laplace(1.2).compose(3),
    "response": dp.randomized_response(0.4).compose(30),
    "infinite": dp.finite([0.5, 0.4, 0.1], [0.6, 0.4, 0.0]).compose(2) + dp.gaussian(1.0),
    "sampled laplace": dp.subsample(dp.laplace(10.0), 0.1).compose(50_000),
}
WEEKLY = {"rare jumps", "mixture", "many laplaces", "response", "sampled laplace"}
every_run = pytest.mark.parametrize(
    "run",
    [
        pytest.param(run, id=name, marks=pytest.mark.thorough if name in WEEKLY else ())
        for name, run in RUNS.items()
    ],
)


def overlap(first, second):
    holds(np.maximum(first[0], second[0]) <= np.minimum(first[1], second[1]), "intervals overlap")


def together_and_alone(query, interval, at):
    """Array and scalar answers: the values lie in both intervals, which overlap."""
    value, (low, high) = query(at), interval(at)
    holds((low <= value) & (value <= high), "the value lies in its interval")
    some = slice(None, None, max(1, len(at) // 6))
    alone = np.array([interval(float(x)) for x in at[some]]).T
    overlap((low[some], high[some]), alone)
    return low, high


@pytest.mark.slow
@every_run
def test_delta_of_arrays(run):
    epsilons = np.append(np.linspace(0.0, min(run.epsilon(1e-12), 60.0), 39), 1e4)
    together_and_alone(run.delta, run.delta_interval, epsilons)


@pytest.mark.slow
@every_run
def test_epsilon_of_arrays(run):
    together_and_alone(run.epsilon, run.epsilon_interval, np.geomspace(1e-12, 0.999, 40))


def test_shapes_order_and_few():
    run = RUNS["sampled gaussian"]
    at = np.array([[2.0, 0.5, 1.0], [3.0, 0.0, 4.0]])
    wide = np.concatenate([at.ravel(), at.ravel()])
    assert run.delta(at).shape == at.shape
    few, more = run.delta_interval(at.ravel()), run.delta_interval(wide)
    overlap(few, (more[0][:6], more[1][:6]))
    assert (more[0][:6] == more[0][6:]).all()
    with pytest.raises(ValueError, match="epsilon"):
        run.delta([-1.0] * 20)


def test_sums_of_arrays_are_those_of_a_line():
    parts = RUNS["mixture"]._directions[0].parts
    line = contour.line(parts, 1, contour.saddle_at(parts, 1, 4.0))
    at = np.array([3.6, 4.0, 4.4])
    together, alone = many.sums(line, at), np.array([line.sums(e) for e in at]).T
    holds(np.abs(together[0] - alone[0]) <= together[2] + alone[2], "log tail")
    holds(np.abs(together[1] - alone[1]) <= 1e-9, "log slope")
    holds(np.maximum(*together[2:]) >= 0.5 * np.maximum(*alone[2:]), "errors of the same size")


def test_most_queries_share_lines(monkeypatch):
    drawn = []
    line = contour.line
    monkeypatch.setattr(contour, "line", lambda *a: drawn.append(a) or line(*a))
    run = RUNS["sampled gaussian"]
    run.delta(np.linspace(0.1, run.epsilon(1e-9), 400))
    assert len(drawn) <= 25
    drawn.clear()
    run.epsilon(np.geomspace(1e-9, 0.4, 400))
    assert len(drawn) <= 25


def test_a_planted_error_is_seen(monkeypatch):
    run = RUNS["mixture"]
    at = np.linspace(1.0, 5.0, 20)
    sums = many.sums
    monkeypatch.setattr(many, "sums", lambda *a: (sums(*a)[0] + 1e-9, *sums(*a)[1:]))
    with pytest.raises(AssertionError):
        together_and_alone(run.delta, run.delta_interval, at)


def random_run(rng):
    """DP-SGD steps, a third of them beside some Gaussian noise."""
    step = dp.gaussian(float(np.exp(rng.uniform(-0.3, 3.0))))
    run = dp.subsample(step, float(10 ** rng.uniform(-4, -0.7))).compose(
        int(10 ** rng.uniform(1, 5))
    )
    return run + dp.gaussian(float(np.exp(rng.uniform(0, 3)))) if rng.random() < 1 / 3 else run


def meets_the_answers_one_by_one(interval, at, rng, claimed):
    """At a query drawn from the curve: the intervals overlap, and the curve's is no wider than
    claimed, or than twice that of the single query."""
    low, high = interval(at)
    i = int(rng.integers(len(at)))
    alone = interval(float(at[i]))
    holds(max(low[i], alone[0]) <= min(high[i], alone[1]), "intervals overlap")
    room = max(claimed * high[i], 2.0 * (alone[1] - alone[0]), 1e-11 if claimed == 1e-9 else 0.0)
    holds(high[i] - low[i] <= room, "no wider than claimed")


@pytest.mark.parametrize(
    "seed",
    [
        *range(4),
        *(pytest.param(seed, marks=pytest.mark.slow) for seed in range(4, 10)),
        *(pytest.param(seed, marks=pytest.mark.thorough) for seed in range(10, 20)),
    ],
)
def test_random_curves(seed):
    """Ten curves of one composition each: 40 in `make quick`, 100 in `make test`, 200 in all."""
    rng = np.random.default_rng([1911, seed])
    for _ in range(5):
        run = random_run(rng)
        deltas = np.sort(10 ** rng.uniform(-11, -0.2, 12))
        meets_the_answers_one_by_one(run.epsilon_interval, deltas, rng, 1e-9)
        epsilons = np.sort(rng.uniform(0, 1, 12)) * run.epsilon(1e-10)
        meets_the_answers_one_by_one(run.delta_interval, epsilons, rng, 2.1e-10)
