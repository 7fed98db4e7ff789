"""What of `make test` is due: parts whose sources are other ones than in their last green run.

    python -m tests.due               what is due
    python -m tests.due --all         everything, whatever was green (`.ci/run` and `make thorough`)
    python -m tests.due claims site   these parts, as `make book` does

A part has sources, by folder, and a stamp in `_build/green`: what each source was, all packages,
Python, the browser and the sandbox. Only the part's own green run writes it. A file that no part
owns is red: nothing would be tested after a change of it.
"""

import argparse
import hashlib
import json
import os
import re
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "site"))

import surroundings  # noqa: E402

surroundings.enter()

import ready  # noqa: E402

GREEN, EXECUTED = "_build/green", "_build/jupyter_execute"
CELL = re.compile(r"^```\{code-cell\}.*?^```$", re.M | re.S)
GROUND = (
    "conftest.py tests/*.* pyproject.toml requirements.txt requirements.in site/surroundings.py"
)
BOOK = (
    "chapters dpnotes ledger proofs site _config.yml _toc.yml package.json package-lock.json .npmrc"
    " LICENSE LICENSE-TEXT.md _build/evidence.json"
)
HOMEWORK = "tests/site/test_homework.py"
ROOMS = [  # what these ask does not hang on sentences
    f"tests/site/test_{name}.py"
    for name in "calculator carry due edits firefox guards lab licences notebooks run run_offline"
    " run_printed run_python runtime sliders surroundings".split()
]
TEXTS = (
    "tests/package/test_printed_code.py",
    "tests/grading/test_assignments.py::test_no_leak_in_what_is_published",
)
NOBODYS = (  # run by hand, once a week, or read by people
    "bench biome.json .ci .github .gitignore .pre-commit-config.yaml CHANGELOG.md MAINTAINING.md"
)


@dataclass(frozen=True)
class Part:
    """Its sources; what pytest gets, or commands; which files it makes."""

    name: str
    sources: str
    tests: tuple = ()
    commands: tuple = ()
    makes: str = ""
    cells_only: bool = False  # of a page, only its code is a source


def python(*arguments):
    return [sys.executable, *arguments]


def files_in(folder, *others):
    """The files of tests in a folder, but for these."""
    files = sorted(str(file.relative_to(ROOT)) for file in (ROOT / folder).glob("test_*.py"))
    return tuple(file for file in files if file not in others)


PYTEST = python("-m", "pytest", "-n", "logical", "--maxprocesses", "8", "--dist", "worksteal")
EVIDENCE = ("env", "DPNOTES_EVIDENCE=_build/evidence.json", *PYTEST, "-q", "-m", "")
BIOME = ("node_modules/.bin/biome", "ci", "site")
HOMEWORK = "tests/site/test_homework.py"
PARTS = (
    Part(
        "claims", f"dpnotes tests/claims tests/oracles tests/data {GROUND}",
        commands=((*EVIDENCE, "tests/claims"),), makes="_build/evidence.json",
    ),
    Part("site", BOOK, commands=(python("site/build.py"),), makes="_build/html/.built"),
    Part(
        "style", f"dpnotes site tests assignments bench biome.json package-lock.json {GROUND}",
        commands=(
            python("-m", "ruff", "check", "."), python("-m", "ruff", "format", "--check", "."),
            python("-m", "pytest", "-q", "tests/package/test_lengths.py"), BIOME,
        ),
    ),
    Part("notebooks", f"{EXECUTED} dpnotes site/kernels.py tests/quick_nbval.py {GROUND}"),
    Part(
        "package",
        "dpnotes proofs tests/package tests/oracles tests/data CITATION.cff CONTRIBUTING.md LICENSE"
        f" {GROUND}",
        files_in("tests/package", TEXTS[0]),
    ),
    Part(
        "text",
        f"{BOOK} assignments/*.md README.md CONTRIBUTING.md tests/site tests/claims tests/package"
        f" tests/grading {GROUND}",
        (*files_in("tests/site", HOMEWORK, *ROOMS), *TEXTS),
    ),
    Part("rooms", f"{BOOK} tests/site {GROUND}", tuple(ROOMS), cells_only=True),
    Part(
        "homework", f"{BOOK} assignments tests/site tests/grading {GROUND}", (HOMEWORK,),
        cells_only=True,
    ),
    Part(
        "grading",
        "assignments dpnotes site/ready.py site/checks site/pages site/homework chapters Makefile"
        f" package-lock.json tests/grading {GROUND}",
        files_in("tests/grading"), cells_only=True,
    ),
)  # fmt: skip


