"""Names and contents of what is written: safe for file systems, spreadsheets and half-way stops."""

import hashlib
import os
from uuid import uuid4


def file_name(student):
    """A safe, short, unique file name for any student's name."""
    clean = "".join(c if c.isalnum() or c in "-_. ()" else "_" for c in student).strip(". ")
    if clean == student and len(os.fsencode(clean)) < 150:
        return clean
    return f"{clean[:40]}-{hashlib.sha256(os.fsencode(student)).hexdigest()[:10]}"


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
