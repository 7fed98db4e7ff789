"""Every claim of a finished chapter is on its page with its source, computed, and tested."""

import ast
import re
from functools import cache

import pytest

from checks import lint
from machine import ROOT
from pages import ledger

FINISHED = ledger.finished_claims()
SLIPS = {"typo", "wrong", "underived"}


@cache
def marked_claims():
    """The ids of all marks in tests/claims."""
    found = []
    for file in sorted((ROOT / "tests" / "claims").glob("test_*.py")):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "claim":
                found += [ast.literal_eval(claim) for claim in node.args]
    return set(found)


def problems(claim, page, marked):
    """What is missing for `claim` on its page and among the marked tests."""
    bodies = [body for _, label, body in page.blocks() if label == ledger.label(claim["id"])]
    if len(bodies) != 1:
        yield f"{len(bodies)} blocks with its label"
    elif not re.search(rf"\{{source\}}`{re.escape(claim['id'])}[ `]", bodies[0]):
        yield "no source in its block"
    if claim["id"] not in marked:
        yield "no test is marked with it"
    if claim["printed"] not in ledger.KINDS:
        yield f"printed: {claim['printed']!r} is not one of {ledger.KINDS}"
    if claim["printed"] in SLIPS and "correction" not in claim:
        yield "a slip without a correction"


@cache
def read(name):
    return lint.Page.read(ROOT / "chapters" / f"{name}.md")


@pytest.mark.parametrize("claim", FINISHED, ids=lambda claim: claim["id"])
def test_claim_is_stated_sourced_and_tested(claim):
    assert list(problems(claim, read(claim["page"]), marked_claims())) == []


STATEMENTS = "theorem|lemma|proposition|corollary"
# stated one after the other and proved together: the proof follows the last of them
TOGETHER = set("T-1 T-6 U-kl-tight F-3.18 T-11 T-14 T-16 T-17 T-18 S-0.3 F-3.20".split())


def unproved(text):
    """The titles of statements that no proof follows before the next statement begins; of those
    that are proved together, before the next section."""
    for section in re.split(r"^(?=## )", text, flags=re.M):
        blocks = re.split(rf"^(?=:+\{{prf:(?:{STATEMENTS})\}})", section, flags=re.M)
        for number, block in enumerate(blocks[1:], 1):
            tags = set(re.findall(r"\{source\}`([^` ]+)", block))
            until = "".join(blocks[number:]) if tags & TOGETHER else block
            if not re.search(r"^:+\{dropdown\} (The p|P)roof", until, re.M):
                yield block.splitlines()[0]


def test_a_proof_follows_each_statement():
    pages = [read(file.stem) for file in (ROOT / "chapters").glob("*.md")]
    for page in pages:
        assert list(unproved(page.text)) == [], f"{page.name}: let {{dropdown}} Proof follow these"
    tags = {tag for page in pages for tag in re.findall(r"\{source\}`([^` ]+)", page.text)}
    assert tags >= TOGETHER, "not on a page any more"


def test_a_statement_without_a_proof_is_found():
    block, proof = ":::{prf:lemma} L\nIt holds.\n:::\n", ":::{dropdown} Proof\nSo.\n:::\n"
    assert list(unproved(f"## A\n{block}{block}{proof}")) == [":::{prf:lemma} L"]
    text = read("pure-dp").text
    first = re.search(r"^:::+\{dropdown\} Proof$", text, re.M)[0]
    assert len(list(unproved(text.replace(first, ":::{dropdown} A remark", 1)))) == 1


SAYS = re.compile(r".*\b(?:[Tt]he|[Tt]hese|[Aa]) tests? (?:checks?|compares?|proves?)\b.*")


def unnamed_tests(text, known):
    """Sentences that say what a test does without the name of one that is there."""
    named = [(said, re.findall(r"`(test_\w+)`", said)) for said in SAYS.findall(text)]
    return [said for said, names in named if not names or not set(names) <= known]


def test_a_sentence_about_a_test_names_one_that_is_there():
    tests = "\n".join(file.read_text(encoding="utf8") for file in ROOT.glob("tests/**/*.py"))
    known = set(re.findall(r"def (test_\w+)", tests))
    told = [*ROOT.glob("chapters/*.md"), *ROOT.glob("dpnotes/**/*.py"), *ROOT.glob("ledger/*.yml")]
    for file in told:
        assert unnamed_tests(file.read_text(encoding="utf8"), known) == [], file
    assert unnamed_tests("So the test checks it (`test_gone`).", known)
    assert unnamed_tests("It is small: a test compares them.", known)
    assert not unnamed_tests("The test checks it (`test_there`).", {"test_there"})


def test_ids_are_unique_and_every_mark_is_in_the_ledger():
    ids = [claim["id"] for claim in ledger.claims()]
    assert len(ids) == len(set(ids)) >= 122
    assert marked_claims() <= set(ids)


def test_every_claim_of_a_page_of_the_book_is_finished():
    pages = set(ledger.chapters())
    assert FINISHED == [c for c in ledger.claims() if {c["chapter"], c["page"]} & pages]


def unseen(claim, records):
    """What the tests of `claim` did not do, as sentences that say what to do."""
    if not any(r.get("instances") or r.get("proved") for r in records):
        yield "no test checked an instance: use at_most, equal, holds or for_all"
    if not any(r.get("caught") for r in records):
        yield "no test plants a mistake: give `claim` wrong=[...], or use must_fail"
    texts = [t for r in records for c, t in r.get("slips", []) if c == claim["id"]]
    if ledger.is_slip(claim):
        if not texts and "uncomputed" not in claim:
            yield "what is printed is not computed: call slip, or say `uncomputed`"
        if "correction" not in claim:
            yield "the ledger does not say what is right: add `correction`"
    elif texts or "correction" in claim:
        yield "a slip that the errata do not show: say in `printed` what it is"
    if claim["printed"] in SLIPS and not texts:
        yield "a slip without a computed counterexample: call slip"


def test_evidence_of_the_build_covers_every_finished_claim():
    seen = ledger.evidence()
    assert seen, "no evidence: run `make book`"
    for claim in FINISHED:
        assert list(unseen(claim, seen.get(claim["id"], []))) == [], claim["id"]


def test_a_claim_whose_test_plants_no_mistake_is_found():
    claim, record = {"id": "T-9", "printed": "ok"}, {"instances": 3, "caught": 1}
    assert list(unseen(claim, [record])) == []
    assert "no test plants a mistake" in next(unseen(claim, [{"instances": 3}]))
    assert "no test checked an instance" in next(unseen(claim, [{"caught": 1}]))
    assert "do not show" in next(unseen({**claim, "correction": "so"}, [record]))
    wrong = {"id": "T-9", "printed": "wrong", "correction": "so"}
    assert len(list(unseen(wrong, [record]))) == 2
    assert list(unseen(wrong, [{**record, "slips": [["T-9", "0.3 > 0.2"]]}])) == []


def test_a_missing_block_source_test_or_correction_is_found():
    claim = {"id": "T-9", "chapter": "x", "printed": "wrong"}
    assert len(list(problems(claim, lint.Page("x", ""), set()))) == 3
    block = ":::{prf:theorem} T\n:label: t-9\nIt holds.\n:::\n"
    assert "no source in its block" in problems(claim, lint.Page("x", block), {"T-9"})
    sourced = lint.Page("x", block.replace("holds.", "holds. {source}`T-9 (6.8)`"))
    assert list(problems({**claim, "correction": "so"}, sourced, {"T-9"})) == []
