"""The claims of `tail-bounds` on one variable, against exact tails."""

import math

import numpy as np
from scipy import stats
from scipy.special import logsumexp

import dpnotes as dp
from boxes import PI, cosh, exp, exprel, for_all, log, log1p, normal_tail, root
from dpnotes.chapters import tail_bounds
from evidence import at_most, claim, equal, holds, must_fail, slip
from rounds import falling_tail, largest_cumulant


def finite_variables(rng, count, size=5):
    """Values and probabilities of `count` variables: some values zero, some weights tiny."""
    values = rng.normal(size=(count, size)) * np.exp(rng.normal(size=(count, 1)))
    values = np.where(rng.random((count, size)) < 0.2, 0.0, values)
    return values, rng.dirichlet(np.full(size, 0.5), count)


def tail(values, weights, thresholds):
    """P(X >= each threshold), for every row."""
    return (weights[:, None, :] * (values[:, None, :] >= thresholds[:, :, None])).sum(-1)


def mean(values, weights):
    return (values * weights).sum(-1)


@claim(
    "U-markov",
    of=lambda t, average: average / t,
    wrong=[lambda t, average: 0.99 * average / t, lambda t, average: average / t**1.1],
)
def test_markov(bound, rng):
    values, weights = finite_variables(rng, 4000)
    values = np.abs(values)
    average = mean(values, weights)[:, None]
    at = np.where(values > 0, values, 1.0)
    at_most(tail(values, weights, at), bound(at, average))
    t, p = np.exp(rng.normal(size=500)), rng.random(500)
    equal(p, bound(t, p * t))  # attained by the values 0 and t
    strict = (weights * (values > values[:, :1])).sum(-1)  # P(X > t) < E X / t
    positive = values[:, 0] > 0
    holds(strict[positive] * values[positive, 0] < average[positive, 0])
    # and by no other: a third value, above or below t, leaves a gap
    third = t * rng.choice([rng.uniform(0.01, 0.9, 500), rng.uniform(1.1, 3, 500)])
    x, w = np.stack([0 * t, t, third], -1), np.stack([p / 9, p / 9, 1 - 2 * p / 9], -1)
    gap = mean(x, w) / t - (w * (x >= t[:, None])).sum(-1)
    holds(gap > 1e-9)


@claim(
    "U-chebyshev",
    of=lambda t, moment, order: moment / t**order,
    wrong=[
        lambda t, moment, order: 0.99 * moment / t**order,
        lambda t, moment, order: moment / t ** (order + 1),
    ],
)
def test_chebyshev_and_higher_moments(bound, rng):
    values, weights = finite_variables(rng, 3000)
    distance = np.abs(values - mean(values, weights)[:, None])
    at = np.where(distance > 0, distance, 1.0)
    for order in (2, 4, 20):
        moment = mean(distance**order, weights)[:, None]
        at_most(tail(distance, weights, at), bound(at, moment, order), rtol=1e-11)
        r, t = rng.uniform(1e-6, 1, 500), np.exp(rng.normal(size=500))
        equal(r, bound(t, r * t**order, order), rtol=1e-11)  # attained by -t, 0, t

    constant_tail, printed = 1.0, 1 / 2**2  # X = 0: |X - EX| >= 2 * 0 always
    assert constant_tail > printed
    slip(
        "U-chebyshev",
        "a constant has variance 0: P(|X - E X| ≥ 2·0) = 1, but the statement gives 1/2² = 0.25",
    )


def log_mgf(values, weights):
    """t -> log E exp(tX) of one finite variable."""
    return lambda t: np.logaddexp.reduce(t * values + np.log(weights))


@claim(
    "U-chernoff-method",
    of=tail_bounds.chernoff,
    wrong=[
        lambda t, mgf: 0.9 * tail_bounds.chernoff(t, mgf),
        lambda t, mgf: tail_bounds.chernoff(t, lambda lam: mgf(-lam)),  # tilted the wrong way
        lambda t, mgf: tail_bounds.chernoff(t, mgf, limit=0.1),  # stopped too early
    ],
)
def test_chernoff_method(bound, rng):
    values, weights = finite_variables(rng, 60)
    exact = tail(values, weights, values)
    grid = np.concatenate([[0.0], np.geomspace(1e-3, 30, 60)])
    for x, w, p in zip(values, weights, exact, strict=True):
        found = bound(x, log_mgf(x, w))
        at_most(p, found)
        tilted = logsumexp(grid[:, None, None] * (x - x[:, None]), axis=-1, b=w)
        at_most(found, np.exp(tilted.min(0)), rtol=1e-11)  # no t on a grid does better
        t = (x @ w) + rng.exponential(size=20)  # negative lam is of no use above the mean
        lam = -np.geomspace(1e-3, 3, 20)
        at_most(1.0, np.exp([log_mgf(x, w)(at) for at in lam] - lam * t), rtol=1e-9)
    equal(tail_bounds.chernoff(1.0, log_mgf(np.array([0.0, 1.0]), np.array([0.8, 0.2]))), 0.2)


