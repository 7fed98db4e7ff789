"""Interactive figures: their numbers against oracles of another make, and how they behave.

The numbers are those of the built site (`make book`), whole tables of them. An oracle is a closed
form, a sum, or another function of the package than the one that filled the table.
"""

import copy
import functools
import gzip
import json
import re

import numpy as np
import pytest
import test_site
from scipy.optimize import brentq
from scipy.special import logsumexp, ndtr

import dpnotes as dp
from dpnotes import calculator
from dpnotes.calculator import command_line
from dpnotes.chapters import erm
from dpnotes.chapters.erm import surveys
from machine import ROOT, SITE

watched, plain = test_site.watched, test_site.plain
PAGES = {
    name: page.stem
    for page in (ROOT / "chapters").glob("*.md")
    for name in re.findall(r"^```\{slider\} (\S+)", page.read_text(encoding="utf8"), re.M)
}
NAMES = [name for name, page in PAGES.items() if (SITE / f"chapters/{page}.html").exists()]
every_slider = pytest.mark.parametrize("name", NAMES)
MOST_BYTES = 15_000
DIGITS = str.maketrans("⁻⁰¹²³⁴⁵⁶⁷⁸⁹", "-0123456789")
NUMBER = r"10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+|[\d,]*\.?\d+(?:·10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+)?"


@functools.cache
def file_of(name):
    """The script with a figure's numbers, as a reader gets it."""
    (found,) = (SITE / "_sliders").glob(f"{name}-*.js")
    return found


def grid(name):
    """A fresh copy of a figure's description and numbers."""
    text = file_of(name).read_text(encoding="utf8")
    return json.loads(re.fullmatch(rf'dpnSliders\.give\("{name}", (.*)\);\n', text, re.S)[1])


def interval(text):
    """Between which numbers lies what is written like this?"""
    mantissa, _, power = text.replace(",", "").partition("·10")
    if not power and re.fullmatch(r"10[⁻⁰¹²³⁴⁵⁶⁷⁸⁹]+", text):
        mantissa, power = "1", text[2:]
    scale = 10.0 ** int(power.translate(DIGITS) or 0) if power else 1.0
    unit = 10.0 ** -len(mantissa.partition(".")[2])
    if "." not in mantissa and not power:  # 1,230 and 16,200 have three digits
        unit = 10.0 ** (len(mantissa) - len(mantissa.rstrip("0")))
    low, high = (scale * (float(mantissa) + sign * 0.501 * unit) for sign in (-1, 1))
    return low, high


def written(table, truth):
    """Every text of a nested list says the number of `truth` in its place."""
    texts, truth = np.array(table), np.asarray(truth, dtype=float)
    assert texts.shape == truth.shape
    ends = np.array([interval(text) for text in texts.ravel()]).reshape(*texts.shape, 2)
    slack = 1e-9 * np.abs(truth) + 1e-18
    assert np.all((ends[..., 0] <= truth + slack) & (truth - slack <= ends[..., 1]))


def drawn(table, truth, span=None):
    """Every number of a nested list, to four digits or to a thousandth of the picture."""
    found, truth = np.array(table, dtype=float), np.asarray(truth, dtype=float)
    if span:
        room = (span[1] - span[0]) / 10
        np.testing.assert_allclose(
            found, np.clip(truth, span[0] - room, span[1] + room), atol=room / 90
        )
    else:
        np.testing.assert_allclose(found, truth, rtol=5.1e-4, atol=1e-14)


def values(spec, control):
    """What a slider's positions are called, as numbers."""
    (texts,) = (c["values"] for c in spec["controls"] if c["name"] == control)
    return np.array([np.mean(interval(text)) for text in texts])


def in_sentences(table, pattern):
    """The number that each sentence has in the group of `pattern`."""
    texts = np.array(table)
    found = [re.search(pattern.replace("#", f"({NUMBER})"), text)[1] for text in texts.ravel()]
    return np.array(found).reshape(texts.shape)


# ---- oracles ----


