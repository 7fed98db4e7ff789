"""Schedules: many different sampled Gaussians as one step, against the single ones and an oracle.

The oracle shares no code with the engine: plain sums over a fine mesh of outcomes, the powers of
the transform at twice the heights, aliases far below what is compared.
"""

import numpy as np
import pytest

import dpnotes as dp
from dpnotes.accountant import contour, rows, schedule, shifted, strips, windows
from dpnotes.accountant.direction import Direction
from dpnotes.accountant.privacy_loss import PrivacyLoss
from dpnotes.accountant.sampled_gaussian import SampledGaussian
from dpnotes.accountant.tilted import Tilted
from evidence import at_most, equal, holds, must_fail

TILTS = (-0.5, -1e-3, 1e-3, 0.7, 5.0, 60.0, 300.0)
SHAPES = ("falling", "wild", "sharp")


def drawn(shape, seed, n=9, side=1):
    """A schedule as (step, k)."""
    rng = np.random.default_rng([18, seed])
    if shape == "falling":
        sigma, rate = np.geomspace(2.5, 0.9, n), np.geomspace(0.003, 0.05, n)
        k = np.arange(1, n + 1)
    elif shape == "wild":
        sigma, rate = 0.3 * 170 ** rng.random(n), 0.999 * 10 ** rng.uniform(-4, 0, n)
        k = (10 ** rng.uniform(0, 4, n)).astype(int)
    else:
        sigma, rate = rng.uniform(0.3, 0.6, n), 10 ** rng.uniform(-3, -0.5, n)
        k = np.ones(n, dtype=int)
    steps = [SampledGaussian(*x, side) for x in zip(sigma.tolist(), rate.tolist(), strict=True)]
    return list(zip(steps, k.tolist(), strict=True))


def run_of(parts):
    return PrivacyLoss([(SampledGaussian(step.sigma, step.rate), k) for step, k in parts])


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("side", [1, -1])
def test_moments_are_the_sums_over_the_steps(shape, side):
    parts = drawn(shape, 1, side=side)

    def check(found):
        z = np.array(TILTS)
        equal(found.cumulant(z), sum(k * step.cumulant(z) for step, k in parts), rtol=1e-13)
        for c in TILTS:
            each = np.array([k * step.cumulant_at(c) for step, k in parts])
            equal(found.cumulant_at(c), each.sum(), rtol=1e-13)
            noise = sum(k * step.cumulant_noise(c) for step, k in parts)
            # of a bound: a step alone may take more nodes, each with a smaller weight
            equal(found.cumulant_noise(c), noise, rtol=1e-2)
        some = z[z < 100]
        alone = sum(k * np.array(step.derivatives(some)) for step, k in parts)
        size = min(1.0, found.spread() ** 2)
        equal(found.derivatives(some), alone, rtol=1e-4, atol=1e-3 * size)  # to plan with
        assert found.spread() == pytest.approx(
            sum(k * step.spread() ** 2 for step, k in parts) ** 0.5, rel=1e-13
        )

    check(schedule.schedule(parts))
    most = int(np.argmax([k * step.cumulant_at(0.7) for step, k in parts]))
    step, k = parts[most]
    rest = parts[:most] + parts[most + 1 :]
    must_fail(check, schedule.schedule([*rest, (step, k + 1)]))
    moved = SampledGaussian(step.sigma, step.rate * (1 + 1e-11), side)
    must_fail(check, schedule.schedule([*rest, (moved, k)]))


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("side", [1, -1])
@pytest.mark.parametrize("c", [-0.5, 0.7, 5.0, 60.0])
def test_lines_are_the_sums_over_the_steps(shape, side, c):
    parts = drawn(shape, 2, side=side)
    whole = schedule.schedule(parts)
    deviation = float(whole.derivatives(np.array([c]))[2][0]) ** 0.5
    y = np.linspace(0.0, min(12 / deviation, 300.0), 50)
    alone = [(k * step.line(c, y)[0], k * step.line(c, y)[1]) for step, k in parts]
    value, noise = (sum(x) for x in zip(*alone, strict=True))

    def check(found):
        holds(np.abs(found[0] - value) <= noise + found[1], "the same within both bounds")
        # one bound serves 7 heights, and fewer where a single step has two lines
        near = np.array([noise[i : i + 7].max() for i in range(len(y))])
        near, left = 3 * near + 1e-300, np.exp(np.minimum(-value.real, 700.0))
        holds(found[1] <= near + 1e-17 * left, "no bound much above those of single steps")

    line = whole.line(c, y)
    check(line)
    must_fail(check, (line[0] * (1 + 1e-9) + 1e-9 * y, line[1]))
    ceiling = whole.ceiling(c)
    bounds = np.array([ceiling(h) for h in y[1:]])
    at_most(value.real[1:], bounds + 1e-12)
    old = np.array([sum(k * step.ceiling(c)(h) for step, k in parts) for h in y[1::12]])
    at_most(bounds[::12], 0.6 * old + schedule.ALLOWED)  # no bound much above those of single steps
    equal(ceiling(0.0), 0.0, atol=1e-12)


