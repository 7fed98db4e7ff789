"""Where a formula ends: caps, floors and empty cases that random instances don't meet, each with
the value that is right there; and parts of algorithms, step by step."""

from dataclasses import astuple, replace
from decimal import Decimal
from fractions import Fraction

import mpmath
import numpy as np
import pandas as pd
import pytest

import dpnotes as dp
from dpnotes import integer_noise
from dpnotes.chapters import (
    adaptive_analysis,
    approximate_dp,
    auditing,
    composition,
    erm,
    gaussian,
    in_practice,
    query_release,
    renyi_dp,
    selection,
    stopping,
    subsampling,
)
from dpnotes.chapters.query_release import SparseVector
from evidence import equal, holds, must_fail

INF, LOG = np.inf, np.log


def rng(seed=0):
    return np.random.default_rng(seed)


PLAN = query_release.weights_plan(100, 3, 5, epsilon=1.0)
ONCE, FRESH = query_release.sparse_rounds(1.0), SparseVector(1.0, 2.5, 9.0, 2)
SQUARE = [[1.0, 1.0], [1.0, -1.0], [-1.0, 1.0], [-1.0, -1.0]]
NAMES = dp.finite([0.9, 0.1, 0.0], [0.9, 0.0, 0.1])  # somebody, with probability 0.1
LEAKS = dp.gaussian(1.0) + NAMES
TWO = [0.3, 2.0], [[1e-6], [1e-2]]  # arrays of rdp or rho, and of delta
VALUES = [  # a call, and what it gives
    (lambda: approximate_dp.conditioning_events([0.5, 0.5], [0.5, 0.5], 0.0, 0.3)[0], [0.35, 0.35]),
    (lambda: composition.answerable_queries(100.0, 1.0, 1e-6, each=lambda e, k, d: e / k), 17),
    (lambda: composition.answerable_queries(3.0, 1.0, 1e-6, each=lambda e, k, d: e / k), 1),
    (lambda: query_release.sparse_rounds(1.0, 3).query_scale, 12.0),  # no delta: basic composition
    (lambda: query_release.sparse_rounds(1.0, 3).threshold_scale, 6.0),
    (lambda: erm.objective_perturbation_delta(0.1, 1.0, excess=0.2), 1.0),
    (lambda: dp.randomized_response_estimate([1, 1, 0, 0], 0.3), 0.5),
    (lambda: composition.per_query_epsilon([0.0, 2.0], 1, 1.0), [0.0, 2.0]),  # 0/0 in the formula
    (lambda: gaussian.sigma_tail(8.0, 0.5), 0.25),  # the median mu^2/2 = 8 itself: mu = 4
    (lambda: gaussian.loss_tail(0.25, 8.0), 0.5),
    (lambda: dp.gaussian_delta(dp.gaussian_sigma(0.0, [1e-9, 0.5]), 0.0), [1e-9, 0.5]),
    (lambda: dp.rdp_to_dp_improved(2.0, 0.0, 0.9), 0.0),
    (lambda: dp.rdp_to_dp_optimal(2.0, [0.0, 0.01][1], 0.9), 0.0),
    (lambda: dp.rdp_to_dp_optimal(2.0, 0.0, 1e-6), 0.0),
    (lambda: dp.rdp_to_dp_optimal([9.0, 2.0], *TWO),
     [[dp.rdp_to_dp_optimal(a, r, d) for a, r in zip([9.0, 2.0], TWO[0], strict=True)]
      for (d,) in TWO[1]]),
    (lambda: dp.zcdp_to_dp_improved(*TWO),
     [[dp.zcdp_to_dp_improved(r, d) for r in TWO[0]] for (d,) in TWO[1]]),
    (lambda: dp.gaussian(1.0).delta(INF), 0.0),
    (lambda: dp.PrivacyLoss().delta([INF, 0.0]), [0.0, 0.0]),
    (lambda: dp.finite([1.0, 0.0], [0.0, 1.0]).delta([0.0, INF]), [1.0, 1.0]),
    (lambda: LEAKS.delta([INF, 1e100]), [0.1, 0.1]),
    (lambda: LEAKS.delta(LEAKS.epsilon([0.0, 0.05, 0.2])), [0.1, 0.1, 0.2]),
    (lambda: LEAKS.compose(2).delta_interval(INF), [0.19, 0.19]),
    (lambda: dp.subsample(NAMES, 0.5).delta_interval(INF), [0.05, 0.05]),
    (lambda: renyi_dp.sampled_curve([0.5, 0.7], 1.0), [0.5, 0.7]),
    (lambda: renyi_dp.sampled_curve([0.5, 0.7], 0.0), [0.0, 0.0]),
    (lambda: subsampling.minibatch_epsilon(1000.0, 0.1, 1.0, 1e-5), INF),  # and no warning
    (lambda: subsampling.substitution_pair(699.0, 1.0)[0].sum(), 1.0),
    (lambda: np.log(np.divide(*subsampling.substitution_pair(500.0, 1.0)))[:2], [500.0, -500.0]),
    (lambda: stopping.geometric_runs(1.01).mean, 1.01),
    (lambda: [stopping.negative_binomial_runs(e, 0.5).mean > 1 for e in (-1 + 1e-9, 0, 100)],
     [True] * 3),
    (lambda: dp.to_grid([10**400, None, 0.5], lower=-1.0, upper=1.0, grid=0.5), [2, -2, 1]),
    (lambda: dp.to_grid([0.2, None, 0.5], lower=-1.0, upper=1.0, grid=0.5), [0, -2, 1]),
    (lambda: dp.to_grid([0.2, pd.NA, True], lower=-1.0, upper=1.0, grid=0.5), [0, -2, 2]),
    (lambda: dp.to_grid([0.2, Decimal("sNaN")], lower=-1.0, upper=1.0, grid=0.5), [0, -2]),
    (lambda: astuple(ONCE)[:4], (2.0, 4.0, 2.0, 1)),
    (lambda: query_release.sparse_log_law(ONCE, [1.0, 2.0], [1, 1]), -INF),  # it had stopped
    (lambda: query_release.sparse_log_law(ONCE, [1.0, 2.0], [0, np.nan]), -INF),  # it had not
    (lambda: query_release.sparse_epsilon(SparseVector(2.0, 4.0, None, 3), 0.5), 1.0),
    (lambda: query_release.sparse_epsilon(SparseVector(2.0, 4.0, 5.0, 3), 0.5), 1.2),
    *((lambda n=noise: query_release.sparse_epsilon(n), INF) for noise in (
        SparseVector(2.0, 0.0, None, 3), SparseVector(2.0, 4.0, None, 3, True),
        SparseVector(2.0, 4.0, None, INF))),
    (lambda: query_release.laplace_histogram_error(50, 100, 3, epsilon=0.7, beta=0.1),
     2 / 35 * np.sqrt(800 * LOG(2) * LOG(60))),
    (lambda: query_release.laplace_histogram_error(50, 2, 1000, epsilon=0.7, beta=0.1),
     2 / 35 * np.sqrt(2) * (LOG(20_000) + 2 * LOG(2))),
    (lambda: query_release.weights_plan(3, 2, 1, epsilon=1.0).updates, 1),
    (lambda: selection.small_db_accuracy(0.05, 2, 100, 10, 3, 0.1), 1.0),
    (lambda: dp.clip_rows([[3.0, 4.0], [0.3, 0.4], [1e-320, 0.0]]),
     [[0.6, 0.8], [0.3, 0.4], [1e-320, 0.0]]),
    (lambda: dp.clip_rows([3.0, 4.0], 2.0), [1.2, 1.6]),
    (lambda: erm.geometric_median(SQUARE), [0.0, 0.0]),
    (lambda: erm.geometric_median([[0.0], [0.0], [0.0], [1.0], [50.0]], tolerance=1.0), [10.2]),
    (lambda: erm.output_sensitivity(50, 0.1, erm.huber_loss), 0.4),  # 2 L/(n lambda), L = 1
    (lambda: erm.optimum_radius(erm.hinge_loss, 0.02), 10.0),  # sqrt(2/0.02), below 1/0.02
    (lambda: erm.optimum_radius(erm.hinge_loss, 5.0), 0.2),  # 1/5, below sqrt(2/5)
    (lambda: erm.optimum_radius(erm.squared_loss, 0.02), 10.0),  # sqrt(2/0.02), the only bound
    (lambda: erm.huber_loss.value(np.array([0.5, 1.0, 1.5]), 1.0), [0.5, 1 / 8, 0.0]),
    (lambda: erm.huber_loss.curvature(np.array([0.4, 0.6, 1.4, 1.6]), 1.0), [0, 1, 1, 0]),
    (lambda: erm.distance_loss.gradient(np.zeros(2), np.array([[0.3, 0.4], [0.0, 0.0]])),
     [[-0.6, -0.8], [0.0, 0.0]]),
    (lambda: erm.risk_minimum(np.eye(2), [1.0, -1.0], regularization=1.0, centre=[5.0, 0.0],
                              start=[4.9, 0.0], tolerance=0.6), [4.9, 0.0]),
    (lambda: query_release.Marginals((2, 3, 2), 2)[7], np.isin(np.arange(12), [1, 3, 5])),
    (lambda: [len(query_release.Marginals((2, 3), order)) for order in (1, 2)], [5, 6]),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(VALUES)))
