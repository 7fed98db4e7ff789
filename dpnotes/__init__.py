"""dpnotes: every claim of the lecture notes as a function, and an exact privacy accountant.

One idea runs through the package: the privacy loss L = log p(X)/q(X), X ~ p, of a pair of output
laws. (epsilon, delta)-DP is its tail, Renyi DP its moment generating function, composition its
sum, subsampling a mixture inside it. Each module is the room behind one page of the book;
``dpnotes.accountant`` is the engine behind ``PrivacyLoss``.

``dpnotes.plotting`` needs matplotlib and is imported by the pages that draw, not here.
"""

from .accountant import *  # noqa: F403
from .approximate_dp import *  # noqa: F403
from .audit import *  # noqa: F403
from .audit_bounds import *  # noqa: F403
from .best_of import *  # noqa: F403
from .composition import *  # noqa: F403
from .convex import *  # noqa: F403
from .divergences import *  # noqa: F403
from .erm import *  # noqa: F403
from .filters import *  # noqa: F403
from .floats import *  # noqa: F403
from .gaussian_noise import *  # noqa: F403
from .loss_range import *  # noqa: F403
from .losses import *  # noqa: F403
from .mechanisms import *  # noqa: F403
from .minimise import *  # noqa: F403
from .optimal import *  # noqa: F403
from .pure_dp import *  # noqa: F403
from .queries import *  # noqa: F403
from .release import *  # noqa: F403
from .renyi import *  # noqa: F403
from .selection import *  # noqa: F403
from .sgd import *  # noqa: F403
from .shuffling import *  # noqa: F403
from .sparse_vector import *  # noqa: F403
from .stability import *  # noqa: F403
from .subsampling import *  # noqa: F403
from .tails import *  # noqa: F403

__version__ = "0.1.0"
