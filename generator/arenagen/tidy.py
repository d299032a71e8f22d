"""The layout of a schema's text: indentation, blanks and blank lines, nothing else.

Every line keeps its words and its comment, and lines keep their order; what comes out
is parsed again and must mean the same. Takes and returns text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from itertools import pairwise
from typing import Any

import yaml

from .errors import ArenagenError, InputProblems
from .source import Node, decode, parse

STEP = 2
# What ends a line for YAML and for few others.
_ODD_BREAK = re.compile("[\x85\u2028\u2029]")


class TidyError(ArenagenError):
    """A text whose layout is part of what it says."""


def tidy(data: bytes, file: str) -> str:
    """The text of a schema, laid out: two blanks a level, one blank line at most.

    One blank line stands before each section, and lines end in their last character;
    texts over several lines keep their own. Raises InputProblems for what is not YAML,
    and TidyError for what no other layout would mean.
    """
    text = decode(data, file)
    node = parse(text, file)
    if odd := _ODD_BREAK.search(text):
        raise TidyError(f"{file}: cannot be laid out: {odd[0]!a} ends a line to YAML")
    lines = text.split("\n")
    levels, inside = _levels(yaml.compose(text, Loader=yaml.CSafeLoader), lines)
    indented = _indented(lines, levels, inside)
    laid = "\n".join(_spaced(indented, levels, inside.keys())) + "\n"
    if laid.split() != text.split() or not _means(laid, file, node):
        raise TidyError(f"{file}: cannot be laid out without changing what it means")
    return laid


def _means(text: str, file: str, node: Node) -> bool:
    try:
        return parse(text, file) == node
    except InputProblems:
        return False


def _levels(
    root: Any, lines: list[str]
) -> tuple[dict[int, int], dict[int, int | None]]:
    """The level of each line that begins an entry, and of those inside of texts.

    Lines of a text that is no block have no level: they move with their entry.
    """
    levels: dict[int, int] = {}
    inside: dict[int, int | None] = {}

    def visit(node: Any, level: int) -> None:
        start, end = node.start_mark, node.end_mark
        if isinstance(node, yaml.ScalarNode):
            # The mark of a block text is at the start of the line behind it.
            last = end.line if end.column else end.line - 1
            # Blank lines behind a block belong to it where it says so, with a `+`.
            while not node.value.endswith("\n\n") and not lines[last].strip():
                last -= 1
            own = level if node.style in ("|", ">") else None
            inside.update(dict.fromkeys(range(start.line + 1, last + 1), own))
        elif not node.flow_style:
            for entry in node.value:
                key, *value = entry if isinstance(entry, tuple) else (entry,)
                levels.setdefault(key.start_mark.line, level)
                for each in (key, *value):
                    visit(each, level + 1)
        else:
            inside.update(dict.fromkeys(range(start.line + 1, end.line + 1)))

    visit(root, 0)
    return levels, inside


def _indented(
    lines: list[str], levels: dict[int, int], inside: dict[int, int | None]
) -> list[str]:
    """The lines with two blanks a level; what belongs to an entry moves with it."""
    laid = list(lines)
    shift = 0
    for number, line in enumerate(lines):
        content = line.lstrip(" ")
        old = len(line) - len(content)
        level = inside.get(number)
        if number in levels:
            shift = STEP * levels[number] - old
        elif level is not None and number - 1 not in inside and content:
            # The first line of a block tells how far in it stands.
            shift = STEP * level - old
        elif content.startswith("#") and number not in inside:
            shift = _shift_of_comment(lines, levels, number, shift)
        laid[number] = " " * max(0, old + shift) + content if content else line
    return laid


def _shift_of_comment(
    lines: list[str], levels: dict[int, int], number: int, shift: int
) -> int:
    """How far a comment moves: as far as the entry below it that is as far in."""
    old = _indent(lines[number])
    for below in range(number + 1, len(lines)):
        if below in levels:
            found = _indent(lines[below])
            return STEP * levels[below] - found if found == old else shift
    return shift


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip(" "))


def _spaced(
    lines: list[str], levels: dict[int, int], inside: Collection[int]
) -> Iterator[str]:
    """The lines without blanks at their ends, and with few blank ones between them."""
    kept = [
        (number, line if number in inside else line.rstrip())
        for number, line in enumerate(lines)
    ]
    while kept and not kept[-1][1].strip():
        kept.pop()
    starts = _section_starts(lines, levels)
    begun = False
    for (_, before), (number, line) in pairwise([(-1, ""), *kept]):
        if line.strip() or number in inside:
            if begun and number in starts and before.strip():
                yield ""
            begun = True
            yield line
        elif begun and before.strip():
            yield ""


def _section_starts(lines: list[str], levels: dict[int, int]) -> set[int]:
    """The first line of each section, that of the comments right above it."""
    starts = set()
    for number, level in levels.items():
        if level == 0:
            while number and lines[number - 1].startswith("#"):
                number -= 1
            starts.add(number)
    return starts
