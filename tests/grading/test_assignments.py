"""Masters under the real grader, their student versions, and the search for leaks."""

import copy
import json
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from assignments.grader import check, gradescope, leaks, masters, sandbox, submissions  # noqa: E402

PATHS = sorted((ROOT / "assignments").glob("*.md"))
PAGES = ROOT / "chapters" / "assignments"
NAMES = [path.stem for path in PATHS]


@pytest.fixture
def bubblewrap():
    try:
        sandbox.check()
    except sandbox.SandboxError as problem:
        if os.environ.get("CI"):
            pytest.fail(f"grading must be tested in CI: {problem}")
        pytest.skip(f"grading needs bubblewrap: {problem}")


@pytest.fixture(scope="module")
def read():
    return {path.stem: masters.read(path) for path in PATHS}


def test_eight_assignments():
    six = {"laplace", "gaussian", "composition", "subsampling", "renyi", "erm"}
    assert set(NAMES) == six | {"selection", "adaptive"}


@pytest.mark.parametrize("path", PATHS, ids=NAMES)
def test_master_stubs_and_wrong_answers(bubblewrap, path):
    """Full marks for the master, none for the stubs, each plausible mistake costs its question."""
    assert check.complaints(path, sandbox.Limits()) == []


@pytest.mark.parametrize("path", PATHS, ids=NAMES)
def test_student_version_is_committed_and_reproducible(path, tmp_path):
    masters.build(path, tmp_path)
    for name in (f"{path.stem}.md", f"downloads/{path.stem}.ipynb"):
        assert (tmp_path / name).read_bytes() == (PAGES / name).read_bytes(), "make assignments"


@pytest.mark.parametrize("name", NAMES)
def test_points_add_up(read, name):
    """The table, the headings and the questions say the same."""
    master = read[name]
    intro = master.notebook.cells[0].source
    total = sum(q.points for q in master.questions)
    automatic = sum(q.points for q in master.questions if not q.manual)
    assert (
        f"{total} | {total}: {automatic} by tests"
        in f"{total} | " + intro.split("**Points** | ")[1]
    )
    assert f"{total - automatic} by hand" in intro
    text = "\n".join(c.source for c in master.notebook.cells if c.cell_type == "markdown")
    for q in master.questions:
        assert f"**{q.id} ({q.points} points" in text
    headings = [line for line in text.splitlines() if line.startswith("## Question")]
    assert sum(int(h.rsplit("(", 1)[1].split()[0]) for h in headings) == total


@pytest.mark.parametrize("name", NAMES)
def test_every_proof_has_a_rubric_that_adds_up(read, name):
    text = "\n".join(c.source for c in read[name].notebook.cells if c.cell_type == "markdown")
    for q in (q for q in read[name].questions if q.manual):
        part = text.split(f"**{q.id} (")[1]
        rubric = part.split("*Rubric.*")[1].split("\n")[0]
        points = [
            int(w.split()[-1]) for w in rubric.replace("points:", "point:").split(" point:")[:-1]
        ]
        assert sum(points) == q.points
        assert "BEGIN SOLUTION" in q.answer


@pytest.mark.parametrize("name", NAMES)
def test_student_notebook_has_stubs_and_public_tests_only(name):
    book = json.loads((PAGES / "downloads" / f"{name}.ipynb").read_text())
    sources = ["".join(c["source"]) for c in book["cells"]]
    assert not any("SOLUTION" in s or "HIDDEN" in s for s in sources)
    assert sum("raise NotImplementedError()" in s for s in sources) >= 6
    assert all(not c.get("outputs") for c in book["cells"])


def test_no_leak_in_what_is_published():
    published = [ROOT / "chapters"]
    if (ROOT / "_build" / "html").exists():
        published.append(ROOT / "_build" / "html")
    assert leaks.find(ROOT / "assignments", published) == []


def built(folder, *sources):
    """A small site of some pages as the book builds them: HTML, _sources, downloads."""
    (folder / "downloads").mkdir(parents=True)
    for source in sources:
        shutil.copy(source, folder / source.name)
        shutil.copy(PAGES / "downloads" / f"{source.stem}.ipynb", folder / "downloads")
    (folder / "conf.py").write_text(
        "extensions = ['myst_nb']\nnb_execution_mode = 'off'\n"
        "myst_enable_extensions = ['dollarmath']\n"
    )
    pages = "\n".join(source.stem for source in sources)
    (folder / "index.md").write_text(f"# Course\n\n```{{toctree}}\n{pages}\n```\n")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-b",
        "html",
        str(folder),
        str(folder / "html"),
    ]
    subprocess.run(command, check=True, capture_output=True)
    return folder / "html"


