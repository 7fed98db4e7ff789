"""Audits: every planted bug is found, no right mechanism is, and the stated false alarm is kept.

Each audit here of a right mechanism refutes it with probability at most 1e-8 (seeds are fixed), so
the file's false alarm is below 1e-6.
"""

import functools
import re

import numpy as np
import pytest
from scipy import stats

import dpnotes as dp
from dpnotes.chapters import auditing
from evidence import must_fail

ALARM = 1e-8


def run(mechanism, pair, epsilon, delta=0.0, runs=80_000, **options):
    rng = np.random.default_rng(2012)
    options = {"false_alarm": ALARM, "rng": rng} | options
    return auditing.audit(mechanism, *pair, epsilon, delta, runs=runs, **options)


def laplace(scale):
    return auditing.in_batches(lambda x, runs, rng: x + rng.laplace(0, scale, (runs, *np.shape(x))))


def gaussian(sigma):
    return auditing.in_batches(lambda x, runs, rng: x + rng.normal(0, sigma, runs))


def noisy_max(scale):
    def draw(x, runs, rng):
        return np.argmax(x + rng.laplace(0, scale, (runs, len(x))), axis=1)

    return auditing.in_batches(draw)


BROKEN = {  # the page audits more, the six sparse vectors too
    "Laplace, sensitivity 2 forgotten": (laplace(1), (0.0, 2.0), 1.0, 0.0),
    "Laplace on 3 counts, sensitivity of one": (laplace(1), ([0, 0, 0], [1, 1, 1]), 1.0, 0.0),
    "Gaussian, 1/3 of the noise": (gaussian(dp.gaussian_sigma(1, 1e-2) / 3), (0.0, 1.0), 1.0, 1e-2),
    "noisy max, half the scale": (noisy_max(1), ([0, 0, 0], [1, -1, -1]), 1.0, 0.0),
}
RIGHT = {
    "Laplace": (laplace(1), (0.0, 1.0), 1.0, 0.0),
    "Laplace on 3 counts": (laplace(3), ([0, 0, 0], [1, 1, 1]), 1.0, 0.0),
    "Gaussian": (gaussian(dp.gaussian_sigma(1, 1e-2)), (0.0, 1.0), 1.0, 1e-2),
    "noisy max": (noisy_max(2), ([0, 0, 0], [1, -1, -1]), 1.0, 0.0),
    "equal inputs": (laplace(1), (0.0, 0.0), 0.0, 0.0),
}


@pytest.mark.slow
@pytest.mark.parametrize("case", [*BROKEN, *RIGHT])
def test_broken_mechanisms_are_refuted_and_right_ones_are_not(case):
    mechanism, pair, epsilon, delta = (BROKEN | RIGHT)[case]
    audit = run(mechanism, pair, epsilon, delta)
    assert audit.refuted == (case in BROKEN), str(audit)


def test_the_bound_comes_close_where_the_best_event_is_likely():
    assert 0.9 < run(laplace(1), (0.0, 1.0), 1.0, runs=200_000).epsilon <= 1
    fair = auditing.in_batches(lambda x, runs, rng: rng.random(runs) < (0.75 if x else 0.25))
    assert 0.95 * np.log(3) < run(fair, (0, 1), 1.0, runs=200_000).epsilon <= np.log(3)
    epsilon = dp.gaussian(1.0).epsilon(0.01)
    assert 0.8 * epsilon < run(gaussian(1), (0.0, 1.0), 1.0, 0.01, 200_000).epsilon <= epsilon


@pytest.mark.slow
def test_false_alarms_are_as_rare_as_stated():
    """200 audits, at a level of 5 %, of a mechanism that ignores its input: more than 27 alarms
    have probability P(Binomial(200, 0.05) > 27) < 1e-6. There are many more if the runs that chose
    the event are counted again."""

    def check(mechanism):
        rng, alarms = np.random.default_rng(1), 0
        for _ in range(200):
            audit = auditing.audit(mechanism(), 0, 1, 0.0, runs=2000, false_alarm=0.05, rng=rng)
            alarms += audit.refuted
        assert alarms <= 27

    def blind(x, runs, rng):
        return rng.integers(0, 100, runs)

    def repeats():
        """The second half of the runs repeats the first."""
        seen = {}
        return auditing.in_batches(lambda x, runs, rng: seen.setdefault(x, blind(x, runs, rng)))

    assert stats.binom.sf(27, 200, 0.05) < 1e-6
    check(lambda: auditing.in_batches(blind))
    must_fail(check, repeats)


def test_a_mechanism_runs_once_a_call_unless_it_is_marked():
    once = functools.partial(dp.laplace_mechanism, sensitivity=1, epsilon=2.0)
    audit = run(once, (0.0, 1.0), 1.0, runs=6000)
    assert audit.refuted and audit.runs == 3000
    batches = []

    def draw(x, runs, rng):
        batches.append(runs)
        return x + rng.laplace(0, 0.5, runs)

    assert run(auditing.in_batches(draw), (0.0, 1.0), 1.0, runs=200_001).runs == 100_000
    assert sum(batches) == 400_000 and max(batches) < 100_000


