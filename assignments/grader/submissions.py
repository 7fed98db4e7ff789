"""Find what students handed in: which file is whose, as course systems and computers name them."""

import os
import re
from collections import Counter
from datetime import datetime
from itertools import islice
from pathlib import Path

from .files import folded, named

DEEPEST, MOST = 8, 5000  # folders below each other, and entries, that are searched for a notebook
READABLE = (".ipynb", ".md", ".py", ".zip")
# what macOS, Windows, Jupyter and Brightspace put beside files
LITTER = {"__MACOSX", "desktop.ini", "Thumbs.db", ".ipynb_checkpoints", "index.html"}
CANVAS = re.compile(
    r"(?:(?P<name>(?!LATE_).+?)_)?(?P<late>LATE_)?"
    r"(?P<id>(?(name)\d+|anon_[A-Za-z0-9]+))_(?:(?P<file>\d+)_.+|text|link)"
)
MOODLE = re.compile(r"(?P<name>.+)_(?P<id>\d+)_assignsubmission_(?:file|onlinetext)_?.*")
BLACKBOARD = re.compile(r"(?P<id>.*_(?P<name>[^_]+))_attempt_(?P<file>\d{4}(-\d\d){5})(?:_.+)?")
BRIGHTSPACE = re.compile(
    r"(?P<id>\d+-\d+) - (?P<name>.+?) - (?P<file>[A-Z][a-z]+ \d+, \d{4} \d{3,4} [AP]M)(?: - .+)?"
)
TYPED = re.compile(  # no file of theirs: in Canvas, Blackboard, Moodle
    r".+_(?:text|link)\.html|.+_attempt_\d{4}(-\d\d){5}\.txt|.+_assignsubmission_onlinetext.*"
)
TEXT = "a text was typed in the course system"
COPY = re.compile(r"(?: ?\((\d+)\)|-(\d+))$")  # "laplace (1)", and Canvas' "laplace-1"


def is_litter(name):
    return name.startswith(".") or name in LITTER


def readable(name):
    """Browsers and Windows change endings: "a.IPYNB", "a.ipynb.txt"."""
    return name.lower().endswith(READABLE) or ".ipynb" in name.lower()


def find(folder, name):
    """[(student, path or None, flags)]: a notebook each, or a subfolder with notebooks."""
    return [(student, path, flags) for student, path, flags, _ in numbered(folder, name)]


def numbered(folder, name):
    """As `find`, and fourth the student's number in Canvas, or an empty text."""
    entries = []
    for entry in sorted(Path(folder).iterdir(), key=lambda p: p.name):
        path = None
        if is_litter(entry.name):
            continue
        student, number, flags = owner(entry.name if entry.is_dir() else entry.stem)
        if entry.is_symlink():
            student, number, flags = named(entry.name), "", ["a link instead of a file"]
        elif TYPED.fullmatch(entry.name):
            flags = [*flags, TEXT]
        elif entry.is_dir():
            path, more = choose(entry, name)
            flags = flags + more
        elif entry.is_file():
            path, flags = entry, flags + ["renamed file"] * (not readable(entry.name))
        else:
            continue
        entries.append((student, number, path, flags))
    return with_unique_names(newest_of_each(entries))


def owner(name):
    """(student, number in the course system, flags) of a file's or folder's name."""
    name = named(name)
    if parts := CANVAS.fullmatch(name):
        late = ["late, as Canvas says"] if parts["late"] else []
        return parts["name"] or parts["id"], parts["id"], late
    if parts := MOODLE.fullmatch(name):
        hidden = parts["name"] == "Participant"  # Moodle's word where names are not shown
        name = f"Participant {parts['id']}" if hidden else parts["name"]
        return name, f"Moodle {parts['id']}", []
    if parts := BLACKBOARD.fullmatch(name) or BRIGHTSPACE.fullmatch(name):
        return parts["name"], parts["id"], []
    return name, "", []


