"""What sheets and feedback say besides their masters, and the same in another language.

A file `sentences.yml` beside the masters has them: `rules`, `home`, `own`, `answer` and `rubric` of
the sheets, and under `feedback` each English sentence with its translation, `{}` for what varies.
What instructors read stays English.
"""

import re
from dataclasses import dataclass, field

import yaml

FILE = "sentences.yml"
RULES = """Replace each `raise NotImplementedError()` by your code and each *Your answer here.* by your text.
The cell after each code cell tests it: no output means that these tests hold.
Marking uses more tests than the ones you see, with other numbers.
Answers may be numbers (fractions too), strings, lists, tuples, dictionaries, NumPy arrays or pandas columns.
A cell, and the tests of a question, may work for 30 seconds, the whole notebook for four minutes; marking runs Python 3.11 to 3.13 with NumPy 2 (no `np.trapz`).
"""  # noqa: E501
HOME = """

On the book's page nothing needs to be installed.
For a notebook of your own: `pip install {packages}`{own}.
Put your name into the name of the file that you hand in: `{name}-yourname.ipynb`."""
OWN = """, and the book's own package: `pip install .` in the book's folder, or `pip install` with
the file `downloads/dpnotes-0-py3-none-any.whl` of the book's site"""
ANSWERED_NOT = "not answered"  # nobody has to type this zero; a mark by hand takes its place
LENT = "all tests hold, with a correct answer to an earlier question in the place of yours"
STUB = "not answered: the cell is as it was given out"
NO_NOTEBOOK = "no notebook was handed in"
NOT_REACHED = "no code of this question was reached"
UNREACHED = "the tests that are not shown were not reached"
HIDDEN = "your code failed in a test that is not shown"
FIXED = [ANSWERED_NOT, LENT, STUB, NO_NOTEBOOK, NOT_REACHED, UNREACHED, HIDDEN]
FEEDBACK = [
    *FIXED,
    *"""
all tests hold
not marked yet
no mark yet
could not be marked
model answer
your code took longer than {} seconds of processor time in a test that is not shown
no time was left for this question: your cells took most of the {} seconds there are
your code raised {}: {}
your code took too long
your code used too much memory
your code made too many files
your code ended by itself
your code was stopped: there were too many crashes or no time was left
your result could not be used ({})
your result could not be used, nor shown
a test of this question failed
your file could not be read as a notebook ({}); hand it in again
`{}` is not defined; define it in the cell of question {}
`{}` can't be tested: {}
the cell that should define `{}` stopped with {}
The last call was {}; it returned {}. Did you forget `return`?
The last call was {}; it returned {}.
Corrected by hand: {}
{} of {} points
{} points by tests; the rest is not marked yet
marked on {}: {}
class median {}
Late by {} days: {} of grace, {} % of {} points for each day after, {} points less.
Late by {} days: {} % of {} points for each day after, {} points less.
{}: {} of {}
""".strip().splitlines(),
]


def pattern(sentence):
    return re.compile("(.*)".join(map(re.escape, sentence.split("{}"))), re.S)


@dataclass(frozen=True)
class Words:
    """The sentences of one language; called with a text of the feedback it translates that."""

    language: str = "en"
    rules: str = RULES
    home: str = HOME
    own: str = OWN
    answer: str = "*Your answer here.*"
    rubric: str = "*Rubric.*"
    feedback: dict = field(default_factory=dict)  # English -> this language

    def __call__(self, text):
        return "\n".join(map(self.line, text.split("\n"))) if self.feedback else text

    def line(self, text):
        for sentence in FEEDBACK:
            if sentence in self.feedback and (found := pattern(sentence).fullmatch(text)):
                return self.feedback[sentence].format(*found.groups())
        return text


def read(folder):
    """The words of the masters in a folder: English, where it has no file of sentences."""
    if not (folder / FILE).exists():
        return Words()
    known = yaml.safe_load((folder / FILE).read_text(encoding="utf-8"))
    missing = [s for s in FEEDBACK if s not in known.get("feedback", {})]
    unknown = [s for s in known.get("feedback", {}) if s not in FEEDBACK]
    unknown += sorted(set(known) - set(Words.__dataclass_fields__))
    if missing or unknown:
        what = [f"no sentence for {s!r}" for s in missing]
        what += [f"{s!r} is none of its sentences" for s in unknown]
        raise ValueError(f"{folder / FILE}: " + "; ".join(what))
    return Words(**known)
