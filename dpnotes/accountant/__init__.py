"""The exact accountant: delta(epsilon) and epsilon(delta) of any composition, with error bounds.

One idea: delta is an integral along a line in the complex plane, which the trapezoid rule computes
with an error that has a name (chapter `accounting`). Read in this order:

``privacy_loss`` (the object; the worse of both directions) -> ``direction`` (one direction: which
tail answers, and searches for epsilon) -> ``tilts`` (K at real tilts, saddle points, Chernoff's
bound) -> ``line`` (the trapezoid rule, aliases, cut, pinch, lattice) -> ``law`` (a step as a
quadrature rule; Gaussian noise and finite laws), ``sampled_gaussian``, ``panels`` (Laplace noise,
substitution) -> ``written`` (closed forms and short sums). ``losses`` makes the steps;
``calibrate`` and ``tradeoff`` ask.

Proved: aliases, cut, pinch and lattice, how M falls, and cut-off noise. What is left is a model of
round-off with four points, which the chapter gives with its numbers: functions are right to 4 EPS;
each probability and angle of a sum over outcomes errs by EPS times the size of what it is computed
from, all in the same direction; windows and meshes leave out exp(-60); losses that look like a
lattice are one, up to their round-off, which is counted.
"""

from .calibrate import calibrate
from .losses import discrete_gaussian, discrete_laplace, finite, gaussian, laplace
from .losses import randomized_response, subsample, subsample_substitution
from .privacy_loss import PrivacyLoss
