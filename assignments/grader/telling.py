"""What a student reads about a test that failed."""

import traceback
from pathlib import Path

import numpy as np

from .files import neutral
from .public_tests import PublicTests
from .session import SandboxEnded, StudentError

HERE = Path(__file__).parent
TESTS = "public tests of"  # so their code is called


def explain_failed_test(error, source, space, calls):
    """What a student reads about a public test that failed: it has this source, and ran in this
    space."""
    if isinstance(error, StudentError):
        return f"your code raised {error.name}: {error}"
    if isinstance(error, SandboxEnded):
        return f"your code {error}"
    said = str(error)
    if not isinstance(error, AssertionError):
        said = wanted(error, source, space)
        said = said or f"your result could not be used ({type(error).__name__}: {error})"
    return "\n".join([said, *(Told.call_text(*call) for call in calls)])


def wanted(error, source, space):
    """What a test asked for where it could not use what an answer returned; an empty text where it
    has not got it."""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename.startswith(TESTS)]
    ours = any(Path(frame.filename).parent == HERE for frame in frames[2:])
    return PublicTests.wanted(source, lines[0], space) if lines and not ours else ""


def brief(value):
    """A value, or an exception's text, in at most 120 characters: this can't fail."""
    try:
        if isinstance(value, np.random.Generator):
            return "a generator"
        if isinstance(value, np.ndarray):
            return np.array2string(value, threshold=6, edgeitems=2, precision=6)[:120]
        return neutral(repr(value.item() if isinstance(value, np.generic) else value))[:120]
    except Exception:  # a number with too many digits, a list that is too deep
        return "something that can't be shown"


class Told(PublicTests):
    """The sentence of the notebooks, with values as the grader may show them."""

    brief = staticmethod(brief)
