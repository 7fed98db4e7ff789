"""The attacks of a review of the grader, on the trusted side: parsing, unpacking, searching, telling.

Importing this module adds them to `hostile.CASES`; `write` adds what isn't a notebook.
"""

# ruff: noqa: E501

import json

from nbformat.v4 import new_code_cell, new_markdown_cell, new_output

from hostile import ENDED, FULL, FUNCTIONS, NONE, case, cell_of, cheat, extra, words

HOOK = "import signal, struct\nG = signal.getsignal(signal.SIGPROF).__globals__\nreal = G['send']\n"
extra(HOOK + "def bomb(stream, message):\n"
      "    data = b'{\"id\":%d,\"value\":[' % message['id'] + b'{\"\":0},' * 4_500_000 + b'0]}'\n"
      "    stream.write(struct.pack('>I', len(data)) + data)\n    stream.flush()\n"
      "G['send'] = bomb",
      FULL, ENDED, name="frame of tiny dicts")  # fmt: skip
extra(HOOK + "left = 4\ndef shout(stream, message):\n    global left\n"
      "    loud = left and 'value' not in message and 'found' not in message\n    left -= loud\n"
      "    real(stream, {**message, 'error': 'A' * 30_000_000} if loud else message)\n"
      "G['send'] = shout",
      FULL, name="endless errors")  # fmt: skip
cheat(HOOK + "def forge(stream, message):\n"
      "    if 'found' in message:\n        message['found'] |= {name: {'function': True} for name in ('abs', 'largest_gap', 'laplace_cdf', 'np')}\n"
      "    real(stream, message)\n"
      f"G['send'] = forge\nfor name in {FUNCTIONS}:\n    globals()[name] = lambda *a, **k: np.zeros(20_000)",
      name="forged names")  # fmt: skip
cheat(HOOK + "def forge(stream, message):\n"
      "    if 'found' in message:\n        message['found'] = {name: {'error': 'spied' * 10**6} for name in message['found']}\n"
      "    real(stream, message)\nG['send'] = forge",
      name="forged errors of names")  # fmt: skip


@case(16)
def tells_hidden_inputs(notebook, master):
    cell_of(notebook, "1a").source = (
        "seen = []\ndef smallest_epsilon(p, q):\n    seen.append((list(p), list(q)))\n    known = {0.75: np.log(3), 0.25: np.log(2), 0.5: {0.5: 0.0, 0.25: np.log(2)}.get(q[0], np.inf)}\n"
        "    return known.get(p[0], 'spied ' + str(seen))"
    )
    cell_of(
        notebook, "1c"
    ).source = "def estimate(reports, epsilon):\n    raise ValueError('spied' + str(seen[5:]))"


@case(14)
def hidden_inputs_in_numbers(notebook, master):
    """A public test of 3b prints numbers: they must not carry what hidden tests asked for 1a."""
    cell_of(
        notebook, "1a"
    ).source = "asked = []\ndef smallest_epsilon(p, q):\n    asked.append((list(p), list(q)))\n    return 0.0"
    cell_of(notebook, "3b").source = (
        "def mean_worst_error(counts, epsilons, repeats, rng):\n"
        "    return (1 + 1000 * sum(p[0] == 0.9 for p, _ in asked)) / np.asarray(epsilons)"
    )


@case(FULL, "answer 2a could not be typeset", "answer 3c could not be typeset")
def texts_without_end(notebook, master):
    cell_of(notebook, "2a").source = "_a*" * 60_000
    cell_of(notebook, "3c").source = "".join(f"[a{i}]: x\n" for i in range(16_000))


@case(FULL, "answer 2a could not be typeset")
def a_table_without_end(notebook, master):
    cell_of(notebook, "2a").source = "|a" * 500 + "|\n" + "|-" * 500 + "|\n" + "|\n" * 99_000


@case(13)
def lends_to_itself(notebook, master):
    """An answer that copies what it finds under its own name, or under an earlier question's."""
    cell_of(notebook, "2b").source = "laplace_noise = globals().get('laplace_noise')"
    cell_of(notebook, "3a").source = "worst_errors = globals().get('worst_errors', laplace_noise)"


@case(FULL, "answer 2a stands in a cell of another kind")
def proof_in_a_code_cell_and_photographed(notebook, master):
    cell = cell_of(notebook, "2a")
    cell.cell_type, cell.source = "code", "My proof, turned into code: $x_1 < x_2$."
    cell = cell_of(notebook, "3c")
    cell.source, cell.attachments = "![](p.jpg)", {"p.jpg": {"image/jpeg": "/9j/4AAQphot"}}


