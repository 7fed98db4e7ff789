"""The privacy loss of each mechanism: L = log p(X)/q(X), X ~ p, for the two laws of its output on
neighbouring data.

`scale` and `sigma` are those of the noise that is drawn, `sensitivity` that of the query (1 unless
said): a query of sensitivity s with noise of scale b loses what one of sensitivity 1 loses with
b/s. All return a :class:`dpnotes.PrivacyLoss`.
"""

from dataclasses import replace
from fractions import Fraction
from math import exp, fsum, log1p

import numpy as np

from ._types import ArrayLike
from ._validate import (
    count,
    distribution,
    instance,
    nonnegative,
    positive,
    probability,
    scalar,
    within,
)
from .accountant.binomial import errors
from .accountant.discrete_gaussian import DiscreteGaussian
from .accountant.laplace import Laplace
from .accountant.law import EPS, mixed_loss
from .accountant.privacy_loss import PrivacyLoss
from .accountant.sampled_gaussian import SampledGaussian
from .accountant.step import Finite, Gaussian
from .accountant.symmetrised import SymmetrisedGaussian, SymmetrisedLaplace

__all__ = [
    "discrete_gaussian",
    "discrete_laplace",
    "finite",
    "gaussian",
    "laplace",
    "randomized_response",
    "subsample",
    "subsample_substitution",
]


def randomized_response(epsilon: float) -> PrivacyLoss:
    """One bit, told truthfully with probability e^epsilon / (1 + e^epsilon): L = +-epsilon.

    The worst of all epsilon-DP mechanisms (Kairouz, Oh and Viswanath 2015), so its k-fold
    composition is the optimal composition theorem. Served: 0, and 1e-15 to 1e5.
    """
    epsilon = nonnegative("epsilon", scalar("epsilon", epsilon))
    if epsilon:
        epsilon = within("epsilon", epsilon, 1e-15, 1e5)
    return _coin(epsilon) if epsilon else PrivacyLoss([(Finite((0.0,), (0.0,)), 1)])


def _coin(epsilon, error=0.0):
    """L = +-epsilon, or what epsilon stands for: off by at most `error`."""
    log_p = -log1p(exp(-epsilon))
    step = Finite((-epsilon, epsilon), (log_p - epsilon, log_p))
    if error:
        step = replace(step, errors=tuple(tuple(off + error) for off in errors(step)))
    return PrivacyLoss([(step, 1)])


def laplace(scale: float, sensitivity: float = 1.0) -> PrivacyLoss:
    """Laplace noise of this scale on a query of this l1 sensitivity: pure (1/b)-DP with
    b = scale / sensitivity.

    L = +1/b and -1/b with probabilities 1/2 and exp(-1/b)/2, and a density exp((L - 1/b)/2)/4
    between. Served: b from 1e-4 to 1e8.
    """
    return PrivacyLoss([(Laplace(_relative("scale", scale, sensitivity, 1e-4, 1e8)), 1)])


def gaussian(sigma: float, sensitivity: float = 1.0) -> PrivacyLoss:
    """Gaussian noise of standard deviation sigma on a query of this l2 sensitivity:
    L ~ N(mu^2/2, mu^2) with mu = sensitivity / sigma (Balle and Wang 2018). Served: 1/mu from 1e-6
    to 1e15."""
    return PrivacyLoss([(Gaussian(1 / _relative("sigma", sigma, sensitivity, 1e-6, 1e15)), 1)])


