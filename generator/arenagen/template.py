"""Templates: the part of Jinja's language that the emitted modules are written in.

Loops, conditions on one attribute, and attributes through one filter at most; a test
holds what comes out against Jinja itself, whose import alone costs more than all of a
render. Blocks take their line with them, and what is not there is an error.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any, TypeAlias

from .record import record

Filters: TypeAlias = Mapping[str, Callable[..., str]]
_Scope: TypeAlias = dict[str, Any]
# Adds the text of a part of a template to a list.
_Part: TypeAlias = Callable[[_Scope, list[str]], None]
_Value: TypeAlias = Callable[[_Scope], Any]

_TAG = re.compile(r"\{(%|\{) (.*?) [%}]\}")
_LOOP = re.compile(r"for (\w+) in ([\w.]+)")
_CONDITION = re.compile(r"if (not )?([\w.]+)")
_PRINTED = re.compile(r"([\w.]+)(?: \| (\w+)(?:\((.*)\))?)?")
_STRAY = re.compile(r"\{[{%#]|[}%#]\}")


class TemplateError(ValueError):
    """A template that is not of the language."""


class Template:
    """One template, read once. Raises TemplateError."""

    def __init__(self, text: str, filters: Filters) -> None:
        self._parts = _Reader(text, filters).parts()

    def render(self, **scope: object) -> str:
        """The text for some variables. Raises where one lacks what is printed."""
        found: list[str] = []
        for part in self._parts:
            part(scope, found)
        return "".join(found)


@record
class _Printed:
    """A value to print; `path` leads to it where it goes through no filter."""

    value: _Value
    path: str


class _Reader:
    def __init__(self, text: str, filters: Filters) -> None:
        self.filters = filters
        # Texts, each with the sign and the content of the tag behind it.
        pieces = _TAG.split(text)
        if found := _STRAY.search("\n".join(pieces[::3])):
            raise TemplateError(found[0])
        self.pieces = zip(
            pieces[::3], [*pieces[1::3], ""], [*pieces[2::3], ""], strict=True
        )
        self.ended_by = ""
        # The sign of the tag in front of the next text.
        self.behind = ""

    def parts(self, *ends: str) -> list[_Part]:
        """What stands up to one of some tags, or up to the end of the template."""
        parts: list[_Part] = []
        text, printed = "", []
        for piece, sign, tag in self.pieces:
            text += self.without_blocks(piece, sign).replace("%", "%%")
            if sign == "{":
                text += "%s"
                printed.append(self.printed(tag))
                continue
            if text:
                parts.append(_printing(text, printed))
                text, printed = "", []
            if not sign or tag in ends:
                self.ended_by = tag
                break
            parts.append(self.block(tag))
        if ends and self.ended_by not in ends:
            raise TemplateError(f"no {' or '.join(ends)}")
        return parts

    def without_blocks(self, piece: str, sign: str) -> str:
        """A text without the rest of the line of the block before it, and without what
        stands on the line of the block behind it, where there are but blanks.
        """
        begins_line = not self.behind
        if self.behind == "%" and piece[:1] == "\n":
            piece, begins_line = piece[1:], True
        self.behind = sign
        line = piece.rfind("\n") + 1
        if sign == "%" and (begins_line or line) and not piece[line:].strip(" \t"):
            return piece[:line]
        return piece

    def block(self, tag: str) -> _Part:
        if found := _LOOP.fullmatch(tag):
            name, path = found.groups()
            return _looping(name, _value(path), self.parts("endfor"))
        if found := _CONDITION.fullmatch(tag):
            no, path = found.groups()
            then, other = self.parts("else", "endif"), []
            if self.ended_by == "else":
                other = self.parts("endif")
            return _choosing(_value(path), *((other, then) if no else (then, other)))
        raise TemplateError(tag)

    def printed(self, text: str) -> _Printed:
        found = _PRINTED.fullmatch(text)
        if found is None:
            raise TemplateError(text)
        path, name, listed = found.groups()
        value = _value(path)
        if name is None:
            return _Printed(value, path)
        work = self.filters[name]
        arguments = [_argument(each) for each in listed.split(", ")] if listed else []
        return _Printed(
            lambda scope: work(value(scope), *[each(scope) for each in arguments]), ""
        )


def _argument(text: str) -> _Value:
    if text.isdecimal():
        number = int(text)
        return lambda scope: number
    return _value(text)


def _value(path: str) -> _Value:
    name, *attributes = path.split(".")
    if not attributes:
        return lambda scope: scope[name]
    if len(attributes) == 1:
        get = attrgetter(attributes[0])
        return lambda scope: get(scope[name])

    def follow(scope: _Scope) -> Any:
        value = scope[name]
        for each in attributes:
            value = value[each] if isinstance(value, dict) else getattr(value, each)
        return value

    return follow


def _printing(text: str, printed: list[_Printed]) -> _Part:
    if not printed:
        plain = text % ()
        return lambda scope, found: found.append(plain)
    roots = {each.path.partition(".")[0] for each in printed}
    if len(roots) == 1 and all(each.path.count(".") == 1 for each in printed):
        # Most of what is printed: attributes of one thing.
        (root,) = roots
        get = attrgetter(*(each.path.partition(".")[2] for each in printed))
        if len(printed) == 1:
            return lambda scope, found: found.append(text % (get(scope[root]),))
        return lambda scope, found: found.append(text % get(scope[root]))
    values = [each.value for each in printed]
    return lambda scope, found: found.append(
        text % tuple([value(scope) for value in values])
    )


def _looping(name: str, items: _Value, parts: list[_Part]) -> _Part:
    def loop(scope: _Scope, found: list[str]) -> None:
        inner = scope.copy()
        for item in items(scope):
            inner[name] = item
            for part in parts:
                part(inner, found)

    return loop


def _choosing(condition: _Value, then: list[_Part], other: list[_Part]) -> _Part:
    def choose(scope: _Scope, found: list[str]) -> None:
        for part in then if condition(scope) else other:
            part(scope, found)

    return choose
