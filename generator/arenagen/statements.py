"""Emitted statements as data: assignments and branches over expression trees.

What computes the sizes is kept in this form until the last moment, so that it can be
spelled in more than one way.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeAlias

from .formula import Call, Expr, IfElse, spell
from .record import record
from .settled import WIDTH


@record
class Assign:
    """`name = value`.

    labels: a comment for each candidate where the value is the largest of several.
    local: whether only later statements read it, so that it may go with its readers.
    """

    name: str
    value: Expr
    labels: tuple[str, ...] = ()
    local: bool = False


@record
class Branch:
    """`if condition: then` with an `else`; each side gives the same names a value.

    Without an `else`, the names of `then` keep the values that they had.
    """

    condition: Expr
    then: tuple[Statement, ...]
    other: tuple[Statement, ...]


Statement: TypeAlias = Assign | Branch


@record
class SizesCode:
    """The body of the size calculator.

    definitions: fields, symbols and lets that are read everywhere, before all else.
    statements: the rest, which gives every buffer's name a value, in any order.
    trims: the condition of each trim, read at the end.
    """

    definitions: tuple[Statement, ...]
    statements: tuple[Statement, ...]
    trims: tuple[Expr, ...]


def lines(statements: tuple[Statement, ...], indent: int) -> Iterator[str]:
    """The statements as lines of Python, `indent` blanks before each.

    A value may go over several lines.
    """
    blanks = " " * indent
    for each in statements:
        if isinstance(each, Assign):
            yield f"{blanks}{each.name} = {_value(each)}"
        elif line := _in_one_line(each, indent):
            yield line
        else:
            yield f"{blanks}if {spell(each.condition)}:"
            yield from lines(each.then, indent + 4)
            if each.other:
                yield f"{blanks}else:"
                yield from lines(each.other, indent + 4)


def _in_one_line(branch: Branch, indent: int) -> str | None:
    """A branch as a conditional expression, which ruff asks for where it is short."""
    match branch.then, branch.other:
        case [Assign(name, then)], [Assign(same, other)] if name == same:
            value = spell(IfElse(branch.condition, then, other))
            line = f"{' ' * indent}{name} = {value}"
            return line if len(line) <= WIDTH else None
    return None


def _value(statement: Assign) -> str:
    value = statement.value
    if not any(statement.labels):
        return spell(value)
    # Only the largest of several has labels, unless it turned out to have a name.
    assert isinstance(value, Call)
    candidates = zip(statement.labels, value.arguments, strict=True)
    inside = "".join(
        (f"\n# {label}\n" if label else "\n") + f"{spell(each)},"
        for label, each in candidates
    )
    return f"{value.name}({inside}\n)"