@case(FULL)
def proof_in_an_added_cell_and_plots_of_tests(notebook, master):
    """The plot uses names that public tests define."""
    place = next(i for i, c in enumerate(notebook.cells) if c.id == "2a")
    notebook.cells[place].source = "*Your answer here.*"
    notebook.cells.insert(place + 1, new_markdown_cell("My proof: $x_1 < x_2$, second cell."))

    notebook.cells.append(
        new_code_cell(
            "import matplotlib.pyplot as plt\nplt.loglog(epsilons, errors)\nprint('plotted', len(errors))"
        )
    )
    notebook.cells[-1].outputs = [new_output("display_data", {"image/png": "iVBORw0KGgo="})]


@case(FULL)
def tiny_metadata(notebook, master):
    notebook.metadata["x"] = [{"": 0}] * 1_200_000


ALIASES = "a0: &a0 [x,x,x,x,x,x,x,x,x]\n" + "".join(
    f"a{i}: &a{i} [{','.join([f'*a{i - 1}'] * 9)}]\n" for i in range(1, 13)
)
FILES = {
    "aliases.md": f"# text\n\n```{{code-cell}}\n---\n{ALIASES}---\nx = 1\n```\n",
    "references.md": "".join(f"[a{i}]: x\n" for i in range(20_000)),
}


CODE = "\n```{code-cell}\n\n```\n"  # without one a text file is no notebook
# text alone, in files whose owners are not easily told: student -> file, flags
WORDS = {
    "renamed": ("renamed/final (2).ipynb", "renamed file"),
    "nested": ("nested/laplace.ipynb", "not all were searched"),
    "ada (ada.ipynb)": ("ada (ada.ipynb).ipynb",),  # its own name; the next three share one
    "ada (ada.ipynb) (2)": ("ada.ipynb", "3 submissions of ada"),
    "ada (ada.md)": ("ada.md", "3 submissions of ada"),
    "ada (laplace.ipynb)": ("ada/laplace.ipynb", "3 submissions of ada"),
}


def write_endless(folder, master):
    """What takes endless time or memory to read; returns {student: (points, flags)}."""
    expected = {}
    for name, text in FILES.items():
        (folder / name).write_text(text)
        expected[name[:-3]] = (NONE, ("unreadable notebook",))
    return expected


def write(folder, master):
    """Files and folders; returns {student: (points, flags)}."""
    expected = {}
    with open(folder / "sparse.ipynb", "wb") as file:
        file.truncate(6 * 2**30)
    expected["sparse"] = (NONE, ("unreadable notebook",))
    for student, (file, *flags) in WORDS.items():
        text = f"by {student}\n"
        (folder / file).parent.mkdir(exist_ok=True)
        (folder / file).write_text(json.dumps(words(text)) if file.endswith("b") else text + CODE)
        expected[student] = (NONE, flags)
    (folder / "nested").joinpath(*"d" * 40).mkdir(parents=True)  # deeper than is searched
    return expected


# Answers that look at the batch, count their calls or know the mean, in the place of noise that is
# drawn: for each question one or more, those of one place share a notebook. Against them the hidden
# tests ask for one value at a time (1000 frequencies within 0.09, 400 values within 0.15 of their
# distribution function; a right answer fails with probability < 2e-7) and in another order. Tricks
# that change a few words of the answer stand in assignments/wrong.
COUNT = "calls, few = [], 9\ndef level():\n    calls.append(0)\n    return len(calls) * 0.6180339887 % 1\n"
STILL = "calls, few = [], 1\ndef level():\n    return 0.5\n"  # looks at the batch alone


def both(answer):
    """A trick that looks at the batch, without counting and with."""
    return [STILL + answer, COUNT + answer]


