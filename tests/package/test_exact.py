"""What a mechanism promises of floating point, in its own docstring: it draws exactly, or it is for
study. Those that promise exactness are attacked by the last bits of their answers.
"""

import inspect
import re
import sys

import numpy as np
import pytest

import dpnotes as dp
from dpnotes.chapters import auditing, selection
from evidence import must_fail
from public import PUBLIC

NO_MECHANISMS = (  # no data, or all in the open
    "auditing.audit", "adaptive_analysis.noise_analyst", "reconstruction.random_subsets",
)  # fmt: skip
EXPERIMENTS = "erm.held_out", "erm.line_up", "erm.regrets"
WARNING = r"For\s+study:\s+floats\s+(leak \(X-low-bits\)|make\s+some\s+outcomes\s+impossible)"


def promises():
    """For each public sampler: whether it promises to be exact, and whether it warns."""
    drawn = {
        name: " ".join((call.__doc__ or "").split())
        for name, call in PUBLIC.items()
        if callable(call) and "rng" in inspect.signature(call).parameters
    }
    for name in (*NO_MECHANISMS, *EXPERIMENTS):
        drawn.pop(name, None)
    return {
        name: (re.search(r"\bexactly\b", said) is not None, re.search(WARNING, said) is not None)
        for name, said in drawn.items()
    }


def test_each_sampler_says_that_it_is_exact_or_for_study():
    said = promises()
    assert len(said) > 20 and {exact for exact, _ in said.values()} == {True, False}
    assert [name for name, (exact, warns) in said.items() if exact == warns] == []


def test_random_numbers_to_publish_with(monkeypatch):
    one, other = dp.secure_rng(), dp.secure_rng()
    assert type(one) is np.random.Generator and type(one.bit_generator).__name__ == "ChaCha"
    assert one.bit_generator.state["state"]["rounds"] == 20
    assert (one.integers(2**62, size=4) != other.integers(2**62, size=4)).all()
    drawn = [dp.discrete_laplace_mechanism(7, epsilon=1.0, rng=rng) for rng in (one, other)]
    assert max(abs(y - 7) for y in drawn) < 60  # fails once in 10^25
    monkeypatch.setitem(sys.modules, "randomgen", None)
    with pytest.raises(ImportError, match=r"^secure_rng needs the package randomgen: pip install"):
        dp.secure_rng()


# ------------------------------------------------------------------------------- the attacks

ROWS = {"lower": 0.0, "upper": 1.0}


def one_row(mechanism, **more):
    return lambda row, rng: mechanism([row], **more, epsilon=1.0, rng=rng)


def one_row_or_none(rows, rng):
    return dp.safe_mean(rows, **ROWS, grid=0.1, epsilon=1.0, rng=rng)


ATTACKED = {  # draws at epsilon = 1 for rows or values that neighbours may have
    "discrete_laplace_mechanism": (lambda v, rng: dp.discrete_laplace_mechanism(v, rng=rng), 0, 1),
    "discrete_gaussian_mechanism": (
        lambda v, rng: dp.discrete_gaussian_mechanism(v, sigma=3.8, rng=rng), 0, 1),
    "randomized_response_mechanism": (
        lambda v, rng: dp.randomized_response_mechanism(v, 1.0, rng=rng), 0, 1),
    "safe_sum": (one_row(dp.safe_sum, **ROWS, grid=0.1), 0.3, 0.7),
    "safe_count": (one_row(dp.safe_count), 0, 1),
    "safe_mean": (one_row_or_none, [0.3], []),
    "safe_quantile": (one_row(dp.safe_quantile, **ROWS, quantile=0.3), 0.3, 0.7),
    "selection.private_median": (one_row(selection.private_median, **ROWS), 0.3, 0.7),
}  # fmt: skip
DELTA = {"discrete_gaussian_mechanism": 1e-5}  # where it has epsilon <= 1


def telltales(y):
    """What the last bits of an answer show: those that 1 + noise does not have below 1/2, whether
    no number that is drawn evenly below .7 is y, and how many binary digits y has."""
    y = float(y)
    fine = abs(y) < 0.5 and y * 2.0**53 % 1 != 0
    m = np.rint(y / 0.7 * 2.0**53) + np.arange(-3, 4)
    hole = 0.3 < y < 0.7 and not (0.7 * (m * 2.0**-53) == y).any()
    return fine + 2 * hole + 4 * (y.as_integer_ratio()[1].bit_length())


def attack(draw, x, neighbour, delta=0.0, runs=40_000):
    """One attack in a million refutes a promise that is kept."""

    def seen(data, rng):
        return telltales(draw(data, rng))

    found = auditing.audit(
        seen, x, neighbour, 1.0, delta, runs=runs, false_alarm=1e-6 / len(ATTACKED),
        rng=np.random.default_rng(51),
    )  # fmt: skip
    assert not found.refuted, found


def test_each_exact_sampler_is_attacked():
    assert {name for name, (exact, _) in promises().items() if exact} == set(ATTACKED)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ATTACKED)
def test_the_last_bits_of_an_exact_sampler_tell_nothing(name):
    attack(*ATTACKED[name], DELTA.get(name, 0.0))


def between_two_rows(row, rng):
    """The private median of one row as it was drawn until the fourth edition."""
    low, high = (0.0, row) if rng.random() < row else (row, 1.0)
    return rng.uniform(low, high)


def mean_in_floats(row, rng):
    """A mean, kept within its bounds, of one row with noise that is a float."""
    return min(max(row + rng.laplace(), 0.0), 1.0)


def test_samplers_in_floats_are_refuted():
    must_fail(attack, lambda v, rng: dp.laplace_mechanism(v, rng=rng), 0.0, 1.0, runs=4000)
    must_fail(attack, mean_in_floats, 0.0, 1.0, runs=4000)
    must_fail(attack, between_two_rows, 0.3, 0.7, runs=4000)
