"""The claims of the chapter `accounting`: domination, inversion on a line, aliases, certificate."""

from math import comb, factorial

import numpy as np
import pytest
from scipy.special import ndtr

import dpnotes as dp
from dpnotes.accountant import contour
from evidence import at_most, equal, holds, must_fail


def laws(seed, count=2000, size=5):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(size), (2, count)) * (1 - 1e-3) + 1e-3 / size


def profile(p, q, epsilon):
    """delta at `epsilon` (of the shape of the pairs), straight from the definition."""
    return np.maximum(p - np.exp(epsilon)[..., None] * q, 0).sum(-1)


def moment(p, q, z):
    """M(z) = sum p^(1+z) q^(-z) at an array z of one more axis than the pairs."""
    loss = np.log(p / q)
    return (p[..., None, :] * np.exp(z[..., None] * loss[..., None, :])).sum(-1)


class Smoothed:
    """Random finite pairs followed by Gaussian noise of their own mu: closed delta and M."""

    def __init__(self, seed, count):
        rng = np.random.default_rng(seed)
        self.p, self.q = laws(seed, count, 4)
        self.mu = rng.uniform(0.6, 2.0, count)
        self.epsilon = rng.uniform(-1.0, 3.0, count)
        self.c = rng.uniform(0.2, 2.5, count)
        self.gap = rng.uniform(-0.85, -0.15, count)

    def part(self, first, last):
        """Some of the instances."""
        one = object.__new__(Smoothed)
        one.__dict__ = {name: value[first:last] for name, value in vars(self).items()}
        return one

    def delta(self, epsilon):
        """sum_i p_i delta_Gauss(epsilon - l_i), for epsilon with trailing axes."""
        shape = (-1,) + (1,) * (epsilon.ndim - 1)
        mu, total = self.mu.reshape(shape), 0.0
        for p, q in zip(self.p.T, self.q.T, strict=True):
            e = epsilon - np.log(p / q).reshape(shape)
            gauss = ndtr(mu / 2 - e / mu) - np.exp(e) * ndtr(-mu / 2 - e / mu)
            total = total + p.reshape(shape) * gauss
        return total

    def terms(self, c, period, epsilon, count=400, kernel=lambda z: z * (z + 1)):
        """M(z) exp(-epsilon z)/(z(z+1)) at the nodes z = c + 2 pi i j/period, |j| <= count."""
        y = 2 * np.pi / period[:, None] * np.arange(-count, count + 1)
        z = c[:, None] + 1j * y
        K = 0.5 * self.mu[:, None] ** 2 * z * (z + 1) - epsilon[:, None] * z
        return moment(self.p, self.q, z) * np.exp(K) / kernel(z)


@pytest.mark.claim("X-two-directions", by=("losses.finite", "losses.subsample"))
def test_one_function_serves_both_directions():
    rng = np.random.default_rng(1)
    p, q = laws(1)
    epsilon = rng.uniform(-3, 3, 2000)
    z = rng.uniform(-4, 4, (2000, 3)) + 1j * rng.uniform(-9, 9, (2000, 3))

    def check(mirror, profile_of_the_other):
        left, right = moment(q, p, z), moment(p, q, mirror(z))
        scale = moment(q, p, z.real + 0j).real
        at_most(np.abs(left - right) / scale, 1e-11)
        other = profile_of_the_other(epsilon, profile(p, q, -epsilon))
        equal(profile(q, p, epsilon), other, rtol=1e-11, atol=1e-13)

    def other(epsilon, delta):
        return 1 - np.exp(epsilon) * (1 - delta)

    check(lambda z: -1 - z, other)
    must_fail(check, lambda z: 1 - z, other)
    must_fail(check, lambda z: -1 - z, lambda epsilon, delta: 1 - np.exp(-epsilon) * (1 - delta))
    for sigma, rate in ((0.8, 0.3), (2.0, 0.01), (1.0, 0.9)):
        first, second = dp.subsample(dp.gaussian(sigma), rate)._directions
        c = np.linspace(0.05, 4, 40)
        equal(contour.total(second.parts, c), contour.total(first.parts, -1 - c), atol=1e-13)


