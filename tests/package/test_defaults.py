"""What an argument is when nobody gives it: a default that changes changes everybody's numbers.

Each call without the argument is compared with the call that gives the value written here.
"""

import dataclasses
import inspect

import numpy as np
import pytest
from test_bad_input import NAMES, arguments

import dpnotes as dp
from evidence import holds, must_fail

# an argument, its default, the functions that have it
DEFAULTS = [
    ("adjacency", "add-remove", "ballot_sensitivity gram_sensitivity histogram_sensitivity"),
    (
        "beta",
        0.05,
        (
            "answerable_queries laplace_histogram_error laplace_queries_error mwem_error "
            "sparse_accuracy weights_plan "
        ),
    ),
    ("bound", 1.0, "clip_rows"),
    ("cells", 600, "random_allocation sampled_group sampled_substitution shuffled_floor"),
    ("centre", 0.0, "risk_minimum"),
    ("clip", 1.0, "dp_sgd"),
    ("count", 1, "numeric_sparse sparse sparse_rounds"),
    (
        "delta",
        0.0,
        (
            "amplification amplification_pair dominating_pair epsilon_from_counts "
            "epsilon_from_guesses erm_regularization laplace_queries laplace_queries_error "
            "numeric_sparse objective_perturbation optimal_composition optimal_composition_delta "
            "output_perturbation simulating_kernel sparse sparse_rounds subsampled_dominating_pair "
            "tv_from_dp tv_from_dp_loose weights_plan "
        ),
    ),
    ("delta_prime", 0.0, "composed_delta"),
    ("deltas", 0.0, "basic_composition optimal_composition_heterogeneous_delta"),
    ("entries", 1, "laplace_accuracy laplace_quantile"),
    (
        "epsilon",
        1.0,
        (
            "discrete_laplace_mechanism exponential_mechanism exponential_mechanism_accuracy "
            "exponential_mechanism_law laplace_accuracy laplace_mechanism laplace_quantile "
            "laplace_scale permute_and_flip permute_and_flip_law randomized_response_error "
            "randomized_response_estimate randomized_response_mechanism safe_sum small_db_accuracy "
        ),
    ),
    ("excess", 0.0, "objective_perturbation_delta"),
    ("heads", 0.5, "two_coin_epsilon"),
    ("k", 1, "gaussian_tv"),
    ("limit", 1.0, "amplification_chord"),
    ("limit", np.inf, "chernoff"),
    ("nodes", 64, "density_laws"),
    ("noise", "laplace", "report_noisy_max report_noisy_max_law"),
    ("noise", 0.0, "update_bound"),
    ("norm", 1, "ballot_sensitivity histogram_sensitivity"),
    ("optimal", 1, "exponential_mechanism_accuracy"),
    ("points", 40, "bounded_range"),
    ("radius", 1.0, "erm_regularization noisy_gradient_descent"),
    ("repetitions", 1, "noise_analyst"),
    ("respondents", 1, "randomized_response_error"),
    ("runs", 1, "sparse_runs"),
    ("scale", 1.0, "laplace_reaches"),
    ("sensitivity", 1, "discrete_gaussian discrete_laplace discrete_laplace_mechanism"),
    (
        "sensitivity",
        1.0,
        (
            "above_threshold exponential_mechanism exponential_mechanism_accuracy "
            "exponential_mechanism_law gaussian gaussian_delta gaussian_delta_chernoff "
            "gaussian_epsilon_chernoff gaussian_loss_law gaussian_loss_tail gaussian_sigma "
            "gaussian_sigma_chernoff gaussian_sigma_chernoff_root gaussian_sigma_classical "
            "gaussian_sigma_dwork_roth gaussian_sigma_mills gaussian_sigma_mills_root "
            "gaussian_sigma_tail gaussian_tradeoff gaussian_tv gaussian_tv_linear laplace "
            "laplace_accuracy laplace_mechanism laplace_quantile laplace_scale lyu_variants "
            "numeric_sparse permute_and_flip permute_and_flip_law sparse sparse_epsilon "
            "sparse_rounds "
        ),
    ),
    ("sigma", 0.0, "vote_accuracy vote_bias"),
    ("sigma", 1.0, "discrete_gaussian_mechanism gaussian_mechanism subgaussian_tail"),
    ("start", 0.0, "risk_minimum"),
    ("threshold", 0.0, "above_threshold numeric_sparse sparse sparse_log_law sparse_runs"),
    ("tolerance", 1e-09, "geometric_median"),
    ("tolerance", 1e-10, "risk_minimum"),
    ("truth", 0.5, "two_coin_epsilon"),
]
CASES = [(name, key, value) for key, value, names in DEFAULTS for name in names.split()]


def seen(value):
    """A result as plain numbers and texts that can be compared; functions left out."""
    if isinstance(value, dp.PrivacyLoss):
        return [value.delta(x) for x in (0.0, 0.7)]
    if dataclasses.is_dataclass(value):
        value = [getattr(value, each.name) for each in dataclasses.fields(value)]
    if isinstance(value, tuple | list):
        return [seen(each) for each in value if not callable(each)]
    return np.asarray(value).tolist()


def same(name, argument, value):
    call = getattr(dp, name)
    good = {key: each for key, each in arguments(name, call).items() if key != argument}

    def result(**more):
        draws = 3 if name == "dp_sgd" else 30  # one may be the same by chance
        seeds = range(draws) if "rng" in good else [None]
        rngs = [{} if seed is None else {"rng": np.random.default_rng(seed)} for seed in seeds]
        # as text: NaN, an answer not given, is like NaN
        return repr([seen(call(**good | rng | more)) for rng in rngs])

    holds(np.array([result() == result(**{argument: value})]))


@pytest.mark.parametrize(("name", "argument", "value"), CASES)
def test_a_default_is_what_it_was(name, argument, value):
    same(name, argument, value)


def test_another_default_is_noticed():
    for name, argument, value in (
        ("gaussian_sigma", "sensitivity", 2.0),
        ("laplace_accuracy", "entries", 2),
        ("gaussian", "sensitivity", 2.0),
        ("laplace_quantile", "epsilon", 2.0),
        ("ballot_sensitivity", "adjacency", "replace"),
        ("permute_and_flip", "epsilon", 2.0),
        ("permute_and_flip", "epsilon", 0.5),
        ("permute_and_flip", "sensitivity", 2.0),
        ("exponential_mechanism", "epsilon", 0.5),
        ("above_threshold", "sensitivity", 0.5),
        ("above_threshold", "threshold", 1.0),
    ):
        must_fail(same, name, argument, value)


def test_no_default_is_forgotten():
    for name in NAMES:
        for key, parameter in inspect.signature(getattr(dp, name)).parameters.items():
            value = parameter.default
            if isinstance(value, int | float | str):
                assert (name, key, value) in CASES
