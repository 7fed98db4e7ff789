"""The room of the page correlated-noise: one Gaussian release for a stream of sums.

A stream has n steps. Each person gives a vector of l2 norm at most 1 at some of them. All n prefix
sums are wanted: they are A G, with A the lower triangular matrix of ones and a row of G a step. A
strategy C with n columns and a decoder B with B C = A answer with B (C G + Z). So the noise of the
sums is B Z: correlated. The privacy is that of one Gaussian release whose sensitivity is how far
one person moves C G (X-correlated-adaptive). All noise is drawn in floating point, for study.
"""

from .participation import cyclic_loss, release_loss, sensitivity
from .strategies import best_banded, largest_error, square_root, tree, tree_decoder
from .streams import NoiseStream

__all__ = [
    "NoiseStream", "best_banded", "cyclic_loss", "largest_error", "release_loss",
    "sensitivity", "square_root", "tree", "tree_decoder",
]  # fmt: skip
