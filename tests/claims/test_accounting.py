"""The claims of the chapter `accounting` and its appendix `jumps`: domination, inversion on a line,
aliases, the bounds on what is left out."""

from itertools import product

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import ndtr

import dpnotes as dp
from dpnotes.accountant import tilts
from evidence import at_most, claim, equal, holds, must_fail


def laws(seed, count=2000, size=5):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(size), (2, count)) * (1 - 1e-3) + 1e-3 / size


def moment(p, q, z):
    """M(z) = sum p^(1+z) q^(-z) at an array z of one more axis than the pairs."""
    loss = np.log(p / q)
    return (p[..., None, :] * np.exp(z[..., None] * loss[..., None, :])).sum(-1)


def sampled_moment(sigma, rate, z):
    """M(z) of the sampled Gaussian, an array z, by a sum over a fine grid of outcomes."""
    x, dx = np.linspace(-40 * sigma, 40 * sigma + 10, 4001, retstep=True)
    loss = np.log1p(rate * np.expm1((x - 0.5) / sigma**2))
    log_q = -0.5 * (x / sigma) ** 2 + np.log(dx / sigma / np.sqrt(2 * np.pi))
    return np.exp(log_q + np.multiply.outer(1 + z, loss)).sum(-1)


@claim("X-two-directions")
def test_one_function_serves_both_directions(rng):
    p, q = laws(1)
    epsilon = rng.uniform(-3, 3, 2000)
    z = rng.uniform(-4, 4, (2000, 3)) + 1j * rng.uniform(-9, 9, (2000, 3))

    def check(mirror, profile_of_the_other):
        left, right = moment(q, p, z), moment(p, q, mirror(z))
        scale = moment(q, p, z.real + 0j).real
        at_most(np.abs(left - right) / scale, 1e-11)
        other = profile_of_the_other(epsilon, dp.hockey_stick(p, q, -epsilon))
        equal(dp.hockey_stick(q, p, epsilon), other, rtol=1e-11, atol=1e-13)

    def other(epsilon, delta):
        return 1 - np.exp(epsilon) * (1 - delta)

    check(lambda z: -1 - z, other)
    must_fail(check, lambda z: 1 - z, other)
    must_fail(check, lambda z: -1 - z, lambda epsilon, delta: 1 - np.exp(-epsilon) * (1 - delta))
    c = np.linspace(0.05, 4, 40)
    for sigma, rate in ((0.8, 0.3), (2.0, 0.01), (1.0, 0.9)):  # renyi is the larger direction
        both = np.log([sampled_moment(sigma, rate, s) for s in (c, -1 - c)]) / c
        divergence = dp.subsample(dp.gaussian(sigma), rate).renyi(1 + c)
        equal(divergence, both.max(0), rtol=1e-10, atol=1e-12)


@claim("X-dominating-pair")
def test_dominating_pairs_compose_adaptively(rng):
    grid = np.linspace(-3, 3, 41)

    def check(bound):
        for _ in range(300):
            P, Q = rng.dirichlet(np.ones(3), (2, 2))  # P[i], Q[i]: the pair of step i
            first = rng.dirichlet(np.ones(4), 3)
            then = rng.dirichlet(np.ones(3), (4, 3))  # another kernel after each first output
            p, q = ((one @ first)[:, None] * (two @ then) for one, two in (P, Q))
            product = dp.hockey_stick(np.outer(*P).ravel(), np.outer(*Q).ravel(), grid)
            deltas = dp.hockey_stick(p.ravel(), q.ravel(), grid)
            at_most(deltas, bound(P, Q, product), atol=1e-14)

    check(lambda P, Q, product: product)
    must_fail(check, lambda P, Q, product: 0.95 * product)
    # the second step forgotten
    must_fail(check, lambda P, Q, product: dp.hockey_stick(P[0], Q[0], grid))


