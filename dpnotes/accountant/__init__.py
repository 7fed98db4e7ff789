"""The exact accountant: the engine behind ``PrivacyLoss``, in the order in which to read it.

``privacy_loss`` (the object, both directions) -> ``direction`` (infinite losses, which method) ->
the exact methods ``one_step``, ``finite_sums``, ``two_losses``, ``laplace_sums`` (with ``kept`` and
``binomial``) and the numerical ones ``contour``, ``jumps``, ``lattice`` -> ``step``, ``laplace``,
``sampled_gaussian`` (the kinds of loss) -> ``law`` (quadrature). ``tradeoff`` and ``calibrate`` ask
the methods.
"""

from .calibrate import calibrate
from .privacy_loss import PrivacyLoss

__all__ = ["PrivacyLoss", "calibrate"]
