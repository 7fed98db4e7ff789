"""The claims that a proof stands on, of the chapter `accounting` in its appendix `jumps`."""

import numpy as np
import pytest
from scipy.special import erf, ndtr
from scipy.stats import binom
from test_accounting import lifted

import dpnotes as dp
from evidence import at_most, claim, equal, holds, must_fail


@claim("X-lifted-sum")
def test_the_lifted_sum_is_as_good_as_its_bound(rng):
    """With coarse nodes, so that the error is seen, at heights up to 150."""

    def check(decay, count=400):
        for _ in range(count):
            sigma, rate = rng.uniform(0.5, 3), 10 ** rng.uniform(-3, -0.05)
            n, y, theta = rng.uniform(-8, 8), rng.uniform(0, 150), rng.uniform(0.02, 1.5)
            eta = sigma * min(1, sigma) * rng.uniform(0.4, 2)

            def value(step, angle=theta, y=y, n=n, sigma=sigma, rate=rate):
                x = np.arange(-20 * sigma - 9, 20 * sigma + 9, step)
                log_q, loss, phase = lifted(sigma, rate, angle, x)
                return step * np.exp(log_q + n * loss - y * phase).sum()

            fine = min(0.05 * sigma, 0.1 * sigma**2)
            psi = np.linspace(0.01, 3.1, 300)
            psi = psi[(psi + theta <= np.pi / 2) | ((psi <= theta) & (psi + theta < np.pi))]
            both = np.cos((theta + psi) / 2) * np.cos((theta - psi) / 2)
            log = (sigma * psi) ** 2 / 2 + min(0, n) / 2 * np.log(both)
            gain = decay * np.pi * sigma**2 * psi / eta
            whole = value(fine, angle=0.0)
            bound = whole * 2 * np.exp(log - gain) / -np.expm1(-gain)
            at_most(abs(value(eta) - value(fine)), bound.min(), atol=1e-12 * whole)

    check(2.0)
    must_fail(check, 3.5)


def profile(mu, epsilon):
    """delta of Gaussian noise at any real epsilon."""
    return ndtr(mu / 2 - epsilon / mu) - np.exp(epsilon) * ndtr(-mu / 2 - epsilon / mu)


def geometric(c, epsilon, period, first):
    """The lower bound of X-left-aliases, of a finite loss."""
    one = np.exp(-c * first * period) / (1 - np.exp(-c * period))
    return one - np.exp(epsilon - (c + 1) * first * period) / (1 - np.exp(-(c + 1) * period))


@claim("X-left-aliases")
def test_what_left_aliases_add(rng):
    """For Gaussian noise, by its curve at negative epsilon, and any first alias that counts."""

    def check(bound, count=400):
        for _ in range(count):
            mu, c, period = rng.uniform(0.2, 2), rng.uniform(0.3, 8), rng.uniform(0.3, 4)
            epsilon, first = rng.uniform(0, 3), int(rng.integers(1, 5))
            m = np.arange(1, 400)
            aliases = (profile(mu, epsilon - m * period) * np.exp(-c * m * period)).sum()
            at_most(bound(c, epsilon, period, first), aliases, atol=1e-13)

    check(geometric)
    must_fail(check, lambda c, e, period, first: geometric(c, 0.9 * e, period, first))


@claim("X-proof")
def test_a_short_sum_is_above_delta(rng):
    """For Gaussian noise, on lines of all kinds: good ones, and far too short ones."""

    def check(aliases, cut, count=600):
        for _ in range(count):
            mu, epsilon = rng.uniform(0.3, 2), rng.uniform(0, 4)
            c = rng.uniform(0.3, 2) * (epsilon / mu**2 + 0.5)
            period, last = rng.uniform(0.5, 12), int(rng.integers(1, 60))
            h, first = 2 * np.pi / period, max(1, int(np.ceil(epsilon / period)))
            z = c + 1j * h * np.arange(-last, last + 1)
            terms = np.exp(mu**2 * z * (z + 1) / 2 - epsilon * z) / (z * (z + 1))
            top = h * (last + 1)
            rest = mu**2 * (c * (c + 1) - top**2) / 2 - c * epsilon
            bound = h / (2 * np.pi) * terms.sum().real
            bound += cut * np.exp(rest) / (np.pi * h * last)
            bound -= aliases * geometric(c, epsilon, period, first)
            size = np.abs(terms).sum() * h
            at_most(profile(mu, epsilon), bound, atol=1e-14 * size)

    check(1.0, 1.0)
    must_fail(check, 1.1, 1.0)
    must_fail(check, 1.0, 0.0)


