"""What pages, docstrings and ledger say of a test is so: `promises.yml` pairs each such sentence
with a test and a fault, and the fault makes the test fail."""

import ast
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from machine import ROOT, unable

TABLE = yaml.safe_load((Path(__file__).parent / "promises.yml").read_text(encoding="utf-8"))
PAIRS = [{**promise, **fault} for promise in TABLE["pairs"] for fault in promise["seen"]]
DOES = (
    "checks? compares? proves? sees? finds? notices? asks? holds? runs? looks? computes? did does"
)
WORDS = re.compile(
    rf"\btest_[a-z]\w+|\bnbval\b|\b[Tt]ests? (?:{'|'.join(DOES.split())})\b|\btested\b"
    r"|\b(?:is|are|was|were) checked\b|\b(?:by|in|as|among|has) (?:also )?(?:an? |the )?tests?\b"
)
FENCED = re.compile(r"^ *(```+)(?:\{code-cell\}|python|sh)[^\n]*\n.*?^ *\1$", re.M | re.S)
NBVAL = "-p tests.quick_nbval -p nbval --nbval --nbval-current-env".split()
TEXTS = [ROOT / name for name in ("README.md", "CONTRIBUTING.md", "dpnotes/README.md")]
TEXTS += [*ROOT.glob("chapters/*.md"), *ROOT.glob("ledger/*.yml"), *ROOT.glob("dpnotes/**/*.py")]


def prose(text, kind):
    """Without code: of Python the docstrings and comments, of a page what stands in no cell."""
    if kind == ".py":
        kinds = ast.Module, ast.FunctionDef, ast.ClassDef
        nodes = [node for node in ast.walk(ast.parse(text)) if isinstance(node, kinds)]
        parts = [*filter(None, map(ast.get_docstring, nodes)), *re.findall("#.*", text)]
        return "\n\n".join(parts)
    return FENCED.sub("", text)


def sentences(text):
    """On one line each."""
    for part in re.split(r"\n\s*\n|\n(?=[-*|:])", text):
        yield from re.split(r"(?<=[.:;?!])\s+", re.sub(r"\s+", " ", part))


def unpaired(text, kind, known):
    """The sentences that say what a test does, and that no fragment stands in."""
    said = filter(WORDS.search, sentences(prose(text, kind)))
    return [sentence for sentence in said if not any(part in sentence for part in known)]


def fragments(name):
    """What the table names of a file: in pairs, and where a test is something else."""
    paired = [promise["says"] for promise in TABLE["pairs"] if promise["in"] == name]
    return paired + TABLE["others"].get(name, [])


@pytest.mark.parametrize("file", TEXTS, ids=lambda file: str(file.relative_to(ROOT)))
def test_a_sentence_about_a_test_has_a_pair(file):
    text, known = file.read_text(encoding="utf-8"), fragments(str(file.relative_to(ROOT)))
    advice = "say less, or pair it with a test and a fault in tests/site/promises.yml"
    assert unpaired(text, file.suffix, known) == [], advice
    flat = [re.sub(r"\s+", " ", part) for part in (text, prose(text, file.suffix))]
    for part in known:
        assert any(one.count(part) == 1 for one in flat), f"it stands there once: {part!r}"


def test_a_sentence_without_a_pair_is_seen():
    for said in (
        "A test compares them.",
        "It is small, and these tests check it.",
        "All of them are tested.",
        "Both directions are checked.",
        "`test_gone` does it.",
        "The attack is among the tests.",
    ):
        assert unpaired(f"So.\n{said}\n", ".md", ["another"]) and not unpaired(said, ".md", [said])
        assert unpaired(f'def f():\n    """It.\n\n    {said}"""\n', ".py", [])
        assert not unpaired(f"```python\n# {said}\n```\n", ".md", [])
    assert not unpaired("The best test of this level has the power 0.3.", ".md", [])


@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair['test']}, {pair['new']}"[-90:])
def test_a_pair_names_a_test_and_a_fault(pair):
    file, *name = re.split("::|\\[", pair["test"])
    assert (ROOT / pair["in"]) in TEXTS and pair["new"] != pair["old"]
    if not file.startswith("_build"):
        assert f"def {name[0]}(" in (ROOT / file).read_text(encoding="utf-8"), pair["test"]
    if not pair["file"].startswith("_build"):
        assert (ROOT / pair["file"]).read_text(encoding="utf-8").count(pair["old"]) == 1


@pytest.fixture(scope="module")
def copied(tmp_path_factory):
    """The tree as a clone of its own, in which faults are planted."""
    place = tmp_path_factory.mktemp("planted") / "tree"
    left = shutil.ignore_patterns(".git", ".venv", "node_modules", "__pycache__", ".pytest_cache")
    shutil.copytree(ROOT, place, symlinks=True, ignore=left)
    (place / "node_modules").symlink_to(ROOT / "node_modules")
    for command in ("git init -q", "git add -A"):
        subprocess.run(command.split(), cwd=place, check=True)
    return place


def ended(place, *tests):
    """Whether these tests of that tree pass; skipped, where this machine can't run them."""
    settings = {"PYTHONPATH": str(place), "PYTHONDONTWRITEBYTECODE": "1"}
    kept = {key: os.environ[key] for key in os.environ if key not in ("CI", "DPNOTES_EVIDENCE")}
    options = NBVAL if tests[0].endswith(".ipynb") else []
    command = [sys.executable, "-m", "pytest", "-qx", "-m", "", "-p", "no:cacheprovider", *options]
    done = subprocess.run(
        [*command, "-p", "no:xdist", *tests],
        cwd=place, env={**kept, **settings}, capture_output=True, text=True,
    )  # fmt: skip
    assert done.returncode in (0, 1), done.stdout + done.stderr
    if done.returncode == 0 and " skipped" in done.stdout:
        unable(f"skipped on this machine: {tests}")
    return done.returncode == 0, done.stdout


@pytest.mark.thorough
@pytest.mark.parametrize("test", sorted({pair["test"] for pair in PAIRS}))
def test_it_passes_without_the_fault(copied, test):
    passes, said = ended(copied, test)
    assert passes, said


@pytest.mark.thorough
@pytest.mark.parametrize("pair", PAIRS, ids=lambda pair: f"{pair['test']}, {pair['new']}"[-90:])
def test_the_fault_makes_it_fail(copied, pair):
    file = copied / pair["file"]
    text = file.read_text(encoding="utf-8")
    assert text.count(pair["old"]) == 1
    file.write_text(text.replace(pair["old"], pair["new"]), encoding="utf-8")
    try:
        passes, said = ended(copied, pair["test"])
    finally:
        file.write_text(text, encoding="utf-8")
    assert not passes, f"{pair['says']!r} is not so: {said}"
