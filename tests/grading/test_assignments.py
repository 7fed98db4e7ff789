"""Masters under the real grader, their student versions, and the search for leaks."""

import json
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from assignments.grader import check, leaks, masters, sandbox, submissions

ROOT = Path(__file__).resolve().parents[2]
PATHS = sorted((ROOT / "assignments").glob("*.md"))
PAGES = ROOT / "chapters" / "assignments"
NAMES = [path.stem for path in PATHS]
PATIENT = sandbox.Limits(cell_seconds=300, total_seconds=900)  # on a busy machine, too


@pytest.fixture(scope="module")
def read():
    return {path.stem: masters.read(path) for path in PATHS}


def test_nine_assignments():
    six = {"laplace", "gaussian", "composition", "subsampling", "renyi", "erm"}
    assert set(NAMES) == six | {"selection", "adaptive", "audit"}


def some(groups):
    """Few of these groups of wrong answers, in which each question has one."""
    kept, left = [], {w["question"] for group in groups for w in group}
    while left:
        kept.append(max(groups, key=lambda group: len(left & {w["question"] for w in group})))
        left -= {w["question"] for w in kept[-1]}
    return kept


@pytest.mark.parametrize("path", PATHS, ids=NAMES)
def test_master_stubs_and_some_wrong_answers(bubblewrap, path, tmp_path):
    """In one start of the sandbox, full marks for the master, none for the stubs, and one mistake a
    question costs that question. All mistakes, and that they cost no other question: below.
    """
    master = masters.read(path)
    automatic = sorted(q.id for q in master.questions if not q.manual)
    shared = some(check.groups(check.wrong_answers(path)))
    assert {w["question"] for group in shared for w in group} == set(automatic)
    books = [(check.solved(master), automatic), (master.student, automatic)]
    for group in shared:
        books.append((check.spoiled(master, group), [w["question"] for w in group]))
    right, stubs, *lost = check.together(master, books, PATIENT, tmp_path)
    assert right == {}
    assert sorted(stubs) == automatic
    for group, got in zip(shared, lost, strict=True):
        assert set(got) == {w["question"] for w in group}


@pytest.mark.thorough
@pytest.mark.parametrize("path", PATHS, ids=NAMES)
def test_master_stubs_and_wrong_answers(bubblewrap, path):
    """Full marks for the master, none for the stubs, each plausible mistake costs its question."""
    assert check.complaints(path, PATIENT) == []


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
    html = str(folder / "html")
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", str(folder), html]
    subprocess.run(command, check=True, capture_output=True, timeout=900)
    return folder / "html"


def test_leaks_are_seen_when_a_master_is_in_the_book(tmp_path):
    """A site with one page as it should be and one master: only the master is found."""
    site = built(tmp_path, PAGES / "gaussian.md", ROOT / "assignments" / "laplace.md")
    assert (site / "gaussian.html").exists()
    found = leaks.find(ROOT / "assignments", [site])
    where = {Path(file).name for file, _, _ in found}
    assert {"laplace.html", "laplace.md.txt"} <= where
    assert not any("gaussian" in name for name in where)
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


def test_what_the_given_cells_import_is_known():
    """The process that all markers of submissions are forked from imports it once."""
    assert masters.imported(["import a.b as c\nfrom d.e import f", "import a.b, g\nx = 1"]) == [
        "a.b", "d.e", "g",
    ]  # fmt: skip