def discrete_laplace(scale: float, sensitivity: int = 1) -> PrivacyLoss:
    """Integer noise with P(z) proportional to exp(-abs(z)/scale) on one whole number that moves by
    at most `sensitivity`, itself a whole number up to 10000: pure (sensitivity/scale)-DP.

    At sensitivity s the losses are (2j - s)/scale, j = 0..s; at 1 it is randomized response at
    epsilon = 1/scale (X-discrete-laplace). Served: scale / sensitivity from 1e-4 to 1e8.
    """
    sensitivity = _whole(sensitivity)
    _relative("scale", scale, sensitivity, 1e-4, 1e8)
    scale = float(scale)
    if sensitivity == 1:
        exact = Fraction(1 / scale) * Fraction(scale) == 1
        return _coin(1 / scale, 0.0 if exact else EPS / scale)
    between = np.arange(1, sensitivity)
    log_step = np.log(np.tanh(0.5 / scale)) - (sensitivity - between) / scale
    log_top = -log1p(exp(-1 / scale))
    log_p = np.concatenate([[log_top - sensitivity / scale], log_step, [log_top]])
    loss = (2 * np.arange(sensitivity + 1.0) - sensitivity) / scale
    return PrivacyLoss([(Finite(tuple(loss.tolist()), tuple(log_p.tolist())), 1)])


def discrete_gaussian(sigma: float, sensitivity: int = 1) -> PrivacyLoss:
    """Integer noise with P(z) proportional to exp(-z^2/(2 sigma^2)) on one whole number that moves
    by at most `sensitivity`, itself a whole number up to 10000.

    Rounds of one sigma are lattice sums; together with other losses, or subsampled, it is a
    finite law whose cut-off ends count as infinite losses (X-lattice-loss): a subsampled one has no
    finite Renyi divergence here. Not for vectors of which one person moves several entries: those
    are several rounds. Served: sigma and sigma / sensitivity from 0.25 to 1e4 (sigma to 3900 where
    it is a finite law).
    """
    sensitivity = _whole(sensitivity)
    _relative("sigma", sigma, sensitivity, 0.25, 1e4)
    sigma = within("sigma", float(sigma), 0.25, 1e4)
    return PrivacyLoss([(DiscreteGaussian(sigma, sensitivity), 1)])


def _whole(sensitivity):
    return int(within("sensitivity", count("sensitivity", sensitivity), 1, 10_000))


def _relative(name, noise, sensitivity, low, high):
    """The noise in units of the sensitivity, within what is served."""
    noise = positive(name, scalar(name, noise))
    sensitivity = positive("sensitivity", scalar("sensitivity", sensitivity))
    return within(
        name if sensitivity == 1 else f"{name} / sensitivity", noise / sensitivity, low, high
    )


def finite(p: ArrayLike, q: ArrayLike) -> PrivacyLoss:
    """Two probability vectors on the same outcomes: p with the person in the data, q without.

    Entries may vanish. Both directions, p against q and q against p, are computed, and the worse
    is reported.
    """
    p, q = distribution("p", p), distribution("q", q)
    if p.shape != q.shape:
        raise ValueError(f"q must be as long as p, got {len(p)} and {len(q)} entries")
    mass, excess = fsum(p), fsum([*p, *-q])
    both = (p > 0) & (q > 0)
    loss = _log_ratio(p[both], q[both]) - log1p(excess / fsum(q))  # of p/sum p and q/sum q
    infinite, lost = fsum(p[q == 0]) / mass, fsum(q[p == 0]) / fsum(q)
    return PrivacyLoss([(_finite(loss, np.log(p[both]) - log1p(mass - 1), infinite, lost), 1)])


def _log_ratio(p, q):
    """log p/q to full relative accuracy also where p is close to q, and p - q is exact."""
    near = (p < 2 * q) & (q < 2 * p)
    ratio = np.where(near, (p - q) / np.where(near, q, 1.0), 0.0)
    return np.where(near, np.log1p(ratio), np.log(p) - np.log(q))


def _finite(loss, log_p, infinite, lost, blur=()):
    """A Finite step with equal losses merged and in ascending order."""
    order = np.argsort(loss, kind="stable")
    values, first = np.unique(loss[order], return_index=True)
    merged = np.logaddexp.reduceat(log_p[order], first) if first.size else log_p
    blur = tuple(tuple(np.maximum.reduceat(b[order], first).tolist()) for b in blur)
    losses, merged = tuple(values.tolist()), tuple(merged.tolist())
    return Finite(losses, merged, float(infinite), float(lost), blur)


