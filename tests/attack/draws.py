"""Random queries: log-uniform over what is served, and round numbers as people write them."""

from dataclasses import replace
from math import inf, isfinite, log10

import numpy as np

from .judge import Query
from .mechanisms import Part

__all__ = ["KINDS", "draw"]

SHAPES = (  # how many parts of which kinds, and how often
    (4, ("gaussian",)),
    (4, ("laplace",)),
    (4, ("response",)),
    (4, ("finite",)),
    (4, ("finite0",)),
    (10, ("sampled gaussian",)),
    (8, ("sampled laplace",)),
    (3, ("sampled response",)),
    (3, ("sampled finite",)),
    (3, ("laplace", "laplace")),
    (3, ("gaussian", "laplace")),
    (3, ("gaussian", "response")),
    (3, ("laplace", "finite")),
    (2, ("response", "finite")),
    (5, ("sampled gaussian", "gaussian")),
    (4, ("sampled gaussian", "sampled laplace")),
    (4, ("sampled laplace", "laplace")),
    (3, ("sampled gaussian", "sampled gaussian")),
    (2, ("sampled laplace", "response")),
    (2, ("sampled gaussian", "finite0")),
    (2, ("sampled gaussian", "laplace", "response")),
    (2, ("gaussian", "laplace", "sampled laplace")),
    (8, ("swapped gaussian",)),
    (3, ("swapped laplace",)),
    (2, ("swapped response",)),
    (2, ("swapped gaussian", "gaussian")),
    (2, ("swapped gaussian", "sampled gaussian")),
    (1, ("swapped gaussian", "swapped laplace", "response")),
)
LATER = (  # kinds that came later: every EIGHTH setting, so that the others stay what they were
    (6, ("discrete_gaussian",)),
    (4, ("discrete_laplace",)),
    (5, ("sampled discrete_gaussian",)),
    (3, ("sampled discrete_laplace",)),
    (2, ("swapped discrete_gaussian",)),
    (2, ("swapped discrete_laplace",)),
    (3, ("discrete_gaussian", "gaussian")),
    (2, ("discrete_gaussian", "sampled gaussian")),
    (2, ("discrete_gaussian", "laplace")),
    (2, ("discrete_laplace", "gaussian")),
    (2, ("discrete_laplace", "sampled laplace")),
    (2, ("discrete_gaussian", "discrete_laplace")),
    (3, ("bounded_range",)),
    (1, ("bounded_range", "gaussian")),
    (3, ("best_of_loss",)),
    (10, ("schedule",)),
)
EIGHTH = 8
ROUND = np.array([1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0])


KINDS = {kind for _, names in SHAPES + LATER for name in names for kind in name.split()}


