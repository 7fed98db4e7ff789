"""The command line: ``python -m dpnotes epsilon --sigma 1.1 --rate 0.00427 --steps 14100 --delta
1e-5``. It reads arguments into a query, asks ``calculator.answers`` and prints what comes back.

Bad input is one line on stderr that names the argument, and exit code 2.
"""

import argparse
import json
import os
import re
import sys
import textwrap
from math import ceil, floor
from pathlib import Path

from .. import __version__
from ..proofs import Proof, check
from .questions import answers, proof, risk
from .runs import ASKED, MECHANISMS
from .typed import number
from .wording import digits

MEANS = {"batch": "rate", "epochs": "steps"}  # what --batch and --epochs stand for
RUN = "dpnotes" if Path(sys.argv[0]).stem == "dpnotes" else "python -m dpnotes"  # as it was called
NAMES = ("epsilon", "delta", *ASKED, "steps", "rate", "batch", "risk", "prove")
ABOUT = """\
How private is a computation that uses noise? What it publishes would have been nearly as likely
without any one person: every event's probability changes by a factor of at most e^epsilon, but
for a small probability delta. The number comes with an enclosure and is its upper end. Beside it
stands what each theorem of the book says of the same run, with its claim and the page that proves
it.

questions (the first word) and an example of each
  epsilon  of a run, at a delta
             {run} epsilon --sigma 1.1 --rate 256/60000 --steps 14100 --delta 1e-5
  delta    of a run, at an epsilon
             {run} delta --scale 10 --steps 100 --epsilon 4
{asked}  steps    how many steps a budget allows
             {run} steps --sigma 1.1 --rate 0.01 --epsilon 3 --delta 1e-5
  rate     the largest rate of sampling
             {run} rate --sigma 1.1 --steps 5000 --epsilon 3 --delta 1e-5
  batch    the largest one, for so many people and passes over the data
             {run} batch --sigma 1.1 --rows 60000 --epochs 20 --epsilon 3 --delta 1e-6
  risk     what attacks find, at a rate of false alarms (1 % unless said)
             {run} risk --sigma 1.1 --rate 256/60000 --steps 14100 --fpr 0.01
  prove    a file that proves epsilon (if none is given, the least one) at a delta
             {run} prove --sigma 4 --rate 0.01 --steps 10000 --delta 1e-5
  check    such a file anew, in ball arithmetic: {run} check run.json
""".format(
    run=RUN,
    asked="".join(
        f"  {name:<8} {MECHANISMS[ASKED[name]].asks}\n"
        f"             {RUN} {name} --steps 100 --epsilon 1 --delta 1e-6\n"
        for name in ASKED
    ),
)

WORDS = """\
words
  neighbours  two datasets that differ in one person. With --rate below 1: one person added or
              removed. Without: whichever you mean, as long as the query then has sensitivity 1.
  rate        Poisson sampling: every person takes part in a step with this probability,
              independently. With --rows, --batch and --epochs stand for --rate and --steps.
              Batches that are shuffled or of fixed size are another mechanism (page
              "subsampling").
  fpr         false positive rate, the false alarms: of those who are not in the data, the part
              that an attack names all the same.
  steps       how often it is done; each step may depend on what came out before.
  --then      another mechanism after the first: ... --sigma 4 --steps 10 --then --scale 20 ...
              The question is about the first one.

Numbers may be written as 0.001, 1e-3, 10^-3, 1/1000 or 0.1%. Everything is in natural logarithms.
"""


class _Parser(argparse.ArgumentParser):
    """Says what is wrong in one line."""

    def error(self, message):
        print(f"{RUN}: {message}", file=sys.stderr)
        sys.exit(2)


