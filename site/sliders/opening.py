"""The first figure of the book: one training as a whole, and its steps added up."""

import numpy as np

import dpnotes as dp

from .marks import at, dots, line, rule
from .spec import Axis, Control, Panel, Slider, decades, figure, says, table

SIGMAS = (0.6, 0.8, 1.0, 1.1, 1.3, 1.6, 2.0, 3.0)
RATE, STEPS, DELTA = 256 / 60_000, 14_100, 1e-5
ADDED, WHOLE = at("added", "sigma"), at("whole", "sigma")
PANELS = [
    Panel(
        Axis("steps of training", 1, 20_000, decades(0, 4), log=True),
        Axis("ε at δ = 10⁻⁵", 1e-3, 1e5, decades(-3, 5), log=True),
        [
            rule(x=at("steps", "k"), color="muted", dash="2 3"),
            line("steps", ADDED, color=0, dash="6 3", label="each step’s ε, added up"),
            line("steps", WHOLE, color=1, width=2.4, label="the training as a whole"),
            dots(at("steps", "k"), at("added", "sigma", "k"), color=0),
            dots(at("steps", "k"), at("whole", "sigma", "k"), color=1, size=5.5),
        ],
    )
]


@figure
def first_training():
    """Epsilon against the steps, for each noise."""
    steps = np.unique(np.round(np.geomspace(1, STEPS, 15)).astype(int))
    each = [dp.subsample(dp.gaussian(sigma), RATE) for sigma in SIGMAS]
    whole = np.array([[step.compose(int(k)).epsilon(DELTA) for k in steps] for step in each])
    added = np.array([[k * step.epsilon(DELTA / k) for k in steps] for step in each])
    return Slider(
        title="How private is a training?",
        alt="Epsilon against the number of training steps, on logarithmic axes. Added up step by "
        "step it climbs steeply, as a dashed straight line, to thousands; for the training as a "
        "whole it climbs slowly. More noise moves both lines down.",
        controls=[
            Control("sigma", "Noise σ", [f"{s:.1f}" for s in SIGMAS], SIGMAS.index(1.1)),
            Control("k", "Steps", [f"{k:,}" for k in steps], len(steps) - 1),
        ],
        panels=PANELS,
        says="Noise {sigma}, {k} steps: the training as a whole has ε = {say_whole sigma k}. Added "
        "up, its steps have ε = {say_added sigma k}.",
        data={
            "steps": steps.tolist(),
            "whole": table(whole),
            "added": table(added),
            "say_whole": says(whole),
            "say_added": says(added, 4),
        },
    )