class Drawn:
    """Numbers of one setting."""

    def __init__(self, rng):
        self.rng, self.natural = rng, rng.random() < 0.5

    def number(self, low, high, usual):
        """Log-uniform in [low, high], or a round number in the usual range."""
        if self.natural:
            low, high = usual
            x = 10 ** self.rng.uniform(log10(low), log10(high))
            ten = 10.0 ** np.floor(log10(x))
            return float(f"{float(min(max(self.rng.choice(ROUND) * ten, low), high)):.3g}")
        return float(10 ** self.rng.uniform(log10(low), log10(high)))

    def rounds(self):
        way = self.rng.random()
        if way < 0.35:
            return int(self.rng.choice([1, 1, 2, 2, 3, 5]))
        if way < 0.6:
            return int(10 ** self.rng.uniform(0, 2))
        if way < 0.9:
            return int(self.number(10, 1e6, (10, 1e6)))
        return int(self.number(1e6, 1e12, (1e6, 1e12)))

    def law(self, zeros):
        n = int(self.rng.integers(2, 5))
        sharpness = float(self.rng.choice([0.3, 1.0, 10.0]))
        p, q = self.rng.dirichlet(np.full(n, sharpness), size=2) + 1e-9
        if zeros:
            n = max(n, 3)
            p, q = self.rng.dirichlet(np.full(n, 3.0), size=2)
            p[0] *= 1.0 if self.rng.random() < 0.5 else 0.0
            q[-1] = 0.0 if p[0] or self.rng.random() < 0.5 else q[-1]
            p[-1] *= float(self.rng.choice([1.0, 1e-6, 1e-12]))
        digits = 2 if self.natural else 17
        p, q = (np.maximum(np.round(x / x.sum(), digits), 0.0) for x in (p, q))
        p[1] += 1 - p.sum()
        q[1] += 1 - q.sum()
        if min(p.min(), q.min()) < 0 or (not zeros and min(p.min(), q.min()) == 0):
            return self.law(zeros)
        return tuple(p.tolist()), tuple(q.tolist())

    def later(self, kind, k):
        """Parts of one round each, or few: tables of outcomes grow quickly."""
        if kind == "discrete_gaussian":
            size = k**0.25 if k > 10 and self.rng.random() < 0.5 else 1.0
            sigma = self.number(0.25, 5, (0.5, 4)) * size
            sensitivity = int(self.rng.choice([1, 1, 1, 2, 5]))
            return Part(kind, (max(sigma, 0.25 * sensitivity), sensitivity), min(k, 10**6))
        if kind == "discrete_laplace":
            scale = self.number(0.05, 300, (0.5, 50)) * (k**0.5 if self.rng.random() < 0.5 else 1)
            return Part(kind, (scale, int(self.rng.choice([1, 1, 2, 3, 8]))), k)
        if kind == "bounded_range":
            epsilon = self.number(1e-3, 10, (0.1, 3)) / (k**0.5 if self.rng.random() < 0.7 else 1)
            return Part(kind, (max(epsilon, 1e-6), int(self.rng.choice([1, 5, 40]))), k)
        return Part(kind, (*self.law(False), self.number(1.1, 1e3, (2, 100))), min(k, 1000))

    def schedule(self):
        """Tens or hundreds of sampled Gaussians, of noise and rates that change."""
        n = int(self.rng.choice([2, 5, 8, 9, 20, 60, 150, 365]))
        ends = np.log([self.number(0.6, 30, (0.8, 5)) for _ in range(2)])
        low, high = np.log([self.number(1e-5, 0.2, (1e-4, 0.05)) for _ in range(2)])
        if self.rng.random() < 0.5:
            sigma, rate = np.linspace(*ends, n), np.linspace(low, high, n)
        else:
            sigma = self.rng.uniform(*sorted(ends), n)
            rate = self.rng.uniform(*sorted((low, high)), n)
        k = np.ones(n, int) if self.rng.random() < 0.5 else self.rng.integers(1, 100, n)
        columns = np.exp(sigma).tolist(), np.exp(rate).tolist(), k.tolist()
        return tuple(Part("gaussian", (s,), k, r) for s, r, k in zip(*columns, strict=True))

    def part(self, name, k):
        if name.startswith("swapped "):
            part = self.part(name.replace("swapped", "sampled"), k)
            return replace(part, sampler="subsample_substitution")
        rate = 1.0
        sampled = name.startswith("sampled ")
        if sampled:
            rate = min(self.number(1e-8, 0.999, (1e-4, 0.5)), 0.999)
        kind = name.removeprefix("sampled ")
        if kind in ("discrete_gaussian", "discrete_laplace", "bounded_range", "best_of_loss"):
            return replace(self.later(kind, k), rate=rate)
        if kind == "gaussian":
            # noise that makes k rounds worth a question
            size = (k**0.5 if self.rng.random() < 0.5 else 1.0) * (rate if k > 100 else 1.0)
            sigma = self.number(0.05, 30, (0.5, 5)) * max(1.0, size)
            sigma = min(max(sigma, 0.01), 1e6) if sampled else sigma
            return Part("gaussian", (float(f"{sigma:.4g}") if self.natural else sigma,), k, rate)
        if kind == "laplace":
            scale = self.number(1e-2, 1e3, (0.5, 50)) * (k**0.5 if self.rng.random() < 0.5 else 1)
            scale = min(max(scale, 1e-4), 1e8)
            return Part("laplace", (float(f"{scale:.4g}") if self.natural else scale,), k, rate)
        if kind == "response":
            epsilon = self.number(1e-3, 10, (0.1, 3)) / (k**0.5 if self.rng.random() < 0.7 else 1)
            return Part("response", (max(float(f"{epsilon:.4g}"), 1e-15),), k, rate)
        return Part("finite", self.law(kind == "finite0"), k, rate)

    def delta(self):
        way = self.rng.random()
        if self.natural:
            return float(10.0 ** -self.rng.integers(2, 13))
        if way < 0.7:
            return float(10 ** self.rng.uniform(-20, -0.01))
        if way < 0.9:
            return float(10 ** self.rng.uniform(-300, -20))
        return float(1 - 10 ** self.rng.uniform(-12, -0.3))


def draw(seed, index, namespace):
    """The query of this index: mechanisms by shape, then a method and a point for it."""
    rng = np.random.default_rng([seed, index])
    shapes = LATER if index % EIGHTH == EIGHTH - 1 else SHAPES
    weights = np.array([weight for weight, _ in shapes], dtype=float)
    names = shapes[rng.choice(len(shapes), p=weights / weights.sum())][1]
    drawn = Drawn(rng)
    few = len(names) > 1 and rng.random() < 0.4
    if names == ("schedule",):
        parts, odds = drawn.schedule(), [0.5, 0.5, 0.0, 0.0]
    else:
        k = [int(rng.integers(1, 4)) if few else drawn.rounds() for _ in names]
        parts, odds = tuple(map(drawn.part, names, k)), [0.42, 0.4, 0.1, 0.08]
    method = rng.choice(["delta", "epsilon", "tradeoff", "renyi"], p=odds)
    return lambda: Query(parts, str(method), _point(drawn, parts, str(method), namespace))


def _point(drawn, parts, method, namespace):
    """Where to ask. An epsilon that matters is one that dpnotes thinks has some delta: the
    accountant chooses the place here, never the answer."""
    rng = drawn.rng
    if method == "epsilon":
        return drawn.delta()
    if method == "tradeoff":
        return (
            float(rng.choice([0.01, 0.05, 0.31]))
            if drawn.natural
            else float(10 ** rng.uniform(-12, -0.02))
        )
    if method == "renyi":
        return 1 + (
            float(rng.choice([1, 4, 9, 31, 99]))
            if drawn.natural
            else drawn.number(1e-3, 1e4, (1, 100))
        )
    way = rng.random()
    if way < 0.12:
        return 0.0
    from .mechanisms import expression

    run = eval(expression(parts), dict(namespace))  # noqa: S307
    try:
        if way < 0.3:
            top = float(run.epsilon(0.0))
            if isfinite(top) and top > 0:
                share = rng.choice([rng.random(), 1 - 10 ** rng.uniform(-15, -1)])
                return min(float(top * share), np.nextafter(top, 0.0))
        near = float(run.epsilon(drawn.delta()))
    except Exception:
        near = inf
    if not isfinite(near):
        near = float(10 ** rng.uniform(-6, 3))
    return float(f"{near:.2g}") if drawn.natural else near * float(10 ** rng.uniform(-0.02, 0.02))