@pytest.mark.claim("X-dominating-pair", by=("losses.finite",))
def test_dominating_pairs_compose_adaptively_and_attain_their_product():
    rng = np.random.default_rng(2)
    grid = np.linspace(-3, 3, 41)

    def curve(p, q):
        return np.maximum(p.ravel() - np.exp(grid)[:, None] * q.ravel(), 0).sum(-1)

    def instance(strict):
        P, Q = rng.dirichlet(np.ones(3), (2, 2))  # P[i], Q[i]: the pair of step i
        first = rng.dirichlet(np.ones(4), 3)
        then = rng.dirichlet(np.ones(3), (4, 3))  # another kernel after each first output
        p1, q1 = P[0] @ first, Q[0] @ first
        p2, q2 = P[1] @ then, Q[1] @ then
        joint = curve(p1[:, None] * p2, q1[:, None] * q2)
        product = curve(np.multiply.outer(P[0], P[1]), np.multiply.outer(Q[0], Q[1]))
        return joint, strict(P, Q, product)

    def check(bound):
        for _ in range(300):
            at_most(*instance(bound), atol=1e-14)

    check(lambda P, Q, product: product)
    must_fail(check, lambda P, Q, product: 0.95 * product)
    must_fail(check, lambda P, Q, product: curve(P[0], Q[0]))  # the second step forgotten
    for _ in range(40):  # attained: the accountant reports the worse direction of the product
        p, q = rng.dirichlet(np.ones(3), 2)
        pp, qq = np.multiply.outer(p, p), np.multiply.outer(q, q)
        both = np.maximum(curve(pp, qq), curve(qq, pp))[20:]
        equal(dp.finite(p, q).compose(2).delta(grid[20:]), both, rtol=1e-9, atol=1e-14)


@pytest.mark.claim("X-contour-inversion", by=("losses.gaussian", "losses.finite"))
def test_the_integral_along_a_line_is_the_curve():
    case = Smoothed(3, 600)
    truth = case.delta(case.epsilon[:, None])[:, 0]

    def check(kernel=lambda z: z * (z + 1)):
        for part in (0, 200, 400):
            sub = case.part(part, part + 200)
            c, gap = sub.c, sub.gap
            long = 60 / np.minimum(c, 1)
            right = sub.terms(c, long, sub.epsilon, 900, kernel).sum(1).real / long
            equal(right, truth[part : part + 200], rtol=1e-8, atol=1e-11)
            long = 40 / np.minimum(-gap, 1 + gap)
            left = -sub.terms(gap, long, sub.epsilon, 1500, kernel).sum(1).real / long
            equal(left, 1 - truth[part : part + 200], rtol=1e-8, atol=1e-11)

    check()
    must_fail(check, lambda z: z * z)
    must_fail(check, lambda z: z * (z - 1))


@pytest.mark.claim("X-trapezoid", by=("losses.gaussian", "losses.finite"))
def test_the_trapezoid_rule_is_the_sum_of_all_aliases():
    case = Smoothed(4, 1500)
    period = np.random.default_rng(5).uniform(2.0, 4.0, 1500)
    m = np.arange(-200, 201)
    shifted = case.epsilon[:, None] + m * period[:, None]

    def check(sign=1.0, half=1.0):
        rule = case.terms(case.c, period, case.epsilon).real
        rule[:, 400] *= half
        weight = np.exp(np.minimum(sign * case.c[:, None] * m * period[:, None], 300))
        near = np.abs(shifted) < 60  # beyond, delta exp(cx) is below 1e-300 or exp(-60 c) ~ 1e-6
        value = np.where(near, case.delta(np.clip(shifted, -60, 60)) * weight, 0.0)
        below = shifted < -60  # there delta(x) = 1 - exp(x) E exp(-L) + ... = 1 up to 1e-26
        value = np.where(below, weight, value)
        equal(rule.sum(1) / period, value.sum(1), rtol=1e-9)
        at_most(case.delta(case.epsilon[:, None])[:, 0], rule.sum(1) / period, rtol=1e-9)

    check()
    must_fail(check, sign=0.9)
    must_fail(check, half=0.5)

    def gap(kernel_sign):
        rule = kernel_sign * case.terms(case.gap, period, case.epsilon).real.sum(1) / period
        weight = np.exp(np.minimum(case.gap[:, None] * m * period[:, None], 690))
        other = profile_complement(case, shifted)
        equal(rule, (other * weight).sum(1), rtol=1e-8)

    gap(-1.0)
    must_fail(gap, 1.0)


