"""Proofs of epsilon: what is proved is true, what is not true is not proved, and files that were
changed are refused. The truth is the accountant's, and closed forms in 50 digits."""

import json
from dataclasses import replace

import numpy as np
import pytest
from flint import acb, arb, ctx
from mpmath import mp

import dpnotes as dp
from dpnotes.proofs import checker, sampled
from dpnotes.proofs.proof import SWAPPED
from evidence import at_most, holds, must_fail

SERVED = {
    "the first page": dp.subsample(dp.gaussian(4.0), 0.01).compose(10_000),
    "few steps": dp.subsample(dp.gaussian(0.7), 0.02).compose(400),
    "one step": dp.subsample(dp.gaussian(1.1), 0.01),
    "several kinds": dp.gaussian(8.0).compose(10)
    + dp.subsample(dp.gaussian(2.0), 0.01).compose(100)
    + dp.subsample(dp.gaussian(1.0), 0.1).compose(5),
    "few rounds of rare sampling": dp.subsample(dp.gaussian(0.7), 2.5e-4).compose(10),
    "substitution": dp.subsample_substitution(dp.gaussian(1.0), 0.01).compose(1000),
    "substitution beside others": dp.subsample_substitution(dp.gaussian(3.0), 0.1).compose(200)
    + dp.subsample_substitution(dp.gaussian(0.6), 0.02).compose(90)
    + dp.gaussian(10.0)
    + dp.laplace(9.0)
    + dp.randomized_response(0.1),
    "one step under substitution": dp.subsample_substitution(dp.gaussian(0.8), 0.03),
    "Gaussian": dp.gaussian(4.0).compose(3),
    "beside Laplace noise": dp.gaussian(8.0).compose(10) + dp.laplace(20.0).compose(2),
    "beside coins": dp.gaussian(8.0) + dp.randomized_response(0.1).compose(20),
    "beside a leak": dp.gaussian(2.0) + dp.finite([0.5, 0.4, 0.1], [0.5, 0.5, 0.0]),
    "coins": dp.randomized_response(0.1).compose(100),
    "Laplace": dp.laplace(2.0).compose(3) + dp.laplace(7.0).compose(5),
    "Laplace beside coins": dp.laplace(3.0).compose(5) + dp.randomized_response(0.2).compose(4),
    "Laplace beside a leak": dp.laplace(3.0).compose(2)
    + dp.finite([0.5, 0.4, 0.1], [0.5, 0.5, 0.0]),
    "Laplace beside a leak of each": dp.laplace(3.0).compose(3)
    + dp.finite([0.5, 0.4, 0.1, 0.0], [0.5, 0.35, 0.0, 0.15]),
    "a finite law": dp.finite([0.6, 0.3, 0.1], [0.7, 0.1, 0.2]).compose(20),
}


@pytest.mark.parametrize("name", SERVED)
def test_the_least_epsilon_is_proved_and_less_is_not(name):
    """On the line that serves: a millionth less would be false, and is refused."""
    run, room = SERVED[name], 1e-7 if name.startswith("Laplace beside a") else 1e-9
    delta = 0.2 if run.delta(100.0) > 0.01 else 1e-6  # some losses are infinite
    low, high = run.epsilon_interval(delta)
    proof = dp.prove(run, high * (1 + room), delta)
    proved = dp.check(proof)
    at_most(run.delta_interval(float(proof.epsilon))[0], proved)
    at_most(proved, delta)
    with pytest.raises(ValueError, match="this line proves delta <= "):
        dp.check(replace(proof, epsilon=repr(low * (1 - 1e-6))))
    with pytest.raises(ValueError, match="delta at epsilon = "):
        dp.prove(run, low * (1 - 1e-6), delta)


FEW_RARE = [  # which were refused: sigma, rate, rounds, delta
    (2.303, 0.000201, 36, 4.953226705859118e-05),  # its sums nearly cancel: digits
    (0.6896, 2.471e-4, 30, 2.423915616609156e-07),  # what two bands share has two errors
    (1.665, 8.552e-4, 31, 1.98e-7),  # a period below zero
    pytest.param(2.053, 3.706e-4, 16, 1.56e-4, marks=pytest.mark.thorough),  # digits of a lift
    pytest.param(0.7924, 1.969e-4, 116, 3.342463273433958e-06, marks=pytest.mark.thorough),
]


