"""The composition theorem that cannot be improved (Kairouz, Oh & Viswanath 2015).

Every (epsilon, delta)-indistinguishable pair of laws is what comes out of one pair of laws on four
symbols, leaky randomized response, when its symbol is processed further. So k adaptive rounds
leak at most what k independent rounds of it leak, whose loss is binomial. Claim X-optimal.
"""

import numpy as np
from scipy.special import gammaln, logsumexp

from ._validate import count, nonnegative, plain, probability, scalar
from .approximate_dp import conditioning_events

__all__ = [
    "dominating_pair",
    "simulating_kernel",
    "optimal_composition",
    "optimal_composition_delta",
    "optimal_composition_heterogeneous_delta",
]

MOST_TERMS = 2_000_000  # of a heterogeneous sum


def dominating_pair(epsilon, delta=0.0):
    """Leaky randomized response: laws p, q on four symbols, the worst (epsilon, delta) pair.

    With probability delta the data are shown (first symbol under p, last under q), else a coin
    that is right with odds e^epsilon (the two in the middle). Scalars.
    """
    epsilon = scalar("epsilon", nonnegative("epsilon", epsilon))
    delta = scalar("delta", probability("delta", delta))
    right = 1 / (1 + np.exp(-epsilon))
    wrong = np.exp(-epsilon) * right
    p = np.array([delta, (1 - delta) * right, (1 - delta) * wrong, 0.0])
    return p, p[::-1].copy()


def simulating_kernel(p, q, epsilon, delta=0.0):
    """Row-stochastic matrix K with P K = p and Q K = q, (P, Q) the `dominating_pair` (X-optimal).

    `p`, `q` are finite (epsilon, delta)-indistinguishable laws; ValueError if they are not.
    """
    e, f = conditioning_events(p, q, epsilon, delta)
    rows = np.empty((4, e.size))
    rows[0], rows[3] = _normalised(p - e, p), _normalised(q - f, q)
    if epsilon > 0:
        odds = np.exp(-epsilon)
        rows[1], rows[2] = _normalised(e - odds * f, e), _normalised(f - odds * e, f)
    else:
        rows[1] = rows[2] = _normalised(e, p)
    return rows


def optimal_composition_delta(epsilon, k, target_epsilon, delta=0.0):
    """Least delta of k adaptive (epsilon, delta)-DP rounds at `target_epsilon` (X-optimal).

    1 - (1-delta)^k (1 - sum_i C(k,i) (e^(i eps) - e^(target + (k-i) eps))_+ / (1+e^eps)^k):
    exact, and attained by `dominating_pair`. `target_epsilon` may be an array;
    relative error about 1e-13 for k up to 1e4, growing to 1e-9 at k = 1e9.
    """
    epsilon, k, delta = _round(epsilon, k, delta)
    target = np.asarray(nonnegative("target_epsilon", target_epsilon))
    pure = np.array([np.exp(_log_delta(epsilon, k, t)) for t in target.ravel()])
    with np.errstate(divide="ignore"):
        total = -np.expm1(k * np.log1p(-delta) + np.log1p(-np.minimum(pure, 1.0)))
    return plain(total.reshape(target.shape))


def optimal_composition(epsilon, k, target_delta, delta=0.0):
    """Least epsilon of k adaptive (epsilon, delta)-DP rounds at `target_delta` (X-optimal).

    The inverse of `optimal_composition_delta`, in closed form between the binomial's values. It is
    infinite if `target_delta` < 1 - (1-delta)^k, k epsilon at equality. Arrays of `target_delta`.
    """
    epsilon, k, delta = _round(epsilon, k, delta)
    target = np.asarray(probability("target_delta", target_delta))
    with np.errstate(divide="ignore", invalid="ignore"):
        pure = -np.expm1(np.log1p(-target) - k * np.log1p(-delta))
    pure = np.where(target == 1, 1.0, pure)
    found = np.array([_invert(epsilon, k, t) for t in pure.ravel()])
    return plain(found.reshape(target.shape))


def optimal_composition_heterogeneous_delta(epsilons, target_epsilon, deltas=0.0):
    """The same for rounds with different guarantees, one entry a round (Murtagh & Vadhan 2016).

    Sums over how many rounds of each epsilon came out right: fast if few different epsilons occur.
    In general the number of terms is 2^k, and no fast exact method is believed to exist
    (the problem is #P-complete); ValueError beyond two million terms.
    """
    epsilons = np.atleast_1d(nonnegative("epsilons", epsilons))
    deltas = np.atleast_1d(probability("deltas", deltas))
    epsilons, deltas = np.broadcast_arrays(epsilons, deltas)
    target = scalar("target_epsilon", nonnegative("target_epsilon", target_epsilon))
    values, counts = np.unique(epsilons[epsilons > 0], return_counts=True)
    if np.prod(counts + 1.0) > MOST_TERMS:
        raise ValueError(f"epsilons must give at most {MOST_TERMS} terms, got {values.size} values")
    loss, log_p = np.zeros(1), np.zeros(1)
    for value, k in zip(values, counts, strict=True):
        i = np.arange(k + 1)
        loss = np.add.outer(loss, (2 * i - k) * value).ravel()
        log_p = np.add.outer(log_p, _log_binomial(i, int(k), value)).ravel()
    pure = np.exp(_log_excess(log_p, loss, target))
    with np.errstate(divide="ignore"):
        return float(-np.expm1(np.log1p(-deltas).sum() + np.log1p(-min(pure, 1.0))))


