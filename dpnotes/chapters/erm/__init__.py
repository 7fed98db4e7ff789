"""The room of the page erm: private empirical risk minimisation."""

from .experiments import bench_results, held_out, line_up, public_options, regrets
from .fits import (
    PrivateFit, best_regularization, noisy_gradient_descent, objective_perturbation,
    objective_perturbation_delta, output_perturbation, output_sensitivity, spherical_laplace,
)  # fmt: skip
from .losses import (
    RowLoss, distance_loss, hinge_loss, huber_loss, invert_model, logistic_loss, optimum_radius,
    risk_minimum, squared_loss, svm_minimum,
)  # fmt: skip
from .optima import geometric_median

__all__ = [
    "PrivateFit", "RowLoss", "bench_results", "best_regularization", "distance_loss",
    "geometric_median", "held_out", "hinge_loss", "huber_loss", "invert_model", "line_up",
    "logistic_loss", "noisy_gradient_descent", "objective_perturbation",
    "objective_perturbation_delta", "optimum_radius", "output_perturbation",
    "output_sensitivity", "public_options", "regrets", "risk_minimum", "spherical_laplace",
    "squared_loss", "svm_minimum",
]  # fmt: skip
