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
    ELEMENTS,
    ITEM,
    LINES,
    STRING,
    WIDTH,
    end_of,
    is_one_element,
    is_settled,
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
    rf' *((?:"[^"\n]*": |\w+=|(?P<name>\w+ = ))\()\n((?: *{STRING}\n)+) *(\),?)\n'
)
# A call, a definition or a tuple up to its first argument, and what follows the last.
_CALL = re.compile(
    r'(?:(?:return |[\w.]+ = |\w+=|"[^"\n]*": )?[\w.]+|def \w+'
    r'|(?P<tuple>[\w.]+(?:\["\w*"\])* = |\w+=|"[^"\n]*": ))\('
)
_BEHIND = re.compile(r"\)(?:,| -> [\w.\[\], |]+:)?")


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
    """Put an import to what was found, and the blank lines behind; where they end."""
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
    return lines, tail.end()


def _element(text: str, at: int, indent: int) -> tuple[list[str], int] | None:
    """The lines of one element of a list, and where it ends; None for none, or two."""
    listed = _list(text, at, indent) or _long_text(text, at, indent)
    if listed is not None and listed[0][-1].endswith(",\n"):
        return listed
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
    lines = _broken_call(_joined(lines), indent) or [
        *broken_lines(Line(element(lines), indent // 4, inside=True))
    ]
    return [f"{line}\n" for line in lines], end


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
        fits = len(lines[0]) + len(lines[1]) - len(pad) <= WIDTH + 1
    else:
        fits = (
            bool(found["name"]) or len(pad[4:] + head + texts.strip() + tail) <= WIDTH
        )
    if fits:
        return None
    return [f"{pad[4:]}{head}\n", *lines, f"{pad[4:]}{tail}\n"], found.end()


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
    found = _CALL.match(code)
    if found is None or " for " in code or "lambda " in code:
        return None
    items: list[str] = []
    end = found.end() - 1
    while code[end] != ")":
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
    if indent + len(code) <= WIDTH:
        return [pad + code]
    if len(head) > WIDTH or len(tail) > WIDTH:
        return None
    inner = f"{pad}    {inside}"
    if len(inner) <= WIDTH and found["tuple"] is None:
        return [head, inner, tail]
    lines = [head]
    for text in items:
        line = f"{pad}    {text},"
        if len(line) <= WIDTH:
            lines.append(line)
        else:
            lines += _broken_call(line.lstrip(), indent + 4) or broken_lines(
                Line(element([line]), indent // 4 + 1, inside=True)
            )
    lines.append(tail)
    return lines
