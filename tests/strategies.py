"""Random instances: pairs of laws, parameters in log scale; draws and their laws, and threads."""

import threading
import time
from itertools import product

import numpy as np
from scipy import stats

from evidence import equal, holds

ALARM = 1e-8  # of one comparison of draws with a law


def close_laws(rng, epsilon, size, count):
    """`count` pairs of laws of `size` outcomes with |log p/q| <= epsilon, some of them at it.

    Rows of ratios exp(u), u in [-epsilon, epsilon], are mended so that both laws sum to one.
    Returns p and q of shape (count, size).
    """
    u = np.where(rng.random((count, size)) < 0.5, rng.uniform(-1, 1, (count, size)), 1.0)
    u = epsilon * u * rng.choice([-1.0, 1.0], (count, size))
    u[:, 0], u[:, 1] = epsilon, -epsilon
    q = rng.dirichlet(np.ones(size), count)
    weight = np.exp(u)
    # shift mass between a rising and a falling outcome until sum(q * weight) = 1
    rising = weight > 1
    high = (q * weight * rising).sum(1) / (q * rising).sum(1)
    low = (q * weight * ~rising).sum(1) / (q * ~rising).sum(1)
    share = (1 - low) / (high - low)
    q = np.where(
        rising,
        q * (share / (q * rising).sum(1))[:, None],
        q * ((1 - share) / (q * ~rising).sum(1))[:, None],
    )
    return q * weight, q


def events(size):
    """All sets of so many outcomes, as the rows of a boolean matrix."""
    return np.array(list(product([False, True], repeat=size)))


def score_pairs(rng, count, size, spread, width=4.0):
    """Scores (count, size) on two neighbours whose changes lie in a random interval of `spread`."""
    scores = rng.normal(size=(count, size)) * width
    extreme = rng.random((count, size)) < 0.6
    change = np.where(extreme, rng.integers(0, 2, (count, size)), rng.random((count, size)))
    change[:, :2] = 0.0, 1.0
    return scores, scores + spread * (change - rng.random((count, 1)))


def stable_error(eta, m, delta):
    """The error of an eta-TV-stable choice of query on m rows, but for probability delta."""
    return eta + (2 * eta * m + 1) * np.sqrt(np.log(2 / delta) / (2 * m))


def analysis_settings(rng, count):
    """tau, k, m, delta with tau above the error of one fixed query, over many magnitudes."""
    m = np.floor(10 ** rng.uniform(0, 9, count))
    k = np.floor(10 ** rng.uniform(0, 5, count))
    delta = 10 ** rng.uniform(-9, -0.01, count)
    luck = np.sqrt(np.log(2 / delta) / (2 * m))
    tau = luck * (1 + 10 ** rng.uniform(-3, 3, count))
    keep = tau <= 1
    return (x[keep] for x in (tau, k, m, delta, luck))


def same_draws(system, stated, factor, seeds=300):
    """With the same seed, `system(rng)` gives what `stated(factor, rng)` says, seed after seed."""
    for seed in range(seeds):
        found = system(np.random.default_rng(seed))
        equal(found, stated(factor, np.random.default_rng(seed)), rtol=1e-9)


def together(ask, threads=8):
    """What `ask` returns to so many threads that start at once."""
    meet, found = threading.Barrier(threads, timeout=60), []

    def run():
        meet.wait()
        found.append(ask())

    running = [threading.Thread(target=run) for _ in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join()
    return found


def slowly(answer):
    """Lets the other threads go on before this one does."""
    time.sleep(0.005)
    return answer


def follows(drawn, law):
    """Chi-square test of indices against a law; outcomes below 1e-9 must not occur."""
    seen, keep = np.bincount(drawn, minlength=len(law)), law > 1e-9
    good = stats.chisquare(seen[keep], law[keep] / law[keep].sum() * len(drawn)).pvalue > ALARM
    holds(np.array([good, not seen[~keep].any()]))


class Scripted(np.random.Generator):
    """Draws the words that it is told to."""

    def __init__(self, *words):
        super().__init__(np.random.PCG64(0))
        self.words = words

    def integers(self, *args, size=None, **how):
        taken, self.words = self.words[:size], self.words[size:]
        return np.array(taken, dtype=np.uint64)
