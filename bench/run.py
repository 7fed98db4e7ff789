"""The exact accountant beside the accountants of the field: time and error, in one Markdown report.

    .venv/bin/python bench/run.py

Protocol: every library in an environment of its own under .bench/ (made when missing), driven as a
long-lived single-threaded worker (bench/peers.py). Per setting the workers are asked in turn, A B C
D A B C D ..., one turn to warm up and ROUNDS that count; the median is reported, in processor time
of the query alone. Who needs more than SLOW ms in the warm-up is timed by it alone. Errors are
relative to reference values computed beforehand by two independent methods, or, marked †, to the
middle of our certified interval. Unsafe is who reports less privacy loss than there is: less than
the reference, or †, than our lower end.
"""

import json
import os
import select
import statistics
import subprocess
import sys
from pathlib import Path

from settings import BOOK, CALIBRATIONS, CLOSED, CORNERS, HARD, ORDINARY, RARE, dpsgd

from attacks import attacks

HERE = Path(__file__).resolve().parent
ENVIRONMENTS = HERE.parent / ".bench"
ROUNDS, SLOW, LIMIT = 5, 1000, 240  # turns; ms; seconds, after which a worker is stopped
MOVED = {"noise", "delta"}
SCIENCE = ["numpy==2.4.6", "scipy==1.17.1"]
DP_ACCOUNTING = [["dp-accounting==0.6.0", *SCIENCE]]
OPACUS = [["torch==2.13.0", "opt-einsum==3.4.0", *SCIENCE], ["--no-deps", "opacus==1.6.0"]]
AUTODP = [["autodp==0.2.3.1", *SCIENCE]]
PEERS = {  # name: (environment, worker, import that must work, arguments of each call of pip)
    "dp-accounting PLD": ("dp-accounting", "dp_accounting_pld", "dp_accounting.pld", DP_ACCOUNTING),
    "dp-accounting RDP": ("dp-accounting", "dp_accounting_rdp", "dp_accounting.rdp", DP_ACCOUNTING),
    "Opacus PRV": ("opacus", "opacus_prv", "opacus.accountants", OPACUS),
    "autodp RDP": ("autodp", "autodp_rdp", "autodp", AUTODP),
    "riskcal": ("riskcal", "riskcal", "riskcal.accountants", [["riskcal==1.5.1", *SCIENCE]]),
}


class Worker:
    """One accountant in its own process; ``ask`` never raises and never hangs."""

    def __init__(self, python, name):
        self.command = [str(python), str(HERE / "peers.py"), name]
        self.process = None

    def start(self):
        one = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}
        self.process = subprocess.Popen(
            self.command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=os.environ | one,
            text=True,
        )
        self.read()

    def read(self):
        if select.select([self.process.stdout], [], [], LIMIT)[0]:
            line = self.process.stdout.readline()
            if line:
                return line
            why = "the process died"
        else:
            why = f"more than {LIMIT} s"
        self.stop()
        return json.dumps({"error": why, "ms": float("inf")})

    def ask(self, query):
        if self.process is None or self.process.poll() is not None:
            self.start()
        if self.process is None:
            return {"error": "does not start", "ms": float("inf")}
        print(json.dumps(query), file=self.process.stdin, flush=True)
        return json.loads(self.read())

    def stop(self):
        if self.process:
            self.process.kill()
            self.process.communicate()
        self.process = None


def environment(folder, module, calls):
    """The Python of an environment in which this module can be imported, made when missing."""
    python = ENVIRONMENTS / folder / "bin" / "python"
    if not python.exists():
        subprocess.run([sys.executable, "-m", "venv", python.parent.parent], check=True)
    if subprocess.run([python, "-c", f"import {module}"], capture_output=True).returncode:
        for arguments in calls:
            pip = [python, "-m", "pip", "install", "--quiet", *arguments]
            subprocess.run(pip, check=True, capture_output=True, text=True)
        subprocess.run([python, "-c", f"import {module}"], check=True, capture_output=True)
    return python


def installed(name):
    """The worker of a peer; None, and said, when its environment cannot be made."""
    folder, worker, *needs = PEERS[name]
    try:
        return Worker(environment(folder, *needs), worker)
    except subprocess.CalledProcessError as error:
        why = str(error.stderr or error).strip().splitlines()[-1]
        print(f"{name} could not be installed and is left out: {why}\n", flush=True)


