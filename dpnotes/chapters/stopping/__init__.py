"""The room of the page stopping: filters, choices among steps, and the best of several runs."""

from .best_of import (
    Runs, best_of_epsilon, best_of_law, best_of_loss, best_of_pure, best_of_renyi, fixed_runs,
    geometric_runs, negative_binomial_runs, poisson_runs,
)  # fmt: skip
from .filters import CountingFilter, Filter, GaussianFilter, odometer
from .ranges import bounded_range, bounded_range_delta, bounded_range_renyi

__all__ = [
    "CountingFilter", "Filter", "GaussianFilter", "Runs", "best_of_epsilon", "best_of_law",
    "best_of_loss", "best_of_pure", "best_of_renyi", "bounded_range", "bounded_range_delta",
    "bounded_range_renyi", "fixed_runs", "geometric_runs", "negative_binomial_runs",
    "odometer", "poisson_runs",
]  # fmt: skip
