"""Writes the reference values that tests/test_accounting.py compares with, at 25 digits or more.

    pip install python-flint mpmath && python tests/data/make_accounting_reference.py [seconds]

None of the methods is one that ``dpnotes`` uses for the row in question:

* one step: the closed forms, with 60 digits;
* two steps of a continuous loss: one real integral of the closed form of the other step;
* randomized response: the binomial sum, term by term, with 60 digits;
* Laplace: the sum of the residues of the transform (its terms cancel: 60 + 2 k digits);
* subsampled Gaussian: ball arithmetic of several hundred bits along a line that was chosen without
  care for conditioning, with nodes at c + i w sinh(j h); a row counts if two h agree to 1e-16;
* subsampled Gaussian, rare large losses (rate * k <= 1): the same along two hyperbolas bent to the
  right, where exp(-e z) decays; a row counts if they agree to 1e-15. There K oscillates too fast
  for an integral over real x: each K(z) has a path of its own in the complex x-plane.

``dpnotes`` only provides Newton's starting point, and the heights at which lines are cut.
"""

import json
import math
import pathlib
import random
import sys
import time

import mpmath as mp
import numpy as np
from flint import acb, arb, ctx

import dpnotes as dp
from dpnotes.accountant import contour

mp.mp.dps = 60
with mp.workdps(40):  # 24 Gauss-Legendre nodes, polished
    LEGENDRE = [
        [
            mp.findroot(lambda x: mp.legendre(24, x), float(x))
            for x in np.polynomial.legendre.leggauss(24)[0]
        ]
    ]
    LEGENDRE.append(
        [2 / ((1 - x * x) * mp.diff(lambda t: mp.legendre(24, t), x) ** 2) for x in LEGENDRE[0]]
    )
PLACE = pathlib.Path(__file__).with_name("accounting_reference.json")


def gaussian_delta(mu, e):
    return mp.ncdf(mu / 2 - e / mu) - mp.exp(e) * mp.ncdf(-mu / 2 - e / mu)


def unsampled(rate, e):
    return mp.log1p(mp.expm1(e) / rate)


def removed(base, rate, e):
    """Mixture against q, any real e."""
    if e <= mp.log1p(-rate):
        return 1 - mp.exp(e)
    return rate * base(unsampled(rate, e))


def added(base, rate, e):
    """q against the mixture, e >= 0."""
    b = 1 - mp.exp(e) * (1 - rate)
    return b * base(e + mp.log(rate / b)) if b > 0 else mp.mpf(0)


def laplace_delta(scale, e):
    top = 1 / mp.mpf(scale)
    if e >= top:
        return mp.mpf(0)
    return 1 - mp.exp(e) if e <= -top else -mp.expm1((e - top) / 2)


def solve(delta_of, target, guess):
    """delta_of(e) = target, from a bracket around the guess, by Ridders' method."""
    f = lambda e: delta_of(e) / target - 1  # noqa: E731
    low = high = mp.mpf(guess)
    width = low * mp.mpf(10) ** -12
    while not f(low) > 0 >= f(high):
        low, high, width = low - width, high + width, 4 * width
    return mp.findroot(f, (low, high), solver="ridder", tol=1e-40, maxsteps=200, verify=False)


def solve_linear(delta_of, target, guess):
    """The same where delta is linear in exp(e) near the guess."""
    low, high = mp.exp(guess * (1 - mp.mpf(10) ** -11)), mp.exp(guess * (1 + mp.mpf(10) ** -11))
    at_low, at_high = delta_of(mp.log(low)), delta_of(mp.log(high))
    value = mp.log(low + (at_low - target) * (high - low) / (at_low - at_high))
    assert abs(delta_of(value) / target - 1) < mp.mpf(10) ** -30
    return value


