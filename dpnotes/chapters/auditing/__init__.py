"""The room of the page auditing: lower bounds on what a program leaks."""

from .bounds import (
    clopper_pearson, epsilon_from_counts, epsilon_from_guesses, guess_canaries,
)  # fmt: skip
from .search import Audit, audit, in_batches

__all__ = [
    "Audit", "audit", "clopper_pearson", "epsilon_from_counts", "epsilon_from_guesses",
    "guess_canaries", "in_batches",
]  # fmt: skip
