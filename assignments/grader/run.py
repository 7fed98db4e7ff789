"""Mark a folder of submissions: in parallel, resumable, the same table whenever it ends."""

import traceback
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path

from tqdm import tqdm

from . import judge, masters, report, sandbox, submissions

FAILED = "not marked: the grader failed"


def work(master_path, entry, limits, cache_folder, unsafe):
    """One submission, in a worker process; whatever goes wrong is its own affair."""
    master = masters.read(master_path)
    try:
        return judge.mark(master, entry, limits, cache_folder, unsafe)
    except Exception as error:
        scores = {q.id: None for q in master.questions}
        flags, log = [FAILED, f"{type(error).__name__}: {error}"], traceback.format_exc()
        return {"student": entry[0], "file": "", "scores": scores, "messages": {}, "answers": {},
                "flags": flags, "log": log}  # fmt: skip


def grade(name, folder, out, masters_folder, limits, jobs=2, unsafe=False):
    """Mark a folder; what an earlier run has finished is taken over."""
    path, out = Path(masters_folder) / f"{name}.md", Path(out)
    master, entries = masters.read(path), submissions.find(folder, name)
    if not unsafe:
        sandbox.check()
        sandbox.keep_out([path, Path(folder), out])
    fingerprints = {entry[0]: judge.fingerprint(path, entry[1], limits) for entry in entries}
    results = {s: r for s, f in fingerprints.items() if (r := report.remembered(out, s, f))}
    waiting = [entry for entry in entries if entry[0] not in results]
    fonts = sandbox.font_cache(out / "fonts")
    with (
        ProcessPoolExecutor(jobs, get_context("spawn")) as pool,
        tqdm(total=len(entries), initial=len(results), unit="submission", disable=None) as bar,
    ):
        futures = {
            pool.submit(work, path, entry, limits, fonts, unsafe): entry[0] for entry in waiting
        }
        for future in as_completed(futures):
            result = future.result()
            if FAILED not in result["flags"]:
                report.remember(out, result, fingerprints[result["student"]])
            results[result["student"]] = result
            bar.update()
    report.everything(out, master, list(results.values()))
    return results