def files_of(part):
    """The files of its sources."""
    found = (path for source in part.sources.split() for path in ROOT.glob(source))
    files = {file for path in found for file in ([path] if path.is_file() else path.rglob("*"))}
    hidden = {"__pycache__", ".ipynb_checkpoints", "node_modules"}
    return sorted(file for file in files if file.is_file() and not hidden & set(file.parts))


def state_of(part):
    """What each source is, and what it is run with."""

    def read(file):
        data = file.read_bytes()
        if file.suffix == ".ipynb" and EXECUTED in str(file):
            data = json.dumps(executed_cells(file)).encode()
        elif part.cells_only and file.suffix == ".md" and "chapters" in file.parts:
            data = "\n".join(CELL.findall(data.decode())).encode()
        return hashlib.sha256(data).hexdigest()

    return {str(file.relative_to(ROOT)): read(file) for file in files_of(part)}


def executed_cells(file):
    """The code of a notebook and what it gave; a cell that did not run has nothing to compare."""
    cells = json.loads(file.read_text(encoding="utf-8"))["cells"]
    cells = [cell for cell in cells if cell["cell_type"] == "code" and cell["source"]]
    missed = [cell["source"] for cell in cells if cell["execution_count"] is None]
    if missed:
        sys.exit(f"{file}: a cell was not executed: build again\n{missed[0]}")
    return [[cell["source"], cell["outputs"]] for cell in cells]


def machine():
    """Packages and Python, and the programs of the system that the tests start."""
    programs = [surroundings.found_chromium(), shutil.which("bwrap"), shutil.which("firefox")]
    stats = [f"{one} {os.stat(one).st_mtime_ns} {os.stat(one).st_size}" for one in programs if one]
    return " ".join([surroundings.installed(), *stats])


def changes(part, before, state):
    """The sources that are other ones than in this stamp; all, if the machine is another one."""
    if not before or before["machine"] != machine():
        return sorted(state)
    if part.makes and not (ROOT / part.makes).exists():
        return [part.makes]
    files = before["files"]
    return sorted(name for name in {*files, *state} if files.get(name) != state.get(name))


def stamp(part):
    return ROOT / GREEN / f"{part.name}.json"


def last_green(part):
    """What its last green run saw."""
    place = stamp(part)
    return json.loads(place.read_text(encoding="utf-8")) if place.exists() else None


def write_green(part, state):
    """Its sources were these before the run, and are; no variable chose among its tests."""
    if state_of(part) == state and not os.environ.get("PYTEST_ADDOPTS"):
        stamp(part).parent.mkdir(parents=True, exist_ok=True)
        text = json.dumps({"machine": machine(), "files": state})
        stamp(part).write_text(text, encoding="utf-8")
        if part.makes:
            (ROOT / part.makes).touch()


def unowned(files):
    """Files after whose change nothing would be tested."""
    owners = [source for part in PARTS if part.name != "style" for source in part.sources.split()]
    owners += NOBODYS.split()
    rules = [re.escape(one).replace(r"\*", "[^/]*") + r"(/.*)?" for one in owners]
    return [file for file in files if not re.fullmatch("|".join(rules), file)]


