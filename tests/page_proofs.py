"""Epsilons that pages print, each with its proof in the folder `proofs`.

``python -m tests.page_proofs`` writes the folder anew (run it after a page prints another run)."""

import sys
from pathlib import Path

import numpy as np

import dpnotes as dp
from dpnotes.chapters.practice import RUNS

FOLDER = Path(__file__).parents[1] / "proofs"
MNIST = dp.subsample(dp.gaussian(1.1), 256 / 60_000)
PAGE = dp.subsample(dp.gaussian(4.0), 0.01)
PRINTED = {  # name, which begins with the page: the run, delta
    "intro": (MNIST.compose(14_100), 1e-5),
    "accounting": (PAGE.compose(10_000), 1e-5),
    "accounting-longer": (PAGE.compose(1_000_000), 1e-5),
    "approximate-dp": (dp.randomized_response(0.5).compose(8), 1e-5),
    "auditing": (dp.gaussian(1.0), 1e-5),
    "auditing-guesses": (dp.gaussian(1.0), 1e-6),
    "composition-few": (dp.randomized_response(0.1).compose(100), 1e-6),
    "composition-many": (dp.randomized_response(0.05).compose(400), 1e-6),
    "composition-two-kinds": (
        dp.randomized_response(0.5).compose(10) + dp.randomized_response(0.05).compose(1000),
        1e-6,
    ),
    "in-practice-poisson": (dp.subsample(dp.gaussian(1.0), 0.01).compose(1000), 1e-5),
    "practice-fixed": (dp.subsample(dp.gaussian(0.5), 0.01).compose(1000), 1e-5),
    "practice-few": (dp.subsample(dp.gaussian(1.0), 1 / 29).compose(87), 1e-5),
    "more-sampling-unlimited": (MNIST.compose(2000), 1e-5),
    "in-practice-batches-known": (dp.gaussian(1.0).compose(10), 1e-5),
    "more-sampling-zcdp": (dp.gaussian(50.0).compose(1000), 1e-6),
    "stopping-schedule": (
        sum(
            dp.subsample(dp.gaussian(float(s)), float(r))
            for s, r in zip(np.linspace(2.0, 0.8, 60), np.linspace(0.005, 0.02, 60), strict=True)
        ),
        1e-5,
    ),
    **{f"practice-{key}": (row.run(), row.delta) for key, row in RUNS.items()},
}


def main():
    FOLDER.mkdir(exist_ok=True)
    for name, (run, delta) in PRINTED.items():
        epsilon = float(f"{run.epsilon(delta) * (1 + 2e-9):.12g}")
        proof = dp.prove(run, epsilon, delta)
        (FOLDER / f"{name}.json").write_text(proof.text(), encoding="utf8")
        print(name, epsilon, dp.check(proof), file=sys.stderr)


if __name__ == "__main__":
    main()
