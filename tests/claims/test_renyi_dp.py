"""The claims of the chapter `renyi-dp`: RDP and zCDP, conversions, the moments accountant."""

from itertools import product

import numpy as np
import pytest
from mpmath import mp, mpf, workdps
from scipy import special, stats

import dpnotes as dp
from boxes import cosh, exp, expm1, for_all, log, log1p, root
from dpnotes.chapters import composition, renyi_dp
from evidence import at_most, claim, equal, holds, slip
from rounds import trees


def laws(seed, count=2000, size=5):
    rng = np.random.default_rng(seed)
    return rng.dirichlet(np.ones(size), (2, count)) * (1 - 1e-9) + 1e-9 / size


@claim(
    "U-renyi-divergence",
    "U-mgf-plrv",
    of=dp.renyi_divergence,
    wrong=[lambda p, q, alpha: dp.renyi_divergence(p, q, alpha) * (alpha - 1) / alpha],
)
def test_renyi_divergence_is_its_definition_with_its_limits_and_monotone(divergence):
    p, q = laws(1)
    for alpha in (0.3, 0.5, 1.1, 2.0, 7.0):
        log_mgf = np.log((p * np.exp((alpha - 1) * np.log(p / q))).sum(-1))
        equal(divergence(p, q, alpha), log_mgf / (alpha - 1), rtol=1e-9, atol=1e-13)
    gap = dp.renyi_divergence(p, q, 1 + 1e-7) - dp.kl(p, q)
    at_most(np.abs(gap), 1e-5 * (1 + dp.max_divergence(p, q) ** 2))
    equal(dp.renyi_divergence(p, q, np.inf), np.log(p / q).max(-1))
    values = np.array([dp.renyi_divergence(p, q, a) for a in (0.1, 0.5, 1, 1.5, 2, 10, np.inf)])
    at_most(values[:-1], values[1:])


@claim(
    "U-renyi-figure",
    of=dp.renyi_divergence,
    wrong=[
        lambda p, q, a: dp.renyi_divergence(p, 0.5 + 0 * q, a),
        lambda p, q, a: dp.renyi_divergence(q + 0 * p, p, a),  # the other direction
        lambda p, q, a: dp.renyi_divergence(p, q, 1 / a),  # orders upside down
    ],
)
def test_renyi_divergences_of_two_coins(divergence):
    orders, q = (0.25, 0.5, 1.0, 2.0, 5.0, np.inf), np.array([1 / 3, 2 / 3])
    p = np.concatenate([np.linspace(0, 1, 1000), [1 / 3]])  # 0, 1/3 and 1 are among them
    coins = np.stack([p, 1 - p], -1)
    away = np.abs(p - 1 / 3) > 1e-12
    values = np.array([divergence(coins, q, alpha) for alpha in orders])
    equal(values[:, ~away], 0.0, atol=1e-15)
    holds(values[:, away] > 1e-9)
    equal(values[:, p == 1], np.log(3))
    equal(values[:, p == 0], np.log(1.5))
    curves = values[:, :-1]
    holds((np.diff(curves) < 0) == (p[1:-1] <= 1 / 3 + 1e-12))  # falls to 1/3, then rises
    holds(np.diff(curves[:3], 2) > 0)  # convex in p, for orders up to 1


ORDERS = np.array([1.0001, 1.5, 2.0, 3.7, 8.0, 32.0, 256.0, 1e4])


def gaussian(sigma, alpha):
    return alpha / (2 * sigma**2)