def newest_of_each(entries):
    """Several files of one number in the course system are one student's: the newest is marked."""
    kept, seen = [], {}
    for student, number, path, flags in entries:
        if not number or (student, number) not in seen:
            kept.append([student, number, path, flags])
            seen[student, number] = kept[-1]
            continue
        other = seen[student, number]
        files = sorted(filter(None, [other[2], path]), key=age)
        flags = list(dict.fromkeys([*other[3], *flags]))
        if files and BLACKBOARD.fullmatch(files[-1].stem):  # it writes a text for each attempt
            flags = [flag for flag in flags if flag != TEXT]
        if len(files) == 2:
            flags.append(f"several files: not marked: {files[0].name}")
        other[2:] = files[-1] if files else None, flags
    return kept


def age(path):
    """Sorts notebooks behind other files, then by what the course system says of the file's age,
    the time of the last change and the number of a copy."""
    copy, kind = COPY.search(path.stem), (".ipynb" in path.name.lower())
    copied = int(next(filter(None, copy.groups()))) if copy else 0
    kind += path.suffix.lower() in READABLE
    return kind, given(path), path.stat().st_mtime_ns, copied, path.name


def given(path):
    """Canvas' number of a file, Blackboard's or Brightspace's time, else 0."""
    for name in (path.stem, path.parent.name):
        if parts := CANVAS.fullmatch(name) or BLACKBOARD.fullmatch(name):
            return int((parts["file"] or "0").replace("-", ""))
        if parts := BRIGHTSPACE.fullmatch(name):
            *date, hour, half = parts["file"].split()
            text = " ".join([*date, hour.zfill(4), half])
            return int(datetime.strptime(text, "%b %d, %Y %I%M %p").timestamp())
    return 0


def with_unique_names(entries):
    """Give every submission a student name that no other can be taken for; flag students with
    several."""
    count, names, submitted = Counter(student for student, *_ in entries), set(), []
    for student, number, path, flags in entries:
        name = student
        if count[student] > 1:
            name = f"{student} ({number or (named(path.name) if path else 'folder')})"
            flags = [*flags, f"{count[student]} submissions of {student}"]
        wanted, n = name, 1
        while folded(name) in names:
            n += 1
            name = f"{wanted} ({n})"
        if n > 1 and count[student] == 1:
            flags = [*flags, f"there is another submission of {wanted}"]
        names.add(folded(name))
        submitted.append((name, path, flags, number if number.isdecimal() else ""))
    return submitted


def choose(folder, name):
    """The newest notebook of the right name in a student's folder, else the newest there is, else
    the newest file."""
    every, complete = files_below(folder)
    books = [path for path in every if readable(path.name)] or every
    flags = [] if complete else ["too many or too deep folders: not all were searched"]
    if not books:
        return None, ["no notebook", *flags]
    right = [p for p in books if COPY.sub("", p.stem) == name]
    best = max(right or books, key=age)
    if not right:
        flags.insert(0, "renamed file")
    if others := [p.name for p in right or books if p != best]:
        flags.insert(0, f"several files: not marked: {', '.join(others[:5])}"[:200])
    return best, flags


def files_below(folder):
    """The files below a folder, by name, and whether all of it could be searched."""
    files, waiting, seen, complete = [], [(Path(folder), 0)], 0, True
    while waiting:
        place, depth = waiting.pop()
        try:
            with os.scandir(place) as there:
                entries = list(islice(there, MOST + 1))
        except OSError:
            complete = False
            continue
        seen += len(entries)
        if depth > DEEPEST or seen > MOST:
            return sorted(files), False
        for entry in entries:
            if entry.is_symlink() or is_litter(entry.name):
                continue
            path = place / entry.name
            if entry.is_dir(follow_symlinks=False):
                waiting.append((path, depth + 1))
            elif entry.is_file(follow_symlinks=False):
                files.append(path)
    return sorted(files), complete
