"""One page for the instructor: how each question went, what to look at, who is missing."""

import html
from collections import Counter

from .files import Names

BINS = 5


def histogram(q, marks):
    """How many students lie in each fifth of the points, as bars of text."""
    counts = [0] * BINS
    for mark in marks:
        counts[min(int(BINS * mark / q.points), BINS - 1)] += 1
    most = max(counts, default=0) or 1
    lines = []
    for i, count in enumerate(counts):
        low, high = q.points * i / BINS, q.points * (i + 1) / BINS
        lines.append(f"{low:5.1f} to {high:4.1f}  {'█' * round(24 * count / most):<24} {count}")
    return "<pre>" + "\n".join(lines) + "</pre>"


def question(q, results):
    """Mean, histogram and the messages that most students got."""
    marks = [r["points"][q.id] for r in results if r["points"][q.id] is not None]
    waiting = len(results) - len(marks)
    head = f"<h2>{q.id}, {q.points:g} points" + (" (by hand)</h2>" if q.manual else "</h2>")
    mean = f"<p>Mean {sum(marks) / len(marks):.2f}" if marks else "<p>No marks"
    mean += f"; {waiting} without a mark.</p>" if waiting else ".</p>"
    said = Counter(r["messages"][q.id] for r in results if q.id in r["messages"])
    items = "".join(f"<li>{n} times: {html.escape(m[:200])}" for m, n in said.most_common(3))
    return head + mean + (histogram(q, marks) if marks else "") + (f"<ul>{items}</ul>" * bool(said))


def describe(master, results, roster, collected):
    """The pieces of the page."""
    totals = [r["total"] for r in results if r["total"] is not None]
    parts = [f"<p>{len(results)} submissions, {len(totals)} with a complete total.</p>"]
    if roster:
        on_list = Names(roster)
        known = {r["student"]: on_list.who(r) for r in results}
        missing = sorted(f"{s} {roster[s]}".strip() for s in set(roster) - set(known.values()))
        strangers = sorted(student for student, name in known.items() if not name)
        parts += [listing("Missing", missing), listing("Not on the list of students", strangers)]
    parts += [question(q, results) for q in master.questions]
    aside = [f"{row[0]}, {row[1]}, {row[2]}: {row[5]}" for row in collected.aside]
    parts.append(listing("Rows of marks that could not be used", aside))
    flagged = [f"{r['student']}: {'; '.join(r['flags'])}" for r in results if r["flags"]]
    parts.append(listing("Flags", flagged))
    slow = sorted(results, key=lambda r: -r.get("seconds", 0))[:5]
    parts.append(listing("Slowest", [f"{r['student']}: {r.get('seconds', 0):.1f} s" for r in slow]))
    return parts


def listing(title, items):
    entries = "".join(f"<li>{html.escape(item)}" for item in items) or "<li>none"
    return f"<h2>{title} ({len(items)})</h2><ul>{entries}</ul>"
