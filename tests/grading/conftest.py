"""Shared by the grading tests: the sandbox or why not, a light master."""

import os
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from assignments.grader import masters, sandbox  # noqa: E402

# the laplace assignment without what makes a start slow (pandas, statsmodels, plots): most tests
# start some dozens of students' processes and ask the same of a light assignment
LIGHTER = [
    ("import matplotlib.pyplot as plt\n", ""),
    ("from statsmodels.datasets import randhie\n", ""),
    ('randhie.load_pandas().data["mdvis"].to_numpy().astype(int)', "np.repeat(np.arange(78), 9)"),
]
# and calls one at a time a tenth as often, within bands as safe (by the same two inequalities)
LIGHTER += [
    ("range(1000)", "range(100)"), ("< 0.09", "< 0.27"), ("range(99, ", "range(9, "),
    ("[:100]", "[:10]"), ("range(400)", "range(40)"), ("< 0.15", "< 0.43"),
    ("range(49, ", "range(9, "), ("[:50]", "[:10]"),
]  # fmt: skip
PLOT = ("fig, ax = plt.subplots()\n", "plt.show()\n")


@pytest.fixture(scope="session")
def bubblewrap():
    try:
        sandbox.check()
    except sandbox.SandboxError as problem:
        if os.environ.get("CI") and sys.platform == "linux":
            pytest.fail(f"grading must be tested in CI: {problem}")
        pytest.skip(f"grading needs bubblewrap: {problem}")


@pytest.fixture(scope="session")
def light(tmp_path_factory):
    """A folder of masters with the light `laplace` in it."""
    text = (ROOT / "assignments" / "laplace.md").read_text()
    for heavy, lighter in LIGHTER:
        assert heavy in text
        text = text.replace(heavy, lighter)
    first, last = PLOT
    text = text[: text.index(first)] + text[text.index(last) + len(last) :]
    folder = tmp_path_factory.mktemp("masters")
    (folder / "laplace.md").write_text(text)
    return folder


@pytest.fixture(scope="session")
def master(light):
    return masters.read(light / "laplace.md")
