"""Masters under the real grader, their student versions, and the search for leaks."""

import json
import re
import shutil
import subprocess
import sys
import zipfile
from importlib import metadata
from itertools import zip_longest
from pathlib import Path

import pytest
import yaml

import attacks
from assignments.grader import check, leaks, masters, nonanswers, reading, sandbox
from checks import lint
from machine import BLANK

ROOT = Path(__file__).resolve().parents[2]
PATHS = sorted((ROOT / "assignments").glob("*.md"))
PAGES = ROOT / "chapters" / "assignments"
NAMES = [path.stem for path in PATHS]
# minutes of processor time each, searched by `make assignments` and by the thorough test of masters
LONG_SEARCHES = {"audit", "erm", "subsampling"}
PATIENT = sandbox.Limits(cell_seconds=300, total_seconds=900)  # on a busy machine, too


@pytest.fixture(scope="module")
def read():
    return {path.stem: masters.read(path) for path in PATHS}


def tricked(master):
    """[(notebook, the questions that it answers by a trick)]"""
    tricks = attacks.TRICKS.get(master.name, {})
    for row in zip_longest(*tricks.values()):
        answers = {q: source for q, source in zip(tricks, row, strict=True) if source}
        book = check.solved(master)
        for cell in book.cells:
            cell.source = answers.get(cell.id, cell.source)
        yield book, set(answers)


@pytest.mark.parametrize("path", PATHS, ids=NAMES)
def test_master_stubs_tricks_and_some_wrong_answers(bubblewrap, read, path, tmp_path):
    """Full marks for the master, none for the stubs; where every second answer has a mistake, these
    questions are lost and no others, and so with tricks. All mistakes: below."""
    master = read[path.stem]
    automatic = {q.id for q in master.questions if not q.manual}
    first = check.groups(check.wrong_answers(path))[0]
    assert {w["question"] for w in first} == automatic
    half = sorted(first, key=lambda w: w["question"])[::2]
    books = [(check.solved(master), set()), (master.student, automatic)]
    books += [(check.spoiled(master, half), {w["question"] for w in half}), *tricked(master)]
    lost = check.together(master, [book for book, _ in books], PATIENT, tmp_path)
    assert list(map(set, lost)) == [expected for _, expected in books]


@pytest.mark.parametrize("name", [n for n in NAMES if n not in LONG_SEARCHES])
def test_no_question_accepts_what_is_no_answer(read, name):
    assert list(nonanswers.find(read[name])) == []


SHAPE = r"np\.shape\(found := (.*?\))\) == \(\d,\) and np\.allclose\(found"
MORE = r"\nassert any\(len\(poisson_sample\(3.*\nmore = (?:.*\n){5}"


@pytest.mark.parametrize(
    "name, sharp, blunt",
    [("selection", SHAPE, r"np.allclose(\1"), ("subsampling", MORE, r"\n")],
)
def test_tests_that_accept_it_are_found(tmp_path, name, sharp, blunt):
    """A hidden test that asks for no shape, one that asks nothing new but rate 1."""
    text, count = re.subn(sharp, blunt, (ROOT / "assignments" / f"{name}.md").read_text())
    assert count
    (tmp_path / f"{name}.md").write_text(text)
    master = masters.read(tmp_path / f"{name}.md")
    master.questions = [q for q in master.questions if q.id in ("1b", "1c")]
    assert any("the hidden tests accept" in what for _, what in nonanswers.find(master))


def test_a_master_that_could_not_be_marked_is_no_good_master(monkeypatch, tmp_path):
    lost = check.run.not_marked("ada", "why")
    monkeypatch.setattr(check.run, "grade", lambda *_: {"ada": lost})
    with pytest.raises(sandbox.SandboxError, match="laplace: not marked.*; why"):
        check.marked(ROOT / "laplace.md", {}, PATIENT, tmp_path)


@pytest.mark.thorough
@pytest.mark.parametrize("path", PATHS, ids=NAMES)
def test_master_stubs_and_wrong_answers(bubblewrap, path):
    """Full marks for the master, none for the stubs, each plausible mistake costs its question."""
    assert check.complaints(path, PATIENT) == []


@pytest.mark.parametrize("path", PATHS, ids=NAMES)
def test_student_version_is_the_one_of_the_built_book(path, tmp_path):
    masters.build(path, tmp_path)
    for name in (f"{path.stem}.md", f"downloads/{path.stem}.ipynb"):
        assert (tmp_path / name).read_bytes() == (PAGES / name).read_bytes(), "make book"


@pytest.mark.parametrize("name", NAMES)
def test_points_add_up(read, name):
    """The table, the headings, the questions and the rubrics say the same."""
    questions, cells = read[name].questions, read[name].notebook.cells
    by_hand = sum(q.points for q in questions if q.manual)
    total = sum(q.points for q in questions)
    said = f"**Points** | {total}: {total - by_hand} by tests, {by_hand} by hand"
    assert said in cells[0].source
    text = "\n".join(c.source for c in cells if c.cell_type == "markdown")
    headings = re.findall(r"^## Question.*\((\d+) points", text, re.M)
    assert sum(map(int, headings)) == total
    for q in questions:
        assert f"**{q.id} ({q.points} points" in text
        if q.manual:
            shares = re.findall(r"(\d+) points?:", q.rubric)
            assert sum(map(int, shares)) == q.points and len(q.answer.split()) > 20


