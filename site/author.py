"""One page, shown while it is written: `make page P=pure-dp`.

    .venv/bin/python site/author.py pure-dp --out _build/page/pure-dp --port 8001

Each save is shown by the browser: a sentence at once, code when the page has run. Then the page's
rules are checked, and whatever must be mended is said in red, with what to do. Its claims are
tested at the start, and when `dpnotes`, the ledger or their tests are saved.
"""

import argparse
import functools
import importlib
import multiprocessing
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import surroundings

surroundings.enter()  # before anything else is imported

import yaml

import build
import kernels
import notebooks
import ready
import sphinx_run
from checks import guards, lint
from live import serve
from run import runtime
from surroundings import ROOT, files_of

SLEEP = 0.2  # seconds between two looks at the files
RED, PLAIN = ("\x1b[31m", "\x1b[0m") if sys.stdout.isatty() else ("", "")


def import_all():
    """What a run of Sphinx imports: a copy of this process does not wait for it."""
    from jupyter_book.config import get_default_sphinx_config

    own = yaml.safe_load((ROOT / "_config.yml").read_text(encoding="utf-8"))["sphinx"]
    usual = get_default_sphinx_config()["extensions"]
    for name in (*usual, *own["extra_extensions"], *own["local_extensions"], "sphinx_book_theme"):
        importlib.import_module(name)
    modules()


@functools.cache
def modules():
    """What the Python in pages can import."""
    return sorted(runtime.modules_of(runtime.read_lock()))


def write_into(log):
    """What this process and its children say goes into a file."""
    with log.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)


def in_copy(function, out, page):
    """What the function returns, called in a copy of this process: what it changes is forgotten."""
    context = multiprocessing.get_context("fork" if kernels.COPIES else "spawn")
    with ProcessPoolExecutor(1, context, write_into, (out / "log",)) as pool:
        return pool.submit(function, out, page).result()


def say(fault, advice="", more=0):
    """The first thing to mend, in red, and how."""
    print(f"{RED}{fault}{PLAIN}", *filter(None, [advice]), sep="\n  ", flush=True)
    if more:
        print(f"  ({more} more after this)", flush=True)


def moments(*places):
    """When each file was saved."""
    files = [
        file for place in places for file in ([place] if place.is_file() else place.rglob("*"))
    ]
    return {
        file: file.stat().st_mtime_ns
        for file in files
        if file.suffix in (".md", ".py", ".yml", ".bib", ".css", ".js", ".mjs", ".json", ".csv")
    }


def first(out, page):
    """The page and what it leans on, from the start; returns the faults."""
    return build.build(ROOT, out, [page], wanted=True)[0]


def again(out, page):
    """The page alone, read and written after a save and put where the browser finds it."""
    toc, new, shown = out / "toc.yml", out / "again" / "html", out / "html"
    names = files_of(yaml.safe_load(toc.read_text(encoding="utf-8")))
    files = [f"{name}.md" for name in names]
    known = modules() if (shown / "_run" / "pyodide").exists() else ()
    shutil.rmtree(new.parent, ignore_errors=True)
    shutil.copytree(out / "jupyter_execute", new.parent / "jupyter_execute")
    ended, faults = sphinx_run.run(ROOT, out, toc, files, known, True, f"chapters/{page}.md")
    if ended:
        for part in ("_run", "_images", "chapters"):
            if (new / part).exists():
                shutil.copytree(new / part, shown / part, dirs_exist_ok=True)
    return faults


def executed(out, page):
    """Does every cell of the page run? Only what is another page than before is executed."""
    path = ROOT / "chapters" / f"{page}.md"
    with notebooks.kept(ROOT, out / notebooks.FOLDER) as cache:
        failed = notebooks.execute_pages([path], cache)
    for error in failed.values():
        plain = re.sub(r"\x1b\[[0-9;]*m", "", str(error))
        lines = [line for line in plain.splitlines() if line.strip("- ")]
        say(f"{page}: {lines[-1]}", f"Mend the cell that begins with `{lines[1]}`, and save.")
    return not failed


def broken_rules(page):
    """(what is wrong, the rule) for each rule of `checks/lint.py` that the page breaks."""
    source = lint.Page.read(ROOT / "chapters" / f"{page}.md")
    return [
        (fault, " ".join(rule.__doc__.split())) for rule in lint.RULES for fault in rule(source)
    ]