@claim(
    "U-chernoff-method",
    of=tail_bounds.chernoff,
    wrong=[lambda t, log_mgf: tail_bounds.chernoff(t, log_mgf) * (1 - 2e-13)],
)
def test_the_search_never_ends_below_the_infimum(bound, rng):
    """A normal variable of mean m: log MGF m s + s^2/2, infimum exp(-(t - m)^2/2), in floats."""
    means, away = rng.integers(-1300, 1300, 60) / 64, rng.integers(64, 320, 60) / 64
    found = [
        bound(m + d, lambda s, m=m: m * s + s * s / 2)
        for m, d in zip(means.tolist(), away.tolist(), strict=True)
    ]
    at_most(np.exp(-(away**2) / 2), found, rtol=0)
    at_most(found, np.exp(-(away**2) / 2), rtol=1e-11)


@claim(
    "U-chernoff-method",
    of=tail_bounds.chernoff,
    wrong=[lambda t, log_mgf, limit=math.inf: tail_bounds.chernoff(t, log_mgf, min(limit, 9.0))],
)
def test_chernoff_of_laws_whose_infimum_is_known(bound):
    """Normal of any scale, Poisson, exponential: the search starts far from the best lam."""
    z, asked = np.geomspace(0.05, 30, 8), []
    scales = 10.0 ** np.array([-98, -3, -1, 0, 1, 3, 98])

    def watched(log_mgf, limit=math.inf):
        def ask(lam):
            asked.append(0 < lam < limit)
            return log_mgf(lam)

        return ask

    for s in scales.tolist():
        found = bound(s * z, watched(lambda lam, s=s: s * lam * (s * lam) / 2))
        equal(found, np.exp(-z * z / 2), rtol=1e-11)
        at_most(np.exp(-z * z / 2), found, rtol=1e-12)
        rate = 1 / s  # of an exponential variable of mean s: finite where lam < 1/s
        log_mgf = watched(lambda lam, r=rate: -math.log1p(-lam / r), rate)
        found = bound(s * z, log_mgf, limit=rate)
        equal(found, np.where(z > 1, z * np.exp(1 - z), 1), rtol=1e-11)
    for mean in (0.01, 1.0, 300.0):
        t = mean * np.array([0.5, 1.01, 1.5, 3.0])
        found = bound(t, watched(lambda lam, m=mean: m * math.expm1(min(lam, 700.0))))
        equal(found, np.where(t < mean, 1, np.exp(t - mean - t * np.log(t / mean))), rtol=1e-11)
    for edge in (0.3, 1.0, 2.0, 2.5, 5.0):  # all of it at 0: the least is next to the edge
        found = tail_bounds.chernoff(3.0, watched(lambda lam: 0.0, edge), limit=edge)
        equal(found, math.exp(-3 * edge), rtol=1e-8)
    holds(np.array(asked))
    assert tail_bounds.chernoff([-1.0, 0.0], lambda lam: 0.0).tolist() == [1.0, 1.0]


