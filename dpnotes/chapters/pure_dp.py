"""Pure differential privacy: randomized response, its law and its errors.

Noise scales, accuracies and sensitivities are formulas of one line, on the page.
"""

from __future__ import annotations

from typing import overload

import numpy as np

from ..checks import Array, ArrayLike, Count, Few, Positive, PositiveNumber, Probability, checked


@overload
def randomized_response_error(epsilon: float = ..., respondents: int = ...) -> float: ...
@overload
def randomized_response_error(epsilon: ArrayLike = ..., respondents: int = ...) -> Array: ...
@checked
def randomized_response_error(epsilon: Positive = 1.0, respondents: Count = 1) -> float | Array:
    """Standard deviation of the randomized-response estimate of a proportion, over the coins.

    1/(2 sinh(epsilon/2) sqrt(respondents)), whatever the proportion is (F-randomized-response).

    >>> round(pure_dp.randomized_response_error(epsilon=1.0, respondents=100), 4)
    0.096
    """
    half = epsilon / 2
    with np.errstate(under="ignore"):
        value = np.exp(-half) / -np.expm1(-2 * half)
    return value / np.sqrt(respondents)


@checked
def many_answers(choices: Few, epsilon: PositiveNumber = 1.0) -> Array:
    """The law of randomized response with this many answers: row the truth, column what is said.

    e^epsilon/(e^epsilon + choices - 1) for the truth, the rest in equal parts (X-many-answers).

    >>> pure_dp.many_answers(3, epsilon=np.log(2))[0].round(4)
    array([0.5 , 0.25, 0.25])
    """
    lie = np.exp(-epsilon) / (1 + (choices - 1) * np.exp(-epsilon))
    return np.where(np.eye(choices, dtype=bool), 1 - (choices - 1) * lie, lie)


@overload
def many_answers_error(
    share: float, choices: int, epsilon: float = ..., respondents: int = ...
) -> float: ...
@overload
def many_answers_error(
    share: ArrayLike, choices: int, epsilon: ArrayLike = ..., respondents: int = ...
) -> Array: ...
@checked
def many_answers_error(
    share: Probability, choices: Few, epsilon: Positive = 1.0, respondents: Count = 1
) -> float | Array:
    """Standard deviation, over the coins, of the estimate of the `share` of one answer.

    sqrt of ((k-1) e^epsilon share + (e^epsilon + k - 2)(1 - share)) / (n (e^epsilon - 1)^2), for k
    answers and n respondents (X-many-answers).

    >>> round(pure_dp.many_answers_error(0.5, 2, epsilon=1.0, respondents=100), 4)
    0.096
    """
    small = np.exp(-epsilon)
    told = (choices - 1) * share + (1 + (choices - 2) * small) * (1 - share)
    return np.sqrt(told * small / respondents) / -np.expm1(-epsilon)
