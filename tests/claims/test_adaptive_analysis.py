"""The claims of the chapter `adaptive-analysis`: stability, and what it promises."""

from itertools import product

import numpy as np
from scipy import special, stats

import dpnotes as dp
from boxes import PI, exp, expm1, for_all, log1p, root, tanh
from dpnotes.chapters import adaptive_analysis as adaptive
from evidence import at_most, claim, equal, holds, must_fail, slip
from rounds import approximate_tree, joint
from strategies import analysis_settings, stable_error

ROOT = np.sqrt(2 * np.pi)


def laws(rng, *shape):
    """Random laws along the last axis, some of them with much mass on few outcomes."""
    return rng.dirichlet(np.full(shape[-1], 0.5), shape[:-1])


@claim("S-def-tv-stable", of=1.0, wrong=[0.99])
def test_means_move_by_range_times_eta(width, rng):
    p, q = laws(rng, 2, 3000, 6)
    eta = dp.total_variation(p, q)
    low, size = rng.normal(size=3000), rng.exponential(size=3000)
    g = low[:, None] + size[:, None] * rng.random((3000, 6))
    g[::2] = low[::2, None] + size[::2, None] * (p > q)[::2]  # the best g attains it
    moved = np.abs(((p - q) * g).sum(1))
    at_most(moved, width * size * eta, atol=1e-12)
    equal(moved[::2], (size * eta)[::2], rtol=1e-9, atol=1e-12)
    equal(dp.hockey_stick(p, q, 0.0), eta, rtol=1e-9, atol=1e-12)  # (0, eta)-DP


@claim("S-0.1")
def test_telescoping_is_bernoullis_inequality_everywhere():
    """k = 1 + j rounds, for real j; k eta may exceed 1."""
    for_all(
        r"$1 - (1 - \eta)^k \le k\eta$",
        lambda k, eta: 1 - exp(k * log1p(-eta)),
        lambda k, eta: k * eta,
        {"k": (1, 1000), r"\eta": (0.01, 0.99)},
        touch=(1,),
        too_low=[lambda k, eta: 0.9 * k * eta, lambda k, eta: eta * (1 + 0.4 * (k - 1))],
    )


def at_most_together(eta, k):
    """Stability of k rounds; the factors are independent."""
    return 1 - (1 - eta) ** k


@claim(
    "S-0.1",
    of=at_most_together,
    wrong=[lambda eta, k: 0.99 * at_most_together(eta, k), lambda eta, k: eta * np.sqrt(k)],
)
def test_stability_adds_up_and_multiplies_exactly(bound, rng):
    for eta in (0.01, 0.1, 0.3, 0.6):
        pair = approximate_tree(rng, [0.0] * 3, [eta] * 3, (3, 3, 3), 300)
        at_most(dp.total_variation(*map(joint, pair)), bound(eta, 3), rtol=1e-9)
        for k in (1, 2, 6):  # each round publishes the dataset with probability eta
            outcomes = np.array(list(product([0, 1], repeat=k)))
            chance = np.where(outcomes, eta, 1 - eta).prod(1)
            apart = chance[outcomes.any(1)].sum()  # seen by one dataset only
            equal(apart, bound(eta, k), rtol=1e-12)
    coin = np.array([0.65, 0.35])
    one = dp.total_variation(coin, coin[::-1])
    both = dp.total_variation(*(np.outer(law, law).ravel() for law in (coin, coin[::-1])))
    holds(both < 2 * one - 0.1)
    slip(
        "S-0.1",
        f"two rounds of randomized response that tells the truth with probability 0.65: each has "
        f"{one:.2f}, and the two together have {both:.2f}, not {2 * one:.2f}",
    )


def gaussian_tv(sigma, sensitivity=1.0):
    """Total variation of an answer with Gaussian noise."""
    return special.erf(np.sqrt(1 / 8) * sensitivity / sigma)


@claim("S-gaussian-tv")
def test_the_linear_bound_on_gaussian_noise_everywhere():
    for_all(
        r"$\operatorname{erf}\bigl(\frac1{2\sqrt2\,\sigma}\bigr) \le \frac1{\sqrt{2\pi}\,\sigma}$",
        lambda sigma: (1 / (root(8) * sigma)).erf(),
        lambda sigma: 1 / (root(2 * PI) * sigma),
        {r"\sigma": (0.01, 1e4)},
        too_low=[lambda sigma: 0.99 / (root(2 * PI) * sigma)],
    )


