"""The ledger of claims: read it, cite it on a page, draw the `claims` and `errata` pages from it.

Data: ``ledger/<chapter>.yml`` (one entry a claim), ``ledger/sources.yml`` and, for the two pages,
``_build/evidence.json``, which the claim tests write before the site is built.
"""

import json
from functools import cache

import yaml
from docutils import nodes
from docutils.statemachine import StringList
from sphinx.util import logging
from sphinx.util.docutils import SphinxDirective, SphinxRole

from surroundings import ROOT, files_of

KINDS = ("ok", "typo", "wrong", "loose", "underived", "exercise", "garbled")
log = logging.getLogger(__name__)


def label(claim_id):
    """The label of a claim's block: its id in lower case, or what its entry names as `block`."""
    return shared_blocks().get(claim_id, claim_id).lower()


@cache
def sources():
    """Letter -> {title, kind} of the source documents, and what else they say of themselves:
    author, date, licence, an address, and in words what is missing."""
    return yaml.safe_load((ROOT / "ledger" / "sources.yml").read_text(encoding="utf8"))


@cache
def claims():
    """All entries, in the book's order, each with its chapter (its file) and the page it is on.

    A claim is stated on its chapter's page unless its entry names another one as ``page``, and in a
    block of its own unless it names that of another claim, or its label, as ``block``. It is right
    as it is printed unless ``printed`` says otherwise.
    """
    entries = []
    for file in sorted((ROOT / "ledger").glob("*.yml")):
        if file.stem != "sources":
            for entry in yaml.safe_load(file.read_text(encoding="utf8")):
                (name, statement), *more = entry.items()
                known = {"chapter": file.stem, "page": file.stem, "printed": "ok", **dict(more)}
                entries.append({"id": name, "statement": statement, **known})
    order = chapters()
    return sorted(entries, key=lambda c: order.index(c["chapter"]) if c["chapter"] in order else 99)


@cache
def chapters():
    """Names of the pages in the table of contents, in order."""
    toc = yaml.safe_load((ROOT / "_toc.yml").read_text(encoding="utf8"))
    return [file.removeprefix("chapters/") for file in files_of(toc)]


@cache
def shared_blocks():
    """Claim id -> the claim in whose block it is stated, or that block's label."""
    return {claim["id"]: claim["block"] for claim in claims() if "block" in claim}


def finished_claims():
    """The claims whose page is in the book."""
    return [claim for claim in claims() if claim["page"] in chapters()]


def is_slip(claim):
    """Is it not right as it is printed? What the filter of the claims and the errata show."""
    return claim["printed"] not in ("ok", "exercise")


def evidence(file=ROOT / "_build" / "evidence.json"):
    """Claim id -> list of {test, by, instances, slack, error, caught, slips, proved} a test."""
    if not file.exists():
        return {}
    records = {}
    for test, record in json.loads(file.read_text(encoding="utf8")).items():
        for claim in record["claims"]:
            records.setdefault(claim, []).append({"test": test, **record})
    return records


class Source(SphinxRole):
    """``{source}`T-9``` or ``{source}`T-9 (6.8)```: where the statement was found."""

    def run(self):
        claim_id, _, place = self.text.partition(" ")
        document = sources().get(claim_id[0])
        if document is None or claim_id not in {c["id"] for c in claims()}:
            message = self.inliner.reporter.error(f"no claim {claim_id!r} in the ledger")
            return [], [message]
        text = f"[{claim_id}, {document['kind']}{' ' + place if place else ''}]"
        return [nodes.inline("", text, classes=["dpn-source"])], []


class Generated(SphinxDirective):
    """A directive whose content is Markdown drawn from the ledger and the tests' evidence."""

    def run(self):
        self.env.note_dependency(str(ROOT / "_build" / "evidence.json"))
        seen = evidence()
        if not seen:
            log.warning(
                "no evidence: run the claim tests before the build", location=self.env.docname
            )
        box = nodes.container()
        lines = StringList(self.lines(seen), source="ledger")
        self.state.nested_parse(lines, self.content_offset, box)
        return box.children


FILTER = """\
:::{raw} html
<form class="claims-filter" role="search" aria-label="Filter the claims" hidden>
<label>Find <input type="search" name="words" placeholder="name, function, word"></label>
<label>Chapter <select name="chapter"><option value="">all</option>CHAPTERS</select></label>
<label><input type="checkbox" name="slips"> slips of the sources only</label>
<output></output>
</form>
:::"""