@pytest.mark.parametrize("side", [1, -1])
def test_a_mesh_that_is_too_wide_is_noticed(monkeypatch, side):
    parts, y = drawn("falling", 2, side=side), np.linspace(0.0, 60.0, 200)
    alone = [(k * step.line(5.0, y)[0], k * step.line(5.0, y)[1]) for step, k in parts]
    value, noise = (sum(x) for x in zip(*alone, strict=True))

    def check(times):
        found = strips.Tilted.spacing
        with monkeypatch.context() as patch:
            patch.setattr(strips.Tilted, "spacing", lambda *given: times * found(*given))
            other, error = schedule.schedule(parts).line(5.0, y)
        near = value.real > -50
        gap = (other - value)[near]
        gap = np.expm1(np.minimum(gap.real, 9.0) + 1j * gap.imag)
        at_most(np.abs(gap), 1.01 * (noise + error)[near])

    check(1.0)
    must_fail(check, 1.5)


def rare(n, sigma, rate, k):
    """Small rates, where lines are long: geometric between these ends."""
    ends = [np.geomspace(*x, n) for x in (sigma, rate, k)]
    steps = [SampledGaussian(*x) for x in zip(*(x.tolist() for x in ends[:2]), strict=True)]
    return list(zip(steps, ends[2].astype(int).tolist(), strict=True))


def at_the_ends(ends, sigma, power, height, need, angle):
    """log of how much larger than on the real line, or than allowed, the integrand is beside it."""
    log_weight, t, both = ends
    growth = 0.5 * min(power, 0.0) * np.log1p(-4 * both * np.sin(angle / 2) ** 2)
    phase = np.angle(1 + t * np.expm1(1j * angle))
    small = np.minimum(log_weight + need + strips.STEP, 0.0)
    return small + growth + height * phase + 0.5 * (sigma[:, None] * angle) ** 2


@pytest.mark.parametrize("power", [-90.0, -3.0, 4.0])
def test_a_step_down_is_bounded_at_all_smaller_angles(power):
    """In proportion to the angle: so that what bounds it at the top bounds all of the way."""
    rng = np.random.default_rng(31)
    sigma, n = 10 ** rng.uniform(-0.5, 0.5, 400), 400
    t = np.concatenate([rng.random((n, 1)), 10 ** rng.uniform(-6, 0, (n, 1))], axis=1)
    ends = rng.uniform(-90, -30, (n, 2)), t, t * (1 - t)
    block = strips.Tilted(np.arange(n), *ends, sigma, *np.zeros((3, n)), np.zeros((n, 2), int))
    heights, need = np.array([0.0, 3.0, 200.0]), rng.uniform(15, 60, (3, n))
    angle = rng.choice([0.03, 0.5, 1.5, shifted.ANGLE], n)
    down, still = block._down(ends, power, heights, need, angle)

    def check(down):
        for part in (0.003, 0.3, 0.6, 0.9, 0.99, 1.0):
            for j, height in enumerate(heights):
                given = ends, sigma, power, height, need[j][:, None], part * angle[:, None]
                at_most(at_the_ends(*given).max(axis=1), part * down[j], rtol=1e-10, atol=1e-9)

    check(down)
    must_fail(check, down - 1e-6 * np.abs(down))  # attained by shares above a half
    holds(still <= np.minimum(down, 0.0), "the part at no height is allowed")


