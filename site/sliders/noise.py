"""Interactive figures of one answer: the area between two laws, a privacy profile and its noise."""

from collections import namedtuple

import numpy as np
from scipy.stats import laplace, norm

import dpnotes as dp
from dpnotes.chapters import gaussian, pure_dp

from .marks import area, at, dots, line
from .spec import Axis, Control, Panel, Slider, decades, each, figure, say, says, table, ticks

Pair = namedtuple("Pair", "noise label scales start law delta verdict")


DENSITIES = 0, 1.05
P, COVERED = at("p", "scale"), at("covered", "scale", "epsilon")
PAIR_PANELS = [
    Panel(
        Axis("published number y", -6, 7, ticks(-6, -4, -2, 0, 2, 4, 6)),
        Axis("density", *DENSITIES, ticks(0, 0.2, 0.4, 0.6, 0.8, 1)),
        [
            area("y", COVERED, P, color=1, opacity=0.6, label="area δ: p above e^ε q"),
            line("y", at("q", "scale"), color=2, label="q"),
            line("y", COVERED, color=2, dash="5 3", label="e^ε q"),
            line("y", P, color=0, label="p"),
        ],
    )
]


def pair(kind):
    """Two densities at distance 1, p around 1 and q around 0, and the part of p above e^eps q."""
    epsilon = np.arange(0, 3.01, 0.25)
    y = np.unique(table([*np.linspace(-6, 7, 40), *np.linspace(-2, 3, 61)]))
    p, q = (np.array([kind.law.pdf(y, centre, s) for s in kind.scales]) for centre in (1, 0))
    covered = np.exp(epsilon)[None, :, None] * q[:, None, :]
    delta = each(kind.delta, kind.scales, epsilon)
    return Slider(
        title=f"Two {kind.noise} laws, epsilon and delta as areas",
        alt=f"Two densities of {kind.noise} noise of one width, p around 1 and q around 0, and "
        "q multiplied by e to the epsilon. What of p stands above the multiplied curve is shaded.",
        controls=[
            Control("scale", kind.label, says(kind.scales, 2), kind.start),
            Control("epsilon", "ε", [f"{e:.2f}" for e in epsilon], 4),
        ],
        panels=PAIR_PANELS,
        says="{sentence scale epsilon}",
        data={
            "y": y.tolist(),
            "p": table(p, span=DENSITIES),
            "q": table(q, span=DENSITIES),
            "covered": table(covered, span=DENSITIES),
            "delta": table(delta),
            "sentence": [
                [kind.verdict(s, e, d) for e, d in zip(epsilon, row, strict=True)]
                for s, row in zip(kind.scales, delta, strict=True)
            ],
        },
    )  # fmt: skip