def test_the_value_at_an_edge(number):
    call, value = VALUES[number]
    equal(np.array(call(), dtype=float), np.array(value, dtype=float), rtol=1e-9, atol=1e-300)


def never(*rows):
    raise AssertionError("ran")


def analyst(asked=(3,), answer=abs, repetitions=1):
    adaptive_analysis.noise_analyst((9,), asked, answer=answer, repetitions=repetitions, rng=rng())


def risk(**change):
    good = dict(x=np.eye(2), y=[1.0, -1.0], regularization=1.0)
    erm.risk_minimum(**{**good, **change})


REFUSED = [  # a call, and how its error begins
    (lambda: gaussian.sigma_classical(1.84, 1e-5), "epsilon must be at most 2 ln"),
    (lambda: dp.safe_mean([1.0], lower=2.0, upper=2.0, rng=rng()), "upper must be"),
    (
        lambda: approximate_dp.conditioning_events([0.6, 0.4], [0.4, 0.6], 0.0, 0.1),
        "delta must be at least 0.2,",
    ),
    (lambda: dp.kl([0.5, 0.5], [0.2, 0.3, 0.5]), "p and q must have as many"),
    *((lambda p=p: dp.PrivacyLoss(p), "parts must be steps: dp.gaussian") for p in ("x", [1], 1)),
    (lambda: dp.density_laws(abs, abs, [1, 0]), "edges must be"),
    (lambda: dp.randomized_response_mechanism([0, 2], rng=rng()), "bits must hold"),
    (lambda: dp.randomized_response_estimate([0.5]), "answers must hold"),
    (lambda: dp.discrete_laplace_mechanism(1.5, rng=rng()), "value must be"),
    *((lambda d=d: subsampling.poisson_subsample_law(never, d, 0.5), "data must be a list of rows")
      for d in ("four", {1, 2}, 3, None, np.array(3), iter([1]))),
    *((lambda e=e: stopping.negative_binomial_runs(e, 0.5), "eta must be")
      for e in (-1.0, np.nextafter(100.0, 101.0))),
    *((lambda m=m: stopping.geometric_runs(m), "mean must be above 1") for m in (1.0, 0.5)),
    *((lambda v=v: dp.to_grid([10**400, v], lower=0.0, upper=1.0, grid=0.5), "values must be")
      for v in ("x", "3", b"3", [1, 2], 1j, np.complex64(1), object())),
    (lambda: query_release.sparse_log_law(SparseVector(2.0, 1.0), [0.0, -1e5], [0, 0]),
     "answers and threshold must lie within 10.5 noise"),
    # of a scale of -1 epsilon would be 0 or less: privacy for free
    *((lambda c={name: value}: query_release.sparse_epsilon(replace(FRESH, **c)),
       f"noise.{name} must be") for name, values in (
        ("threshold_scale", (-1.0, 0.0, np.nan, INF, None, [1.0], "1")),
        ("query_scale", (-1.0, np.nan, INF, None, [1.0], "1")),
        ("refresh_scale", (-1.0, 0.0, np.nan, INF, [1.0], "1")),
        ("count", (0, -1, 1.5, np.nan, -INF, None, [1], "1"))) for value in values),
    (lambda: query_release.sparse_log_law(ONCE, [1.0, 2.0], [0, 1], [0.0, 1.0, 2.0]),
     "threshold must be one number, or one for each"),
    *((lambda q=q: query_release.laplace_queries([1, 2, 3], q, epsilon=1.0, rng=rng()),
       "queries must be") for q in ([[0.0, 1.01, 0.5]], [[0.0, 0.5]], np.zeros((0, 3)), [0.5] * 3)),
    *((lambda h=h: query_release.laplace_histogram(h, epsilon=1.0, rng=rng()), "histogram must be")
      for h in ([1, -1, 3], [0.0, 0.0], [1.0, 0.9], [0.5, 0.5 + 1.1e-6], [[1.0]], [])),
    *((lambda q=q: query_release.MultiplicativeWeights([50, 30, 20], PLAN, rng=rng()).answer(q),
       "query must") for q in ([0.0, 1.5, 0.0], [-0.1, 0.0, 1.0], [1.0, 0.0], 0.5, [])),
    (lambda: query_release.MultiplicativeWeights([50, 30, 21], PLAN, rng=rng()),
     "histogram must hold 100 rows"),
    (lambda: analyst(asked=[10**7 + 1]), "asked must be"),
    (lambda: analyst((1, 3), answer=lambda x: x[:1, :1]), "answer must return"),
    (lambda: analyst((3, 3)), "asked must be increasing"),
    (lambda: risk(loss=erm.hinge_loss), "loss must be"),
    (lambda: risk(y=np.ones(3)), "y must have"),
    (lambda: risk(x=np.zeros((0, 2)), y=[]), "y must have"),
    (lambda: risk(centre=[1.0]), "centre must be"),
    (lambda: risk(start=[1.0, 2.0, 3.0]), "start must be"),
    *((lambda m=m: erm.invert_model(*m, regularization=1.0), "x must have") for m in (
        ([1.0], np.eye(2), [1, -1]), ([1.0, 2.0], np.eye(2), [1]), ([], np.zeros((2, 0)), [1, 1]))),
    *((lambda s=s, o=o: query_release.Marginals(s, o), f"{name} must be")
      for s, o, name in (((2, 3), 3, "order"), ((2, 3), 0, "order"), ((2, 0), 1, "shape"))),
    *((lambda c=c: in_practice.sampled_substitution(**{"sigma": 1.0, "rate": 0.5, **c}),
       f"{next(iter(c))} must be") for c in (
        dict(sigma=0.0999), dict(sigma=1000.1), dict(rate=0.99e-10), dict(rate=1.0 + 1e-15),
        dict(cells=19), dict(cells=2001))),
    *((lambda q=query, v=value: getattr(dp.gaussian(1.0), q)(v), f"{name} must be")
      for query, name, *values in (
        ("compose", "k", 0, -1, 1.5), ("delta", "epsilon", -np.inf, -0.1, [0.1, -0.1]),
        ("epsilon", "delta", -0.1, 1.1, [0.1, 2.0]), ("renyi", "alpha", 0.5, -2),
        ("epsilon_interval", "delta", -0.1, 1.1, [0.1, 2.0]), ("tradeoff", "alpha", -0.1, 1.1))
      for value in values),
    *((lambda c=call, v=value: c(v), f"{name} must be .*got")
      for call, name, *values in (
        (dp.gaussian, "sigma", 1e-200, 9.9e-7, 1.01e15, 1e200),
        (dp.laplace, "scale", 1e-300, 9.9e-05, 1.01e8, 1e300),
        (dp.randomized_response, "epsilon", 1e-300, 9.9e-16, 1.01e5, 1e300),
        (lambda rate: dp.subsample(dp.gaussian(1.0), rate), "rate", 1e-300, 1e-11))
      for value in values),
    (lambda: dp.subsample(dp.subsample(dp.laplace(1.0), 1e-9), 1e-9), "rate must be in"),
    *((lambda s=s: dp.subsample(dp.gaussian(s), 0.1), "sigma of loss must be in")
      for s in (1e-3, 1e7)),
    *((lambda k=k: dp.laplace(1.0).compose(10**6).compose(k), "k must")
      for k in (10**7, 10**400)),
    (lambda: dp.laplace(1.0).compose(10**12) + dp.gaussian(1.0), "k must be at most .* in all"),
    *((lambda f=f: dp.calibrate(f, 1.0, 1e-5), "family must be a function that returns")
      for f in (lambda s: s, lambda s: None)),
    *((lambda d=d: dp.calibrate(lambda s: dp.finite([d, 1 - d], [0.0, 1.0]), 1.0, 0.5),
       "family must have an x that just meets the target: x = ") for d in (0.3, 0.9)),
    (lambda: dp.discrete_gaussian(0.1), "sigma must"),
    (lambda: dp.discrete_gaussian(1.0, 1.5), "sensitivity must"),
    (lambda: dp.discrete_gaussian(1.0, 5), "sigma / sensitivity must"),
    (lambda: dp.finite([0.5, 0.5], [0.2, 0.3, 0.5]), "q must"),
    (lambda: dp.subsample(dp.laplace(1.0).compose(2), 0.1), "loss must"),
    (lambda: dp.discrete_laplace(1.0, 20_000), "sensitivity must"),
    (lambda: in_practice.sampled_group(1.0, 0.1, 26), "rows / sigma must be"),
]  # fmt: skip


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_what_lies_beyond_an_edge_is_refused(number):
    call, words = REFUSED[number]
    with pytest.raises(ValueError, match=f"^{words}"):
        call()


