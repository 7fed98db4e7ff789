"""The checks of a few random runs, on thousands of them: `make attack PROPERTIES=10000 SEED=0`.

For each seed from SEED on, `properties` asks one run of any kind for answers down to delta = 1e-290
and one for sharp ones, and `proofs` proves one: an epsilon a millionth smaller must be refused, and
lines at random must prove nothing false. Each failure is printed with its seed, which repeats it;
what was stopped goes on from the seed that it printed last.
"""

import collections
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests" / "package"), str(ROOT / "tests"), str(ROOT / "site")]

import surroundings  # noqa: E402

surroundings.enter()  # before NumPy is loaded

import numpy as np  # noqa: E402
import test_far_tails  # noqa: E402
import test_proofs  # noqa: E402
import test_safety  # noqa: E402

EVERY = 10  # seconds between two lines of progress


def properties(seed):
    test_far_tails.rises(np.random.default_rng([57, seed]))
    test_safety.one_run(np.random.default_rng([58, seed]))
    return {"runs": 2}


def proofs(seed):
    return test_proofs.one_run(np.random.default_rng([59, seed]))


def main(what, first, count):
    """Whether all went well."""
    begun, told, seen = time.monotonic(), 0.0, collections.Counter(failures=0)
    for seed in range(first, first + count):
        try:
            seen.update({"properties": properties, "proofs": proofs}[what](seed))
        except Exception as error:  # the rest is wanted, too
            seen["failures"] += 1
            print(f"seed {seed} fails: {type(error).__name__}: {error}", flush=True)
        spent = time.monotonic() - begun
        if spent > told + EVERY or seed == first + count - 1:
            told, done = spent, seed + 1 - first
            words = ", ".join(f"{number} {word}" for word, number in seen.items())
            print(f"to seed {seed}: {words}, {done / spent:.2f} seeds a second", flush=True)
    return not seen["failures"]


if __name__ == "__main__":
    sys.exit(not main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3])))