def laplace_parts(a, z):
    """The parts of the M of one round: of its two ends, and of its density."""
    up, down = np.exp(a * z), np.exp(-a * (1 + z))
    return (up + down) / 2, (up - down) / (2 * (1 + 2 * z))


@claim("X-proof-atoms")
def test_atoms_are_listed_and_a_line_is_above_the_rest(rng):
    """For Laplace noise, whose true delta is an integral over the sums of its losses."""

    def check(listed, aliases, cut, count=60):
        for _ in range(count):
            a, k, epsilon = rng.uniform(0.2, 2), int(rng.integers(2, 6)), rng.uniform(0, 1)
            epsilon *= 0.9 * k * a
            truth = dp.laplace(1 / a).compose(k).delta_interval(epsilon)
            c = rng.uniform(0.5, 4)
            period, last = rng.uniform(0.5, 12), int(rng.integers(1, 60))
            h, first = 2 * np.pi / period, max(1, int(np.ceil(epsilon / period)))
            z, top = c + 1j * h * np.arange(-last, last + 1), h * (last + 1)
            ends, inner = laplace_parts(a, z)
            terms = ((ends + inner) ** k - ends**k) * np.exp(-epsilon * z) / (z * (z + 1))
            high = np.arange(k + 1)  # how many rounds are at the upper end
            chance = binom.pmf(high, k, 1 / (1 + np.exp(-a))) * ((1 + np.exp(-a)) / 2) ** k
            loss = a * (2 * high - k)
            bound = listed * (chance * np.maximum(1 - np.exp(epsilon - loss), 0)).sum()
            bound += h / (2 * np.pi) * terms.sum().real
            bound -= aliases * (1 - chance.sum()) * geometric(c, epsilon, period, first)
            rest = laplace_parts(a, c)[0] ** k * np.exp(-c * epsilon) * top
            bound += cut * ((1 + 1 / (2 * top)) ** k - 1) * rest / (2 * np.pi * h**2 * last**2)
            at_most(truth[0], bound, atol=1e-14 * np.abs(terms).sum() * h)

    check(1.0, 1.0, 1.0)
    must_fail(check, 0.9, 1.0, 1.0)
    must_fail(check, 1.0, 1.1, 1.0)
    must_fail(check, 1.0, 1.0, 0.0)


def turned_half(sigma, rate, angle, t):
    """f, and log of w, at nodes that are turned by an angle."""
    turn = np.exp(t + 1j * angle)
    out = np.log1p(turn)
    log_f = t + 1j * angle - out - (0.5 / sigma + out) ** 2 / 2 - np.log(2 * np.pi) / 2
    return np.exp(log_f), np.log(1 - rate + rate * np.exp(out / sigma))