def measure(workers, query):
    """{name: reply} with the median milliseconds of alternating turns.

    Each turn asks for slightly other parameters, so that no cache of answers is timed.
    """
    replies = {name: worker.ask(query) for name, worker in workers.items()}
    quick = [n for n, reply in replies.items() if "value" in reply and reply["ms"] < SLOW]
    times = {name: [] for name in quick}
    for turn in range(1, ROUNDS + 1):
        moved = {key: query[key] * (1 - 1e-9 * turn) for key in MOVED & query.keys()}
        for name in quick:
            times[name].append(workers[name].ask(query | moved)["ms"])
    for name in quick:
        replies[name]["ms"] = statistics.median(times[name])
    return replies


def relative(value, reference):
    return (value - reference) / reference if reference else float(value)


def judged(reply, ours, reference, floor):
    """(time over ours, relative error, whether less than ``floor`` is reported) or None."""
    if "value" in reply:
        value = reply["value"]
        return reply["ms"] / ours["ms"], relative(value, reference), value < floor * (1 - 1e-12)


def cell(reply, verdict):
    """`12× +3e-05`: time over ours and error; unsafe errors in bold."""
    if verdict is None:
        return "fails" if reply["error"] else "–"
    ratio, error, unsafe = verdict
    return f"{ratio:.3g}× " + (f"**{error:+.0e} unsafe**" if unsafe else f"{error:+.0e}")


def compare(title, settings, workers):
    """Prints a table; returns our milliseconds, and {peer: [(ratio, error, unsafe)]}."""
    peers = [name for name in workers if name != "dpnotes"]
    print(f"\n### {title}\n\n| setting | ε | ms | interval, rel. width | our error |", end="")
    print("".join(f" {name} |" for name in peers) + "\n|" + "---|" * (5 + len(peers)))
    times, known, failures = [], {name: [] for name in peers}, []
    for name, query, truth in settings:
        replies = measure(workers, query)
        failures += [f"{n}, {name}: {r['error']}" for n, r in replies.items() if r.get("error")]
        ours, (low, high) = replies["dpnotes"], enclosure(workers["dpnotes"], query)
        if "error" in ours:
            print(f"| {name} | fails |")
            continue
        reference, floor = ((low + high) / 2, low) if truth is None else (truth, truth)
        misses = "" if low <= reference * (1 + 1e-13) <= high * (1 + 2e-13) else " **misses**"
        error = "†" if truth is None else f"{relative(ours['value'], truth):+.0e}"
        row = f"| {name} | {ours['value']:.12g} | {ours['ms']:.2f} | {width(low, high):.0e}{misses}"
        verdicts = {peer: judged(replies[peer], ours, reference, floor) for peer in peers}
        cells = [cell(replies[peer], verdicts[peer]) for peer in peers]
        print(row + f" | {error} | " + " | ".join(cells) + " |", flush=True)
        times.append(ours["ms"])
        for peer in peers:
            known[peer] += [verdicts[peer]] if verdicts[peer] else []
    print("\n" + "\n".join(f"- {failure}" for failure in failures))
    return times, known


def enclosure(worker, query):
    return worker.ask(query | {"interval": True}).get("value", (0.0, float("inf")))


def width(low, high):
    return (high - low) / (high or 1)


def summary(times, known):
    """Medians over the ordinary settings."""
    print("| over the ordinary settings | median time ratio | least | worst error |", end="")
    print(" unsafe | answered |\n|---|---|---|---|---|---|")
    for peer, verdicts in known.items():
        if verdicts:
            ratios, errors, unsafe = zip(*verdicts, strict=True)
            print(f"| {peer} | {statistics.median(ratios):.3g}× | {min(ratios):.3g}× ", end="")
            print(f"| {max(errors, key=abs):+.0e} | {sum(unsafe)} ", end="")
            print(f"| {len(verdicts)} of {len(ORDINARY)} |")
    print(f"\nOurs: median {statistics.median(times):.2f} ms, most {max(times):.2f} ms.")


def against_rounds(workers):
    """The cost of k rounds of one DP-SGD step; who took 10 s is not asked for more."""
    print("\n### Cost against k: σ 1, r 0.001, δ 1e-6, milliseconds\n\n| k |", end="")
    print("".join(f" {name} |" for name in workers) + "\n|" + "---|" * (1 + len(workers)))
    asked = dict(workers)
    for power in range(2, 9):
        replies = measure(asked, dpsgd(1.0, 0.001, 10**power, 1e-6)[1])
        shown = [
            f"{replies[n]['ms']:.2f}" if "value" in replies.get(n, {}) else "–" for n in workers
        ]
        print(f"| 1e{power} | " + " | ".join(shown) + " |", flush=True)
        asked = {n: w for n, w in asked.items() if replies[n]["ms"] < 10_000}


