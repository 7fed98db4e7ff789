"""The calculator of the package and its command line: numbers, rows, calls, bad input."""

import json
import os
import pickle
import re
import subprocess
import sys

import numpy as np
import pytest

import dpnotes as dp
from dpnotes.calculator import command_line, questions, theorems, typed, wording
from dpnotes.calculator.runs import MECHANISMS, Part
from dpnotes.chapters import composition, gaussian, in_practice, subsampling
from evidence import must_fail
from typed_numbers import COMMAS, NO_NUMBERS, TYPED

GAUSS = dict(mechanism="gaussian", sigma=1.1, rate=0.00427, steps=14100)
WHOLE = dict(mechanism="gaussian", sigma=20.0, steps=100)
LAPLACE = dict(mechanism="laplace", scale=10.0, steps=1000)
COIN = dict(mechanism="response", epsilon=0.5, rate=0.01, steps=200)
PURE = dict(mechanism="pure", epsilon=0.1, steps=1000)
LEAKY = dict(mechanism="approximate", epsilon=0.1, delta=1e-10, steps=50)
RUNS = {
    "sampled": [GAUSS],
    "whole": [WHOLE],
    "laplace": [LAPLACE],
    "coin": [COIN],
    "pure": [PURE],
    "leaky": [LEAKY],
    "mixed": [WHOLE, LAPLACE],
}
RUNS |= {
    name: [{"mechanism": name, known.parameter: 2.0, "steps": 9}]
    for name, known in MECHANISMS.items()
    if name not in RUNS
}


def asked(parts, delta=1e-5, question="epsilon", **more):
    return questions.answers({"question": question, "parts": parts, "delta": delta, **more})


def said(capsys, line):
    """What the command prints for a line of arguments."""
    command_line.main(line.split())
    return capsys.readouterr().out


def test_the_command_line_equals_the_library(capsys):
    text = said(capsys, "epsilon --sigma 1.1 --rate 0.00427 --steps 14100 --delta 1e-5")
    run = dp.subsample(dp.gaussian(1.1), 0.00427).compose(14100)
    assert text.startswith(f"epsilon = {wording.digits(run.epsilon(1e-5), 10, np.ceil)} ")
    low, high = run.epsilon_interval(1e-5)
    assert f"between {wording.digits(low, 13, np.floor)} and" in text and high - low < 1e-11
    line = "epsilon --sigma 4 --rate 0.01 --steps 1000 --then --scale 20 --steps 5 --delta 1e-6"
    told = json.loads(said(capsys, f"{line} --json"))
    run = dp.subsample(dp.gaussian(4.0), 0.01).compose(1000) + dp.laplace(20.0).compose(5)
    assert told["answer"] == run.epsilon(1e-6)
    assert [told["low"], told["high"]] == list(run.epsilon_interval(1e-6))
    assert float(told["shown_low"]) <= told["low"] <= told["high"] <= float(told["shown_high"])
    text = said(capsys, "delta --scale 10 --steps 100 --epsilon 8")
    high = wording.digits(dp.laplace(10.0).compose(100).delta(8.0), 10, np.ceil)
    assert text.startswith(f"delta is at most {high} "), "its interval is 5e-6 wide"


def test_risk_says_what_the_library_says(capsys):
    line = "--sigma 1.1 --rate 0.00427 --steps 14100"
    run = dp.subsample(dp.gaussian(1.1), 0.00427).compose(14100)
    told = json.loads(said(capsys, f"risk {line} --fpr 0.1% --json"))
    assert (told["fpr"], told["tpr"]) == (0.001, run.tpr(0.001))
    assert (told["advantage"], told["mu"]) == (run.advantage(), list(run.mu()))
    text = said(capsys, f"risk {line}")
    percent = wording.digits(100 * run.tpr(0.01), 4, np.ceil)
    sentence = f"At 1 % false alarms, no attack finds more than {percent} % of those who are in"
    assert text.startswith(sentence) and f"{percent} %" in said(
        capsys, f"epsilon {line} --delta 1e-5"
    )
    names = ("TPR at most", "advantage at most", "mu between .* and")
    shown = [float(re.search(rf"{name} ([\d.]+)", text)[1]) for name in names]
    bounds = np.array([run.tpr(0.01), run.advantage(), run.mu()[1]])
    assert (bounds <= shown).all() and (shown <= bounds * (1 + 1e-4)).all()
    assert "infinite" in said(capsys, "risk --response 700")


@pytest.mark.parametrize("name", RUNS)
def test_what_attacks_find_is_never_said_too_small(name):
    tpr = asked(RUNS[name])["attack"].split("more than ")[1].split(" %")[0]
    found = questions.risk({"parts": RUNS[name]})
    assert found["tpr"] <= float(tpr) / 100 <= found["tpr"] * (1 + 1e-3)
    for fpr in (0.0, 1e-7, 0.0123456, 1.0):
        found = questions.risk({"parts": RUNS[name], "fpr": fpr})
        alarms, percent = re.findall(r"([\d.e-]+) %", found["shown"])
        assert float(alarms) <= 100 * fpr * (1 + 2e-15)
        assert 100 >= float(percent) >= 100 * found["tpr"] * (1 - 2e-15)


