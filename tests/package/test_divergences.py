"""Divergences against closed forms, other formulas and extreme parameters."""

import mpmath
import numpy as np
import pytest
from scipy.special import rel_entr
from scipy.stats import laplace, norm

import dpnotes as dp
from evidence import at_most, equal, must_fail
from strategies import close_laws


def test_nearly_equal_laws_keep_their_relative_precision():
    def check(kl):
        h = np.geomspace(1e-12, 0.4, 30)
        p = np.stack([0.5 + h, 0.5 - h], -1)
        gap = (p[:, 0] - p[:, 1]) / 2  # what rounding left of h
        exact = 4 * gap * np.arctanh(2 * gap)
        equal(kl(p, p[:, ::-1]), exact, rtol=1e-9)

    check(dp.kl)
    check(lambda p, q: dp.renyi_divergence(p, q, 1 + 1e-12))
    must_fail(check, lambda p, q: rel_entr(p, q).sum(-1))
    p, q = close_laws(np.random.default_rng(1), 1e-8, 5, 100)
    at_most(dp.max_divergence(p, q), 1e-8, rtol=1e-6)
    at_most(dp.kl(p, q), 1e-16 / 2, rtol=1e-6)


def test_supports_that_differ():
    one, both = np.array([1.0, 0.0]), np.array([0.5, 0.5])
    equal(dp.kl(one, both), np.log(2))
    assert dp.kl(both, one) == dp.max_divergence(both, one) == np.inf
    orders = dp.renyi_divergence(both, one, [0.0, 0.3, 1.0, 2.0])
    equal(orders, [0.0, 0.3 * np.log(2) / 0.7, np.inf, np.inf])
    equal(dp.renyi_divergence(one, 1 - one, [0.0, 0.5, 1.0, np.inf]), np.inf)
    approximate = dp.approximate_max_divergence(both, one, [0.4, 0.5, 0.75])
    equal(approximate, [np.inf, np.log(0.5), np.log(0.25)])
    assert dp.approximate_max_divergence(both, one, 1.0) == -np.inf
    equal(dp.tradeoff(both, one, [0.0, 0.25, 0.5, 1.0]), [1.0, 0.5, 0.0, 0.0])
    equal(dp.tradeoff(one, both, [0.0, 0.5, 1.0]), [0.5, 0.25, 0.0])


def test_extreme_parameters_stay_finite_and_exact():
    p, q = np.array([1 - 1e-300, 1e-300]), np.array([1e-300, 1 - 1e-300])
    equal(dp.max_divergence(p, q), 300 * np.log(10))
    equal(dp.renyi_divergence(p, q, [1e4, 1e8]), 300 * np.log(10), rtol=1e-3)
    equal(dp.kl(p, q), 300 * np.log(10))
    ends = [1.0, 1.0, 1 - np.exp(690 - 300 * np.log(10)), 0.0]
    equal(dp.hockey_stick(p, q, [-1e4, 0.0, 690.0, 1e4]), ends, rtol=1e-9)
    tiny = np.array([1 - 1e-290, 1e-290])
    equal(dp.hockey_stick(tiny, np.array([1.0, 0.0]), 1e4), 1e-290)


def test_parameters_broadcast_against_leading_axes():
    rng = np.random.default_rng(2)
    p, q = rng.dirichlet(np.ones(4), (2, 3, 5))
    assert dp.kl(p, q).shape == (3, 5)
    assert dp.hockey_stick(p, q, np.zeros((7, 1, 1))).shape == (7, 3, 5)
    assert dp.renyi_divergence(p, q, 2.0).shape == (3, 5)
    assert dp.renyi_divergence(p[0, 0], q[0, 0], np.array([0.5, 2.0, np.inf])).shape == (3,)
    assert dp.tradeoff(p, q[0, 0], 0.1).shape == (3, 5)
    one = p[0, 0], q[0, 0]
    for value in (dp.kl(*one), dp.hockey_stick(*one, 1), dp.tradeoff(*one, 0)):
        assert type(value) is float


def test_densities_by_quadrature():
    epsilon = np.array([0.0, 0.3, 1.0])
    for b in (0.5, 2.0):
        # the integrand has a kink where the log ratio crosses epsilon: make it an edge
        for e in epsilon[epsilon < 1 / b]:
            edges = np.unique(np.r_[np.linspace(-40 * b, 1 + 40 * b, 100), 0, (1 - b * e) / 2, 1])
            p, q = dp.density_laws(laplace(0, b).logpdf, laplace(1, b).logpdf, edges)
            equal(dp.hockey_stick(p, q, e), -np.expm1((e - 1 / b) / 2), rtol=1e-10)
        equal(dp.kl(p, q), 1 / b + np.expm1(-1 / b), rtol=1e-10)
    p, q = dp.density_laws(norm(0, 2).logpdf, norm(1, 2).logpdf, np.linspace(-60, 60, 60))
    alpha = np.array([0.25, 0.5, 1.0, 2.0, 10.0])
    equal(dp.renyi_divergence(p, q, alpha), alpha / 8, rtol=1e-9)
    with pytest.raises(ValueError, match="p must be probabilities"):
        dp.kl(*dp.density_laws(norm(0, 2).logpdf, norm(1, 2).logpdf, [-2, 2]))


def test_renyi_keeps_its_precision_where_one_rare_outcome_speaks_loudly():
    # nearly equal laws, but for an outcome of mass 1e-12 against 1e-100
    mpmath.mp.dps = 60
    p, q = np.array([0.5, 0.5 - 1e-12, 1e-12]), np.array([0.5 - 1e-9, 0.5 + 1e-9, 1e-100])
    p[1], q[1] = 1 - p[0] - p[2], 1 - q[0]
    for alpha in (0.6, 0.999, 1.001, 1.02):
        order = mpmath.mpf(alpha)
        above = mpmath.mpf(0)  # sum p^a q^(1-a) - 1, with the laws' rounded sums taken out
        for x, y in zip(map(mpmath.mpf, p.tolist()), map(mpmath.mpf, q.tolist()), strict=True):
            above += x**order * y ** (1 - order) - order * x - (1 - order) * y
        true = float(mpmath.log1p(above) / (order - 1))
        equal(dp.renyi_divergence(p, q, alpha), true, rtol=1e-12)


@pytest.mark.parametrize("alpha", [5e-324, 1e-100, 1e-16, 1e-14, 1e-10, 1e-5, 0.3])
@pytest.mark.parametrize("q", [[0.25, 0.25, 0.5], [0.4375, 0.4375, 0.125], [0.5, 0.5, 0.0]])
@pytest.mark.parametrize("p", [[0.5, 0.25, 0.25], [0.5, 0.5, 0.0]])
def test_small_orders(p, q, alpha):
    """Also where q has mass that p has not: there the mirrored order loses digits."""
    with mpmath.workdps(60):
        a, pairs = mpmath.mpf(alpha), [(x, y) for x, y in zip(p, q, strict=True) if x and y]
        true = mpmath.log(sum(mpmath.mpf(x) ** a * mpmath.mpf(y) ** (1 - a) for x, y in pairs))
        assert dp.renyi_divergence(p, q, alpha) == pytest.approx(float(true / (a - 1)), rel=1e-12)
