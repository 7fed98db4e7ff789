"""Audits: every planted bug is found, no right mechanism is, and the stated false alarm is kept.

Each audit here of a right mechanism refutes it with probability at most 1e-8 (seeds are fixed), so
the file's false alarm is below 1e-6.
"""

import functools
import sys

import numpy as np
import pytest
from scipy import stats

import dpnotes as dp
from dpnotes.chapters import auditing
from dpnotes.chapters.auditing import classes
from dpnotes.chapters.auditing.bounds import log_ratio_bound
from evidence import equal, must_fail

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
    found = run(mechanism, pair, epsilon, delta)
    assert found.refuted == (case in BROKEN), str(found)


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
            found = auditing.audit(mechanism(), 0, 1, 0.0, runs=2000, false_alarm=0.05, rng=rng)
            alarms += found.refuted
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
    found = run(once, (0.0, 1.0), 1.0, runs=6000)
    assert found.refuted and found.runs == 3000
    batches = []

    def draw(x, runs, rng):
        batches.append(runs)
        return x + rng.laplace(0, 0.5, runs)

    assert run(auditing.in_batches(draw), (0.0, 1.0), 1.0, runs=200_001).runs == 100_000
    assert sum(batches) == 400_000 and max(batches) < 100_000


KINDS = {  # of outputs that say a bit
    "strings": lambda bit: "yes" if bit else "no",
    "tuples of any length": lambda bit: (None,) * bit + ("stop",),
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

    found = run(mechanism, (0, 1), 1.0, runs=4000)
    assert found.refuted == (name != "empty")
    assert (1.5 < found.epsilon < np.log(9)) == (name != "empty")


def test_outputs_that_only_the_second_half_shows():
    calls = []

    def mechanism(x, rng):
        calls.append(x)
        late = len(calls) > 2000 and rng.random() < 0.01
        return ("stop",) if late else (float(rng.random() < (0.9 if x else 0.1)), 0.5)

    assert run(mechanism, (0, 1), 1.0, runs=2000).refuted


def test_what_the_first_half_did_not_show_is_in_no_event():
    calls = []

    def mechanism(x, rng):
        calls.append(x)
        return "late" if len(calls) > 200 else ("yes" if x else "no")

    found = run(mechanism, (0, 1), 1.0, runs=200)
    assert found.counts == (0, 0) and found.epsilon == 0.0 and len(calls) == 400
    blank = auditing.in_batches(lambda x, runs, rng: np.zeros(runs))
    assert auditing.audit(blank, 0, 1, 1.0, rng=np.random.default_rng(0)).runs == 50_000


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

    found = run(auditing.in_batches(draw), (0.0, 1.0), 0.5)
    assert found.refuted and found.epsilon <= 1


def test_the_result_explains_itself():
    known = auditing.in_batches(lambda x, runs, rng: np.full(runs, x))
    found = run(known, (0.0, 1.0), 1.0, runs=2000)
    assert found.counts == (1000, 0) and found.refuted and found.confidence == 1 - ALARM
    words = str(found)
    for word in ("refuted", "output 0", "1000 times on x", "0 times on x_neighbour", "epsilon >="):
        assert word in words
    assert found == run(known, (0.0, 1.0), 1.0, runs=2000)
    assert "not refuted" in str(run(laplace(1), (0.0, 1.0), 1.0, runs=2000))
    assert "in (" in run(laplace(1), (0.0, 1.0), 1.0, runs=2000).event


# ---------------------------------------------------------------------------- classes of outputs
def test_few_numbers_are_a_class_each():
    bins = classes._Bins(np.repeat([2.0, 0.5, np.nan], 10))
    assert bins.edges.tolist() == [0.5, 2.0] and bins.size == 3
    assert bins.label([0.5, 2.0, 1.0, 3.0, np.nan, "x"]).tolist() == [0, 1, 2, 2, 2, 2]
    assert bins.words(np.array([True, False, True])) == "output 0.5 or none of the others"
    none = classes._Bins(np.full(30, np.nan))
    assert none.size == 1 and none.label([1.0, np.nan]).tolist() == [0, 0]
    many = np.arange(10 * 512 + 10)
    assert classes._Bins(many[:5120] % 512 + 0.0).few  # 512, each ten times
    assert not classes._Bins(many % 513 + 0.0).few
    assert not classes._Bins(many[:5119] % 512 + 0.0).few


def test_many_numbers_lie_between_quantiles_finer_at_both_ends():
    def edges(numbers):
        return np.unique(np.round(classes._Bins(numbers).edges, 9)).tolist()

    bins = classes._Bins(np.arange(12_800.0)[::-1])
    assert edges(np.arange(12_800.0)) == [25, 50, *range(100, 12_800, 100), 12_750, 12_775]
    assert bins.size == len(bins.edges) + 1 and not bins.few
    assert np.ptp(bins.label([200.5, 299.5, 300.0])) == 0
    ends = bins.label([0.0, 25.0, 25.5, 12_775.5, np.nan])
    assert ends.tolist() == [0, 0, 1, *2 * [bins.size - 1]]
    assert np.diff(bins.label([300.0, 300.5])) == 1
    members = np.zeros(bins.size, dtype=bool)
    members[bins.label([0.0, 230.0, 330.0, np.nan])] = True
    assert bins.words(members) == "output in (-inf, 25] or (200, 400] or (12775, inf]"
    assert edges(np.arange(100.0)) == [25, 50, 75]  # two pieces, and a quarter at each end
    assert edges(np.arange(160.0)) == [20, 40, 53, 80, 106, 120, 140]
    heap = classes._Bins(np.r_[np.zeros(900), np.arange(1.0, 5501.0)])
    assert heap.edges[:2].tolist() == [-5e-324, 0.0]  # zeros have a bin of their own
    assert heap.label([0.0, -1e-300]).tolist() == [1, 0]


def test_names_of_classes_are_cut_after_six():
    assert classes._first_six(list("abcdef")) == "a or b or c or d or e or f"
    assert classes._first_six(list("abcdefgh")) == "a or b or c or d or e or f or 2 more"
    rows = classes._Outcomes([[0.5, -0.0], [np.nan, 1.0]], (2,))
    assert rows.words(np.array([True, True])) == "output (0.5, 0) or (nan, 1)"
    assert rows.label([[0.5, 0.0], [1.0, 1.0], [np.nan, 1.0]]).tolist() == [0, 2, 1]
    assert rows.label([[0.5, 0.0], "x", [np.nan, 1.0]]).tolist() == [0, 2, 1]
    things = classes._Outcomes(["a", ("a", [np.nan]), np.float64("nan")])
    assert things.label([("a", (None,)), None, "b"]).tolist() == [1, 2, 3]
    assert things.words(np.array([True, False, True])) == "output a or None"


def test_which_classes_are_tried():
    def tried(rows):
        half = len(rows) // 2
        return [type(each).__name__ for each in classes.classes_of(rows[:half], rows[half:])]

    rows = np.arange(1000)[:, None] + np.zeros(2)
    assert tried(["a", "b"]) == tried(np.zeros((4, 0))) == ["_Outcomes"]
    assert tried(rows[:, 0]) == ["_Bins"]
    assert tried(rows % 10) == ["_Outcomes"]
    assert tried(rows % 11) == tried(rows % 200) == ["_Outcomes", "_Scores"]
    assert tried(rows % 201) == ["_Scores"]


def test_scores_add_the_log_ratios_of_the_entries():
    """Binary entries and a few that are missing, counted in the first quarter alone."""
    rng = np.random.default_rng(8)
    rows = rng.integers(0, 2, (4000, 2)) * 1.0
    rows[:2000] *= rng.random((2000, 1)) < 0.7
    rows[::20, 1] = np.nan
    fit, at_x = np.arange(4000) % 2 == 0, np.arange(4000) < 2000
    scores = classes._Scores(rows)
    found = scores.score(rows)

    def ratio(inside):
        return np.log(((inside & at_x & fit).sum() + 0.5) / ((inside & ~at_x & fit).sum() + 0.5))

    for a in (0.0, 1.0):
        first = rows[:, 0] == a
        for second in (rows[:, 1] == 0, rows[:, 1] == 1, np.isnan(rows[:, 1])):
            equal(found[first & second], ratio(first) + ratio(second), atol=1e-12)
    assert scores.label(rows[:90]).tolist() == scores.bins.label(found[:90]).tolist()
    assert scores.label([[0.0, 0.0], "x"]).shape == (2,)
    assert scores.words(np.arange(scores.size) == 0).startswith("estimated log ratio")


def test_the_event_of_the_largest_bound():
    """By the ratio in the first pair of counts; how far, by the second."""
    ordering = np.array([5, 80, 15]), np.array([60, 10, 30])
    choosing = np.array([10, 70, 20]), np.array([50, 5, 45])
    audit = sys.modules["dpnotes.chapters.auditing.search"]
    bound, likelier, members = audit._best_event(ordering, choosing, 0.0, 0.05)
    assert likelier == "x" and members.tolist() == [False, True, False]
    equal(bound, log_ratio_bound(70, 5, 100, 0.0, 0.05))
    bound, likelier, members = audit._best_event(ordering[::-1], choosing[::-1], 0.0, 0.05)
    assert likelier == "x_neighbour" and members.tolist() == [False, True, False]
    none = audit._best_event(ordering, (np.array([3, 3, 3]), np.array([3, 3, 3])), 0.0, 0.05)
    assert none[0] == 0.0


def test_the_sentence_of_an_audit():
    found = auditing.Audit(1.23456, 1.0, 0.01, 1 - 1e-6, "output 0", "x_neighbour", (70, 5), 100)
    assert str(found) == (
        "epsilon >= 1.235 at delta = 0.01 with confidence 1 - 1e-06; the claim 1 is refuted. "
        "Event: output 0; seen 70 times on x_neighbour, 5 times on x, of 100 runs each."
    )
    assert not auditing.Audit(1.0, 1.0, 0.0, 0.9, "output 0", "x", (70, 5), 100).refuted