@claim(
    "A-def-rdp",
    of=lambda x, y: (x != y).sum(-1) == 1,
    wrong=[
        lambda x, y: (x != y).any(-1),  # all pairs: two rows differ
        lambda x, y: ((x != y).sum(-1) == 1) & (x <= y).all(-1),  # one direction only
    ],
)
def test_rdp_is_the_largest_divergence(neighbours, rng):
    """Datasets of three bits; each row answers through its own random channel, bit -> answer."""
    bits = np.array(list(np.ndindex(2, 2, 2)))
    x, y = np.nonzero(neighbours(bits[:, None], bits))
    several = rng.dirichlet(np.ones(2), (60, 3, 2)) * 0.98 + 0.01  # [mechanism, row, bit, answer]
    for channels in several:
        rows = [channels[i][bits[:, i]] for i in range(3)]
        law = np.einsum("xa,xb,xc->xabc", *rows).reshape(8, 8)  # of the answers, by dataset
        for alpha in (1.5, 4.0, 30.0):
            largest = dp.renyi_divergence(law[x], law[y], alpha).max()
            # only one row differs: the worst channel, in its worse direction
            equal(largest, max(dp.finite(*c).renyi(alpha) for c in channels), rtol=1e-9, atol=1e-12)


@np.vectorize
def randomized_response(epsilon, alpha):
    return dp.randomized_response(epsilon).renyi(alpha) if epsilon else 0.0


@np.vectorize
def laplace(scale, alpha):
    return dp.laplace(scale).renyi(alpha)


@claim("U-pure-zcdp", "U-def-zcdp")
def test_randomized_response_is_concentrated_everywhere():
    def divergence(y, a):
        return (log(cosh(y - y / (2 * a))) - log(cosh(y / (2 * a)))) / (a - 1)

    for_all(
        r"Of randomized response, $\Dalpha \le \frac{\alpha\eps^2}2$, $\eps = \frac y\alpha$,",
        (lambda y, a: randomized_response(y / a, a), divergence),
        lambda y, a: y * y / (2 * a),
        {"y": (0, 50), r"\alpha": (1.1, 1000)},
        touch=4 * (0,),
        too_low=[lambda y, a: 0.49 * y * y / a],
    )
    for sigma in (0.3, 1.0, 10.0):
        equal(dp.gaussian(sigma).renyi(ORDERS), ORDERS / (2 * sigma**2))


@claim("U-pure-zcdp", "U-rdp-rr")
def test_the_chord_bounds_the_moments_of_all_laws_everywhere():
    """The moment is the mean of x^alpha under q, x = p/q in [e^-eps, e^eps], of mean 1."""

    def chord(s, e, a):
        return exp(-2 * a * e) + s * (1 - exp(-2 * a * e))

    def power(s, e, a):
        return exp(a * log(exp(-2 * e) + s * (1 - exp(-2 * e))))

    for_all(
        r"$z^\alpha$ is at most its chord over $[e^{-2\eps}, 1]$, at $z = s + (1 - s)e^{-2\eps}$,",
        power,
        chord,
        {"s": (0, 1), r"\eps": (0.3, 2), r"\alpha": (2, 8)},
        touch=(0, 1),
        too_low=[lambda s, e, a: chord(s, e, a) * (0.99 + s / 100)],
    )


@claim(
    "U-rdp-rr",
    of=randomized_response,
    wrong=[lambda epsilon, alpha: randomized_response(epsilon, alpha + 1)],
)
def test_rdp_of_randomized_response(curve, rng):
    p = rng.uniform(0.5, 0.999, 300)
    epsilon, law = special.logit(p), np.stack([p, 1 - p], -1)
    for alpha in (1.0, 1.5, 4.0, 40.0):
        exact = dp.renyi_divergence(law, law[:, ::-1], alpha)
        equal(curve(epsilon, alpha), exact, rtol=1e-11)
    equal(randomized_response(epsilon, 1.0), epsilon * np.tanh(epsilon / 2), rtol=1e-11)


