"""The claims of `stopping` about the best of several runs, and what a choice is charged."""

from fractions import Fraction
from itertools import product

import mpmath
import numpy as np
from scipy.stats import poisson

import dpnotes as dp
from boxes import cosh, exp, for_all, log, sinh
from dpnotes.chapters import stopping
from evidence import at_most, claim, equal, holds
from strategies import close_laws


@claim("X-range-charge")
def test_the_charge_for_a_range_everywhere():
    """With S(x) = log(sinh(x/2)/(x/2)), a = alpha and e = eps, the charge is a sum of differences.

    It is S(a e) - S((a-1) e) + (S(a e) - S(e))/(a-1), so at most a e^2/8 if x^2/24 - S(x) rises.
    """
    for_all(
        r"$\frac{x^2}{24} - S(x)$ rises: $t\cosh t \le (1 + \frac{t^2}3)\sinh t$",
        lambda t: t * cosh(t),
        lambda t: (1 + t * t / 3) * sinh(t),
        {"t": (0, 50)},
        touch=5 * (0,),
        too_low=[lambda t: (1 + t * t / 3.01) * sinh(t)],
    )

    def size(x):
        return log((1 - exp(-x)) / x) + x / 2

    def charge(e, a):
        return size(a * e) - size(a * e - e) + (size(a * e) - size(e)) / (a - 1)

    for_all(
        r"the charge is at most $\frac{\alpha\eps^2}8$",
        (np.vectorize(stopping.bounded_range_renyi), charge),
        lambda e, a: a * e * e / 8,
        {r"\eps": (2, 20), r"\alpha": (1.5, 20)},
        too_low=[lambda e, a: a * e * e / 12],
    )


@claim("X-range-charge")
def test_what_a_selection_is_charged_is_rounded_up():
    """The worst coin in 60 digits, near order 1 and far from it; never above alpha epsilon^2/8."""
    with mpmath.workdps(60):
        for epsilon, more in product((1e-3, 0.3, 3.0, 400.0), (1e-6, 1e-3, 0.5, 1.0, 70.0, 1e6)):
            charge = stopping.bounded_range_renyi(epsilon, 1 + more)
            e, a, x = mpmath.mpf(epsilon), mpmath.mpf(1 + more), mpmath.mpf(1 + more) - 1
            # (1-h) e^(x(t-e)) + h e^(xt) of the coin with chance h = (1 - e^(t-e))/(1 - e^-e), at
            # the t where its derivative is 0
            t = e + mpmath.log(x * (1 - mpmath.exp(-a * e)) / (a * (1 - mpmath.exp(-x * e))))
            high = mpmath.expm1(t - e) / mpmath.expm1(-e)
            exact = mpmath.log(high * mpmath.exp(x * t) + (1 - high) * mpmath.exp(x * (t - e))) / x
            room = 1.1e-14 * (1 + epsilon) * (1 + 1 / more) + 1e-13 * (1 + epsilon)
            holds(np.array([0 <= charge - exact <= room, charge <= (1 + more) * epsilon**2 / 8]))


LAWS = [
    stopping.fixed_runs(4),
    stopping.geometric_runs(5.0),
    stopping.negative_binomial_runs(0.0, 0.05),
    stopping.negative_binomial_runs(-0.5, 0.02),
    stopping.negative_binomial_runs(3.0, 0.3),
    stopping.poisson_runs(3.0),
]


def masses(runs, most):
    """P(K = 0..most), written down once more."""
    k = np.arange(1, most + 1)
    if runs == LAWS[0]:
        return (np.arange(most + 1) == 4) * 1.0
    if runs == LAWS[-1]:
        return poisson.pmf(np.arange(most + 1), 3.0)
    eta, gamma = runs.eta, runs.gamma
    weight = np.cumprod((1 - gamma) * np.array([1.0, *((k[:-1] + eta) / (k[:-1] + 1))]))
    return np.array([0.0, *(weight / weight.sum())])


@claim("X-best-law", of=lambda law: law, wrong=[lambda law: law[::-1]])
def test_the_law_of_the_best(change, rng):
    for runs in LAWS:
        chance = masses(runs, 3000)
        equal(runs.mean, chance @ np.arange(3001), rtol=1e-9)
        for _ in range(8):
            p = rng.dirichlet(np.full(6, 0.5))
            below = np.cumsum(p)[:, None] ** np.arange(3001) @ chance
            expected = np.diff(np.array([0.0, chance[0], *below]))
            expected[1:2] = below[0] - chance[0]
            equal(change(stopping.best_of_law(p, runs)), expected, rtol=1e-8, atol=1e-13)


def cancelling(p, runs):
    upto, k = np.maximum(1 - np.append(np.cumsum(p[:0:-1])[::-1], 0.0), p), runs.mean
    return np.append(0.0, -(upto**k) * np.expm1(k * np.log1p(-np.minimum(p / upto, 1 - 1e-16))))


@claim("X-best-law", of=stopping.best_of_law, wrong=[cancelling])
def test_best_of_fixed_runs_rare_outputs(law):
    """Masses by whole numbers: the chances of one run are multiples of 2^-900."""

    def exact(p, k):
        upto = np.cumsum([int(x * 2**900) for x in p], dtype=object)
        below = np.append([0], upto[:-1])
        return [
            float(Fraction(int(b) ** k - int(a) ** k, int(upto[-1]) ** k))
            for a, b in zip(below, upto, strict=True)
        ]

    for k in (2, 10, 20):
        p = np.append(np.full(10, 1e-14), [1e-9, 1e-3, 0.4, 0.0])
        p[-1] = 1 - p.sum()
        equal(law(p, stopping.fixed_runs(k))[1:], exact(p, k), rtol=1e-11)


