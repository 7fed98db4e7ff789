"""What must be there before a build: npm's tools and the sheets of the assignments."""

import contextlib
import fcntl
import json
import os
import subprocess
import sys
from pathlib import Path

import surroundings


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


@contextlib.contextmanager
def owner_of(out):
    """Nobody else builds into this folder meanwhile: each would delete what the other one made."""
    out.mkdir(parents=True, exist_ok=True)
    with (out / ".lock").open("w") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            sys.exit(f"Another build writes into {out}: end it first, or let it end.")
        yield