def gaussian_delta(sigma, epsilon):
    """The closed form; its terms cancel, but not below 1e-14."""
    middle, half = epsilon * sigma, 1 / (2 * sigma)
    return ndtr(half - middle) - np.exp(epsilon) * ndtr(-half - middle)


@functools.cache
def outcomes(sigma=4.0, rate=0.01):
    """Probabilities and losses of one step on a grid of outcomes."""
    x = np.linspace(-12, 75, 3000) * sigma
    loss = np.log1p(rate * np.expm1((x - 0.5) / sigma**2))
    log_p = loss - (x / sigma) ** 2 / 2
    log_p -= logsumexp(log_p)
    return np.exp(log_p[log_p > -700]), loss[log_p > -700]


def line_integrand(k, epsilon, c, y):
    """Re M(z)^k e^{-eps z} / (z (z+1)) / 2 pi at z = c + iy, M a sum over the outcomes."""
    z, (p, loss) = c + 1j * np.asarray(y), outcomes()
    moment = np.exp(k * np.log1p(np.expm1(np.multiply.outer(z, loss)) @ p) - epsilon * z)
    return (moment / (z * (z + 1))).real / (2 * np.pi)


# ---- what each figure must show ----


def check_pair(spec, density, delta):
    y, scale = np.array(spec["data"]["y"]), values(spec, "scale")[:, None]
    epsilon, limit = values(spec, "epsilon"), (0, 1.05)
    drawn(spec["data"]["p"], density(y - 1, scale), limit)
    drawn(spec["data"]["q"], density(y, scale), limit)
    covered = np.exp(epsilon)[:, None] * density(y, scale)[:, None]
    drawn(spec["data"]["covered"], covered, limit)
    truth = delta(scale, epsilon)
    drawn(spec["data"]["delta"], truth)
    written(in_sentences(spec["data"]["sentence"], "δ = #"), truth)


def check_laplace_pair(spec):
    check_pair(
        spec,
        lambda z, b: np.exp(-np.abs(z) / b) / (2 * b),
        lambda b, epsilon: np.maximum(0, -np.expm1((epsilon - 1 / b) / 2)),
    )
    ends = np.tile(1 / values(spec, "scale")[:, None], (1, len(values(spec, "epsilon"))))
    written(in_sentences(spec["data"]["sentence"], "1/b = #"), ends)


def check_response_dial(spec):
    """By the law of one answer: its worst ratio, and the spread of 6,366 of them."""
    data = spec["data"]
    for gamma, epsilon, error in (("gammas", "epsilons", "errors"), ("fine",) * 3):
        epsilon, error = (
            f"fine_{name}" if gamma == "fine" else name + "s" for name in ("epsilon", "error")
        )
        truth = 0.5 + np.array(data[gamma])
        drawn(data[epsilon], [dp.max_divergence([t, 1 - t], [1 - t, t]) for t in truth])
        drawn(data[error], 100 * np.sqrt(truth * (1 - truth) / 6366) / (2 * truth - 1))
    written(data["say_epsilon"], data["epsilons"])
    written(data["say_error"], data["errors"])
    written(data["truth"], 0.5 + np.array(data["gammas"]))


def check_gaussian_pair(spec):
    check_pair(
        spec,
        lambda z, s: np.exp(-((z / s) ** 2) / 2) / (s * np.sqrt(2 * np.pi)),
        gaussian_delta,
    )
    sigma, epsilon = values(spec, "scale")[:, None], values(spec, "epsilon")
    tail = ndtr(1 / (2 * sigma) - epsilon * sigma)
    written(in_sentences(spec["data"]["sentence"], "probability #"), tail)