@pytest.mark.parametrize(("sigma", "rate", "rounds", "delta"), FEW_RARE)
def test_a_small_epsilon_of_rare_samples_is_proved(sigma, rate, rounds, delta):
    run = dp.subsample(dp.gaussian(sigma), rate).compose(rounds)
    ctx.prec = 53
    at_most(dp.check(dp.prove(run, run.epsilon(delta) * (1 + 1e-9), delta)), delta)
    assert ctx.prec == 53, "the precision of others is left alone"


def some_run(rng):
    """Of the usual box: sigma .5 to 10, rate 1e-4 to .5, up to 1e5 rounds, delta 1e-3 to 1e-10.
    One of four under substitution, with rates from 1e-2."""
    swapped = rng.random() < 0.25
    sample, least = (dp.subsample_substitution, -2) if swapped else (dp.subsample, -4)
    sigma, rate = float(10 ** rng.uniform(np.log10(0.5), 1)), 10 ** rng.uniform(least, -0.3)
    run = sample(dp.gaussian(float(f"{sigma:.4g}")), float(f"{rate:.4g}"))
    return run.compose(int(10 ** rng.uniform(1, 5))), float(10 ** -rng.uniform(3, 10))


def one_run(rng):
    """How much was tried: a proof with a smaller epsilon is refused, and lines at random prove
    nothing false. Chernoff's bound is no measure of others."""
    run, delta = some_run(rng)
    low, high = run.epsilon_interval(delta)
    if not high:
        return {}
    try:
        proof = dp.prove(run, high * (1 + 1e-9), delta)
    except ValueError as error:
        assert "the line would be too long" in str(error)
        return {"too long": 1}
    at_most(run.delta_interval(float(proof.epsilon))[0], dp.check(proof))
    with pytest.raises(ValueError, match="this line proves"):
        dp.check(replace(proof, epsilon=repr(low * (1 - 1e-6))))
    lines = found = 0
    for way in ("1", "-1"):
        for _ in range(5 if some_lines(proof, way)[0].nodes else 0):
            lines, chosen = lines + 1, [mischosen(line, rng) for line in some_lines(proof, way)]
            try:
                bound = checker.bound(proof.steps, proof.epsilon, int(way), *chosen)
            except ValueError:
                continue
            found += 1
            holds(bound >= best(proof, way) * (1 - 1e-6), f"nothing false is proved: {chosen}")
    return {"proofs": 1, "lines at random": lines, "lines that prove something": found}


SEEDS = [0, *(pytest.param(n, marks=pytest.mark.thorough) for n in range(1, 40))]


@pytest.mark.parametrize("seed", SEEDS)
def test_random_runs_and_random_lines(seed):
    """Five runs and up to 50 lines at random for each seed, 200 runs in the thorough suite."""
    rng = np.random.default_rng([1, seed])
    seen = [one_run(rng) for _ in range(5)]
    assert sum(each.get("lines that prove something", 0) for each in seen) >= 1


def some_lines(proof, way):
    """That of a direction, or those of its bands."""
    said = proof.lines[way]
    return [checker.Line(*x) for x in (said if isinstance(said[0], list) else [said])]


def mischosen(line, rng):
    c, period, count, angle, bits, spacings, cuts = line
    c, period, angle, *spacings = (
        float(x * np.exp(rng.normal())) for x in (c, period, angle, *spacings)
    )
    count, spacings = int(rng.integers(0, min(2 * count + 2, 200))), np.maximum(spacings, 0.01)
    cuts = [(place + 0.1 * rng.normal(), width) for place, width in cuts]
    return checker.Line(c, period, count, min(angle, 1.5), bits, spacings.tolist(), cuts)


def best(proof, way):
    """The least that is known to hold in this direction, which was proved by its own line."""
    return checker.bound(proof.steps, proof.epsilon, int(way), *some_lines(proof, way))


def test_both_directions_are_asked():
    """A line that proves nothing in one of them proves nothing: nan is not below delta."""
    proof = dp.prove(SERVED["the first page"], 0.946867, 1e-5)
    for way in ("1", "-1"):
        c, period, count, angle, bits, spacings = proof.lines[way]
        broken = [c, 1e-9, count, angle, bits, spacings]
        with pytest.raises(ValueError):
            dp.check(replace(proof, lines={**proof.lines, way: broken}))
        few = [c, period, count, angle, 20, spacings]
        with pytest.raises(ValueError):
            dp.check(replace(proof, lines={**proof.lines, way: few}))


