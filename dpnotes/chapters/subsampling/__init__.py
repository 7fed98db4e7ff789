"""The room of the page subsampling: bounds for a random part of the data, and DP-SGD."""

from .bounds import (
    amplification, minibatch_epsilon, poisson_subsample_law, subsampled_dominating_pair,
    substitution_pair,
)  # fmt: skip
from .sgd import clip_rows, clipped_sum, dp_sgd, logistic_clipped_sum, softmax_clipped_sum
