"""A printed PDF, packed: its objects in compressed streams instead of one by one as text.

Three fifths of what Chromium prints is the tree of tags that screen readers use: tens of thousands
of small objects that are not compressed. PDF 1.5 allows to keep them in compressed streams.
"""

import re
import struct
import zlib

TOGETHER = 500  # objects in a stream


def places_of(data):
    """Where each object begins: {number: offset}; what was added last counts."""
    found, todo = {}, [int(re.findall(rb"startxref\s+(\d+)", data)[-1])]
    while todo:
        table, trailer = data[todo[0] :].split(b"trailer", 1)
        number = 0
        for line in table.split(b"\n")[1:]:
            words = line.split()
            if len(words) == 2:
                number = int(words[0])
            elif len(words) == 3:
                if words[2] == b"n":
                    found.setdefault(number, int(words[0]))
                number += 1
        earlier = re.search(rb"/Prev (\d+)", trailer[: trailer.index(b"startxref")])
        todo = [int(earlier[1])] if earlier else []
    return found


def objects_of(data):
    """{number: text of the object}."""
    places = places_of(data)
    ends = dict(
        zip(sorted(places.values()), [*sorted(places.values())[1:], len(data)], strict=True)
    )
    found = {}
    for number, start in places.items():
        text = data[start : ends[start]]
        text = text[text.index(b"obj") + 3 : text.rindex(b"endobj")]
        found[number] = text.strip(b"\r\n ")
    return found


def stream(facts, data):
    """A compressed stream as text."""
    data = zlib.compress(data, 9)
    return b"<< %s /Filter /FlateDecode /Length %d >>\nstream\n%s\nendstream" % (
        facts,
        len(data),
        data,
    )


def packed(data):
    """The same document, smaller."""
    objects = objects_of(data)
    root, info = (re.findall(rb"/%s (\d+) 0 R" % name, data)[-1] for name in (b"Root", b"Info"))
    plain = sorted(n for n, text in objects.items() if not text.endswith(b"endstream"))
    rows, result, following = (
        {0: (0, 0, 65535)},
        bytearray(b"%PDF-1.5\n%\xff\xff\xff\xff\n"),
        max(objects) + 1,
    )

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
    facts = b"/Type /XRef /W [1 4 2] /Size %d /Root %s 0 R /Info %s 0 R" % (
        following + 1,
        root,
        info,
    )
    result.extend(b"%d 0 obj\n%s\nendobj\n" % (following, stream(facts, table)))
    return bytes(result) + b"startxref\n%d\n%%%%EOF\n" % place
