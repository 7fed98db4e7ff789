"""The privacy loss of each mechanism: L = log p(X)/q(X), X ~ p, for the two laws of its output on
neighbouring data.

`scale` and `sigma` are those of the noise that is drawn, `sensitivity` that of the query (1 unless
said): a query of sensitivity s with noise of scale b loses what one of sensitivity 1 loses with
b/s. All return a :class:`dpnotes.PrivacyLoss`.
"""

from __future__ import annotations

from math import exp, fsum, log1p

import numpy as np

from ..checks import Count, Distribution, NonnegativeNumber, PositiveNumber, ProbabilityNumber
from ..checks import checked, within
from ..numerics import log_ratio, quotient
from .finite import CUT, Finite, finite_step, reach
from .gaussian import Gaussian
from .law import EPS
from .panels import Laplace, Symmetrised
from .privacy_loss import NOTHING, PrivacyLoss


@checked
def randomized_response(epsilon: NonnegativeNumber) -> PrivacyLoss:
    """One bit, told truthfully with probability e^epsilon / (1 + e^epsilon): L = +-epsilon.

    The worst of all epsilon-DP mechanisms (Kairouz, Oh and Viswanath 2015), so its k-fold
    composition is the optimal composition theorem. Served: 0, and 1e-15 to 1e5.

    >>> round(dp.randomized_response(epsilon=0.1).compose(100).epsilon(1e-6), 4)
    4.7746
    """
    if not epsilon:
        return PrivacyLoss([(NOTHING, 1)])
    within("epsilon", epsilon, 1e-15, 1e5)
    log_p = -log1p(exp(-epsilon))
    step = Finite((-epsilon, epsilon), (log_p - epsilon, log_p), slip=(0.0, 0.0))
    return PrivacyLoss([(step, 1)])


@checked
def laplace(scale: PositiveNumber, sensitivity: PositiveNumber = 1.0) -> PrivacyLoss:
    """Laplace noise of this scale on a query of this l1 sensitivity: pure (1/b)-DP with
    b = scale / sensitivity.

    L = +1/b and -1/b with probabilities 1/2 and exp(-1/b)/2, and a density exp((L - 1/b)/2)/4
    between. Served: b from 1e-4 to 1e8.

    >>> round(dp.laplace(scale=10.0).compose(100).epsilon(1e-6), 4)
    4.6927
    """
    return PrivacyLoss([(Laplace(_relative("scale", scale, sensitivity, 1e-4, 1e8)), 1)])


@checked
def gaussian(sigma: PositiveNumber, sensitivity: PositiveNumber = 1.0) -> PrivacyLoss:
    """Gaussian noise of standard deviation sigma on a query of this l2 sensitivity:
    L ~ N(mu^2/2, mu^2) with mu = sensitivity / sigma (Balle and Wang 2018). Served: 1/mu from 1e-6
    to 1e15.

    >>> round(dp.gaussian(sigma=4.0).epsilon(1e-6), 4)
    1.0607
    """
    return PrivacyLoss([(Gaussian(1 / _relative("sigma", sigma, sensitivity, 1e-6, 1e15)), 1)])


@checked
def discrete_laplace(scale: PositiveNumber, sensitivity: Count = 1) -> PrivacyLoss:
    """Integer noise with P(z) proportional to exp(-abs(z)/scale) on one whole number that moves by
    at most `sensitivity`, itself a whole number up to 10000: pure (sensitivity/scale)-DP.

    At sensitivity s the losses are (2j - s)/scale, j = 0..s; at 1 it is randomized response at
    epsilon = 1/scale (X-discrete-laplace). Served: scale / sensitivity from 1e-4 to 1e8.

    >>> dp.discrete_laplace(scale=4.0).epsilon(0.0)
    0.25
    """
    within("sensitivity", sensitivity, 1, 10_000)
    _relative("scale", scale, sensitivity, 1e-4, 1e8)
    between = np.arange(1, sensitivity)
    log_step = np.log(np.tanh(0.5 / scale)) - (sensitivity - between) / scale
    log_top = -log1p(exp(-1 / scale))
    log_p = np.concatenate([[log_top - sensitivity / scale], log_step, [log_top]])
    loss = (2 * np.arange(sensitivity + 1.0) - sensitivity) / scale
    loss[-1] = quotient(sensitivity, scale, np.inf)
    loss[0] = -loss[-1]
    return PrivacyLoss([(Finite(tuple(loss.tolist()), tuple(log_p.tolist())), 1)])