@claim("U-rdp-laplace")
def test_the_expansion_of_laplace_everywhere():
    kl, box = (lambda t: laplace(1 / t, 1.0), lambda t: t + expm1(-t)), {"t": (0, 50)}
    for_all(
        r"$t + e^{-t} - 1 \le \frac{t^2}2$, $t = \frac1\lambda$",
        kl,
        lambda t: t * t / 2,
        box,
        touch=3 * (0,),
        too_low=[lambda t: 0.49 * t * t],
    )
    for_all(
        r"$\frac{t^2}2 - \frac{t^3}6 \le t + e^{-t} - 1$",
        lambda t: t * t / 2 - t**3 / 6,
        kl,
        box,
        touch=4 * (0,),
        too_high=[lambda t: t * t / 2 - t**3 / 7],
    )


@claim("U-rdp-laplace", of=laplace, wrong=[lambda scale, alpha: laplace(scale, alpha + 1)])
def test_rdp_of_the_laplace_mechanism(curve):
    for scale, alpha in product((0.1, 0.7, 3.0, 50.0), (1.0001, 1.5, 4.0, 40.0, 1e4)):
        t = 1 / scale
        # over the three pieces of |x| and |x - t| the integrand is an exponential
        middle = np.log(special.exprel((1 - 2 * alpha) * t) * t) + (alpha - 1) * t
        pieces = [(alpha - 1) * t, -alpha * t, middle]
        exact = special.logsumexp(pieces, b=[0.5, 0.5, 0.5]) / (alpha - 1)
        equal(curve(scale, alpha), exact, rtol=1e-12, atol=1e-12 / (alpha - 1))


@claim("A-chain-rule", of=lambda inner: inner.max(-1), wrong=[lambda inner: inner.mean(-1)])
def test_the_chain_rule_of_renyi_divergence(outer, rng):
    p, q = rng.dirichlet(np.ones(3), (2, 2000))
    py, qy = rng.dirichlet(np.ones(4), (2, 2000, 3))  # of Y, given X

    def divergences(py, qy, alpha):
        """Of X, of Y given each X, of both."""
        joint = ((a[..., None] * b).reshape(2000, -1) for a, b in ((p, py), (q, qy)))
        return (dp.renyi_divergence(a, b, alpha) for a, b in ((p, q), (py, qy), joint))

    for alpha in (1.0, 1.3, 2.0, 10.0, np.inf):
        first, inner, whole = divergences(py, qy, alpha)
        at_most(whole, first + outer(inner), rtol=1e-10)
        at_most(first + inner.min(-1), whole, rtol=1e-10)
        first, inner, whole = divergences(py[:, :1], qy[:, :1], alpha)  # independent
        equal(whole, first + inner[:, 0], rtol=1e-9)


@claim("A-rdp-composition", of=lambda one: one + one, wrong=[lambda one: 1.2 * one])
def test_adaptive_composition_adds(total, rng):
    for epsilon in (0.3, 1.0):
        pair = trees(rng, epsilon, (3, 4), 1000)
        for alpha in (1.5, 4.0, 30.0):
            one = randomized_response(epsilon, alpha)
            at_most(dp.renyi_divergence(*pair, alpha), total(one), rtol=1e-9)
    for k in (1, 7, 1000):
        equal(dp.gaussian(2.0).compose(k).renyi(ORDERS), k * gaussian(2.0, ORDERS), rtol=1e-12)


@claim("U-rdp-properties")
def test_post_processing(rng):
    p, q = laws(10)
    channel = rng.dirichlet(np.ones(3), (len(p), p.shape[-1]))
    through = [np.einsum("ni,nij->nj", law, channel) for law in (p, q)]
    for alpha in (1.0, 1.3, 2.0, 8.0, np.inf):
        at_most(dp.renyi_divergence(*through, alpha), dp.renyi_divergence(p, q, alpha), rtol=1e-9)


@claim("U-rdp-properties", of=1.0, wrong=[0.9])
def test_probability_preservation(factor):
    p, q = laws(10)
    for alpha, size in product((1.3, 2.0, 8.0), (1, 2, 3)):
        most = np.exp(dp.renyi_divergence(p, q, alpha)) * q[:, :size].sum(-1)
        bound = factor * np.minimum(most, 1.0) ** (1 - 1 / alpha)
        at_most(p[:, :size].sum(-1), bound, rtol=1e-9)