def check_gaussian_profile(spec):
    data, sigma = spec["data"], values(spec, "sigma")
    column, epsilon = np.broadcast_arrays(sigma[:, None], np.array(data["epsilon"]))
    tail = ndtr(1 / (2 * column) - epsilon * column)
    for name, truth in (("profile", gaussian_delta(column, epsilon)), ("tail", tail)):
        np.testing.assert_allclose(data[name], np.maximum(truth, 1e-14), rtol=5.1e-3)
    delta, tail = gaussian_delta(sigma, 1), ndtr(1 / (2 * sigma) - sigma)
    written(data["delta"], delta)
    written(data["delta_tail"], tail)
    for s, text in zip(sigma, data["needed"], strict=True):
        low, high = interval(text)
        assert gaussian_delta(s, high) <= 1e-5 <= gaussian_delta(s, low)
    kept = ["broken" not in text for text in data["verdict"]]
    assert kept == list(delta <= 1e-5)
    assert ["tail shows" in text for text in data["verdict"]] == list(tail <= 1e-5)


def check_composition_race(spec):
    data, epsilon = spec["data"], 0.1
    k, slack = np.array(data["rounds"]), values(spec, "delta")[:, None]
    basic = k * epsilon
    advanced = k * epsilon * np.tanh(epsilon / 2) + epsilon * np.sqrt(2 * k * np.log(1 / slack))
    for name, truth in (("basic", basic), ("advanced", advanced)):
        drawn(data[name], truth)
        written(data[f"say_{name}"], truth)
    optimal = np.array(data["optimal"])
    for j, rounds in enumerate(k):
        coins = dp.randomized_response(epsilon).compose(int(rounds))
        for i, delta in enumerate(slack[:, 0]):
            low, high = interval(data["say_optimal"][i][j])
            best, near = optimal[i, j], 5.1e-4 * optimal[i, j]
            for below, above in ((low, high), (best - near, best + near)):
                assert coins.delta(above) <= delta
                assert coins.delta(below) >= delta
    wins = np.array([["Basic" in text for text in row] for row in data["verdict"]])
    assert np.all(wins == (basic <= advanced))
    assert np.all((optimal <= basic * 1.0006) & (optimal <= advanced * 1.0006))


def check_amplification(spec):
    data, rate, epsilon = spec["data"], values(spec, "rate")[:, None], values(spec, "epsilon")
    after, fine = np.log1p(rate * np.expm1(epsilon)), np.array(data["fine"])
    drawn(data["after"], after)
    drawn(data["curve"], np.log1p(rate * np.expm1(fine)))
    drawn(data["straight"], rate * fine)
    written(data["say_after"], after)
    written(data["say_guess"], rate * epsilon)
    written(data["ratio"], after / (rate * epsilon))


def check_renyi_orders(spec):
    data, limit, log_delta = spec["data"], (0, 3), np.log(1e-5)
    order, steps = np.array(data["orders"]), values(spec, "k")[:, None]
    step = dp.subsample(dp.gaussian(4.0), 0.01)
    spent, price = steps * step.renyi(order), -log_delta / (order - 1)
    improved = spent + np.log1p(-1 / order) - (np.log(order) + log_delta) / (order - 1)
    drawn(data["spent"], spent, limit)
    drawn(data["classic"], spent + price, limit)
    drawn(data["improved"], np.maximum(0, improved), limit)
    written(data["say_spent"], spent)
    written(data["say_price"], price)
    written(data["say_classic"], spent + price)
    best = (spent + price).argmin(1)
    assert data["best"] == order[best].tolist() == [int(text) for text in data["say_best"]]
    written(data["say_least"], (spent + price).min(1))
    for k, exact, text in zip(steps[:, 0], data["exact"], data["say_exact"], strict=True):
        run, near = step.compose(int(k)), 5.1e-4 * exact
        for below, above in (interval(text), (exact - near, exact + near)):
            assert run.delta(above) <= 1e-5 <= run.delta(below)