@checked
def discrete_gaussian(sigma: PositiveNumber, sensitivity: Count = 1) -> PrivacyLoss:
    """Integer noise with P(z) proportional to exp(-z^2/(2 sigma^2)) on one whole number that moves
    by at most `sensitivity`, itself a whole number up to 10000.

    Noise beyond 38 standard deviations counts as an infinite loss, of a probability of 1e-305,
    which is more than it has (X-lattice-loss); of Rényi divergences it is a part, on a sample at
    orders above 700 / sensitivity an upper bound of it. Not for vectors of which one person moves
    several entries: those are several rounds. Served: sigma and sigma / sensitivity from 0.25,
    sigma to 3900.

    >>> round(dp.discrete_gaussian(sigma=4.0).epsilon(1e-6), 4)
    1.0634
    """
    within("sensitivity", sensitivity, 1, 10_000)
    _relative("sigma", sigma, sensitivity, 0.25, 3900.0)
    within("sigma", sigma, 0.25, 3900.0)
    most = reach(sigma)
    z = np.arange(-most - sensitivity, most + 1.0)  # the noise, if the row is there
    log_norm = np.log(np.exp(-0.5 * (np.arange(-most, most + 1.0) / sigma) ** 2).sum())
    loss, log_p = sensitivity * (2 * z + sensitivity) / (2 * sigma**2), -0.5 * (z / sigma) ** 2
    cut = sigma, sensitivity, 1.0, 1
    return PrivacyLoss([(finite_step(loss, log_p - log_norm, CUT, CUT, cut=cut), 1)])


def _relative(name, noise, sensitivity, low, high):
    """The noise in units of the sensitivity, within what is served, rounded down."""
    name = name if sensitivity == 1 else f"{name} / sensitivity"
    within(name, noise / sensitivity, low, high)
    return quotient(noise, sensitivity, 0.0)


@checked
def finite(p: Distribution, q: Distribution) -> PrivacyLoss:
    """Two probability vectors on the same outcomes: p with the person in the data, q without.

    Entries may vanish. Both directions, p against q and q against p, are computed, and the worse
    is reported.

    >>> round(dp.finite([0.6, 0.4], [0.4, 0.6]).compose(10).epsilon(1e-6), 4)
    4.0545
    """
    if p.shape != q.shape:
        raise ValueError(f"q must be as long as p, got {len(p)} and {len(q)} entries")
    mass, excess = fsum(p), fsum([*p, *-q])
    both = (p > 0) & (q > 0)
    shift = log1p(excess / fsum(q))
    loss = log_ratio(p[both], q[both]) - shift  # of p/sum p and q/sum q
    infinite, lost = fsum(p[q == 0]) / mass, fsum(q[p == 0]) / fsum(q)
    slip = 4 * EPS * abs(shift)
    step = finite_step(loss, np.log(p[both]) - log1p(mass - 1), infinite, lost, slip)
    return PrivacyLoss([(step, 1)])


@checked
def subsample(loss: PrivacyLoss, rate: ProbabilityNumber) -> PrivacyLoss:
    """One step run on a Poisson sample: every person takes part independently with this rate.

    Neighbours differ by one person added or removed; the pairs are rate*p + (1-rate)*q against q
    (removed) and q against that mixture (added), and the worse is reported (Zhu, Dong and Wang
    2022, Theorem 11). ``loss`` is one step (Gaussians composed count as one); sample first and
    compose afterwards: ``subsample(step, rate).compose(k)``.

    Samples of fixed size n, drawn without replacement from m people or one less, are served by the
    same call with rate n/m, if ``loss`` is that of a substitution: without the person, somebody
    else is in the sample (for sums of vectors of norm up to C the sensitivity is 2C). For
    neighbours who differ in one value see ``subsample_substitution``. Served: rates of 0 and from
    1e-10 to 1 (of a sample of a sample, the product), Gaussians of sigma from 0.01 to 1e4.

    >>> round(dp.subsample(dp.gaussian(1.0), rate=0.01).compose(1000).epsilon(1e-6), 4)
    2.1245
    """
    return _on_a_sample(loss, rate, lambda step, rate: step.sampled(rate))


def _on_a_sample(loss, rate, sampled):
    """What ``sampled`` makes of one step, unless the rate is 0 or 1."""
    if len(loss._parts) != 1 or loss._parts[0][1] != 1:
        raise ValueError(f"loss must be one step (subsample, then compose), got {loss!r}")
    step = loss._parts[0][0]
    if rate == 1:
        return loss
    if rate == 0:
        return PrivacyLoss([(NOTHING, 1)])
    within("rate", rate * step.rate, 1e-10, 1.0)
    return PrivacyLoss([(sampled(step, rate), 1)])


@checked
def subsample_substitution(loss: PrivacyLoss, rate: ProbabilityNumber) -> PrivacyLoss:
    """One step run on a random sample, where neighbours differ in the value of one person.

    ``loss`` is the step without sampling under substitution (for a clipped sum of norms up to C the
    sensitivity is 2C). The sample has a fixed share ``rate`` of all people, drawn without
    replacement, or takes everyone independently with that rate. The pair is symmetrised: it is its
    own reverse and holds in every composition, also where the worse direction changes from round to
    round (Balle, Barthe and Gaboardi 2018, Theorem 2; Lebeda et al. 2024). It is a bound,
    attained at fixed size in one round. For Poisson samples it is 2 to 12 times too large in
    epsilon: ``dpnotes.chapters.in_practice.sampled_substitution`` has their own pair. Served: a
    step of Gaussian noise, the rates of ``subsample``.

    >>> round(dp.subsample_substitution(dp.gaussian(1.0), rate=0.01).epsilon(1e-6), 4)
    0.3639
    """
    if not loss.gaussian_mu:
        raise ValueError(f"loss must be a step of Gaussian noise, got {loss!r}")
    return _on_a_sample(loss, rate, lambda step, rate: Symmetrised(step.served_sigma(), rate))