@claim(
    "S-gaussian-tv",
    of=gaussian_tv,
    wrong=[
        lambda sigma, step: gaussian_tv(sigma, 2 * step),
        lambda sigma, step: step / ROOT / sigma,
    ],
)
def test_stability_of_gaussian_answers(exact):
    noise, m = np.geomspace(0.02, 50, 25), np.array([[1], [7], [1000]])
    equal(exact(noise / m, 1 / m), dp.gaussian_delta(noise / m, 0.0, 1 / m), rtol=1e-9, atol=1e-12)
    equal(gaussian_tv(50.0), 1 / (ROOT * 50.0), rtol=1e-4)  # no smaller constant
    for sigma, k in ((0.7, 1), (3.0, 10), (40.0, 1000)):  # k adaptive answers
        equal(exact(sigma, np.sqrt(k)), dp.gaussian(sigma).compose(k).delta(0.0), rtol=1e-9)
    wrong = np.linspace(0.17, 0.9, 50)  # m sigma, where the printed root fails
    holds(1 / np.sqrt(2 * np.pi * wrong) < gaussian_tv(wrong))
    rows, sigma = 100, 0.005
    printed, true = 1 / np.sqrt(2 * np.pi * rows * sigma), gaussian_tv(sigma, 1 / rows)
    holds(printed < true)
    slip(
        "S-gaussian-tv",
        f"$m = {rows}$, $\\sigma = {sigma}$: $1/\\sqrt{{2\\pi m\\sigma}} = {printed:.3f}$ is below "
        f"the true distance {true:.3f}; $1/(\\sqrt{{2\\pi}}\\,m\\sigma)$ is "
        f"{1 / (ROOT * rows * sigma):.3f}",
    )


class World:
    """Every dataset of m rows from three values, a law D on them, and ten queries."""

    m = 3

    def __init__(self, rng):
        self.data, law = np.array(list(product(range(3), repeat=self.m))), laws(rng, 3)
        self.chance = law[self.data].prod(1)
        query = np.r_[np.eye(3), rng.random((7, 3))]
        self.gap = query[:, self.data].mean(-1).T - query @ law  # datasets, queries
        self.near = (self.data[:, None] != self.data).sum(-1) == 1

    def rules(self, rng, count):
        """Rules of many stabilities: a fixed law mixed with overfitting or arbitrary laws."""
        size, queries = self.gap.shape
        eta = rng.random((count, 1, 1)) ** 2
        chosen = laws(rng, count, size, queries)
        chosen[::2] = np.eye(queries)[self.gap.argmax(1)]
        return (1 - eta) * laws(rng, count, 1, queries) + eta * chosen

    def stability(self, rules):
        left, right = np.nonzero(self.near)
        return np.array([dp.total_variation(r[left], r[right]).max() for r in rules])


def overfit_exactly(eta, m, n):
    """A query "are you in the sample?" with probability eta, else 0; n^m equally likely samples.

    Returns the law of q(S) - q(D) as (values, probabilities); the rule is eta-TV-stable.
    """
    size = np.ones(1)  # law of how many different rows were drawn so far
    for _ in range(m):
        old = np.arange(len(size)) / n
        size = np.append(size * old, 0.0) + np.append(0.0, size * (1 - old))
    return np.r_[0.0, 1 - np.arange(m + 1) / n], np.r_[1 - eta, eta * size]