def subsample(loss: PrivacyLoss, rate: float) -> PrivacyLoss:
    """One step run on a Poisson sample: every person takes part independently with this rate.

    Neighbours differ by one person added or removed; the pairs are rate*p + (1-rate)*q against q
    (removed) and q against that mixture (added), and the worse is reported (Zhu, Dong and Wang
    2022, Theorem 11). ``loss`` is one step (Gaussians composed count as one); sample first and
    compose afterwards: ``subsample(step, rate).compose(k)``.

    Samples of fixed size n, drawn without replacement from m people or one less, are served by the
    same call with rate n/m, if ``loss`` is that of a substitution: the place that the person takes
    is another's without them (for sums of vectors of norm up to C the sensitivity is 2C). For
    neighbours who differ in one value see ``subsample_substitution``. Served: rates of 0 and from
    1e-10 to 1 (all rates of samples of samples together), Gaussians of sigma from 0.01 to 1e6.
    """
    rate = probability("rate", scalar("rate", rate))
    step = _one_step(loss)
    if rate == 1:
        return loss
    if rate == 0:
        return PrivacyLoss([(Finite((0.0,), (0.0,)), 1)])
    within("rate", rate * getattr(step, "rate", 1.0), 1e-10, 1.0)
    if isinstance(step, Gaussian):
        within("sigma of loss", 1 / step.mu, 0.01 * (1 - 1e-12), 1e6 * (1 + 1e-12))
    return PrivacyLoss([(_sampled(step, rate), 1)])


def _one_step(loss):
    instance("loss", loss, PrivacyLoss, "a PrivacyLoss")
    if len(loss._parts) != 1 or loss._parts[0][1] != 1:
        raise ValueError(f"loss must be one step (subsample, then compose), got {loss!r}")
    return loss._parts[0][0]


def _sampled(step, rate):
    if isinstance(step, Gaussian):
        return SampledGaussian(1 / step.mu, rate)
    if isinstance(step, SampledGaussian):
        return SampledGaussian(step.sigma, step.rate * rate)
    if isinstance(step, Laplace):
        return Laplace(step.scale, step.rate * rate)
    if isinstance(step, DiscreteGaussian):
        step = step.truncated()
    return _sampled_finite(step, rate)


def _sampled_finite(step, rate):
    """The mixture of both laws, and what the errors of the step become in it: those of the loss
    times the chance that an outcome came from p."""
    loss, log_q = np.array(step.losses), np.array(step.log_p) - np.array(step.losses)
    log_rest, (blur, blur_p) = log1p(-rate), errors(step)
    one, other = np.log(rate) + np.array(step.log_p), log_rest + log_q
    log_p, mixed = np.logaddexp(one, other), mixed_loss(loss, rate)
    blur_p = blur_p + np.exp(other - log_p) * blur
    blur = np.exp(one - log_p) * blur
    if step.lost:  # where p vanishes the mixture has (1 - rate) q
        mixed, log_p = np.append(mixed, log_rest), np.append(log_p, log_rest + np.log(step.lost))
        blur, blur_p = np.append(blur, 0.0), np.append(blur_p, 4 * EPS)
    blur, blur_p = blur + 8 * EPS * np.abs(mixed), blur_p + EPS * (6 + 4 * np.abs(log_p))
    return _finite(mixed, log_p, rate * step.infinite, 0.0, (blur, blur_p))


