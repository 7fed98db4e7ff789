"""What bench/run.py asks: (name, query, reference value or None).

The reference values are rows of the tests' data. They were computed beforehand by two independent
methods that agree (a contour integral at 160 bits, a privacy loss distribution with Richardson
extrapolation; closed forms where they exist).
"""

import json
from pathlib import Path

DATA = Path(__file__).resolve().parents[1] / "tests" / "data" / "accounting_reference.json"
ROWS = {row["id"]: row for row in json.loads(DATA.read_text())["rows"] if "id" in row}


def plain(kind, noise, k, delta, truth=None, rate=1):
    query = {"kind": kind, "noise": noise, "rate": rate, "k": k, "delta": delta}
    sampled = f", r {rate:.3g}" if rate < 1 else ""
    name = {"gaussian": "Gaussian σ", "laplace": "Laplace b", "response": "response ε₀"}[kind]
    return f"{name} {noise:g}{sampled}, k {k:g}, δ {delta:g}", query, truth


def dpsgd(noise, rate, k, delta):
    return plain("gaussian", noise, k, delta, rate=rate)


def known(name):
    """A row of the tests' data."""
    row = ROWS[name]
    noise = next(row[key] for key in ("sigma", "scale", "epsilon") if key in row)
    kind = {"sampled gaussian": "gaussian", "randomized response": "response"}
    kind = kind.get(row["what"], row["what"])
    return plain(kind, noise, row["k"], row["delta"], row["value"], row.get("rate", 1))


def least_noise(name):
    """A calibration of the tests' data."""
    row = {"rate": 1, "k": 1, **ROWS[name]}
    query = {key: row[key] for key in ("rate", "k", "epsilon", "delta")}
    return ", ".join(f"{key} {value:g}" for key, value in query.items()), query, row["value"]


ORDINARY = [
    *map(known, ("sgd_mnist", "sgd_.8_1e4", "sgd_abadi", "sgd_bigeps", "sgd_k10", "sgd_smalleps")),
    known("sgd_abadi_d12"),
    dpsgd(0.6, 0.001, 10_000, 1e-5),
    dpsgd(0.7, 1e-4, 100_000, 1e-8),
    dpsgd(1.0, 0.001, 100_000, 1e-6),
    dpsgd(1.3, 0.05, 2000, 1e-5),
    dpsgd(2.0, 0.02, 5000, 1e-7),
    dpsgd(4.0, 0.05, 100, 1e-6),
]
BOOK = [  # the table of the chapter accounting
    known("sgd_abadi"),
    dpsgd(1.1, 256 / 60_000, 14_100, 1e-5),
    dpsgd(1.0, 5000 / 763_430, 4120, 1e-9),
    dpsgd(3.0, 4096 / 50_000, 2000, 1e-5),
]
CLOSED = [
    *map(known, ("gau_k1", "gau_k1e4", "pure_k10", "pure_k1000")),
    plain("laplace", 1.0, 1, 1e-6),
    dpsgd(1.0, 0.01, 1, 1e-6),
]
HARD = [
    *map(known, ("lap_k10", "lap_k1000")),
    plain("laplace", 1.0, 1000, 1e-6, rate=0.01),
    dpsgd(1.0, 0.01, 1000, 1e-30),
    dpsgd(0.3, 0.001, 1000, 1e-6),
    dpsgd(1.0, 1e-5, 100, 1e-8),
]
RARE = [  # language models, federated learning
    dpsgd(1.0, 1e-6, 10, 1e-8),
    dpsgd(1.0, 1 / 60_000, 1000, 1e-20),
    dpsgd(1.0, 1e-5, 10_000, 1e-9),
    dpsgd(0.6, 1e-8, 100_000, 1e-12),
]
CALIBRATIONS = [*map(least_noise, ("cal_1", "cal_1e-3", "scal_3"))]  # (what, query, reference)

CORNERS = [
    dpsgd(noise, rate, k, delta)
    for noise in (0.2, 0.3, 0.6, 1.0, 4.0)
    for rate in (1e-5, 1e-3, 0.1)
    for k in (1, 10, 1000, 10**6)
    for delta in (1e-6, 1e-30)
]
CORNERS += [plain("laplace", b, k, 1e-6) for b in (0.5, 1.0, 10.0) for k in (2, 10, 100, 10_000)]

ATTACKS = [  # name, query
    (f"σ {noise}, r {rate:.5g}, k {k:,}, {fpr:.2g}",
     {"kind": "gaussian", "noise": noise, "rate": rate, "k": k, "fpr": fpr})
    for noise, rate, k, fpr in (
        (1.1, 256 / 60_000, 14_100, 0.01), (4.0, 0.01, 1000, 0.01), (0.8, 0.02, 100, 0.001),
        (2.0, 0.1, 50, 0.1),
    )
]  # fmt: skip
