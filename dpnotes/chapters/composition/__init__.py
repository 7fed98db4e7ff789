"""The room of the page composition: what k mechanisms leak together."""

from .theorems import (
    adaptive_law, kl_from_pure, kl_from_pure_exponential, kl_from_pure_piecewise, advanced,
    advanced_azuma, advanced_heterogeneous, per_query_epsilon, round_epsilon, answerable_queries,
)  # fmt: skip
from .best_possible import dominating_pair, simulating_kernel, optimal_delta, optimal
