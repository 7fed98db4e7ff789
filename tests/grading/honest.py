"""Forty ways in which honest students write right answers to the `laplace` assignment.

Each replaces answers, or adds cells; all get full marks and no flag. Styles of different answers
share a notebook.
"""

# ruff: noqa: E501

import json

from nbformat.v4 import new_code_cell, new_markdown_cell

from assignments.grader.check import solved

STYLES = {}


def style(name, first="", **answers):
    """A perfect notebook with a cell before all others, and some answers in another style."""
    STYLES[name] = (first, {f"{q[1:]}": source for q, source in answers.items()})


EPS = "def smallest_epsilon(p, q):\n"
LAP = "def laplace_noise(scale, size, rng):\n"
RR = "def respond(bits, epsilon, rng):\n"
EST = "def estimate(reports, epsilon):\n"
HIST = "def private_histogram(counts, epsilon, neighbours, rng):\n"
WORST = "def worst_errors(k, scale, beta):\n"
MEAN = "def mean_worst_error(counts, epsilons, repeats, rng):\n"
TAIL = "    one = -np.expm1(np.log1p(-beta) / k)\n"

# fmt: off
style("plain loops", _1a=EPS + '    import math\n    best = 0.0\n    for a, b in zip(p, q):\n        if a == b == 0: continue\n        if a == 0 or b == 0: return math.inf\n        best = max(best, abs(math.log(a / b)))\n    return best')
style("annotations of names that are not there", _1a="def smallest_epsilon(p: List[float], q: NDArray) -> Optional[float]:\n    best: Float = 0.0\n    for a, b in zip(p, q):\n        if a or b:\n            best = max(best, abs(np.log(a / b)) if a and b else np.inf)\n    return best")
style("array of objects", _2b=LAP + '    u = rng.random(size) - 0.5\n    return (-scale * np.sign(u) * np.log1p(-2 * np.abs(u))).astype(object)')
style("numpy scalar", _1a=EPS + "    p, q = np.array(p, float), np.array(q, float)\n    ok = (p > 0) | (q > 0)\n    with np.errstate(all='ignore'):\n        return np.abs(np.log(p[ok] / q[ok])).max()")
style("zero-dimensional array", _1a=EPS + "    p, q = np.array(p, float), np.array(q, float)\n    ok = (p > 0) | (q > 0)\n    with np.errstate(all='ignore'):\n        return np.asarray(np.abs(np.log(p[ok] / q[ok])).max())")
style("lambda", _1c='estimate = lambda reports, epsilon: (np.mean(reports) * (1 + np.exp(epsilon)) - 1) / (np.exp(epsilon) - 1)')
style("fractions", _1c='from fractions import Fraction\n' + EST + '    h = Fraction(1 / (1 + np.exp(-float(epsilon))))\n    return (Fraction(int(sum(reports)), len(reports)) - (1 - h)) / (2 * h - 1)')
style("list of ints", _1b=RR + '    t = np.exp(epsilon) / (1 + np.exp(epsilon))\n    return [int(b) if rng.random() < t else 1 - int(b) for b in bits]')
style("booleans", _1b=RR + '    lie = rng.random(len(bits)) > 1 / (1 + np.exp(-epsilon))\n    return np.asarray(bits, bool) ^ lie')
style("binomial flips", _1b=RR + '    return (np.asarray(bits) + rng.binomial(1, 1 / (1 + np.exp(epsilon)), len(bits))) % 2')
style("pandas series", first='import pandas as pd',
      _2b=LAP + '    u = rng.random(size) - 0.5\n    return pd.Series(-scale * np.sign(u) * np.log1p(-2 * np.abs(u)))')
style("pandas histogram", first='import pandas as pd',
      _2c=HIST + "    s = {'add/remove': 1, 'replace': 2}\n    if neighbours not in s: raise ValueError(neighbours)\n    c = pd.Series(counts)\n    return c + laplace_noise(s[neighbours] / epsilon, c.shape, rng)")
