"""Private linear classifiers beside IBM's diffprivlib (in a venv of its own), on three datasets.

    .venv/bin/python bench/erm.py

It prints tables, and writes what the page `erm` shows of them into the file of that page.

Protocol: 40 random 75/25 splits (scikit-learn's, seeds 0 to 39), 5 private fits a split, 25 where
epsilon < 1 (with 5 chance moved means there by up to .03); accuracy on the quarter that no fit has
seen; neighbours differ in one replaced row. Both libraries get the same rows, of norm at most 1.
Our ridge and steps are those of `erm.public_options`, minimisers of proved bounds.
diffprivlib runs twice: as it comes (C = 1, an intercept outside of the ridge) and matched (our
ridge, no intercept). So, from row to row of a table: what the ridge and the intercept do, what the
noise does (its scale differs by less than 1 %: ours pays for the solver, theirs twice for kappa),
what the Huber hinge does in place of the logistic loss.

voters   anes96: the scales are the codes of the questionnaire: private from end to end.
readers  fair: the same, on 6,366 rows; little can be learned from them.
tumours  breast cancer, standardised with mean and deviation of the training rows. NOBODY PAID FOR
         THOSE, so these numbers are not private as they stand; the table compares fits only.
The last table pays: half of epsilon buys 30 private medians of logarithms, over eight decades. Its
window around a median was chosen in sight of these data; the table shows what other windows do.
"""

import csv
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve().parent
TABLE = HERE.parent / "dpnotes" / "chapters" / "erm" / "bench.csv"
PINS = ("diffprivlib==0.6.6", "scikit-learn==1.6.1")  # newer scikit-learn breaks its import
SPLITS = 40
WINDOWS = (2.0, 1.0, 0.5, 0.25)  # decades on either side of a bought median
SHOWN = {  # name of a row here -> on the page
    "diffprivlib, as it comes": "diffprivlib",
    "diffprivlib, our ridge, no intercept": "diffprivlib matched",
    "objective perturbation, logistic": "ours, logistic",
    "objective perturbation, Huber hinge": "ours, Huber hinge",
    "no privacy, logistic": "no privacy",
    **{f"window {w:g}, Huber hinge": f"window {w:g}" for w in WINDOWS},
}
BUDGETS = ((0.1, 0.0), (0.3, 0.0), (1.0, 0.0), (2.0, 0.0), (5.0, 0.0), (0.1, 1e-5), (1.0, 1e-5))


def split(x, y, scale=lambda train: lambda rows: rows):
    """(training rows, labels, test rows, labels) of each split; `scale` may see training rows."""
    from sklearn.model_selection import train_test_split

    for seed in range(SPLITS):
        a, b, label, truth = train_test_split(x, y, test_size=0.25, random_state=seed)
        scaled = scale(a)
        yield scaled(a), label, scaled(b), truth


def short(rows):
    return rows / np.maximum(1, np.linalg.norm(rows, axis=-1, keepdims=True))


def standardised(train):
    mean, spread = train.mean(0), train.std(0)
    return lambda rows: short((rows - mean) / spread)


def datasets():
    """Name -> list of splits."""
    from sklearn.datasets import load_breast_cancer

    import dpnotes as dp
    from dpnotes.chapters.erm import surveys

    x, target = load_breast_cancer(return_X_y=True)
    return {
        "voters": list(split(*surveys.voters())),
        "readers": list(split(*surveys.readers())),
        "tumours": list(split(x, 2.0 * target - 1, standardised)),
    }, dp


def report(fit, splits, epsilon=1.0):
    """Mean accuracy, standard deviation of a fit, milliseconds a fit, standard error of the mean.

    The standard error is that of the means of the splits, as fits on one split go together.
    """
    repeats, right, seconds = 5 if epsilon >= 1 else 25, [], 0.0
    for seed, (a, label, b, truth) in enumerate(splits):
        for repeat in range(repeats):
            start = time.perf_counter()
            predict = fit(a, label, 1000 * seed + repeat)
            seconds += time.perf_counter() - start
            right.append(np.mean(predict(b) == truth))
    error = np.reshape(right, (-1, repeats)).mean(1).std(ddof=1) / len(splits) ** 0.5
    return float(np.mean(right)), float(np.std(right)), 1e3 * seconds / len(right), float(error)


def theirs(path):
    """Runs inside the venv: diffprivlib's logistic regression, pure budgets only."""
    import warnings

    from diffprivlib.models import LogisticRegression

    warnings.simplefilter("ignore")
    stored = np.load(path)
    splits = [[stored[f"{seed}-{part}"] for part in range(4)] for seed in range(SPLITS)]
    _n, d = splits[0][0].shape
    results = {"as it comes": {}, "our ridge, no intercept": {}}
    for epsilon in (e for e, delta in BUDGETS if delta == 0):
        matched = {"C": epsilon / (2 * (d * (d + 1)) ** 0.5), "fit_intercept": False}
        for name, more in zip(results, ({}, matched), strict=True):
            options = {"epsilon": epsilon, "data_norm": 1.0, "max_iter": 1000, **more}
            results[name][epsilon] = report(
                lambda a, y, seed, options=options: (
                    LogisticRegression(**options, random_state=seed).fit(a, y).predict
                ),
                splits,
                epsilon,
            )
    print(json.dumps(results))