@claim("X-proof-substitution")
def test_halves_under_substitution(rng):
    """M by the accountant's Renyi curve; the four parts on coarse nodes, at heights up to 100."""

    def check(still, more, decay, rise, count=200):
        for _ in range(count):
            sigma, rate = 10 ** rng.uniform(-0.4, 1), 10 ** rng.uniform(-2, -0.02)
            most = np.pi / 2 * min(1, sigma)
            c, y = rng.uniform(0.2, 3) * most**2, rng.uniform(0, 100)
            theta, eta = most * rng.uniform(0.02, 1), most * rng.uniform(0.3, 2)
            psi = np.linspace(0.01, 1, 200) * most
            fine = np.arange(-42, 14 + (1 + c) / sigma, 0.05 * most / (1 + y / 10))
            coarse = np.arange(-42, 14 + (1 + c) / sigma, eta)

            def log_k(angle, m=0.5 / sigma):
                lift = 2 / np.e * np.tan(angle / 2) ** 2 - (1 + m) * np.log(np.cos(angle / 2))
                return angle**2 / 2 + more * lift

            def off(lift, psi=psi, eta=eta):
                gain = decay * np.pi * psi / eta
                return 2 * np.exp(lift - gain) / -np.expm1(-gain)

            whole = still * (1 - rate) * erf(1 / np.sqrt(8) / sigma)
            for n in (1 + c, -c):
                sums = []
                for t in (fine, coarse):
                    (f, w), (g, v) = (turned_half(sigma, rate, a, t) for a in (0.0, theta))
                    f, w, g = f.real, w.real, abs(g)
                    size = g * np.exp(n * v.real)
                    at_most(size, np.exp(log_k(theta)) * f * np.exp(max(n, 0) * w), rtol=1e-9)
                    holds(v.imag >= 0, "the phase")
                    terms = f * np.exp(n * w), f * np.exp((n + 1j * y) * w)
                    lifted = size * np.exp(-y * v.imag)
                    sums.append([(t[1] - t[0]) * x.sum() for x in (*terms, lifted)])
                (real, turned, lift), (_, other, rough) = sums
                whole, g = whole + real, real if n > 0 else ndtr(-0.5 / sigma)
                at_most(abs(turned), lift, atol=1e-10 * g)
                bound = (off(log_k(psi) + rise * y * psi / sigma) * g).min()
                at_most(abs(other - turned), bound, atol=1e-10 * g)
                near = psi[psi + theta <= most]
                if len(near):
                    bound = (off(log_k(near + theta), near) * g).min()
                    at_most(abs(rough - lift), bound, atol=1e-10 * g)
            step = dp.subsample_substitution(dp.gaussian(sigma), rate)
            equal(np.log(whole), c * step.renyi(1 + c), rtol=1e-8, atol=1e-9)

    check(1.0, 1.0, 2.0, 1.0)
    must_fail(check, 1.01, 1.0, 2.0, 1.0)
    must_fail(check, 1.0, 0.0, 2.0, 1.0)
    must_fail(check, 1.0, 1.0, 4.0, 1.0)
    must_fail(check, 1.0, 1.0, 2.0, 0.0)


def weighted(sigma, rate, angle, x, cuts, width):
    """As `lifted`, with the soft weights of all up to each cut."""
    log_q, loss, phase = lifted(sigma, rate, angle, x)
    with np.errstate(divide="ignore"):
        logs = [log_q + np.log(ndtr((t - x) / width)) for t in cuts]
    return logs, loss, phase


@claim("X-smooth-weights")
def test_soft_weights(rng):
    """The lifted integral, the trapezoid sum and that of the lifted integrand, on coarse nodes."""

    def check(steep, far, count=50):
        for _ in range(count):
            sigma, rate = rng.uniform(0.5, 2), 10 ** rng.uniform(-3, -0.05)
            n, y, width = (
                rng.uniform(0, 8),
                10 ** rng.uniform(-1, 1.5),
                rng.uniform(0.1, 0.4) * sigma,
            )
            place, psi = rng.uniform(-1, 3) * sigma, np.linspace(0.01, 1.5, 200)

            def total(step, angle, power, place=place, **o):
                s, r, m, w = (o.get(k) for k in ("sigma", "rate", "n", "width"))
                x = np.arange(-12 * s, 12 * s + 9, step)
                (log,), loss, phase = weighted(s, r, angle, x, [place], w)
                return step * np.exp(log + m * loss + power * (1j * loss if not angle else -phase))

            told = {"sigma": sigma, "rate": rate, "n": n, "width": width}
            fine, eta = min(0.02 * width, 0.3 / y * sigma**2), width * rng.uniform(0.3, 2)
            truth, real = total(fine, 0.0, y, **told), total(fine, 0.0, 0.0, **told).real
            whole = real.sum()
            lift = (1 + steep * (sigma / width) ** 2) * (sigma * psi) ** 2 / 2
            for angle, more in zip(psi[::40], lift[::40], strict=True):
                bound = np.exp(more) * total(fine, angle, y, **told).sum().real
                at_most(abs(truth.sum()), bound, atol=1e-12 * whole)
            gain = 2 * np.pi * sigma**2 * psi / eta
            front = 2 * np.exp(lift - gain) / -np.expm1(-gain)
            x = np.arange(-12 * sigma, 12 * sigma + 9, fine)
            some = np.argmin(abs(x - place - rng.uniform(-9, 3) * width))
            phase = np.array([lifted(sigma, rate, a, x[some])[2] for a in psi])
            rise = np.exp(y * phase) * whole + far * np.exp(y * psi) * real[some:].sum()
            error = abs(total(eta, 0.0, y, **told).sum() - truth.sum())
            at_most(error, (front * rise).min(), atol=1e-12 * whole)
            theta = rng.uniform(0.02, 0.8)
            error = total(eta, theta, y, **told).sum() - total(fine, theta, y, **told).sum()
            both = front[psi + theta <= np.pi / 2].min()
            at_most(abs(error), both * whole, atol=1e-12 * whole)

    check(1.0, 1.0)
    must_fail(check, 0.5, 1.0)
    must_fail(check, 1.0, 0.0)