def test_batches_are_what_is_proved_too(capsys):
    """A proof of one step on all of the data was written, whatever batch and epochs were."""
    proved = said(capsys, "prove --sigma 4 --rows 600 --batch 6 --epochs 2 --delta 1e-5")
    (step,) = json.loads(proved)["steps"]
    assert (step["rate"], step["times"]) == ("0.01", 200)


@pytest.mark.parametrize("name", RUNS)
def test_bounds_are_above_the_exact_number_and_rounded_up(name):
    answer = asked(RUNS[name], delta=1e-6)
    exact = answer["answer"]
    for row in answer["rows"]:
        assert (row["epsilon"] is None) == bool(row["why"]), row
        if row["epsilon"] is not None and row["kind"] != "approximation":
            assert row["epsilon"] >= exact * (1 - 1e-12), row
            assert float(row["shown"]) >= row["epsilon"] * (1 - 1e-4)
        if row["epsilon"] is not None and row["kind"] == "bound":
            assert float(row["shown"]) >= row["epsilon"] * (1 - 1e-14)


def row(parts, claim, delta=1e-6, name=None):
    rows = asked(parts, delta)["rows"]
    return next(r for r in rows if r["claim"] == claim and name in (None, r["name"]))


@pytest.mark.slow
def test_rows_are_the_functions_of_the_book():
    delta, k = 1e-6, 1000
    inner = dp.gaussian(1.1).epsilon(delta / 2 / 14100 / 0.00427)
    one = subsampling.amplification(inner, 0.00427)[0]
    assert row([GAUSS], "U-advanced")["epsilon"] == composition.advanced(one, 14100, delta / 2)
    assert row([GAUSS], "X-optimal")["epsilon"] == pytest.approx(
        composition.optimal(one, 14100, delta, delta / 2 / 14100), rel=1e-12
    )
    assert row([GAUSS], "T-19-minibatch")["epsilon"] == pytest.approx(
        subsampling.minibatch_epsilon(inner, 0.00427, 14100 * 0.00427, delta / 2), rel=1e-12
    )
    assert row([PURE], "T-10")["epsilon"] == pytest.approx(100.0, rel=1e-14)
    assert row([PURE], "F-3.20")["epsilon"] == composition.advanced(
        0.1, k, delta, composition.kl_from_pure_exponential
    )
    assert row([PURE], "T-18")["epsilon"] == composition.advanced_azuma(0.1, k, delta)
    assert row([PURE], "X-optimal")["epsilon"] == composition.optimal(0.1, k, delta)
    assert row([PURE], "U-zcdp-to-dp")["epsilon"] == dp.zcdp_to_dp(k * 0.1**2 / 2, delta)
    sampled = dp.finite(*subsampling.subsampled_dominating_pair(0.1, 0.5, 1e-10)).compose(50)
    pair = row([dict(LEAKY, rate=0.5)], "X-subsampled-pair", delta=5e-9)
    assert pair["epsilon"] == sampled.epsilon(5e-9)
    pair = dp.finite(*subsampling.subsampled_dominating_pair(0.5, 0.01)).compose(200)
    assert row([COIN], "X-subsampled-pair")["epsilon"] == pair.epsilon(delta)
    both = dp.gaussian(20.0).compose(100) + dp.laplace(10.0).compose(1000)
    assert row([WHOLE, LAPLACE], "X-dominating-pair")["epsilon"] == both.epsilon(delta)
    steps = [dp.gaussian(20.0).epsilon(delta / 2 / 100)] * 100 + [0.1] * 1000
    assert row([WHOLE, LAPLACE], "U-advanced")["epsilon"] == pytest.approx(
        composition.advanced_heterogeneous(steps, delta / 2), rel=1e-12
    )


def test_rows_of_moments_end_at_the_right_order():
    delta, rho = 1e-6, 100 / (2 * 20.0**2)
    improved = row([WHOLE], "A-rdp-to-dp", name="Rényi DP, improved conversion")["epsilon"]
    assert improved == pytest.approx(dp.zcdp_to_dp_improved(rho, delta), rel=1e-4)
    optimal = row([WHOLE], "A-rdp-to-dp", name="Rényi DP, optimal conversion")["epsilon"]
    assert dp.gaussian(2.0).epsilon(delta) <= optimal <= improved * (1 + 1e-9)


