"""Private classification of breast cancer, beside IBM's diffprivlib (in a venv of its own).

    .venv/bin/python bench/erm.py

Protocol: 40 random 75/25 splits (scikit-learn's, seeds 0 to 39), columns standardised with the mean
and deviation of the training rows, rows scaled to norm at most 1. Standardising looks at the data
without paying, for both libraries alike; the second table uses public ranges instead. Our ridge is
`erm_regularization(n, d, epsilon, delta)`, the minimiser of a proved bound: nothing is tuned.
"""

import json
import re
import subprocess
import sys
import time
from pathlib import Path

HERE = Path(__file__).resolve().parent
VENV = HERE.parent / ".bench" / "diffprivlib"
PINS = ("diffprivlib==0.6.6", "scikit-learn==1.6.1")  # newer scikit-learn breaks its import
SPLITS, REPEATS = 40, 5
BUDGETS = ((0.1, 0.0), (1.0, 0.0), (2.0, 0.0), (5.0, 0.0), (0.1, 1e-5), (1.0, 1e-5))


def splits(standardise):
    """(train rows, labels, test rows, labels) of each split; rows have norm at most 1."""
    import numpy as np
    from sklearn.datasets import load_breast_cancer
    from sklearn.model_selection import train_test_split

    x, target = load_breast_cancer(return_X_y=True)
    for seed in range(SPLITS):
        a, b, label, truth = train_test_split(x, 2 * target - 1, test_size=0.25, random_state=seed)
        a, b = standardise(a, b)
        a, b = (z / np.maximum(1, np.linalg.norm(z, axis=1))[:, None] for z in (a, b))
        yield a, label, b, truth


def by_training_rows(a, b):
    mean, spread = a.mean(0), a.std(0)
    return (a - mean) / spread, (b - mean) / spread


def report(fit):
    """Mean and standard deviation of the accuracy, and milliseconds a fit."""
    import numpy as np

    right, seconds = [], 0.0
    for seed, (a, label, b, truth) in enumerate(SPLIT_LIST):
        for repeat in range(REPEATS):
            start = time.perf_counter()
            predict = fit(a, label, 1000 * seed + repeat)
            seconds += time.perf_counter() - start
            right.append(np.mean(predict(b) == truth))
    return float(np.mean(right)), float(np.std(right)), 1e3 * seconds / len(right)


def theirs():
    """Runs inside the venv: diffprivlib's logistic regression, pure budgets only."""
    import warnings

    from diffprivlib.models import LogisticRegression

    warnings.simplefilter("ignore")
    found = {}
    for epsilon, delta in BUDGETS:
        if delta == 0:
            found[str(epsilon)] = report(
                lambda a, y, seed, epsilon=epsilon: (
                    LogisticRegression(
                        epsilon=epsilon, data_norm=1.0, max_iter=1000, random_state=seed
                    )
                    .fit(a, y)
                    .predict
                )
            )
    print(json.dumps(found))


def ours():
    """Rows (method, budget -> mean, deviation, milliseconds)."""
    import numpy as np

    import dpnotes as dp

    def fitter(method, loss, epsilon, delta):
        n, d = SPLIT_LIST[0][0].shape
        ridge = dp.erm_regularization(n, d, epsilon=epsilon, delta=delta)
        options = {"regularization": ridge}
        if method is dp.noisy_gradient_descent:
            steps = dp.gradient_descent_steps(n, d, epsilon=epsilon, delta=delta)
            options = {"steps": steps, "radius": 1 / ridge}

        def fit(a, y, seed):
            rng = np.random.default_rng(seed)
            fitted = method(a, y, epsilon=epsilon, delta=delta, loss=loss, rng=rng, **options)
            return lambda b: np.sign(b @ fitted.theta)

        return fit

    for loss in (dp.logistic_loss, dp.huber_loss):
        for method in (
            dp.output_perturbation,
            dp.objective_perturbation,
            dp.noisy_gradient_descent,
        ):
            pure = method is not dp.noisy_gradient_descent
            yield (
                f"{method.__name__.replace('_', ' ')}, {loss.name}",
                {
                    budget: report(fitter(method, loss, *budget))
                    for budget in BUDGETS
                    if budget[1] or pure
                },
            )

    def optimum(a, y, seed):
        theta = dp.risk_minimum(a, y, regularization=1e-3)
        return lambda b: np.sign(b @ theta)

    yield "no privacy, logistic", dict.fromkeys(BUDGETS, report(optimum))


def table(rows):
    names = [f"{e:g}" if d == 0 else f"({e:g}, {d:g})" for e, d in BUDGETS]
    print(f"{'accuracy at epsilon or (epsilon, delta)':42}" + "".join(f"{n:>14}" for n in names))
    for name, found in rows:
        cells = [f"{found[b][0]:.3f} ± {found[b][1]:.3f}" if b in found else "–" for b in BUDGETS]
        took = max(row[2] for row in found.values())
        print(f"{name:42}" + "".join(f"{c:>14}" for c in cells) + f"   {took:5.1f} ms", flush=True)


def main():
    if not (VENV / "bin" / "python").exists():
        subprocess.run([sys.executable, "-m", "venv", VENV], check=True)
    have = subprocess.run(
        [VENV / "bin" / "python", "-c", "import diffprivlib.models"], capture_output=True
    )
    if have.returncode:
        install = [VENV / "bin" / "python", "-m", "pip", "install", "--quiet", *PINS]
        subprocess.run(install, check=True)
    run = subprocess.run(
        [VENV / "bin" / "python", __file__, "theirs"], check=True, capture_output=True, text=True
    )
    peer = {(float(k), 0.0): v for k, v in json.loads(run.stdout).items()}
    table([("diffprivlib 0.6.6, logistic", peer)])
    table(ours())
    print("\nThe same with public ranges of the logarithms, nothing taken from the rows:")
    import numpy as np
    from sklearn.datasets import load_breast_cancer

    import dpnotes as dp

    ranges = re.findall(r":\s+([\d.]+)\s+([\d.]+)$", load_breast_cancer().DESCR, re.M)
    low, high = np.array(ranges, float).T
    SPLIT_LIST[:] = splits(lambda a, b: (dp.log_scale(a, low, high), dp.log_scale(b, low, high)))
    table(ours())


SPLIT_LIST = list(splits(by_training_rows))
if __name__ == "__main__":
    theirs() if sys.argv[1:] == ["theirs"] else main()