style("difference of exponentials", _2b=LAP + '    return scale * (np.log1p(-rng.random(size)) - np.log1p(-rng.random(size)))')
style("sign and size", _2b=LAP + '    sign = np.where(rng.random(size) < 0.5, -1, 1)\n    return -sign * scale * np.log1p(-rng.random(size))')
style("tuple", _2b=LAP + '    u = rng.random(size) - 0.5\n    return tuple(-scale * np.sign(u) * np.log1p(-2 * np.abs(u)))')
style("spawned generators", _2b=LAP + '    u = rng.spawn(1)[0].random(size) - 0.5\n    return -scale * np.sign(u) * np.log1p(-2 * np.abs(u))',
      _2c=HIST + "    s = {'add/remove': 1, 'replace': 2}\n    if neighbours not in s: raise ValueError\n    return counts + laplace_noise(s[neighbours] / epsilon, np.shape(counts), rng)")
style("class with call", first='class Noise:\n    def __init__(self, rng):\n        self.rng = rng\n    def __call__(self, scale, size):\n        u = self.rng.random(size) - 0.5\n        return -scale * np.sign(u) * np.log1p(-2 * np.abs(u))',
      _2b=LAP + '    return Noise(rng)(scale, size)')
style("own exception", first='class UnknownNeighbours(ValueError):\n    "Neither."',
      _2c=HIST + "    if neighbours == 'add/remove': b = 1 / epsilon\n    elif neighbours == 'replace': b = 2 / epsilon\n    else: raise UnknownNeighbours(neighbours)\n    return counts + laplace_noise(b, len(counts), rng)")
style("match statement", _2c=HIST + "    match neighbours:\n        case 'add/remove': s = 1\n        case 'replace': s = 2\n        case _: raise ValueError(f'no such neighbours: {neighbours}')\n    return np.add(counts, laplace_noise(s / epsilon, len(counts), rng))")
style("key error turned", _2c=HIST + "    try:\n        s = dict(replace=2)[neighbours] if neighbours != 'add/remove' else 1\n    except KeyError as e:\n        raise ValueError('unknown') from e\n    return [c + z for c, z in zip(counts, laplace_noise(s / epsilon, len(counts), rng))]")
style("written module", first='%%writefile helper.py\nimport numpy as np\ndef union(k, scale, beta):\n    return scale * np.log(k / beta)',
      _3a='from helper import union\n' + WORST + TAIL + '    return union(k, scale, beta), -scale * np.log(one)')
style("array of two", _3a=WORST + TAIL + '    return np.array([scale * np.log(k / beta), -scale * np.log(one)])')
style("list of two", _3a=WORST + TAIL + '    return [scale * (np.log(k) - np.log(beta)), -scale * np.log(one)]')
style("named tuple", first="from collections import namedtuple\nErrors = namedtuple('Errors', 'union exact')",
      _3a=WORST + TAIL + '    return Errors(scale * np.log(k / beta), -scale * np.log(one))')
style("scipy quantile", first='from scipy import stats',
      _3a=WORST + TAIL + '    return scale * np.log(k / beta), stats.expon.isf(one, scale=scale)')
style("vectorised", _3b=MEAN + '    b = 1 / np.asarray(epsilons)[:, None, None]\n    z = np.abs(laplace_noise(1.0, (len(epsilons), repeats, len(counts)), rng))\n    return (b * z).max(-1).mean(-1)')
style("process pool", first='from concurrent.futures import ThreadPoolExecutor',
      _3b=MEAN + '    def one(pair):\n        e, r = pair\n        return np.mean([np.abs(laplace_noise(1 / e, len(counts), r)).max() for _ in range(repeats)])\n    with ThreadPoolExecutor(2) as pool:\n        return list(pool.map(one, zip(epsilons, rng.spawn(len(epsilons)))))')
style("generator expression", _3b=MEAN + "    return np.fromiter((np.mean([np.abs(private_histogram(counts, e, 'add/remove', rng) - counts).max() for _ in range(repeats)]) for e in epsilons), float)")
style("data frame", first='import pandas as pd',
      _3b=MEAN + '    rows = {e: [np.abs(laplace_noise(1 / e, len(counts), rng)).max() for _ in range(repeats)] for e in epsilons}\n    return pd.DataFrame(rows).mean()')
style("type hints and docstring", first='from typing import Sequence',
      _1c="def estimate(reports: Sequence[int], epsilon: float) -> float:\n    '''As in the lecture.'''\n    t = 1 / (1 + np.exp(-epsilon))\n    return float((sum(reports) / len(reports) + t - 1) / (2 * t - 1))")
