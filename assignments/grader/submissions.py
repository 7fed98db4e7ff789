"""Find what students handed in: which file is whose, as course systems and computers name them."""

import os
import re
from collections import Counter
from datetime import datetime
from itertools import islice
from pathlib import Path

import yaml

from . import late
from .files import folded, named

DEEPEST, MOST = 8, 5000  # folders below each other, and entries, that are searched for a notebook
READABLE = (".ipynb", ".md", ".py", ".zip")
# what macOS, Windows, Jupyter and Brightspace put beside files
LITTER = {"__MACOSX", "desktop.ini", "Thumbs.db", ".ipynb_checkpoints", "index.html"}
GRADESCOPE = "submission_metadata.yml"  # of its export: who handed in which folder
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
DOWNLOAD = re.compile(r" ?\(\d+\)$")
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
    entries, folder = [], class_folder(Path(folder), name)
    people = gradescope_names(folder)
    for entry in sorted(folder.iterdir(), key=lambda p: p.name):
        path = None
        if is_litter(entry.name) or entry.name == GRADESCOPE:
            continue
        student, number, flags = owner(entry.name if entry.is_dir() else entry.stem)
        student = people.get(entry.name) or without_sheet(student, number, name)
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
    return with_unique_names(newest_of_each(with_copies(entries)))


def class_folder(folder, name):
    """The folder with the class: an archive may have put some around it, and only those."""
    inside = [entry for entry in folder.iterdir() if not is_litter(entry.name)]
    if len(inside) == 1 and inside[0].is_dir() and not inside[0].is_symlink():
        entries = [entry for entry in inside[0].iterdir() if not is_litter(entry.name)]
        known = any(owner(entry.stem)[1] or entry.name == GRADESCOPE for entry in entries)
        books = {DOWNLOAD.sub("", e.stem) for e in entries if e.is_file() and readable(e.name)}
        several = sum(entry.is_dir() for entry in entries) > 1 or len(books - {name}) > 1
        inner = class_folder(inside[0], name)
        return inner if known or several or inner != inside[0] else folder
    return folder


def gradescope_names(folder):
    """{name of a folder in Gradescope's export: who handed it in}."""
    try:
        about = yaml.safe_load((folder / GRADESCOPE).read_text(encoding="utf-8"))
        who = {
            place: [one[":name"] for one in known[":submitters"]] for place, known in about.items()
        }
    except (OSError, UnicodeDecodeError, yaml.YAMLError, AttributeError, LookupError, TypeError):
        return {}
    return {place: " and ".join(map(str, names)) for place, names in who.items() if names}


def without_sheet(student, number, name):
    """`ada` of "laplace-ada", as the sheets ask students to call their files."""
    own = re.fullmatch(rf"{re.escape(name)}[-_ ]+(.+)", student, re.I)
    return own[1] if own and not number else student


def with_copies(entries):
    """A browser calls a second download "ada (1)": that is one of "ada", unless there are others
    so called and none without a number."""
    names = {student for student, number, *_ in entries if not number}
    count = Counter(DOWNLOAD.sub("", name) for name in names)
    for student, number, *rest in entries:
        base = DOWNLOAD.sub("", student)
        one = not number and (base in names if count[base] > 1 else base != student)
        yield (base, f"files of {base}", *rest) if one else (student, number, *rest)


def owner(name):
    """(student, number in the course system, flags) of a file's or folder's name."""
    name = named(name)
    if parts := CANVAS.fullmatch(name):
        flags = [late.LATE] if parts["late"] else []
        return parts["name"] or parts["id"], parts["id"], flags
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
    right = right or [p for p in books if without_sheet(p.stem, "", name) != p.stem]
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
