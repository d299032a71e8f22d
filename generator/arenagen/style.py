"""Python text in black's form, for the part of Python that templates emit.

Nearly all of it is in the form already: a pattern runs over that in one go. What is
left are statements, and elements of long lists, that may have to be joined or broken.
Raises Unknown where it meets anything that is not known here, and never guesses; the
tests hold what it makes against black.
"""

from __future__ import annotations

import re

from .breaking import Line, broken_lines
from .leaves import Unknown, element, statement
from .settled import (
    DOCSTRING,
    ELEMENTS,
    HELD,
    ITEMS,
    LINES,
    STRING,
    WIDTH,
    end_of,
    is_one_element,
    is_settled,
)

_BLANK = re.compile(r"^ +$", re.MULTILINE)
_BLANK_LINES = re.compile(
    rf"^ *{DOCSTRING}"
    r"|^(?:import|from) (?:.*\(\n(?:.*\n)*?\).*|.*)\n(?P<behind_import>\n*)"
    r"|\n{3,}(?P<indent> ?)",
    re.MULTILINE,
)
_COMMENTS = re.compile(r"(?:#.*\n)*")
_IMPORTS = ("import ", "from ")
_DEFINITIONS = ("@", "class ", "def ")
# A line that ends in the bracket of a list whose elements have a line each.
_HEAD = re.compile(
    r" *(?:def |class |return |(?:\w+=)|(?:[\w.]+(?:: [\w.\[\], |]+)? [-+*|]?= )"
    r'|(?:"[^"]*": )|from [\w.]+ import )?'
    r"(?P<name>[\w.]*)(?P<bracket>[(\[{])(?:  # .*)?\n"
)
_TAIL = re.compile(r" *([)\]}](?:,|:| -> [\w.\[\], |\"]+:)?)\n")
# A text that is broken over lines.
_TEXT = re.compile(
    rf' *((?:"[^"\n]*": |\w+=|\w+ = )\()\n((?: *{STRING}\n){{2,}}) *(\),?)\n'
)
# A call, a definition or an assigned tuple, on one line.
_CALL = re.compile(
    r'(?P<head>(?:(?:return |[\w.]+ = |\w+=|"[^"\n]*": )?(?P<name>[\w.]+)'
    r'|def (?P<definition>\w+)|[\w.]+(?:\["\w*"\])* = )\()'
    rf"(?P<inside>{HELD})(?<![, ])(?P<tail>\)(?:,| -> [\w.\[\], |]+:)?)"
)


def styled(text: str) -> str:
    """The text in black's form. Raises Unknown."""
    text = _with_blank_lines(text)
    found: list[str] = []
    at = 0
    while at < len(text):
        settled = LINES.match(text, at)
        assert settled is not None
        found.append(settled[0])
        at = settled.end()
        if at < len(text):
            at = _statement(text, at, found)
    return "".join(found)


def _with_blank_lines(text: str) -> str:
    """The text with two blank lines in a row at most, and one inside of a block."""
    if " \n" in text:
        text = _BLANK.sub("", text)
    text = text.rstrip("\n")
    return _BLANK_LINES.sub(_blank_lines, f"{text}\n") if text else ""


def _blank_lines(found: re.Match[str]) -> str:
    if found["indent"] is not None:
        return "\n\n " if found["indent"] else "\n\n\n"
    blank, text = found["behind_import"], found.string
    if blank is None or text.startswith(_IMPORTS, found.end()):
        return found[0]
    comments = _COMMENTS.match(text, found.end())
    code = found.end() if comments is None else comments.end()
    if code == len(text) or text.startswith(_IMPORTS, code):
        return found[0]
    due = 2 if text.startswith(_DEFINITIONS, code) else 1
    return found[0].removesuffix(blank) + "\n" * due


def _statement(text: str, at: int, found: list[str]) -> int:
    """Put the lines of one statement to those that were found; where it ends."""
    indent = _indent(text, at)
    listed = _list(text, at, indent) or _long_text(text, at, indent)
    if listed is not None:
        found += listed[0]
        return listed[1]
    end = end_of(text, at)
    if end < 0:
        raise Unknown
    lines = text[at : end - 1].split("\n")
    if len(lines) > 1 or not is_settled(lines[0]):
        lines = _broken_call(_joined(lines), indent) or [
            *broken_lines(Line(statement(lines), indent // 4))
        ]
    found += [f"{line}\n" for line in lines]
    return end


def _indent(text: str, at: int) -> int:
    end = at
    while text[end] == " ":
        end += 1
    return end - at


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
        end = end_of(text, at)
        more = _element(text, at, end, inner)
        if more is None:
            return None
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
    return lines, tail.end()


def _element(text: str, at: int, end: int, indent: int) -> list[str] | None:
    """The lines of one element of a list; None where there is none, or two."""
    lines = text[at : end - 1].split("\n") if end > 0 else [""]
    first, last = lines[0].lstrip(" "), lines[-1]
    if first.startswith("#"):
        return [f"{' ' * indent}{first}\n"]
    if not last.endswith(",") or first.startswith("for "):
        return None
    if len(lines) == 1:
        if not is_one_element(first):
            return None
        if is_settled(line := " " * indent + first):
            return [f"{line}\n"]
    else:
        listed = _list(text, at, indent) or _long_text(text, at, indent)
        if listed is not None:
            return listed[0]
    lines = _broken_call(_joined(lines), indent) or [
        *broken_lines(Line(element(lines), indent // 4, inside=True))
    ]
    return [f"{line}\n" for line in lines]


def _long_text(text: str, at: int, indent: int) -> tuple[list[str], int] | None:
    """The lines of a literal that is broken already, and where it ends; None for any
    other text.
    """
    found = _TEXT.match(text, at)
    if found is None:
        return None
    pad = " " * (indent + 4)
    lines = [pad + line.lstrip(" ") for line in found[2].splitlines(keepends=True)]
    # Pieces that fit into one line would be put there.
    if len(lines[0]) + len(lines[1]) - len(pad) <= WIDTH + 1:
        return None
    return [f"{pad[4:]}{found[1]}\n", *lines, f"{pad[4:]}{found[3]}\n"], found.end()


def _joined(lines: list[str]) -> str:
    """The lines of a statement as one."""
    first, *others = [line.strip() for line in lines]
    text = first
    for line in others:
        text += line if text[-1:] in "([{" or line[:1] in ")]}" else f" {line}"
    return text


def _broken_call(code: str, indent: int) -> list[str] | None:
    """The lines of a call, a definition or an assigned tuple; None for anything else.

    They are those that `broken_lines` makes, without its leaves.
    """
    pad = " " * indent
    found = _CALL.fullmatch(code)
    if found is None or " for " in code or "lambda " in code:
        return None
    is_tuple = not (found["name"] or found["definition"])
    if indent + len(code) <= WIDTH and not is_tuple:
        return [pad + code]
    head, inside, tail = pad + found["head"], found["inside"], pad + found["tail"]
    items = ITEMS.findall(inside)
    if len(items) < 2 or len(head) > WIDTH or len(tail) > WIDTH:
        return None
    if indent + len(code) <= WIDTH:
        return [pad + code]
    inner = f"{pad}    {inside}"
    if len(inner) <= WIDTH and not is_tuple:
        return [head, inner, tail]
    lines = [head]
    for item in items:
        line = f"{pad}    {item.lstrip()},"
        if len(line) <= WIDTH:
            lines.append(line)
        else:
            lines += _broken_call(line.lstrip(), indent + 4) or broken_lines(
                Line(element([line]), indent // 4 + 1, inside=True)
            )
    lines.append(tail)
    return lines