def test_the_textbook_formula_ends_where_its_proof_does():
    calm = dict(mechanism="gaussian", sigma=10.0)
    assert row([calm], "F-3.22")["epsilon"] == pytest.approx(
        gaussian.sigma_classical(1.0, 1e-6) / 10.0, rel=1e-14
    )
    assert row([dict(calm, rate=0.5)], "F-3.22")["why"] == "for Gaussian noise on all of the data"
    loud = row([dict(calm, sigma=2.0)], "F-3.22")
    assert loud["epsilon"] is None and "1.83" in loud["why"]


def test_the_normal_approximation_is_no_bound():
    rare = dict(mechanism="gaussian", sigma=0.6, rate=0.001, steps=100)
    normal = row([rare], "U-plrv-gaussian", delta=1e-5)
    assert normal["kind"] == "approximation"
    assert normal["epsilon"] < row([rare], "X-dominating-pair", delta=1e-5)["epsilon"] / 2


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("question", ["epsilon", "delta"])
def test_what_is_shown_is_never_too_small(name, question):
    """Headline and exact row are not below the upper end, however many digits are shown."""
    answer = asked(
        RUNS[name], **({} if question == "epsilon" else {"epsilon": 0.5}), question=question
    )
    assert float(answer["shown"]) >= float(answer["shown_low"])
    assert float(answer["shown"]) >= answer["high"] * (1 - 2e-15)
    first = answer["rows"][0]
    assert first["kind"] != "exact" or float(first["shown"]) >= first["epsilon"] * (1 - 2e-15)


PURE_RUNS = [
    "pure .5 --steps 4",
    "response 1 --steps 10",
    "scale 10 --steps 10",
    "pure .1 --steps 7",
]


@pytest.mark.parametrize("run", PURE_RUNS)
def test_no_theorem_is_shown_above_a_weaker_one_by_rounding(capsys, run):
    """At delta 0 pure steps lose the sum of their epsilons, by each of three theorems."""
    told = json.loads(said(capsys, f"epsilon --{run} --delta 0 --json"))
    shown = {r["name"]: float(r["shown"]) for r in told["rows"] if r["epsilon"] is not None}
    assert shown["exact"] == shown["optimal composition"] == shown["basic composition"]
    assert float(told["shown"]) == shown["exact"]


def test_a_calibrated_number_is_a_short_one_where_that_meets_the_target(capsys):
    for line, found in (("scale --steps 50", "50"), ("each --steps 10", "0.1")):
        assert json.loads(said(capsys, f"{line} --epsilon 1 --delta 0 --json"))["shown"] == found


def test_numbers_are_read_as_people_type_them():
    for text, (value, code) in TYPED.items():
        found = typed.number("rate", text)
        assert (float(found), repr(found)) == (value, code), text
        assert eval(code) == value and pickle.loads(pickle.dumps(found)).text == code
    for text in NO_NUMBERS:
        with pytest.raises(ValueError, match="^rate must be a number such as"):
            typed.number("rate", text)
    for text, meant in COMMAS.items():
        assert typed.meanings(text) == meant
        with pytest.raises(ValueError, match="^rate must be written without a comma"):
            typed.number("rate", text)


def test_what_is_shown_is_what_was_typed(capsys):
    line = "epsilon --sigma 1.10 --rate 256/60000 --steps 14_100 --delta 10^-5"
    text = said(capsys, line)
    assert "at delta = 1e-5" in text
    assert "dp.subsample(dp.gaussian(sigma=1.10), rate=256/60000)" in text
    assert "run.epsilon(delta=1e-5)" in text
    batches = "epsilon --sigma 1.1 --rows 60_000 --batch 256 --epochs 60 --delta 1e-5"
    assert "rate=256/60000)" in said(capsys, batches)
    assert "at delta = 0.00001" in said(capsys, "epsilon --sigma 2 --delta 0.00001")
    assert asked([WHOLE], delta=0.00001)["shown_delta"] == "1e-5"


@pytest.mark.parametrize(
    "sigma, rate, steps, delta",
    [(1.1, 256 / 60_000, 14_100, 1e-5), (4.0, 0.5, 100, 1e-5), (0.3, 0.01, 10, 1e-5)],
)
def test_the_remark_on_replacing_a_person_is_computed(sigma, rate, steps, delta):
    """It lies above the lower end, and below what two neighbours one after the other promise."""
    part = dict(mechanism="gaussian", sigma=sigma, rate=rate, steps=steps)
    answer = asked([part], delta)
    (remark,) = [text for text in answer["warnings"] if text.startswith("If a person may be")]
    shown, times = map(
        float, re.search(r"at most ([\d.]+) at the same δ, about ([\d.]+)", remark).groups()
    )
    low, high = (
        end.compose(steps).epsilon(delta) for end in in_practice.sampled_substitution(sigma, rate)
    )
    assert low <= high <= shown <= 1.01 * high and times == pytest.approx(
        shown / answer["answer"], rel=0.02
    )
    epsilon = dp.subsample(dp.gaussian(sigma), rate).compose(steps).epsilon(delta / 2)
    for _ in range(40):  # (2 e, (1 + exp(e)) d)-DP with d = delta / (1 + exp(e))
        spent = delta / (1 + np.exp(epsilon))
        epsilon = dp.subsample(dp.gaussian(sigma), rate).compose(steps).epsilon(spent)
    assert low <= 2 * epsilon
    for other in (
        dict(part, mechanism="laplace", scale=3.0),
        dict(part, rate=1.0),
        dict(part, sigma=0.05),
    ):
        assert questions.substitution({"parts": [other], "epsilon": 1.0, "delta": delta}) == ""