def test_ratios_beyond_the_floats_do_not_stop_who_lets_errors_stop_them():
    with np.errstate(all="raise"):  # mu underflows to 0, and overflows
        least = dp.gaussian_delta(np.array([1e100]), 1.0, np.array([1e-300]))
        most = dp.gaussian_delta(np.array([1e-300]), 1.0, np.array([1e100]))
    assert least.tolist() == [0.0] and most.tolist() == [1.0]


def test_integers_that_fit_are_of_64_bits_and_others_of_python():
    noise = dp.discrete_laplace_mechanism(0, 1, 0.1, rng=np.random.default_rng(8))
    ends = {-(2**63) - 1: object, -(2**63): np.int64, 2**63 - 1: np.int64, 2**63: object}
    for total, kind in ends.items():
        value = np.array([total - noise], dtype=object)
        noisy = dp.discrete_laplace_mechanism(value, 1, 0.1, rng=np.random.default_rng(8))
        assert noisy.dtype == kind and noisy[0] == total


def test_a_row_that_is_no_float_moves_no_other_row():
    def check(to_grid):
        for values, upper, grid in (
            ([2**61, 3, -(2**65)], 2.0**72, 2.0**20),
            ([1000, 7, -1], 5000.0, 1.0),
            ([0.5, 2**61 + 1, -3.5], 2.0**62, 2.0**10),
        ):
            alone = to_grid(values, lower=-upper, upper=upper, grid=grid)
            for huge, end in ((10**400, upper), (-(10**400), -upper)):
                steps = to_grid([*values, huge], lower=-upper, upper=upper, grid=grid)
                holds(steps == np.append(alone, end / grid))

    check(dp.to_grid)
    must_fail(check, lambda values, **more: dp.to_grid([min(v, 2**60) for v in values], **more))