def _number(text):
    """1e-5, 0.01, 256/60000 or 1%."""
    try:
        return number("it", text.strip())
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def _parser():
    parser = _Parser(
        prog=RUN, description=ABOUT, epilog=WORDS, allow_abbrev=False,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )  # fmt: skip
    parser.add_argument("--version", action="version", version=f"dpnotes {__version__}")
    parser.add_argument("question", choices=NAMES, metavar="question", help=", ".join(NAMES))
    which = parser.add_argument_group("the mechanism, one of these")
    for name, known in MECHANISMS.items():
        two, shown = (2, ("EPSILON", "DELTA")) if name == "approximate" else (None, "X")
        which.add_argument(
            f"--{known.option}", dest=name, type=_number, nargs=two, metavar=shown, help=known.words
        )
    how = parser.add_argument_group("how it is used")
    how.add_argument("--rate", type=_number, metavar="R", help="of Poisson sampling (1: all)")
    how.add_argument("--steps", type=_number, metavar="K", help="how many times (1)")
    how.add_argument("--batch", type=_number, metavar="B", help="people in a batch, for --rate")
    how.add_argument("--epochs", type=_number, metavar="P", help="passes, for --steps")
    target = parser.add_argument_group("the target, and what else is known")
    target.add_argument("--epsilon", type=_number, metavar="E", help="odds change by at most e^E")
    target.add_argument(
        "--delta", type=_number, metavar="D", help="but for this probability (pure: 0)"
    )
    target.add_argument("--fpr", type=_number, metavar="A", help="false alarms of an attack (1%%)")
    target.add_argument("--rows", type=_number, metavar="N", help="people in the data")
    target.add_argument("--json", action="store_true", help="print a JSON object instead")
    return parser


def _part(parsed, parser, asked=None):
    """The mechanism that one group of options describes, without the number that is `asked` for."""
    given = [name for name in MECHANISMS if getattr(parsed, name) is not None]
    options = [f"--{MECHANISMS[name].option}" for name in given]
    if asked in ASKED:
        if given:
            parser.error(f"argument {options[0]}: {asked} is what is asked for")
        part = {"mechanism": ASKED[asked]}
    elif len(given) != 1:
        one = ", ".join(f"--{known.option}" for known in MECHANISMS.values())
        parser.error(f"one mechanism is needed ({one}), got {' and '.join(options) or 'none'}")
    else:
        mechanism, known = given[0], MECHANISMS[given[0]]
        value = getattr(parsed, mechanism)
        part = {"mechanism": mechanism, known.parameter: value}
        if mechanism == "approximate":
            part["epsilon"], part["delta"] = value
    for name in ("rate", "steps", "batch", "epochs"):
        value = getattr(parsed, name)
        if value is not None and asked in (name, MEANS.get(name, name)):
            parser.error(f"argument --{name}: {asked} is what is asked for")
        part |= {} if value is None else {name: value}
    return part


def read(arguments):
    """The query that the arguments describe, and whether JSON is wanted."""
    parser = _parser()
    groups: list[list[str]] = [[]]
    for word in arguments:
        if word == "--then":
            groups.append([])
        else:  # argparse takes -1e-5 for an option, unless there is a space in it
            groups[-1].append(f" {word}" if re.match(r"-[\d.]", word) else word)
    first = parser.parse_args(groups[0])
    parts, target = [_part(first, parser, first.question)], vars(first)
    for group in groups[1:]:
        later = parser.parse_args([first.question, *group])
        parts.append(_part(later, parser))
        for name in ("epsilon", "delta", "fpr", "rows"):
            target[name] = target[name] if getattr(later, name) is None else getattr(later, name)
        target["json"] |= later.json
    question = "noise" if first.question in ASKED else first.question
    for name in ("epsilon", "delta") if question == "risk" else ("fpr",):
        if target[name] is not None:
            parser.error(f"argument --{name}: {first.question} does not depend on it")
    names = ("epsilon", "delta", "fpr", "rows")
    wanted = {name: target[name] for name in names if name != question}
    wanted = {name: value for name, value in wanted.items() if value is not None}
    return {"question": question, "parts": parts, **wanted}, target["json"], parser


