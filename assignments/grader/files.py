"""What is read and written: text, whole files, cells of tables, names of students and of files."""

import hashlib
import os
import re
import socket
import sys
import unicodedata
from pathlib import Path
from uuid import uuid4


def decoded(data, otherwise=None):
    """Text in UTF-8, in UTF-16 with its byte-order mark, or in another encoding if one is given."""
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        if otherwise is None:
            raise
        return data.decode(otherwise, "replace")


def write(path, data):
    """Whole or not at all: a stopped run leaves no half file, and two at once don't mix."""
    path.parent.mkdir(parents=True, exist_ok=True)
    draft = path.with_name(f".{uuid4().hex}.part")
    draft.write_bytes(data if isinstance(data, bytes) else data.encode("utf-8", "replace"))
    os.replace(draft, path)


FORMULA = r"(^|[;,\t\r\n]\"*)%s('*)(?=[=+\-@\t\r])"  # also in the middle: for a separator of `;`
PLAIN, MARKED = re.compile(FORMULA % ""), re.compile(FORMULA % "'")
HASH = re.compile(r"-[0-9a-f]{10}$")


def plain(text):
    """A cell of the table that no spreadsheet takes for a formula, whatever separates its cells."""
    return PLAIN.sub(r"\1'\2", text)


def bare(text):
    """The text of a cell that `plain` has written."""
    return MARKED.sub(r"\1\2", (text or "").strip())


def printable(text):
    """Text without what databases and pages refuse: NUL, other control characters, half pairs."""
    kept = (
        c if c in "\n\r\t" or unicodedata.category(c) not in ("Cc", "Cs") else "\ufffd"
        for c in text
    )
    return "".join(kept)


ROOT = Path(__file__).resolve().parents[2]
OURS = {sys.prefix, sys.base_prefix, str(ROOT), str(Path.home())} - {"/", "/usr", "/usr/local"}
PLACES = "|".join(re.escape(place) for place in sorted(OURS, key=len, reverse=True))
HOST = rf"(?<![\w.-]){re.escape(socket.gethostname())}" if socket.gethostname() else "(?!)"
HERE = re.compile(rf"(?:{PLACES}|{HOST})(?![\w-])")


def neutral(text):
    """Text without the names of this machine and of the folders that the course lies in."""
    return HERE.sub("…", text)


def named(entry):
    """The name of a file or folder as text, also where it is not UTF-8, without odd characters."""
    data = os.fsencode(entry)
    text = printable(decoded(data, otherwise="latin-1")).strip()
    return "".join(c if c.isprintable() else "_" for c in text) or "no name"


def file_name(student):
    """A safe, short file name for any student's name; no two names have the same."""
    clean = "".join(c if c.isalnum() or c in "-_. ()" else "_" for c in student).strip(". ")
    if clean == student and len(os.fsencode(clean)) < 150 and not HASH.search(clean):
        return clean
    return f"{clean[:40]}-{hashlib.sha256(os.fsencode(student)).hexdigest()[:10]}"


def key(name):
    """The same for a number with and without its first zeros, for accents composed or not."""
    text = folded(name)
    return text.lstrip("0") or text[-1:]


def folded(name):
    """The same for names that people, tables or disks may take for each other."""
    return unicodedata.normalize("NFC", plain(name).strip()).casefold()


def single(pairs):
    """{key of a text: student} of the texts that belong to one student only."""
    students = {}
    for text, student in pairs:
        students.setdefault(key(text), []).append(student)
    return {k: some[0] for k, some in students.items() if len(some) == 1}


class Names:
    """Finds the student that a row of a table means: by the student's key and, where the students
    come as {student: name}, by a name that nobody else has."""

    def __init__(self, students):
        self.exact = {plain(s): s for s in students}
        names = students.items() if isinstance(students, dict) else ()
        self.by_key = single((name, student) for student, name in names if name)
        self.by_key |= single((student, student) for student in students)

    def find(self, name):
        """The student, or None."""
        name = (name or "").strip()
        if not name:
            return None
        return self.exact.get(name) or self.by_key.get(key(name))

    def who(self, result):
        """The student whose result this is, by Canvas' number or by name, or None."""
        return self.find(result.get("number")) or self.find(result["student"])
