"""Find what students handed in: which file is whose, as course systems and computers name them."""

import os
import re
from collections import Counter
from itertools import islice
from pathlib import Path

DEEPEST, MOST = 8, 5000  # folders below each other, and entries, that are searched for a notebook
READABLE = (".ipynb", ".md", ".py", ".zip")
# what macOS and Windows put beside files
LITTER = {"__MACOSX", "desktop.ini", "Thumbs.db", ".ipynb_checkpoints"}
CANVAS = re.compile(
    r"(?:(?P<name>(?!LATE_).+?)_)?(?P<late>LATE_)?"
    r"(?P<id>(?(name)\d+|anon_[A-Za-z0-9]+))_(?P<file>\d+)_.+"
)
MOODLE = re.compile(r"(?P<name>.+)_(?P<id>\d+)_assignsubmission_(?:file|onlinetext)_?.*")
COPY = re.compile(r"(?: ?\((\d+)\)|-(\d+))$")  # "laplace (1)", and Canvas' "laplace-1"


def is_litter(name):
    return name.startswith(".") or name in LITTER


def readable(name):
    """Browsers and Windows change endings: "a.IPYNB", "a.ipynb.txt"."""
    return name.lower().endswith(READABLE) or ".ipynb" in name.lower()


def find(folder, name):
    """[(student, path or None, flags)]: a notebook each, or a subfolder with notebooks."""
    entries = []
    for entry in sorted(Path(folder).iterdir(), key=lambda p: p.name):
        number, path = "", None
        if is_litter(entry.name):
            continue
        if entry.is_symlink():
            student, flags = entry.name, ["a link instead of a file"]
        elif entry.is_dir():
            student, number, late = owner(entry.name)
            path, flags = choose(entry, name)
            flags = late + flags
        elif entry.is_file():
            student, number, flags = owner(entry.stem)
            path, flags = entry, flags + ["renamed file"] * (not readable(entry.name))
        else:
            continue
        entries.append((student, number, path, flags))
    return with_unique_names(newest_of_canvas(entries))


def owner(name):
    """(student, number in the course system, flags) of a file's or folder's name."""
    if found := CANVAS.fullmatch(name):
        late = ["late, as Canvas says"] if found["late"] else []
        return found["name"] or found["id"], found["id"], late
    if found := MOODLE.fullmatch(name):
        hidden = found["name"] == "Participant"  # Moodle's word where names are not shown
        return f"Participant {found['id']}" if hidden else found["name"], found["id"], []
    return name, "", []


def newest_of_canvas(entries):
    """Several files of one number in the course system are one student's: the newest is marked."""
    kept, seen = [], {}
    for student, number, path, flags in entries:
        if number and (student, number) in seen:
            other = seen[student, number]
            if path is None:  # Moodle's folder of a text typed online
                other[3] = [*other[3], "more was handed in than files"]
                continue
            old, new = sorted([other[2], path], key=age)
            other[2] = new
            other[3] = [*other[3], *flags, f"several files: not marked: {old.name}"]
            continue
        kept.append([student, number, path, flags])
        if number and path:
            seen[student, number] = kept[-1]
    return kept


def age(path):
    """Sorts notebooks behind other files, then by Canvas' number of the file, the time of the last
    change and the number of a copy."""
    copy, canvas = COPY.search(path.stem), CANVAS.fullmatch(path.stem)
    kind = (".ipynb" in path.name.lower()) + (path.suffix.lower() in READABLE)
    copied = int(next(filter(None, copy.groups()))) if copy else 0
    given = int(canvas["file"]) if canvas else 0
    return kind, given, path.stat().st_mtime_ns, copied, path.name


def with_unique_names(entries):
    """Give every submission a student name that no other has; flag students with several."""
    count, names, found = Counter(student for student, *_ in entries), set(), []
    for student, number, path, flags in entries:
        name = student
        if count[student] > 1:
            name = f"{student} ({number or (path.name if path else 'folder')})"
            flags = [*flags, f"{count[student]} submissions of {student}"]
        wanted, n = name, 1
        while name in names:
            n += 1
            name = f"{wanted} ({n})"
        names.add(name)
        found.append((name, path, flags))
    return found


def choose(folder, name):
    """The newest notebook of the right name in a student's folder, else the newest there is."""
    found, complete = notebooks(folder)
    flags = [] if complete else ["too many or too deep folders: not all were searched"]
    if not found:
        return None, ["no notebook", *flags]
    right = [p for p in found if COPY.sub("", p.stem) == name]
    best = max(right or found, key=age)
    if not right:
        flags.insert(0, "renamed file")
    if others := [p.name for p in right or found if p != best]:
        flags.insert(0, f"several notebooks: not marked: {', '.join(others[:5])}"[:200])
    return best, flags


def notebooks(folder):
    """The notebooks below a folder, by name, and whether all of it could be searched."""
    found, waiting, seen, complete = [], [(Path(folder), 0)], 0, True
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
            return sorted(found), False
        for entry in entries:
            if entry.is_symlink() or is_litter(entry.name):
                continue
            path = place / entry.name
            if entry.is_dir(follow_symlinks=False):
                waiting.append((path, depth + 1))
            elif readable(entry.name) and entry.is_file(follow_symlinks=False):
                found.append(path)
    return sorted(found), complete