def two_sampled_gaussians(sigma, rate, e):
    """E over the first step (mixture against q) of the second's delta at e - L."""
    mu = 1 / mp.mpf(sigma)
    base = lambda t: gaussian_delta(mu, t)  # noqa: E731

    def integrand(x):
        u = (x - mp.mpf(1) / 2) * mu * mu
        mix = 1 - rate + rate * mp.exp(u)
        return mp.npdf(x, 0, sigma) * mix * removed(base, rate, e - mp.log(mix))

    # the second delta leaves 1 - exp(e) at this x, with all derivatives but not analytically
    kink = mp.mpf(1) / 2 + unsampled(rate, e - mp.log1p(-rate)) / mu**2
    edges = [sigma * j / 4 for j in range(-52, 60 + int(4 / sigma))]
    edges += [kink] + [kink - sigma / 4 / mp.mpf(2) ** j for j in range(14)]
    edges = sorted(x for x in edges if edges[0] <= x <= edges[51 + 60 + int(4 / sigma)])
    half = [(b - a) / 2 for a, b in zip(edges, edges[1:], strict=False)]
    return mp.fsum(
        h * w * integrand(a + h * (1 + x))
        for a, h in zip(edges, half, strict=False)
        for x, w in zip(*LEGENDRE, strict=True)
        if h > 0
    )


def response_delta(e0, k, e):
    """Sum over the binomial law of sum of k losses +-e0."""
    e0, total = mp.mpf(e0), mp.mpf(0)
    p = 1 / (1 + mp.exp(-e0))
    first = max(0, int(mp.floor((e / e0 + k) / 2)) + 1)
    if first > k:
        return total
    log_term = mp.loggamma(k + 1) - mp.loggamma(first + 1) - mp.loggamma(k - first + 1)
    term = mp.exp(log_term + first * mp.log(p) + (k - first) * mp.log1p(-p))
    for j in range(first, k + 1):
        gain = -term * mp.expm1(e - (2 * j - k) * e0)
        total += gain
        if gain < total * mp.mpf(10) ** -40 and j > p * k:
            break
        term *= mp.mpf(k - j) / (j + 1) * mp.exp(e0)
    return total


