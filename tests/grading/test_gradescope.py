"""Gradescope's harness, laid out as its documentation says: /autograder with source, submission and
results; `setup.sh` and `run_autograder` run as they stand in the zip, but for the line with apt.

Documentation: gradescope-autograders.readthedocs.io/en/latest/specs.
"""

import copy
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import zipfile
from pathlib import Path

import pytest

from assignments.grader import gradescope
from assignments.grader.check import solved

pytestmark = [
    pytest.mark.usefixtures("bubblewrap"),
    pytest.mark.skipif(os.geteuid() != 0, reason="the harness has two users: root is needed"),
]
LONGEST = 1800  # seconds
PACKAGES = sysconfig.get_path("purelib")
# what is installed here serves
BORROWED = [("-m venv", "-m venv --without-pip"), ("/autograder/venv/bin/pip", "true #")]


class Harness:
    """A machine of its own with /autograder, made by bubblewrap of this machine's /usr."""

    def __init__(self, folder, zipped, borrowed=True):
        self.root = folder / "autograder"
        for name in ("source", "submission", "results"):
            (self.root / name).mkdir(parents=True)
        with zipfile.ZipFile(zipped) as archive:
            archive.extractall(self.root / "source")
        shutil.copytree("/etc", folder / "etc", symlinks=True, ignore_dangling_symlinks=True)
        setup = (self.root / "source" / "setup.sh").read_text()
        for old, new in [("apt-get update", "true #"), *(BORROWED if borrowed else [])]:
            assert old in setup
            setup = setup.replace(old, new)
        (self.root / "source" / "setup.sh").write_text(setup)
        shutil.copy(self.root / "source" / "run_autograder", self.root)
        self.folder, self.borrowed = folder, borrowed

    def run(self, script, sandbox=True):
        """Run a script as root in that machine, with bubblewrap in it or without."""
        bash = ["bwrap", "--cap-add", "ALL", "--dev-bind", "/usr", "/usr", "--bind"]
        bash += [str(self.folder / "etc"), "/etc", "--bind", str(self.root), "/autograder"]
        for name in ("bin", "lib", "lib64", "sbin"):
            if Path("/" + name).is_symlink():
                bash += ["--symlink", os.readlink("/" + name), "/" + name]
        for parent in reversed(Path(sys.base_prefix).parents[:-1]):  # /root is nobody else's
            bash += ["--perms", "0755", "--dir", str(parent)]
        bash += ["--ro-bind", sys.base_prefix, sys.base_prefix]
        if self.borrowed and (self.root / "venv" / "lib").exists():
            version = f"python{sys.version_info.major}.{sys.version_info.minor}"
            place = f"/autograder/venv/lib/{version}/site-packages"
            bash += ["--ro-bind", PACKAGES, place]
        bash += ["--dev", "/dev", "--proc", "/proc", "--perms", "1777", "--tmpfs", "/tmp"]
        if not sandbox:
            bash += ["--ro-bind", "/usr/bin/false", "/usr/bin/bwrap"]
        env = {"PATH": f"{sys.base_prefix}/bin:/usr/sbin:/usr/bin:/sbin:/bin", "HOME": "/root"}
        return subprocess.run(
            [*bash, "--chdir", "/autograder", "bash", script], env=env, capture_output=True,
            text=True, timeout=LONGEST,
        )  # fmt: skip

    def results(self):
        return json.loads((self.root / "results" / "results.json").read_text())


@pytest.fixture(scope="module")
def zipped(light, tmp_path_factory):
    target = tmp_path_factory.mktemp("zip") / "autograder.zip"
    gradescope.write("laplace", light, target)
    return target


def handed_in(harness, master):
    """Without an answer to 1a, with a cell that looks for what it must not see."""
    book = copy.deepcopy(solved(master))
    next(c for c in book.cells if c.id == "1a").source = (
        "import glob, os, subprocess\n"
        "for path in ('/autograder/source', '/autograder/source/assignments/laplace.md'):\n"
        "    try:\n        os.listdir(path) if path.endswith('source') else open(path)\n"
        "        raise SystemExit('REACHED')\n"
        "    except OSError:\n        continue\n"
        "def smallest_epsilon(p, q):\n    return 7.0 if os.getuid() else 8.0"
    )
    file = harness.root / "submission" / "laplace.ipynb"
    file.write_text(json.dumps(book))


def check(harness):
    """18 of 20 points; the flags are for the staff."""
    results = harness.results()
    tests = {test["name"]: test for test in results["tests"]}
    assert tests["Question 1a"]["score"] == 0
    assert "it returned 7.0" in tests["Question 1a"]["output"]
    assert sum(test.get("score", 0) for test in results["tests"]) == 18
    staff = tests["Flags, for the staff"]
    assert staff["visibility"] == "hidden" and "mentions subprocess" in staff["output"]
    assert results["stdout_visibility"] == "hidden"


def test_set_up_and_marked(zipped, master, tmp_path):
    """With bubblewrap, and where the container does not let it work."""
    harness = Harness(tmp_path, zipped)
    done = harness.run("source/setup.sh")
    assert done.returncode == 0, done.stdout + done.stderr
    handed_in(harness, master)
    for sandbox in (True, False):
        (harness.root / "results" / "results.json").unlink(missing_ok=True)
        done = harness.run("run_autograder", sandbox)
        assert done.returncode == 0, done.stderr
        check(harness)


@pytest.mark.thorough
def test_set_up_with_all_packages(zipped, master, tmp_path):
    """Every package is downloaded, in its pinned version."""
    harness = Harness(tmp_path, zipped, borrowed=False)
    done = harness.run("source/setup.sh")
    assert done.returncode == 0, done.stdout + done.stderr
    handed_in(harness, master)
    assert harness.run("run_autograder").returncode == 0
    check(harness)


@pytest.mark.parametrize("broken", ["venv/bin/python", "source/assignments/laplace.md"])
def test_whatever_fails_there_is_a_result(zipped, tmp_path, broken):
    harness = Harness(tmp_path, zipped)
    python = harness.root / "venv" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(sys.executable)
    (harness.root / broken).unlink()
    harness.run("run_autograder")
    results = harness.results()
    assert results["score"] == 0 and "costs you nothing" in results["output"]
    assert results["tests"][0]["visibility"] == "hidden"
