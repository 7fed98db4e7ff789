"""What marking alone needs, with the pins and hashes of the project's one lock.

python -m assignments.grader.pins > grading.txt
"""

import re
from importlib import metadata
from pathlib import Path

from packaging.requirements import Requirement

LOCK = Path(__file__).resolve().parents[2] / "requirements.txt"
# the packages that the grader, the masters and students' notebooks import
NEEDED = """ipython jupytext markdown-it-py matplotlib mdit-py-plugins nbformat nbgrader numpy
pandas psutil PyYAML scikit-learn scipy statsmodels tqdm""".split()


def normal(name):
    return re.sub(r"[-_.]+", "-", name).lower()


def entries(lock):
    """{package: its lines} of a lock with hashes."""
    found = {}
    for entry in re.split(r"\n(?=[A-Za-z0-9])", lock):
        if name := re.match(r"([A-Za-z0-9._-]+)==", entry):
            name = normal(name[1])  # there can be one version for each version of Python
            found[name] = found.get(name, "") + entry.rstrip("\n") + "\n"
    return found


def required(names, lock):
    """These packages and all that they require, as far as the lock has them: what it has not is
    for other systems."""
    found, waiting = set(), [(normal(name), frozenset()) for name in names]
    while waiting:
        name, extras = waiting.pop()
        if (name, extras) in found or name not in lock:
            continue
        found.add((name, extras))
        try:
            asked = map(Requirement, metadata.requires(name) or [])
        except metadata.PackageNotFoundError:  # locked for another system
            continue
        for r in asked:
            condition = str(r.marker or "")
            if "extra ==" not in condition or any(f'"{extra}"' in condition for extra in extras):
                waiting.append((normal(r.name), frozenset(r.extras)))
    return sorted({name for name, _ in found})


def for_grading():
    """The text of a requirements file."""
    lock = entries(LOCK.read_text(encoding="utf-8"))
    return "".join(lock[name] for name in required(NEEDED, lock))


if __name__ == "__main__":
    print(for_grading(), end="")