@claim(
    "U-rdp-properties",
    of=lambda alpha, rdp, doublings: (alpha / 2**doublings, 3**doublings * rdp),
    wrong=[lambda alpha, rdp, doublings: (alpha / 2**doublings, 0.8 * rdp)],
)
def test_group_privacy(group):
    (p, q), r = laws(10), laws(11)[0]
    for alpha in (4.0, 8.0, 32.0):
        one = np.maximum(dp.renyi_divergence(p, r, alpha), dp.renyi_divergence(r, q, alpha))
        order, rdp = group(alpha, one, 1)
        at_most(dp.renyi_divergence(p, q, order), rdp, rtol=1e-9)
    # shifts of a Gaussian: the exact divergence of a group grows with the square of its size
    for c in (1, 2, 3):
        order, rdp = group(64.0, gaussian(3.0, 64.0), c)
        at_most(gaussian(3.0 / 2**c, order), rdp)


@claim("A-rdp-to-dp")
def test_conversions_of_renyi_divergences_everywhere():
    """The improved one is the mean under q of an inequality between x = p/q and x^alpha: with
    w = x e^-eps (alpha - 1)/alpha, x - e^eps is at most a multiple of x^alpha, whatever x is."""
    for_all(
        r"$\alpha w \le w^\alpha + \alpha - 1$",
        lambda w, a: a * w,
        lambda w, a: exp(a * log(w)) + a - 1,
        {"w": (1e-3, 100), r"\alpha": (1.1, 100)},
        touch=(1, 1),
        too_low=[lambda w, a: exp(a * log(w)) + 0.99 * (a - 1)],
    )

    def computed(conversion):
        return lambda a: conversion(a, 100.0, 1e-5) - 100

    def plain(a):
        return log(root(10**10)) / (a - 1)

    def improved(a):
        return log(1 - 1 / a) - log(a) / (a - 1) + plain(a)

    for_all(
        r"$\ln(1 - \frac1\alpha) - \frac{\ln\alpha}{\alpha - 1} \le 0$: below the first one",
        (computed(dp.rdp_to_dp_improved), improved),
        (computed(dp.rdp_to_dp), plain),
        {r"\alpha": (1.1, 1000)},
        too_high=[lambda a: improved(a) + 2 * log(a) / (a - 1)],
    )


@claim("A-rdp-to-dp")
def test_order_and_divergence_are_not_exchangeable():
    order, rdp = 1.5, 2.0
    right, swapped = dp.rdp_to_dp(order, rdp, 1e-5), dp.rdp_to_dp(rdp, order, 1e-5)
    holds(right > 1.9 * swapped)
    slip(
        "A-rdp-to-dp",
        f"a divergence of at most {rdp:g} at order {order:g}, $\\delta = 10^{{-5}}$: "
        f"$\\varepsilon = {right:.2f}$; with the two numbers in the slide's order, read by its own "
        f"definition, {swapped:.2f}",
    )


