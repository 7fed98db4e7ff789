"""Interactive figures of many answers: composition, sampling, Rényi orders."""

import numpy as np

import dpnotes as dp
from dpnotes.chapters import composition, renyi_dp, subsampling

from .marks import area, at, dots, line, rule
from .spec import Axis, Control, Panel, Slider, decades, each, figure, say, says, table, ticks, told

RACE_PANELS = [
    Panel(
        Axis("rounds k", 1, 10_000, decades(0, 4), log=True),
        Axis("ε of k rounds, each 0.1-DP", 0.05, 1000, decades(-1, 3), log=True),
        [
            rule(x=at("rounds", "k"), color="muted", dash="2 3"),
            line("rounds", "basic", color=0, label="basic"),
            line("rounds", at("advanced", "delta"), color=1, label="advanced, tight mean"),
            line("rounds", at("optimal", "delta"), color="ink", width=2.4, label="optimal"),
            dots(at("rounds", "k"), at("basic", "k"), color=0),
            dots(at("rounds", "k"), at("advanced", "delta", "k"), color=1),
            dots(at("rounds", "k"), at("optimal", "delta", "k"), color="ink"),
        ],
    )
]


def race_verdict(a, b, o):
    """Which of two bounds is smaller, and how far from the optimum."""
    better = f"{'Basic' if b <= a else 'Advanced'} is the smaller of the two"
    lost = min(a, b) / o - 1
    return better + (
        ", and optimal." if lost < 5e-4 else f", {say(lost, 2, percent=True)} above optimal."
    )


@figure
def composition_race():
    """Basic, advanced and optimal composition of rounds with epsilon 0.1."""
    rounds = np.unique(np.round(np.geomspace(1, 10_000, 37)).astype(int))
    slack, epsilon = 10.0 ** np.arange(-2, -13, -1), 0.1
    basic = epsilon * rounds
    advanced = np.array([composition.advanced(epsilon, rounds, d) for d in slack])
    best = each(lambda d, k: composition.optimal(epsilon, int(k), d), slack, rounds)

    return Slider(
        title="Basic, advanced and optimal composition",
        alt="Epsilon of the composition against the number of rounds, both on logarithmic axes: a "
        "straight line for basic composition, a flatter curve that starts higher for advanced, and "
        "the optimal curve below both. A vertical line marks the chosen number of rounds.",
        controls=[
            Control(
                "k", "Rounds k", [f"{k:,}" for k in rounds], int(np.searchsorted(rounds, 1000))
            ),
            Control("delta", "δ′ that may be spent", says(slack, 1), 4),
        ],
        panels=RACE_PANELS,
        says="With k = {k} and δ′ = {delta}: basic ε = {say_basic k}, "
        "advanced {say_advanced delta k}, optimal {say_optimal delta k}. {verdict delta k}",
        data={
            "rounds": rounds.tolist(),
            **told(basic=basic, advanced=advanced, optimal=best),
            "verdict": [
                [race_verdict(*row) for row in zip(a, basic, o, strict=True)]
                for a, o in zip(advanced, best, strict=True)
            ],
        },
    )


AMPLIFICATION_PANELS = [
    Panel(
        Axis("ε on the sample", 0.01, 12, decades(-2, 1), log=True),
        Axis("ε′ for all the data", 1e-6, 20, decades(-6, 1), log=True),
        [
            line("fine", "fine", color="muted", width=1.2, label="without sampling"),
            line("fine", at("straight", "rate"), color=1, dash="6 3", label="the guess r ε"),
            line("fine", at("curve", "rate"), color=0, width=2.2, label="ε′ = ln(1 + r(e^ε − 1))"),
            rule(x=at("epsilons", "epsilon"), color="muted", dash="2 3"),
            dots(at("epsilons", "epsilon"), at("after", "rate", "epsilon"), color=0, size=5.5),
        ],
    )
]