@claim("T-8")
def test_normal_tails_everywhere():
    tail, box = (stats.norm.sf, normal_tail), {"t": (1e-6, 37)}

    def density(t):
        return exp(-t * t / 2) / root(2 * PI)

    for_all(
        r"$\Pr[X > t] \le \frac{e^{-t^2/2}}{\sqrt{2\pi}\,t}$",
        tail,
        lambda t: density(t) / t,
        {"t": (0.4, 37)},
        too_low=[lambda t: 0.999 * density(t) / t],
    )
    for_all(
        r"$\Pr[X > t] \ge \frac{t e^{-t^2/2}}{\sqrt{2\pi}(1 + t^2)}$",
        lambda t: density(t) * t / (1 + t * t),
        tail,
        box,
        too_high=[lambda t: 1.001 * density(t) * t / (1 + t * t)],
    )
    for_all(
        r"$\Pr[X > t] \le \frac12 e^{-t^2/2}$",
        tail,
        lambda t: exp(-t * t / 2) / 2,
        box,
        too_low=[lambda t: 0.499 * exp(-t * t / 2), lambda t: exp(-t * t / 1.9) / 2],
    )
    lam, at = -2.0, -2.0  # the Chernoff bound "for any lambda", at a negative one
    printed, true = math.exp(lam**2 / 2 - lam * at), stats.norm.sf(at)
    assert true > 7 * printed
    slip(
        "T-8",
        f"(6.7) at ξ ~ N(0,1), t = −2, λ = −2 claims P(ξ > −2) < {printed:.4f}; it is {true:.4f}",
    )


def subgaussian_tail(t, sigma):
    return np.exp(-((t / sigma) ** 2) / 2)


@claim("U-subgaussian", "U-subgaussian-mean")
def test_coins_and_their_means_are_subgaussian_everywhere():
    """Of n coins, at lam = n x: both sides are n times those here."""
    for_all(
        r"Means of $n$ fair coins $\pm1$: $\frac1n \ln\E e^{nxX} = \ln\cosh x \le \frac{x^2}2$",
        lambda x: log(cosh(x)),
        lambda x: x * x / 2,
        {"x": (0, 50)},
        touch=4 * (0,),
        too_low=[lambda x: x * x / 2.001, lambda x: x * x / 18],
    )


@claim("U-subgaussian")
def test_uniform_laws_are_subgaussian_everywhere():
    for_all(
        r"A uniform law on $[-1, 1]$ has $\ln\E e^{xX} = \ln\frac{\sinh x}x \le \frac{x^2}6$",
        lambda x: log(exprel(2 * x)) - x,
        lambda x: x * x / 6,
        {"x": (0, 50)},
        touch=4 * (0,),
        too_low=[lambda x: x * x / 7],
    )


@claim(
    "U-subgaussian",
    of=(1.0, subgaussian_tail),
    wrong=[(1.05, subgaussian_tail), (1.0, lambda t, sigma: subgaussian_tail(t, 0.9 * sigma))],
)
def test_the_least_sigma_of_any_law_bounds_its_variance_and_its_tail(share, bound, rng):
    """The least sigma that its generating function allows, on a grid."""
    grid = np.concatenate([-np.geomspace(1e-3, 50, 200), np.geomspace(1e-3, 50, 200)])
    x, w = finite_variables(rng, 300)
    x[:, 0] += 1.0  # none is constant
    x = x - mean(x, w)[:, None]
    x = x / np.abs(x).max(-1, keepdims=True)
    exponent = logsumexp(grid[:, None, None] * x, axis=-1, b=w)
    least = (2 * exponent / grid[:, None] ** 2).max(0)
    at_most(share * mean(x * x, w), least, rtol=2e-3)
    sigma = least[:, None] ** 0.5
    z = np.linspace(0.001, 1, 300) * sigma * 4
    at_most(tail(x, w, z), bound(z, 1.001 * sigma))
    printed, true = math.exp(-0.5), stats.norm.sf(-1)
    assert true > printed
    slip(
        "U-subgaussian",
        f"X ~ N(0,1), u = −1: P(X ≥ −1) = {true:.4f}, but exp(−u²/2) = {printed:.4f}",
    )


@claim("U-subgaussian-bounded", "T-13", "F-chernoff-additive", "U-martingale", "X-bounded-range")
def test_hoeffdings_lemma_everywhere():
    """One term of a sum, or one step of a martingale; the factors of several multiply. Losses in
    a range of length eps have E exp(-L) = 1, so KL is that of lam = -1."""
    for_all(
        r"$X \in [a, b]$: $\ln\E e^{\lambda(X - \E X)} \le \frac{x^2}8$, $x = \lambda(b - a)$,",
        largest_cumulant,
        lambda x: x * x / 8,
        {"x": (0, 50)},
        touch=4 * (0,),
        too_low=[lambda x: 0.1249 * x * x],
    )


