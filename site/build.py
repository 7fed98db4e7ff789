"""Build the book, execute every page that is another one, and refuse what has a fault.

    python site/build.py                              the whole book into _build/
    python site/build.py --out DIR                    elsewhere: several builds can run at once
    python site/build.py --out DIR --pages pure-dp    some pages; links to others may dangle
    python site/build.py --anew                       executes every page, also what is kept

The exit code is 0 only if every cell ran, nothing warned, every formula is TeX, every executed
notebook is complete and no guard (`checks/guards.py`) found a fault.
"""

import argparse
import os
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import surroundings

surroundings.enter()  # before anything else is imported

import kernels
import notebooks
import ready
import sphinx_run
from checks import guards, licences
from run import offline, runtime
from surroundings import ROOT


def python_for_pages(root, wanted):
    """The lock of the Python that runs in pages, or None; and the reason, for the last line."""
    if not wanted:
        return None, "the build was asked to leave Python out."
    try:
        return runtime.prepare(root), ""
    except runtime.Unavailable as problem:
        return None, str(problem)


def build(root, out, pages, wanted, anew=False):
    """Build, then check; returns the faults, and why no cell runs in its page (or nothing)."""
    toc_path, files = sphinx_run.start_anew(root, out, pages)
    with notebooks.kept(root, out / notebooks.FOLDER, anew) as cache:
        with ThreadPoolExecutor() as meanwhile:
            python = meanwhile.submit(python_for_pages, root, wanted)
            failed = notebooks.execute_pages([root / name for name in files], cache)
        for path, error in failed.items():
            print(f"{path}: {error}", file=sys.stderr)
        lock, problem = python.result()
        modules = sorted(runtime.modules_of(lock, root)) if lock else ()
        # while Sphinx reads, it leaves one core free: the packages for the pages are compiled
        compiler = [sys.executable, "-m", "run.runtime"]
        compiling = subprocess.Popen(compiler, cwd=root / "site") if lock else None
        ended, faults = sphinx_run.run(root, out, toc_path, files, modules, partial=bool(pages))
        if compiling:
            compiling.wait()
    if not ended:
        return faults, problem
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
    with ready.alone():
        ready.install_node_modules(ROOT)
        ready.write_assignments(ROOT)
    with ready.owner_of(out):
        python = not options.without_python
        faults, problem = build(ROOT, out, options.pages, python, options.anew)
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
