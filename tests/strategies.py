"""Random instances for property tests: pairs of finite laws, and parameters in log scale."""

import numpy as np
from hypothesis import strategies as st


@st.composite
def finite_laws(draw, most=8):
    """A pair (p, q) of laws on the same 2 to `most` outcomes, from flat to very peaked."""
    size = draw(st.integers(2, most))
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    sharpness = draw(st.sampled_from([0.1, 1.0, 10.0]))
    p, q = rng.dirichlet(np.full(size, sharpness), size=2) + 1e-12
    return p / p.sum(), q / q.sum()


def close_laws(rng, epsilon, size, count):
    """`count` pairs of laws of `size` outcomes with |log p/q| <= epsilon, some of them at it.

    Rows of ratios exp(u), u in [-epsilon, epsilon], are mended so that both laws sum to one.
    Returns p and q of shape (count, size).
    """
    u = np.where(rng.random((count, size)) < 0.5, rng.uniform(-1, 1, (count, size)), 1.0)
    u = epsilon * u * rng.choice([-1.0, 1.0], (count, size))
    u[:, 0], u[:, 1] = epsilon, -epsilon
    q = rng.dirichlet(np.ones(size), count)
    weight = np.exp(u)
    # shift mass between a rising and a falling outcome until sum(q * weight) = 1
    rising = weight > 1
    high = (q * weight * rising).sum(1) / (q * rising).sum(1)
    low = (q * weight * ~rising).sum(1) / (q * ~rising).sum(1)
    share = (1 - low) / (high - low)
    q = np.where(
        rising,
        q * (share / (q * rising).sum(1))[:, None],
        q * ((1 - share) / (q * ~rising).sum(1))[:, None],
    )
    return q * weight, q