@figure
def amplification():
    """What sampling at a rate makes of an epsilon, and the guess rate times epsilon."""
    rate = np.array([1, 0.5, 0.2, 0.1, 0.05, 0.02, 0.01, 0.005, 0.002, 0.001, 1e-4])[::-1]
    epsilon = np.array(
        [0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 0.7, 1, 1.5, 2, 3, 4, 5, 6, 8, 10, 12]
    )
    fine = np.array(table(np.geomspace(0.01, 12, 61)))
    after, curve = (
        each(lambda r, e: subsampling.amplification(e, r)[0], rate, x) for x in (epsilon, fine)
    )
    guess = rate[:, None] * epsilon
    return Slider(
        title="Amplification by subsampling",
        alt="Epsilon after subsampling against epsilon before, on logarithmic axes. The curve "
        "starts along the dashed line, rate times epsilon, and bends up towards the line without "
        "sampling.",
        controls=[
            Control("rate", "Sampling rate r", says(rate, 1), int(np.searchsorted(rate, 0.01))),
            Control("epsilon", "ε on the sample", says(epsilon, 2), 8),
        ],
        panels=AMPLIFICATION_PANELS,
        says="At rate r = {rate}, ε = {epsilon} becomes ε′ = {say_after rate epsilon}. The guess "
        "is r ε = {say_guess rate epsilon}, and the truth {ratio rate epsilon} times as much.",
        data={
            "fine": fine.tolist(),
            "epsilons": table(epsilon),
            "straight": table(rate[:, None] * fine),
            "curve": table(curve),
            **told(after=after),
            "say_guess": says(guess),
            "ratio": says(after / guess),
        },
    )


SHOWN = 0, 3
SPENT, CLASSIC = at("spent", "k"), at("classic", "k")
ORDERS_PANELS = [
    Panel(
        Axis("order α", 2, 200, ticks(2, 5, 10, 20, 50, 100, 200), log=True),
        Axis("ε at δ = 10⁻⁵", *SHOWN, ticks(0, 0.5, 1, 1.5, 2, 2.5, 3)),
        [
            area("orders", 0, SPENT, color=2, label="spent: k D_α"),
            area("orders", SPENT, CLASSIC, color=1, label="price: ln(1/δ)/(α − 1)"),
            line("orders", CLASSIC, color=1, label="classic ε: the sum"),
            line("orders", at("improved", "k"), color=0, dash="6 3", label="improved"),
            rule(y=at("exact", "k"), color="ink", label="exact"),
            rule(x=at("orders", "order"), color="muted", dash="2 3"),
            dots(at("best", "k"), at("least", "k"), color="ink", size=4, label="best order"),
            dots(at("orders", "order"), at("classic", "k", "order"), color=1, size=5.5),
        ],
    )
]


@figure
def renyi_orders():
    """The classic conversion at each order: what was spent, and the price of the conversion."""
    steps = np.array([100, 300, 1000, 3000, 10_000, 30_000])
    order = np.unique(np.round(np.geomspace(2, 200, 45)).astype(int))
    delta = 1e-5
    step = dp.subsample(dp.gaussian(4.0), 0.01)
    curve = renyi_dp.sampled_curve(dp.gaussian(4.0).renyi(np.arange(2, 201)), 0.01)
    spent = steps[:, None] * curve[order - 2]
    classic = dp.rdp_to_dp(order, spent, delta)
    improved = dp.rdp_to_dp_improved(order, spent, delta)
    exact = np.array([step.compose(int(k)).epsilon(delta) for k in steps])
    best = classic.argmin(1)
    return Slider(
        title="From Rényi orders to epsilon",
        alt="Epsilon against the order of the Rényi divergence. Two areas lie on each other: the "
        "divergence of all steps, which rises with the order, and the price of the conversion, "
        "which falls. Their sum has a minimum, marked by a dot; the exact epsilon lies below it.",
        controls=[
            Control("order", "Order α", [f"{a}" for a in order], int(np.searchsorted(order, 8))),
            Control("k", "Steps k", [f"{k:,}" for k in steps], 4),
        ],
        panels=ORDERS_PANELS,
        says="{k} steps at α = {order}: {say_spent k order} spent and a price of "
        "{say_price order} make ε = {say_classic k order}. The best order here, {say_best k}, "
        "gives {say_least k}; exact is {say_exact k}.",
        data={
            "orders": order.tolist(),
            "spent": table(spent, span=SHOWN),
            "classic": table(classic, span=SHOWN),
            "improved": table(improved, span=SHOWN),
            "best": order[best].tolist(),
            **told(exact=exact, least=classic.min(1)),
            "say_spent": says(spent),
            "say_price": says(np.log(1 / delta) / (order - 1)),
            "say_classic": says(classic),
            "say_best": [f"{a}" for a in order[best]],
        },
    )  # fmt: skip