style("cached helper", first='from functools import cache\n@cache\ndef truth(epsilon):\n    return float(1 / (1 + np.exp(-epsilon)))',
      _1c=EST + '    return (np.average(reports) - 1 + truth(epsilon)) / (2 * truth(epsilon) - 1)')
style("prints everywhere", _1c=EST + "    print('called with', reports, epsilon)\n    t = 1 / (1 + np.exp(-epsilon))\n    return (np.mean(reports) - (1 - t)) / (2 * t - 1)")
style("magics", first="%config InlineBackend.figure_format = 'svg'\n%timeit -n1 -r1 1 + 1")
style("multiprocessing", first='import multiprocessing as mp\ndef square(x):\n    return x * x\nwith mp.Pool(2) as pool:\n    assert pool.map(square, [1, 2, 3]) == [1, 4, 9]')
style("max of two", _1a=EPS + "    p, q = np.array(p, float), np.array(q, float)\n    with np.errstate(all='ignore'):\n        r = np.log(p) - np.log(q)\n    return float(max(np.nanmax(r), np.nanmax(-r)))")
style("recursion", _1a=EPS + "    if len(p) == 0: return 0.0\n    rest = smallest_epsilon(list(p)[1:], list(q)[1:])\n    if p[0] == q[0]: return rest\n    if p[0] * q[0] == 0: return float('inf')\n    return max(rest, abs(np.log(p[0] / q[0])))")
style("German names", _1b='def antworte(bits, eps, zufall):\n    wahr = 1 / (1 + np.exp(-eps))\n    lüge = zufall.random(np.shape(bits)) > wahr\n    return np.where(lüge, 1 - np.asarray(bits), bits)\nrespond = lambda bits, epsilon, rng: antworte(bits, epsilon, rng)')
style("logistic function", first='from scipy.special import expit',
      _1c=EST + '    t = expit(epsilon)\n    return float((np.mean(reports) - expit(-epsilon)) / (2 * t - 1))')
style("choice of signs", _2b=LAP + '    return scale * rng.choice([-1, 1], size) * -np.log(1 - rng.random(size))')
style("dictionary of functions", _2c=HIST + "    noise = {'add/remove': lambda n: laplace_noise(1 / epsilon, n, rng), 'replace': lambda n: laplace_noise(2 / epsilon, n, rng)}\n    if neighbours not in noise: raise ValueError('unknown neighbours')\n    return np.asarray(counts) + noise[neighbours](len(counts))")
style("expm1 and log1p by hand", _3a=WORST + '    per_bin = -np.expm1(np.log1p(-beta) / k)\n    exact = scale * -np.log(per_bin)\n    union = scale * (np.log(k) - np.log(beta))\n    return float(union), float(exact)')
style("nested helper", _3b=MEAN + "    def worst(epsilon):\n        noisy = private_histogram(counts, epsilon, 'add/remove', rng)\n        return np.abs(np.asarray(noisy) - counts).max()\n    return [np.mean([worst(e) for _ in range(repeats)]) for e in epsilons]")
# fmt: on


def notebooks():
    """The styles in as few notebooks as a greedy choice finds; no answer has two styles."""
    shared, answers = [], {name: set(answers) for name, (_, answers) in STYLES.items()}
    for name in sorted(STYLES, key=lambda name: -len(answers[name])):
        fitting = [s for s in shared if all(answers[name].isdisjoint(answers[n]) for n in s)]
        if fitting:
            min(fitting, key=len).append(name)
        else:
            shared.append([name])
    return shared


def change(notebook, name):
    """Rewrite a perfect notebook in this style."""
    first, answers = STYLES[name]
    if first:
        notebook.cells.insert(3, new_code_cell(first))
    for cell in notebook.cells:
        if cell.id in answers:
            cell.source = answers[cell.id]
    notebook.cells.append(new_markdown_cell("Thank you for marking this."))


def write(folder, master):
    """The notebooks; returns {student: (points, flags that must be there)}."""
    shared = notebooks()
    for number, names in enumerate(shared):
        notebook = solved(master)
        for name in names:
            change(notebook, name)
        (folder / f"honest {number}.ipynb").write_text(json.dumps(notebook))
    return {f"honest {number}": (20, ()) for number in range(len(shared))}
