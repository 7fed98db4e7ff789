"""How many random runs are proved, and how long that takes: ``bench/proofs.py [first] [count]``.

Runs of k sampled Gaussian steps, sigma .5 to 10, rate 1e-4 to .5, k 1 to 1e5, delta 1e-3 to 1e-10,
all even on a logarithmic scale; the epsilon is the least one times 1 + 1e-9. A line for each run,
then the share that was proved, and processor time in seconds: half, 95 in a hundred, the longest.
"""

import sys
from time import process_time

import numpy as np

import dpnotes as dp


def some_run(seed):
    rng = np.random.default_rng([9, seed])
    sigma, rate = float(np.exp(rng.uniform(np.log(0.5), np.log(10)))), 10 ** rng.uniform(-4, -0.301)
    run = dp.subsample(dp.gaussian(float(f"{sigma:.4g}")), float(f"{rate:.4g}"))
    return run.compose(int(10 ** rng.uniform(0, 5))), float(f"{10 ** -rng.uniform(3, 10):.4g}")


def main(first=0, count=200):
    spent, proved, asked = [], 0, 0
    for seed in range(first, first + count):
        run, delta = some_run(seed)
        epsilon = run.epsilon(delta) * (1 + 1e-9)
        if epsilon == 0:  # delta is above 1 - (1 - rate)^k: nothing to prove
            continue
        asked, start, said = asked + 1, process_time(), "proved"
        try:
            proof = dp.prove(run, epsilon, delta)
            proved, middle = proved + 1, process_time()
            dp.check(proof)
            spent.append((2 * middle - start - process_time(), process_time() - middle))
            said += f", plan {spent[-1][0]:.3f} s, check {spent[-1][1]:.3f} s"
        except ValueError as error:
            said = f"after {process_time() - start:.1f} s: {error}"
        print(f"{seed} {run} delta {delta:.3g} epsilon {epsilon:.4g}: {said}", flush=True)
    print(f"proved {proved} of {asked}, {count - asked} have epsilon 0")
    for name, times in zip(("plan", "check"), zip(*spent, strict=True), strict=True):
        half, most, longest = np.quantile(times, [0.5, 0.95, 1])
        print(f"{name}: half within {half:.3f} s, 95 % within {most:.3f} s, all in {longest:.1f} s")


if __name__ == "__main__":
    main(*map(int, sys.argv[1:]))
