"""Nodes of quadrature for the moments of sampled steps, in doubles."""

from functools import lru_cache
from math import ceil, exp, inf, log, pi, sqrt

import numpy as np

from .quadrature import TooLongError

__all__ = []

DIGITS = 85.0  # nats of every quadrature


def swapped_edges(part, c, height, most, count):
    """Panels of u > 0, at most 1 or a standard deviation long, of at most `most` of exponent."""
    end, width = 1 / part.value[0], 1.0
    if part.kind == "gaussian":
        unit = end
        u = np.append(0.0, np.geomspace(1e-3 * unit, (2 + abs(c)) * unit**2 + 14 * unit, 3000))
        log_size = (1 + abs(c)) * log_ratio(u, part.rate) - (unit / 2 + u / unit) ** 2 / 2
        last = int(np.flatnonzero(log_size > log_size.max() - DIGITS)[-1])
        end, width = float(u[min(last + 1, len(u) - 1)]), min(1.0, unit)
    steepness = part.rate * exp(end - float(log_ratio(np.array(end), part.rate)))
    panels = ceil(end / min(width, most / (1 + (abs(c) + height) * steepness)))
    if panels > count:
        raise TooLongError
    return np.linspace(0.0, end, panels + 1).tolist()


def swapped_nodes(part, c):
    """u > 0 in doubles, and the logarithms of their weights under q; with the atom of Laplace."""
    x, w = np.polynomial.legendre.leggauss(12)
    edges = np.array(swapped_edges(part, c, 0.0, 2.0, 20_000))
    half, unit = np.diff(edges)[:, None] / 2, 1 / part.value[0]
    u, log_w = (edges[:-1, None] + half + half * x).ravel(), np.log((half * w).ravel())
    if part.kind == "laplace":
        return np.append(u, unit), np.append(log_w - (u + unit) / 2 - log(4), -unit - log(2))
    return u, log_w - (unit / 2 + u / unit) ** 2 / 2 - log(unit * sqrt(2 * pi))


def gaussian_nodes(part, n, height, digits):
    """x = jh where phi(x) G(x)^n counts, or either law, for the trapezoid rule in the strip
    |Im x| < pi sigma^2: on |Im x| = a the integrand grows by exp(a^2/2 sigma^2 + |n| a/sigma^2) at
    most (a bound for a up to half the strip)."""
    sigma = part.value[0]
    reach = abs(n) + height
    a = np.linspace(0.02, 0.5, 25) * pi * sigma**2
    a = np.concatenate([a, np.geomspace(0.05, 12.0, 25) * sigma])
    a = a[a <= 0.5 * pi * sigma**2]
    gain = (
        digits
        + a * a / (2 * sigma**2)
        + np.minimum(reach * a / sigma**2, 0.4 * abs(n) + height * a / sigma**2)
    )
    h = float(np.max(2 * pi * a / gain))
    h = 2.0 ** np.floor(np.log2(h)) * np.floor(8 * h / 2.0 ** np.floor(np.log2(h))) / 8
    width = sqrt(2 * digits) * sigma
    first, last = np.floor((leftmost(part, n) - width) / h), ceil((max(1.0, n) + width) / h)
    if last - first > 300_000:
        raise TooLongError
    j = np.arange(first, last + 1)
    x = j * h
    log_g = log_ratio((x - 0.5) / sigma**2, part.rate)
    log_q = -0.5 * (x / sigma) ** 2
    counts = np.zeros(len(x), dtype=bool)
    for weight in (log_q, log_q + log_g, log_q + n * log_g):  # both laws: their masses are 1
        counts |= weight > weight.max() - digits
    inside = np.flatnonzero(counts)
    inside = slice(inside[0], inside[-1] + 1)
    return x[inside], log_g[inside], h


def leftmost(part, n):
    """Modes of phi(x) G(x)^n solve x = n share(x): no further left than this."""
    if n >= 0:
        return 0.0
    odds = part.rate * exp(-0.5 / part.value[0] ** 2)
    return n * odds / (1 - part.rate + odds)


def laplace_edges(end, power, most):
    """Panels of (-end, end), at most 1 long and at most `most` units of exponent."""
    count = ceil(2 * end * max(1.0, (power + 1) / most))
    if count > 20_000:
        raise TooLongError
    return np.linspace(-end, end, count + 1).tolist()


@lru_cache(maxsize=4)
def legendre(order):
    """Gauss-Legendre nodes and weights in doubles."""
    return np.polynomial.legendre.leggauss(order)


def laplace_nodes(end, power, most):
    x, w = legendre(12)
    edges = np.array(laplace_edges(end, power, most))
    half = np.diff(edges)[:, None] / 2
    u = (edges[:-1, None] + half) + half * x
    return u.ravel(), (half * w).ravel()


def log_ratio(u, rate):
    """log(1 - rate + rate e^u) in doubles."""
    small = np.log1p(rate * np.expm1(np.minimum(u, 30.0)))
    if not np.any(u >= 30):
        return small
    u = np.maximum(u, -600.0)
    return np.where(u < 30, small, u + np.log(rate) + np.log1p((1 - rate) / rate * np.exp(-u)))


def log_sum(x):
    top = x.max()
    return float(top + np.log(np.exp(x - top).sum()))


def near_one(loss, weight, y):
    """E exp(iyL) - 1, real and imaginary, to relative accuracy where L is small."""
    away, shift = np.zeros(len(y)), np.zeros(len(y))
    size = max(1, 2_000_000 // len(loss))
    for i in range(0, len(y), size):
        turn = np.multiply.outer(y[i : i + size], loss)
        shift[i : i + size] = np.sin(turn) @ weight
        away[i : i + size] = np.sin(turn / 2) ** 2 @ weight
    return -2 * away, shift


def turned_mean(loss, weight, y):
    """The same for equally spaced y, by products of turns: quicker, to absolute accuracy."""
    few = np.exp(1j * y[1] * np.multiply.outer(np.arange(64), loss))
    found = [few @ (weight * np.exp(1j * start * loss)) for start in y[::64]]
    found = np.concatenate(found)[: len(y)] - 1
    return found.real, found.imag


def spread(loss, weight):
    """(height, b): abs(phi(y)) <= exp(-b y^2) up to this height, for losses near their mean."""
    mean = float(weight @ loss)
    best = (0.0, 0.0)
    deviation = sqrt(max(float(weight @ (loss - mean) ** 2), 1e-300))
    for reach in (6.0, inf):
        near = np.abs(loss - mean) <= reach * deviation
        mass, part = float(weight[near].sum()), loss[near]
        if mass > 0.5:
            middle = float(weight[near] @ part) / mass
            bend = 2 / pi**2 * mass * float(weight[near] @ (part - middle) ** 2)
            found = pi / max(float(np.ptp(part)), 1e-300), bend
            best = found if found[0] > best[0] else best
    return best
