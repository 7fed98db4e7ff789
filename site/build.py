"""Build the book, execute every page that is another one, and refuse what has a fault.

    python site/build.py                              the whole book into _build/
    python site/build.py --out DIR                    elsewhere: several builds can run at once
    python site/build.py --out DIR --pages pure-dp    some pages; links to others may dangle
    python site/build.py --anew                       executes every page, also what is kept

The exit code is 0 only if every cell ran, nothing warned, every formula is TeX, every executed
notebook is complete and no guard (`checks/guards.py`) found a fault.
"""

import argparse
import contextlib
import fcntl
import functools
import gc
import json
import os
import re
import shutil
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import surroundings

surroundings.enter()  # before anything else is imported

import yaml

import kernels
import notebooks
from checks import guards, licences
from run import offline, runtime
from surroundings import ROOT

ALWAYS = ("references",)
DANGLING = re.compile(
    r"label '.*' not found|undefined label|unknown document|equation not found|xref_missing"
    r"|term not in glossary|toctree contains reference|could not find bibtex key|No bibliography"
    r"|numfig format|cross-reference target not found"
)


class Tee:
    """A stream that passes text on and remembers it."""

    def __init__(self, stream):
        self.stream, self.text = stream, ""

    def write(self, text):
        self.text += text
        return self.stream.write(text)

    def __getattr__(self, name):
        return getattr(self.stream, name)


def has_node_modules(root):
    """Is every package of the lock there, in its version?"""

    def version(place):
        facts = root / place / "package.json"
        return json.loads(facts.read_text(encoding="utf-8"))["version"] if facts.exists() else None

    packages = json.loads((root / "package-lock.json").read_text(encoding="utf-8"))["packages"]
    return all(
        version(place) == facts["version"]
        for place, facts in packages.items()
        if place and not facts.get("optional")
    )


def install_node_modules(root):
    """`npm ci` with the venv's own Node, unless its result is there."""
    if has_node_modules(root):
        return
    tools = Path(sys.executable).parent
    npm = tools / "npm" if (tools / "npm").exists() else "npm"
    if subprocess.run([str(npm), "ci"], cwd=root).returncode:
        sys.exit("\nnpm could not install the tools of the site. Is there network? Run this again.")


def write_assignments(root):
    """The student versions of the assignments, unless all are there and newer than their makers.

    The masters are those of the variable ASSIGNMENTS, else those of the last build.
    """
    pages = root / "chapters" / "assignments"
    stamp, sign = pages / ".complete", pages / ".masters"
    last = sign.read_text(encoding="utf-8").splitlines()[0] if sign.exists() else ""
    folder = os.environ.get("ASSIGNMENTS") or last or "assignments"
    print(f"Assignments: the masters in {folder}")
    masters = sorted((root / folder).glob("*.md"))
    if not masters:
        if folder != "assignments":
            sys.exit(f"ASSIGNMENTS: there is no master in {folder}")
        return  # a book without assignments
    makers = [*masters, *(root / "assignments" / "grader").glob("*.py")]
    newest = max(path.stat().st_mtime for path in makers)
    old = not stamp.exists() or stamp.stat().st_mtime < newest
    count = len([path for path in pages.rglob("*.*") if path not in (stamp, sign)])
    if old or folder != last or count < 2 * len(masters):
        command = [sys.executable, "-m", "assignments.grader", "build", "--no-check"]
        command += ["--masters", folder]
        subprocess.run(command, cwd=root, check=True)
        stamp.touch()