def _log_delta(epsilon, k, target):
    """log of sum_i Binomial(i) (1 - e^(target - (2i-k) epsilon))_+ ."""
    if target >= k * epsilon:
        return -np.inf
    first = int(np.floor((target / epsilon + k) / 2)) + 1
    i = _window(first, k, epsilon)
    return _log_excess(_log_binomial(i, k, epsilon), (2 * i - k) * epsilon, target)


def _log_excess(log_p, loss, target):
    """log of the mean of (1 - e^(target - loss))_+ ."""
    with np.errstate(divide="ignore"):
        terms = log_p + np.log(-np.expm1(np.minimum(target - loss, 0.0)))
    return logsumexp(terms) if np.isfinite(terms).any() else -np.inf


def _invert(epsilon, k, delta):
    """epsilon of k pure rounds at `delta`, which is linear in e^epsilon between the losses."""
    if delta < 0:
        return np.inf
    if delta == 0 or epsilon == 0:
        return k * epsilon
    log_delta = np.log(delta)
    if log_delta >= _log_delta(epsilon, k, 0.0):
        return 0.0
    low, high = k // 2, k  # delta at the loss of `low` is above, at that of `high` at most delta
    while high - low > 1:
        middle = (low + high) // 2
        above = _log_delta(epsilon, k, max(2 * middle - k, 0) * epsilon) > log_delta
        low, high = (middle, high) if above else (low, middle)
    top = (2 * high - k) * epsilon
    i = _window(high, k, epsilon)
    slope = logsumexp(_log_binomial(i, k, epsilon) + 2 * (high - i) * epsilon)
    missing = -np.expm1(_log_delta(epsilon, k, top) - log_delta)  # (delta - delta(top)) / delta
    with np.errstate(divide="ignore"):
        found = top + np.log1p(-min(missing * np.exp(log_delta - slope), 1.0))
    return max(found, top - 2 * epsilon, 0.0)


def _window(first, k, epsilon):
    """The values >= first of the binomial outside of which its mass is below e^-70 of the sum."""
    centre = max(first, int(k / (1 + np.exp(-epsilon))))
    width = int(6 * np.sqrt(k)) + 20
    return np.arange(max(first, centre - width), min(k, centre + width) + 1, dtype=float)


def _log_binomial(i, k, epsilon):
    """log of the Binomial(k, 1/(1+e^-epsilon)) probabilities of i, as in Loader (2000)."""
    i = np.asarray(i, float)
    log_right = -np.log1p(np.exp(-epsilon))
    log_wrong = log_right - epsilon
    inner = np.clip(i, 1, max(k - 1, 1))
    rest = np.maximum(k - inner, 1)
    value = 0.5 * np.log(k / (2 * np.pi * inner * rest))
    value += _stirling_error(np.asarray(float(k))) - _stirling_error(inner) - _stirling_error(rest)
    value -= _deviance(inner, k, log_right) + _deviance(rest, k, log_wrong)
    return np.where(i == 0, k * log_wrong, np.where(i == k, k * log_right, value))


def _stirling_error(n):
    """log n! - log(sqrt(2 pi n) (n/e)^n), n >= 1."""
    direct = gammaln(n + 1) - 0.5 * np.log(2 * np.pi * n) - n * np.log(n) + n
    m = np.maximum(n, 16.0) ** 2
    series = (1 / 12 - (1 / 360 - (1 / 1260 - (1 / 1680 - 1 / 1188 / m) / m) / m) / m) / np.sqrt(m)
    return np.where(n < 16, direct, series)


def _deviance(x, k, log_share):
    """x log(x/m) - x + m >= 0 with m = k e^log_share, precise near x = m."""
    m = k * np.exp(log_share)
    with np.errstate(divide="ignore", over="ignore", invalid="ignore"):
        t = np.clip((m - x) / x, -0.1, 0.1)
    series = sum((-1.0) ** n * t**n / n for n in range(17, 1, -1))  # t - log(1 + t)
    far = x * (np.log(x) - np.log(k) - log_share) - x + m
    return np.where(np.abs(m - x) <= 0.1 * x, x * series, far)


def _normalised(part, law):
    """`part`, freed of negative rounding errors, as a law; `law` where nothing is left."""
    part = np.maximum(part, 0.0)
    return part / part.sum() if part.sum() > 1e-15 else np.asarray(law, float) / np.sum(law)


def _round(epsilon, k, delta):
    """The guarantee of one round and the number of rounds, checked; scalars."""
    epsilon = scalar("epsilon", nonnegative("epsilon", epsilon))
    return epsilon, count("k", k), scalar("delta", probability("delta", delta))
