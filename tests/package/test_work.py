"""A query ends because its work is counted, not because a machine is quick.

No clock is read: units are those of ``work``, and what goes through numpy's elementary functions is
counted beside them, so that a method that does not charge for what it does is found out.
"""

import importlib
import pkgutil

import numpy as np
import pytest

import dpnotes as dp
from caches import forget_caches
from dpnotes import accountant
from dpnotes.accountant import (
    contour,
    finite_sums,
    laplace_sums,
    lattice,
    phases,
    privacy_loss,
    work,
)
from dpnotes.accountant.laplace import Laplace
from dpnotes.accountant.law import log_running_sums
from dpnotes.accountant.step import Finite
from evidence import at_most, holds, must_fail

MODULES = [
    importlib.import_module(f"{accountant.__name__}.{found.name}")
    for found in pkgutil.iter_modules(accountant.__path__)
]
COUNTED = {"exp", "expm1", "log", "log1p", "sin", "cos", "arctan2"}
CHARGE, FREE = 12.0, 3e6  # units of each number that goes through one of them, after the first

# the longest of 5,000 random queries and of a search near them
SLOW = {
    "swapped": (dp.subsample_substitution(dp.gaussian(1.03), 1.52e-4).compose(11055), 1.143e-4),
    "mixed, swapped": (
        dp.subsample_substitution(dp.gaussian(1.5), 8e-4).compose(2)
        + dp.subsample(dp.gaussian(4.0), 0.06),
        -0.16,
    ),
    "far apart": (
        dp.subsample(dp.gaussian(8.478), 1.585e-3).compose(2)
        + dp.subsample(dp.gaussian(0.4298), 9.27e-8).compose(3),
        1.44e-14,
    ),
    "many classes": (
        dp.subsample(dp.gaussian(1.387), 7.21e-8).compose(3)
        + dp.subsample(dp.gaussian(0.6657), 8.3e-5).compose(13),
        1.29e-4,
    ),
    "rare": (dp.subsample(dp.gaussian(0.4505), 1.084e-5).compose(64), -1.0),
    "lattice": (
        dp.subsample(dp.laplace(3.0), 8e-4) + dp.subsample(dp.gaussian(0.5), 1.5e-4),
        1e-4,
    ),
}


class Counting:
    """numpy, and how many numbers its elementary functions returned."""

    def __init__(self):
        self.numbers = 0

    def __getattr__(self, name):
        function = getattr(np, name)
        if name not in COUNTED:
            return function

        def counted(*arguments, **options):
            found = function(*arguments, **options)
            self.numbers += np.size(found) * (2 if np.iscomplexobj(found) else 1)
            return found

        return counted


def asked(name):
    """(units, numbers) of a query; at a negative number, delta of its size, else epsilon."""
    run, at = SLOW[name]
    run = dp.PrivacyLoss(run._parts)  # which remembers no answer
    forget_caches()  # what is found there is neither charged nor computed
    counting = Counting()
    with pytest.MonkeyPatch.context() as patch, work.limited(1e12):
        for module in MODULES:
            if hasattr(module, "np"):
                patch.setattr(module, "np", counting)
        low, high = run.delta_interval(-at) if at < 0 else run.epsilon_interval(at)
        assert low <= high
        return 1e12 - work.left(), counting.numbers


def check(name):
    units, numbers = asked(name)
    at_most(units, work.QUERY)
    at_most(CHARGE * numbers, units + FREE)


@pytest.mark.parametrize("name", SLOW)
def test_a_query_keeps_to_its_units_and_charges_for_its_work(name):
    check(name)


@pytest.mark.parametrize("room, name", [(phases, "swapped"), (lattice, "lattice")])
def test_work_that_is_not_charged_is_found_out(monkeypatch, room, name):
    monkeypatch.setattr(room, "spend", lambda units: None)
    must_fail(check, name)