def tracked():
    """The files of this tree, where it is a clone."""
    asked = ["git", "ls-files", "--cached", "--others", "--exclude-standard"]
    answer = subprocess.run(asked, cwd=ROOT, capture_output=True, text=True)
    return answer.stdout.splitlines()


def pages_in(changed):
    """The pages, if nothing but the text of pages is another one; else nothing."""
    pages = [re.fullmatch(r"chapters/([\w-]+)\.md", name) for name in changed]
    return [page[1] for page in pages] if all(pages) else []


def run(command, **settings):
    """Is its end a good one?"""
    print("$", " ".join(map(str, command)), flush=True)
    return subprocess.run(command, cwd=ROOT, env={**os.environ, **settings}).returncode


def compare_notebooks(part, state, changed):
    """Execute again, by nbval, what has other cells than at the last green run."""
    pages = [name for name in changed if name.endswith(".ipynb") and name in state]
    others = [name for name in changed if not name.endswith(".ipynb")]
    asked = [EXECUTED] if others else pages
    nbval = "-p tests.quick_nbval -p nbval --nbval --nbval-current-env".split()
    nbval += ["--nbval-kernel-startup-timeout=900"]  # a busy machine may take long to start one
    command = [*PYTEST, "--dist", "loadfile", *nbval, "-q", *asked]
    return not asked or run(command, TQDM_DISABLE="1") == 0


def failed_tests():
    """The tests that failed when they last ran."""
    file = ROOT / ".pytest_cache" / "v" / "cache" / "lastfailed"
    return list(json.loads(file.read_text(encoding="utf-8"))) if file.exists() else []


def run_tests(due, marked):
    """The tests of these parts in one run, so that no core waits; returns the parts that failed."""
    if not due:
        return []
    arguments = [one for part, *_ in due for one in part.tests]
    pages = pages_in([name for _, _, changed in due for name in changed])
    narrow = {"DPNOTES_PAGES": " ".join(pages)} if pages else {}
    end = run([*PYTEST, "-m", marked, "--durations=20", *arguments], **narrow)
    failed = failed_tests() if end == 1 else []
    red = []
    for part, state, _ in due:
        own = [test for test in failed if test.startswith(part.tests)]
        if end == 0 or (failed and not own):
            write_green(part, state)
        else:
            red.append(part.name)
    return red


def main():
    """Command line."""
    parser = argparse.ArgumentParser(description="Run what is due of `make test`.")
    parser.add_argument("--all", action="store_true", help="everything, whatever was green")
    parser.add_argument("--thorough", action="store_true", help="everything, the longest too")
    parser.add_argument("parts", nargs="*", help=" ".join(part.name for part in PARTS))
    options = parser.parse_args()
    everything = options.all or options.thorough or bool(os.environ.get("CI"))
    if nobodys := unowned(tracked()):
        sys.exit(f"No part of tests/due.py has these among its sources: {', '.join(nobodys[:5])}")
    with ready.alone():
        ready.install_node_modules(ROOT)
        ready.write_assignments(ROOT)
    red, tests = [], []
    for part in PARTS:
        if options.parts and part.name not in options.parts:
            continue
        state = state_of(part)
        changed = changes(part, None if everything else last_green(part), state)
        if not changed:
            print(f"{part.name}: as in its last green run", *filter(None, [part.makes]))
            continue
        print(f"{part.name}: due ({', '.join(changed[:3])}{', ...' * (len(changed) > 3)})")
        anew = ["--anew"] if everything and part.name == "site" else []
        if part.tests:
            tests.append((part, state, changed))
        elif part.name == "notebooks" and not compare_notebooks(part, state, changed):
            red.append(part.name)
        elif any(run([*command, *anew]) for command in part.commands):
            sys.exit(f"red: {part.name}")  # what comes after stands on it
        else:
            write_green(part, state)
    red += run_tests(tests, "" if options.thorough else "not thorough")
    if red:
        sys.exit(f"red: {', '.join(red)}")


if __name__ == "__main__":
    main()