@pytest.mark.slow
@claim(
    "A-rdp-to-dp",
    of=dp.rdp_to_dp_optimal,
    wrong=[
        lambda *given: 0.999 * dp.rdp_to_dp_optimal(*given),
        lambda *given: 1.001 * dp.rdp_to_dp_optimal(*given),
    ],
)
def test_the_optimal_conversion_is_attained_and_sound(conversion, rng):
    # a pair of coins attains it where log((p - delta)/q) is largest for its divergence:
    # of both the quotient of the slopes in p and in q is the same, which gives delta
    seen = 0
    with workdps(150):
        while seen < 100:
            alpha = mpf(1 + 10 ** rng.uniform(-9, 4))
            p, up = 1 / (1 + mp.exp(rng.uniform(-9, 99))), mp.exp(mpf(10) ** rng.uniform(-5, 2))
            q, power = p / up, alpha - 1
            down = (1 - p) / (1 - q)
            best = mp.log(power / alpha * (up**alpha - down**alpha) / (up**power - down**power))
            rdp = mp.log(p * up**power + (1 - p) * down**power) / power
            if best > 0 and (delta := p - q * mp.exp(best)) > 1e-40:
                equal(
                    conversion(*map(float, (alpha, rdp, delta))), float(best), rtol=1e-9, atol=1e-12
                )
                seen += 1
    p, q = laws(7, count=15, size=3)
    for alpha, delta in product((1.2, 2.0, 6.0), (1e-3, 0.05, 0.3)):
        rdp = dp.renyi_divergence(p, q, alpha)
        epsilon = np.array([conversion(alpha, r, delta) for r in rdp])
        at_most(dp.hockey_stick(p, q, epsilon), delta, rtol=1e-9)
        at_most(epsilon, dp.rdp_to_dp_improved(alpha, rdp, delta), rtol=1e-11)
    orders = 1 + 1e-15, 1 + 1e-8, 1.01, 30.0, 1e99
    for at in product(orders, (1e-90, 1e-9, 1.0, 1e6), (1e-300, 0.1, 1 - 1e-12)):
        at_most(conversion(*at), dp.rdp_to_dp_improved(*at), rtol=1e-11)


@claim("U-zcdp-to-dp")
def test_the_best_order_of_the_conversion_everywhere():
    """At the order 1 + u w/rho, where w^2 = rho log(1/delta); both sides without rho."""

    def left(u, w, rho):
        return dp.zcdp_to_dp(rho, np.exp(-w * w / rho)) - rho

    def right(u, w, rho):
        order = 1 + u * w / rho
        return dp.rdp_to_dp(order, rho * order, np.exp(-w * w / rho)) - rho

    for_all(
        r"$2w \le (u + \frac1u)w$, $w^2 = \rho\ln\frac1\delta$, $\alpha = 1 + \frac{uw}\rho$,",
        (left, lambda u, w, rho: 2 * w),
        (right, lambda u, w, rho: (u + 1 / u) * w),
        {"u": (0.01, 100), "w": (0.5, 20), r"\rho": (1, 10)},
        touch=(1, 1),
        too_high=[lambda u, w, rho: 2.1 * w],
    )


@claim(
    "U-zcdp-to-dp",
    of=dp.zcdp_to_dp_improved,
    wrong=[lambda rho, delta: rho + np.sqrt(-rho * np.log(delta))],
)
def test_zcdp_to_approximate_dp(bound):
    for rho, delta in product((1e-6, 1e-3, 0.1, 1.0, 20.0), (1e-12, 1e-5, 0.01)):
        at_most(dp.gaussian(1 / np.sqrt(2 * rho)).epsilon(delta), bound(rho, delta))
        at_most(bound(rho, delta), dp.zcdp_to_dp(rho, delta))