@pytest.mark.parametrize("path", PATHS, ids=NAMES)
def test_the_notation_is_that_of_the_pages(path):
    assert lint.notation(lint.Page.read(path)) == []


@pytest.mark.parametrize("name", NAMES)
def test_student_notebook_has_stubs_and_public_tests_only(name):
    book = json.loads((PAGES / "downloads" / f"{name}.ipynb").read_text())
    sources = ["".join(c["source"]) for c in book["cells"]]
    assert not any("SOLUTION" in s or "HIDDEN" in s for s in sources)
    assert sum(BLANK in s for s in sources) >= 6
    assert all(not c.get("outputs") for c in book["cells"])
    code = ["".join(c["source"]) for c in book["cells"] if c["cell_type"] == "code"]
    needed = {m.split(".")[0] for m in masters.imported(code)} - sys.stdlib_module_names
    for module in needed:
        packages = {"sklearn": "scikit-learn", "dpnotes": "dpnotes-0-py3-none-any.whl"}
        assert packages.get(module, module) in sources[0], "what to install at home"


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
    where = {(Path(file.split(": ")[0]).name, name) for file, name, _ in found}
    assert where >= {("solved.ipynb", "renyi"), ("book.zip", "erm")}
    assert {file for file, _ in where} == {"solved.ipynb", "book.zip"}


def test_every_line_that_a_page_carries_for_its_script_is_seen(read, tmp_path):
    """As many as in the notebook itself, also those with a sign that HTML writes otherwise."""
    book = json.dumps(check.solved(read["laplace"]))
    carried = book.replace("<", "\\u003c").replace(">", "\\u003e")
    script = f'<script type="application/json" id="homework">{carried}</script>'
    (tmp_path / "solved.ipynb").write_text(book)
    (tmp_path / "sheet.html").write_text(f"<h1>Sheet</h1>{script}")
    found = [Path(file).name for file, *_ in leaks.find(ROOT / "assignments", [tmp_path])]
    assert found.count("sheet.html") == found.count("solved.ipynb") > 0


@pytest.mark.parametrize(
    "removed, complaint",
    [
        (', "equal laws are 0-indistinguishable"', "1a: an assertion without a message"),
        ("### BEGIN HIDDEN TESTS\n", "1a: public and hidden tests are both needed"),
    ],
)
def test_masters_need_messages_and_hidden_tests(tmp_path, removed, complaint):
    text = (ROOT / "assignments" / "laplace.md").read_text().replace(removed, "", 1)
    (tmp_path / "mine.md").write_text(text)
    with pytest.raises(ValueError, match=complaint):
        masters.read(tmp_path / "mine.md")


def test_a_mistake_that_public_tests_must_see_is_not_left_to_hidden_ones(monkeypatch):
    """Where the first answer of a question that has `public: true` fails in hidden tests only."""
    path = ROOT / "assignments" / "laplace.md"
    wrong = [w | {"public": True} for w in check.wrong_answers(path) if w["question"] == "2c"][:1]
    monkeypatch.setattr(check, "wrong_answers", lambda _: wrong)
    monkeypatch.setattr(check, "marked", lambda *_: {})
    monkeypatch.setattr(check.nonanswers, "find", lambda *_: [])
    for in_public, found in ((True, 0), (False, 1)):
        said = [{}, {"2c": in_public}]
        monkeypatch.setattr(check, "together", lambda *_, said=said: said)
        assert sum("no public test sees" in c for c in check.complaints(path, PATIENT)) == found


def test_wrong_answers_that_share_a_notebook_do_not_hide_each_other():
    wrong = yaml.safe_load((ROOT / "assignments" / "wrong" / "laplace.yml").read_text())
    shared = [[w["question"] for w in group] for group in check.groups(wrong)]
    assert sum(map(len, shared)) == len(wrong)
    assert all(len(set(questions)) == len(questions) for questions in shared)


@pytest.mark.parametrize("name", NAMES)
def test_the_masters_answers_earn_no_flags(read, name, tmp_path):
    written = masters.LINK.sub(r"*\1*", json.dumps(check.solved(read[name])))  # as downloaded
    (tmp_path / f"{name}.ipynb").write_text(written)
    handed_in = reading.read("ada", tmp_path / f"{name}.ipynb", [], read[name])
    assert handed_in.flags == []


def test_what_the_given_cells_import_is_known():
    """The process that all markers of submissions are forked from imports it once."""
    assert masters.imported(["import a.b as c\nfrom d.e import f", "import a.b, g\nx = 1"]) == [
        "a.b", "d.e", "g",
    ]  # fmt: skip


def test_what_is_installed_for_marking_has_pins():
    """The list for marking takes its versions from the project's, and names what is imported."""
    own, *names = (ROOT / "assignments" / "grading.txt").read_text().splitlines()[1:]
    assert own == "-c ../requirements.txt"
    pinned = {line.split("==")[0] for line in (ROOT / "requirements.txt").read_text().splitlines()}
    assert {name.lower() for name in names} <= pinned
    sources = [file.read_text() for file in (ROOT / "assignments" / "grader").glob("*.py")]
    for cells in (masters.read(path).notebook.cells for path in PATHS):
        sources += [cell.source for cell in cells if cell.cell_type == "code"]
    found = {name.split(".")[0] for name in masters.imported(sources)} - sys.stdlib_module_names
    packages = metadata.packages_distributions()
    own = {"dpnotes", "wire", "inside"}
    assert {packages[name][0].lower() for name in found - own} <= {name.lower() for name in names}