def laplace_sum_delta(e0, k, e):
    """Residues at w = z + 1/2 = 0 and +-1/2 of
    exp(-k e0/2 + e/2 - e w) (cosh(e0 w) + sinh(e0 w)/(2 w))^k / (w^2 - 1/4)."""
    with mp.workdps(60 + 2 * k):
        e0, e, total = mp.mpf(e0), mp.mpf(e), mp.mpf(0)
        for m in range(k + 1):
            a = (k - 2 * m) * e0 - e
            if a <= 0:
                break
            series = [a**n / mp.factorial(n) for n in range(k)]
            for sign, times in ((1, k - m), (-1, m)):
                for _ in range(times):  # times (w + sign/2), sign = -1 for the factor (w - 1/2)
                    series = [sign * series[n] / 2 + (series[n - 1] if n else 0) for n in range(k)]
            inverse = [-(mp.mpf(4) ** (n // 2 + 1)) if n % 2 == 0 else 0 for n in range(k)]
            residue = sum(series[n] * inverse[k - 1 - n] for n in range(k))
            residue += mp.mpf(2) ** k * mp.exp(a / 2) if m == 0 else 0
            residue -= (-2) ** k * (-1) ** k * mp.exp(-a / 2) if m == k else 0
            total += mp.binomial(k, m) * residue
        return total * mp.exp((e - k * e0) / 2) / mp.mpf(2) ** k


def log_mgf(z, sigma, rate, sign):
    """log E exp(zL) of the subsampled Gaussian, trapezoid in x with hundreds of bits."""
    s, r = arb(sigma), arb(rate)
    power = z + 1 if sign > 0 else -z
    a, y = float(power.real.mid()), float(power.imag.mid())
    angle = min(1.0, 3 / sigma)
    lift = arb(math.copysign(angle, y) if abs(y) > 45 / angle else 0.0) * s * s
    pushed = min(-a, max(0.0, sigma**2 * math.log(max(1.0, -rate * a)) + 5 * sigma)) if a < 0 else 0
    low, high = -19 * sigma - pushed, max(a, min(2.0, 1 - sigma**2 * math.log(rate))) + 19 * sigma
    rate_of_phase = min(abs(y), 50 / angle) / sigma**2
    step = 2 * math.pi / (1.2 * rate_of_phase + (19 + min(sigma, 3)) / sigma)
    step = arb(min(2 * math.pi**2 * sigma**2 / 180, step))
    odds = ((acb(arb(low), lift) - arb(0.5)) / (s * s)).exp() * r
    ratio = (step / (s * s)).exp()
    total = acb(0)
    for j in range(int((high - low) / float(step.mid())) + 2):
        x = acb(arb(low) + j * step, lift)
        total += (power * (odds + 1 - r).log() - x * x / (2 * s * s)).exp()
        odds *= ratio
    return (total * step / (s * (2 * arb.pi()).sqrt())).log()


def laplace_log_mgf(z, scale, rate, sign):
    w, e0 = z + arb(0.5), 1 / arb(scale)
    return ((w * e0).cosh() + (w * e0).sinh() / (2 * w)).log() - e0 / 2


class Line:
    """Values of K at c + i w sinh(j h), j = 0, 1, ..."""

    def __init__(self, steps, sign, c, h, height):
        w = c / 1.3
        self.z, self.k, self.weight = [], [], []
        for j in range(int(math.asinh(height / w) / h) + 2):
            s = arb(h) * j
            z = acb(arb(c), arb(w) * s.sinh())
            self.z.append(z)
            self.k.append(sum(((f(z, *args, sign) * k) for f, args, k in steps), acb(0)))
            half = arb(0.5) if j == 0 else arb(1)
            self.weight.append(arb(w) * s.cosh() * arb(h) * half / (z * (z + 1)))

    def epsilon(self, delta, guess):
        e, target = arb(guess), arb(delta).log()
        for _ in range(80):
            terms = [
                (k - e * z).exp() * w for z, k, w in zip(self.z, self.k, self.weight, strict=True)
            ]
            value = sum((t.real for t in terms), arb(0)) / arb.pi()
            slope = (
                sum(((t * z).real for t, z in zip(terms, self.z, strict=True)), arb(0)) / arb.pi()
            )
            if not value > 0:
                return None
            move = arb(((value.log() - target) * value / slope).mid())
            e = arb((e + move).mid())
            if abs(float(move.mid())) < 1e-25 * abs(float(e.mid())):
                return float(e.mid())
        return None


def sampled_reference(sigma, rate, k, delta, sign, extra=()):
    """epsilon of one direction, or None if the two step sizes disagree."""
    loss = dp.subsample(dp.gaussian(sigma), rate).compose(k)
    steps = [(log_mgf, (sigma, rate), k)]
    for scale in extra:
        loss = loss + dp.laplace(scale)
        steps.append((laplace_log_mgf, (scale, 1.0), 1))
    way = loss._directions[0 if sign > 0 else 1]
    c, guess, _ = contour.saddle_for(way.parts, 1, math.log(delta))
    if sign > 0:
        c = min(c, -1.4 * sigma**2 * math.log(rate))
    ctx.prec = int(320 + (1.5 * c * c / (2 * sigma**2) if sign > 0 else 0))
    variance = float(contour.derivatives(way.parts, np.array([c]))[2][0])
    height, _ = contour.cut_height(way.parts, c, variance, math.log(delta) - 75.0, 1e6)
    guess = way.epsilon(delta)[1]
    if height is None or guess <= 0 or not math.isfinite(guess):
        return None
    found = [Line(steps, sign, c, h, height).epsilon(delta, guess) for h in (0.025, 0.019)]
    agree = None not in found and abs(found[0] - found[1]) <= 1e-15 * found[0]
    return found[1] if agree else None


def log_mgf_bent(z, sigma, rate):
    """log E exp(zL), L of mixture against q, for Re z < Im z/2 or Im z small.

    Over x = 1/2 + sigma^2 u, u = t + i (angle + slope * ramp(t - log 1/rate)): exp(zL) falls below
    that corner because zL is about z rate e^u, and beyond it because zL is about z (u + log rate).
    """
    s2, r, y = arb(sigma) ** 2, arb(rate), float(z.imag.mid())
    share = min(1.0, y / 20)
    angle = arb(share * min(1.0, 3 / sigma))
    slope = arb(share * min(0.5, 1.05 * float(z.real.mid()) / max(y, 1e-9)))
    corner = -r.log()
    reach = max(float(z.real.mid()) if y < 60 else 0.0, 2.0, 1 - sigma**2 * math.log(rate))
    low, high = -19 * sigma, reach + 19 * sigma
    step = 2 * math.pi / (1.2 * min(y, 60) / sigma**2 + (22 + min(sigma, 3)) / sigma)
    step = arb(min(2 * math.pi**2 * sigma**2 / 180, step)) / s2
    scale, total = -1 / (2 * s2), acb(0)
    for j in range(int((high - low) / sigma**2 / float(step.mid())) + 2):
        t = arb((low - 0.5) / sigma**2) + j * step
        v = t - corner
        root = (v * v + 9).sqrt()
        u = acb(t, angle + slope * (v + root) / 2)
        odds = u.exp() * r
        if v < 0:
            loss = (odds + 1 - r).log()
        else:  # continued past the negative axis
            loss = u - corner + (1 + (1 - r) / odds).log()
        x = s2 * u + arb(0.5)
        total += (z * loss + loss + x * x * scale).exp() * acb(1, slope * (1 + v / root) / 2)
    return (total * step * s2.sqrt() / (2 * arb.pi()).sqrt()).log()


class Hyperbola(Line):
    """Values of K at c + w (i sinh(j h) + bend (cosh(j h) - 1)) until the integrand has decayed."""

    def __init__(self, sigma, rate, k, c, h, bend, guess, log_delta):
        w, small = arb(c / 1.3), 0
        self.z, self.k, self.weight = [], [], []
        while small < 3 and len(self.z) < 3000:
            s = arb(h) * len(self.z)
            z = acb(c + w * bend * (s.cosh() - 1), w * s.sinh())
            turn = acb(s.cosh(), -bend * s.sinh()) * w * arb(h) / (z * (z + 1))
            self.z.append(z)
            self.k.append(log_mgf_bent(z, sigma, rate) * k)
            self.weight.append(turn if len(self.z) > 1 else turn / 2)
            size = float((self.k[-1] - z * arb(guess)).real.mid()) + float(abs(turn).log().mid())
            small = small + 1 if size < log_delta - 60 else 0


def rare_reference(sigma, rate, k, delta):
    """epsilon of the worse direction, or None if it is not confirmed."""
    loss = dp.subsample(dp.gaussian(sigma), rate).compose(k)
    log_delta, guess = math.log(delta), loss._directions[0].epsilon(delta)[1]
    if not 0 < guess < math.inf:
        return None
    c = contour.saddle_for(loss._directions[0].parts, 1, log_delta)[0]
    c = min(c, -1.4 * sigma**2 * math.log(rate))
    ctx.prec = int(320 + 1.5 * (c + 8) ** 2 / (2 * sigma**2))
    found = [
        Hyperbola(sigma, rate, k, c, h, bend, guess, log_delta).epsilon(delta, guess)
        for h, bend in ((0.02, 0.42), (0.017, 0.36))
    ]
    if None in found or abs(found[0] - found[1]) > 1e-15 * found[0]:
        return None
    # the other direction loses at most -k log(1 - rate), or less with Chernoff's bound
    if found[1] >= -k * math.log1p(-rate):
        return found[1]
    a = contour.saddle_for(loss._directions[1].parts, 1, log_delta)[0]
    bound = k * log_mgf(acb(a), sigma, rate, -1).real + a * math.log(a)
    bound -= (a + 1) * math.log1p(a) + a * found[1]
    return found[1] if bound < log_delta - 1e-6 else None


def rare_settings(draws):
    """Subsampled Gaussians with rate * k <= 1; first those that were looked at one by one."""
    rng = random.Random(21)
    drawn = [
        (1.0, 1e-5, 10, 1e-30),
        (1.283, 1.24e-6, 2850, 9.8e-23),
        (0.5159, 2.53e-6, 63, 3.5e-11),
        (0.8296, 1.29e-6, 3, 1.4e-8),
        (0.2074, 4e-4, 13300, 1.2e-16),
        (0.3588, 1.25e-5, 99, 2.3e-4),
        (1.04, 1.11e-4, 2180, 1.7e-10),
    ]
    while len(drawn) < draws:
        sigma = math.exp(rng.uniform(math.log(0.2), math.log(8)))
        rate, k = 10 ** rng.uniform(-6, -1), round(10 ** rng.uniform(math.log10(2), 6))
        delta = 10 ** -rng.uniform(2, 30)
        if 1e-5 <= rate * k <= 1:
            drawn.append((*(float(f"{v:.4g}") for v in (sigma, rate)), k, float(f"{delta:.3g}")))
    return drawn


def rare_rows(drawn):
    """Their rows, without those that need no epsilon or that could not be confirmed."""
    rows, dropped = [], 0
    for sigma, rate, k, delta in drawn:
        if dp.subsample(dp.gaussian(sigma), rate).compose(k).epsilon(delta) == 0:
            continue
        value = rare_reference(sigma, rate, k, delta)
        if value is None:
            dropped += 1
            print("dropped", sigma, rate, k, delta, flush=True)
            continue
        row = {"sigma": sigma, "rate": rate, "k": k, "delta": delta, "value": value}
        rows.append({"what": "sampled gaussian", **row})
        print(len(rows), rows[-1], flush=True)
    print(f"rare: {len(rows)} rows, {dropped} dropped")
    return rows


def exact_rows():
    def row(what, value, **settings):
        return {"what": what, **settings, "value": float(value)}

    rows = []
    for sigma, delta in [
        (1, 1e-5),
        (0.1, 1e-10),
        (50, 1e-3),
        (5412.3, 1e-12),
        (1e6, 1e-9),
        (0.01, 1e-300),
        (3, 1e-300),
        (1, 0.3),
        (0.5, 1e-30),
        (200, 1e-5),
    ]:
        mu = 1 / mp.mpf(sigma)
        guess = dp.gaussian(sigma).epsilon(delta)
        if guess > 0:
            f = lambda e, mu=mu: gaussian_delta(mu, e)  # noqa: E731
            with mp.workdps(60 + 700):
                rows.append(
                    row("gaussian", solve(f, mp.mpf(delta), guess), sigma=sigma, k=1, delta=delta)
                )
    for sigma, rate, delta in [
        (1, 0.01, 1e-5),
        (0.2, 0.001, 1e-6),
        (0.3, 1e-5, 1e-8),
        (2, 0.5, 1e-30),
        (20, 0.01, 1e-9),
        (0.7, 0.999, 1e-5),
        (1, 1e-6, 1e-12),
    ]:

        def f(e, s=sigma, r=rate):
            return removed(lambda t: gaussian_delta(1 / mp.mpf(s), t), mp.mpf(r), e)

        guess = dp.subsample(dp.gaussian(sigma), rate).epsilon(delta)
        rows.append(
            row(
                "sampled gaussian",
                solve(f, mp.mpf(delta), guess),
                sigma=sigma,
                rate=rate,
                k=1,
                delta=delta,
            )
        )
    for sigma, rate, delta in [
        (1, 0.01, 1e-5),
        (0.5, 0.001, 1e-6),
        (0.3, 1e-4, 1e-7),
        (2, 0.1, 1e-12),
        (0.2, 0.01, 1e-10),
        (5, 0.01, 1e-8),
        (1, 0.3, 1e-30),
        (0.25, 1e-3, 1e-20),
    ]:
        with mp.workdps(30):
            f = lambda e, s=sigma, r=rate: two_sampled_gaussians(mp.mpf(s), mp.mpf(r), e)  # noqa: E731
            guess = dp.subsample(dp.gaussian(sigma), rate).compose(2).epsilon(delta)
            g = lambda e, f=f, d=delta: mp.log(f(e)) - mp.log(mp.mpf(d))  # noqa: E731
            value = mp.findroot(
                g, (mp.mpf(guess), mp.mpf(guess) * (1 + mp.mpf(10) ** -6)), tol=1e-22
            )
            rows.append(row("sampled gaussian", value, sigma=sigma, rate=rate, k=2, delta=delta))
    for e0, k, delta in [
        (0.1, 10, 1e-6),
        (0.1, 1000, 1e-6),
        (1, 3, 0.1),
        (1, 50, 1e-10),
        (5, 20, 1e-8),
        (0.01, 100_000, 1e-12),
        (0.001, 1_000_000, 1e-5),
        (0.5, 200, 1e-30),
        (0.1, 300, 0.4),
    ]:
        guess = dp.randomized_response(e0).compose(k).epsilon(delta)
        f = lambda e, e0=e0, k=k: response_delta(e0, k, e)  # noqa: E731
        if guess > 0:
            rows.append(
                row(
                    "randomized response",
                    solve_linear(f, mp.mpf(delta), mp.mpf(guess)),
                    epsilon=e0,
                    k=k,
                    delta=delta,
                )
            )
    for e0, k, delta in [
        (0.1, 10, 1e-6),
        (1, 2, 1e-3),
        (1, 5, 1e-8),
        (0.5, 10, 1e-4),
        (2, 10, 1e-12),
        (0.1, 30, 1e-10),
        (1, 40, 1e-6),
        (0.02, 12, 1e-5),
        (3, 6, 0.2),
        (1, 10, 1e-30),
    ]:
        guess = dp.laplace(1 / e0).compose(k).epsilon(delta)
        f = lambda e, e0=e0, k=k: laplace_sum_delta(1 / mp.mpf(1 / e0), k, e)  # noqa: E731
        rows.append(row("laplace", solve(f, mp.mpf(delta), guess), scale=1 / e0, k=k, delta=delta))
    return rows


def random_rows(seconds):
    """Subsampled Gaussians, the worse direction of two."""
    rng, rows, start = random.Random(20), [], time.time()
    while time.time() - start < seconds:
        sigma = math.exp(rng.uniform(math.log(0.2), math.log(20)))
        rate, k = 10 ** rng.uniform(-5, -0.3), int(10 ** rng.uniform(0.4, 7))
        delta = 10 ** -rng.uniform(0.5, 30 if rng.random() < 0.5 else 12)
        sigma, rate, delta = float(f"{sigma:.4g}"), float(f"{rate:.4g}"), float(f"{delta:.3g}")
        if rng.random() < 0.5:
            rate = min(0.5, max(rate, float(f"{10 / k:.3g}")))
        try:
            found = [sampled_reference(sigma, rate, k, delta, sign) for sign in (1, -1)]
        except (ValueError, OverflowError):
            continue
        if None not in found and 1e-8 < max(found) < 1e4:
            rows.append(
                {
                    "what": "sampled gaussian",
                    "sigma": sigma,
                    "rate": rate,
                    "k": k,
                    "delta": delta,
                    "value": max(found),
                }
            )
            print(len(rows), rows[-1], flush=True)
    return rows


def mixed_rows():
    rows = []
    for sigma, rate, k, scale, delta in [
        (1.1, 0.01, 1000, 2.0, 1e-5),
        (0.8, 0.004, 2000, 10.0, 1e-7),
    ]:
        found = [sampled_reference(sigma, rate, k, delta, sign, (scale,)) for sign in (1, -1)]
        if None not in found:
            rows.append(
                {
                    "what": "laplace + sampled gaussian",
                    "sigma": sigma,
                    "rate": rate,
                    "k": k,
                    "scale": scale,
                    "delta": delta,
                    "value": max(found),
                }
            )
    return rows


if __name__ == "__main__":
    old = json.loads(PLACE.read_text())["rows"] if PLACE.exists() else []
    kept = [row for row in old if "id" in row]  # computed elsewhere, by two other methods
    rows = (
        kept
        + exact_rows()
        + mixed_rows()
        + rare_rows(rare_settings(50))
        + random_rows(float(sys.argv[1]) if sys.argv[1:] else 1200)
    )
    lines = ",\n  ".join(json.dumps(row) for row in rows)
    PLACE.write_text(
        '{"about": "epsilon(delta), the worse direction; see make_accounting_reference.py",\n'
        ' "rows": [\n  ' + lines + "\n]}\n"
    )
