"""What is known of each kind of step, whatever its parameters: a new kind is a row of ``KINDS``.

Beside, what the rows need: curves of one step on all of the data, and steps on a sample of it.
"""

from collections.abc import Callable
from dataclasses import replace
from math import log, log1p, pi, sqrt
from typing import NamedTuple

import numpy as np

from ..checks import within
from ..numerics import erfcx, legendre
from .law import EPS, Gaussian
from .panels import Laplace, Symmetrised
from .sampled_gaussian import SampledGaussian, mixed_loss
from .written import Finite

SHORT = 0.3  # a shift mu, up to which the two terms of Phi(a) - e^epsilon Phi(a - mu) cancel


def gaussian_log_delta(mu, epsilon):
    """log delta of N(mu, 1) against N(0, 1), for arrays (Balle and Wang 2018, eq. 6).

    delta = Phi(a) - e^epsilon Phi(a - mu), a = mu/2 - epsilon/mu. With R = Phi/phi this is
    phi(a) (R(a) - R(a - mu)); for a short shift it is an integral of positive terms.
    """
    mu, epsilon = np.broadcast_arrays(np.asarray(mu, float), np.asarray(epsilon, float))
    with np.errstate(over="ignore", divide="ignore", under="ignore", invalid="ignore"):
        a = np.maximum(mu / 2 - epsilon / mu, -1e150)
        log_phi = -a * a / 2
        one, other = erfcx(np.array([abs(a), mu - np.minimum(a, mu)]) / sqrt(2))
        far = log_phi + np.log((one - other) / 2)
        near = np.log1p(-np.exp(log_phi) * (one + other) / 2)
        value = np.where(a > 0, near, far)
        if (short := mu < SHORT).any():
            integral = _short_shift(mu[short], a[short])
            value[short] = log_phi[short] - log(2 * pi) / 2 + np.log(integral)
    return np.where(np.isnan(value), np.where(a > 0, 0.0, -np.inf), value)


def _short_shift(mu, a):
    """int_0^inf (1 - exp(-mu v)) exp(a v - v^2/2) dv, by Gauss-Legendre on four panels."""
    a = np.maximum(a, -1e140)
    root = np.sqrt(a * a + 84)
    top = np.where(a > 0, a + root, 84 / (root - np.minimum(a, 0.0)))[:, None, None]
    nodes, weights = legendre()
    v = top * (np.arange(4.0)[:, None] + 0.5 * (1 + nodes)) / 4
    mu, a = mu[:, None, None], a[:, None, None]
    values = -np.expm1(-mu * v) * np.exp(v * (a - v / 2))
    return (top[:, 0, 0] / 8) * (values @ weights).sum(axis=1)


def laplace_log_delta(end, epsilon):
    """log delta of Laplace noise whose largest loss is `end`: 1 - exp((epsilon - end)/2), or 0."""
    return np.log(-np.expm1(np.minimum((epsilon - end) / 2, 0.0)))


def finite_step(loss, log_p, infinite, lost, slip=0.0, cut=()):
    """A Finite step with equal losses merged and in ascending order. The round-off of the largest
    loss, and of the least one, which is that of the other direction, goes away from 0; ``slip`` is
    that of what the losses were computed from."""
    order = np.argsort(loss, kind="stable")
    values, first = np.unique(loss[order], return_index=True)
    slips = (slip + 12 * EPS * np.abs(loss))[order][first]
    if first.size:
        out = (slips - 8 * EPS * np.abs(values))[[0, -1]]
        values[[0, -1]] += out * np.sign(values[[0, -1]])
        slips[[0, -1]] += out
    merged = np.logaddexp.reduceat(log_p[order], first) if first.size else log_p
    laws = tuple(values.tolist()), tuple(merged.tolist())
    return Finite(*laws, float(infinite), float(lost), tuple(slips.tolist()), cut)


def _sampled_finite(step, rate):
    """The mixture of both laws against q."""
    (loss, log_p), log_rest = step.arrays, log1p(-rate)
    log_p = np.logaddexp(np.log(rate) + log_p, log_rest + log_p - loss)
    before, loss = loss, mixed_loss(loss, rate)
    slip = step.slips * np.exp(np.log(rate) + before - loss)  # times the slope
    if step.cut:
        sigma, sensitivity, before, side = step.cut
        cut = sigma, sensitivity, rate * before, side
        return finite_step(loss, log_p, rate * step.infinite, step.lost, slip, cut)
    if step.lost:  # where p vanishes the mixture has (1 - rate) q
        loss, log_p = np.append(loss, log_rest), np.append(log_p, log_rest + np.log(step.lost))
        slip = np.append(slip, 0.0)
    return finite_step(loss, log_p, rate * step.infinite, 0.0, slip)


def _sampled_gaussian(step, rate):
    return SampledGaussian(_served_sigma(step), rate)


def substituted_gaussian(step, rate):
    """Gaussian noise on a sample of either kind, where one value is another (no ``Kind`` asks)."""
    return Symmetrised(_served_sigma(step), rate)


def _served_sigma(step):
    within("sigma of loss", float(f"{1 / step.mu:.12g}"), 0.01, 1e4)  # as it was typed
    return 1 / step.mu


def _sampled_again(step, rate):
    """A sample of a sample."""
    return replace(step, rate=step.rate * rate)


def _refused(step, _):
    raise ValueError(f"loss must not be sampled under substitution already, got {step!r}")


class Curve(NamedTuple):
    """log delta of one step on all of the data, in closed form."""

    log_delta: Callable  # of a size and of epsilon >= 0
    size: Callable  # of a step
    power: int  # losses are of size^power


class Kind(NamedTuple):
    """What is known of a kind of step."""

    sampled: Callable  # of a step and a rate: the step on a Poisson sample of the data
    curve: Curve | None = None  # if it is written down


BELOW_A_SAMPLE = Curve(gaussian_log_delta, lambda step: 1 / step.sigma, 2)
KINDS = {
    Finite: Kind(_sampled_finite),
    Gaussian: Kind(_sampled_gaussian, Curve(gaussian_log_delta, lambda step: step.mu, 2)),
    SampledGaussian: Kind(_sampled_again, BELOW_A_SAMPLE),
    Symmetrised: Kind(_refused, BELOW_A_SAMPLE),
    Laplace: Kind(_sampled_again, Curve(laplace_log_delta, lambda step: step.end, 1)),
}


def weaker(step, other):
    """Whether a step is the other one, or Gaussian noise that is as large or larger, on a sample
    that is as large or smaller: then the other one dominates it (X-counting-filter)."""
    if type(step) is not type(other) or not isinstance(other, SampledGaussian):
        return step == other
    alone = step.side == other.side and step.sigmas == other.sigmas == ()
    return step == other or (alone and step.sigma >= other.sigma and step.rate <= other.rate)