@mp.workdps(50)
def test_closed_forms():
    """By mpmath: one sampled step in both directions, and Gaussian noise."""
    ctx.prec = 200
    line = checker.Line(1.0, 1.0, 0, 1.0, 200, ())
    for sigma, rate, epsilon in (
        ("0.7", "0.3", "0.2"),
        ("1.5", "0.01", "0.005"),
        ("4", ".6", ".1"),
    ):
        step = [{"kind": "sampled gaussian", "sigma": sigma, "rate": rate, "times": 1}]
        s, r, e = map(mp.mpf, (sigma, rate, epsilon))

        def excess(x, way, s=s, r=r, e=e):
            q, p = mp.npdf(x, 0, s), (1 - r) * mp.npdf(x, 0, s) + r * mp.npdf(x, 1, s)
            return max(p - mp.exp(e) * q if way > 0 else q - mp.exp(e) * p, 0)

        for way in (1, -1):
            odds = mp.exp(way * e) - 1 + r
            x = (1 / mp.mpf(2) + s**2 * mp.log(odds / r)) if odds > 0 else 0
            truth = mp.quad(lambda x, way=way: excess(x, way), [-15 * s, x, 15 * s + 1])
            found = checker.bound(step, epsilon, way, line)
            assert abs(mp.mpf(found.mid().str(30, radius=False)) - truth) < 1e-25
    step = [{"kind": "gaussian", "sigma": "2", "times": 1}]
    truth = mp.ncdf(-1.75) - mp.exp(1) * mp.ncdf(-2.25)
    assert abs(mp.mpf(checker.bound(step, "1", 1, line).str(30, radius=False)) - truth) < 1e-25


CHANGES = {
    "sigma": lambda said: said["steps"][0].update(sigma="3.99"),
    "rate": lambda said: said["steps"][0].update(rate="0.0101"),
    "rounds": lambda said: said["steps"][0].update(times=10_001),
    "another step": lambda said: said["steps"].append(dict(said["steps"][0], times=1)),
    "delta": lambda said: said.update(delta="9.99e-6"),
    "negative epsilon": lambda said: said.update(epsilon="-1"),
    "no decimal": lambda said: said.update(epsilon="nan"),
    "a number": lambda said: said.update(epsilon=0.95),
    "other digits": lambda said: said.update(epsilon="\u0663"),
    "a word more": lambda said: said["steps"][0].update(sensitivity="0.5"),
    "half a round": lambda said: said["steps"][0].update(times=0.5),
    "no rounds": lambda said: said["steps"][0].update(times=0),
    "nothing": lambda said: said["steps"].clear(),
    "rate above 1": lambda said: said["steps"][0].update(rate="1.5"),
    "one direction": lambda said: said["lines"].pop("-1"),
    "a long line": lambda said: said["lines"]["1"].__setitem__(2, 10**12),
    "a long line of many outcomes": lambda said: said["lines"]["1"].__setitem__(
        slice(2, 6), [10**6, 0.1, 90, [3e-4]]
    ),
    "no tilt": lambda said: said["lines"]["1"].__setitem__(0, -1.0),
    "no spacing": lambda said: said["lines"]["1"].__setitem__(5, []),
    "delta 1": lambda said: said.update(delta="1"),
    "a short period": lambda said: said["lines"]["1"].__setitem__(1, 1e-310),
    "a large epsilon": lambda said: said.update(epsilon="1e300"),
    "other neighbours": lambda said: said.update(
        proof=said["proof"].replace("added or removed", "replaced")
    ),
    "substitution": lambda said: said["steps"][0].update(kind=SWAPPED),
    "few bits of a rate near 1": lambda said: said.update(
        steps=[{"kind": "sampled gaussian", "sigma": "100", "rate": "0.99999999", "times": 2}],
        epsilon="10",
        lines={"1": [20.0, 8.0, 0, 0.3, 140, [5.0]], "-1": [0.5, 8.0, 0, 0.3, 20, [5.0]]},
    ),
    "bits beyond all time": lambda said: said["lines"]["1"].__setitem__(
        slice(2, 5), [10**6, 0.1, 20_000]
    ),
    "format": lambda said: said.update(proof="another"),
}