@claim("X-proof-bands")
def test_bands_add_up_to_more_than_delta(rng):
    """Two to four rounds in two or three bands, on lines of all kinds, by the accountant."""

    def check(share, last, cut, count=30):
        for _ in range(count):
            sigma, rate, k = (
                rng.uniform(0.6, 1.5),
                10 ** rng.uniform(-1.5, -0.3),
                rng.integers(2, 5),
            )
            run = dp.subsample(dp.gaussian(sigma), rate).compose(int(k))
            epsilon, width = rng.uniform(0.1, 2), 0.3 * sigma
            places = [60.0, *np.sort(rng.uniform(0, 4, rng.integers(1, 3)))[::-1] + 0.5, -60.0]
            x, dx = np.linspace(-10 * sigma, 12 * sigma + 12, 1201, retstep=True)

            def parts(z, angle, height, x=x, dx=dx, p=places, s=sigma, r=rate, w=width):
                logs, loss, phase = weighted(s, r, angle, x, p, w)
                log = np.exp(logs - height * phase)
                return log @ (dx * np.exp(np.multiply.outer(1 + z, loss))).T

            bound = 0.0
            for i in range(len(places) - 1):
                c, period, nodes = rng.uniform(1, 4), rng.uniform(8, 16), int(rng.integers(5, 200))
                h = 2 * np.pi / period
                z, top, angle = c + 1j * h * np.arange(nodes + 1), h * (nodes + 1), 0.3
                a = parts(z, 0.0, 0.0)
                terms = (a[i] ** k - a[i + 1] ** k) * np.exp(-epsilon * z) / (z * (z + 1))
                terms *= np.where(np.arange(nodes + 1), 2, 1)
                a, lift = parts(c, 0.0, 0.0), parts(c, angle, top)
                rise = np.exp((1 + (sigma / width) ** 2) * (sigma * angle) ** 2 / 2)
                most = min(rise * lift[i], a[i])
                rest = k * most ** (k - 1) * min(rise * (lift[i] - lift[i + 1]), a[i])
                line = terms.sum().real / period
                line += cut * rest * np.exp(-c * epsilon) / (np.pi * h * nodes)
                bound += line * (last if i == len(places) - 2 else share)
            at_most(run.delta_interval(epsilon)[0], bound, atol=1e-9)

    check(1.0, 1.0, 1.0)
    must_fail(check, 0.9, 1.0, 1.0)
    must_fail(check, 1.0, 0.9, 1.0)
    must_fail(check, 1.0, 1.0, 0.0)


def test_the_page_proves_what_it_says():
    """The files of the page: nine nodes, and a changed epsilon is refused."""
    run = dp.subsample(dp.gaussian(4.0), 0.01).compose(10_000)
    proof = dp.prove(run, epsilon=0.946867, delta=1e-5)
    assert len(proof.text()) < 450 and {line[2] for line in proof.lines.values()} <= set(range(10))
    lower = dp.Proof(proof.steps, repr(0.946867 * (1 - 1e-6)), proof.delta, proof.lines)
    with pytest.raises(ValueError, match="this line proves delta <= 1.00001"):
        dp.check(lower)