def profile_complement(case, epsilon):
    """1 - delta = E min(1, e^(epsilon - L)) without cancellation at very negative epsilon."""
    mu, total = case.mu[:, None], 0.0
    for p, q in zip(case.p.T, case.q.T, strict=True):
        e = epsilon - np.log(p / q)[:, None]
        low, high = ndtr(-mu / 2 + e / mu), ndtr(-mu / 2 - e / mu)
        high = np.where(high > 0, np.exp(np.minimum(e, 300)) * high, 0)
        total = total + p[:, None] * (low + high)
    return total


@pytest.mark.claim("X-alias-bound", by=("accountant.contour.chernoff",))
def test_the_certificate_holds_with_atoms_and_without():
    rng = np.random.default_rng(6)
    p, q = laws(7, 1500)
    c, epsilon = rng.uniform(0.3, 3, 1500), rng.uniform(0, 1, 1500)
    period, a, b = rng.uniform(2, 12, 1500), c * rng.random(1500), c * rng.uniform(1.05, 3, 1500)
    truth = profile(p, q, epsilon)

    def front(s, constant):
        return moment(p, q, s[:, None] + 0j)[:, 0].real * np.exp(constant(s) - s * epsilon)

    def chernoff(constant=contour.chernoff):
        at_most(truth, front(a, constant))
        at_most(truth, front(b, constant))

    chernoff()
    must_fail(chernoff, lambda s: contour.chernoff(s) - 1)
    s = rng.uniform(0.01, 50, 4000)  # attained: the constant is the maximum, at exp(-x) = s/(s+1)
    x = np.log1p(1 / s)
    equal(-np.expm1(-x) * np.exp(-s * x), np.exp(contour.chernoff(s)), rtol=1e-12)

    def enclosure(count, aliases=1.0, cut=1.0):
        y = 2 * np.pi / period[:, None] * np.arange(-count, count + 1)
        z = c[:, None] + 1j * y
        f = moment(p, q, z) * np.exp(-epsilon[:, None] * z) / (z * (z + 1))
        rule, height = f.sum(1).real / period, y[:, -1]
        rho_a, rho_b = np.exp(-(c - a) * period), np.exp(-(b - c) * period)
        excess = front(a, contour.chernoff) * rho_a / (1 - rho_a)
        excess += front(b, contour.chernoff) * rho_b / (1 - rho_b)
        largest = moment(p, q, c[:, None] + 0j)[:, 0].real  # atoms: the supremum is M(c)
        left_out = cut * largest * np.exp(-c * epsilon) / (np.pi * height)
        at_most(truth - left_out, rule, atol=1e-14)
        at_most(rule, truth + aliases * excess + left_out, atol=1e-14)

    for count in (3, 30, 300):
        enclosure(count)
    must_fail(enclosure, 300, aliases=0.01)
    must_fail(enclosure, 3, cut=0.01)


def test_the_rest_of_the_line_is_below_its_bound():
    rng = np.random.default_rng(8)
    for _ in range(60):
        sigma, rate = rng.uniform(0.5, 4), 10 ** rng.uniform(-3, 0)
        c, theta = rng.uniform(0.5, 6), rng.uniform(0.01, 1.5)
        x, dx = np.linspace(-14 * sigma, 16 * sigma + 8, 8001, retstep=True)
        u, q = (x - 0.5) / sigma**2, np.exp(-0.5 * (x / sigma) ** 2)
        q *= dx / sigma / np.sqrt(2 * np.pi)
        y = np.linspace(0, 30 * sigma, 40)
        loss = np.log1p(rate * np.expm1(u))
        left = np.abs((q * np.exp((1 + c + 1j * y[:, None]) * loss)).sum(1))
        w = np.log(1 - rate + rate * np.exp(u + 1j * theta))
        right = (q * np.exp((1 + c) * w.real - y[:, None] * w.imag)).sum(1)
        right = right * np.exp(0.5 * (sigma * theta) ** 2)
        at_most(left, right, rtol=1e-9, atol=1e-10 * left[0])
        holds(np.diff(right) <= 0)