@claim(
    "S-generalization",
    of=(1.0, 2.0, 0.25, 1.25),
    wrong=[(0.99, 2, 0.25, 1.25), (1, 1.9, 0.25, 1.25), (1, 2, 0.24, 1.25), (1, 2, 0.25, 0.95)],
)
def test_the_error_of_a_stable_choice(mean, moved, fixed, square, rng):
    """Its mean, how far one row moves it, and the mean square of one run."""
    for _ in range(25):
        world = World(rng)
        rules = world.rules(rng, 40)
        shift, eta = (rules * world.gap).sum(-1), world.stability(rules)
        at_most(np.abs(shift @ world.chance), mean * eta, rtol=1e-9)
        moves = np.abs(shift[:, :, None] - shift[:, None])[:, world.near].max(1)
        at_most(moves, moved * eta + 1 / world.m, rtol=1e-9)
        squares = (rules * world.gap**2).sum(-1) @ world.chance
        at_most(squares, fixed / world.m + square * eta, rtol=1e-9)
    for eta in (0.01, 0.2, 0.9):  # "are you in the sample?" attains the mean
        value, chance = overfit_exactly(eta, 5, 10_000)
        at_most(value @ chance, mean * eta)
    # with probability eta "are you in S" on one dataset, "are you not" on the other
    for m, n, eta in ((50, 10**6, 0.05), (1000, 10**7, 0.01)):
        overfit = 1 - m / n
        at_most(2 * eta * overfit + (1 - eta) / m, moved * eta + 1 / m)
    for m in (5, 60):
        heads = np.arange(m + 1)
        squares = stats.binom.pmf(heads, m, 0.5) @ (heads / m - 0.5) ** 2
        at_most(squares, fixed / m, rtol=1e-9)
        value, chance = overfit_exactly(0.5, m, 10_000)
        at_most(value**2 @ chance, fixed / m + square * 0.5)


@claim(
    "S-generalization",
    of=stable_error,  # what is printed is larger: it has m for 2m under the root
    wrong=[
        lambda eta, m, delta: stable_error(eta, m, delta) / 2,
        lambda eta, m, delta: eta + 2 * eta * m * np.sqrt(np.log(2 / delta) / m),
        lambda eta, m, delta: stable_error(eta, m, np.sqrt(delta)),
    ],
)
def test_a_stable_choice_generalises_for_almost_every_sample(bound, rng):
    deltas = np.array([0.9, 0.5, 0.2, 0.05, 0.01, 1e-4])
    for _ in range(25):  # small worlds, every sample
        world = World(rng)
        rules = world.rules(rng, 20)
        shift = np.abs((rules * world.gap).sum(-1))
        limit = bound(world.stability(rules)[:, None], world.m, deltas)
        missed = ((shift[:, None] > limit[..., None]) * world.chance).sum(-1)
        at_most(missed, deltas)
    for m in (20, 200, 2000):  # coins; the query or its opposite, by the sample's own count
        heads = np.arange(m + 1)
        chance = stats.binom.pmf(heads, m, 0.5)
        for eta in (0.0, 0.3 / m, 1 / m, 0.1):
            lean = np.clip(0.5 + eta * (heads - m / 2), 0, 1) if eta else np.ones(m + 1)
            shift = np.abs((2 * lean - 1) * (heads / m - 0.5))
            for delta in deltas:
                at_most(chance[shift > bound(eta, m, delta)].sum(), delta)


def noise_for_error(tau, k, m, delta):
    return k / (ROOT * m * adaptive.stability_for_error(tau, m, delta))


@claim("S-sigma-tv", of=(1 / np.sqrt(np.pi), 2.1), wrong=[(0.58, 2.1), (1 / np.sqrt(np.pi), 1.1)])
def test_noise_for_an_error(low, high, rng):
    tau, k, m, delta, luck = analysis_settings(rng, 20_000)
    order = k * np.sqrt(np.log(2 / delta)) / (np.sqrt(m) * tau)

    def check(sigma):
        eta = k / (ROOT * m * sigma)
        fine = eta <= 1
        equal(stable_error(eta[fine], m[fine], delta[fine]), tau[fine], rtol=1e-9)

    sigma, easy = noise_for_error(tau, k, m, delta), tau >= 2 * luck
    at_most(low * order, sigma)
    at_most(sigma[easy], high * order[easy])
    check(sigma)
    must_fail(check, sigma / np.sqrt(2))
    must_fail(check, order)