@figure
def laplace_pair():
    """Pure DP: the area is gone at epsilon = 1/b."""

    def delta(b, epsilon):
        return dp.laplace(b).delta(epsilon)

    def verdict(b, epsilon, delta):
        head = f"Scale b = {say(b, 2)}, ε = {epsilon:.2f}: "
        if epsilon < 1 / b:
            short = f"the noise is ε-DP only from ε = 1/b = {say(1 / b)} on."
            return head + f"the shaded area is δ = {say(delta)}; {short}"
        return head + f"there is no area, δ = 0, as always from ε = 1/b = {say(1 / b)} on."

    scales = (0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
    return pair(Pair("Laplace", "Scale b", scales, 1, laplace, delta, verdict))


@figure
def gaussian_pair():
    """Approximate DP: the area shrinks and never is zero."""

    def verdict(sigma, epsilon, delta):
        tail = gaussian.loss_tail(sigma, epsilon)
        return (
            f"Noise σ = {say(sigma, 2)}, ε = {epsilon:.2f}: the shaded area is "
            f"δ = {say(delta)}, not 0. The loss exceeds ε with the larger probability {say(tail)}."
        )

    scales = (0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
    return pair(Pair("Gaussian", "Noise σ", scales, 2, norm, dp.gaussian_delta, verdict))


DIAL_X = Axis("γ", 0, 0.5, ticks(0, 0.1, 0.2, 0.3, 0.4, 0.5))
DIAL_PANELS = [
    Panel(
        DIAL_X,
        Axis("ε", 0, 6, ticks(0, 1, 2, 3, 4, 5, 6)),
        [
            line("fine", "fine_epsilon", color=0, label="ε"),
            dots(at("gammas", "gamma"), at("epsilons", "gamma"), color=0, size=5.5),
        ],
        share=0.5,
    ),
    Panel(
        DIAL_X,
        Axis("error, percentage points", 0.01, 100, decades(-2, 2), log=True),
        [
            line("fine", "fine_error", color=1, label="error of the survey"),
            dots(at("gammas", "gamma"), at("errors", "gamma"), color=1, size=5.5),
        ],
        share=0.5,
    ),
]


@figure
def response_dial():
    """Randomized response from a fair coin to the truth: epsilon and the error of the survey."""
    gamma = np.array([0.01, 0.02, 0.03, 0.05, 0.08, 0.1, 0.15, 0.2, 0.25, 0.3, 0.35, 0.4, 0.45,
                      0.47, 0.48, 0.49, 0.495])  # fmt: skip
    fine = np.array(table(np.linspace(0.005, 0.498, 80)))

    def measures(gamma):
        epsilon = np.log((0.5 + gamma) / (0.5 - gamma))
        return epsilon, 100 * pure_dp.randomized_response_error(epsilon, 6366)

    (epsilon, error), (fine_epsilon, fine_error) = measures(gamma), measures(fine)
    return Slider(
        title="Randomized response from a fair coin to the truth",
        alt="Two curves against gamma, from 0, a fair coin, to one half, the truth. Epsilon rises "
        "from 0, slowly and at the end without bound. The error of the survey falls from far above "
        "ten percentage points to almost nothing.",
        controls=[Control("gamma", "γ", [f"{g:g}" for g in gamma], 8)],
        panels=DIAL_PANELS,
        says="The truth with probability {truth gamma}: ε = {say_epsilon gamma}, and the share of "
        "6,366 women is off by {say_error gamma} percentage points (standard deviation).",
        data={
            "fine": table(fine),
            "fine_epsilon": table(fine_epsilon),
            "fine_error": table(fine_error),
            "gammas": gamma.tolist(),
            "epsilons": table(epsilon),
            "errors": table(error),
            "truth": [f"{0.5 + g:g}" for g in gamma],
            "say_epsilon": says(epsilon),
            "say_error": says(error, 2),
        },
    )


PROFILE_PANELS = [
    Panel(
        Axis("ε", 0, 4, ticks(0, 1, 2, 3, 4)),
        Axis("δ", 1e-10, 1, decades(-10, 0, 2), log=True),
        [
            line("epsilon", at("tail", "sigma"), color=1, dash="6 3", label="tail Pr[L > ε]"),
            line("epsilon", at("profile", "sigma"), color="ink", width=2.4, label="exact δ(ε)"),
            dots(1, 1e-5, color=3, size=5.5, label="promised: ε = 1, δ = 10⁻⁵"),
        ],
    )
]


@figure
def gaussian_profile():
    """The whole curve moves with sigma; a promise is a point that it must pass below."""
    sigma = np.array([0.5, 0.6, 0.7, 0.8, 0.9, 1, 1.2, 1.4, 1.6, 1.8, 2, 2.2, 2.4, 2.6, 2.8, 3, 3.2,
                      3.4, 3.6, 3.7, 3.72, 3.731, 3.74, 3.8, 3.9, 4, 4.2, 4.37, 4.38, 4.4, 4.6,
                      4.845, 5, 5.5, 6, 7, 8])  # fmt: skip
    epsilon = np.linspace(0, 4, 81)
    column = sigma[:, None]
    at_one, tail = dp.gaussian_delta(sigma, 1.0), gaussian.loss_tail(sigma, 1.0)
    needed = np.array([dp.gaussian(sigma=float(s)).epsilon(1e-5) for s in sigma])
    verdict = [
        "The promise is kept, and the tail shows it." if t <= 1e-5
        else "The promise is kept, but the tail does not show it." if d <= 1e-5
        else "The promise is broken."
        for d, t in zip(at_one, tail, strict=True)
    ]  # fmt: skip
    return Slider(
        title="Privacy profile of Gaussian noise",
        alt="Delta, on a logarithmic axis, against epsilon from 0 to 4: the exact profile of the "
        "Gaussian mechanism, a falling curve, and above it the tail of the loss. A dot marks the "
        "promise epsilon 1, delta ten to the minus 5.",
        controls=[Control("sigma", "Noise σ (sensitivity 1)", [f"{s:g}" for s in sigma], 15)],
        panels=PROFILE_PANELS,
        says="σ = {sigma}: δ = {delta sigma} at ε = 1 (tail: {delta_tail sigma}), and "
        "ε = {needed sigma} at δ = 10⁻⁵. {verdict sigma}",
        data={
            "epsilon": table(epsilon),
            "profile": table(np.maximum(dp.gaussian_delta(column, epsilon), 1e-14), 3),
            "tail": table(np.maximum(gaussian.loss_tail(column, epsilon), 1e-14), 3),
            "delta": says(at_one),
            "delta_tail": says(tail),
            "needed": says(needed, 4),
            "verdict": verdict,
        },
    )
