"""Random queries: log-uniform over what is served, and round numbers as people write them."""

from dataclasses import replace
from inspect import signature
from math import inf, isfinite, log10

import numpy as np

from .judge import Query, run_code
from .laws import LAWS, Part

SHAPES = """
4 gaussian; 4 laplace; 4 response; 4 finite; 4 leaky; 10 sampled gaussian; 8 sampled laplace
3 sampled response; 3 sampled finite; 3 laplace + laplace; 3 gaussian + laplace
3 gaussian + response; 3 laplace + finite; 2 response + finite; 5 sampled gaussian + gaussian
4 sampled gaussian + sampled laplace; 4 sampled laplace + laplace
3 sampled gaussian + sampled gaussian; 2 sampled laplace + response; 2 sampled gaussian + leaky
2 sampled gaussian + laplace + response; 2 gaussian + laplace + sampled laplace
8 swapped gaussian; 2 swapped gaussian + gaussian
2 swapped gaussian + sampled gaussian; 2 discrete_gaussian; 2 discrete_laplace
2 sampled discrete_gaussian; 1 sampled discrete_laplace
1 discrete_gaussian + gaussian; 1 discrete_gaussian + sampled gaussian
1 discrete_laplace + gaussian; 1 discrete_laplace + sampled laplace; 1 bounded_range
1 discrete_gaussian + discrete_laplace; 1 bounded_range + gaussian; 1 best_of_loss; 4 schedule
"""  # how often, and which parts
SHAPES = [
    (int(weight), names.split(" + "))
    for weight, names in (
        shape.strip().split(" ", 1)
        for line in SHAPES.strip().split("\n")
        for shape in line.split(";")
    )
]
NAMED = {word for _, names in SHAPES for name in names for word in name.split()}
KINDS = NAMED | set(LAWS)
SHAPES += [(2, [how + kind]) for kind in LAWS if kind not in NAMED for how in ("", "sampled ")]
ROUND = [1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0]


class Drawn:
    """The numbers of one setting."""

    def __init__(self, rng):
        self.rng, self.natural = rng, rng.random() < 0.5

    def number(self, low, high, usual):
        """Log-uniform in [low, high], or a round number in the usual range."""
        low, high = usual if self.natural else (low, high)
        x = 10 ** self.rng.uniform(log10(low), log10(high))
        if self.natural:
            x = min(max(self.rng.choice(ROUND) * 10.0 ** np.floor(log10(x)), low), high)
            return float(f"{x:.3g}")
        return float(x)

    def rounds(self):
        way = self.rng.random()
        if way < 0.35:
            return int(self.rng.choice([1, 1, 2, 2, 3, 5]))
        most = 1e2 if way < 0.6 else 1e6 if way < 0.9 else 1e12
        return int(self.number(1, most, (1, most)))

    def law(self, leaky):
        """Two laws of some outcomes, rounded to some digits; leaky ones with zeros."""
        n, digits = int(self.rng.integers(3 if leaky else 2, 5)), 2 if self.natural else 17
        p, q = self.rng.dirichlet(np.full(n, self.rng.choice([0.3, 1.0, 10.0])), size=2) + 1e-9
        if leaky:
            (p if self.rng.random() < 0.5 else q)[-1] = 0.0
            p[-1] *= float(self.rng.choice([1.0, 1e-6, 1e-12]))
        p, q = (np.round(x / x.sum(), digits) for x in (p, q))
        p[0] += 1 - p.sum()
        q[0] += 1 - q.sum()
        if min(p.min(), q.min()) < 0 or (not leaky and min(p.min(), q.min()) == 0):
            return self.law(leaky)
        return tuple(p.tolist()), tuple(q.tolist())

    def value(self, kind, k, rate):
        """The parameters of a kind, so that k rounds are worth a question."""
        root = k**0.5 if self.rng.random() < 0.5 else 1.0
        if kind == "gaussian":
            sigma = self.number(0.05, 30, (0.5, 5)) * max(1.0, root * (rate if k > 100 else 1.0))
            return (min(max(float(f"{sigma:.4g}"), 0.01), 1e6),)
        if kind == "laplace":
            return (min(max(self.number(1e-2, 1e3, (0.5, 50)) * root, 1e-4), 1e8),)
        if kind == "response":
            return (max(self.number(1e-3, 10, (0.1, 3)) / root, 1e-15),)
        if kind == "discrete_gaussian":
            sensitivity = int(self.rng.choice([1, 1, 1, 2, 5]))
            sigma = self.number(0.25, 5, (0.5, 4)) * min(root, 30.0) ** 0.5
            return max(sigma, 0.25 * sensitivity), sensitivity
        if kind == "bounded_range":
            return max(self.number(1e-3, 10, (0.1, 3)) / root, 1e-6), int(
                self.rng.choice([1, 5, 40])
            )
        if kind == "best_of_loss":
            return *self.law(False), self.number(1.1, 1e3, (2, 100))
        if kind in ("finite", "leaky"):
            return self.law(kind == "leaky")
        noise = self.number(0.05, 300, (0.5, 50)) * root
        several = len(signature(LAWS[kind]).parameters) > 1  # a sensitivity beside
        return (noise, int(self.rng.choice([1, 1, 2, 3, 8]))) if several else (noise,)

    def part(self, name, few):
        way, _, kind = name.rpartition(" ")
        k = int(self.rng.integers(1, 4)) if few else self.rounds()
        k = min(k, {"best_of_loss": 1000, "discrete_gaussian": 10**6}.get(kind, k))
        rate = min(self.number(1e-8, 0.999, (1e-4, 0.5)), 0.999) if way else 1.0
        value = self.value(kind, k, rate)
        part = Part("finite" if kind == "leaky" else kind, value, k, rate)
        return replace(part, sampler="subsample_substitution") if way == "swapped" else part

    def schedule(self):
        """Sampled Gaussians, of noise and rates that change."""
        n = int(self.rng.choice([2, 5, 9, 20]))
        sigma = np.exp(self.rng.uniform(*np.log(sorted(self.rng.uniform(0.7, 20, 2))), n))
        rate = np.exp(self.rng.uniform(*np.sort(np.log(10) * self.rng.uniform(-4, -0.7, 2)), n))
        k = self.rng.integers(1, 100, n)
        rows = zip(sigma.tolist(), rate.tolist(), k.tolist(), strict=True)
        return tuple(Part("gaussian", (s,), k, r) for s, r, k in rows)

    def delta(self):
        if self.natural:
            return float(10.0 ** -self.rng.integers(2, 13))
        way = self.rng.random()
        if way < 0.9:
            return float(10 ** self.rng.uniform(*((-20, -0.01) if way < 0.7 else (-300, -20))))
        return float(1 - 10 ** self.rng.uniform(-12, -0.3))


