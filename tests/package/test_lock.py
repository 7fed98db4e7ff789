"""The lock: every package that is asked for has one version and its hashes."""

import re
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parents[2]


def locked(path):
    """Requirements of a lock, each with its hashes: {name: [(requirement, hashes)]}."""
    found = {}
    for block in re.split(r"\n(?=[A-Za-z0-9])", path.read_text(encoding="utf-8")):
        line, *rest = block.split(" \\\n")
        if line.startswith("#"):
            continue
        requirement = Requirement(line.strip())
        hashes = [re.fullmatch(r"--hash=(sha256:[0-9a-f]{64})\s*", each.strip()) for each in rest]
        found.setdefault(requirement.name, []).append((requirement, hashes))
    return found


def asked(path):
    lines = (line.partition("#")[0].strip() for line in path.read_text().splitlines())
    return [Requirement(line) for line in lines if line]


LOCK = locked(ROOT / "requirements.txt")


def test_every_package_asked_for_is_locked():
    names = {
        re.sub(r"[-_.]+", "-", each.name).lower(): each for each in asked(ROOT / "requirements.in")
    }
    assert len(names) > 10
    for name, requirement in names.items():
        assert name in LOCK, f"{name}: run `make pins`"
        for pin, _ in LOCK[name]:
            assert requirement.specifier.contains(next(iter(pin.specifier)).version), name


def test_every_pin_has_one_version_and_hashes():
    for name, pins in LOCK.items():
        for requirement, hashes in pins:
            assert [each.operator for each in requirement.specifier] == ["=="], name
            assert hashes and all(hashes), name
