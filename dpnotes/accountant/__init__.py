"""The exact accountant: the engine behind ``PrivacyLoss``, in the order in which to read it.

``privacy_loss`` (the object, both directions) -> ``direction`` (infinite losses, which method) ->
the exact methods ``one_step``, ``finite_sums``, ``two_losses``, ``discrete_gaussian``,
``laplace_sums`` (with ``kept`` and ``binomial``) and the numerical ones, ``inversion`` with
``contour`` (with ``lines``), ``jumps`` (with ``mixtures``), ``lattice`` (with ``convolution``) ->
``step``, ``laplace``, ``sampled_gaussian`` (with ``tilted``, ``moments``, ``shifted``),
``symmetrised`` (the kinds of loss), ``schedule`` with ``windows``, ``strips`` and ``rows`` (many
sampled Gaussians as one) -> ``law`` (quadrature) with ``phases`` (sums of turns).
``many`` and ``array_sums`` answer whole curves, ``enclosure`` joins answers; ``tradeoff`` (with
``near``) and ``calibrate`` ask them. ``work`` bounds what a query may cost.

The error model. Every answer is an enclosure (low, value, high). Its terms are

PROVED: aliases of the trapezoid along a line (Poisson summation and Chernoff's bound, ``contour``);
the cut of the line (``ceiling`` of each step, given its quadrature); what jumps leave out
(``jumps``); the move to a lattice and what it wraps (``lattice``); the last resort (post-processing
and Chernoff's bound, ``certain``).

MODEL, with budgets above what was observed (EPS is 2^-52, and the page accounting lists the same):

1. elementary functions, and sums of positive terms, are right to 4 EPS (closed forms: log delta to
   45 EPS (1 + abs(log delta)), ``one_step.ROUNDING``);
2. with K of all rounds, exp(K(c) - c e) is right to EPS (16 + 8 abs(K(c)) + abs(c e)), relatively,
   plus EPS times the terms that K is a sum of, each times 8 and the size of its exponent
   (``law.moment_noise``); Chernoff's bounds leave 1e-12 of K;
3. the round-off of the losses along a line is independent between its terms, 4 EPS times their
   norm, up to a common part of 4 EPS times their sum (``law.mean_phase``), and that of the angles
   y L half a unit; Taylor's series in a transform leaves 0.01 EPS (``phases.POWERS``);
4. the quadrature over outcomes: at a real tilt the mesh is min(0.69 width, 0.42 sigma^2), for an
   error near exp(-40) of K, which 2 covers (``sampled_gaussian._spacing``); along a line it comes
   from the bound 2 N(d)/(exp(2 pi d/h) - 1) <= exp(-60) N, with N(d) summed on that mesh
   (``_nodes``), or for the steps of a schedule together from exp(1 - 42) (``schedule``), with N(d)
   summed on a mesh that leaves 1e-3 of the log of all rounds, for which 0.01 is allowed; windows
   end at exp(-60) of the peak, and where the line comes down to the real one it adds exp(-50), or
   in a schedule exp(-12) of the rest (``shifted.coming_down``). Gauss-Legendre rules, of 16 and 4
   nodes, are right to 1e-14 a step (``lattice.CELL_NOISE``);
5. transforms of a lattice of k rounds: 4 EPS (5 + k) in norm (``FFT_NOISE``); its period keeps
   Chernoff's bound on what is wrapped below 1e-14 of the saddle-point value of delta, and 1e-13 of
   it is allowed for (``ALIAS``); running sums of its probabilities are right to 1e-12
   (``SUMS_NOISE``), and the probability of the largest loss of all to 1e-11 (``LAST_NOISE``);
6. a class of jumps ends 24 widths out, where its weight is below 1e-126 (``jumps.REACH``);
7. binomial sums run over 60 terms and 14 standard deviations on both sides of their centre
   (``two_losses``).
"""

from .calibrate import calibrate
from .privacy_loss import PrivacyLoss

__all__ = ["PrivacyLoss", "calibrate"]
