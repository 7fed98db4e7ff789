"""Where a formula ends: the caps, the floors and the empty cases that random instances don't meet.

Each was found by `make mutants`: a change of the code that no other test noticed.
"""

import numpy as np
import pytest

import dpnotes as dp
from evidence import equal


def test_a_tail_is_at_most_one_and_an_error_at_least_nothing():
    assert dp.loss_tail_from_dp(1.0, 0.5, 1.1) == 1.0  # the quotient is 5.3
    assert dp.tradeoff_from_profile([1.0], [0.1], 1.0) == 0.0  # the line is at -1.8
    one, many = dp.tradeoff_from_profile([0.0, 0.5, 1.0], 0.1, 0.2), (0.1, 0.1, 0.1)
    equal(one, dp.tradeoff_from_profile([0.0, 0.5, 1.0], many, 0.2))
    equal(one, 1 - 0.1 - 0.2)


def test_no_budget_and_no_slack_is_no_budget_for_each():
    equal(dp.per_query_epsilon(0.0, [1, 10], 1.0), 0.0)  # 0/0 in the formula
    equal(dp.per_query_epsilon([0.0, 2.0], 1, 1.0), [0.0, 2.0])


def test_half_of_epsilon_covers_the_mean_up_to_its_limit():
    for delta in (1e-6, 0.1):
        limit = 8 * np.log(1 / delta)
        equal(dp.laplace_variance_halved(3, 0.999 * limit, delta), 6 / limit / 0.999**2, rtol=1e-9)
        with pytest.raises(ValueError, match="epsilon"):
            dp.laplace_variance_halved(3, 1.001 * limit, delta)