class ClaimsList(Generated):
    """A table of what was checked, a filter, and one list a chapter: what a claim says, and what
    computes and checks it."""

    def lines(self, seen):
        groups = {page: [c for c in finished_claims() if c["page"] == page] for page in chapters()}
        groups = {page: of_it for page, of_it in groups.items() if of_it}
        options = "".join(f"<option>{chapter}</option>" for chapter in groups)
        out = _summary(groups, seen) + FILTER.replace("CHAPTERS", options).splitlines()
        for chapter, claims_of_it in groups.items():
            out += ["", f"::::{{container}} claims-chapter chapter-{chapter}"]
            out += ["", f"**{{doc}}`{chapter}`**", ""]
            for claim in claims_of_it:
                slip = " slip" * is_slip(claim)
                out += [f":::{{container}} claim{slip}"]
                out += [*_entry(claim, seen.get(claim["id"], [])), ":::", ""]
            out += ["::::", ""]
        return out


def _summary(groups, seen):
    """A table: for each chapter claims, slips, tests, claims proved by machine, and so on."""
    heads = ("chapter", "claims", "slips", "tests", "proved by machine", "random instances")
    out = ["", f"| {' | '.join(heads)} | planted mistakes caught |", "|---" + "|--:" * 6 + "|"]
    for name, of_it in [*groups.items(), ("all", finished_claims())]:
        tests = {r["test"]: r for c in of_it for r in seen.get(c["id"], [])}.values()
        row = (
            len(of_it),
            sum(map(is_slip, of_it)),
            len(tests),
            sum(any("proved" in r for r in seen.get(c["id"], [])) for c in of_it),
            sum(r.get("instances", 0) for r in tests),
            sum(r.get("caught", 0) for r in tests),
        )
        name = "**all**" if name == "all" else f"{{doc}}`{name}`"
        out.append(f"| {name} | " + " | ".join(f"{n:,}" for n in row) + " |")
    return [*out, ""]


class SourcesList(Generated):
    """The source documents, each as it names itself."""

    def lines(self, seen):
        out = []
        for letter, one in sources().items():
            facts = [one.get("author"), str(one.get("date", "")), one.get("licence")]
            facts += [f"<{one['address']}>" if "address" in one else "", one.get("about")]
            said = "; ".join(fact for fact in facts if fact)
            out += [letter, f": *{one['title']}*, {one['kind']}{'. ' if said else ''}{said}.", ""]
        return out


class Errata(Generated):
    """Each slip of the sources: what is printed, what is right, what computing it gives."""

    def lines(self, seen):
        out = []
        for claim in filter(is_slip, finished_claims()):
            slips = [slip for r in seen.get(claim["id"], []) for slip in r.get("slips", [])]
            computed = [text for claim_id, text in slips if claim_id == claim["id"]]
            out += _erratum(claim, computed)
        return out


def _entry(claim, records):
    """The claim, then its functions, tests, instances, tightness and mistakes caught."""
    by = sorted({f"`{name}`" for r in records for name in r["by"]})
    tests = [f"`{r['test'].split('::')[-1]}`" for r in records]
    facts = [f"{sum(r.get('instances', 0) for r in records):,} instances"]
    slack = [r["slack"] for r in records if "slack" in r]
    error = [r["error"] for r in records if "error" in r]
    caught = sum(r.get("caught", 0) for r in records)
    facts += [f"smallest slack {max(min(slack), 0):.1e}"] if slack else []
    facts += [f"largest error {max(error):.1e}"] if error else []
    facts += [f"{caught} planted mistake{'s' * (caught > 1)} caught"] if caught else []
    name = f"{{prf:ref}}`{claim['id']} <{label(claim['id'])}>`"
    checked = f"{', '.join(by) or 'no function of its own'}; tested by {', '.join(tests)}"
    statement = " ".join(claim["statement"].split())
    proved = "; ".join(text for r in records for text in r.get("proved", []))
    by_machine = [f"*Proved by machine:* {proved}.", ""] if proved else []
    return [f"**{name}** {statement}.", "", f"{checked}: {', '.join(facts)}.", "", *by_machine]


def _erratum(claim, computed):
    document = sources()[claim["id"][0]]
    name = f"{{prf:ref}}`{claim['id']} <{label(claim['id'])}>`"
    out = ["", f"**{name}**, {document['kind']} “{document['title']}” ({claim['printed']})", ""]
    out += [claim.get("correction", claim["statement"]), ""]
    out += [f"- *Computed:* {text}" for text in computed]
    if "uncomputed" in claim:
        out.append(f"- *Nothing computed:* {claim['uncomputed']}")
    return [*out, ""]


def setup(app):
    app.add_role("source", Source())
    app.add_directive("claims-table", ClaimsList)
    app.add_directive("sources-list", SourcesList)
    app.add_directive("errata", Errata)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
