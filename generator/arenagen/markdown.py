"""Markdown from untrusted texts: whatever a text holds, it shows, and does nothing.

For GitHub's dialect: no link, no image, no HTML, no mention, no table cell that ends
early. ASCII punctuation may always stand behind a backslash.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

_MARKS = re.compile(r"([\\`*\[\]<&|~$])")
# Inside of a word an underscore is nothing but itself.
_UNDERSCORE = re.compile(r"(?<![A-Za-z0-9])_|_(?![A-Za-z0-9])")
# What GitHub makes a link of without being asked.
_LINK = re.compile(r"(?i)\b(https?|ftp|mailto|xmpp)(?=:)|\b(www)(?=\.)")
# What begins a list, a quotation, a rule or a heading at the start of a line.
_START = re.compile(r"^([-+=>#]|\d{1,9}(?=[.)]))")


def text(words: str) -> str:
    """A text as one line of a paragraph, a list entry or a cell."""
    line = " ".join(words.split())
    line = _MARKS.sub(r"\\\1", line)
    if "_" in line:
        line = _UNDERSCORE.sub(r"\\_", line)
    if ":" in line or "www." in line.lower():
        line = _LINK.sub(lambda found: f"{found[0]}<!-- -->", line)
    line = _START.sub(lambda found: _behind_backslash(found[0]), line)
    return line.replace("@", "<span>@</span>")


def code(words: str, in_cell: bool = False) -> str:
    """A text as a code span; in the cell of a table a bar needs its backslash."""
    line = " ".join(words.split())
    if not line:
        return ""
    if "`" in line:
        runs = [len(run) for run in re.findall(r"`+", line)]
        fence = "`" * next(n for n in range(1, len(runs) + 2) if n not in runs)
        pad = " " if line.startswith("`") or line.endswith("`") else ""
        span = f"{fence}{pad}{line}{pad}{fence}"
    else:
        span = f"`{line}`"
    return span.replace("|", "\\|") if in_cell else span


def table(
    header: Sequence[str], rows: Iterable[Sequence[str]], right: Sequence[str] = ()
) -> list[str]:
    """The lines of a table of cells in Markdown; `right` are the columns of numbers."""
    lines = [
        "| " + " | ".join(header) + " |",
        "|" + "|".join(" ---: " if each in right else " --- " for each in header) + "|",
    ]
    lines += ["| " + " | ".join(row) + " |" for row in rows]
    return lines


def _behind_backslash(start: str) -> str:
    """`-` to `\\-`; the number of a list to a number and what cannot end it."""
    return f"{start}\\" if start[0].isdigit() else f"\\{start}"
