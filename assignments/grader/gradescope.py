"""An autograder zip for Gradescope: the grader, one master, and the scripts that it calls."""

import json
import sys
import traceback
import zipfile
from pathlib import Path

from . import judge, masters, sandbox, submissions, words

ROOT = Path(__file__).resolve().parents[2]
SETUP = """#!/usr/bin/env bash
set -e
apt-get update && apt-get install -y python3 python3-venv bubblewrap
for python in python3.13 python3.12 python3.11 python3 none; do
  command -v "$python" >/dev/null || continue
  "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info < (3, 14))' && break
done
if [ "$python" = none ] || ! command -v "$python" >/dev/null; then
  echo "Python 3.11 to 3.13 is needed, and this image has $(python3 --version)."
  echo "Choose Ubuntu 24.04 as the base image (Configure Autograder, Base Image) and upload again."
  exit 1
fi
"$python" -m venv /autograder/venv
/autograder/venv/bin/pip install --quiet -r /autograder/source/assignments/grading.txt
useradd --system --no-create-home student || true
chmod -R u+rX,go+rX /autograder/source /autograder/venv
chmod 700 /autograder/source
"""
# the file is written first: whatever stops the grader, Gradescope finds one that says so
START = """#!/usr/bin/env bash
results=/autograder/results/results.json
echo 'FAILED' >"$results"
cd /autograder/source
/autograder/venv/bin/python -m assignments.grader.gradescope NAME /autograder/submission "$results"
"""
FAILED = "The autograder itself failed, which costs you nothing. Please tell your instructor."


def failed(reason):
    """A result without points, with the reason for the staff alone."""
    why = {"name": "For the staff", "output": reason[-5000:], "visibility": "hidden"}
    return {"score": 0, "output": FAILED, "tests": [why], "stdout_visibility": "hidden"}


def write(name, masters_folder, target):
    """The zip to upload as the assignment's autograder."""
    masters.read(masters_folder / f"{name}.md")
    start = START.replace("NAME", name).replace(
        "FAILED", json.dumps(failed("it did not come to its end: see the output of run_autograder"))
    )
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as archive:
        for name_in_zip, text in (("setup.sh", SETUP), ("run_autograder", start)):
            info = zipfile.ZipInfo(name_in_zip)
            info.external_attr = 0o755 << 16
            archive.writestr(info, text)
        archive.write(masters_folder / f"{name}.md", f"assignments/{name}.md")
        for file in masters_folder.glob(words.FILE):
            archive.write(file, f"assignments/{file.name}")
        for file in ("requirements.txt", "assignments/grading.txt"):
            archive.write(ROOT / file, file)
        for folder in ("assignments/grader", "dpnotes"):
            for file in sorted((ROOT / folder).rglob("*")):
                if file.is_file() and "__pycache__" not in file.parts:
                    archive.write(file, file.relative_to(ROOT))


def as_gradescope(master, result):
    """Gradescope's results.json: points and messages; proofs are marked in its own rubric. The
    flags are a test that only the staff sees."""
    said = {**result["helped"], **result["messages"]}
    tests = [
        {"name": f"Question {q.id}", "score": result["scores"][q.id], "max_score": q.points,
         "output": master.words(said.get(q.id, "all tests hold")), "visibility": "after_due_date"}
        for q in master.questions if not q.manual
    ]  # fmt: skip
    flags = "\n".join(result["flags"]) or "no flags"
    tests.append({"name": "Flags, for the staff", "output": flags, "visibility": "hidden"})
    return {"tests": tests, "stdout_visibility": "hidden"}


def grade(name, folder):
    """Mark one submission: in bubblewrap where the container allows it, else as another user."""
    limits = sandbox.Limits()
    try:
        sandbox.check()
        launcher = sandbox.Bubblewrap(limits)
    except sandbox.SandboxError:
        launcher = sandbox.Bare(limits, user="student")
    master = masters.read(ROOT / "assignments" / f"{name}.md")
    entry = ("student", *submissions.choose(Path(folder), name))
    return as_gradescope(master, judge.grade_submission(master, entry, limits, launcher))


def main(name, folder, target):
    """Write results.json, whatever happens."""
    try:
        results = grade(name, folder)
    except BaseException:
        results = failed(traceback.format_exc())
        traceback.print_exc()
    Path(target).write_text(json.dumps(results), encoding="utf-8")


if __name__ == "__main__":
    main(*sys.argv[1:])
