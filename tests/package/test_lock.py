"""The lock: every package that is asked for has a version that fits. pip asks for the hashes."""

import re

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from machine import ROOT


def test_every_package_asked_for_is_locked():
    lock = re.findall(r"^([\w.-]+)==([^\s;\\]+)", (ROOT / "requirements.txt").read_text(), re.M)
    lines = (ROOT / "requirements.in").read_text().splitlines()
    asked = [Requirement(line) for line in lines if line and line[0] != "#"]
    assert len(asked) > 10
    for each in asked:
        pins = [v for name, v in lock if canonicalize_name(name) == canonicalize_name(each.name)]
        assert pins and all(map(each.specifier.contains, pins)), f"{each}: run `make pins`"