def test_the_law_of_one_report_in_closed_form():
    a, b1, b2 = 0.3, FRESH.threshold_scale, FRESH.query_scale
    kept = replace(FRESH, refresh_scale=None)
    for report in (0, 1):  # the noise that is drawn anew is not that of the first round
        first, other = (query_release.sparse_log_law(n, [a], [report]) for n in (FRESH, kept))
        equal(first, other)
    x = -a  # P(z > a + noise): two Laplace variables
    tail = 0.5 * (b1**2 * np.exp(x / b1) - b2**2 * np.exp(x / b2)) / (b1**2 - b2**2)
    equal(np.exp(query_release.sparse_log_law(kept, [a], [0])), tail, rtol=1e-11)
    shows, told = SparseVector(b1, b2, None, 1, True), np.array([-2.0, 0.1, 0.3, 4.0])
    below = np.where(told < 0, np.exp(-abs(told) / b1) / 2, 1 - np.exp(-abs(told) / b1) / 2)
    density = np.exp(-np.abs(told - a) / b2) / (2 * b2) * below
    equal(np.exp(query_release.sparse_log_law(shows, [a], told[:, None])), density, rtol=1e-11)


def test_the_law_of_many_equal_answers_is_a_beta_function():
    """With one scale b for all noise the integral over z is one over u = F(z): B(m + 1, k + 1)."""

    few = (1, 1), (100, 100), (7, 3000)

    def check(noise, counts=few):
        for below, above in counts:
            log_law = query_release.sparse_log_law(
                replace(noise, count=above + 1), np.full(below + above, 0.3),
                np.repeat([0, 1], (below, above)), 0.3,
            )  # fmt: skip
            exact = float(mpmath.log(mpmath.beta(below + 1, above + 1)))
            equal(log_law, exact, rtol=1e-15, atol=1e-11)

    for scale in (0.05, 40.0):
        check(SparseVector(scale, scale))
    check(SparseVector(1.5, 1.5), [*few, (10_000, 10_000), (200_000, 0)])
    must_fail(check, SparseVector(1.5, 1.500001))


