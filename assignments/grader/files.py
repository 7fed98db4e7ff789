"""What is read and written: text, whole files, cells of tables, names of students and of files."""

import hashlib
import os
import unicodedata
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


def plain(text):
    """A cell of the table that no spreadsheet takes for a formula."""
    text = os.fsencode(text).decode("utf-8", "replace")
    return "'" + text if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


def bare(text):
    """The text of a cell that `plain` has written."""
    text = (text or "").strip()
    return text[1:] if text[:1] == "'" and plain(text[1:]) == text else text


def file_name(student):
    """A safe, short, unique file name for any student's name."""
    clean = "".join(c if c.isalnum() or c in "-_. ()" else "_" for c in student).strip(". ")
    if clean == student and len(os.fsencode(clean)) < 150:
        return clean
    return f"{clean[:40]}-{hashlib.sha256(os.fsencode(student)).hexdigest()[:10]}"


def key(name):
    """The same for a number with and without its first zeros, for accents composed or not."""
    return unicodedata.normalize("NFC", plain(name).strip()).casefold().lstrip("0")


def single(pairs):
    """{key of a text: student} of the texts that belong to one student only."""
    found = {}
    for text, student in pairs:
        found.setdefault(key(text), []).append(student)
    return {k: some[0] for k, some in found.items() if len(some) == 1}


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
        return self.exact.get(name) or self.by_key.get(key(name))