SLOW = {  # what would take minutes, or more depth than Python has
    "many sums": [{"kind": "laplace", "scale": "1000", "times": 50_000}],
    "one wide law": [
        {
            "kind": "finite",
            "p": ["0.00005", "0.00015"] * 5000,
            "q": ["0.0001"] * 10_000,
            "times": 1,
        }
    ],
    "long lines of it": [
        {"kind": "gaussian", "sigma": "100", "times": 1},
        {"kind": "finite", "p": ["0.0001"] * 10_000, "q": ["0.0001"] * 10_000, "times": 1},
    ],
    "many rounds of it": [
        {"kind": "finite", "p": ["0.005", "0.015"] * 50, "q": ["0.01"] * 100, "times": 10**12}
    ],
    "no law": [{"kind": "finite", "p": ["0.5", "0.6"], "q": ["0.5", "0.5"], "times": 1}],
}


@pytest.mark.parametrize("steps", SLOW.values(), ids=SLOW)
def test_what_would_never_end_is_refused(steps):
    said = json.loads(dp.prove(dp.laplace(2.0).compose(2), 1.0, 0.1).text())
    said["lines"]["1"][2] = said["lines"]["-1"][2] = 100_000
    with pytest.raises(ValueError):
        dp.check(dp.Proof.read(json.dumps({**said, "steps": steps, "epsilon": "1e-6"})))
    with pytest.raises(ValueError):
        dp.Proof.read("[" * 100_000)


@pytest.mark.parametrize("name", CHANGES)
def test_a_file_that_was_changed_is_refused(name):
    said = json.loads(dp.prove(SERVED["the first page"], 0.946867, 1e-5).text())
    assert dp.check(dp.Proof.read(json.dumps(said))) < 1e-5
    CHANGES[name](said)
    with pytest.raises(ValueError):
        dp.check(dp.Proof.read(json.dumps(said)))


BANDS = {  # changes of the lines of bands
    "one less": lambda lines: lines.pop(0),
    "no rest": lambda lines: lines.pop(),
    "another order": lambda lines: lines.reverse(),
    "a rest that ends": lambda lines: lines[-1].__setitem__(6, lines[0][6]),
    "another softness": lambda lines: lines[1][6][0].__setitem__(1, 0.05),
    "none": lambda lines: lines[0][6][0].__setitem__(1, 0.0),
    "a cut that rises": lambda lines: lines[1][6][0].__setitem__(0, 50.0),
    "a cut of another kind": lambda lines: lines[0][6].append([1.0, 0.1]),
    "a cut of no kind": lambda lines: lines[0][6].__setitem__(0, []),
    "no number": lambda lines: lines[0][6][0].__setitem__(0, "1"),
    "no softness at all": lambda lines: [x[6][0].__setitem__(1, 1e-200) for x in lines[:-1]],
    "a line without end": lambda lines: lines[0].__setitem__(slice(1, 3), [1e4, 700_000]),
    "few nodes": lambda lines: lines[1].__setitem__(2, 20),
    "few outcomes": lambda lines: lines[1][5].__setitem__(0, 0.02),
}


@pytest.fixture(scope="module")
def banded():
    run = SERVED["few rounds of rare sampling"]
    return json.loads(dp.prove(run, run.epsilon(1e-6) * 1.01, 1e-6).text())


@pytest.mark.parametrize("name", BANDS)
def test_bands_that_were_changed_are_refused(name, banded):
    said = json.loads(json.dumps(banded))
    BANDS[name](said["lines"]["1"])
    with pytest.raises(ValueError):
        dp.check(dp.Proof.read(json.dumps(said)))


def test_a_file_of_bands(banded):
    """It is checked as it was written; the other direction has none."""
    assert len(banded["lines"]["1"]) > 3
    assert dp.check(dp.Proof.read(json.dumps(banded))) < 1e-6
    lines = some_lines(dp.Proof.read(json.dumps(banded)), "1")
    with pytest.raises(ValueError, match="only the mixture against q has bands"):
        checker.bound(banded["steps"], "0.001", -1, *lines)


