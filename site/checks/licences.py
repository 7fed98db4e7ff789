"""Who owns each file of the built site, and under which licence we hand it on.

`licences.yml` says it by pattern; the first that fits counts. `write` puts ``licences.txt`` into
the site: owner, licence and source of what is there, and the licences' texts as the installed
packages bring them. A file of no owner is a fault of the build: whoever adds one says whose it is.
"""

import re
import zipfile
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, files
from pathlib import Path, PurePosixPath

import yaml

from surroundings import ROOT

HERE = Path(__file__).resolve().parent
FILE = "licences.txt"
NAME = re.compile(r"(?:^|/)(?:LICEN[CS]E|COPYING)[^/]*$", re.I)


@dataclass(frozen=True)
class Owner:
    """Whose the files are that match one of `patterns` (whole paths, as in a shell)."""

    name: str
    patterns: tuple
    licence: str
    source: str = ""
    package: str = ""  # installed from PyPI: its licence files are copied
    text: str = ""  # or a licence file of this tree
    note: str = ""


TABLE = yaml.safe_load((HERE / "licences.yml").read_text(encoding="utf-8"))["owners"]
OWNERS = [Owner(**{**one, "patterns": tuple(one["patterns"])}) for one in TABLE]
PACKAGES = OWNERS[-1]  # of others, for Python in the page


def owner_of(path):
    """The owner of a file, by its path from the root of the site; None if nobody is named."""
    whole = PurePosixPath("/", path)
    fits = (o for o in OWNERS if any(whole.match(f"/{pattern}") for pattern in o.patterns))
    return next(fits, None)


def paths_of(site):
    """Paths of all files of the site, from its root."""
    paths = (path.relative_to(site).as_posix() for path in site.rglob("*") if path.is_file())
    return sorted(paths)


def unowned(site):
    """Faults: files of nobody, and wheels of others without a licence inside."""
    for path in paths_of(site):
        owner = owner_of(path)
        if owner is None:
            yield f"{path}: whose is it? (licences.yml)"
        elif owner is PACKAGES:
            with zipfile.ZipFile(site / path) as wheel:
                if not any(map(NAME.search, wheel.namelist())):
                    yield f"{path}: holds no licence"


def texts(owner, root=ROOT):
    """The licence files of an owner, as text."""
    if owner.text:
        return [(root / owner.text).read_text(encoding="utf-8")]
    if not owner.package:
        return []
    try:
        beside = [path for path in files(owner.package) or () if NAME.search(str(path))]
    except PackageNotFoundError:
        beside = []
    own = [path for path in beside if ".dist-info/" in str(path)]
    if not own:
        raise ValueError(f"{owner.package} brings no licence file: give its text another way")
    return [path.read_text(encoding="utf-8") for path in own]


def report(paths, root=ROOT):
    """What `licences.txt` says of a site with these files."""
    there = {}
    for path in paths:
        owner = owner_of(path)
        if owner:
            there.setdefault(owner, []).append(path)
    parts = ["What this site serves, whose it is, and under which licence.\n"]
    for owner in (o for o in OWNERS if o in there):
        shown = there[owner] if len(there[owner]) <= 20 else owner.patterns
        lines = [owner.name, f"  Licence: {owner.licence}"]
        lines += [f"  Source: {owner.source}"] * bool(owner.source)
        lines += [f"  {owner.note}"] * bool(owner.note) + [f"  {path}" for path in shown]
        parts.append("\n".join(lines) + "\n")
    for owner in (o for o in OWNERS if o in there):
        for text in texts(owner, root):
            parts.append(f"{'=' * 80}\n{owner.name}\n{'=' * 80}\n\n{text.strip()}\n")
    return "\n".join(parts)


def write(site, root=ROOT):
    """Write ``licences.txt``."""
    (site / FILE).write_text(report([*paths_of(site), FILE], root), encoding="utf-8")