def report(answer):
    """The lines to print."""
    itself = answer["question"] in ("epsilon", "delta")  # and no noise, number or rate
    equals = "is at most" if itself and not answer["sharp"] else "="
    lines = [f"{answer['name']} {equals} {answer['shown']}"]
    between = f"between {answer['shown_low']} and {answer['shown_high']}"
    if answer["shown"] == "infinite":
        lines[0] += f"   (no finite epsilon holds at delta = {answer['shown_delta']})"
    elif itself:
        lines[0] += f"   ({between})"
    else:
        lines.append(f"epsilon then is {between}")
    lines.append(answer["attack"])
    said = [row for row in answer["rows"] if row["epsilon"] is not None]
    title = "epsilon by each theorem," if said else "no theorem gives a finite epsilon"
    lines += ["", f"{title} at delta = {answer['shown_delta']}", *([""] if said else [])]
    for row in sorted(said, key=lambda row: (row["kind"] == "approximation", row["epsilon"])):
        kind = "   an approximation, not a bound" if row["kind"] == "approximation" else ""
        lines.append(f"  {row['shown']:>10}  {row['name']:<30} {row['claim']}, {row['page']}{kind}")
    silent = [row for row in answer["rows"] if row["epsilon"] is None]
    lines += ["", *(["these say nothing here", ""] if silent else [])]
    lines += [f"  {row['name']:<30} {row['claim']}: {row['why']}" for row in silent]
    lines += [""] if silent else []
    for text in answer["warnings"]:
        lines += textwrap.wrap(text, 96, initial_indent="- ", subsequent_indent="  ")
    lines += ["", *(f"  {line}".rstrip() for line in answer["call"].splitlines())]
    return "\n".join(lines)


def report_risk(found):
    """The lines to print."""
    low, high = found["mu"]
    high = "infinite" if high is None else digits(high, 5, ceil)
    lines = [
        found["shown"],
        "",
        f"TPR at most {digits(found['tpr'], 5, ceil)} at FPR {digits(found['fpr'], 5, floor)}",
        f"advantage at most {digits(found['advantage'], 5, ceil)}",
        f"mu between {digits(low, 5, floor)} and {high}",
    ]
    return "\n".join(lines)


def main(arguments=None):
    """Answer one question; exit code 2 for bad input. Without a question, examples."""
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # consoles that have no Greek
    arguments = sys.argv[1:] if arguments is None else arguments
    if not arguments:
        return write(f"{ABOUT}\n{RUN} --help explains every option and word.")
    if arguments[0] == "check":
        return write(checked_file(arguments[1:]))
    query, as_json, parser = read(arguments)
    try:
        if query["question"] == "prove":
            return write(proof(query).text().rstrip())
        ask, say = (risk, report_risk) if query["question"] == "risk" else (answers, report)
        answer = ask(query)
    except (ValueError, ImportError) as error:
        parser.error(" ".join(str(error).split()))
    return write(json.dumps(answer, indent=1, allow_nan=False) if as_json else say(answer))


def checked_file(arguments):
    """What a file proves, in words."""
    parser = _Parser(prog=f"{RUN} check", description="Checks a file of `prove`.")
    parser.add_argument("file", type=Path)
    try:
        claim = Proof.read(parser.parse_args(arguments).file.read_text(encoding="utf8"))
        delta = check(claim)
    except (OSError, ValueError, ImportError) as error:
        parser.error(" ".join(str(error).split()))
    steps = " + ".join(
        ", ".join([f"{step['times']} x {step['kind']}", *_parameters(step)]) for step in claim.steps
    )
    return (
        f"proved: {steps}\nis ({claim.epsilon}, {claim.delta})-DP when a person is"
        f" {claim.neighbours}\n(this line proves delta = {delta!r})"
    )


def _parameters(step):
    """Its numbers in words; of a finite law how many it has."""
    names = [name for name in step if name not in ("kind", "times")]
    return [
        f"{name} {len(step[name])} numbers" if step["kind"] == "finite" else f"{name} {step[name]}"
        for name in names
    ]


def write(text):
    """Print, to a reader who may have seen enough after some lines (``| head -1``)."""
    try:
        print(text, flush=True)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
