"""Ask and judge in child processes, so that a crash or a runaway costs one row, and report."""

import multiprocessing as mp
import resource
import signal
import sys
import time
from collections import defaultdict
from multiprocessing.connection import wait

import numpy as np
from tqdm import tqdm

from .draws import draw
from .judge import Query, Verdict, ask, judge
from .mechanisms import rename
from .quadrature import OutOfTimeError

__all__ = ["attack", "report"]

ANSWER_SECONDS, ORACLE_SECONDS = 10, 10  # of processor time
PATIENCE = 9  # times as long by the clock, after which a child is ended
MOST_MEMORY = 4 * 2**30


class Runaway(BaseException):
    """A query that was stopped."""


def _limited(seconds, error):
    """Raise this error after so much processor time; 0 ends the watch."""

    def stop(*_):
        raise error

    signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)


def _child(pipe, tasks_seed):
    """Serve tasks (an index to draw, or a Query) until None comes."""
    import dpnotes as dp

    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    namespace = {"dp": dp, "inf": float("inf")}
    while (task := pipe.recv()) is not None:
        query = task if isinstance(task, Query) else draw(tasks_seed, task, namespace)()
        pipe.send(("asked", query))
        _limited(ANSWER_SECONDS, Runaway)
        try:
            verdict = ask(query, namespace)
        except Runaway:
            verdict = Verdict(query, misses=[f"timeout, {ANSWER_SECONDS} s allowed"])
        pipe.send(("answered", verdict))
        _limited(ORACLE_SECONDS, OutOfTimeError)
        try:
            judge(verdict)
        except OutOfTimeError:
            verdict.oracle = "none"
        except Exception as error:
            verdict.oracle = f"none: {type(error).__name__} {error}"
        _limited(0, OutOfTimeError)
        pipe.send(("judged", verdict))


class _Worker:
    """A child and what it is doing."""

    def __init__(self, seed):
        self.seed = seed
        self._start()

    def _start(self):
        self.pipe, end = mp.Pipe()
        self.process = mp.Process(target=_child, args=(end, self.seed), daemon=True)
        self.process.start()
        end.close()
        self.query = self.verdict = None

    def give(self, task):
        self.since, self.task, self.query, self.verdict = time.monotonic(), task, None, None
        self.pipe.send(task)

    def late(self):
        limit = ANSWER_SECONDS if self.verdict is None else ORACLE_SECONDS
        return time.monotonic() - self.since > PATIENCE * limit

    def restart(self, why):
        """End the child; what is known of its row."""
        self.process.kill()
        self.process.join()
        known, query = self.verdict, self.query
        self._start()
        if known is None and query is not None:
            known = Verdict(query, misses=[f"{why}, {ANSWER_SECONDS} s allowed"])
        return known


def attack(tasks, seed=1, processes=2, quiet=False):
    """Verdicts of all tasks, in the order in which they end."""
    tasks, verdicts, busy, idle = list(tasks), [], {}, []
    workers = [_Worker(seed) for _ in range(processes)]
    bar = tqdm(total=len(tasks), disable=quiet)
    tasks = iter(tasks)

    def feed(worker):
        task = next(tasks, None)
        if task is None:
            idle.append(worker)
        else:
            worker.give(task)
            busy[worker.pipe] = worker

    for worker in workers:
        feed(worker)
    while busy:
        done = []
        for pipe in wait(list(busy), timeout=0.5):
            worker = busy[pipe]
            try:
                word, what = pipe.recv()
            except EOFError:
                done.append((worker, worker.restart("crash")))
                continue
            worker.since = time.monotonic()
            if word == "asked":
                worker.query = what
            elif word == "answered":
                worker.verdict = what
            else:
                done.append((worker, what))
        done += [(w, w.restart("timeout")) for w in list(busy.values()) if w.late()]
        for worker, verdict in done:
            busy = {pipe: w for pipe, w in busy.items() if w is not worker}
            if verdict is not None:
                verdicts.append(verdict)
                if not quiet:
                    _print(verdict)
            bar.update()
            bar.set_postfix(misses=sum(bool(v.misses) for v in verdicts))
            feed(worker)
    bar.close()
    for worker in idle:
        worker.pipe.send(None)
        worker.process.join(5)
    return verdicts


def _print(verdict):
    """Each miss as a line to paste."""
    for miss in verdict.misses:
        tqdm.write(f"{verdict.query.code()}\n    # {verdict.oracle}: {miss}", file=sys.stdout)
        sys.stdout.flush()


def report(verdicts):
    """The table by class."""
    classes = defaultdict(list)
    for verdict in verdicts:
        classes[rename(verdict.query.parts)].append(verdict)
    head = ("class", "checks", "no oracle", "refused", "misses", "width p50", "> 1e-9")
    print(
        f"\n{head[0]:<22}"
        + "".join(f"{h:>11}" for h in (*head[1:], "s p50", "s p99", "s max", "MB max"))
    )
    for name in [*sorted(classes), "all"]:
        rows = verdicts if name == "all" else classes[name]
        width, seconds = (np.array([getattr(v, x) for v in rows]) for x in ("width", "seconds"))
        blind = sum(v.oracle.startswith("none") and not v.refused for v in rows)
        counts = (len(rows), blind, sum(v.refused for v in rows), sum(bool(v.misses) for v in rows))
        print(
            f"{name:<22}"
            + "".join(f"{c:>11}" for c in counts)
            + f"{np.median(width):>11.1e}{np.mean(width > 1e-9):>11.0%}"
            + "".join(f"{t:>11.3f}" for t in (*np.quantile(seconds, [0.5, 0.99]), seconds.max()))
            + f"{max(v.memory for v in rows):>11.0f}"
        )
    used = defaultdict(int)
    for verdict in verdicts:
        used[verdict.oracle] += 1
    loose = [sum(v.doubt > limit for v in verdicts) for limit in (1e-9, 1e-4, 1e-1)]
    print("\nverdicts by a delta known to no better than 1e-9, 1e-4, 1e-1 of itself:", *loose)
    print("oracles:", ", ".join(f"{name} {n}" for name, n in sorted(used.items())))