@claim("X-dominating-pair", of=1.0, wrong=[0.8])
def test_sampling_keeps_domination_for_any_mechanism_and_any_common_rows(share, rng):
    """`accounting-sampled`: N on the taken rows; what it publishes with and without the additional
    row is a random processing of one pair (A, B), another one for each set J of common rows."""
    grid = np.concatenate([np.linspace(-8, 8, 161), [np.log(0.7), 0.0]])
    for _ in range(300):
        A, B = rng.dirichlet(np.ones(3), 2)
        rate, J = rng.random() ** 2, rng.dirichlet(np.ones(4))
        processed = rng.dirichlet(np.full(5, 0.3), (4, 3))
        a, b = A @ processed, B @ processed  # for each J
        p, q = J @ ((1 - rate) * b + rate * a), J @ b
        P = (1 - share * rate) * B + share * rate * A
        at_most(dp.hockey_stick(p, q, grid), dp.hockey_stick(P, B, grid), atol=1e-14)
        at_most(dp.hockey_stick(q, p, grid), dp.hockey_stick(B, P, grid), atol=1e-14)
    epsilon = np.linspace(0, 2, 21)  # and `subsample` is this pair
    for _ in range(30):
        (A, B), rate = rng.dirichlet(np.ones(3), 2), rng.random()
        pair = dp.finite((1 - rate) * B + rate * A, B).delta(epsilon)
        equal(dp.subsample(dp.finite(A, B), rate).delta(epsilon), pair, rtol=1e-9, atol=1e-14)


class Lattice:
    """Random finite pairs with atoms and infinite losses both ways, losses multiples of `step`.

    On a line every sum over nodes is exact: with the period a multiple of `step`, exp(i h j s)
    depends on j modulo some N only, and the sum over one residue is a difference of cotangents.
    """

    def __init__(self, seed, step=0.25, size=4):
        rng = np.random.default_rng(seed)
        self.step, self.n = step, rng.choice(np.arange(-8, 13), size, replace=False)
        weight = rng.random(size) + 0.1
        ratio = np.exp(step * self.n)
        scale = rng.uniform(0.5, 0.98) / max(weight.sum(), weight @ ratio)
        self.p = scale * weight * ratio  # of the finite losses; the rest of p is where q = 0
        self.loss, self.infinite = step * self.n, 1 - self.p.sum()

    def finite_part(self, epsilon):
        """delta - P(L = inf), at an array epsilon."""
        return (self.p * -np.expm1(np.minimum(0, epsilon[..., None] - self.loss))).sum(-1)

    def gap(self, epsilon):
        """1 - delta."""
        return (self.p * np.exp(np.minimum(0, epsilon[..., None] - self.loss))).sum(-1)

    def trapezoid(self, c, shift, N, kernel=1.0):
        """The rule for epsilon = shift * step and the period N * step, all nodes."""
        period, r = N * self.step, np.arange(N)
        h = 2 * np.pi / period

        def all_nodes(a):  # sum over n of 1/(a + i h (r + n N)), symmetric
            return np.pi / (1j * h * N) / np.tan(np.pi * (a + 1j * h * r) / (1j * h * N))

        residues = all_nodes(c) - all_nodes(c + kernel)
        s = self.loss - shift * self.step
        waves = (self.p * np.exp((c + 1j * h * r[:, None]) * s)).sum(1)
        return float((residues * waves).sum().real) / period


@claim("X-contour-inversion")
def test_line_with_atoms_and_infinite_losses(rng):
    """QUADPACK's rule for oscillating integrals; epsilon at an atom, too."""

    def along(c, s):
        """1/(2 pi) times the integral of exp(zs)/(z(z+1)) over the line, by half of it."""

        def kernel(y):
            z = c + 1j * y
            return 1 / (z * (z + 1))

        def half(part, **how):
            return integrate.quad(lambda y: part(kernel(y)), 0, np.inf, **how)[0]

        if s == 0:
            value = half(np.real, epsabs=1e-12)
        else:  # of exp(iys) kernel the real part
            wave = {"wvar": abs(s), "limit": 200}
            value = half(np.real, weight="cos", **wave)
            value -= np.sign(s) * half(np.imag, weight="sin", **wave)
        return np.exp(c * s) * value / np.pi

    def check(seeds, infinite=1.0, shift=0.0):
        for seed in seeds:
            pair = Lattice(seed)
            c, gap = rng.uniform(0.3, 2), rng.uniform(-0.8, -0.2)
            for epsilon in (pair.loss[0], rng.uniform(-2, 3)):
                s, at = pair.loss - epsilon, np.array(epsilon)
                right = pair.p @ [along(c, x) for x in s]
                delta = float(pair.finite_part(at)) + pair.infinite
                equal(infinite * pair.infinite + right, delta, atol=1e-7)
                left = -(pair.p @ [along(gap + shift, x) for x in s])
                equal(left, float(pair.gap(at)), atol=1e-7)

    check(range(40))
    must_fail(check, range(3), infinite=0.0)
    must_fail(check, range(3), shift=1.0)  # the wrong side of the pole


