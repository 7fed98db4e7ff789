"""The list of the numbers that are proved: each file of the folder `proofs`, to be downloaded."""

import json

from pages.ledger import Generated
from surroundings import ROOT

FOLDER = ROOT / "proofs"


class ProofsList(Generated):
    """A table: which run, what is proved, and the file."""

    def lines(self, seen):
        out = ["", "| page | run | ε | δ | proof |", "|---|---|---|---|---|"]
        for file in sorted(FOLDER.glob("*.json")):
            said = json.loads(file.read_text(encoding="utf8"))
            run = "; ".join(map(words, said["steps"][:2]))
            run += f"; {len(said['steps']) - 2} more" if len(said["steps"]) > 2 else ""
            link = f"{{download}}`{file.name} </proofs/{file.name}>`"
            page = file.stem.replace("-", " ")
            out.append(f"| {page} | {run} | {said['epsilon']} | {said['delta']} | {link} |")
        return [*out, ""]


def words(step):
    """A step and how often it is run."""
    known = [f"{name} {step[name]}" for name in ("sigma", "rate", "scale") if name in step]
    known += [f"p = {', '.join(step['p'])}"] if "p" in step else []
    return f"{step['times']:,} × {step['kind']}, {', '.join(known)}"


def setup(app):
    app.add_directive("proofs-table", ProofsList)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