def subsample_substitution(loss: PrivacyLoss, rate: float) -> PrivacyLoss:
    """One step run on a random sample, where neighbours differ in the value of one person.

    ``loss`` is the step without sampling under substitution (for a clipped sum of norms up to C the
    sensitivity is 2C). The sample has a fixed share ``rate`` of all people, drawn without
    replacement, or takes everyone independently with that rate. The pair is symmetrised: it is its
    own reverse and holds in every composition, also where the worse direction changes from round to
    round (Balle, Barthe and Gaboardi 2018, Theorem 2; Lebeda et al. 2024). It is a bound,
    attained at fixed size in one round. Served: one unsampled step whose two directions
    agree, the rates of ``subsample``.
    """
    rate = probability("rate", scalar("rate", rate))
    step = _one_step(loss)
    if isinstance(step, (SampledGaussian, SymmetrisedGaussian, SymmetrisedLaplace)) or (
        isinstance(step, Laplace) and step.rate < 1
    ):
        raise ValueError(f"loss must be a step without sampling under substitution, got {loss!r}")
    if isinstance(step, DiscreteGaussian):
        step = step.truncated()
    if isinstance(step, Finite) and not _is_self_reversed(step):
        raise ValueError(
            "loss must be its own reverse: that one direction is the worse in one round does not"
            f" make it the worse of a composition, got {loss!r}"
        )
    if rate == 1:
        return loss
    if rate == 0:
        return PrivacyLoss([(Finite((0.0,), (0.0,)), 1)])
    within("rate", rate, 1e-10, 1.0)
    if isinstance(step, Gaussian):
        within("sigma of loss", 1 / step.mu, 0.01 * (1 - 1e-12), 1e6 * (1 + 1e-12))
        return PrivacyLoss([(SymmetrisedGaussian(1 / step.mu, rate), 1)])
    if isinstance(step, Laplace):
        return PrivacyLoss([(SymmetrisedLaplace(step.scale, rate), 1)])
    return PrivacyLoss([(_symmetrised_finite(step, rate), 1)])


def _is_self_reversed(step):
    """Whether p against q has the law of q against p, up to the errors of both."""
    other = step.flipped()
    if len(other.losses) != len(step.losses) or step.infinite != step.lost:
        return False
    orders = [np.argsort(one.losses) for one in (step, other)]
    for name, one, two in zip(("losses", "log_p"), errors(step), errors(other), strict=True):
        blur = 4 * (one[orders[0]] + two[orders[1]])
        found = [np.array(getattr(s, name))[o] for s, o in zip((step, other), orders, strict=True)]
        if np.any(np.abs(found[0] - found[1]) > blur + 8 * EPS * np.abs(found[0])):
            return False
    return True


def _symmetrised_finite(step, rate):
    """Each outcome of positive loss, mixed, with both signs; what is left loses nothing. The one in
    the middle, if there is one, has loss 0, for the step is its own reverse."""
    order = np.argsort(step.losses)
    loss, log_p, blur, blur_p = (
        np.array(x)[order] for x in (step.losses, step.log_p, *errors(step))
    )
    half, middle = len(loss) // 2, np.exp(log_p[len(loss) // 2 : (len(loss) + 1) // 2]).sum()
    loss, log_p, blur, blur_p = (x[-half:] if half else x[:0] for x in (loss, log_p, blur, blur_p))
    log_q, mixed = log_p - loss, mixed_loss(loss, rate)
    one, other = np.log(rate) + log_p, log1p(-rate) + log_q
    log_mix = np.logaddexp(one, other)
    rest = middle + (1 - rate) * (step.infinite - np.exp(log_p) @ np.expm1(-loss))
    blur_mix = blur_p + np.exp(other - log_mix) * blur + EPS * (6 + 4 * np.abs(log_mix))
    blur_q = blur_p + blur + EPS * (2 + np.abs(log_q))
    blur = np.exp(one - log_mix) * blur + 8 * EPS * mixed
    log_rest, blur_rest = np.log([rest]), [np.max(blur_p + blur, initial=0.0) + 64 * EPS]
    blurs = np.concatenate([blur, [0.0], blur]), np.concatenate([blur_q, blur_rest, blur_mix])
    losses = np.concatenate([-mixed, [0.0], mixed])
    log_p, lost = np.concatenate([log_q, log_rest, log_mix]), rate * step.infinite
    return _finite(losses, log_p, lost, lost, blurs)