def test_each_round_has_the_noise_of_its_own():
    one = query_release.sparse_log_law(SparseVector(1.0, 2.5), [0.3, 1.0], [0, 1])
    two = query_release.sparse_log_law(SparseVector(9.0, 2.5), [-2.0], [1])
    equal(query_release.sparse_log_law(FRESH, [0.3, 1.0, -2.0], [0, 1, 1]), one + two, rtol=1e-11)


def test_the_scales_of_the_six_algorithms_of_lyu_su_and_li():
    """Their Figure 1, each with half of epsilon for the threshold but for the fourth: a quarter."""
    epsilon, c, s = 0.8, 3, 1.5
    half = epsilon / 2
    figure = [
        (s / half, 2 * c * s / half, None, c, False),
        (c * s / half, 2 * c * s / half, c * s / half, c, False),
        (s / half, c * s / half, None, c, True),
        (s / (epsilon / 4), s / (3 * epsilon / 4), None, c, False),
        (s / half, 0.0, None, np.inf, False),
        (s / half, s / half, None, np.inf, False),
    ]
    variants = query_release.lyu_variants(epsilon, c, s).values()
    for one, known in zip(variants, figure, strict=True):
        assert (one.refresh_scale is None) == (known[2] is None)
        scales = (np.array([x or 0.0 for x in each], dtype=float) for each in (astuple(one), known))
        equal(*scales)


