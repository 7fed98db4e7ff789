"""The room of the page query-release: answering many linear queries."""

from .sparse_vector import (
    SparseVector, lyu_variants, sparse_epsilon, sparse_log_law, sparse_rounds,
    sparse_runs,
)  # fmt: skip
from .systems import Marginals, laplace_histogram, laplace_histogram_error, laplace_queries
from .weights import (
    MultiplicativeWeights, WeightsPlan, mwem, mwem_error, weights_plan, weights_update,
)  # fmt: skip

__all__ = [
    "Marginals", "MultiplicativeWeights", "SparseVector", "WeightsPlan", "laplace_histogram",
    "laplace_histogram_error", "laplace_queries", "lyu_variants", "mwem", "mwem_error",
    "sparse_epsilon", "sparse_log_law", "sparse_rounds", "sparse_runs", "weights_plan",
    "weights_update",
]  # fmt: skip
