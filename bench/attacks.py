"""The best attack's true positives beside riskcal, a part of the report of run.py."""

from settings import ATTACKS


def attacks(measure, workers):
    """True positives of the best attack; the difference is that of the two numbers."""
    print("\n### Attacks: true positives at a rate of false alarms\n")
    print("| run | riskcal, ms | ours, ms | times | ours | riskcal less ours |")
    print("|---|---|---|---|---|---|")
    for name, query in ATTACKS:
        ours, other = measure(workers, query).values()
        if "value" not in other:
            print(f"| {name} | fails: {other['error']} | | | {ours['value']:.6g} | |")
            continue
        milliseconds = f"{other['ms']:.1f} | {ours['ms']:.1f} | {other['ms'] / ours['ms']:.1f}"
        less = other["value"] - ours["value"]
        print(f"| {name} | {milliseconds} | {ours['value']:.6g} | {less:+.1e} |", flush=True)
