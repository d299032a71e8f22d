"""Breaks of the plainest long lines, which need no leaves.

Calls, definitions and tuples at their commas, and values at their operators. What they
make is what `breaking` makes; anything else is left to it.
"""

from __future__ import annotations

import re
from functools import lru_cache

from .breaking import Line, broken_lines
from .leaves import COMPARISON, LOGIC, OPERATORS, TERNARY, element
from .settled import ITEM, WIDTH

# A call, a definition or a tuple up to its first argument, and what follows the last.
_CALL = re.compile(
    r'(?:(?:return |[\w.]+ = |\w+=|"[^"\n]*": )?[\w.]+|def \w+'
    r'|(?P<tuple>[\w.]+(?:\["\w*"\])* = |\w+=|"[^"\n]*": ))\('
)
_BEHIND = re.compile(r"\)(?:,| -> [\w.\[\], |]+:)?")
# A statement with a value, and what parts the value.
_VALUE = re.compile(
    r"(?P<head>return |(?:el)?if |[\w.]+(?:: \w+)? = )"
    r"(?P<value>[^\"'#{}|&^@~\\;]+?)(?P<tail>:?)"
)
_PARTING = re.compile(
    r",[)\]]|[()\[\],]|\*\*|:=|lambda"
    r"| (?:if|else|or|and|not in|in|[<>=!]=|[<>]|[-+*/%]|//|is|for|<<|>>) "
)
_PRIORITIES = dict.fromkeys(("if", "else"), TERNARY)
_PRIORITIES |= dict.fromkeys(("or", "and"), LOGIC)
_PRIORITIES |= dict.fromkeys(("not in", "in", "==", "!=", "<=", ">="), COMPARISON)
_PRIORITIES |= dict.fromkeys("<>", COMPARISON)
_PRIORITIES |= {each: OPERATORS[each] for each in ("+", "-", "*", "//", "%")}


def joined(lines: list[str]) -> str:
    """The lines of a statement as one."""
    first, *others = [line.strip() for line in lines]
    text = first
    for line in others:
        text += line if text[-1:] in "([{" or line[:1] in ")]}" else f" {line}"
    return text


# A family of models asks for much that another one asks for too.
@lru_cache(maxsize=1024)
def broken_call(code: str, indent: int) -> tuple[str, ...] | None:
    """The lines of a call, a definition or an assigned tuple; None for anything else.

    They are those that `broken_lines` makes, without its leaves.
    """
    found = _CALL.match(code)
    if found is None or " for " in code or "lambda " in code:
        return None
    items: list[str] = []
    end = found.end() - 1
    # A comma behind the last item keeps each on a line of its own.
    listed = False
    while code[end] != ")":
        if items and code[end + 1 : end + 2] == ")":
            listed, end = True, end + 1
            break
        item = ITEM.match(code, end + 1)
        if item is None or item.end() == len(code):
            return None
        items.append(item[0].strip(" "))
        end = item.end()
        if code[end] not in ",)":
            return None
    pad = " " * indent
    head, inside, tail = pad + found[0], code[found.end() : end], pad + code[end:]
    if len(items) < 2 or not _BEHIND.fullmatch(code, end) or inside[-1] == " ":
        return None
    if indent + len(code) <= WIDTH and not listed:
        return (pad + code,)
    if len(head) > WIDTH or len(tail) > WIDTH:
        return None
    inner = f"{pad}    {inside}"
    if len(inner) <= WIDTH and found["tuple"] is None and not listed:
        return head, inner, tail
    lines = [head]
    for text in items:
        line = f"{pad}    {text},"
        if len(line) <= WIDTH:
            lines.append(line)
        else:
            lines += broken_call(line.lstrip(), indent + 4) or broken_lines(
                Line(element([line]), indent // 4 + 1, inside=True)
            )
    return *lines, tail


def broken_value(code: str, indent: int) -> list[str] | None:
    """The lines of a value that is returned, assigned or a condition; None for one that
    is not parted by operators, or by one alone beside brackets that may be broken.
    """
    found = _VALUE.fullmatch(code)
    if found is None:
        return None
    head, value, tail = found.groups()
    if (head[-3:] == "if ") != (tail == ":"):
        return None
    parting = _parting(value)
    if parting == [] and value[0] == "(" and value[-1] == ")":
        # Black removes brackets round a whole value.
        value = value[1:-1]
        parting = _parting(value)
    if not parting:
        return None
    pad = " " * indent
    if indent + len(head) + len(value) + len(tail) <= WIDTH:
        return [f"{pad}{head}{value}{tail}"]
    highest = max(priority for priority, _ in parting)
    places = [place for priority, place in parting if priority == highest]
    if len(places) == 1 and (value[0] in "([" or value[-1] in ")]"):
        return None
    if highest == TERNARY and len(places) > 2:
        return None
    lines = [f"{pad}    {value}"]
    if len(lines[0]) > WIDTH:
        starts, ends = [0, *(place + 1 for place in places)], [*places, len(value)]
        lines = [f"{pad}    {value[a:b]}" for a, b in zip(starts, ends, strict=True)]
        if max(map(len, lines)) > WIDTH:
            return None
    return [f"{pad}{head}(", *lines, f"{pad}){tail}"]


def _parting(value: str) -> list[tuple[int, int]] | None:
    """The operators outside of all brackets, by priority and place; None where there is
    a tuple or what only leaves tell apart.
    """
    depth = 0
    found: list[tuple[int, int]] = []
    for each in _PARTING.finditer(value):
        text = each[0]
        if text in "([":
            depth += 1
        elif text in ")]":
            depth -= 1
        elif text != "," and text[1:-1] not in _PRIORITIES:
            return None
        elif not depth:
            if text == ",":
                return None
            found.append((_PRIORITIES[text[1:-1]], each.start()))
        if depth < 0:
            return None
    return None if depth else found