@claim("A-rdp-limit", of=0.1, wrong=[0.0, 0.3])
def test_no_bound_on_tests_says_what_a_renyi_bound_says(tau):
    """Two pairs obey the Renyi bound. A third one obeys every bound on tests that both obey, and
    has larger moments: the Gaussian pair whose outcomes within tau of 1/2 become a coin of loss
    +-tau. With tau = 0 nothing changes, with tau = 0.3 a bound on tests is broken."""
    gaussian, response = dp.gaussian(1.0), dp.randomized_response(1.0)
    for loss in (gaussian, response):
        at_most(loss.renyi(ORDERS), ORDERS / 2)
    level = np.array([0.067, 1 / (1 + np.e)])  # either curve is the lower one somewhere
    gap = gaussian.tradeoff(level) - response.tradeoff(level)
    holds([gap[0] < -0.06, gap[1] > 0.08])

    low, high = 0.5 - tau, 0.5 + tau
    edges = np.concatenate([np.linspace(-8, low, 400), np.linspace(high, 9, 400)])
    p, q = (np.diff(special.ndtr(edges - mean), prepend=0, append=1) for mean in (1, 0))
    coin = np.array([1, np.exp(tau)]) / (1 + np.exp(tau))
    p = np.concatenate([p[:400], p[400] * coin, p[401:]])
    q = np.concatenate([q[:400], q[400] * coin[::-1], q[401:]])
    inside = np.linspace(special.ndtr(-high), special.ndtr(-low), 200)
    level = np.concatenate([special.ndtr(-edges), inside])  # where cells lose nothing
    third = dp.tradeoff(q, p, level)
    curves = np.array([loss.tradeoff(level) for loss in (gaussian, response)])
    at_most(third, curves[0], rtol=1e-9, atol=1e-15)
    at_most(curves.min(0), third, rtol=1e-9, atol=1e-15)

    alpha = np.concatenate([np.geomspace(1.01, 8, 60), np.linspace(8, 37, 30)])
    excess = q[400:402] @ np.exp(np.outer([-tau, tau], alpha))  # over the Gaussian's moments
    lost = special.ndtr(high - alpha) - special.ndtr(low - alpha)
    excess -= np.exp(alpha * (alpha - 1) / 2) * lost
    scale = np.exp(alpha * (alpha - 1) / 2 - (alpha - 0.5 - tau) ** 2 / 2)
    holds(excess > 1e-5 * np.minimum(scale, 1) * (alpha - 1))


def at_order(sigma, rate, order):
    """Of the sampled Gaussian, at one whole order."""
    return renyi_dp.sampled_curve(np.arange(2, order + 1) / (2 * sigma**2), rate)[-1]


@claim("A-moments-accountant")
def test_the_second_moment_of_the_subsampled_gaussian_everywhere():
    """t = 1/sigma^2."""
    computed = np.vectorize(lambda r, t: at_order(t**-0.5, r, 2))

    def moment(r, t):
        return log1p(r * r * expm1(t))

    for_all(
        r"At order 2 it is $\ln(1 + r^2(e^{1/\sigma^2} - 1)) \le \frac1{\sigma^2} = t$",
        (computed, moment),
        (lambda r, t: gaussian(t**-0.5, 2.0), lambda r, t: t),
        {"r": (1e-3, 1), "t": (1e-3, 50)},
        touch=(1,),
        too_high=[lambda r, t: log1p(1.1 * r * r * expm1(t))],
    )


@pytest.mark.slow
@claim(
    "U-rdp-gaussian",
    "A-moments-accountant",
    of=lambda s, q, a: dp.subsample(dp.gaussian(s), q).renyi(a),
    wrong=[lambda s, q, a: q * q * a / (s * s), lambda s, q, a: (a - 1) / (2 * s**2)],
)
def test_moments_of_the_subsampled_gaussian(curve):
    """log E exp(alpha loss(x)) of x ~ N(0, sigma^2), by a sum over a fine grid."""
    for sigma, rate in ((0.5, 1.0), (2.0, 1.0), (0.8, 0.3), (1.1, 0.01), (4.0, 0.01)):
        for alpha in (1.0001, 1.5, 2.0, 8.0, 20.0):
            x, dx = np.linspace(-20 * sigma, 20 * sigma + alpha, 4001, retstep=True)
            loss = (x - 0.5) / sigma**2
            if rate < 1:
                loss = np.log1p(rate * np.expm1(loss))
            moment = special.logsumexp(stats.norm.logpdf(x, scale=sigma) + alpha * loss)
            exact = (moment + np.log(dx)) / (alpha - 1)
            equal(curve(sigma, rate, alpha), exact, rtol=1e-9, atol=1e-12 / (alpha - 1))
            if alpha >= 2:
                equal(at_order(sigma, rate, alpha), exact, rtol=1e-9)