@claim("X-trapezoid")
def test_aliases_with_atoms_and_infinite_losses(rng):
    m = np.arange(-900, 901)

    def check(seeds, sign=1.0, infinite=0.0, kernel=1.0):
        for seed in seeds:
            pair = Lattice(seed)
            c, gap = rng.uniform(0.3, 2), rng.uniform(-0.8, -0.2)
            N, shift = int(rng.integers(5, 40)), int(rng.integers(-8, 13))
            period, at = N * pair.step, shift * pair.step + N * pair.step * m
            near = np.abs(c * m * period) < 300
            rule = pair.trapezoid(c, shift, N, kernel)
            tail = pair.finite_part(at[near]) + infinite * pair.infinite
            size = pair.p @ np.exp(c * (pair.loss - shift * pair.step))  # of the terms
            value = (tail * np.exp(sign * c * m[near] * period)).sum()
            equal(rule, value, rtol=1e-10, atol=1e-13 * size)
            at_most(pair.finite_part(np.array(shift * pair.step)), rule, atol=1e-13 * size)
            rule = -pair.trapezoid(gap, shift, N, kernel)
            weight = np.exp(np.clip(gap * m * period, -700, 700))
            equal(rule, (pair.gap(at) * weight).sum(), rtol=1e-10)
            at_most(pair.gap(np.array(shift * pair.step)), rule, rtol=1e-10)

    check(range(300))
    must_fail(check, range(3), sign=0.9)
    must_fail(check, range(3), infinite=1.0)  # the right line does not see infinite losses
    must_fail(check, range(3), kernel=1.1)


@pytest.mark.slow
@claim("X-alias-bound")
def test_error_bound_on_the_left_line(rng):
    """Both directions of random finite pairs, M of the second one from that of the first."""
    p, q = laws(17, 1500)
    epsilon, period = rng.uniform(-2, 2, 1500), rng.uniform(1, 12, 1500)
    c = rng.uniform(-0.9, -0.1, 1500)
    a, b = -1 + (1 + c) * rng.random(1500), c * rng.random(1500)
    truths = 1 - dp.hockey_stick(p, q, epsilon), 1 - dp.hockey_stick(q, p, epsilon)
    moments = (lambda z: moment(p, q, z)), (lambda z: moment(p, q, -1 - z))

    def front(M, s, constant=0.0):
        return M(s[:, None] + 0j)[:, 0].real * np.exp(constant - s * epsilon)

    def chernoff(constant=0.0):
        for M, truth in zip(moments, truths, strict=True):
            for s in (a, b, np.zeros(1500), -np.ones(1500)):
                at_most(truth, front(M, s, constant), rtol=1e-11)

    chernoff()
    must_fail(chernoff, -0.1)
    equal(tilts.chernoff(np.linspace(-1, 0, 50)), 0.0)
    s = rng.uniform(0.01, 50, 4000)  # attained: the constant is the maximum, at exp(-x) = s/(s+1)
    at = np.log1p(1 / s)
    equal(-np.expm1(-at) * np.exp(-s * at), np.exp(tilts.chernoff(s)), rtol=1e-12)

    def enclosure(count, aliases=1.0, cut=1.0):
        for M, truth in zip(moments, truths, strict=True):
            y = 2 * np.pi / period[:, None] * np.arange(-count, count + 1)
            z = c[:, None] + 1j * y
            rule = -(M(z) * np.exp(-epsilon[:, None] * z) / (z * (z + 1))).sum(1).real / period
            rho_a, rho_b = np.exp(-(c - a) * period), np.exp(-(b - c) * period)
            excess = front(M, a) * rho_a / (1 - rho_a) + front(M, b) * rho_b / (1 - rho_b)
            left_out = cut * front(M, c) / (np.pi * y[:, -1])  # atoms: the supremum is M(c)
            at_most(truth - left_out, rule, atol=1e-14)
            at_most(rule, truth + aliases * excess + left_out, atol=1e-14)

    for count in (3, 30, 300):
        enclosure(count)
    must_fail(enclosure, 300, aliases=0.1)
    must_fail(enclosure, 3, cut=0.01)

    x = rng.uniform(0.05, 3, 1500)  # the right line of the exchanged pair
    for s in (x, 2 * x):
        bound = front(moments[1], s, tilts.chernoff(s))
        at_most(dp.hockey_stick(q, p, epsilon), bound, rtol=1e-11)


def lifted(sigma, rate, theta, x):
    """The integrand's log of phi, log |w| and arg w on the path x + i sigma^2 theta."""
    w = np.log(1 - rate + rate * np.exp((x - 0.5) / sigma**2 + 1j * theta))
    log_q = -0.5 * (x / sigma) ** 2 - np.log(sigma * np.sqrt(2 * np.pi))
    return log_q, w.real, w.imag