def draw(seed, index, namespace):
    """The query of this index: mechanisms by shape, then a method and a point for it."""
    rng = np.random.default_rng([seed, index])
    weights = np.array([weight for weight, _ in SHAPES], dtype=float)
    names = SHAPES[rng.choice(len(SHAPES), p=weights / weights.sum())][1]
    drawn, odds = Drawn(rng), [0.42, 0.4, 0.1, 0.08]
    if names == ["schedule"]:
        parts, odds = drawn.schedule(), [0.5, 0.5, 0.0, 0.0]
    else:
        few = len(names) > 1 and rng.random() < 0.4
        parts = tuple(drawn.part(name, few) for name in names)
    method = str(rng.choice(["delta", "epsilon", "tradeoff", "renyi"], p=odds))
    return Query(parts, method, _point(drawn, parts, method, namespace))


def _point(drawn, parts, method, namespace):
    """Where to ask. An epsilon that matters is one where dpnotes thinks there is some delta: the
    accountant chooses the place here, never the answer."""
    rng, natural = drawn.rng, drawn.natural
    if method == "epsilon":
        return drawn.delta()
    if method == "tradeoff":
        return float(rng.choice([0.01, 0.05, 0.31]) if natural else 10 ** rng.uniform(-12, -0.02))
    if method == "renyi":
        return 1 + (
            float(rng.choice([1, 4, 9, 31])) if natural else drawn.number(1e-3, 1e4, (1, 9))
        )
    way = rng.random()
    if way < 0.12:
        return 0.0
    try:
        run = run_code(parts, namespace)
        top = float(run.epsilon(0.0)) if way < 0.3 else inf
        if isfinite(top) and top > 0:
            share = rng.choice([rng.random(), 1 - 10 ** rng.uniform(-15, -1)])
            return min(float(top * share), np.nextafter(top, 0.0))
        near = float(run.epsilon(drawn.delta()))
    except Exception:  # the query itself will say it
        near = inf
    near = near if isfinite(near) else float(10 ** rng.uniform(-6, 3))
    return float(f"{near:.2g}") if natural else near * float(10 ** rng.uniform(-0.02, 0.02))