@claim(
    "U-composition-revisited",
    "A-advanced-pure",
    of=lambda rho, k, delta: dp.zcdp_to_dp(k * rho, delta),
    wrong=[lambda rho, k, delta: k * dp.zcdp_to_dp(rho, delta)],
)
def test_composition_through_zcdp_against_advanced_composition(through):
    delta = 1e-6
    for k in (10, 100, 1000):
        for epsilon in (0.01, 0.1, 0.5):  # pure DP: the simpler form of A-advanced-pure
            simple = composition.advanced(epsilon, k, delta, lambda e: e**2 / 2)
            equal(through(epsilon**2 / 2, k, delta), simple)
        for sigma in (2.0, 10.0, 50.0):  # Gaussians: advanced composition has to split delta
            one = dp.gaussian(sigma).epsilon(delta / 2 / k)
            advanced = composition.advanced(one, k, delta / 2)
            at_most(3 * through(1 / (2 * sigma**2), k, delta), advanced)


@claim("A-moments-accountant", of=1.0, wrong=[1 - 1e-8])
def test_the_moments_accountant_agrees_with_dp_accounting(factor):
    import dp_accounting
    from dp_accounting.rdp import RdpAccountant

    step = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(4.0))
    theirs = RdpAccountant().compose(dp_accounting.SelfComposedDpEvent(step, 10_000))
    orders = np.arange(2, 101)
    curve = 10_000 * factor * renyi_dp.sampled_curve(orders / (2 * 4.0**2), 0.01)
    equal(dp.rdp_to_dp_improved(orders, curve, 1e-5).min(), theirs.get_epsilon(1e-5), rtol=1e-10)


def moments(p, q, order):
    """The mean under q of (p/q)^order."""
    return (p**order * q ** (1 - order)).sum(-1)


@claim(
    "X-renyi-poisson",
    of=renyi_dp.sampled_curve,
    wrong=[
        lambda curve, rate: renyi_dp.sampled_curve(0.999 * curve, rate),
        lambda curve, rate: rate * curve,
        lambda curve, rate: renyi_dp.sampled_curve(curve, 0.99 * rate),
    ],
)
def test_poisson_sampling_of_a_whole_curve(bound, rng):
    orders = np.arange(2, 11)
    for rate in (0.01, 0.2, 0.7, 1.0):  # against the accountant's integrals: equal
        for loss in (dp.laplace(0.7), dp.randomized_response(2.0), dp.gaussian(1.3)):
            exact = dp.subsample(loss, rate).renyi(orders)
            equal(bound(loss.renyi(orders), rate), exact, rtol=1e-9)
    a, c = laws(12, count=150)
    rates = rng.uniform(0.01, 0.9, len(a))
    for i, rate in enumerate(rates):
        curve = np.array([dp.renyi_divergence(a[i], c[i], j) for j in orders])
        back = np.array([dp.renyi_divergence(c[i], a[i], j) for j in orders])
        mixed = rate * a[i] + (1 - rate) * c[i]
        added = np.array([dp.renyi_divergence(mixed, c[i], j) for j in orders])
        equal(bound(curve, rate), added, rtol=1e-8, atol=1e-14)  # part 1 is attained
        both = (orders - 1) * bound(np.maximum(curve, back), rate)
        removed = np.array([moments(c[i], mixed, j) for j in orders])
        at_most(removed, 2 * np.exp(both) - 1, rtol=1e-9)  # part 3
        # part 2: a pair with a coin beside it, whose loss has one law in both directions
        p, q = np.concatenate([a[i], c[i]]) / 2, np.concatenate([c[i], a[i]]) / 2
        curve = np.array([dp.renyi_divergence(p, q, j) for j in orders])
        mixed = rate * p + (1 - rate) * q
        removed = np.array([dp.renyi_divergence(q, mixed, j) for j in orders])
        at_most(removed, bound(curve, rate), rtol=1e-9, atol=1e-14)


