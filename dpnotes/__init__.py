"""dpnotes: every claim of the lecture notes as a function, and an exact privacy accountant.

One idea runs through the package: the privacy loss L = ln p(X)/q(X), X ~ p, of a pair of output
laws. (epsilon, delta)-DP is its tail, Renyi DP its moment generating function, composition its
sum, subsampling a mixture inside it.

Here is what several chapters or a practitioner use. Each page of the book has a room of its own
name beside: ``from dpnotes.chapters import composition``. ``dpnotes.accountant`` is the engine
behind ``PrivacyLoss``; ``dpnotes.plotting`` needs matplotlib.
"""

from .chapters.composition import dominating_pair
from .chapters.gaussian import gaussian_delta, gaussian_sigma
from .chapters.renyi_dp import (
    rdp_to_dp, rdp_to_dp_improved, rdp_to_dp_optimal, zcdp_to_dp, zcdp_to_dp_improved,
)  # fmt: skip
from .chapters.stopping import bounded_range
from .chapters.subsampling import clip_rows
from .divergences import (
    approximate_max_divergence, density_laws, hockey_stick, kl, max_divergence,
    renyi_divergence, total_variation, tradeoff,
)  # fmt: skip
from .accountant import (
    PrivacyLoss, calibrate, discrete_gaussian, discrete_laplace, finite, gaussian, laplace,
    randomized_response, subsample, subsample_substitution,
)  # fmt: skip
from .mechanisms import (
    discrete_gaussian_mechanism, discrete_laplace_mechanism, gaussian_mechanism,
    laplace_mechanism, randomized_response_estimate, randomized_response_mechanism,
)  # fmt: skip
from .proofs import Proof, check, prove
from .safe import safe_count, safe_mean, safe_quantile, safe_sum, secure_rng, to_grid

__all__ = [
    "PrivacyLoss", "Proof", "approximate_max_divergence", "bounded_range", "calibrate", "check",
    "clip_rows", "density_laws", "discrete_gaussian", "discrete_gaussian_mechanism",
    "discrete_laplace", "discrete_laplace_mechanism", "dominating_pair", "finite", "gaussian",
    "gaussian_delta", "gaussian_mechanism", "gaussian_sigma", "hockey_stick", "kl", "laplace",
    "laplace_mechanism", "max_divergence", "prove", "randomized_response",
    "randomized_response_estimate", "randomized_response_mechanism", "rdp_to_dp",
    "rdp_to_dp_improved", "rdp_to_dp_optimal", "renyi_divergence", "safe_count", "safe_mean",
    "safe_quantile", "safe_sum", "secure_rng", "subsample", "subsample_substitution", "to_grid",
    "total_variation", "tradeoff", "zcdp_to_dp", "zcdp_to_dp_improved",
]  # fmt: skip

__version__ = "5.0.0"  # the edition of the book first