def test_a_limit_is_kept_inside_and_counts_outside():
    assert work.left() == np.inf
    with work.limited(1e9):
        assert work.within(1e8, lambda: 1) == 1
        assert work.within(1e8, work.spend, 2e8) is None and work.left() == 1e9
        work.within(1e12, work.spend, 9e8)
        assert work.left() == 1e9 - 9e8 - work.CALL
        assert work.within(1e8, work.spend, 6e7) is None  # all but ``KEPT``
        work.within(work.LAST, work.spend, 2e7)
        assert work.left() == 1e9 - 9.2e8 - 2 * work.CALL
    with work.limited(1e9):  # what is kept is kept once

        def inner():
            return work.within(3e7, lambda: work.left())

        assert work.within(3.5e7, inner) == 3e7
    assert work.left() == np.inf


@pytest.mark.parametrize(
    "sigma, rate, k",
    [(28.6885, 1.87276e-8, 96), (6.80733, 4.52456e-7, 2), (2.3561, 9.5e-7, 15991)],
)
def test_total_variation_at_low_rates_is_sharp(sigma, rate, k):
    """Settings whose lines were given up, or were full of round-off."""
    low, high = dp.subsample(dp.gaussian(sigma), rate).compose(k).delta_interval(0.0)
    at_most(high - low, 1e-9 * high)


def test_what_no_method_finishes_is_bounded_all_the_same(monkeypatch):
    """With hardly any work allowed the interval is wide, and holds the true one."""
    run, at = SLOW["rare"]
    run = dp.PrivacyLoss(run._parts)
    low, high = run.delta_interval(-at)
    for units in (6e7, 9e7, 2e8):
        monkeypatch.setattr(privacy_loss, "QUERY", units)
        wide = dp.PrivacyLoss(run._parts).delta_interval(-at)
        assert wide[0] <= low <= high <= wide[1]


def test_a_sum_of_laplace_steps_charges_for_its_work_too(monkeypatch):
    """With little work allowed it gives up, and the interval is wider and holds the true one."""
    run = dp.laplace(5.0) + dp.laplace(3.0) + dp.randomized_response(0.3).compose(45)
    low, high = run.epsilon_interval(0.1)
    monkeypatch.setattr(privacy_loss, "QUERY", 1.5e8)

    def check():
        wide = dp.PrivacyLoss(run._parts).epsilon_interval(0.1)
        holds(wide[0] <= low <= high <= wide[1] and wide[1] - wide[0] > 2 * (high - low))

    check()
    monkeypatch.setattr(laplace_sums, "spend", lambda units: None)
    must_fail(check)


@pytest.mark.parametrize("epsilon", [0.0, 1e3, 8e12])
def test_a_trillion_rounds_of_whole_numbers_need_few_nodes(epsilon):
    """1 - delta is so small that an integral for delta would take 1e8 nodes."""
    run = dp.discrete_gaussian(0.25).compose(10**12)
    with work.limited(2e8):
        low, high = run.delta_interval(epsilon)
    assert 0 <= low <= high <= 1 and (epsilon > 1e4 or low > 0.99)


def test_thirty_losses_five_times_need_no_table_of_logarithms():
    """Once 6 seconds and 730 MB: terms of a multinomial law depend on one count alone."""
    counting, losses = Counting(), np.linspace(-1.0, 1.0, 30)
    step = Finite(tuple(losses.tolist()), tuple((-np.log(30) + 0 * losses).tolist()))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(finite_sums, "np", counting)
        assert len(finite_sums.rounds(step, 5)[0]) == 278_256
    at_most(counting.numbers, 2000)


@pytest.mark.parametrize("sampled", [dp.subsample, dp.subsample_substitution])
@pytest.mark.parametrize("alpha", [1e7, 1e11, 1e15])
def test_renyi_of_large_orders_needs_no_more_nodes(sampled, alpha):
    """Once 11 seconds, or more memory than there is. Far out the loss is (x - 1/2)/sigma^2 + log
    rate, and K(c) that of a Gaussian with both: c (c + 1)/(2 sigma^2) + (c + 1) log rate."""
    for sigma in (0.01, 1.0, 30.0):
        with work.limited(2e8):
            found = sampled(dp.gaussian(sigma), 1e-3).renyi(alpha)
        exact = alpha / (2 * sigma**2) + alpha / (alpha - 1) * np.log(1e-3)
        holds(abs(found - exact) <= 1e-9 * exact)