@claim(
    "X-rare-sampling",
    of=lambda sigma: np.expm1(1 / sigma**2),
    wrong=[
        lambda sigma: np.expm1(1 / (2 * sigma**2)),
        lambda sigma: 1 / sigma**2,
        lambda sigma: 1.001 * np.expm1(1 / sigma**2),
    ],
)
def test_rare_sampling_is_nearly_one_gaussian(square, rng):
    for sigma, alpha in zip(
        np.exp(rng.uniform(-0.5, 3, 300)), rng.integers(2, 40, 300), strict=True
    ):
        for rate in (0.5, 0.01):
            divergence = at_order(sigma, rate, alpha)
            least = np.log1p(alpha * (alpha - 1) / 2 * rate**2 * square(sigma))
            at_most(least, (alpha - 1) * divergence, rtol=1e-10)
        if (alpha - 1) / sigma**2 < 20:  # the limit needs r e^(alpha/sigma^2) small
            divergence = at_order(sigma, 1e-16, alpha)
            equal(divergence, alpha / 2 * 1e-32 * square(sigma), rtol=1e-4)
    guess, exact = [], []
    for sigma, rate, steps in ((4.0, 0.01, 10_000), (1.1, 256 / 60_000, 14_100), (0.6, 1e-3, 100)):
        guess.append(dp.gaussian(1 / (rate * np.sqrt(steps * square(sigma)))).epsilon(1e-5))
        exact.append(dp.subsample(dp.gaussian(sigma), rate).compose(steps).epsilon(1e-5))
    ratio = np.divide(guess, exact)
    holds(np.abs(ratio[:2] - [0.995, 0.977]) < 0.002)
    holds(ratio[2:] < 0.2)  # the best order lies beyond the wall: it fails


@claim(
    "U-subgaussian-loss",
    of=lambda tau: tau**2 / 2,
    wrong=[lambda tau: 0.99 * tau**2 / 2, lambda tau: tau / 2],
)
def test_losses_like_the_gaussian_are_concentrated(rho, rng):
    for sigma, k in product((0.3, 1.0, 20.0), (1, 9, 400)):  # equality
        loss = dp.gaussian(sigma).compose(k)
        equal(loss.renyi(ORDERS), k * rho(1 / sigma) * ORDERS)
        equal(loss.mean(), k * rho(1 / sigma))
    p, q = laws(13)
    loss, tilts = (
        np.log(p / q),
        np.array([-1.0, *np.geomspace(1e-3, 300, 150), *-np.geomspace(1e-3, 300, 150)]),
    )
    mean = (p * loss).sum(-1)
    cumulants = special.logsumexp(tilts[:, None, None] * (loss - mean[:, None]), b=p, axis=-1)
    tau = np.sqrt((2 * cumulants / tilts[:, None] ** 2).max(0))
    at_most(mean, rho(tau))
    for alpha in 1 + tilts[1:151:10]:
        at_most(dp.renyi_divergence(p, q, alpha), rho(tau) * alpha, rtol=1e-7)


@claim("U-subgaussian-loss", of=1.0, wrong=[0.5])
def test_the_sum_of_adaptive_losses_varies_more(mean):
    """The second mechanism runs if the first loss, N(mean, 2 mean), was above its mean."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(200)
    weights = weights / weights.sum()
    first = mean + np.sqrt(2 * mean) * nodes
    runs = np.where(nodes > 0, 1.0, 0.0)
    total = first + runs * mean  # the mean of the sum, given the first
    variance = weights @ (total - weights @ total) ** 2 + weights @ runs * 2 * mean
    stated = 3 * mean + mean**2 / 4 + 2 * mean * np.sqrt(2 * mean) / np.sqrt(2 * np.pi)
    equal(variance, stated, rtol=1e-2)
    holds(np.array(stated > 2 * 2 * mean))
    slip(
        "U-subgaussian-loss",
        "Gaussian noise with a loss of mean 1 and variance 2, so sigma^2 = 2; run once more only "
        f"if the first loss was above 1: the sum of the two has the variance {stated:.3f}, and a "
        "sigma sqrt 2-subgaussian variable has at most 4",
    )