@claim("X-best-pure")
def test_best_of_many_costs_less_than_twice():
    def formula(g, e):
        return e + 2 * log((exp(e) + g) / (1 + g * exp(e)))

    def geometric(g, e):
        runs = [stopping.geometric_runs(1 / x) for x in g]
        return [stopping.best_of_pure(y, run) for y, run in zip(e, runs, strict=True)]

    for_all(
        r"$\eps + 2\ln\frac{e^\eps + \gamma}{1 + \gamma e^\eps} \le 3\eps$",
        (geometric, formula),
        lambda g, e: 3 * e,
        {r"\gamma": (1e-4, 0.99), r"\eps": (1e-3, 20)},
        too_low=[lambda g, e: 2.9 * e],
    )


@claim(
    "X-best-pure",
    of=stopping.best_of_pure,
    wrong=[
        lambda e, runs: 3 * e,
        lambda e, runs: 0.999 * stopping.best_of_pure(e, runs),
        lambda e, runs: e,  # "only the best was published"
    ],
)
def test_the_best_of_pure_runs_and_that_it_is_attained(bound, rng):
    for runs, epsilon in product(LAWS, (0.1, 1.0, 3.0)):
        for p, q in zip(*close_laws(rng, epsilon, size=6, count=30), strict=True):
            a, b = stopping.best_of_law(p, runs), stopping.best_of_law(q, runs)
            at_most(np.abs(np.log(a[1:] / b[1:])).max(), bound(epsilon, runs), rtol=1e-9)
        # three outputs: bad, the one that is told apart, good
        u, v, s = np.exp(epsilon) / (1 + np.exp(epsilon)), 1 / (1 + np.exp(epsilon)), 1e-7
        x = np.exp(epsilon) * s
        p = np.array([u * (1 - x), x, (1 - u) * (1 - x)])
        q = np.array([v * (1 - s), s, (1 - v) * (1 - s)])
        at_most(np.abs(np.log(p / q)).max(), epsilon, rtol=1e-5)
        worst = stopping.best_of_loss(p, q, runs).renyi(np.inf)
        equal(worst, bound(epsilon, runs), rtol=1e-4)

    epsilon = np.array([0.01, 0.3, 2.0, 20.0])
    for eta, gamma in product((-0.9, 0.0, 1.0, 4.0), (1e-6, 0.1, 0.9)):
        runs = stopping.negative_binomial_runs(eta, gamma)
        at_most(stopping.best_of_pure(epsilon, runs), (2 + eta) * epsilon)
    gamma = 1e-9
    equal(stopping.best_of_pure(2.0, stopping.geometric_runs(1 / gamma)), 6.0, rtol=1e-8)


@claim(
    "X-best-renyi",
    of=stopping.best_of_renyi,
    wrong=[
        lambda loss, runs, alpha: loss.renyi(alpha),
        lambda loss, runs, alpha: runs.renyi(loss, np.array(alpha)),  # of this order alone
    ],
)
def test_the_renyi_bound_on_the_best(bound, rng):
    alpha = np.array([1.5, 2.0, 4.0, 10.0])

    for runs in LAWS:
        p, q = rng.dirichlet(np.full(5, 0.5), 2) + 1e-3
        p, q = p / p.sum(), q / q.sum()
        q = 0.7 * p + 0.3 * q
        loss = dp.finite(p, q)
        order = np.argsort(rng.random(5))
        best = stopping.best_of_loss(p[order], q[order], runs)
        at_most(best.renyi(alpha), bound(loss, runs, alpha))
        at_most(best.epsilon(1e-3), stopping.best_of_epsilon(loss, runs, 1e-3), atol=1e-12)

    # for Poisson runs written down again; the others are compared with another library below
    loss, power = dp.gaussian(2.0), alpha - 1
    leaked = dp.gaussian_delta(2.0, np.log(alpha / power))
    moment = 1 + 3.0 * np.exp(3.0 * power * leaked) * np.expm1(power * alpha / 8)
    found = stopping.best_of_renyi(loss, stopping.poisson_runs(3.0), alpha)
    equal(found, np.log(moment) / power, rtol=1e-9)

    # the bound of one order is far above that of a larger one
    low = bound(dp.gaussian(7.07), stopping.negative_binomial_runs(0, 0.01), [1.1, 2.0, 20.0])
    at_most(low[:-1], low[1:])
    at_most(low, 0.782)


@claim("X-best-renyi", of=lambda epsilon: epsilon, wrong=[lambda epsilon: 0.999 * epsilon])
def test_the_best_of_gaussian_runs_as_another_library_has_it(change):
    from dp_accounting import GaussianDpEvent
    from dp_accounting.dp_event import RepeatAndSelectDpEvent
    from dp_accounting.rdp import RdpAccountant

    orders = 1 + np.geomspace(0.02, 2000.0, 3000)  # ours are near the best one, at 1 percent

    def theirs(mean, shape):
        accountant = RdpAccountant(orders=list(orders))
        accountant.compose(RepeatAndSelectDpEvent(GaussianDpEvent(2.0), mean, shape))
        return accountant.get_epsilon(1e-5)

    for runs, shape in ((LAWS[1], 1), (LAWS[2], 0), (LAWS[4], 3)):
        ours = change(stopping.best_of_epsilon(dp.gaussian(2.0), runs, 1e-5))
        equal(ours, theirs(runs.mean, shape), rtol=2e-5)
    ours = stopping.best_of_epsilon(dp.gaussian(2.0), stopping.poisson_runs(10.0), 1e-5)
    at_most(ours, theirs(10.0, np.inf))