@pytest.mark.parametrize("side", [1, -1])
def test_ends_of_windows_are_the_first_and_the_last_nodes_and_those_beside_gaps(side):
    whole, gaps = schedule.schedule(drawn("wild", 31, side=side)), 0
    for c in (2.0, 40.0, 3e3, 3e4):
        mesh = whole._mesh(c)
        for i in range(len(whole.k)):
            x, inside = mesh.points(np.array([i]))
            beside = np.flatnonzero(np.abs(np.diff(x[inside])) > 1.5 * mesh.spacing[i])
            expected = {0, int(inside.sum()) - 1, *beside.tolist(), *(beside + 1).tolist()}
            assert set(mesh.ends(np.array([i]))[0].tolist()) == expected
            gaps += len(beside)
    assert gaps > 3 or side < 0  # where the integrand has one peak


def test_where_windows_end_costs_few_nodes(monkeypatch):
    """Rates are small and lines long: a bound that asks for more than the strip does (it once
    allowed exp(-50) for each step, at heights where all others together leave exp(-30)) made such
    meshes up to half as fine again, and too dear."""

    def nodes(parts, c):
        whole, band = schedule.schedule(parts), 1.0
        while whole.ceiling(c)(band) > -33:
            band *= 1.5
        return whole._line_mesh(c, band)[0].count.sum()

    for parts, c in [
        (rare(24, (1.5, 5.0), (2e-6, 8e-5), (1, 1)), 28.0),
        (rare(8, (0.9, 1.2), (1e-5, 1e-4), (1e4, 1)), 10.0),
    ]:
        found = nodes(parts, c)
        with monkeypatch.context() as patch:
            patch.setattr(strips, "STEP", -1e9)  # all is allowed
            assert found <= 1.1 * nodes(parts, c)


def test_delta_at_zero_of_small_rates_is_sharp():
    """The truth is from plain sums over outcomes, in both directions: they share delta(0)."""
    for parts, true in [
        (rare(24, (1.5, 5.0), (2e-6, 8e-5), (1, 1)), 1.466866992e-5),
        (rare(20, (0.9, 1.2), (1e-6, 1e-4), (1e4, 1)), 2.2095411967e-4),
    ]:
        low, high = run_of(parts).delta_interval(0.0)
        at_most(low, true * (1 + 1e-7))
        at_most(true * (1 - 1e-7), high)
        at_most(high - low, 1e-7 * high)


@pytest.mark.parametrize("side", [1, -1])
def test_no_more_work_is_charged_than_there_are_nodes(monkeypatch, side):
    """A large tilt, whose nodes were counted beyond the end of all, once used up a whole query."""
    whole = schedule.schedule(
        [
            (step if side > 0 else step.flipped(), k)
            for step, k in rare(20, (0.9, 1.2), (1e-6, 1e-4), (1, 1))
        ]
    )
    charged, entries = [], []
    monkeypatch.setattr(rows, "spend", charged.append)
    measure, tilts = rows.derivatives, np.geomspace(1.0, 1e6, 28)

    def counted(law):
        entries.append(law.loss.size)
        return measure(law)

    whole._table(tilts, counted, whole._rough)
    at_most(sum(charged), rows.TABLE * len(tilts) * sum(entries))


@pytest.mark.parametrize("side", [1, -1])
def test_turns_on_long_meshes_are_left_to_the_steps(monkeypatch, side):
    parts = drawn("falling", 3, side=side)
    y = np.linspace(0.0, 40.0, 90)
    value, noise = schedule.schedule(parts).line(3.0, y)
    monkeypatch.setattr(schedule, "LONG", 150)
    mixed = schedule.schedule(parts)
    assert 0 < mixed._line_mesh(3.0, 40.0)[1].sum() < len(parts)
    other, error = mixed.line(3.0, y)
    holds(np.abs(other - value) <= noise + error, "the same within both bounds")
    assert mixed.work(3.0, 40.0) > 0