def test_a_file_of_substitution():
    """It says that a person is replaced; steps of people who are removed are not mixed with it."""
    proof = dp.prove(SERVED["substitution"], 2.3, 1e-5)
    said = json.loads(proof.text())
    assert said["proof"].endswith("when a person is replaced") and proof.neighbours == "replaced"
    assert dp.check(dp.Proof.read(proof.text())) < 1e-5
    chernoff = dp.prove(SERVED["substitution"], 5.0, 1e-5)
    assert chernoff.lines["1"][2] == 0 and dp.check(chernoff) < 1e-5
    said["steps"][0]["kind"] = "sampled gaussian"
    with pytest.raises(ValueError, match="a proof that dpnotes wrote"):
        dp.Proof.read(json.dumps(said))
    said["steps"].append({**said["steps"][0], "kind": SWAPPED})
    with pytest.raises(ValueError, match="not of both"):
        dp.Proof.read(json.dumps(said))
    cut = checker.Line(*proof.lines["1"][:5], (0.1,), ((1.0, 0.1),))
    with pytest.raises(ValueError, match="added or removed have bands"):
        checker.bound(proof.steps, "2.3", 1, cut, checker.Line(*proof.lines["1"]))


def test_a_file_that_says_one_thing_twice_is_refused():
    text = dp.prove(dp.gaussian(4.0), epsilon=1.1, delta=1e-6).text()
    assert dp.check(dp.Proof.read(text)) < 1e-6
    with pytest.raises(ValueError, match="a proof that dpnotes wrote"):
        dp.Proof.read(text.replace("{", '{"epsilon": "0.1", ', 1))


@pytest.mark.parametrize(
    "run, word",
    [
        (dp.subsample_substitution(dp.gaussian(1.0), 0.3).compose(3), "too long"),
        (
            dp.subsample_substitution(dp.gaussian(1.0), 0.3) + dp.subsample(dp.gaussian(1.0), 0.3),
            "not of both",
        ),
        (dp.subsample(dp.laplace(2.0), 0.1), "Laplace"),
        (dp.discrete_gaussian(2.0), "Finite"),
        (dp.laplace(2.0).compose(10**6), "too many sums"),
        (dp.subsample(dp.gaussian(0.5), 1e-7).compose(3), "rare sampling"),
    ],
)
def test_what_is_not_served_is_refused_by_name(run, word):
    with pytest.raises(ValueError, match=word) as error:
        dp.prove(run, run.epsilon(1e-6) * (1 + 1e-9), 1e-6)
    assert str(error.value).count("\n") == 0


def test_the_checker_shares_no_code_with_the_accountant():
    import ast
    from importlib.resources import files

    for name in ("checker.py", "sampled.py", "replaced.py"):
        tree = ast.parse((files("dpnotes") / "proofs" / name).read_text(encoding="utf8"))
        imports = [x for x in ast.walk(tree) if isinstance(x, ast.ImportFrom | ast.Import)]
        rooms = {getattr(x, "module", None) or x.names[0].name for x in imports}
        assert rooms <= {"flint", "math", "itertools", "typing", "sampled", "replaced"}


def test_sums_of_turned_terms():
    """On a short line by products, on a long one also by a series: balls that hold the sum."""
    ctx.prec, rng = 140, np.random.default_rng(4)
    terms, losses = ([arb(float(x)) / 7 for x in rng.uniform(-1, 1, 300)] for _ in range(2))
    for count, h in ((60, arb(1) / 9), (sampled.LONG_LINE, arb(1) / 9), (500, -arb(1) / 300)):
        sums, rest = sampled.turned(terms, losses, h, count, arb("1e-4"))
        for j in (0, 1, 37, count):
            true = sum((a * acb(0, j * h * x).exp() for a, x in zip(terms, losses, strict=True)))
            holds(bool((abs(sums[j] - true) - rest).lower() <= 0), "what is left out")
            holds(bool(abs(sums[j] - true) < 0.01), "and it is little")
    must_fail(holds, bool((abs(sums[count] * 1.1 - true) - rest).lower() <= 0))


def test_the_delta_that_is_returned_is_rounded_up():
    ctx.prec = 200
    for number in (arb("0.1").upper(), arb("1e-300").upper(), arb(1) / 3):
        assert arb(checker.rounded_up(number.upper())) >= number.upper()