def gives_the_answer(answer):
    """The call to copy."""
    *lines, last = answer["call"].splitlines()
    names = {}
    exec("\n".join(lines), names)
    assert eval(last, names) == answer["answer"]


def test_the_largest_batch_for_so_many_people_and_epochs(capsys):
    line = "batch --sigma 1.1 --rows 6000 --epochs 10 --epsilon 3 --delta 1e-6"
    batch = int(re.match(r"batch = (\d+)\n", said(capsys, line))[1])

    def spent(batch):  # as many batches to an epoch as hold everybody once
        step, people = dp.subsample(dp.gaussian(1.1), batch / 6000), 6000
        return step.compose(10 * -(-people // batch)).epsilon(1e-6)

    def check(batch):
        assert spent(batch) <= 3 < spent(batch + 1)

    check(batch)
    for wrong in (batch // 2, batch + 1, 2 * batch):
        must_fail(check, wrong)
    assert "batch = 60\n" in said(capsys, line.replace("6000", "60").replace("1.1", "50"))


@pytest.mark.parametrize(
    "question, part, target",
    [
        ("noise", dict(mechanism="gaussian"), 0.001),
        ("noise", dict(mechanism="gaussian", rate=0.01, steps=10_000), 3.0),
        ("noise", dict(mechanism="laplace", steps=20), 1.0),
        ("noise", dict(mechanism="pure", steps=100), 1.0),
        ("rate", dict(mechanism="gaussian", sigma=1.1, steps=500), 2.0),
        ("steps", dict(mechanism="gaussian", sigma=5.0), 2.0),
    ],
)
def test_the_other_way_round_meets_the_target_and_nothing_better_does(question, part, target):
    answer = asked([part], question=question, epsilon=target)
    # the upper end of delta meets the target. That of epsilon is asked by another line: where noise
    # has atoms it is some 1e-9 above the least epsilon, so the lower end is what must not be above
    assert target * 0.9 < answer["low"] <= target and answer["sharp"]
    assert answer["epsilon"] == answer["high"]
    (known,) = answer["parts"]
    name = MECHANISMS[known["mechanism"]].parameter if question == "noise" else question
    assert answer["answer"] == known[name]
    gives_the_answer(answer)
    way = -1 if name in ("sigma", "scale") else 1  # what is less private
    step = 1 if question == "steps" else 1e-6 * known[name]
    assert asked([{**known, name: known[name] + way * step}])["answer"] > target
    assert way * float(answer["shown"]) <= way * answer["answer"]


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("question", ["epsilon", "delta"])
def test_the_call_to_copy_gives_the_answer(name, question):
    given = dict(delta=1e-6) if question == "epsilon" else dict(epsilon=0.5)
    gives_the_answer(questions.answers({"question": question, "parts": RUNS[name], **given}))


def test_the_call_to_copy_calibrates():
    rest = dict(mechanism="laplace", scale=20.0)
    gives_the_answer(asked([dict(), rest], question="noise", epsilon=1.0))


def test_the_curve_is_the_exact_one_below_the_moments():
    curve = questions.curve({"parts": [GAUSS]})
    run = dp.subsample(dp.gaussian(1.1), 0.00427).compose(14100)
    assert curve["exact"] == run.epsilon(np.array(curve["delta"])).tolist()
    assert (np.array(curve["renyi"]) >= curve["exact"]).all()
    orders = 1 + np.geomspace(0.02, 2000.0, 3000)[:, None]
    fine = dp.rdp_to_dp_improved(orders, run.renyi(orders), curve["delta"]).min(axis=0)
    assert curve["renyi"] == pytest.approx(fine, rel=2e-5)  # orders that are 1 percent apart


def test_the_curve_has_no_moments_where_all_may_leak():
    leak = dict(mechanism="approximate", epsilon=1.0, delta=1e-9)
    assert set(questions.curve({"parts": [leak]})["renyi"]) == {None}


@pytest.mark.parametrize(
    "value, places, rounding, text",
    [
        (2.0, 5, round, "2"),
        (0.0, 5, round, "0"),
        (1.23456789, 4, np.ceil, "1.235"),
        (1.23456789, 4, np.floor, "1.234"),
        (0.1, 10, np.ceil, "0.1"),
        (1.1, 13, np.floor, "1.1"),
        (2.918742356e-26, 5, np.ceil, "2.9188e-26"),
        (12345678.9, 5, round, "1.2346e+07"),
        (float("inf"), 5, round, "infinite"),
        (1e-300, 3, np.ceil, "1.00e-300"),
    ],
)
def test_digits(value, places, rounding, text):
    assert wording.digits(value, places, rounding) == text


BAD = [
    ("epsilon --sigma -1 --delta 1e-5", "sigma"),
    ("epsilon --sigma nan --delta 1e-5", "sigma"),
    ("epsilon --sigma x --delta 1e-5", "--sigma"),
    ("epsilon --sigma 1/0 --delta 1e-5", "--sigma"),
    ("epsilon --sigma 1e-9 --delta 1e-5", "sigma"),
    ("epsilon --sigma 1 --rate 2 --delta 1e-5", "rate"),
    ("epsilon --sigma 1 --rate 0 --delta 1e-5", "rate"),
    ("epsilon --sigma 1 --steps 1.5 --delta 1e-5", "steps"),
    ("epsilon --sigma 1 --steps 0 --delta 1e-5", "steps"),
    ("epsilon --sigma 1 --delta 7", "delta"),
    ("epsilon --sigma 1", "delta must be given"),
    ("epsilon --delta 1e-5", "--sigma, --scale"),
    ("epsilon --sigma 1 --scale 1 --delta 1e-5", "--sigma and --scale"),
    ("epsilon --pure 0 --delta 1e-5", "epsilon"),
    ("epsilon --approximate 1 2 --delta 1e-5", "leak"),
    ("delta --sigma 1", "epsilon must be given"),
    ("delta --sigma 1 --epsilon -1", "epsilon"),
    ("sigma --sigma 1 --epsilon 1 --delta 1e-5", "--sigma"),
    ("sigma --epsilon 1 --delta 0", "delta must be a number in (0, 1), got 0: at 0 Gaussian"),
    ("sigma --epsilon 1 --delta 1", "every mechanism meets the target"),
    ("steps --sigma 1 --steps 3 --epsilon 1 --delta 1e-5", "--steps"),
    ("steps --sigma 0.5 --epsilon 0.3 --delta 1e-9", "got 0.3: one step alone has this epsilon"),
    ("steps --scale .1 --epsilon .1 --delta 1e-5", "epsilon must be at least 10 at delta = 1e-5"),
    (
        "sigma --rate .01 --steps 1000 --epsilon 1e-9 --delta 1e-5",
        "sigma = 10000, the last that is computed",
    ),
    ("sigma --rate .01 --epsilon 1e8 --delta 1e-5", "epsilon must be at most 5303.4"),
    ("each --epsilon 1 --delta 1e-9 --then --approximate 1 1e-6", "delta must be larger, got 1e-9"),
    ("epsilon --sigma 1e9 --rate 0.1 --delta 1e-5", "sigma must be in [0.01, 10000], got 1e9"),
    ("epsilon --sigma 1e-9 --rate 0.1 --delta 1e-5", "sigma must be in [0.01, 10000], got 1e-9"),
    ("epsilon --sigma 1 --delta -1e-5", "delta must be a number in [0, 1], got -1e-5"),
    ("epsilon --sigma 1,5 --delta 1e-5", "without a comma (1.5?), got '1,5'"),
    ("epsilon --sigma 1,000 --delta 1e-5", "without a comma (1000 or 1.000?)"),
    ("epsilon --sigma 1 --delta 1e-5 --then", "--sigma, --scale"),
    ("epsilon --sigma 1 --delta 1e-5 --rows 0", "rows"),
    ("epsilon --sigma 1 --batch 5 --delta 1e-5", "rows must be given where batch is"),
    ("epsilon --sigma 1 --batch 5 --rows 4 --delta 1e-5", "batch"),
    ("epsilon --sigma 1 --batch 5 --rate 0.1 --rows 9 --delta 1e-5", "together with rate"),
    ("epsilon --sigma 1 --epochs 5 --rows 9 --delta 1e-5", "epochs"),
    ("rate --sigma 1 --batch 5 --epsilon 1 --delta 1e-5", "--batch: rate is what is asked"),
    ("rate --sigma 1 --rows 9 --epochs 5 --epsilon 1 --delta .1", "if batch is not asked for"),
    ("batch --sigma 1 --epochs 5 --epsilon 1 --delta 1e-5", "rows must be given"),
    ("batch --sigma 1 --rows 9 --epsilon 1 --delta 1e-5", "epochs must be given"),
    ("batch --sigma 1 --rows 9 --batch 5 --epochs 5 --epsilon 1 --delta .1", "--batch: batch is"),
    (
        "batch --sigma 1 --rows 900 --epochs 9 --epsilon .1 --delta 1e-6",
        "at least 0.55833 at delta = 1e-6, got .1: a batch of 1",
    ),
    ("risk --sigma 1 --fpr 1.5", "fpr must be a number in [0, 1], got 1.5"),
    ("risk --sigma 1 --fpr x", "--fpr"),
    ("risk --sigma 1 --delta 1e-5", "--delta: risk does not depend on it"),
    ("risk --sigma 1 --epsilon 1", "--epsilon: risk does not depend on it"),
    ("epsilon --sigma 1 --delta 1e-5 --fpr .1", "--fpr: epsilon does not depend on it"),
    ("prove --sigma 1 --batch 5 --delta 1e-5", "rows must be given where batch is"),
    ("nonsense --sigma 1", "question"),
    ("epsilon --sig 1 --delta 1e-5", "--sig"),
]


def test_without_a_question_there_are_examples(capsys):
    command_line.main([])
    assert "python -m dpnotes epsilon --sigma 1.1" in capsys.readouterr().out


def test_no_finite_epsilon_is_said_in_words(capsys):
    text = said(capsys, "epsilon --sigma 2 --delta 0")
    assert text.startswith("epsilon = infinite   (no finite epsilon holds at delta = 0)")
    assert "ask at a larger δ" in text and "e+304" not in text and "inf " not in text
    assert "by each theorem" not in text


def test_a_reader_who_has_seen_enough_is_no_error():
    command = [sys.executable, "-m", "dpnotes", "epsilon", "--sigma", "2", "--delta", "1e-5"]
    reading, writing = os.pipe()
    os.close(reading)  # nobody reads
    done = subprocess.run(command, stdout=writing, stderr=subprocess.PIPE, text=True)
    os.close(writing)
    assert done.stderr == "" and done.returncode == 0


@pytest.mark.parametrize("line, name", BAD)
def test_bad_input_is_one_line_that_names_the_argument(capsys, line, name):
    with pytest.raises(SystemExit) as stopped:
        command_line.main(line.split())
    out, err = capsys.readouterr()
    assert stopped.value.code == 2 and not out
    assert err.count("\n") == 1 and name in err, err


def test_help_teaches(capsys):
    with pytest.raises(SystemExit) as stopped:
        command_line.main(["--help"])
    text = capsys.readouterr().out
    assert stopped.value.code == 0
    examples = [line.split("-m dpnotes ")[1] for line in text.splitlines() if "-m dpnotes " in line]
    examples = [e for e in examples if not e.startswith("[")]
    assert len(examples) == 11
    for line in examples[:-1]:
        query, _, _ = command_line.read(line.split())
        assert query["parts"]
    with pytest.raises(SystemExit):
        command_line.main(["--version"])
    assert capsys.readouterr().out == f"dpnotes {dp.__version__}\n"


WHOLE_STEPS = "X-subsampled-pair T-19-minibatch"  # for sampled steps only
OTHER_NOISE = "A-moments-accountant F-3.22"  # for Gaussian steps only
LEAK = f"A-rdp-to-dp U-zcdp-to-dp U-plrv-gaussian {OTHER_NOISE} {WHOLE_STEPS}"
OWN = "U-advanced F-3.20 T-18"  # theorems that use some of delta themselves
SILENT = [  # a run, delta, the claims that say nothing of it
    ("sampled", 1e-6, "U-zcdp-to-dp F-3.22 X-subsampled-pair"),
    ("whole", 1e-6, f"F-3.22 {WHOLE_STEPS}"),
    ("laplace", 1e-6, f"{OTHER_NOISE} {WHOLE_STEPS}"),
    ("coin", 1e-6, OTHER_NOISE),
    ("leaky", 1e-6, LEAK),
    ("leaky", 5e-9, f"{LEAK} {OWN}"),  # the leaks are all of delta
    ("leaky", 4e-9, f"{LEAK} {OWN} X-dominating-pair X-optimal T-10"),
    ("mixed", 1e-6, f"{OTHER_NOISE} {WHOLE_STEPS} X-optimal F-3.20 T-18"),
    ("pure", 0.0, f"{LEAK} {OWN}"),
    ("whole", 0.0, f"{LEAK} {OWN} X-dominating-pair X-optimal T-10"),
    ("whole", 1.0, f"A-rdp-to-dp U-zcdp-to-dp {OTHER_NOISE} {WHOLE_STEPS} {OWN}"),
]


@pytest.mark.parametrize("name, delta, claims", SILENT, ids=lambda part: str(part)[:7])
def test_who_says_nothing_of_a_run(name, delta, claims):
    rows = asked(RUNS[name], delta)["rows"]
    assert len(rows) == 14
    assert {row["claim"] for row in rows if row["epsilon"] is None} == set(claims.split())
    assert all(row["why"] for row in rows if row["epsilon"] is None)
    assert not any(row["why"].startswith("not computed") for row in rows)


def test_what_is_refused_is_not_computed_and_a_bug_is_raised(monkeypatch):
    def row_of(fault):
        def theorem(case):
            return fault("sigma must be in [1, 2]")

        monkeypatch.setattr(theorems, "THEOREMS", [("name", "T-1", "page", theorem, "bound")])
        return theorems.table([Part("gaussian", 1.0)], 1e-6)[0]

    def bug(words):
        raise ValueError(words)

    theorem = row_of(lambda words: dp.gaussian(1e-300))
    assert theorem["epsilon"] is None and theorem["why"].startswith("not computed: sigma must be")
    with pytest.raises(ValueError, match="sigma must be"):
        row_of(bug)


def test_divergences_of_two_mechanisms_are_added_up():
    whole, twice = Part("gaussian", 20.0, steps=100), Part("gaussian", 9.0, steps=2)
    pure, coin = Part("pure", 0.1, steps=30), Part("response", 0.5, 0.01, steps=7)
    case, orders = theorems.Case([whole, twice], 1e-6), np.arange(2, 257)
    rho = 100 / (2 * 20.0**2) + 2 / (2 * 9.0**2)  # of Gaussians: the order times rho
    least = (orders * rho + np.log(1e6) / (orders - 1)).min()
    assert theorems.moments(case) == pytest.approx(least, rel=1e-12)
    assert theorems.zcdp(case) == pytest.approx(dp.zcdp_to_dp(rho, 1e-6), rel=1e-12)
    rho = 100 / (2 * 20.0**2) + 30 * 0.1**2 / 2
    rho += 7 * subsampling.amplification(0.5, 0.01)[0] ** 2 / 2
    found = theorems.zcdp(theorems.Case([whole, pure, coin], 1e-6))
    assert found == pytest.approx(dp.zcdp_to_dp(rho, 1e-6), rel=1e-12)
    textbook = gaussian.sigma_classical(1.0, 0.01) / 30 * 3
    case = theorems.Case([Part("gaussian", 30.0, steps=4), Part("gaussian", 30.0, steps=5)], 0.01)
    assert theorems.classical(case) == pytest.approx(textbook, rel=1e-12)


def test_equal_rounds_are_counted_and_others_listed_up_to_a_million():
    part = Part("pure", 1e-4, steps=10**6)
    for parts, rounds in (([Part("pure", 1e-4, steps=10**9)], 10**9), ([part], 10**6)):
        found = theorems.advanced(theorems.Case(parts, 1e-6))
        assert found == composition.advanced(1e-4, rounds, 1e-6)
    with pytest.raises(theorems.NotApplicable, match="up to a million rounds"):
        theorems.advanced(theorems.Case([part, Part("pure", 0.1)], 1e-6))


def test_a_share_of_delta_is_at_most_one():
    once = dict(mechanism="gaussian", sigma=3.0, rate=0.1)  # 1/0.1 for the step on all of the data
    assert row([once], "T-10", delta=1.0)["epsilon"] == 0.0


def test_delta_is_shared_among_the_steps_of_two_mechanisms():
    """Half of delta less the leaks is for the Gaussian steps, evenly, the rest for the theorem."""
    delta, leaky = 1e-6, dict(mechanism="approximate", epsilon=0.2, delta=1e-9, rate=0.5, steps=100)
    noise = dict(mechanism="gaussian", sigma=5.0, rate=0.5, steps=10)
    left = delta - 100 * 0.5 * 1e-9

    def amplified(share):
        one = dp.gaussian(5.0).epsilon(share * left / 10 / 0.5)
        return subsampling.amplification(one, 0.5)[0], subsampling.amplification(0.2, 0.5, 1e-9)[0]

    a, b = amplified(1.0)
    assert row([noise, leaky], "T-10")["epsilon"] == pytest.approx(10 * a + 100 * b, rel=1e-12)
    a, b = amplified(0.5)
    found = composition.advanced_heterogeneous([a] * 10 + [b] * 100, left / 2)
    assert row([noise, leaky], "U-advanced")["epsilon"] == pytest.approx(found, rel=1e-12)
    assert row([noise, leaky], "T-10", delta=5e-8)["epsilon"] is None  # nothing left for the noise


def test_a_query_is_looked_at_before_any_work():
    for query, message in (
        (dict(parts=None), "^parts must be"),
        (dict(parts=[{}], delta=0.1), "^sigma must be"),
        (dict(parts=[dict(mechanism="magic")], delta=0.1), "^mechanism must be"),
        (dict(), "^delta must be given"),
        (dict(question="noise", delta=0.1), "^epsilon must be given"),
        (dict(question="delta"), "^epsilon must be given"),
        (dict(question="delta", epsilon=[1.0]), "^epsilon must be a single number"),
    ):
        with pytest.raises(ValueError, match=message):
            questions.answers({"parts": [WHOLE], **query})
    assert asked([PURE], delta=0.0)["answer"] == pytest.approx(100.0, rel=1e-12)
    assert asked([WHOLE], delta=1.0)["answer"] == 0.0


def test_all_of_the_data_may_take_part_where_that_meets_the_target():
    part = dict(mechanism="gaussian", sigma=10.0)
    answer = asked([part], question="rate", epsilon=0.1, delta=0.02)
    assert answer["answer"] == answer["parts"][0]["rate"] == 1.0 and answer["shown"] == "1"
    with pytest.raises(ValueError, match="^epsilon must be at least 0.535"):
        asked([part], question="steps", epsilon=1e-3, delta=1e-9)


def test_batches_and_epochs_become_rate_and_steps():
    part = dict(mechanism="gaussian", sigma=1.1)
    answer = asked([dict(part, batch=512, epochs=20)], rows=50_000)
    (made,) = answer["parts"]
    assert (made["rate"], made["steps"]) == (512 / 50_000, 20 * 98)
    assert "rate 0.01024, 20 epochs are 1960 steps" in answer["warnings"][0]
    gives_the_answer(answer)
    (made,) = asked([dict(part, rate=0.02, epochs=2.5)], rows=50_000)["parts"]
    assert made["steps"] == 125


def test_delta_is_0_for_pure_steps_unless_said():
    answer = questions.answers({"parts": [PURE]})
    assert answer["delta"] == 0.0 and answer["answer"] == pytest.approx(100.0, rel=1e-12)
    with pytest.raises(ValueError, match="^delta must be given"):
        questions.answers({"parts": [PURE, WHOLE]})
    with pytest.raises(ValueError, match="^delta must be given"):
        questions.answers({"parts": [LEAKY]})


@pytest.mark.parametrize("line, found", [("scale --steps 5", 5.0), ("each --steps 5", 0.2)])
def test_pure_noise_for_a_pure_target(capsys, line, found):
    printed = json.loads(said(capsys, f"{line} --epsilon 1 --json"))
    assert printed["answer"] == pytest.approx(found, rel=1e-9)


def test_what_is_not_sharp_is_called_an_upper_end(capsys, monkeypatch):
    monkeypatch.setattr(questions, "SHARP", -1.0)  # as if no interval were sharp
    text = said(capsys, "epsilon --sigma 1.1 --rate 0.01 --steps 10 --delta 1e-5")
    assert text.startswith("epsilon is at most ") and " exact " not in text


def test_which_remarks_apply():
    whole, sampled, pure = Part("gaussian", 1.0), Part("gaussian", 1.0, 0.5), Part("pure", 1.0)

    def said(parts, epsilon=1.0, delta=1e-6, people=None):
        return wording.warnings(parts, epsilon, delta, people)

    remarks = wording.REMARKS
    assert said([pure]) == []
    assert said([pure], delta=1.1e-6) == [remarks["delta"]]
    assert said([pure], delta=1.1e-6, people=9) == []
    assert said([whole]) == said([pure, whole]) == [remarks["sensitivity"], remarks["float"]]
    assert said([sampled]) == [remarks[name] for name in ("poisson", "adjacency", "float")]
    assert said([pure], epsilon=10.0) == [] and "factor of 2.4e+04" in said([pure], 10.1)[0]
    assert "factor of 1e+304" in said([pure], 1e5)[0]
    assert said([pure], delta=1e-5, people=999) == []
    assert said([pure], 1, 1.9e-5, 50_000)[0].startswith("δ is 0.95 times 1/50000: somebody's")
    assert "with probability 1. Choose" in said([pure], 1, 0.01, 200)[0]


def test_what_a_line_is_read_as():
    def read(line):
        return command_line.read(line.split())[:2]

    assert read("epsilon --approximate 1/2 1e-9 --steps 3 --delta 1e-6 --rows 9") == (
        {
            "question": "epsilon",
            "parts": [{"mechanism": "approximate", "epsilon": 0.5, "delta": 1e-9, "steps": 3.0}],
            "delta": 1e-6,
            "rows": 9.0,
        },
        False,
    )
    later = "each --epsilon 1 --delta 1e-6 --then --response 2 --rate 1/4 --delta 1e-7 --json"
    coin = {"mechanism": "response", "epsilon": 2.0, "rate": 0.25}
    query = {"question": "noise", "parts": [{"mechanism": "pure"}, coin]}
    assert read(later) == (query | {"epsilon": 1.0, "delta": 1e-7}, True)
    query = {"question": "delta", "parts": [coin], "epsilon": 3.0}
    assert read("delta --response 2 --rate 0.25 --epsilon 3 --delta 0.5") == (query, False)
