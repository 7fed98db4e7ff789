"""Mark a folder of submissions: in parallel, resumable, the same table whenever it ends.

Each submission is read, run and tested in a process of its own, with a limit on memory and time: a
file that brings its process down costs its own student a flag and nobody else anything.
"""

import ctypes
import json
import os
import resource
import select
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path

from tqdm import tqdm

from . import by_hand, judge, late, marks, masters, report, sandbox, submissions
from .files import printable

FAILED = "not marked: the grader failed"
AGAIN = "marked again, alone: others kept the processors busy"
LARGEST = 64 * 2**20  # bytes of a result
LOG = 200_000  # characters
PR_SET_PDEATHSIG, SIGKILL = 1, 9


@dataclass(frozen=True)
class Options:
    """What an instructor may choose."""

    roster: dict = field(default_factory=dict)  # student -> name, of everyone in the course
    median: bool = False  # feedback shows the class median
    solutions: bool = False  # feedback shows the model answers
    late_rule: late.Rule = late.NO_RULE  # what lateness costs
    now: float | None = None  # the time on the feedback pages; None: the clock's
    part: tuple = (1, 1)  # (3, 40): only the third of forty parts is marked


def bounded(megabytes):
    """This process may take so much more memory, and dies with the one that started it."""
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, SIGKILL)
    size = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]  # the sandbox sets its own soft limit
    resource.setrlimit(resource.RLIMIT_AS, (size + megabytes * 2**20, hard))


def end_with(pipe):
    """End this process, and the sandbox with it, as soon as nobody waits for its result."""
    waiting = select.poll()
    waiting.register(pipe, 0)
    waiting.poll()
    os._exit(1)


def work(pipe, *task):
    """One submission, in a process of its own; whatever goes wrong is its own affair."""
    threading.Thread(target=end_with, args=[pipe], daemon=True).start()
    _, entry, limits, *_ = task
    bounded(limits.grader_mb)
    try:
        result = judge.grade_submission(*task)
    except BaseException as error:
        why = f"{type(error).__name__}: {error}"[:300]
        result = judge.make_result(entry[0], [FAILED, why], traceback.format_exc())
    result["log"] = result["log"][:LOG]
    with suppress(BrokenPipeError):  # it took too long: nobody waits for it any more
        pipe.send_bytes(json.dumps(result).encode("utf-8", "replace"))


def not_marked(student, reason):
    """The result of a submission that could not be marked."""
    return judge.make_result(student, [FAILED, reason])


def supervised(context, *task):
    """The result of `work`, or why there is none."""
    _, entry, limits, *_ = task
    ours, theirs = context.Pipe(duplex=False)
    child = context.Process(target=work, args=(theirs, *task))
    try:
        child.start()
    except (EOFError, OSError) as error:  # no memory or no processes left on this machine
        ours.close()
        return not_marked(entry[0], f"no process could be started ({type(error).__name__})")
    finally:
        theirs.close()
    start = time.monotonic()
    try:
        if not ours.poll(limits.wall_seconds()):
            return not_marked(entry[0], "reading and testing it took too long")
        return {**json.loads(ours.recv_bytes(LARGEST)), "seconds": time.monotonic() - start}
    except (EOFError, OSError, ValueError):
        child.join(1)
        return not_marked(entry[0], f"its process ended with {child.exitcode}")
    finally:
        ours.close()
        child.join(0.2)  # done, as a rule: then there is nothing to kill
        child.kill()
        child.join()


def place(path, folder, name):
    """Where a submission lies in the folder of the class, or an empty text: of a folder around that
    the course systems know nothing."""
    inner = submissions.class_folder(Path(folder), name)
    return printable(str(path.relative_to(inner))) if path else ""


def has_company(result, jobs, left):
    """Whether something was lost because others, perhaps of this class, were busy."""
    return result["late"] and jobs > 1 and len(left) > 1


def grade(name, folder, out, masters_folder, limits, jobs=2, launcher=sandbox.Bubblewrap,
          options=Options()):  # fmt: skip
    """Mark a folder; what an earlier run has finished is taken over.

    With `options.part` only a part is marked and no table written: the last run, of the whole,
    finds all parts in `out/results` and merges them.
    """
    path, out = Path(masters_folder) / f"{name}.md", Path(out).resolve()
    master, everyone = masters.read(path), submissions.numbered(folder, name)
    known = {student: (number, place(path, folder, name)) for student, path, _, number in everyone}
    number, parts = options.part
    entries = [entry[:3] for entry in everyone[number - 1 :: parts]]
    if launcher is sandbox.Bubblewrap:
        sandbox.check()
        sandbox.keep_out([path, Path(folder), out])
    report.claim(out, name)
    collected = marks.collect(out, master, list(known))  # complaints come first
    late.days(out, collected.students)
    fingerprints = {entry[0]: judge.fingerprint(path, entry[1], limits) for entry in entries}
    results = {s: r for s, f in fingerprints.items() if (r := report.remembered(out, s, f))}
    start_student = launcher(limits)
    gallery = out / by_hand.PICTURES
    context = get_context("forkserver")
    # what everyone is given is imported once, not for each submission; sandboxes can't keep what
    # they compile, so IPython is imported, too
    shell = ["IPython.core.magics", "IPython.core.completerlib"]
    context.set_forkserver_preload([judge.__name__, *shell, *masters.imported(master.given)])

    def mark(entry):
        return supervised(context, master, entry, limits, start_student, gallery)

    left = {entry[0]: entry for entry in entries if entry[0] not in results}
    with ThreadPoolExecutor(jobs) as pool:
        futures = [pool.submit(mark, entry) for entry in left.values()]
        bar = {"total": len(futures), "unit": "submission", "disable": None}
        for future in tqdm(as_completed(futures), **bar):
            result = future.result()
            if FAILED not in result["flags"] and not has_company(result, jobs, left):
                report.remember(out, result, fingerprints[result["student"]])
            results[result["student"]] = result
    for student in left:
        if has_company(results[student], jobs, left):  # now alone
            results[student] = mark(left[student])
            results[student]["log"] = f"{AGAIN}\n{results[student]['log']}"  # no flag: by chance
            if FAILED not in results[student]["flags"]:
                report.remember(out, results[student], fingerprints[student])
    for student, result in results.items():  # a lost submission has no marks yet
        result["number"], result["place"] = known[student]
        result["scores"] = {q.id: result["scores"].get(q.id) for q in master.questions}
    if parts == 1:
        collected = marks.collect(out, master, list(results))
        said = report.write_reports(out, master, list(results.values()), collected, options)
        print(*said, sep="\n", end="\n" * bool(said))
    return results