@claim(
    "U-subgaussian-mean", of=np.linalg.norm, wrong=[np.max, lambda s: s.mean() * math.sqrt(s.size)]
)
def test_sums_of_different_coins(sigma_of_sum, rng):
    for n in (2, 3, 6, 12):  # all 2^n sums, and the generating function
        signs = np.array(list(np.ndindex(*[2] * n))) * 2 - 1
        for _ in range(20):
            sigma = np.exp(rng.normal(size=n))
            total = sigma_of_sum(sigma)
            ends, exact = falling_tail((signs @ sigma)[None], np.full((1, 2**n), 0.5**n))
            up = ends > 0
            at_most(exact[up], subgaussian_tail(ends[up], total), rtol=1e-9)
            lam = np.linspace(-3, 3, 40)[:, None] / total
            at_most(np.log(np.cosh(lam * sigma)).sum(-1), (lam[:, 0] * total) ** 2 / 2)
    equal(sigma_of_sum(np.full(7, 0.3)), 7 * 0.3 / math.sqrt(7))  # a mean of 7 of one kind


@claim("F-stirling")
def test_stirlings_formula_everywhere():
    def factorial(n):
        return (n + 1).lgamma()

    def bound(shift):
        return lambda n: log(2 * PI * n) / 2 + n * log(n) - n + 1 / (12 * n + shift)

    box = {"n": (1, 1e6)}
    for_all(
        r"$\ln\Gamma(n + 1)$ is at least the lower bound",
        bound(1),
        factorial,
        box,
        too_high=[bound(0.3)],
    )
    for_all(
        r"$\ln\Gamma(n + 1)$ is at most the upper bound",
        factorial,
        bound(0),
        box,
        too_low=[bound(0.5)],
    )
    n = np.arange(1, 301)
    at_most(1 / (12 * n) - 1 / (12 * n + 1), 1 / (144.0 * n**2), rtol=1e-3)


@claim("U-pinsker")
def test_pinsker(rng):
    flat = (0.2, 1.0, 20.0)
    pairs = [rng.dirichlet(np.full(size, a), (2, 1500)) for size in (2, 3, 8) for a in flat]
    h = np.geomspace(1e-4, 0.4, 500)
    pairs.append(np.array([np.stack([0.5 + h, 0.5 - h], -1), np.stack([0.5 - h, 0.5 + h], -1)]))

    def check(bound):
        for p, q in pairs:
            at_most(np.abs(p - q).sum(-1), bound(dp.kl(p, q)), rtol=1e-9)

    check(lambda kl: np.sqrt(2 * kl))
    check(lambda kl: 2 * np.sqrt(-np.expm1(-kl)))
    must_fail(check, lambda kl: 0.999 * np.sqrt(2 * kl))
    must_fail(check, lambda kl: np.sqrt(kl))  # total variation is half of l1
    must_fail(check, lambda kl: 0.99 * 2 * np.sqrt(-np.expm1(-kl)))
    for p, q in pairs:  # zero if and only if the laws are the same
        equal(dp.kl(p, p), 0.0)
        holds(dp.kl(p, q)[np.abs(p - q).sum(-1) > 1e-9] > 0)


@claim("U-pinsker")
def test_bretagnolle_and_huber_for_coins_everywhere():
    """Coins of p = q + v (1 - q) and q: their l1 distance is 2 (p - q)."""

    def divergence(v, q):
        return (q + v * (1 - q)) * log1p(v * (1 - q) / q) + (1 - q) * (1 - v) * log1p(-v)

    for_all(
        r"Coins $p = q + v(1 - q)$ and $q$: $\norm{P - Q}_1^2 \le 4(1 - e^{-\KL(P \given Q)})$",
        lambda v, q: 4 * (v * (1 - q)) ** 2,
        lambda v, q: 4 * (1 - exp(-divergence(v, q))),
        {"v": (0, 0.99), "q": (0.01, 0.99)},
        touch=(0, 0),
        too_low=[lambda v, q: 1.9 * (1 - exp(-divergence(v, q)))],
    )


def test_extreme_arguments_give_bounds():
    coin = tail_bounds.chernoff(1.1, lambda t: math.log(0.75 + math.exp(t) / 4) if t < 700 else t)
    assert 0 < coin <= 5e-324 and 0 < tail_bounds.chernoff_kl(0.9, 1e9, 0.1) <= 5e-324
    assert tail_bounds.chernoff_kl(0.1, 1e9, 0.1) == 1.0
