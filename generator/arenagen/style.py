"""Python text in black's form, for the part of Python that templates emit.

Nearly all of it is in the form already: a pattern runs over that in one go. What is
left are statements, and elements of long lists, that may have to be joined or broken.
Raises Unknown where it meets anything that is not known here, and never guesses; the
tests hold what it makes against black.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import lru_cache

from .breaking import Line, broken_lines
from .leaves import Unknown, element, statement
from .plain_breaks import broken_call, broken_value, joined
from .settled import (
    ELEMENTS,
    LINES,
    STRING,
    WIDTH,
    end_of,
    is_one_element,
    is_settled,
)

_COMMENTS = re.compile(r"(?:#.*\n)*")
_IMPORTS = ("import ", "from ")
# Whole ones, as black leaves them.
_IMPORT_LINES = re.compile(
    rf"(?:(?!.{{{WIDTH + 1}}})(?:from [\w.]+ )?import [\w.]+(?:,? \w+)*+\n)*+"
)
# One that is too long for its line, before it is broken.
_LONG_IMPORT = re.compile(r"(from [\w.]+ import )(\w+(?:, \w+)+)\n")
_DEFINITIONS = ("@", "class ", "def ")
# A line that ends in the bracket of a list whose elements have a line each.
_HEAD = re.compile(
    r" *(?:def |class |return |(?:\w+=)"
    r"|(?:(?:\w+ = |\w+, )?[\w.]+(?:\[\w+\])?(?:: [\w.\[\], |]+)? [-+*|]?= )"
    r'|(?:"[^"]*": )|from [\w.]+ import )?'
    r"(?P<name>[\w.]*)(?P<bracket>[(\[{])(?:  # .*)?\n"
)
_TAIL = re.compile(
    r" *([)\]}](?:,|:| -> [\w.\[\], |\"]+:| = [\w.]+(?:\(\w*(?:\(\w*\))?\))?"
    r"|(?<=\))\.\w+\(\))?)\n"
)
# A text that is broken over lines.
_TEXT = re.compile(
    rf' *((?:"[^"\n]*": |\w+=|(?P<name>\w+ = ))\()\n((?: *{STRING}\n)+) *(\),?)\n'
)


def styled(text: str) -> str:
    """The text in black's form. Raises Unknown."""
    if " \n" in text:
        text = re.sub(r"(?m)^ +$", "", text)
    text = text.strip("\n")
    if text:
        text += "\n"
    found: list[str] = []
    at = 0
    while at < len(text):
        settled = LINES.match(text, at)
        if settled is not None and settled[0]:
            found.append(settled[0])
            at = settled.end()
        elif text[at] == "\n":
            at = _blank_lines(text, at)
            found.append("\n" if text[at] == " " else "\n\n")
        elif text.startswith(_IMPORTS, at):
            at = _imports(text, at, found)
        else:
            at = _statement(text, at, found)
    return "".join(found)


def _blank_lines(text: str, at: int) -> int:
    """Where blank lines end."""
    while text[at : at + 1] == "\n":
        at += 1
    return at


def _imports(text: str, at: int, found: list[str]) -> int:
    """Put imports to what was found, and the blank lines behind; where they end."""
    run = _IMPORT_LINES.match(text, at)
    if run is not None and run[0]:
        found.append(run[0])
        at = run.end()
    elif long := _LONG_IMPORT.match(text, at):
        names = long[2].replace(", ", ",\n    ")
        found.append(f"{long[1]}(\n    {names},\n)\n")
        at = long.end()
    else:
        at = _statement(text, at, found)
    end = _blank_lines(text, at)
    comments = _COMMENTS.match(text, end)
    code = end if comments is None else comments.end()
    if code == len(text) or text.startswith(_IMPORTS, code):
        return at
    found.append("\n\n" if text.startswith(_DEFINITIONS, code) else "\n")
    return end


def _statement(text: str, at: int, found: list[str]) -> int:
    """Put the lines of one statement to those that were found; where it ends."""
    indent = _indent(text, at)
    if _may_be_list(text, at, text.find("\n", at)):
        listed = _long_text(text, at, indent) or _list(text, at, indent)
        if listed is not None:
            found += listed[0]
            return listed[1]
    end = end_of(text, at)
    if end < 0:
        raise Unknown
    lines = text[at : end - 1].split("\n")
    if len(lines) > 1 or not is_settled(lines[0]):
        code = joined(lines)
        found += _with_ends(
            broken_call(code, indent)
            or broken_value(code, indent)
            or _by_leaves(tuple(lines), indent)
        )
    else:
        found.append(f"{lines[0]}\n")
    return end


