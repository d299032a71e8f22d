"""Problems of an input, and the one error that carries them.

Owns spans, problems and their text: file:line:col, code, message, the source line
with a caret, and a hint. Every stage returns or raises problems; none prints them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import Literal

from .record import field, record

Severity = Literal["error", "warning"]
# Characters that turn the order of those around them, so that a line reads as what it
# is not: left-to-right and right-to-left marks, embeddings, overrides and isolates.
BIDI = r"\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
# What a terminal would obey instead of showing.
_CONTROL = rf"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029{BIDI}]"
# Characters of a source line that are shown, and of those how many before the token.
_SHOWN = 160
_BEFORE = 60
# Known words that a slip is compared with.
_CANDIDATES = 300
# Problems that one check tells; nobody reads more, and each costs its hint.
MAX_PROBLEMS = 300


@record
class Span:
    """A place in a file: 1-based line and column, and the length of the token."""

    file: str
    line: int
    column: int
    length: int = 1
    source: str = field(default="", compare=False)

    def __str__(self) -> str:
        return f"{self.file}:{self.line}:{self.column}"

    def __lt__(self, other: Span) -> bool:
        return self._place < other._place

    @property
    def _place(self) -> tuple[str, int, int, int]:
        return self.file, self.line, self.column, self.length

    @property
    def shown_length(self) -> int:
        """Characters of the token on its first line, at least 1."""
        room = len(self.source) - self.column + 1
        return max(1, min(self.length, room))

    def excerpt(self) -> list[str]:
        """The source line and a caret line below it; nothing where no text is known."""
        if not self.source.strip():
            return []
        number = str(self.line)
        margin = " " * len(number)
        text, column, length = self.source, self.column - 1, self.shown_length
        if len(text) > _SHOWN:
            start = max(0, min(column - _BEFORE, len(text) - _SHOWN))
            end = start + _SHOWN
            length = min(length, end - column)
            more = "" if end >= len(text) else "..."
            less = "..." if start else ""
            column += len(less) - start
            text = less + text[start:end] + more
        pad = "".join("\t" if char == "\t" else " " for char in text[:column])
        shown = re.sub(_CONTROL, "\N{REPLACEMENT CHARACTER}", text)
        return [f" {number} | {shown}", f" {margin} | {pad}{'^' * length}"]


@record
class Problem:
    """One thing that is wrong or suspicious, with its place and its cure."""

    code: str
    message: str
    span: Span
    hint: str = ""
    severity: Severity = "error"
    related: tuple[tuple[str, Span], ...] = ()

    def __str__(self) -> str:
        lines = [f"{self.span}: {self.severity} {self.code}: {printable(self.message)}"]
        lines += self.span.excerpt()
        for label, span in self.related:
            lines.append(f" = {label}: {span}")
            lines += span.excerpt()
        if self.hint:
            lines.append(f" = hint: {printable(self.hint)}")
        return "\n".join(lines)

    def as_dict(self) -> dict[str, object]:
        """Plain data for machines."""
        return {
            "code": self.code,
            "severity": self.severity,
            "message": self.message,
            "file": self.span.file,
            "line": self.span.line,
            "column": self.span.column,
            "length": self.span.length,
            "hint": self.hint,
            "related": [
                {"label": label, "file": at.file, "line": at.line, "column": at.column}
                for label, at in self.related
            ],
        }


def printable(text: str) -> str:
    """The text on one line, with escapes for what a terminal would obey."""
    return re.sub(_CONTROL, lambda found: ascii(found[0])[1:-1], text)


class ArenagenError(Exception):
    """Bad input that stops a command; its text is meant for the user."""


class InputProblems(ArenagenError):
    """An input has problems; carries all of them, in order of place."""

    def __init__(self, problems: Iterable[Problem]) -> None:
        self.problems = tuple(sort_problems(problems))
        super().__init__("\n\n".join(str(problem) for problem in self.problems))


def sort_problems(problems: Iterable[Problem]) -> list[Problem]:
    """By place, then code; equal ones once."""
    unique = dict.fromkeys(problems)
    return sorted(unique, key=lambda each: (each.span, each.code, each.message))


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word most like `word`, if one is close enough to be a slip."""
    # Takes a while to load, and most runs find no fault.
    from difflib import get_close_matches

    lower = word.lower()
    by_lower = {each.lower(): each for each in known if _may_be(lower, each.lower())}
    # A schema may have any number of names, and any number of slips.
    candidates = list(by_lower)[:_CANDIDATES]
    matches = get_close_matches(lower, candidates, n=1, cutoff=0.7)
    return by_lower[matches[0]] if matches else None


def _may_be(word: str, other: str) -> bool:
    """Whether the lengths of two words allow them to be alike."""
    return abs(len(word) - len(other)) <= 0.86 * min(len(word), len(other))


def did_you_mean(word: str, known: Sequence[str]) -> str:
    """A hint that names the nearest known word, or lists a short choice."""
    close = nearest(word, known)
    if close is not None:
        return f"did you mean `{close}`?"
    if known and len(known) <= 24:
        return "known here: " + ", ".join(known)
    return ""