@contextlib.contextmanager
def alone():
    """No other build of this tree is in here at the same time."""
    with (surroundings.OWN / "lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def partial_toc(root, toc, pages):
    """The table of contents cut down to the root, `pages` and what every page leans on.

    A page that is not listed yet, but lies in `chapters/`, comes last.
    """

    def cut(part):
        return [c for c in part["chapters"] if Path(c["file"]).name in {*pages, *ALWAYS}]

    parts = [dict(part, chapters=cut(part)) for part in toc["parts"] if cut(part)]
    listed = {Path(c["file"]).name for part in parts for c in part["chapters"]}
    drafts = sorted(set(pages) - listed - {Path(toc["root"]).name})
    for name in drafts:
        if not (root / "chapters" / f"{name}.md").exists():
            sys.exit(f"no such page: chapters/{name}.md")
    draft = {"caption": "Draft", "chapters": [{"file": f"chapters/{name}"} for name in drafts]}
    return {**toc, "parts": parts + ([draft] if drafts else [])}


def run_sphinx(root, out, toc_path, pages, strict, modules):
    """One clean Jupyter Book build; returns its status and its warnings."""
    import pybtex.plugin
    from jupyter_book.sphinx import build_sphinx

    pybtex.plugin.entry_points = functools.cache(pybtex.plugin.entry_points)  # it asks often
    gc.disable()  # the trees of all pages stay to the end, and would be searched again and again
    errors = Tee(sys.stderr)
    with contextlib.redirect_stderr(errors):
        status = build_sphinx(
            root, out / "html", path_config=root / "_config.yml", noconfig=True, freshenv=True,
            confoverrides={
                "external_toc_path": str(toc_path), "latex_individualpages": False,
                "include_patterns": pages, "run_modules": list(modules),
                "nb_execution_mode": "cache",
                "nb_execution_cache_path": str(out / notebooks.FOLDER),
            },
            warningiserror=strict, keep_going=True,
        )  # fmt: skip
    plain = re.sub(r"\x1b\[[0-9;]*m", "", errors.text)
    return status, [
        line for line in plain.splitlines() if re.search(r"\b(WARNING|ERROR|CRITICAL)\b", line)
    ]


def python_for_pages(root, wanted):
    """The lock of the Python that runs in pages, or None; and the reason, for the last line."""
    if not wanted:
        return None, "the build was asked to leave Python out."
    try:
        return runtime.prepare(root), ""
    except runtime.Unavailable as problem:
        return None, str(problem)


def start_anew(root, out, pages):
    """An empty folder with a table of contents; returns the path of that and the pages' files."""
    for folder in ("html", ".doctrees", "jupyter_execute"):
        shutil.rmtree(out / folder, ignore_errors=True)
    out.mkdir(parents=True, exist_ok=True)
    toc = yaml.safe_load((root / "_toc.yml").read_text(encoding="utf-8"))
    used = partial_toc(root, toc, pages) if pages else toc
    toc_path = out / "toc.yml"
    toc_path.write_text(yaml.safe_dump(used), encoding="utf-8")
    parts = used.get("parts", [])
    listed = [used["root"], *(c["file"] for part in parts for c in part["chapters"])]
    return toc_path, [f"{name}.md" for name in listed]


def build(root, out, pages, wanted, anew=False):
    """Build, then check; returns the faults, and why no cell runs in its page (or nothing)."""
    toc_path, files = start_anew(root, out, pages)
    with notebooks.kept(root, out / notebooks.FOLDER, anew) as cache:
        with ThreadPoolExecutor() as meanwhile:
            python = meanwhile.submit(python_for_pages, root, wanted)
            notebooks.execute_pages([root / name for name in files], cache)
        lock, problem = python.result()
        modules = sorted(runtime.modules_of(lock, root)) if lock else ()
        # while Sphinx reads, it leaves one core free: the packages for the pages are compiled
        compiler = [sys.executable, "-m", "run.runtime"]
        compiling = subprocess.Popen(compiler, cwd=root / "site") if lock else None
        status, warnings = run_sphinx(root, out, toc_path, files, not pages, modules)
        if compiling:
            compiling.wait()
    faults = [w for w in warnings if not (pages and DANGLING.search(w))]
    if status and not pages and not faults:
        faults.append(f"the build failed: {status}")
    if isinstance(status, Exception):
        return [f"the build stopped: {status}\n{status.__cause__ or ''}"], problem
    runtime.install(out / "html", lock, root)
    licences.write(out / "html")
    offline.write_service_worker(out / "html")
    faults += licences.unowned(out / "html")
    faults += notebooks.complete(out / "jupyter_execute", cache)
    return faults + guards.check_site(out / "html", partial=bool(pages)), problem


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description="Build the book.")
    parser.add_argument(
        "--out", type=Path, default=ROOT / "_build", help="where the result goes (default: _build)"
    )
    parser.add_argument(
        "--pages", nargs="+", default=[], help="names of the pages to build (default: all)"
    )
    parser.add_argument(
        "--without-python", action="store_true", help="leave out the Python that runs in the pages"
    )
    parser.add_argument("--anew", action="store_true", help="execute every page again")
    options = parser.parse_args()
    start, out = time.time(), options.out.resolve()
    if kernels.COPIES:
        kernels.warm_process(os.getpid())  # it imports while the rest is made ready
    with alone():
        install_node_modules(ROOT)
        write_assignments(ROOT)
    faults, problem = build(ROOT, out, options.pages, not options.without_python, options.anew)
    if faults:
        print(
            f"\n{len(faults)} fault(s):",
            *(f"  {fault}" for fault in faults),
            sep="\n",
            file=sys.stderr,
        )
        sys.exit(1)
    print(f"\nBuilt in {time.time() - start:.0f} s. Open {out / 'html' / 'index.html'}")
    if problem:
        print(f"Its cells do not run in the page: {problem}")


if __name__ == "__main__":
    main()