@claim("S-sigma-tv")
def test_the_slips_on_the_way_to_the_noise():
    k, m, sigma, delta = 10, 1000, 0.5, 0.05
    first, luck = k / (ROOT * m * sigma), np.sqrt(np.log(2 / delta) / m)
    line, printed = first + 3 * k / (ROOT * sigma) * luck, first * (1 + 3 * luck * np.sqrt(m))
    right = first + 3 * k * np.sqrt(np.log(2 / delta)) / (ROOT * np.sqrt(m) * sigma)
    equal(line, right)
    holds(line > 20 * printed)
    slip(
        "S-sigma-tv",
        f"$k = {k}$, $m = {m}$, $\\sigma = {sigma}$, $\\delta = {delta}$: the last '=' puts "
        f"{printed:.3f} for {line:.3f}; with $\\sqrt m\\,\\sigma$ it is {right:.3f}",
    )
    part = 1 / (ROOT * 0.9)
    holds(2 * part + 1 > 3 * part)
    slip(
        "S-sigma-tv",
        f"$k = 1$, $\\sigma = 0.9$: $2\\eta m + 1 = {2 * part + 1:.3f}$ exceeds "
        f"$3\\eta m = {3 * part:.3f}$, though $\\sigma < 1$",
    )
    asked = np.array([adaptive.sample_size_for_error(0.1, k / ROOT / 0.05, d) for d in (0.1, 1e-9)])
    enough = k / (0.1 * np.sqrt(asked)) / 0.05  # the headline's sigma over the one that is enough
    holds(enough[1] < enough[0] / 2.5)
    slip(
        "S-sigma-tv",
        "ten queries, error 0.1: $k/(\\tau\\sqrt m)$ over the noise that is enough is "
        f"{enough[0]:.2f} at $\\delta = 0.1$ and {enough[1]:.2f} at $10^{{-9}}$",
    )
    bias = adaptive.vote_bias(100)
    holds(np.array(bias > 0.03))
    slip(
        "S-sigma-tv",
        "$\\sigma = 0$ is in $O(\\dots)$: exact answers about 100 rows of coin tosses let "
        f"each feature's vote look {bias:.3f} better than it is; a thousand such votes are "
        f"together right for {adaptive.vote_accuracy(100, 1000):.0%} of the rows",
    )
    big = np.arange(3, 200)  # with three queries or more, sigma < 1 is enough for the merge
    at_most(1.0, big / ROOT)


@claim(
    "S-m-tv",
    of=adaptive.sample_size_for_error,
    wrong=[
        lambda *given: adaptive.sample_size_for_error(*given) * 1.001 + 1,
        lambda *given: np.floor(0.999 * adaptive.sample_size_for_error(*given)),
        lambda tau, rate, d: np.ceil(2 * np.pi * rate**2 * np.sqrt(np.log(2 / d)) / tau**2),
    ],
)
def test_rows_for_an_error(rows, rng):
    tau, delta = 10 ** rng.uniform(-2, 0, 5000), 10 ** rng.uniform(-9, -0.01, 5000)
    k, sigma = np.floor(10 ** rng.uniform(0, 3, 5000)), 10 ** rng.uniform(-2, 1, 5000)
    rate, log = k / (ROOT * sigma), np.log(2 / delta)
    m = rows(tau, rate, delta)
    at_most(stable_error(rate / m, m, delta), tau, rtol=1e-9)
    few = (m < 1e7) & (m > 1)  # where one row less makes a difference
    less = (m - 1)[few]
    at_most(tau[few], stable_error(rate[few] / less, less, delta[few]), rtol=1e-9)
    at_most(m, np.ceil(1.3 * log * (1 + 2 * rate) ** 2 / tau**2))
    at_most(k**2 * log / (np.pi * tau**2 * sigma**2), m)


@claim("S-m-tv")
def test_the_printed_root_of_the_logarithm_is_not_enough():
    k, tau, noises = 10, 0.1, []
    for power in (10, 100, 300):  # m a growing multiple of what is printed
        delta = 10.0**-power
        log = np.log(1 / delta)
        m = np.ceil(100 * k**2 * np.sqrt(log) / tau**2 * log**0.25)
        noises.append(noise_for_error(tau, k, m, delta))
        right = np.ceil(100 * k**2 * log / tau**2 * log**0.25)
        at_most(noise_for_error(tau, k, right, delta), 0.2)
    holds(np.diff(noises) > 0)
    slip(
        "S-m-tv",
        "$k = 10$, $\\tau = 0.1$ and $m = 100\\,(\\ln\\frac1\\delta)^{1/4}\\, k^2"
        "\\sqrt{\\ln(1/\\delta)}/\\tau^2$, $\\omega$ of what is printed as $\\delta \\to 0$:"
        f" the noise that the bound asks for rises, {noises[0]:.3f}, {noises[1]:.3f}, "
        f"{noises[2]:.3f} for $\\delta = 10^{{-10}}, 10^{{-100}}, 10^{{-300}}$",
    )