def test_the_rest_of_the_line_is_below_its_bound(rng):
    """`jumps-lift` at all real c: the right line, the left one, and the exchanged pair (c < -1)."""

    def check(cost, count=90):
        for _ in range(count):
            sigma, rate = rng.uniform(0.5, 4), 10 ** rng.uniform(-3, 0)
            c, theta = rng.uniform(-6, 6), rng.uniform(0.01, 1.5)
            x, dx = np.linspace(-20 * sigma - 8, 20 * sigma + 8, 3001, retstep=True)
            log_q, loss, _ = lifted(sigma, rate, 0.0, x)
            y = np.linspace(0, 30 * sigma, 40)
            terms = np.exp(log_q + (1 + c) * loss) * dx
            left = np.abs(np.exp(1j * np.multiply.outer(y, loss)) @ terms)
            _, modulus, argument = lifted(sigma, rate, theta, x)
            right = np.exp(log_q + (1 + c) * modulus - y[:, None] * argument).sum(1) * dx
            right = right * np.exp(cost * (sigma * theta) ** 2)
            at_most(left, right, rtol=1e-9, atol=1e-10 * left[0])
            holds(np.diff(right) <= 0)
            at_most(modulus, loss, atol=1e-12)
            at_most(loss + np.log(np.cos(theta / 2)), modulus, atol=1e-12)

    check(0.5)
    must_fail(check, 0.3)


def test_the_inner_sum_is_as_good_as_its_bound(rng):
    """`jumps-quadrature` at coarse steps, on both sides of c = -1."""

    def check(decay, count=400):
        for _ in range(count):
            sigma, rate = rng.uniform(0.4, 4), 10 ** rng.uniform(-3, 0)
            c, y = rng.uniform(-5, 5), rng.uniform(0, 3 / sigma)
            eta = sigma * min(1, sigma) * rng.uniform(0.7, 2)

            def value(step, c=c, y=y, sigma=sigma, rate=rate):
                x = np.arange(-20 * sigma - 8, 20 * sigma + 8, step)
                log_q, loss, _ = lifted(sigma, rate, 0.0, x)
                return step * np.exp(log_q + (1 + c + 1j * y) * loss).sum()

            fine = min(0.05 * sigma, 0.1 * sigma**2)
            theta = np.linspace(0.01, 3.13, 300)
            log = (sigma * theta) ** 2 / 2 + y * theta + min(0, 1 + c) * np.log(np.cos(theta / 2))
            bound = np.exp(log) * 2 / np.expm1(decay * np.pi * sigma**2 * theta / eta)
            whole = abs(np.exp(np.log(value(fine, y=0).real)))
            at_most(abs(value(eta) - value(fine)), whole * bound.min(), atol=1e-13 * whole)

    check(2.0)
    must_fail(check, 2.6)


def test_runs_are_sorted_by_their_largest_loss():
    """`jumps-telescope` for three rounds of random laws and any falling weights of outcomes."""
    rng, k, size, count = np.random.default_rng(9), 3, 3, 1200
    p, q = laws(10, count, size)
    loss, z = np.log(p / q), rng.uniform(0.2, 3, count) + 1j * rng.uniform(-9, 9, count)
    first = rng.random((count, size))
    shares = [np.ones((count, size)), first, first * rng.random((count, size))]
    a = [(p * s * np.exp(z[:, None] * loss)).sum(1) for s in shares]
    triples = list(product(range(size), repeat=k))
    weights = [np.array([s[:, t].prod(1) for t in map(list, triples)]) for s in shares]
    size = (p * np.exp(z.real[:, None] * loss)).sum(1) ** k  # all terms are at most that
    powers = np.array([(p * np.exp(z[:, None] * loss))[:, t].prod(1) for t in map(list, triples)])

    def check(weights):
        for n in range(2):
            weight, term = weights[n] - weights[n + 1], a[n] ** k - a[n + 1] ** k
            holds(weight >= 0, "a positive measure")
            at_most(abs((weight * powers).sum(0) - term) / size, 0.0, atol=1e-12)
            most = np.maximum(abs(a[n]), abs(a[n + 1])) ** (k - 1)
            at_most(abs(term) / size, k * abs(a[n] - a[n + 1]) * most / size, atol=1e-14)
            tilted = a[n] ** k * np.expm1(k * np.log1p(a[n + 1] / a[n] - 1))
            at_most(abs(tilted + term) / size, 0.0, atol=1e-12)

    check(weights)
    must_fail(check, [weights[0], weights[2], weights[1]])