@pytest.mark.parametrize("power", [-3e5, -70.0, -2.0, -0.3, 0.2, 1.0, 3.0, 40.0, 3e3, 3e4])
def test_windows_are_those_of_single_steps(power):
    rng = np.random.default_rng(19)
    sigma, rate = 0.05 * 1000 ** rng.random(60), 0.999 * 10 ** rng.uniform(-8, 0, 60)
    low, high = windows.Windows(sigma, rate, power).spans()
    grid = windows.mesh((low, high), 0.4 * sigma, 1)
    for i in range(60):
        alone = Tilted(float(sigma[i]), float(rate[i]), power).spans()
        room = 0.3 * sigma[i] + 1e-9 * abs(power)
        equal([low[:, i].min(), high[:, i].max()], [alone[0][0], alone[-1][1]], atol=room)
        x, inside = grid.points(np.array([i]))
        x = x[inside]
        holds(np.diff(x) > 0, "each node once")
        edges = np.array(alone)
        held = ((x[:, None] > edges[:, 0] - 2 * room) & (x[:, None] < edges[:, 1] + 2 * room)).any(
            1
        )
        holds(held, "no node where nothing is")
        count = sum((b - a) / grid.spacing[i] for a, b in alone)
        assert abs(len(x) - count) <= 3 + 3 * len(alone) + 0.05 * count


def test_blocks_hold_each_step_once():
    count = np.random.default_rng(20).integers(10, 4000, 500).astype(float)
    found = windows.blocks(count, 20_000)
    equal(np.sort(np.concatenate(found)), np.arange(500))
    for steps in found:
        assert len(steps) == 1 or len(steps) * count[steps].max() <= 20_000
        assert count[steps].max() <= 1.2 * count[steps].min() + 4


# ---------------------------------------------------------------- an oracle


def log_sum(terms):
    return terms.max() + np.log(np.exp(terms - terms.max()).sum())


def oracle(parts, side, epsilon):
    """delta(epsilon) of one direction, to about 1e-12."""
    rounds = np.array([k for _, k in parts])
    laws = []
    for step, _ in parts:
        x = np.arange(-14 * step.sigma, 14 * step.sigma + 32, 0.02 * min(step.sigma, 1.0))
        log_q = -0.5 * (x / step.sigma) ** 2
        log_q -= np.log(np.exp(log_q).sum())
        loss = np.log1p(step.rate * np.expm1((x - 0.5) / step.sigma**2))
        laws.append((side * loss, log_q + loss if side > 0 else log_q))
    tilts = np.geomspace(0.05, 30, 60)
    total = sum(
        k * np.array([log_sum(log_p + c * loss) for c in tilts])
        for (loss, log_p), k in zip(laws, rounds, strict=True)
    )
    best = int(np.argmin(total - tilts * epsilon - np.log(tilts * (tilts + 1))))
    c, front = tilts[best], total[best] - tilts[best] * epsilon
    h = 2 * np.pi / (epsilon + 70 / c + 10)
    y, turned = h * np.arange(900), 1.0
    for (loss, log_p), k in zip(laws, rounds, strict=True):
        weights = np.exp(log_p + c * loss - log_sum(log_p + c * loss))
        heavy = weights > 1e-19 * weights.max()
        weights, loss = weights[heavy], loss[heavy]
        one, power = np.exp(1j * h * loss), weights.astype(complex)
        transform = np.empty(len(y), dtype=complex)
        for m in range(len(y)):
            transform[m] = power.sum()
            power *= one
        turned = turned * transform**k
    terms = (turned * np.exp(-1j * epsilon * y) / ((c + 1j * y) * (c + 1 + 1j * y))).real
    holds(np.abs(turned[-50:]) < 1e-13, "the line is long enough")
    return h / np.pi * np.exp(front) * (terms.sum() - 0.5 * terms[0])


