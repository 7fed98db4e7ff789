"""Interactive figures of private training: the accountant's contour, accuracy against epsilon."""

import numpy as np

import dpnotes as dp
from dpnotes.accountant.total import Total
from dpnotes.chapters import erm
from dpnotes.chapters.erm import surveys

from .marks import at, dots, line, note, rule, stems
from .spec import Axis, Control, Panel, Slider, figure, say, says, table, ticks

LINES = (2.0, 4.0, 8.0, 12.0, 16.0, 20.0, 24.0)
SPACINGS = (16.0, 12.0, 10.0, 8.0, 6.0, 5.0, 4.0, 3.0, 2.0)
SHOWN, TOP = 40.0, 200.0
MILLIONTHS = -2.5, 5.5


def integrand(loss, epsilon, c, y):
    """Re exp(K(z) - epsilon z) / (z (z+1)) / 2 pi on the line z = c + iy, for y = 0, h, 2h, ..."""
    z = c + 1j * y
    height = loss.cumulant(c)[0] - epsilon * c + loss.along(c, y[1], len(y))[0]
    return (np.exp(height - 1j * epsilon * y) / (z * (z + 1))).real / (2 * np.pi)


def both_ways(half, sign=1):
    """What is known at y >= 0, for -y too."""
    return np.concatenate([sign * half[:0:-1], half])


CONTOUR_PANELS = [
    Panel(
        Axis("Re z", -4, 28, ticks(0, 8, 16, 24)),
        Axis("Im z = y", -SHOWN, SHOWN, ticks(-40, -20, 0, 20, 40)),
        [
            rule(x=at("lines", "c"), color=0),
            dots(at("where", "c", "h"), at("nodes", "c", "h"), color=1, size=3),
            note("poles", 0, "× ×", color="ink", anchor="middle"),
        ],
        share=0.36,
    ),
    Panel(
        Axis("y", -SHOWN, SHOWN, ticks(-40, -20, 0, 20, 40)),
        Axis("integrand, in millionths", *MILLIONTHS, ticks(-2, 0, 2, 4)),
        [
            rule(y=0, color="muted"),
            line("y", at("curves", "c"), color=0, label="integrand on the line"),
            stems(at("nodes", "c", "h"), at("heights", "c", "h"), color=1, width=1.4),
            dots(at("nodes", "c", "h"), at("heights", "c", "h"), color=1, size=3, label="nodes"),
        ],
        share=0.64,
    ),
]


def contour_tables(run, loss, epsilon):
    """Nodes, heights and a sentence for each line and step."""
    data = {name: [] for name in ("nodes", "where", "heights", "sentence")}
    for c in LINES:
        rows = {name: [] for name in data}
        for h in SPACINGS:
            node = h * np.arange(int(TOP / h) + 1)
            f = integrand(loss, epsilon, c, node)
            total, near = h * (2 * f.sum() - f[0]), node <= SHOWN
            rows["nodes"].append(table(both_ways(node[near], -1)))
            rows["where"].append([c] * (2 * int(near.sum()) - 1))
            rows["heights"].append(table(1e6 * both_ways(f[near]), 3))
            rows["sentence"].append(
                contour_sentence(total / run.delta(epsilon), 2 * near.sum() - 1)
            )
        for name, row in rows.items():
            data[name].append(row)
    return data


@figure
def contour_nodes():
    """The trapezoid rule on lines through the complex plane."""
    run = dp.subsample(dp.gaussian(4.0), 0.01).compose(10_000)
    epsilon, loss = run.epsilon(1e-5), Total(run._parts)
    y = np.linspace(0, SHOWN, 81)
    curves = [both_ways(integrand(loss, epsilon, c, y)) for c in LINES]
    data = contour_tables(run, loss, epsilon)
    return Slider(
        title="A contour and its nodes",
        alt="Left, the complex plane with poles at 0 and minus 1 and a vertical line with equally "
        "spaced nodes. Right, the integrand along this line with a stem at each node.",
        controls=[
            Control("c", "Place c of the line", [f"{c:g}" for c in LINES], LINES.index(16.0)),
            Control("h", "Step h between nodes", [f"{h:g}" for h in SPACINGS], SPACINGS.index(8.0)),
        ],
        panels=CONTOUR_PANELS,
        says="Line at c = {c}, step h = {h}: {sentence c h}",
        data={
            "lines": list(LINES),
            "poles": -0.5,
            "y": table(both_ways(y, -1)),
            "curves": table(1e6 * np.array(curves), span=MILLIONTHS),
            **data,
        },
    )


