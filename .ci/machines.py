#!/usr/bin/env python3
"""Do the two commands work on the machines that people have? A row a case; the table is printed.

    .ci/machines.py                all rows (some forty minutes on two cores)
    .ci/machines.py umask python   the rows whose names hold one of these words

Each row takes a tree as `git archive` gives it, and does what README says, with one page and a few
tests of each folder in place of all. Namespaces (bubblewrap) hide programs and hosts.
"""

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ".venv/bin/python site/build.py --out _build --pages pure-dp"
TESTS = """.venv/bin/python -m pytest -q -n 0 tests/claims/test_pure_dp.py
    tests/package/test_divergences.py tests/site/test_runtime.py tests/grading/test_session.py"""
INSTALL = "make .venv/.installed"
WHOLE = " && ".join([INSTALL, PAGE, " ".join(TESTS.split())])
SETTINGS = """export HOME="$PWD/home"
mkdir -p "$HOME/.config/matplotlib" "$HOME/.ipython/profile_default/startup" build/lib
echo 'text.usetex: True' > "$HOME/.config/matplotlib/matplotlibrc"
echo 'raise SystemExit' > "$HOME/.ipython/profile_default/startup/0.py"
echo 'import os, sys' > build/lib/old.py
"""
HOSTILE = {
    "MPLBACKEND": "TkAgg", "PYTHONSTARTUP": "/nowhere", "PYTHONPATH": "/nowhere",
    "JUPYTER_PATH": "/nowhere", "LANG": "de_DE.ISO-8859-1",
}  # fmt: skip


def tree(folder):
    """The tracked files of HEAD in a new folder, without .git."""
    folder.mkdir(parents=True)
    archive = subprocess.run(["git", "archive", "HEAD"], cwd=ROOT, check=True, capture_output=True)
    subprocess.run(["tar", "x", "-C", folder], input=archive.stdout, check=True)
    return folder


def run(command, folder, *, inside=(), until=None, **settings):
    """Run a shell command in the folder; interrupt it as soon as `until` holds there."""
    with (folder / "log.txt").open("a") as log:
        process = subprocess.Popen(
            [*inside, "bash", "-c", command], cwd=folder, stdout=log, stderr=log,
            start_new_session=True, env={**os.environ, **settings},
        )  # fmt: skip
    while process.poll() is None and not (until and until(folder)):
        time.sleep(0.05)
    if process.poll() is None:
        os.killpg(process.pid, signal.SIGINT)
    return process.wait()


def hidden(*programs):
    """Prefix of a command that does not find these programs."""
    paths = [path for name in programs if (path := shutil.which(name))]
    return [
        "bwrap",
        "--dev-bind",
        "/",
        "/",
        *[w for p in paths for w in ("--bind", "/dev/null", p)],
    ]


def without_network():
    return ["bwrap", "--dev-bind", "/", "/", "--unshare-net"]


def without_server(folder):
    """Pyodide's server has no address."""
    (folder / "hosts").write_text("127.0.0.1 localhost\n0.0.0.0 cdn.jsdelivr.net\n")
    return ["bwrap", "--dev-bind", "/", "/", "--ro-bind", str(folder / "hosts"), "/etc/hosts"]


def interrupted(step, until):
    """A row: the step is interrupted, then everything is done."""

    def row(folder):
        run(step, folder, until=until)
        return run(WHOLE, folder)

    return row


def at_once(folder):
    """Two builds into different folders, one of them inside the checkout."""
    run(INSTALL, folder)
    both = [f"{PAGE} --out {name}" for name in ("_build", "second")]
    return run(f"{both[0]} & first=$!; {both[1]} && wait $first", folder)


def twice(folder):
    """The second time there is no network."""
    return run(WHOLE, folder) or run(WHOLE, folder, inside=without_network())


def no_python_for_pages(folder):
    """Neither source answers: installed before, with an empty cache."""
    run(f"{INSTALL} && .venv/bin/npm ci", folder)
    code = run(WHOLE, folder, inside=without_network(), DPNOTES_CACHE=str(folder / "empty"))
    return code or "Its cells do not run" not in (folder / "log.txt").read_text()


def package(*versions):
    """A row: the package alone, by the number that README prints last, with these versions."""
    code = "from dpnotes.chapters import composition as c; import dpnotes, sys; "
    code += "sys.exit(abs(c.advanced(epsilon=0.1, k=100, delta_prime=1e-6) - 5.756105519) > 1e-9 "
    code += "or dpnotes.gaussian(sigma=1.0).epsilon(delta=1e-5) < 4)"
    install = f"python3 -m venv p && p/bin/pip install -q . {' '.join(versions)}"
    return lambda folder: run(f"{install} && cd p && bin/python -c '{code}'", folder)


def another_user(folder):
    """Not root, with rights for nobody else, and the plainest locale."""
    shutil.chown(folder, "nobody")
    subprocess.run(["chown", "-R", "nobody", folder], check=True)
    inside = ["setpriv", "--reuid=nobody", "--clear-groups", "env", f"HOME={folder}"]
    return run(f"umask 077 && {WHOLE}", folder, inside=inside, LANG="C", LC_ALL="C")


ROWS = {
    "a path with spaces and umlauts": lambda f: run(WHOLE, f),
    "another user, umask 077, LANG=C": another_user,
    **{
        f"Python {v}": lambda f, v=v: run(WHOLE.replace("make", f"make PYTHON=python{v}", 1), f)
        for v in ("3.11", "3.12", "3.13")
    },
    "interrupted: venv": interrupted(INSTALL, lambda f: (f / ".venv/bin/python").exists()),
    "interrupted: install": interrupted(INSTALL, lambda f: (f / ".venv/bin/uv").exists()),
    "interrupted: notebooks": interrupted(
        f"{INSTALL} && {PAGE}", lambda f: (f / "_build/.jupyter_cache").exists()
    ),
    "interrupted: Sphinx": interrupted(
        f"{INSTALL} && {PAGE}", lambda f: (f / "_build/.doctrees").exists()
    ),
    "no Chromium, no bubblewrap": lambda f: run(WHOLE, f, inside=hidden("chromium", "bwrap")),
    "Pyodide's server shut out, empty cache": lambda f: run(
        WHOLE, f, inside=without_server(f), DPNOTES_CACHE=str(f / "empty")
    ),
    "no source of Python for pages": no_python_for_pages,
    "again without network": twice,
    "two builds at once": at_once,
    "the package, oldest NumPy and SciPy": package("numpy==1.26.0", "scipy==1.12.0"),
    "the package, newest NumPy and SciPy": package("numpy", "scipy"),
    "settings of the user": lambda f: run(
        f"{SETTINGS}{WHOLE} && .venv/bin/ruff check -q .", f, **HOSTILE
    ),
}  # fmt: skip


def main():
    """Run the rows that are asked for; fail if one does."""
    asked, failed = sys.argv[1:], 0
    print("| row | seconds | result |\n|---|---|---|", flush=True)
    for name, row in ROWS.items():
        if asked and not any(word in name for word in asked):
            continue
        with tempfile.TemporaryDirectory(prefix="dpnotes ü ") as scratch:
            os.chmod(scratch, 0o755)
            start, folder = time.monotonic(), tree(Path(scratch) / "tree")
            bad = row(folder)
            result = "fails" if bad else "passes"
            print(f"| {name} | {time.monotonic() - start:.0f} | {result} |", flush=True)
            if bad:
                failed += 1
                print((folder / "log.txt").read_text()[-3000:], file=sys.stderr)
    sys.exit(failed > 0)


if __name__ == "__main__":
    main()