KINDS = {  # of outputs that say a bit
    "strings": lambda bit: "yes" if bit else "no",
    "tuples of any length": lambda bit: (None,) * bit + ("stop", float("nan")),
    "tuples with None": lambda bit: (None, bit, np.nan),
    "lists": lambda bit: [[bit, 0.5], [None, 1]],
    "booleans": bool,
    "arrays": lambda bit: np.array([[bit, np.nan], [-0.0, 0.0]]),
    "empty": lambda bit: [],
}


@pytest.mark.parametrize("name", KINDS)
def test_outputs_of_every_kind(name):
    def mechanism(x, rng):
        return KINDS[name](int(rng.random() < (0.9 if x else 0.1)))

    audit = run(mechanism, (0, 1), 1.0, runs=4000)
    assert audit.refuted == (name != "empty")
    assert (1.5 < audit.epsilon < np.log(9)) == (name != "empty")


def test_outputs_that_only_the_second_half_shows():
    calls = []

    def mechanism(x, rng):
        calls.append(x)
        late = len(calls) > 2000 and rng.random() < 0.01
        return ("stop",) if late else (float(rng.random() < (0.9 if x else 0.1)), 0.5)

    assert run(mechanism, (0, 1), 1.0, runs=2000).refuted


@pytest.mark.parametrize(
    "late, yes, no",
    [("late", "yes", "no"), (0.5, 1, 0), (-0.5, 1, 0), ([0, 1], [1], [0])],
)
def test_what_the_first_half_did_not_show_is_in_no_event(late, yes, no):
    calls = []

    def mechanism(x, rng):
        calls.append(x)
        return late if len(calls) > 200 else (yes if x else no)

    audit = run(mechanism, (0, 1), 1.0, runs=200)
    assert audit.counts == (0, 0) and audit.epsilon == 0.0 and len(calls) == 400


@pytest.mark.slow
def test_vectors_with_gaps():
    """A number stands in one of two places, and its law depends on the place."""

    def draw(x, runs, rng):
        left, said = rng.random(runs) < 0.5, np.full((runs, 2), np.nan)
        said[left, 0] = rng.laplace(x, 1, left.sum())
        said[~left, 1] = rng.laplace(-x, 1, (~left).sum())
        return said

    assert 1.75 < run(auditing.in_batches(draw), (0.0, 2.0), 1.0).epsilon <= 2


def test_atoms_of_a_continuous_law():
    def draw(x, runs, rng):
        return np.clip(x + rng.laplace(0, 1, runs), 0, 0.5)

    audit = run(auditing.in_batches(draw), (0.0, 1.0), 0.5)
    assert audit.refuted and audit.epsilon <= 1

    def heap(x, runs, rng):  # on x = 1 the zeros lie a little below, among other numbers
        few = rng.random(runs) < 0.1
        return np.where(few, -0.05 * x * rng.random(runs), rng.random(runs) - 0.5)

    assert run(auditing.in_batches(heap), (0, 1), 1.0).epsilon > 4


def test_the_result_explains_itself():
    known = auditing.in_batches(lambda x, runs, rng: np.full(runs, x))
    audit = run(known, (0.0, 1.0), 1.0, runs=2000)
    assert audit.counts == (1000, 0) and audit.refuted and audit.confidence == 1 - ALARM
    assert audit == run(known, (0.0, 1.0), 1.0, runs=2000)
    assert "not refuted" in str(run(laplace(1), (0.0, 1.0), 1.0, runs=2000))


def test_a_rare_output_far_out_is_found():
    """On x one in 200 lies beyond all others: the classes of numbers are finer at both ends."""

    def draw(x, runs, rng):
        return rng.random(runs) + 9 * x * (rng.random(runs) < 0.005)

    assert run(auditing.in_batches(draw), (1, 0), 1.0).refuted
    assert run(auditing.in_batches(lambda *a, rng: -draw(*a, rng)), (1, 0), 1.0).refuted


def digits(x, runs, rng):
    """Even ones are likelier on x = 0, odd ones on x = 1."""
    return 2.0 * rng.integers(0, 9, runs) + (x ^ (rng.random(runs) < 0.1))


def zeros(x, runs, rng):
    """On x = 0 zeros of either sign, which are one number."""
    return np.stack([np.full(runs, 0.5), x * rng.choice([-1.0, 1.0], runs)], axis=1)


@pytest.mark.parametrize(
    "draw, words",
    [
        (digits, r"output (\d+ or ){6}3 more"),
        (lambda x, runs, rng: np.full(runs, x), "output 0"),
        (lambda x, runs, rng: rng.random(runs) + 2 * x, r"output in \(-inf, \S+\]"),
        (zeros, r"output \(0\.5, 0\)"),
        (lambda x, runs, rng: rng.random((runs, 2)) + 2 * x, "estimated log ratio .*"),
    ],
)
def test_the_event_in_words(draw, words):
    audit = run(auditing.in_batches(draw), (0, 1), 1.0, runs=4000)
    assert audit.refuted and re.fullmatch(words, audit.event)


def test_the_sentence_of_an_audit():
    audit = auditing.Audit(1.23456, 1.0, 0.01, 1 - 1e-6, "output 0", "x_neighbour", (70, 5), 100)
    assert str(audit) == (
        "epsilon >= 1.235 at delta = 0.01 with confidence 1 - 1e-06; the claim 1 is refuted. "
        "Event: output 0; seen 70 times on x_neighbour, 5 times on x, of 100 runs each."
    )
    assert not auditing.Audit(1.0, 1.0, 0.0, 0.9, "output 0", "x", (70, 5), 100).refuted