def whole_curves(workers):
    """delta at 1,000 epsilons, everything from the build on, beside one query of ours. The
    peer's largest error is relative to our curve, where that is above 1e-12."""
    print("\n### Whole curves: δ at 1,000 ε from 0 to ε(1e-10), milliseconds\n")
    names = list(workers)
    print("| setting | one query |" + "".join(f" {name} |" for name in names) + " largest error |")
    print("|---|---|" + "---|" * (len(names) + 1))
    for name, query, _ in ORDINARY:
        one = workers["dpnotes"].ask(query | {"delta": 1e-10})
        curve = [one["value"] * i / 1000 for i in range(1000)]
        replies = {n: worker.ask(query | {"curve": curve}) for n, worker in workers.items()}
        ours, *others = (reply.get("value") for reply in replies.values())
        errors = [
            abs(b / a - 1)
            for other in others
            if other
            for a, b in zip(ours, other, strict=True)
            if a > 1e-12
        ]
        shown = "".join(f" {reply['ms']:.1f} |" for reply in replies.values())
        print(f"| {name} | {one['ms']:.1f} |{shown} {max(errors, default=0):.0e} |", flush=True)


def calibration(workers):
    """The least noise for a target."""
    print("\n### Calibration\n\n| target | library | noise | ms | relative error |")
    print("|---|---|---|---|---|")
    for name, query, truth in CALIBRATIONS:
        for library, reply in measure(workers, {"kind": "gaussian"} | query).items():
            shown = f"| {name} | {library} | "
            if "value" in reply:
                error = relative(reply["value"], truth)
                print(f"{shown}{reply['value']:.12g} | {reply['ms']:.2f} | {error:+.0e} |")
            else:
                print(f"{shown}fails: {reply['error']} |")


def import_time(statement):
    """Median processor seconds of an import in a fresh interpreter, after one to warm up."""
    code = f"import time; t = time.process_time(); {statement}; print(time.process_time() - t)"
    times = [
        float(subprocess.run([sys.executable, "-c", code], capture_output=True, check=True).stdout)
        for _ in range(8)
    ]
    return statistics.median(times[1:])


def corners(worker):
    """Where our own accountant takes more than 100 ms or is less certain than 1e-8."""
    print("\n### Corners: those over 100 ms or wider than 1e-8, one query each\n")
    print("| setting | ε | ms | interval, rel. width |\n|---|---|---|---|")
    slow = wide = 0
    for name, query, _ in CORNERS:
        reply, ends = worker.ask(query), enclosure(worker, query)
        slow += reply["ms"] > 100
        wide += not width(*ends) <= 1e-8
        if reply["ms"] > 100 or not width(*ends) <= 1e-8:
            value = reply.get("value", reply.get("error"))
            print(f"| {name} | {value} | {reply['ms']:.0f} | {width(*ends):.0e} |")
    print(f"\nOf {len(CORNERS)}, {slow} take more than 100 ms, {wide} are wider than 1e-8.")


def main():
    workers = {"dpnotes": Worker(sys.executable, "dpnotes")}
    workers |= {name: worker for name in PEERS if (worker := installed(name))}
    if "riskcal" in workers:  # it answers no other question
        attacks(measure, {name: workers[name] for name in ("dpnotes", "riskcal")})
        workers.pop("riskcal").stop()
    print("Cells: the peer's time over ours, and the relative error of its epsilon.")
    summary(*compare("Ordinary DP-SGD settings", ORDINARY, workers))
    compare("The table of the chapter accounting", BOOK, workers)
    compare("Closed forms", CLOSED, workers)
    compare("Hard ones", HARD, workers)
    compare("Rare sampling", RARE, workers)
    pair = {n: w for n, w in workers.items() if n in ("dpnotes", "dp-accounting PLD")}
    against_rounds(pair)
    whole_curves(pair)
    calibration(pair)
    all_of_it = import_time("import dpnotes")
    scipy = import_time("import numpy, scipy.special, scipy.optimize")
    print(f"\n`import dpnotes`: {all_of_it:.2f} s; NumPy and SciPy alone {scipy:.2f} s.")
    for room in (Path("accountant"), Path()):
        files = [*(HERE.parent / "dpnotes" / room).rglob("*.py")]
        lines = sum(len(file.read_text(encoding="utf-8").splitlines()) for file in files)
        print(f"`dpnotes/{room}`: {lines} lines in {len(files)} files.")
    corners(workers["dpnotes"])
    for worker in workers.values():
        worker.stop()


if __name__ == "__main__":
    main()
