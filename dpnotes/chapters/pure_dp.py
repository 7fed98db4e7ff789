"""Pure differential privacy: the error of randomized response.

Noise scales, accuracies and sensitivities are formulas of one line, on the page.
"""

from __future__ import annotations

import numpy as np

from ..checks import Array, Count, Positive, checked


@checked
def randomized_response_error(epsilon: Positive = 1.0, respondents: Count = 1) -> float | Array:
    """Standard deviation of the randomized-response estimate of a proportion, over the coins.

    1/(2 sinh(epsilon/2) sqrt(respondents)), whatever the proportion is (F-randomized-response).
    """
    half = epsilon / 2
    with np.errstate(under="ignore"):
        value = np.exp(-half) / -np.expm1(-2 * half)
    return value / np.sqrt(respondents)