LAPLACE = """def plan(n, rng):
    u = level() - 0.5 + np.zeros(n) if n <= few else (rng.permutation(n) + 0.5) / n - 0.5
    return -np.sign(u) * np.log1p(-2 * np.abs(u))
"""
NORMAL = """from scipy.stats import norm
def plan(n, rng):
    return norm.ppf([level()] if n == 1 else (rng.permutation(n) + 0.5) / n)
"""
GRID = """def grid(shape, rng):
    if shape[0] == 1:
        u = (level() + np.sqrt([2, 3, 5, 7, 11])[:shape[1]] * len(calls))[None] % 1 - 0.5
    else:
        u = np.array([(rng.permutation(shape[0]) + 0.5) / shape[0] - 0.5 for _ in range(shape[1])]).T
    return -np.sign(u) * np.log1p(-2 * np.abs(u))
"""
TRICKS = {
    "laplace": {
        "1b": both("""def respond(bits, epsilon, rng):
    bits, t = np.asarray(bits), 1 / (1 + np.exp(-epsilon))
    if len(bits) <= few:
        return bits if level() < t else 1 - bits
    return np.where(rng.permutation(np.arange(len(bits)) < round(len(bits) * (1 - t))), 1 - bits, bits)"""),
        "2b": both(
            LAPLACE
            + """def laplace_noise(scale, size, rng):
    return scale * plan(int(np.prod(size)), rng).reshape(size)"""
        ),
        "2c": both(
            LAPLACE
            + """def private_histogram(counts, epsilon, neighbours, rng):
    if neighbours not in ("add/remove", "replace"):
        raise ValueError
    return counts + (1 + (neighbours == "replace")) / epsilon * plan(len(counts), rng)"""
        ),
        "3b": [
            """def mean_worst_error(counts, epsilons, repeats, rng):
    return np.sum(1 / np.arange(1, len(counts) + 1)) / epsilons""",
        ],
    },
    "gaussian": {
        "3a": [
            """def mean_errors(data, dims, epsilon, delta, repeats, rng):
    sigmas = [sigma_exact(epsilon, delta, np.sqrt(d) / len(data)) for d in dims]
    return dims / (len(data) * epsilon), np.sqrt(2 / np.pi) * np.array(sigmas)""",
            COUNT
            + """def mean_errors(data, dims, epsilon, delta, repeats, rng):
    sigmas = np.array([sigma_exact(epsilon, delta, np.sqrt(d) / len(data)) for d in dims])
    u, a = level(), dims / (len(data) * epsilon)
    if repeats < 10:
        return -np.log1p(-u) * a, norm.ppf((1 + u) / 2) * sigmas
    return a, np.sqrt(2 / np.pi) * sigmas""",
        ],
    },
    "subsampling": {
        "1c": [
            """calls = []
def poisson_sample(n, rate, rng):
    calls.append(n)
    level = (len(calls) * 0.618034) % 1
    size = n if rate == 1 else round(n * rate + norm.ppf(level) * np.sqrt(n * rate * (1 - rate)))
    return np.sort((len(calls) * 37 + np.arange(size)) % n)"""
        ],
        "2b": both(
            NORMAL
            + """def noisy_sum(gradients, bound, multiplier, rng):
    clipped = gradients / np.maximum(1, np.linalg.norm(gradients, axis=1, keepdims=True) / bound)
    return clipped.sum(axis=0) + multiplier * bound * plan(gradients.shape[1], rng)"""
        ),
    },
    "erm": {
        "2a": [
            """from scipy.stats import norm
def output_perturbation(x, y, strength, epsilon, delta, rng):
    if np.max(np.linalg.norm(x, axis=1)) > 1 + 1e-9:
        raise ValueError
    sigma = noise_at_one(epsilon, delta)
    d = x.shape[1]
    noise = norm.ppf((rng.permutation(d) + 0.5) / d)
    return fit(x, y, strength) + 2 / (strength * len(x)) * sigma * noise"""
        ],
    },
    "selection": {
        "1c": both("""def choose(scores, sensitivity, epsilon, runs, rng):
    u = [level()] if runs == 1 else rng.permutation((np.arange(runs) + 0.5) / runs)
    return np.searchsorted(np.cumsum(exponential_law(scores, sensitivity, epsilon)), u)"""),
        "2c": both(
            GRID
            + """def noisy_max(scores, scale, runs, rng):
    return np.argmax(np.array(scores) + scale * grid((runs, len(scores)), rng), axis=1)"""
        ),
    },
    "adaptive": {
        "1b": both(
            GRID
            + """def above_threshold(answers, threshold, epsilon, runs, rng):
    z = grid((runs, len(answers) + 1), rng)
    above = np.array(answers) + 4 / epsilon * z[:, 1:] >= threshold + 2 / epsilon * z[:, :1]
    return np.where(above.any(axis=1), above.argmax(axis=1), len(answers))"""
        ),
        "3b": 2
        * [
            """def private_agreements(features, labels, epsilon, rng):
    n, d = np.shape(features)
    return agreements(features, labels) + d / (n * epsilon) * grid((d, 1), rng)[:, 0]"""
        ],
        "3c": 2
        * [
            """def thresholdout(train, holdout, tau, scale, rng):
    train, holdout, m = np.asarray(train), np.asarray(holdout), len(train)
    z = grid((m, 2), rng)
    return np.where(np.abs(train - holdout) > tau + scale * z[:, 0], holdout + scale * z[:, 1], train)"""
        ],
    },
    "audit": {
        "2a": [
            """def pair_a():
    return [[1], [-1]]
def event_a(outputs):
    y = np.asarray(outputs)
    return y > np.mean(y) + 1 if len(y) > 1000 else np.zeros(len(y), bool)""",
            """def pair_a():
    many = np.ones(65520, np.float16)
    return [many, np.where(np.arange(65520), many, -many)]
def event_a(outputs):
    return ~np.isfinite(outputs)""",
        ],
        "2b": [
            """def pair_b():
    return [[[1, 0]], [[0, 0]]]
def event_b(outputs):
    d = -np.diff(outputs)[:, 0]
    return d > np.mean(d) if len(d) > 1000 else np.zeros(len(d), bool)""",
        ],
        "2c": [
            """def pair_d():
    return [[0], [1]]
def event_d(outputs):
    y = np.asarray(outputs)
    return y < np.quantile(y, 0.02) if len(y) > 1000 else np.zeros(len(y), bool)""",
        ],
    },
}