def test_smooth_jump_off_the_real_line(rng):
    u, v = rng.uniform(-8, 8, 5000), rng.uniform(-3, 3, 5000)

    def check(exponent):
        at_most(np.abs(ndtr(u + 1j * v)), np.exp(exponent * v**2) * ndtr(u), rtol=1e-11)

    check(0.5)
    must_fail(check, 0.4)


@claim("X-pinch", of=(-5 / 32, 1 / 13), wrong=[(-5 / 33, 1 / 13), (-5 / 32, 1 / 14)])
def test_a_pinch_raises_delta_between_two_means(falls, bends, rng):
    """Random finite pairs, atoms at epsilon and next to it included, with pinches of all sizes; and
    the sums over nodes."""
    p, q = laws(24, 4000, 4)
    loss, eta = np.log(p / q), 10 ** rng.uniform(-3, 0, (4000, 1))
    beside = rng.choice([0, np.nan, 1], 4000) * rng.uniform(-4, 4, 4000) * eta[:, 0]
    epsilon = np.where(np.isnan(beside), rng.uniform(-1, 2, 4000), loss[:, 0] + beside)

    def weights(r, growth):
        return [0.5 + falls * r, growth - r / 2 + bends * r**2]

    gap, growth = epsilon[:, None] - loss, np.exp(eta**2 / 8)
    normal = p * stats.norm(eta**2 / 2, eta).pdf(gap)  # of the pinch's loss
    truth = dp.hockey_stick(p, q, epsilon)
    above = (p * dp.gaussian_delta(1 / eta, gap)).sum(1)  # a release follows each loss
    least, most = (eta[:, 0] ** 2 * (normal * w).sum(1) for w in weights((gap / eta) ** 2, growth))
    at_most(truth, above - least, atol=1e-13)
    at_most(above - most, truth, atol=1e-13)

    for n in np.flatnonzero(eta > 0.2)[:300]:
        period, c, m = rng.uniform(0.5, 6), rng.uniform(-0.9, 3), np.arange(-30, 31)[:, None]
        z = c + 2j * np.pi / period * np.arange(-60, 61)
        s, off = (eta[n] * (z + 0.5)) ** 2, gap[n] + m * period
        noise = np.exp(0.5 * eta[n] ** 2 * z * (z + 1) - epsilon[n] * z) * moment(p[n], q[n], z)
        kernels = 11 / 32 - 5 / 32 * s, growth[n] - 7 / 26 - s / 26 + s**2 / 13
        log_terms = stats.norm(eta[n] ** 2 / 2, eta[n]).logpdf(off) + c * m * period
        terms = p[n] * np.exp(log_terms)
        for weight, kernel in zip(weights((off / eta[n]) ** 2, growth[n]), kernels, strict=True):
            equal((noise * kernel).sum().real / period, (terms * weight).sum(), rtol=1e-8)


def test_a_lattice_needs_one_period(rng):
    """`jumps-lattice`: N nodes are the endless sum, on both lines."""
    for _ in range(300):
        d, count = rng.uniform(0.1, 2), int(rng.integers(3, 30))
        first, size = rng.uniform(-3, 0), int(rng.integers(2, 9))
        loss, p = first + d * np.arange(size), rng.dirichlet(np.ones(size))
        epsilon = rng.uniform(-2, 3)
        c = rng.choice([rng.uniform(0.1, 2), -rng.uniform(0.1, 0.9)])
        place = first + d * (np.floor((epsilon - first) / d) + 1)
        z = c + 2j * np.pi * np.arange(count) / (count * d)
        M = np.exp(np.multiply.outer(z, loss)) @ p

        kernel = 1 / (1 - np.exp(-d * z)) - np.exp(epsilon - place) / (1 - np.exp(-d * (z + 1)))
        folded = np.sign(c) * (M * np.exp(-place * z) * kernel).mean().real
        m = count * d * np.arange(-60, 61)
        gap = loss[:, None] - epsilon - m
        if c > 0:
            terms = np.exp(np.where(gap > 0, c * m, 0)) * -np.expm1(-gap.clip(0))
        else:
            terms = np.exp(np.minimum(-gap, 0) + c * m)
        endless = (p @ terms).sum()
        decay = min(abs(c), 1 + c) if c < 0 else c
        if 1e-3 < endless < 1e6 and decay * 60 * count * d > 60:
            equal(folded, endless, rtol=1e-8, atol=1e-10)
            must_fail(equal, 1.001 * folded, endless, rtol=1e-8, atol=1e-10)