def check_contour_nodes(spec):
    data, k = spec["data"], 10_000
    epsilon = dp.subsample(dp.gaussian(4.0), 0.01).compose(k).epsilon(1e-5)
    for i, c in enumerate(values(spec, "c")):
        drawn(data["curves"][i], 1e6 * line_integrand(k, epsilon, c, data["y"]), (-2.5, 5.5))
        for j, h in enumerate(values(spec, "h")):
            node = np.array(data["nodes"][i][j])
            np.testing.assert_allclose(node, h * np.arange(-(40 // h), 40 // h + 1), atol=1e-12)
            heights = 1e6 * line_integrand(k, epsilon, c, node)
            np.testing.assert_allclose(data["heights"][i][j], heights, rtol=5.1e-3, atol=1e-11)
            assert data["where"][i][j] == [c] * len(node)
            far = h * np.arange(-(200 // h), 200 // h + 1)
            total = h * line_integrand(k, epsilon, c, far).sum()
            said = data["sentence"][i][j]
            written(in_sentences([said], "nodes is #"), [total])
            assert said.startswith(f"{len(node)} nodes")
            if "%" in said:
                written(in_sentences([said], "# %"), [100 * (total / 1e-5 - 1)])
            else:
                assert ("ten digits" in said) == (abs(total / 1e-5 - 1) < 2e-10)


def check_first_training(spec):
    data, steps = spec["data"], np.array(spec["data"]["steps"])
    assert values(spec, "k").tolist() == steps.tolist() and steps[-1] == 14_100
    for i, sigma in enumerate(values(spec, "sigma")):
        step = dp.subsample(dp.gaussian(sigma), 256 / 60_000)
        for j, k in enumerate(steps):
            for name, run, delta, times in (
                ("whole", step.compose(int(k)), 1e-5, 1),
                ("added", step, 1e-5 / k, k),
            ):
                drawn, text = data[name][i][j], data[f"say_{name}"][i][j]
                for low, high in (interval(text), (drawn * (1 - 5.1e-4), drawn * (1 + 5.1e-4))):
                    assert run.delta(high / times) <= delta <= run.delta(low / times)
    written([data["say_whole"][3][-1]], [2.3851])  # what dp_accounting finds, too


def check_erm_accuracy(spec):
    data, rows, budgets = spec["data"], values(spec, "n"), values(spec, "epsilon")
    for name in ("answer", "question"):
        means = np.array(data[name]).mean(2)
        np.testing.assert_allclose(data[f"{name}_mean"], means, atol=1.1e-3)
        written(data[f"say_{name}"], data[f"{name}_mean"])
    written(data["product"], rows[:, None] * budgets)
    written(data["say_free"], data["free"])
    x, vote = surveys.voters()
    assert data["majority"] == round(np.mean(vote < 0), 4)
    again = (("answer", erm.output_perturbation, erm.logistic_loss, 2, 5),
             ("question", erm.objective_perturbation, erm.huber_loss, 0, 1))  # fmt: skip
    for name, fit, loss, i, j in again:
        n, epsilon = int(rows[i]), budgets[j]
        rng = np.random.default_rng([n, round(1000 * epsilon)])
        options = erm.public_options(fit, n, 8, epsilon=epsilon)
        for split, shown in enumerate(data[name][i][j]):
            order = np.random.default_rng(split).permutation(944)
            theta = fit(x[order[:n]], vote[order[:n]], loss=loss, rng=rng, **options).theta
            right = np.sign(x[order[708:]] @ theta) == vote[order[708:]]
            assert abs(right.mean() - shown) <= 5.1e-4


def check_one_run(spec):
    """What attacks find, from delta alone: each e^s a + delta(s) is a bound, the least is attained.
    Of the mechanisms that are no training, delta is a closed form."""
    data, fpr = spec["data"], np.array(spec["data"]["fpr"])
    curves = [  # of a parameter, which is to be found
        lambda a, e: gaussian_delta(1 / a, e),
        lambda a, e: np.maximum(0, -np.expm1((e - a) / 2)),
        lambda a, e: np.maximum(0, (np.exp(a) - np.exp(e)) / (1 + np.exp(a))),
    ]
    times = np.array([0.1, 0.2, 0.35, 0.5, 0.7, 0.85, 0.95, 1, 1.1, 1.3, 1.6, 2])
    for at in np.ndindex(5, 5):
        i, j = at
        sigma, k = values(spec, "sigma")[i], values(spec, "k")[j]
        run = dp.subsample(dp.gaussian(sigma), 256 / 60_000).compose(int(k))
        epsilon = run.epsilon(1e-5)
        drawn([data["at"][i][j], *data["epsilons"][i][j]], [epsilon, *epsilon * times])
        written([data["say_epsilon"][i][j]], [epsilon])
        found = [brentq(lambda a, f=f: f(a, epsilon) - 1e-5, 1e-3, 60) for f in curves]  # noqa: B023
        laws = [run.delta, *(functools.partial(f, a) for f, a in zip(curves, found, strict=True))]
        common = [0.0, *np.geomspace(epsilon / 50, 4 * epsilon + 0.2, 400), *found]
        for n, law in enumerate(laws):
            last = brentq(lambda e: law(e) - 1.0001e-10, 0, 100)  # noqa: B023
            s = np.array([*common, last])
            delta, shown = (
                law(s),
                {
                    name: data[name][n][i][j]
                    for name in data
                    if np.shape(data[name])[:3] == (4, 5, 5)
                },
            )
            drawn(shown["deltas"], law(epsilon * times), (0, 1))
            bound = np.minimum(
                (delta + np.exp(s) * fpr[:, None]).min(1),
                (1 - (1 - delta - fpr[:, None]) * np.exp(-s)).min(1),
            )
            np.testing.assert_allclose(shown["found"], bound, rtol=6e-3)
            np.testing.assert_allclose(shown["missed"], 1 - bound, rtol=6e-3, atol=2e-3)
            np.testing.assert_allclose(shown["common"], bound[4], rtol=3e-3)
            rounded_up(shown["say_found"], 100 * shown["common"], 1.1e-3)
            rounded_up(shown["advantage"], delta[0], 1.1e-3)
            some = delta >= 1e-10
            low, high = max(float(shown["low"]), 1e-9), float(shown["high"])
            most, least = gaussian_delta(1 / high / 1.001, s), gaussian_delta(1.001 / low, s)
            assert np.all((most >= delta - 1e-14)[some]) and np.all((least <= delta)[some])
            assert np.any((gaussian_delta(1 / high / 0.97, s) < delta)[some])
            if (n, at) != (2, (0, 4)):  # there it says 0, which is less than the least
                assert np.any((gaussian_delta(1 / (low + 0.03), s) > delta)[some])


def rounded_up(text, truth, room):
    assert truth * (1 - 5.1e-4) <= float(text) <= truth * (1 + room)


PLANTS = {
    "laplace-pair": ("covered", 3, 4, 30), "gaussian-pair": ("delta", 5, 7),
    "response-dial": ("errors", 5), "gaussian-profile": ("profile", 9, 20),
    "composition-race": ("optimal", 4, 21),
    "amplification": ("after", 3, 11), "renyi-orders": ("classic", 3, 22),
    "contour-nodes": ("heights", 3, 4, 9), "first-training": ("whole", 3, 9),
    "erm-accuracy": ("question", 1, 2, 7), "one-run": ("found", 0, 2, 3, 4),
}  # fmt: skip


@every_slider
def test_numbers_agree_with_an_oracle_and_a_wrong_one_is_caught(name):
    spec, check = grid(name), globals()["check_" + name.replace("-", "_")]
    check(spec)
    table, *place, last = PLANTS[name]
    wrong = copy.deepcopy(spec)
    row = functools.reduce(lambda part, i: part[i], place, wrong["data"][table])
    row[last] = row[last] * 1.1 + 1e-9
    with pytest.raises(AssertionError):
        check(wrong)


@every_slider
def test_a_grid_is_small(name):
    assert len(gzip.compress(file_of(name).read_bytes())) <= MOST_BYTES


def test_every_slider_of_the_pages_is_tested():
    assert set(PAGES) == set(PLANTS)


def test_one_run_has_one_number_wherever_it_is_told(capsys):
    """What the best attack finds in the training of the first page: there, in the slider, in the
    calculator, and in a shell."""
    data = grid("one-run")["data"]
    fields = {"sigma": 1.1, "rate": "256/60000", "steps": 14_100}
    told = [data["say_found"][0][2][3]]
    command_line.main(["risk", *(f"--{name}={value}" for name, value in fields.items())])
    text = capsys.readouterr().out
    query = {"parts": [{"mechanism": "gaussian", **fields}]}
    first = re.sub("<[^>]+>", "", (SITE / "chapters/intro.html").read_text(encoding="utf8"))
    for said in (text, calculator.attack(query), first):
        told += re.findall(r"([\d.]+) % of those", said)
    assert len(told) == 4 and len(set(told)) == 1
    run = dp.subsample(dp.gaussian(1.1), 256 / 60_000).compose(14_100)
    rounded_up(told[0], 100 * run.tpr(0.01), 1.1e-3)
    curve = calculator.roc(query)
    at = np.abs(np.array(curve["fpr"]) - 0.01).argmin()
    np.testing.assert_allclose(curve["tpr"][at], run.tpr(0.01), rtol=1e-12)
    shell = dict(zip(("advantage", "low", "high"), re.findall(r"0\.\d+", text)[2:], strict=True))
    assert data["advantage"][0][2][3] == calculator.digits(shell["advantage"], 4, np.ceil)
    assert data["low"][0][2][3] == calculator.digits(shell["low"], 4, np.floor)
    assert data["high"][0][2][3] == calculator.digits(shell["high"], 4, np.ceil)


# ---- in the browser ----


def looked_up(spec, reference, at):
    """What a reference names."""
    name, *by = reference.split(" ")
    for control in spec["controls"]:
        if control["name"] == name:
            return control["values"][at[name]]
    return functools.reduce(lambda part, control: part[at[control]], by, spec["data"][name])


def sentence(spec, at):
    """What the figure must say at the positions `at`."""
    return re.sub(r"\{([^}]+)\}", lambda found: looked_up(spec, found[1], at), spec["says"])


def place(axis, value):
    """Where on an axis, from 0 to 1."""
    low, high, value = axis["low"], axis["high"], np.asarray(value, dtype=float)
    if axis["log"]:
        low, high, value = np.log10(low), np.log10(high), np.log10(np.maximum(value, 1e-300))
    return (value - low) / (high - low)


def dots_of(spec, at):
    """Places of all dots of the last panel, as shares of its width and height."""
    panel, found = spec["panels"][-1], []
    for mark in panel["marks"]:
        if mark["kind"] == "dots":
            x, y = (
                looked_up(spec, mark[axis], at) if isinstance(mark[axis], str) else mark[axis]
                for axis in "xy"
            )
            x, y = place(panel["x"], x), 1 - place(panel["y"], y)
            found += zip(np.atleast_1d(x), np.atleast_1d(y), strict=True)
    return np.array([dot for dot in found if 0 <= min(dot) and max(dot) <= 1])


STATE = """(figure) => {
  const panel = [...figure.querySelectorAll("figure > svg[data-size=wide] > g")].at(-1);
  const {width, height} = panel.querySelector("svg").attributes;
  return {
    says: figure.querySelector(".dpn-slider-says").innerText.trim(),
    values: [...figure.querySelectorAll("input")].map((input) => input.ariaValueText),
    labels: [...figure.querySelectorAll("label b")].map((value) => value.innerText),
    dots: [...panel.querySelectorAll("circle")].map((dot) =>
      [dot.getAttribute("cx") / width.value, dot.getAttribute("cy") / height.value]),
    picture: panel.innerHTML,
    size: [figure.offsetWidth, figure.offsetHeight],
  };
}"""


def shown(figure, spec, at):
    """The figure's state, whose sentence, values and dots are those of the grid at `at`."""
    state = figure.evaluate(STATE)
    assert state["says"] == sentence(spec, at)
    called = [control["values"][at[control["name"]]] for control in spec["controls"]]
    assert state["values"] == state["labels"] == called
    expected, found = dots_of(spec, at), np.array(state["dots"])
    assert len(found) == len(expected)
    if len(expected):
        near = np.abs(found[:, None] - expected).max(2)
        assert near.min(0).max() < 2e-3 and near.min(1).max() < 2e-3
    return state


def alone(tab, name):
    """The figure, without the rest of its page, and with its numbers."""
    tab.evaluate(
        """(where) => {
          for (let box = document.querySelector(where); !box.matches("article");
              box = box.parentElement)
            for (const other of [...box.parentElement.children])
              if (other !== box && !other.matches("link")) other.remove();
        }""",
        f"#slider-{name}",
    )
    size = tab.locator(f"#slider-{name}").evaluate("(box) => [box.offsetWidth, box.offsetHeight]")
    tab.wait_for_selector(f"#slider-{name}[data-awake]")
    return tab.locator(f"#slider-{name}"), size


@every_slider
def test_arrow_keys_move_picture_and_sentence(watched, name):
    spec, tab = grid(name), watched.open(f"chapters/{PAGES[name]}.html")
    figure, size = alone(tab, name)
    described = [one.get_attribute("aria-label") for one in figure.locator("figure > svg").all()]
    assert [len(words.split()) > 10 for words in described] == [True, True]
    at = {one["name"]: one["start"] for one in spec["controls"]}
    # what the page holds: nothing was moved, nothing drawn again
    assert shown(figure, spec, at)["size"] == size, "the page must not move"
    for control in spec["controls"]:
        one, last = control["name"], len(control["values"]) - 1
        slider, pictures = figure.locator(f"input[name={one}]"), set()
        for key, target in (
            ("ArrowLeft", max(at[one] - 1, 0)),
            ("End", last),
            ("Home", 0),
            ("ArrowUp", 1),
        ):
            slider.press(key)
            at[one] = target
            state = shown(figure, spec, at)
            pictures.add(state["picture"])
            assert state["size"] == size
        assert len(pictures) > 2, f"{one} changes the picture"
    for mode, ink in (("light", "rgb(27, 31, 36)"), ("dark", "rgb(227, 231, 235)")):
        tab.evaluate("(mode) => (document.documentElement.dataset.theme = mode)", mode)
        text = figure.locator("svg[data-size=wide] text").first
        assert text.evaluate("(text) => getComputedStyle(text).fill") == ink
        assert test_site.violations(tab, f"#slider-{name}") == [], mode
    tab.set_viewport_size(test_site.NARROW)
    seen = [figure.locator(f"svg[data-size={one}]").is_visible() for one in ("narrow", "wide")]
    assert seen == [True, False]
    assert test_site.sticking_out(tab) == []
    tab.set_viewport_size(test_site.WIDE)
    assert watched.faults == []


def test_numbers_are_loaded_only_when_they_are_about_to_be_seen(watched):
    name = "erm-accuracy"
    tab = watched.open(f"chapters/{PAGES[name]}.html")
    figure = tab.locator(f"#slider-{name}")
    assert figure.bounding_box()["y"] > 3000, "it does not stand far enough down for this test"
    loaded = "() => performance.getEntriesByType('resource').map((entry) => entry.name)"
    assert not [url for url in tab.evaluate(loaded) if file_of(name).name in url]
    figure.scroll_into_view_if_needed()
    tab.wait_for_selector(f"#slider-{name}[data-awake]")
    assert [url for url in tab.evaluate(loaded) if file_of(name).name in url]


def test_without_javascript_the_picture_is_seen_and_no_slider(plain):
    name = "laplace-pair"
    tab = plain.open(f"chapters/{PAGES[name]}.html")
    figure = tab.locator(f"#slider-{name}")
    assert figure.locator("svg[data-size=narrow]").bounding_box()["width"] > 300
    assert figure.locator(".dpn-slider-says").is_visible()
    assert not figure.locator("input").first.is_visible()
    assert plain.faults == []
