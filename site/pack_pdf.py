"""A printed PDF, packed: its objects in compressed streams instead of one by one as text.

Three fifths of what Chromium prints is the tree of tags that screen readers use: tens of thousands
of small objects that are not compressed. PDF 1.5 allows to keep them in compressed streams.
"""

import io
import struct
import zlib

from pypdf import PdfReader

TOGETHER = 500  # objects in a stream


def objects_of(data, reader):
    """{number: text of the object}."""
    places = sorted((place, number) for number, place in reader.xref[0].items())
    ends = [place for place, _ in places[1:]] + [len(data)]
    found = {}
    for (start, number), end in zip(places, ends, strict=True):
        text = data[start:end]
        found[number] = text[text.index(b"obj") + 3 : text.rindex(b"endobj")].strip(b"\r\n ")
    return found


def stream(facts, data):
    """A compressed stream as text."""
    data = zlib.compress(data, 9)
    facts += b" /Filter /FlateDecode /Length %d" % len(data)
    return b"<< %s >>\nstream\n%s\nendstream" % (facts, data)


def packed(data, changed=()):
    """The same document, smaller; `changed` are some of its objects: (number, new text)."""
    reader = PdfReader(io.BytesIO(data))
    objects = objects_of(data, reader) | dict(changed)
    root, info = (reader.trailer.raw_get(name).idnum for name in ("/Root", "/Info"))
    plain = sorted(n for n, text in objects.items() if not text.endswith(b"endstream"))
    rows, following = {0: (0, 0, 65535)}, max(objects) + 1
    result = bytearray(b"%PDF-1.5\n%\xff\xff\xff\xff\n")

    def write(number, text):
        rows[number] = (1, len(result), 0)
        result.extend(b"%d 0 obj\n%s\nendobj\n" % (number, text))

    for number in sorted(set(objects) - set(plain)):
        write(number, objects[number])
    for start in range(0, len(plain), TOGETHER):
        group, heads, body = plain[start : start + TOGETHER], [], bytearray()
        for place, number in enumerate(group):
            heads.append(b"%d %d" % (number, len(body)))
            body += objects[number] + b"\n"
            rows[number] = (2, following, place)
        head = b" ".join(heads) + b"\n"
        facts = b"/Type /ObjStm /N %d /First %d" % (len(group), len(head))
        write(following, stream(facts, head + bytes(body)))
        following += 1
    place = len(result)
    rows[following] = (1, place, 0)
    table = b"".join(struct.pack(">BIH", *rows.get(n, (0, 0, 0))) for n in range(following + 1))
    places = following + 1, root, info
    facts = b"/Type /XRef /W [1 4 2] /Size %d /Root %d 0 R /Info %d 0 R" % places
    result.extend(b"%d 0 obj\n%s\nendobj\n" % (following, stream(facts, table)))
    return bytes(result) + b"startxref\n%d\n%%%%EOF\n" % place
