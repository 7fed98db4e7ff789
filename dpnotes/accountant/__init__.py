"""The exact accountant: the engine behind ``PrivacyLoss``, in the order in which to read it.

``privacy_loss`` (the object, both directions) -> ``direction`` (infinite losses, which method) ->
the exact methods ``one_step``, ``finite_sums``, ``two_losses``, ``laplace_sums`` (with ``kept`` and
``binomial``) and the numerical ones, ``inversion`` with ``contour``, ``jumps``, ``lattice`` ->
``step``, ``laplace``, ``sampled_gaussian`` (the kinds of loss) -> ``law`` (quadrature). ``many``
answers whole curves, ``enclosure`` joins answers; ``tradeoff`` and ``calibrate`` ask the methods.

The error model. Every answer is an enclosure (low, value, high). Its terms are

PROVED: aliases of the trapezoid along a line (Poisson summation and Chernoff's bound, ``contour``);
the cut of the line (``ceiling`` of each step, given its quadrature); what jumps leave out
(``jumps``); the move to a lattice and what it wraps (``lattice``); the last resort (post-processing
and Chernoff's bound, ``inversion.certain_delta``).

MODEL, with budgets above what was observed: elementary functions are right to 4 units of round-off;
K of one step to 1e-15 relative, times the number of rounds; the round-off of the losses along a
line is independent between its terms (``law.mean_phase``); the quadrature over outcomes, whose step
comes from the bound 2 N(d) exp(-2 pi d/h) with N(d) summed on a mesh (``sampled_gaussian``), and
Gauss-Legendre rules of 16 and 4 nodes (1e-14 a step, ``lattice.CELL_NOISE``); the transforms of the
lattice (``lattice.FFT_NOISE``); classes of jumps end 24 widths out (``jumps.REACH``); binomial sums
are cut 60 and 14 standard deviations from their centre (``finite_sums``).
"""

from .calibrate import calibrate
from .privacy_loss import PrivacyLoss

__all__ = ["PrivacyLoss", "calibrate"]