def contour_sentence(ratio, nodes):
    """How far the sum over the nodes is from delta = 1e-5."""
    excess = ratio - 1
    if excess < 1e-10:
        off = "right to ten digits"
    elif excess < 1:
        off = f"{say(excess, 2, percent=True)} too much"
    else:
        off = f"{say(ratio, 2)} times as much"
    total = f"{ratio:.6f}·10⁻⁵" if ratio < 10 else say(1e-5 * ratio)
    return (
        f"{nodes} nodes in the picture. The sum over all nodes is {total} instead of 10⁻⁵, {off}."
    )


# ---- accuracy against epsilon ----

LEARNERS = (
    ("on the optimum, logistic", erm.output_perturbation, erm.logistic_loss),
    ("in the objective, Huber hinge", erm.objective_perturbation, erm.huber_loss),
)
ROWS, SPLITS = (44, 88, 177, 354, 708), 40
BUDGETS = (0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4)


def accuracies(rows, fit):
    """Accuracy on 236 voters of fits to `rows` of the others, one for each split."""
    x, vote = surveys.voters()
    right = np.empty(SPLITS)
    for split in range(SPLITS):
        order = np.random.default_rng(split).permutation(len(vote))
        learn, judge = order[:rows], order[708:]
        right[split] = np.mean(x[judge] @ fit(x[learn], vote[learn]) * vote[judge] > 0)
    return right


def private(method, loss, rows, epsilon):
    """Accuracies of a private method."""
    rng = np.random.default_rng([rows, int(1000 * epsilon)])
    options = erm.public_options(method, rows, 8, epsilon=epsilon)
    return accuracies(rows, lambda *data: method(*data, loss=loss, rng=rng, **options).theta)


def optimum(x, vote):
    """The same without noise."""
    return erm.risk_minimum(x, vote, regularization=1e-3)


ANSWER, QUESTION = (at(name, "n", "epsilon") for name in ("answer", "question"))
ACCURACY_PANELS = [
    Panel(
        Axis("ε", 0.04, 8, ticks(0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 3.2, 6.4), log=True),
        Axis("accuracy on 236 other voters", 0, 1, ticks(0, 0.25, 0.5, 0.75, 1)),
        [
            rule(y=at("free", "n"), color="muted", dash="6 3", label="no privacy"),
            rule(y="majority", color="muted", dash="2 3", label="the larger party"),
            dots(at("left", "epsilon"), ANSWER, color=0, size=2.2, opacity=0.5),
            dots(at("right", "epsilon"), QUESTION, color=1, size=2.2, opacity=0.5),
            line("budgets", at("answer_mean", "n"), color=0, label=LEARNERS[0][0]),
            line("budgets", at("question_mean", "n"), color=1, label=LEARNERS[1][0]),
            dots(at("budgets", "epsilon"), at("answer_mean", "n", "epsilon"), color=0),
            dots(at("budgets", "epsilon"), at("question_mean", "n", "epsilon"), color=1),
        ],
    )
]


@figure
def erm_accuracy():
    """The budget and the number of rows: what counts is their product."""
    answer, question = (
        np.array([[private(method, loss, n, e) for e in BUDGETS] for n in ROWS])
        for _, method, loss in LEARNERS
    )
    free = np.array([accuracies(n, optimum).mean() for n in ROWS])
    majority = float(np.mean(surveys.voters()[1] < 0))
    budgets = np.array(BUDGETS)
    product = np.multiply.outer(ROWS, budgets)
    return Slider(
        title="Accuracy, epsilon and the number of rows",
        alt="Accuracy against epsilon on a logarithmic axis: the means of two private methods, "
        "which rise towards the dashed line without privacy. At the chosen epsilon each method has "
        "forty small dots, one a split: far apart where epsilon is small, close together where it "
        "is large.",
        controls=[
            Control("epsilon", "ε (pure)", [f"{e:g}" for e in BUDGETS], BUDGETS.index(0.2)),
            Control("n", "Voters n to learn from", [f"{n}" for n in ROWS], 3),
        ],
        panels=ACCURACY_PANELS,
        says="{n} voters at ε = {epsilon}, nε = {product n epsilon}: mean accuracy "
        "{say_answer n epsilon} with noise on the optimum, {say_question n epsilon} with noise in "
        "the objective, {say_free n} without noise.",
        data={
            "budgets": list(BUDGETS),
            "left": table(np.outer(budgets / 1.15, np.ones(SPLITS)), 3),
            "right": table(np.outer(budgets * 1.15, np.ones(SPLITS)), 3),
            "answer": table(answer, 3),
            "question": table(question, 3),
            "answer_mean": table(answer.mean(2)),
            "question_mean": table(question.mean(2)),
            "free": table(free),
            "majority": round(majority, 4),
            "product": says(product, 3),
            "say_answer": says(answer.mean(2)),
            "say_question": says(question.mean(2)),
            "say_free": says(free),
        },
    )