def test_leaks_are_seen_when_a_master_is_in_the_book(tmp_path):
    clean = built(tmp_path / "clean", PAGES / "laplace.md")
    assert leaks.find(ROOT / "assignments", [clean]) == []
    found = leaks.find(
        ROOT / "assignments", [built(tmp_path / "leaky", ROOT / "assignments" / "laplace.md")]
    )
    where = {Path(file).name for file, _, _ in found}
    assert {"laplace.html", "laplace.md.txt"} <= where
    questions = {question for _, name, question in found if name == "laplace"}
    assert {"1a", "test-1a", "2a"} <= questions


def test_leaks_are_seen_in_notebooks_and_archives(read, tmp_path):
    (tmp_path / "solved.ipynb").write_text(json.dumps(check.solved(read["renyi"])))
    with zipfile.ZipFile(tmp_path / "book.zip", "w") as archive:
        archive.write(ROOT / "assignments" / "erm.md", "erm.md")
    found = leaks.find(ROOT / "assignments", [tmp_path])
    assert {"renyi", "erm"} <= {name for _, name, _ in found}
    assert {Path(file.split(": ")[0]).name for file, _, _ in found} == {"solved.ipynb", "book.zip"}


def test_masters_need_messages_and_hidden_tests(tmp_path):
    text = (ROOT / "assignments" / "laplace.md").read_text()
    silent = text.replace(', "equal laws are 0-indistinguishable"', "", 1)
    (tmp_path / "silent.md").write_text(silent)
    with pytest.raises(ValueError, match="1a: an assertion without a message"):
        masters.read(tmp_path / "silent.md")
    open_book = text.replace("### BEGIN HIDDEN TESTS\n", "", 1).replace(
        "### END HIDDEN TESTS\n", "", 1
    )
    (tmp_path / "open.md").write_text(open_book)
    with pytest.raises(ValueError, match="1a: public and hidden tests are both needed"):
        masters.read(tmp_path / "open.md")


def test_private_folder_and_a_master_that_is_wrong(bubblewrap, tmp_path):
    """A course of one's own: the same command, another folder; a mistake in a master stops it."""
    (tmp_path / "mine" / "wrong").mkdir(parents=True)
    for file in ("laplace.md", "wrong/laplace.yml"):
        text = (ROOT / "assignments" / file).read_text()
        text = (
            text.replace("np.log1p(-2 * np.abs(u))", "np.log1p(-np.abs(u))")
            if file == "laplace.md"
            else "[]"
        )
        (tmp_path / "mine" / file.replace("laplace", "week1")).write_text(text)
    command = [sys.executable, "-m", "assignments.grader", "build"]
    command += ["--masters", tmp_path / "mine", "--pages", tmp_path / "pages"]
    done = subprocess.run(list(map(str, command)), cwd=ROOT, capture_output=True, text=True)
    assert done.returncode != 0
    assert "week1: the master loses 2b" in done.stderr
    assert "week1: no wrong answer for 1a" in done.stderr
    assert (tmp_path / "pages" / "week1.md").exists()
    assert (tmp_path / "pages" / "downloads" / "week1.ipynb").exists()


def test_wrong_answers_that_share_a_notebook_do_not_hide_each_other():
    wrong = yaml.safe_load((ROOT / "assignments" / "wrong" / "laplace.yml").read_text())
    shared = check.groups(wrong)
    assert sum(len(group) for group in shared) == len(wrong)
    for group in shared:
        for one in group:
            assert not any(
                one["question"] in check.costs(other) for other in group if other is not one
            )


@pytest.mark.parametrize("name", NAMES)
def test_the_masters_answers_earn_no_flags(read, name, tmp_path):
    (tmp_path / f"{name}.ipynb").write_text(json.dumps(check.solved(read[name])))
    handed_in = submissions.read("ada", tmp_path / f"{name}.ipynb", [], read[name])
    assert handed_in.flags == []


def test_gradescope_zip(bubblewrap, read, tmp_path):
    """Unpacked as Gradescope does it, its entry point marks a submission."""
    gradescope.write("laplace", ROOT / "assignments", tmp_path / "autograder.zip")
    with zipfile.ZipFile(tmp_path / "autograder.zip") as archive:
        assert {"setup.sh", "run_autograder", "assignments/laplace.md"} <= set(archive.namelist())
        assert not any(name.startswith("assignments/gaussian") for name in archive.namelist())
        archive.extractall(tmp_path / "source")
    book = copy.deepcopy(check.solved(read["laplace"]))
    next(c for c in book.cells if c.id == "1a").source = "pass"
    (tmp_path / "submission").mkdir()
    (tmp_path / "submission" / "laplace.ipynb").write_text(json.dumps(book))
    command = [sys.executable, "-m", "assignments.grader.gradescope", "laplace"]
    command += [str(tmp_path / "submission"), str(tmp_path / "results.json")]
    subprocess.run(command, cwd=tmp_path / "source", check=True, capture_output=True)
    results = json.loads((tmp_path / "results.json").read_text())
    scores = {test["name"]: test["score"] for test in results["tests"]}
    assert scores.pop("Question 1a") == 0
    assert sum(scores.values()) == 18
