"""The exact accountant: delta(epsilon) and epsilon(delta) of any composition, with error bounds.

One idea: delta is an integral along a line in the complex plane, which the trapezoid rule computes
with an error that has a name (chapter `accounting`). Read in this order:

``privacy_loss`` (the object; the worse of both directions) -> ``direction`` (one direction: which
tail answers; ``roots`` searches for epsilon) -> ``tilts`` (K at real tilts, saddle points,
Chernoff's bound) -> ``line`` (the trapezoid rule, aliases, cut, pinch, lattice) -> ``bands`` (one
for the runs whose largest loss is in each band) -> ``total`` (what is summed over the steps) ->
``law`` (a step as a quadrature rule), and the kinds of steps: ``gaussian``, ``sampled_gaussian``
(one or many; ``cut``, a part of one), ``panels`` (Laplace noise, substitution), ``finite`` (listed
losses and short sums); ``curves`` has closed forms. ``losses`` makes the steps; ``attacks`` says
what tests of a pair find; ``calibrate`` asks for one of the ``targets``.

Proved: aliases, cut, pinch and lattice, how M falls, and cut-off noise. The chapter's error model
says in four points what is assumed of round-off and quadrature.
"""

from .calibrate import calibrate
from .losses import discrete_gaussian, discrete_laplace, finite, gaussian, laplace
from .losses import randomized_response, subsample, subsample_substitution
from .privacy_loss import PrivacyLoss

__all__ = [
    "PrivacyLoss", "calibrate", "discrete_gaussian", "discrete_laplace", "finite", "gaussian",
    "laplace", "randomized_response", "subsample", "subsample_substitution",
]  # fmt: skip
