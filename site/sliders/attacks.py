"""Interactive figure of a run: delta against epsilon, trade-off curve, and what attacks find."""

from math import ceil, exp, floor, log, log1p

import numpy as np

import dpnotes as dp
from dpnotes.calculator.wording import digits

from .marks import at, dots, line
from .spec import Axis, Control, Panel, Slider, decades, figure, says, table, ticks

RATE, DELTA = 256 / 60_000, 1e-5
SIGMAS, STEPS = (0.6, 0.8, 1.1, 1.6, 3.0), (100, 1_000, 5_000, 14_100, 50_000)
TIMES = (0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 0.95, 1.0, 1.1, 1.3, 1.6, 2.0)  # of the epsilon at DELTA
FPRS = (1e-4, 3e-4, 1e-3, 3e-3, 0.01, 0.03, 0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 1.0)
SAME = {  # with this epsilon at DELTA; how it is made, in words
    "DP-SGD": None,
    "one Gaussian release": lambda e: dp.gaussian(dp.gaussian_sigma(e, DELTA)),
    "one Laplace release": lambda e: dp.laplace(1 / (e - 2 * log1p(-DELTA))),
    "one coin": lambda e: dp.randomized_response(log((exp(e) + DELTA) / (1 - DELTA))),
}  # fmt: skip
CHOSEN = "mechanism", "sigma", "k"
MISSED, FOUND = at("missed", *CHOSEN), at("found", *CHOSEN)
PANELS = [
    Panel(
        Axis("ε", 0.02, 50, decades(-1, 1), log=True),
        Axis("δ", 1e-10, 1, decades(-10, 0, 5), log=True),
        [
            line(at("epsilons", "sigma", "k"), at("deltas", *CHOSEN), color=0, width=2.4,
                 label="the run"),
            dots(at("at", "sigma", "k"), DELTA, color=1, label="at δ = 10⁻⁵, and at 1 %"),
        ],
    ),
    Panel(
        Axis("false alarms", 0, 1, ticks(0, 0.5, 1)),
        Axis("missed", 0, 1, ticks(0, 0.5, 1)),
        [
            line([0, 1], [1, 0], color="muted", dash="2 3", label="guessing"),
            line("fpr", MISSED, color=0, width=2.4),
        ],
    ),
    Panel(
        Axis("false alarms", 1e-4, 1, decades(-4, 0, 2), log=True),
        Axis("found", 1e-4, 1, decades(-4, 0, 2), log=True),
        [
            line([1e-4, 1], [1e-4, 1], color="muted", dash="2 3"),
            line("fpr", FOUND, color=0, width=2.4),
            dots(0.01, at("common", *CHOSEN), color=1),
        ],
    ),
]  # fmt: skip


@figure
def one_run():
    """Each mechanism at the epsilon of each training."""
    trainings = [[dp.subsample(dp.gaussian(s), RATE).compose(k) for k in STEPS] for s in SIGMAS]
    epsilon = np.array([[run.epsilon(DELTA) for run in row] for row in trainings])
    runs = [
        [[make(e) if make else run for run, e in zip(*both, strict=True)]
         for both in zip(trainings, epsilon, strict=True)]
        for make in SAME.values()
    ]  # fmt: skip
    return Slider(
        title="One pair, four mechanisms",
        alt="Three curves of one run. Delta falls as epsilon grows, through the dot at the "
        "published pair. The trade-off curve falls from all missed at no false alarm, below the "
        "straight line of guessing. Turned upside down, on logarithmic axes, it is the share of "
        "members that is found, above the diagonal; a dot marks one percent of false alarms.",
        controls=[
            Control("sigma", "Noise σ", [f"{s:.1f}" for s in SIGMAS], SIGMAS.index(1.1)),
            Control("k", "Steps", [f"{k:,}" for k in STEPS], STEPS.index(14_100)),
            Control("mechanism", "Mechanism", list(SAME), 0),
        ],
        panels=PANELS,
        says="Noise {sigma} and {k} steps have ε = {say_epsilon sigma k}. By {mechanism} with this "
        "pair, the best attack finds {say_found mechanism sigma k} % of the members at 1 % false "
        "alarms, its advantage is {advantage mechanism sigma k}, and μ lies between "
        "{low mechanism sigma k} and {high mechanism sigma k}.",
        data=numbers(runs, epsilon),
    )


def numbers(runs, epsilon):
    """All tables."""
    places = epsilon[..., None] * TIMES
    found, mus = told(runs, lambda run: run.tpr(FPRS)), told(runs, lambda run: run.mu())
    common = found[..., FPRS.index(0.01)]
    deltas = [
        [[run.delta(e) for run, e in zip(*both, strict=True)]
         for both in zip(rows, places, strict=True)]
        for rows in runs
    ]  # fmt: skip
    return {
        "at": table(epsilon),
        "say_epsilon": says(epsilon),
        "epsilons": table(places),
        "deltas": table(deltas, 3),
        "fpr": list(FPRS),
        "found": table(found, 3),
        "missed": table(1 - found, 3),
        "common": table(common),
        "say_found": words(100 * common, ceil),
        "advantage": words(told(runs, lambda run: run.advantage()), ceil),
        "low": words(mus[..., 0], floor),
        "high": words(mus[..., 1], ceil),
    }


def told(runs, question):
    """The answers of all runs."""
    return np.array([[[question(run) for run in row] for row in rows] for rows in runs])


def words(values, rounding):
    """Nested lists of numbers as texts, rounded to the safe side."""
    if np.ndim(values):
        return [words(part, rounding) for part in values]
    return digits(values, 4, rounding)
