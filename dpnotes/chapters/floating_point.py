"""What a computer adds to a theorem: which outputs of a mechanism in double precision can occur at
all. The room behind the page floating-point."""

from __future__ import annotations

from math import log

import numpy as np

from ..checks import Array, PositiveNumber, Real, RealNumber, checked

WINDOW = 10  # candidates on each side; exp, log and the products are off by 3 of them at most


@checked
def laplace_reaches(output: Real, value: RealNumber, scale: PositiveNumber = 1.0) -> Array:
    """Whether `value + rng.laplace(0, scale)` can be this double, entry by entry.

    NumPy draws u = m 2^-53 and returns scale ln(2u) or -scale ln(2 - 2u), so the noise is plus
    or minus scale ln(j 2^-53) for a whole number j from 1 to 2^53. All j whose exact logarithm is
    near are tried, with the C library's log, as NumPy does. Not every j occurs: False is certain,
    True may be wrong (X-impossible).

    >>> floating_point.laplace_reaches([np.random.default_rng(1).laplace(), 20.0], value=0.0)
    array([ True, False])
    """
    output = np.atleast_1d(output)
    noise = output - value
    nearest = np.rint(np.exp(-np.abs(noise) / scale) * 2.0**53)
    # both roundings move the noise by at most 0.75 of this, and j by as much, relatively
    slack = 2 * (np.spacing(np.abs(output)) + np.spacing(abs(value))) / scale
    reached = nearest * slack > WINDOW - 1  # more candidates than are tried: it may be one of them
    for k in range(-WINDOW, WINDOW + 1):
        j = np.clip(nearest + k, 1, 2.0**53)
        logs = scale * np.array([log(x) for x in (j * 2.0**-53).ravel().tolist()]).reshape(j.shape)
        for sign in (-1, 1):
            reached |= value + sign * logs == output
    return reached