def test_jumps_are_counted():
    """Three rounds of random pairs whose outcomes jump with random probabilities, then noise."""
    rng, k, size, count = np.random.default_rng(9), 3, 3, 1200
    p, q = laws(10, count, size)
    jump = rng.random((count, size)) ** 3
    c, epsilon = rng.uniform(0.3, 2, count), rng.uniform(0, 1, count)
    period, mu = rng.uniform(4, 12, count), rng.uniform(0.8, 2.0, count)
    loss = np.log(p / q)

    def gauss(e):
        m = mu[:, None]
        return ndtr(m / 2 - e / m) - np.exp(e) * ndtr(-m / 2 - e / m)

    def exact(j):
        """delta_j, outcome by outcome: every triple, every way in which j of the three jump."""
        total = np.zeros(count)
        for triple in np.ndindex(*[size] * k):
            given = gauss(epsilon[:, None] - loss[:, list(triple)].sum(1, keepdims=True))[:, 0]
            for jumped in np.ndindex(*[2] * k):
                if sum(jumped) == j:
                    shares = [
                        jump[:, x] if flag else 1 - jump[:, x]
                        for x, flag in zip(triple, jumped, strict=True)
                    ]
                    total += given * np.prod(p[:, list(triple)].T * shares, axis=0)
        return total

    def moments(z, j, ways):
        F, J = (
            (p[:, None] * share[:, None] * np.exp(z[..., None] * loss[:, None])).sum(-1)
            for share in (1 - jump, jump)
        )
        return ways * F ** (k - j) * J**j * np.exp(0.5 * mu[:, None] ** 2 * z * (z + 1))

    def on_its_line(j, ways, aliases=1.0):
        y = 2 * np.pi / period[:, None] * np.arange(-200, 201)
        z = c[:, None] + 1j * y
        terms = moments(z, j, ways) * np.exp(-epsilon[:, None] * z) / (z * (z + 1))
        rule, excess = terms.sum(1).real / period, 0.0
        for rival in (0.5 * c, 1.5 * c):
            front = moments(rival[:, None] + 0j, j, ways)[:, 0].real
            front = front * np.exp(contour.chernoff(rival) - rival * epsilon)
            rho = np.exp(-np.abs(rival - c) * period)
            excess = excess + front * rho / (1 - rho)
        at_most(exact(j), rule, atol=1e-13)
        at_most(rule, exact(j) + aliases * excess, atol=1e-13)

    parts = [exact(j) for j in range(k + 1)]
    whole = [moments(c[:, None] + 0j, j, comb(k, j))[:, 0].real for j in range(k + 1)]
    M = moment(p, q, c[:, None] + 0j)[:, 0].real ** k * np.exp(0.5 * mu**2 * c * (c + 1))
    equal(sum(whole), M, rtol=1e-12)
    eta = (p * jump).sum(1)
    for j in range(k + 1):
        on_its_line(j, comb(k, j))
        at_most(sum(parts[j + 1 :], np.zeros(count)), (k * eta) ** (j + 1) / factorial(j + 1))
    must_fail(on_its_line, 1, 1)
    must_fail(on_its_line, 1, comb(k, 1), aliases=0.01)


def test_a_smooth_jump_grows_like_its_noise_off_the_real_line():
    rng = np.random.default_rng(11)
    u, v = rng.uniform(-8, 8, 5000), rng.uniform(-3, 3, 5000)

    def check(exponent):
        at_most(np.abs(ndtr(u + 1j * v)), np.exp(exponent * v**2) * ndtr(u), rtol=1e-11)

    check(0.5)
    must_fail(check, 0.4)
