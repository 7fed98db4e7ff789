"""Minimisers: of the mean distance to points, and of a ridged risk to a certified gradient.

The second raises no exception, whatever the data: an exception, or a tolerance, that depends on
the data would be an output that no theorem pays for.
"""

from __future__ import annotations

from math import ceil, log, sqrt

import numpy as np

from ...numerics import cho_factor, cho_solve, matrix_product
from ...checks import Array, Matrix, PositiveNumber, checked


@checked
def geometric_median(points: Matrix, tolerance: PositiveNumber = 1e-9) -> Array:
    """The point with the least mean distance to `points` (n, d) (A-geometric-median).

    Weiszfeld's iteration as mended by Vardi and Zhang (2000, (11)); stops where the mean of unit
    vectors, less what sits at theta itself, is below tolerance.

    >>> erm.geometric_median([[0, 0], [0, 0], [0, 0], [9, 9]]).round(4)
    array([0., 0.])
    """
    n = len(points)
    if points.size == 0:
        raise ValueError("points must have at least one row and one column")
    theta = points.mean(0)
    for _ in range(100_000):
        away = points - theta
        size = np.linalg.norm(away, axis=1)
        far = size > 1e-14
        weight = 1 / size[far]
        pull, here = matrix_product(weight, away[far]), n - far.sum()
        strength = np.linalg.norm(pull)
        if strength <= here + tolerance * n:
            return theta
        theta = theta + (1 - here / strength) * pull / weight.sum()
    raise ValueError("points must not be this badly conditioned: no median found")


def descend(x, y, loss, lam, centre, phi, *, tolerance):
    """(theta, ||gradient||) of mean loss + lam/2 ||theta - centre||^2, from theta = centre + phi.

    Newton's method with a line search. If 100 steps are not enough, Nesterov's method takes as
    many as its theorem asks for (Nesterov 2004, 2.2.3). The answer is the best point seen. Only
    rounding can keep its gradient above `tolerance`.
    """
    n, d = x.shape
    shift, phi = matrix_product(x, centre), np.zeros(d) + phi
    seen: list[tuple] = []

    def gradient(phi):
        return matrix_product(loss.slope(matrix_product(x, phi) + shift, y), x) / n + lam * phi

    def arrived(phi, here):
        seen[:] = [min([*seen, (float(np.linalg.norm(here)), phi)], key=lambda pair: pair[0])]
        return seen[0][0] <= tolerance

    here = gradient(phi)
    for _ in range(100):
        if arrived(phi, here):
            break
        curve = loss.curvature(matrix_product(x, phi) + shift, y)
        hessian = matrix_product(x.T * curve, x) / n + lam * np.eye(d)
        phi, here = _line_search(gradient, phi, here, -cho_solve(cho_factor(hessian), here))
    else:
        _nesterov(gradient, seen[0][1], lam, loss.smoothness + lam, arrived, tolerance)
    size, phi = seen[0]
    return phi + centre, size


def _line_search(gradient, phi, here, step):
    """phi + t step, 0 < t <= 1, where the slope along the step is a tenth of its first value.

    The slope along a line increases, so bisection finds it; no differences of nearly equal values.
    `here` is the gradient at phi; the gradient at the new point is returned beside it.
    """
    first, low, high, t = matrix_product(here, step), 0.0, 1.0, 1.0
    for _ in range(40):
        there = gradient(phi + t * step)
        slope = matrix_product(there, step)
        if abs(slope) <= 0.1 * abs(first) or (t == 1.0 and slope < 0):
            return phi + t * step, there
        low, high = (t, high) if slope < 0 else (low, t)
        t = (low + high) / 2
    return phi + t * step, gradient(phi + t * step)


def _nesterov(gradient, phi, lam, top, arrived, tolerance):
    """Nesterov's method for curvatures in [lam, top], for as many steps as exact arithmetic needs.

    After k steps J - J* <= (1 - sqrt(lam/top))^k ||g||^2/lam, where g is the first gradient. If
    J - J* <= tolerance^2/(2 top), the gradient is at most `tolerance`.
    """
    ratio, before = sqrt(top / lam), phi
    beta = (ratio - 1) / (ratio + 1)
    least = 2 * top * np.square(gradient(phi)).sum() / (lam * tolerance**2)
    for _ in range(ceil(ratio * log(max(least, 2.0)))):
        ahead = phi + beta * (phi - before)
        before, phi = phi, ahead - gradient(ahead) / top
        if arrived(phi, gradient(phi)):
            return
