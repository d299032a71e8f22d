"""What else is wrong with a schema whose shape is wrong here and there.

Takes the entries out of which something has been told, and asks the rest of it about
names and formulas, so that one run tells of both. What only seems wrong because an
entry is out is not told.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable

from .check import check_soundness
from .errors import InputProblems, Problem
from .load import load_nodes
from .record import replace
from .source import Mapping, Node, Scalar
from .structure import check_structure

# Section and entry, or the section alone.
Path = tuple[str, ...]
# Problems of what is not there, or there too seldom.
_OF_ABSENCE = ("AR063", "AR078")
_NAMED = r"is named `([^`]*)`"
# What stands in for a section `arena` that is at fault: no formula reads it.
_ARENA = {"class": "Arena", "package": "arena", "label": "arena", "doc": "An arena."}


def further(root: Mapping, told: Iterable[Problem]) -> list[Problem]:
    """The problems of the entries of which nothing has been told yet."""
    found: list[Problem] = []
    out: set[str] = set()
    told = list(told)
    while True:
        sound = _sound_part(root, told, out)
        if sound is None:
            return found
        root = sound
        try:
            schema = load_nodes(root)
        except InputProblems as error:
            told = list(error.problems)
            found += told
        else:
            break
    if any(limit.tokens for limit in schema.limits):
        more = check_soundness(schema)
        found += [each for each in more if not _is_caused(each, out)]
    return found


def _is_caused(problem: Problem, out: set[str]) -> bool:
    """Whether it may be there because an entry is out."""
    named = re.search(_NAMED, problem.message)
    return problem.code in _OF_ABSENCE or (named is not None and named[1] in out)


def _sound_part(root: Mapping, told: list[Problem], out: set[str]) -> Mapping | None:
    """The schema without the entries that are told of, whose names go to `out`.

    None when a whole section is at fault, or nothing is there.
    """
    if not root.values:
        return None
    faulty = _faulty(root, told)
    entries: list[tuple[Scalar, Node]] = []
    for section, node in root.entries():
        name = str(section.value)
        if name == "arena" and any(path[0] == name for path in faulty):
            stub = (
                (replace(section, value=key), replace(section, value=text))
                for key, text in _ARENA.items()
            )
            entries.append((section, root.with_entries(stub)))
        elif faulty.get((name,)) == "AR020":
            continue
        elif (name,) in faulty or not isinstance(node, Mapping):
            return None
        else:
            kept = []
            for key, value in node.entries():
                if (name, str(key.value)) in faulty:
                    out |= _names(str(key.value), value)
                else:
                    kept.append((key, value))
            entries.append((section, node.with_entries(kept)))
    part = root.with_entries(entries)
    return None if check_structure(part) else part


def _faulty(root: Mapping, told: list[Problem]) -> dict[Path, str]:
    """The entries and sections that problems stand in, each with one of the codes."""
    places: list[tuple[int, int]] = []
    paths: list[Path] = []
    for section, node in root.entries():
        places.append((section.span.line, section.span.column))
        paths.append((str(section.value),))
        for key in node.keys() if isinstance(node, Mapping) else ():
            places.append((key.span.line, key.span.column))
            paths.append((str(section.value), str(key.value)))
    faulty = {}
    for problem in told:
        at = (problem.span.line, problem.span.column)
        faulty[paths[max(0, bisect_right(places, at) - 1)]] = problem.code
    return faulty


def _names(name: str, node: Node) -> set[str]:
    """The names that an entry declares: its own, and the symbol of a limit."""
    symbol = node.get("symbol") if isinstance(node, Mapping) else None
    return {name, str(symbol.value)} if isinstance(symbol, Scalar) else {name}