@claim("S-dp-tv")
def test_tight_below_loose_everywhere():
    """Both are linear in delta; at delta = 0 it is the bound of F-3.18, divided by eps."""
    for_all(
        r"$\tanh\frac\eps2 + \delta(1 - \tanh\frac\eps2) \le \frac{e^\eps - 1}2 + \delta$",
        lambda e, d: tanh(e / 2) + d * (1 - tanh(e / 2)),
        lambda e, d: expm1(e) / 2 + d,
        {r"\eps": (0, 50), r"\delta": (0.01, 1)},
        touch=(0,),
        too_low=[lambda e, d: expm1(e) / 2 + 0.9 * d],
    )


def apart(epsilon, delta):
    return np.tanh(epsilon / 2) + delta * (1 - np.tanh(epsilon / 2))


@claim(
    "S-dp-tv",
    of=apart,
    wrong=[lambda e, d: 0.999 * apart(e, d), lambda e, d: np.tanh(e / 2) + d / 2],
)
def test_private_laws_are_close(bound, rng):
    for epsilon in (0.0, 0.01, 0.3, 1.0, 3.0, 20.0):
        p, q = laws(rng, 2, 2000, 5)
        q[::2] = p[::2] + (q - p)[::2] * rng.random((1000, 1))
        both = dp.hockey_stick(p, q, epsilon), dp.hockey_stick(q, p, epsilon)
        at_most(dp.total_variation(p, q), bound(epsilon, np.maximum(*both)), atol=1e-12)
        for delta in (0.0, 1e-6, 0.1, 1.0):  # attained: the name with probability delta
            coin = (1 - delta) * np.array([1, np.exp(-epsilon)]) / (1 + np.exp(-epsilon))
            p, q = np.r_[delta, 0, coin], np.r_[0, delta, coin[::-1]]
            at_most(dp.hockey_stick(p, q, epsilon), delta, atol=1e-15)
            at_most(dp.hockey_stick(q, p, epsilon), delta, atol=1e-15)
            equal(dp.total_variation(p, q), bound(epsilon, delta), atol=1e-14)


@claim("S-dp-tv-composed")
def test_pinsker_serves_for_the_stated_bound_everywhere():
    for_all(
        r"$\frac x2 \le x\sqrt2\,y + e^{-y^2}$, $x = \eps\sqrt k$, $y = \sqrt{\ln(1/\delta')}$,",
        lambda x, y: x / 2,
        lambda x, y: root(2) * x * y + exp(-y * y),
        {"x": (0, 2), "y": (1e-3, 5)},
        too_low=[lambda x, y: root(2) * x * y / 6 + exp(-y * y)],
    )


def by_accountant(epsilon, k):
    return dp.randomized_response(epsilon).compose(k).delta(0.0)


@claim("S-dp-tv-composed", of=1.0, wrong=[0.79])
def test_pinskers_bound_for_many_private_answers(factor):
    for epsilon, k in product((1e-3, 0.01, 0.1, 0.5, 2.0), (1, 2, 7, 100, 2000)):
        pinsker = np.sqrt(k * epsilon * np.tanh(epsilon / 2) / 2)
        at_most(by_accountant(epsilon, k), factor * pinsker, rtol=1e-9)


@claim("S-dp-tv-composed")
def test_the_chain_of_the_lecture_mended():
    eps, k, d = 0.01, 100, 0.01
    y = 2 * eps * np.sqrt(2 * k * np.log(1 / d))
    assert eps <= 1 / np.sqrt(k) and eps * 2 * np.sqrt(2 * k * np.log(1 / d)) < 1
    slip(
        "S-dp-tv-composed",
        f"$\\varepsilon = {eps}$, $k = {k}$, $\\delta' = {d}$, within all the conditions: "
        f"$y = 2\\varepsilon\\sqrt{{2k\\ln(1/\\delta')}} = {y:.3f}$ and $e^y - 1 = "
        f"{np.expm1(y):.3f}$. The chain gives {np.expm1(y) / 2 + d:.3f}, the conclusion says "
        f"{y / 2 + d:.3f}; the exact distance is {by_accountant(eps, k):.4f}",
    )
