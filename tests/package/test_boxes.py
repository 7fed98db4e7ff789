"""The prover of `boxes` refuses what is false, and what it cannot see."""

import pytest
from flint import arb, arb_series, fmpq

import evidence
from boxes import Counterexample, Undecided, exp, exprel, for_all, log1p, prove


@pytest.mark.parametrize(
    "f, sides, touch",
    [
        (lambda x: (3 * x - 1) ** 2 - arb("1e-14"), [(0, 1)], ()),  # false on a part of 6e-8
        (lambda x: exp(x) - 1 - x - x * x / 2, [(-1, 1)], (0, 0, 0)),
        (lambda x, y: 1 - x * y, [(0, 2), (0.5, 0.5001)], ()),  # false near a corner
        (lambda x: -x, [(1e-30, 1)], ()),
    ],
)
def test_false_inequalities_have_a_counterexample(f, sides, touch):
    with pytest.raises(Counterexample):
        prove(f, sides, touch)


@pytest.mark.parametrize(
    "f, sides, touch",
    [
        (lambda x: (x - 2) ** 2, [(1, 4)], ()),  # touches, and nothing says where
        (lambda x: x * x + arb("1e-899"), [(-1, 1)], (0, 0)),  # does not touch
        (lambda x: x * x + fmpq(1, 10**1000), [(-1, 1)], (0, 0)),
        (lambda x, y: x * x * y, [(0, 1), (1, 2)], (0, 0, 0)),  # touches in two orders only
        (lambda x: log1p(-2 * x) ** 2, [(0, 1)], ()),  # has no values beyond 1/2
    ],
)
def test_what_cannot_be_seen_is_not_proved(f, sides, touch):
    with pytest.raises(Undecided):
        prove(f, sides, touch)


def test_true_inequalities_are_proved_also_where_they_touch_inside():
    prove(lambda x: (x - 2) ** 2, [(1, 4)], (2, 2))
    prove(lambda x, y: exp(x * y) - 1 - x * y, [(-3, 5), (0.1, 4)], (0, 0))
    prove(lambda x, y: y * x * (1 - x), [(0, 1), (1, 2)], (0, 1))
    prove(lambda x: (3 * x - 1) ** 2 + arb("1e-14"), [(0, 1)])


def test_the_quotient_by_zero_is_enclosed():
    for low, high in ((-1.0, 2.0), (0.0, 0.0), (3.0, 3.5)):
        ball = exprel(arb_series([arb(low).union(high), 1], 4))
        for at in (low, (low + high) / 2, high):
            point = arb_series([arb(at) + arb("1e-30"), 1], 4)  # not 0: the quotient has a value
            quotient = (point.exp() - 1) / point
            assert all(ball[n].overlaps(quotient[n]) for n in range(4))


@pytest.mark.parametrize(
    "left, too_low, why",
    [
        ((lambda x: 1.001 * x, lambda x: x), [lambda x: x / 2], "=="),  # not the function's formula
        (lambda x: x, [lambda x: x + 1 / 2], "DID NOT RAISE"),  # the planted mistake is true
        (lambda x: x, [], "planted"),
    ],
)
def test_a_check_that_shows_nothing_is_refused(left, too_low, why):
    with pytest.raises((AssertionError, pytest.fail.Exception), match=why):
        for_all("$x$", left, lambda x: x + 1, {"x": (1, 2)}, too_low=too_low)


def test_the_text_for_the_page():
    with evidence.recording({}) as record:
        box = {r"\eps": (0, 50), "k": (1, 1e6), "a": (1e-6, 0.5)}
        number = {n: (lambda *_, n=n: arb_series([n], 1)) for n in (-1, 0, 1)}
        for_all("$0 < 1$", number[0], number[1], box, too_low=[number[-1]])
    said = r"$\eps \in [0, 50]$, $k \in [1, 10^{6}]$, $a \in [10^{-6}, 0.5]$"
    assert record["proved"] == ["$0 < 1$ for all " + said]