def test_bounds_of_an_event_that_is_always_and_never_seen():
    n, alarm = 500, 0.02
    always = (alarm / 2) ** (1 / n)  # each of the two bounds has half of the alarm
    equal(auditing.clopper_pearson(n, n, alarm / 2), (always, 1.0))
    equal(auditing.clopper_pearson(0, n, alarm / 2), (0.0, 1 - always), rtol=1e-10)
    found = auditing.epsilon_from_counts(n, 0, n, 0.25, false_alarm=alarm)
    equal(found, np.log((always - 0.25) / (1 - always)), rtol=1e-10)
    assert auditing.epsilon_from_counts(3, 9, n, false_alarm=alarm) == 0.0


def test_an_exponential_is_enclosed_closely():
    def check(enclosed):
        some = [Fraction(k, 397) for k in range(1, 397)]  # sums that end above exp, and below
        for rate in (Fraction(0), Fraction(1), Fraction(7, 2), Fraction(40), *some):
            for bits in (1, 2, 3, 4, 32, 64):
                low, high, one = enclosed(rate, bits)
                assert one >= 1 << bits and one & one - 1 == 0
                with mpmath.workdps(120):
                    value = mpmath.exp(-mpmath.mpf(rate.numerator) / rate.denominator) * one
                    assert low <= value <= high and (high - low) << bits <= one

    def narrow(rate, bits):
        low, high, one = integer_noise.enclosed_exp(rate, bits)
        return low, high - 2, one

    def above(rate, bits):
        _low, high, one = integer_noise.enclosed_exp(rate, bits)
        return high, high, one

    check(integer_noise.enclosed_exp)
    must_fail(check, narrow)
    must_fail(check, above)


def test_the_step_away_from_a_data_point_is_that_of_vardi_and_zhang():
    """Four rows pull at the mean, itself a row, by 4 cos 45 - 1 = 1.8; the row there holds by 1."""
    points = [[0.0, 0.0], [1.0, 1.0], [1.0, 1.0], [1.0, -1.0], [1.0, -1.0], [-4.0, 0.0]]
    pull, weight = 4 * np.sqrt(0.5) - 1, 4 * np.sqrt(0.5) + 1 / 4
    median = erm.geometric_median(points, tolerance=0.1)
    equal(median, [(pull - 1) / weight, 0.0], atol=1e-15)
    equal(erm.geometric_median(points, tolerance=0.14), 0.0)  # 0.83 of 6 is below 0.14


def test_a_tie_of_votes_counts_one_half():
    def accuracy(coins, tie):
        votes = (2 * coins - 1).sum(-1)
        return (votes > 0).mean(1) + tie * (votes == 0).mean(1)

    accuracies = adaptive_analysis.noise_analyst(
        (5,), [2], answer=np.ones_like, repetitions=30, rng=np.random.default_rng(3)
    )
    coins = adaptive_analysis._coins((30, 5, 2), np.random.default_rng(3))
    equal(accuracies[0, :, 0], accuracy(coins, 0.5))
    must_fail(equal, accuracies[0, :, 0], accuracy(coins, 1.0))


def test_the_holdout_answers_on_whichever_side_it_lies():
    oracle = adaptive_analysis.Thresholdout(0.1, 1e-9, 4, rng=np.random.default_rng(2))
    told = oracle.answer([[0.9, 0.1, 0.5, 0.5]], [[0.1, 0.9, 0.45, 0.55]])
    equal(told, [[0.1, 0.9, 0.5, 0.5]], atol=1e-6)  # within the threshold: the training value
    assert oracle.left.tolist() == [2]
