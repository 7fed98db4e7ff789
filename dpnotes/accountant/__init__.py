"""The exact accountant: the engine behind ``PrivacyLoss``, in the order in which to read it.

``privacy_loss`` (the object, both directions) -> ``direction`` (infinite losses, which method) ->
``one_step``, ``finite_sums``, ``contour``, ``jumps``, ``lattice`` (the methods) -> ``step``,
``laplace``, ``sampled_gaussian`` (the kinds of loss) -> ``law`` (quadrature). ``tradeoff`` and
``calibrate`` ask the methods.
"""

from .calibrate import calibrate
from .privacy_loss import PrivacyLoss

__all__ = ["PrivacyLoss", "calibrate"]