class Tests:
    """Tests that run beside; only the newest run counts."""

    def __init__(self, what, out, *arguments):
        self.what, self.process = what, None
        self.command = [sys.executable, "-m", "pytest", "-qx", "-n", "0", "--tb=short", *arguments]
        self.surroundings = {**os.environ, "DPNOTES_SITE": str(out / "html")}

    def start(self):
        """Instead of the run before."""
        self.stop()
        self.process = subprocess.Popen(
            self.command, cwd=ROOT, env=self.surroundings, text=True, encoding="utf-8",
            stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        )  # fmt: skip

    def stop(self):
        """Nobody waits for it any more."""
        if self.process:
            self.process.kill()
            self.process.communicate()
            self.process = None

    def report(self):
        """Once, when the run has ended: that all is well, or the first test that failed."""
        if not self.process or self.process.poll() is None:
            return
        lines = self.process.communicate()[0].splitlines()
        if self.process.returncode in (0, 5):  # 5: there are none
            print(f"  {self.what}: well", flush=True)
        else:
            why = next((line[1:].strip() for line in lines if line.startswith("E  ")), lines[-1])
            test = next((line.split()[1] for line in lines if line.startswith("FAILED ")), "")
            say(f"{self.what}: {why}", f"Asked by {test}: mend what it names, and save.")
        self.process = None


def tests_of(out, page):
    """Of the page's claims, and of its text as a part of the ledger and of the course."""
    claims = sorted((ROOT / "tests" / "claims").glob(f"test_{page.replace('-', '_')}*.py"))
    text = [f"tests/site/test_{name}.py" for name in ("ledger", "course", "pages")]
    chosen = f"({page} or test_ledger or hint or questions or plan) and not evidence and not rule"
    return (
        Tests("claims", out, "-m", "not thorough", *map(str, claims)),
        Tests("ledger and course", out, "-k", chosen, *text),
    )


def show(out, page, begin):
    """What was saved, to the browser; then the first thing to mend."""
    start = time.monotonic()
    if begin is again and not executed(out, page):
        return
    faults = [(fault, "Mend it there, and save.") for fault in in_copy(begin, out, page)]
    print(f"shown after {time.monotonic() - start:.1f} s", flush=True)
    if begin is again:
        found = guards.check_site(out / "again" / "html", partial=True)
        faults += [(fault, "Mend it there, and save.") for fault in found]
    faults += broken_rules(page)
    if faults:
        say(*faults[0], more=len(faults) - 1)


def watch(out, page, places, seen, tests):
    """Show each save of the page; returns when something else was saved, which begins anew."""
    _, text = tests
    while True:
        time.sleep(SLEEP)
        now = moments(*places)
        changed = {file for file in {*seen, *now} if seen.get(file) != now.get(file)}
        if changed - {ROOT / "chapters" / f"{page}.md"}:
            return print("saved:", *sorted(file.name for file in changed))
        if changed:
            show(out, page, again)
            text.start()
        for run in tests:
            run.report()
        seen = now


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description="Show one page while it is written.")
    parser.add_argument("page", help="its name, as pure-dp")
    parser.add_argument("--out", type=Path, help="a folder of its own (_build/page/PAGE)")
    parser.add_argument("--port", type=int, default=8001)
    options = parser.parse_args()
    page = options.page
    out = (options.out or ROOT / "_build" / "page" / page).resolve()
    if not (ROOT / "chapters" / f"{page}.md").exists():
        names = sorted(path.stem for path in (ROOT / "chapters").glob("*.md"))
        sys.exit(f"There is no page {page!r}. There are: {', '.join(names)}.")
    warm = kernels.warm_process(os.getpid()) if kernels.COPIES else None
    with ready.alone():
        ready.install_node_modules(ROOT)
        ready.write_assignments(ROOT)
    with ready.owner_of(out):
        show_each_save(out, page, options.port, warm)
    os.execv(sys.executable, [sys.executable, *sys.argv])  # what was imported is another one


def show_each_save(out, page, port, warm):
    """Until something else than the page was saved."""
    import_all()
    (out / "html").mkdir(parents=True, exist_ok=True)
    address = serve(out / "html", port)
    tests = tests_of(out, page)
    names = ("chapters", "dpnotes", "ledger", "site", "tests/claims", "_toc.yml", "_config.yml")
    places = [ROOT / name for name in names]
    seen = moments(*places)  # what is saved while the first build runs is shown after it
    try:
        show(out, page, first)
        print(f"{address}/chapters/{page}.html shows each save. End: Ctrl-C")
        for run in tests:
            run.start()
        watch(out, page, places, seen, tests)
    except KeyboardInterrupt:
        sys.exit(0)
    finally:
        for run in tests:
            run.stop()
        if warm:
            warm.communicate()


if __name__ == "__main__":
    main()