# Some statements stand in several modules.
@lru_cache(maxsize=256)
def _by_leaves(lines: tuple[str, ...], indent: int) -> tuple[str, ...]:
    return tuple(broken_lines(Line(statement(lines), indent // 4)))


def _with_ends(lines: Sequence[str]) -> list[str]:
    return [f"{line}\n" for line in lines]


def _indent(text: str, at: int) -> int:
    end = at
    while text[end] == " ":
        end += 1
    return end - at


def _may_be_list(text: str, at: int, stop: int) -> bool:
    """Whether a line opens a list: a cheap look in front of the thorough one."""
    return text[stop - 1] in "([{" or text.find("#", at, stop) >= 0


def _list(text: str, at: int, indent: int) -> tuple[list[str], int] | None:
    """The lines of a list in brackets, one element a line or more, and where it ends.

    None where it is no such list.
    """
    head = _HEAD.match(text, at)
    if head is None:
        return None
    lines = [" " * indent + head[0].lstrip(" ")]
    if len(lines[0]) > WIDTH + 1:
        return None
    at, inner, count, comments = head.end(), indent + 4, 0, 0
    while True:
        run = ELEMENTS.match(text, at)
        if run is not None and run[0] and len(run["pad"]) == inner:
            lines.append(run[0])
            commas = run[0].count(",\n")
            count += commas
            comments += run[0].count("\n") - commas
            at = run.end()
        tail = _TAIL.match(text, at)
        if tail is not None:
            break
        found = _element(text, at, inner)
        if found is None:
            return None
        more, end = found
        lines += more
        count += more[-1].endswith(",\n")
        comments += more[0].lstrip(" ").startswith("#")
        at = end
    last = lines[-1][lines[-1].rfind("\n", 0, -1) + 1 :].lstrip(" ")
    # One element and a comma are a tuple, which is joined where it is short; and black
    # breaks a lone one behind a comment where it can.
    is_tuple = not head["name"] and head["bracket"] == "("
    least = 2 if is_tuple or comments else 1
    if count < least or last.startswith("#"):
        return None
    lines.append(f"{' ' * indent}{tail[1]}\n")
    return (lines, tail.end()) if len(lines[-1]) <= WIDTH + 1 else None


def _element(text: str, at: int, indent: int) -> tuple[list[str], int] | None:
    """The lines of one element of a list, and where it ends; None for none, or two."""
    stop = text.find("\n", at)
    if _may_be_list(text, at, stop):
        listed = _long_text(text, at, indent) or _list(text, at, indent)
        if listed is not None and listed[0][-1].endswith(",\n"):
            return listed
    elif text[stop - 1] == ",":
        broken = broken_call(text[at:stop].lstrip(" "), indent)
        if broken is not None:
            return _with_ends(broken), stop + 1
    end = end_of(text, at)
    lines = text[at : end - 1].split("\n") if end > 0 else [""]
    first, last = lines[0].lstrip(" "), lines[-1]
    if first.startswith("#"):
        return [f"{' ' * indent}{first}\n"], end
    if not last.endswith(",") or first.startswith("for "):
        return None
    if len(lines) == 1:
        if not is_one_element(first):
            return None
        if is_settled(line := " " * indent + first):
            return [f"{line}\n"], end
    code = joined(lines)
    found = broken_call(code, indent) or broken_lines(
        Line(element(lines), indent // 4, inside=True)
    )
    return _with_ends(found), end


def _long_text(text: str, at: int, indent: int) -> tuple[list[str], int] | None:
    """The lines of a literal that is broken already, and where it ends; None for any
    other text.
    """
    found = _TEXT.match(text, at)
    if found is None:
        return None
    pad = " " * (indent + 4)
    head, _, texts, tail = found.groups()
    lines = [pad + line.lstrip(" ") for line in texts.splitlines(keepends=True)]
    # What fits into one line would be put there.
    if len(lines) > 1:
        if len(lines[0]) + len(lines[1]) - len(pad) <= WIDTH + 1:
            return None
    elif found["name"]:
        return None
    elif len(line := pad[4:] + head + texts.strip() + tail) <= WIDTH:
        return [f"{line}\n"], found.end()
    return [f"{pad[4:]}{head}\n", *lines, f"{pad[4:]}{tail}\n"], found.end()