@pytest.mark.parametrize("seed", [4, 5])
def test_an_oracle_that_shares_no_code(seed):
    rng = np.random.default_rng([21, seed])
    sigma, rate = rng.uniform(1.0, 1.6, 8), 10 ** rng.uniform(-1.2, -0.6, 8)
    k = rng.integers(20, 40, 8)
    steps = [SampledGaussian(*x) for x in zip(sigma.tolist(), rate.tolist(), strict=True)]
    parts, epsilon = list(zip(steps, k.tolist(), strict=True)), 4.0
    true = max(oracle(parts, side, epsilon) for side in (1, -1))

    def check(parts):
        low, high = run_of(parts).delta_interval(epsilon)
        at_most(low, true * (1 + 3e-11))
        at_most(true * (1 - 3e-11), high)
        at_most(high - low, 1e-10 * high)
        low, high = run_of(parts).epsilon_interval(true)
        at_most(low, epsilon * (1 + 1e-10))
        at_most(epsilon * (1 - 1e-10), high)

    check(parts)
    moved = SampledGaussian(steps[3].sigma, steps[3].rate * (1 + 1e-8))
    must_fail(check, [*parts[:3], (moved, parts[3][1]), *parts[4:]])


# ---------------------------------------------------------------- in a composition


def test_only_many_sampled_gaussians_are_joined():
    few, many = drawn("falling", 6, n=7), drawn("falling", 6, n=8)
    other = dp.laplace(3.0)._parts + dp.gaussian(2.0)._parts
    back = [(step.flipped(), k) for step, k in many]
    assert contour.grouped(tuple(few)) == tuple(few)
    assert contour.grouped(tuple(few) + other) == other + tuple(few)
    found = contour.grouped(tuple(many) + other)
    assert found[:2] == other and found[2][1] == 1
    assert found[2][0] is contour.grouped(tuple(many) + other)[2][0]  # kept
    both = contour.grouped(tuple(many + back))
    assert [step.side for step, _ in both] == [1, -1]


@pytest.mark.parametrize("beside", ["nothing", "gaussian", "laplace", "finite"])
@pytest.mark.parametrize("seed", range(2))
def test_joined_or_not_the_intervals_overlap(monkeypatch, beside, seed):
    parts = drawn(SHAPES[seed], 7, n=8)
    more = {
        "nothing": (),
        "gaussian": dp.gaussian(5.0)._parts,
        "laplace": dp.laplace(4.0)._parts,
        "finite": dp.finite([0.6, 0.3, 0.1], [0.5, 0.4, 0.1])._parts,
    }[beside]
    delta = (1e-6, 1 - 1e-3)[seed]
    run = PrivacyLoss([*parts, *more])
    found = run.epsilon_interval(delta), run.delta_interval(0.9 * run.epsilon(delta))
    contour.saddle_at.cache_clear()
    contour.saddle_for.cache_clear()
    monkeypatch.setattr(contour, "grouped", lambda parts: parts)
    alone = PrivacyLoss([*parts, *more])
    old = alone.epsilon_interval(delta), alone.delta_interval(0.9 * run.epsilon(delta))
    for (low, high), (least, most) in zip(found, old, strict=True):
        assert low <= most and least <= high
        assert high - low <= 2 * (most - least) + 1e-14 * high


def test_a_year_of_steps_is_sharp():
    sigma, rate = np.linspace(2.0, 0.8, 365), np.linspace(0.005, 0.02, 365)
    steps = [SampledGaussian(*x) for x in zip(sigma.tolist(), rate.tolist(), strict=True)]
    run = PrivacyLoss([(step, 1) for step in steps])
    low, high = run.epsilon_interval(1e-5)
    assert 1.870040374551 < low <= high < 1.870040374554
    low, high = run.delta_interval(high)
    assert low <= 1e-5 * (1 + 1e-10) and high >= 1e-5 * (1 - 1e-10)
    at_most(high - low, 1e-10 * high)


def test_a_direction_that_is_below_is_not_computed(monkeypatch):
    asked, delta = [], Direction.delta
    monkeypatch.setattr(Direction, "delta", lambda way, e: asked.append(way) or delta(way, e))
    run = dp.subsample(dp.gaussian(0.8), 0.01).compose(300)
    one, other = run._directions
    found = run.delta_interval(1.0)
    assert asked == [one]
    assert other.certainly_below(1.0, found[0]) and not other.certainly_below(1.0, 1e-200)
    assert delta(other, 1.0)[2] < found[0]
    assert not dp.randomized_response(1.0)._directions[0].certainly_below(0.1, 0.9)
    assert not Direction(dp.finite([0.5, 0.5], [1.0, 0.0])._parts).certainly_below(0.1, 0.9)