def test_renyi_is_refused_where_it_takes_too_much():
    steps = [(Laplace(1e-4 * (1 + i / 1e3), 0.1), 1) for i in range(200)]
    with pytest.raises(ValueError, match="alpha"):
        dp.PrivacyLoss(steps).renyi(3.0)


def test_the_lattice_says_nothing_left_of_where_its_aliases_are_bounded():
    parts = dp.laplace(1.3).compose(40)._parts
    spread = lattice.spread(parts, lattice.anchor(parts, contour.saddle_at(parts, 1, 12.0)))
    assert spread.least <= 12.0
    assert spread.log_bounds(np.nextafter(spread.least, -np.inf)) == (-np.inf, 0.0, 0.0)


@pytest.mark.parametrize("size", [1, 1023, 5000, 300_000])
@pytest.mark.parametrize("span", [1.0, 300.0, 3000.0])
def test_running_sums_of_logarithms(size, span):
    """Against sums in 80 bits (or in the same arithmetic where there are no more)."""
    rng = np.random.default_rng(size)
    terms = rng.normal(size=size) - span * np.abs(np.linspace(-1, 1, size))
    terms[: size // 7] = -np.inf
    found = log_running_sums(terms)
    with np.errstate(divide="ignore"):
        wide = terms.astype(np.longdouble)
        truth = np.logaddexp.accumulate(wide) if size < 10_000 or span > 600 else None
        if truth is None:
            top = wide.max()
            truth = np.log(np.cumsum(np.exp(wide - top))) + top
    known = np.isfinite(truth)
    assert np.array_equal(known, np.isfinite(found))
    assert np.all(np.abs(found[known] - truth[known]) <= (1e-12 if span < 1000 else 4e-12))


def test_a_common_spacing_of_losses_of_all_sizes_is_not_looked_for():
    run = dp.subsample(dp.discrete_gaussian(0.5, 2), 1.78636625975754e-08).compose(16)
    low, high = run.delta_interval(6.1569625556586445)
    assert 0 < low <= high < 1.02 * low


def test_wide_discrete_gaussians_that_are_cut_off_are_refused_by_name():
    for run in (
        lambda: dp.subsample(dp.discrete_gaussian(3901.0, 10), 0.1),
        lambda: dp.subsample_substitution(dp.discrete_gaussian(3901.0, 10), 0.1),
        lambda: (dp.discrete_gaussian(3901.0) + dp.laplace(1.0)).delta(0.5),
    ):
        with pytest.raises(ValueError, match="sigma of discrete_gaussian must be at most 3900"):
            run()
    assert dp.discrete_gaussian(3901.0, 10).delta(0.5) < 2e-300
    assert 0 < dp.subsample(dp.discrete_gaussian(3899.0, 10), 0.1).delta(1e-4) < 1


def test_many_different_coins_are_joined_before_they_are_moved():
    """300 of them had too coarse a lattice: (0, .604). A finer lattice, asked alone, agrees."""
    losses = np.random.default_rng(2).uniform(0.01, 0.3, 300)
    run = sum(
        (dp.randomized_response(float(e)) for e in losses[1:]), dp.randomized_response(losses[0])
    )
    low, high = run.delta_interval(5.0)
    assert high - low <= 1e-5 * high
    parts = run._directions[0].parts
    finer = lattice.moved(parts, lattice.anchor(parts, contour.saddle_at(parts, 1, 5.0)), 2**19)
    least, _, most = np.exp(finer.log_bounds(5.0))
    assert max(low, least) <= min(high, most)


def test_what_is_left_of_many_large_laws_is_chernoffs_bound():
    rng = np.random.default_rng(3)
    laws = [dp.finite(*rng.dirichlet(np.full(1000, 20.0), size=2)) for _ in range(100)]
    run = sum(laws[1:], laws[0]) + sum(laws[1:], laws[0])
    low, high = run.epsilon_interval(1e-6)
    assert 0 < low <= high < 40
