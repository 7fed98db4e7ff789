"""Random adaptive compositions for property tests: trees of kernels, and exact tails of coins."""

import math

import numpy as np
from scipy.stats import binom

import dpnotes as dp
from strategies import close_laws

MEANS = (
    dp.kl_from_pure,
    dp.kl_from_pure_quadratic,
    dp.kl_from_pure_piecewise,
    dp.kl_from_pure_exponential,
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
    law = dp.adaptive_composition(*kernels)
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


def optimal(epsilon, k, target):
    """The least delta at `target` of each row."""
    rows = zip(epsilon, k, target, strict=True)
    return np.array([dp.optimal_composition_delta(e, n, t) for e, n, t in rows])
