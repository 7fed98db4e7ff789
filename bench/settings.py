"""What bench/run.py asks: (name, query, reference value or None).

The reference values were computed beforehand by two independent methods that agree (a contour
integral at 160 bits, a privacy loss distribution with Richardson extrapolation; closed forms where
they exist).
"""


def dpsgd(noise, rate, k, delta, truth=None):
    query = {"kind": "gaussian", "noise": noise, "rate": rate, "k": k, "delta": delta}
    return f"σ {noise:g}, q {rate:.3g}, k {k:g}, δ {delta:g}", query, truth


def plain(kind, noise, k, delta, truth=None, rate=1):
    query = {"kind": kind, "noise": noise, "rate": rate, "k": k, "delta": delta}
    sampled = f", q {rate:g}" if rate < 1 else ""
    name = {"gaussian": "Gaussian σ", "laplace": "Laplace b", "response": "response ε₀"}[kind]
    return f"{name} {noise:g}{sampled}, k {k:g}, δ {delta:g}", query, truth


ORDINARY = [
    dpsgd(1.1, 256 / 60_000, 3525, 1e-5, 1.1353903847640532),
    dpsgd(0.8, 0.01, 10_000, 1e-5, 10.053634770654053),
    dpsgd(4.0, 0.01, 10_000, 1e-5, 0.9468668007643805),
    dpsgd(0.5, 0.02, 10_000, 1e-5, 97.2852940362757),
    dpsgd(1.0, 0.01, 10, 1e-6, 0.59234944988153),
    dpsgd(20.0, 0.001, 10_000, 1e-6, 0.01593174992408728),
    dpsgd(4.0, 0.01, 10_000, 1e-12, 1.71114373998694),
    dpsgd(0.6, 0.001, 10_000, 1e-5),
    dpsgd(0.7, 1e-4, 100_000, 1e-8),
    dpsgd(1.0, 0.001, 100_000, 1e-6),
    dpsgd(1.3, 0.05, 2000, 1e-5),
    dpsgd(2.0, 0.02, 5000, 1e-7),
    dpsgd(4.0, 0.05, 100, 1e-6),
]
BOOK = [  # the table of the chapter accounting
    dpsgd(4.0, 0.01, 10_000, 1e-5, 0.9468668007643805),
    dpsgd(1.1, 256 / 60_000, 14_100, 1e-5),
    dpsgd(1.0, 5000 / 763_430, 4120, 1e-9),
    dpsgd(3.0, 4096 / 50_000, 2000, 1e-5),
]
CLOSED = [
    plain("gaussian", 1.0, 1, 1e-5, 4.3771780956812245),
    plain("gaussian", 10.0, 10_000, 1e-6, 96.7172719638677),
    plain("response", 0.1, 10, 1e-6, 0.9993709057217588),
    plain("response", 0.1, 1000, 1e-6, 19.344671447993044),
    plain("laplace", 1.0, 1, 1e-6),
    dpsgd(1.0, 0.01, 1, 1e-6),
]
HARD = [
    plain("laplace", 10.0, 10, 1e-6, 0.9989780894472199),
    plain("laplace", 10.0, 1000, 1e-6, 18.950287367539588),
    plain("laplace", 1.0, 1000, 1e-6, rate=0.01),
    dpsgd(1.0, 0.01, 1000, 1e-30),
    dpsgd(0.3, 0.001, 1000, 1e-6),
    dpsgd(1.0, 1e-5, 100, 1e-8),
]
CALIBRATIONS = [  # (what, query, reference)
    ("Gaussian, (1, 1e-5)", {"rate": 1, "k": 1, "epsilon": 1.0, "delta": 1e-5}, 3.730631634815942),
    (
        "Gaussian, (0.001, 1e-12)",
        {"rate": 1, "k": 1, "epsilon": 1e-3, "delta": 1e-12},
        5412.302193843927,
    ),
    (
        "q 0.01, k 10000, (3, 1e-5)",
        {"rate": 0.01, "k": 10_000, "epsilon": 3.0, "delta": 1e-5},
        1.5649655354613117,
    ),
]

CORNERS = [
    dpsgd(noise, rate, k, delta)
    for noise in (0.2, 0.3, 0.6, 1.0, 4.0)
    for rate in (1e-5, 1e-3, 0.1)
    for k in (1, 10, 1000, 10**6)
    for delta in (1e-6, 1e-30)
]
CORNERS += [plain("laplace", b, k, 1e-6) for b in (0.5, 1.0, 10.0) for k in (2, 10, 100, 10_000)]
