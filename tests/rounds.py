"""Random adaptive compositions: trees of kernels; exact tails; the worst law of one round."""

import math

import numpy as np
from scipy.stats import binom

import dpnotes as dp
from boxes import exprel, log
from dpnotes.chapters import composition
from evidence import at_most, equal, holds
from strategies import close_laws


def quadratic(epsilon):
    """A bound on the mean loss of a round."""
    return epsilon**2 / 2


MEANS = (
    composition.kl_from_pure,
    quadratic,
    composition.kl_from_pure_piecewise,
    composition.kl_from_pure_exponential,
)


def pure_tree(rng, epsilon, sizes, count):
    """`count` adaptive compositions of epsilon-indistinguishable rounds: two lists of kernels."""
    p, q, before = [], [], ()
    for size in sizes:
        laws = close_laws(rng, epsilon, size, count * math.prod(before))
        for kernels, law in zip((p, q), laws, strict=True):
            kernels.append(law.reshape(count, *before, size))
        before += (size,)
    return p, q


def approximate_tree(rng, epsilons, deltas, sizes, count):
    """The same with (epsilon, delta)-indistinguishable rounds: processed leaky coins."""
    p, q, before = [], [], ()
    for epsilon, delta, size in zip(epsilons, deltas, sizes, strict=True):
        kernel = rng.dirichlet(np.full(size, 0.3), (count, *before, 4))
        for kernels, coin in zip((p, q), dp.dominating_pair(epsilon, delta), strict=True):
            kernels.append(coin @ kernel)
        before += (size,)
    return p, q


def joint(kernels):
    """Joint laws of `count` trees, flattened to (count, outcomes)."""
    law = composition.adaptive_law(*kernels)
    return law.reshape(law.shape[0], -1)


def trees(rng, epsilon, sizes, count):
    p, q = pure_tree(rng, epsilon, sizes, count)
    return joint(p), joint(q)


def random_rounds(rng, count, most=3000):
    """Random (epsilon, k, delta'), in logarithmic scale."""
    epsilon = np.exp(rng.uniform(np.log(1e-3), np.log(3), count))
    k = np.exp(rng.uniform(0, np.log(most), count)).astype(int)
    return epsilon, k, np.exp(rng.uniform(np.log(1e-9), 0, count))


def coin_tail(epsilon, k, threshold):
    """P(L > threshold) of k rounds of randomized response, exactly."""
    first = np.floor((threshold / epsilon + k) / 2)
    return binom.sf(first, k, 1 / (1 + np.exp(-epsilon)))


def optimal_of_different(epsilons, target, deltas=0.0):
    """The least delta at `target` of rounds that differ: the leaks, and the coins of all rounds."""
    sizes, times = np.unique(epsilons, return_counts=True)
    coins = [dp.randomized_response(e).compose(int(k)) for e, k in zip(sizes, times, strict=True)]
    kept = np.log1p(-np.broadcast_to(deltas, np.shape(epsilons))).sum()
    return -np.expm1(kept + np.log1p(-sum(coins[1:], coins[0]).delta(target)))


def optimal(epsilon, k, target):
    """The least delta at `target` of each row."""
    rows = zip(epsilon, k, target, strict=True)
    return np.array([composition.optimal_delta(e, n, t) for e, n, t in rows])


def largest_cumulant(x):
    """The largest log E exp(lam (X - E X)) of all X in an interval of length w, x = lam w.

    It is log(1 + p (e^x - 1)) - p x, of a coin, concave in p, where its slope in p is 0.
    """
    return log(exprel(x)) + 1 / exprel(x) - 1


def falling_tail(values, weights):
    """The values of every row, falling, and P(value >= this one)."""
    order = np.argsort(-values, axis=-1)
    falling = np.take_along_axis(values, order, -1)
    return falling, np.take_along_axis(weights, order, -1).cumsum(-1)


def four_conditions(p, q, epsilon, e, f, mass):
    """Events of this mass, e below p and f below q, are within e^epsilon of each other."""
    at_most(e, p, atol=1e-15)
    at_most(f, q, atol=1e-15)
    at_most(e, np.exp(epsilon) * f, atol=1e-15)
    at_most(f, np.exp(epsilon) * e, atol=1e-15)
    equal(e.sum(-1), mass, atol=1e-14)
    equal(f.sum(-1), mass, atol=1e-14)
    holds((e >= 0) & (f >= 0))