def peers(python, splits):
    """Rows (name, budget -> result) of diffprivlib on the very same rows."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "splits.npz"
        parts = {f"{s}-{k}": part for s, split in enumerate(splits) for k, part in enumerate(split)}
        np.savez(path, **parts)
        command = [python, __file__, path]
        run = subprocess.run(command, check=True, capture_output=True, text=True)
    for name, found in json.loads(run.stdout).items():
        yield f"diffprivlib, {name}", {(float(e), 0.0): v for e, v in found.items()}


def ours(dp, splits):
    """Rows (method, budget -> mean, deviation, milliseconds)."""
    from dpnotes.chapters import erm

    n, d = splits[0][0].shape

    def fitter(method, loss, epsilon, delta):
        options = erm.public_options(method, n, d, epsilon=epsilon, delta=delta)

        def fit(a, y, seed):
            fitted = method(a, y, loss=loss, rng=np.random.default_rng(seed), **options)
            return lambda b: np.sign(b @ fitted.theta)

        return fit

    for method in (erm.objective_perturbation, erm.output_perturbation, erm.noisy_gradient_descent):
        for loss in (erm.logistic_loss, erm.huber_loss):
            budgets = [b for b in BUDGETS if b[1] or method is not erm.noisy_gradient_descent]
            results = {b: report(fitter(method, loss, *b), splits, b[0]) for b in budgets}
            yield f"{method.__name__.replace('_', ' ')}, {loss.name}", results

    def optimum(a, y, seed):
        theta = erm.risk_minimum(a, y, regularization=1e-3)
        return lambda b: np.sign(b @ theta)

    yield "no privacy, logistic", dict.fromkeys(BUDGETS, report(optimum, splits))


def bought(dp):
    """Rows of the tumours with paid ranges: half of epsilon for a median of each logarithm."""
    from sklearn.datasets import load_breast_cancer

    from dpnotes.chapters import erm, selection

    x, target = load_breast_cancer(return_X_y=True)
    logs, y = np.log10(np.maximum(x, 1e-4)), 2.0 * target - 1

    def fit(a, label, seed, epsilon, loss, window):
        rng, share = np.random.default_rng(seed), epsilon / 2 / 30
        middle = [
            selection.private_median(column, epsilon=share, lower=-4.0, upper=4.0, rng=rng)
            for column in a.T
        ]

        def scaled(rows):
            near = np.clip((rows - middle) / window, -1, 1)
            return np.column_stack([near, np.ones(len(rows))]) / 31**0.5

        ridge = erm.best_regularization(len(a), 31, epsilon=epsilon / 2)
        fitted = erm.objective_perturbation(
            scaled(a), label, epsilon=epsilon / 2, regularization=ridge, loss=loss, rng=rng
        )
        return lambda rows: np.sign(scaled(rows) @ fitted.theta)

    splits = list(split(logs, y))
    for loss, window in [(erm.logistic_loss, 0.5), *((erm.huber_loss, w) for w in WINDOWS)]:
        results = {
            (e, 0.0): report(lambda *a, e=e, loss=loss, w=window: fit(*a, e, loss, w), splits, e)
            for e in (1.0, 5.0)
        }
        yield f"window {window:g}, {loss.name}", results


def table(name, rows):
    """Prints the rows as they come, and returns name -> epsilon -> (mean, standard error)."""
    kept = {}
    names = [f"{e:g}" if d == 0 else f"({e:g}, {d:g})" for e, d in BUDGETS]
    print(f"\n{name:42}" + "".join(f"{n:>14}" for n in names))
    for row, fits in rows:
        cells = [f"{fits[b][0]:.3f} ± {fits[b][3]:.3f}" if b in fits else "–" for b in BUDGETS]
        took = max(result[2] for result in fits.values())
        print(f"{row:42}" + "".join(f"{c:>14}" for c in cells) + f"   {took:5.1f} ms", flush=True)
        kept[row] = {f"{e:g}": np.round(fits[e, d][::3], 4).tolist() for e, d in fits if d == 0}
    return kept


def save(results):
    """Write the rows that the page shows."""
    with TABLE.open("w", encoding="utf8", newline="") as file:
        table = csv.writer(file, lineterminator="\n")
        table.writerow(("data", "fit", "epsilon", "mean", "standard_error"))
        for data, fits in results.items():
            for fit in (fit for fit in SHOWN if fit in fits):
                for epsilon, (mean, error) in fits[fit].items():
                    table.writerow((data, SHOWN[fit], epsilon, f"{mean:.4f}", f"{error:.4f}"))


def main():
    from run import environment

    python = environment("diffprivlib", "diffprivlib.models", [PINS])
    found, dp = datasets()
    print("Accuracy on held-out rows, mean ± standard error; columns: epsilon or (epsilon, delta).")
    results = {}
    for name, splits in found.items():
        results[name] = {**table(name, peers(python, splits)), **table(name, ours(dp, splits))}
    results["bought"] = table("tumours (paid for)", bought(dp))
    save(results)


if __name__ == "__main__":
    theirs(sys.argv[1]) if sys.argv[1:] else main()
