"""Statements over ints as statements over columns of them.

Takes the size calculator's statements and the names that are columns, and gives those
that compute the same at every point. What depends on no column stays as it is. What a
column decides is computed on both sides, since some points take one and some the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from .formula import (
    Binary,
    Call,
    Compare,
    Expr,
    IfElse,
    Logic,
    Name,
    Str,
    Unary,
    joined,
    names,
    with_children,
)
from .statements import Assign, Branch, Statement

# What the functions over columns are called by; no name of a schema begins with `_`.
MODULE = "_columns"
# The helpers over ints whose last argument says what an error is about.
HELPERS = frozenset(
    {"align", "behind", "cdiv", "clamp", "floordiv", "modulo", "natural", "next_in"}
)
# A call of a function of the schema, with what its arguments are: columns or not.
Calling = Callable[[str, tuple[bool, ...]], str]


class Vector:
    """Turns statements and trees; `moving` grows by what is assigned a column.

    call: the name of a schema's function over columns. fresh: a name for a local.
    """

    def __init__(
        self, moving: Iterable[str], call: Calling, fresh: Callable[[str], str]
    ) -> None:
        self.moving = set(moving)
        self._call = call
        self._fresh = fresh

    def statements(self, given: Iterable[Statement]) -> Iterator[Statement]:
        """The statements over columns."""
        for each in given:
            if isinstance(each, Assign):
                yield self._assigned(each)
                continue
            condition, moves = self.tree(each.condition)
            if not moves:
                then = tuple(self.statements(each.then))
                yield Branch(condition, then, tuple(self.statements(each.other)))
            else:
                yield from self._both_sides(condition, each)

    def expr(self, expr: Expr) -> Expr:
        """The tree over columns."""
        return self.tree(expr)[0]

    def _assigned(self, given: Assign) -> Assign:
        value, moves = self.tree(given.value)
        if moves:
            self.moving.add(given.name)
        return Assign(given.name, value)

    def _both_sides(self, condition: Expr, branch: Branch) -> Iterator[Statement]:
        """A branch that a column decides: both sides, then a choice for each name."""
        chosen = assigned(branch.then).keys() & assigned(branch.other).keys()
        if len(chosen) > 1 and not isinstance(condition, Name):
            gate = self._fresh("gate")
            self.moving.add(gate)
            yield Assign(gate, condition)
            condition = Name(gate)
        sides: list[dict[str, Expr]] = []
        for statements in (branch.then, branch.other):
            locals_ = {name: self._fresh(name) for name in assigned(statements)}
            side = tuple(self.statements(_renamed(statements, locals_)))
            read = set(_reads(side))
            values: dict[str, Expr] = {old: Name(new) for old, new in locals_.items()}
            news = {new: old for old, new in locals_.items()}
            for each in side:
                old = news.get(each.name, "") if isinstance(each, Assign) else ""
                if isinstance(each, Assign) and old in chosen and each.name not in read:
                    values[old] = each.value
                else:
                    yield each
            sides.append(values)
        for name in assigned(branch.then):
            if name in chosen:
                self.moving.add(name)
                choice = (values[name] for values in sides)
                yield Assign(name, column_call("where", condition, *choice))

    def tree(self, expr: Expr) -> tuple[Expr, bool]:
        """The tree over columns, and whether it is a column."""
        if isinstance(expr, Name):
            return expr, expr.name in self.moving
        turned = [self.tree(child) for child in expr.children]
        if not any(moves for _, moves in turned):
            return expr, False
        parts = tuple(part for part, _ in turned)
        match expr:
            case Unary("not"):
                return column_call("negated", *parts), True
            case Binary("*"):
                return self._product(expr), True
            case Compare("in"):
                return column_call("contains", parts[1], parts[0]), True
            case Compare("not in"):
                contains = column_call("contains", parts[1], parts[0])
                return column_call("negated", contains), True
            case Logic(op):
                return _logic(op, turned), True
            case IfElse() if turned[0][1]:
                return column_call("where", *parts), True
            case Call():
                return self._called(expr, turned), True
        return with_children(expr, parts), True

    def _product(self, expr: Expr) -> Expr:
        """A product whose ints are multiplied with each other, before any column."""
        columns: list[Expr] = []
        ints: list[Expr] = []
        for factor in _factors(expr):
            part, moves = self.tree(factor)
            (columns if moves else ints).append(part)
        factors = [*columns, joined("*", ints)] if ints else columns
        return joined("*", factors)

    def _called(self, call: Call, turned: Sequence[tuple[Expr, bool]]) -> Expr:
        name = call.name
        parts = tuple(part for part, _ in turned)
        if name in ("max", "min"):
            ints = tuple(part for part, moves in turned if not moves)
            if len(ints) > 1:
                columns = tuple(part for part, moves in turned if moves)
                parts = (*columns, Call(name, ints))
            return column_call("largest" if name == "max" else "smallest", *parts)
        if name in HELPERS:
            if isinstance(parts[-1], Str):
                parts = parts[:-1]
            return column_call(name, *parts)
        return Call(self._call(name, tuple(moves for _, moves in turned)), parts)


def column_call(name: str, *arguments: Expr) -> Call:
    """A call of a function over columns."""
    return Call(f"{MODULE}.{name}", arguments)


def _logic(op: str, items: Sequence[tuple[Expr, bool]]) -> Expr:
    """Truths of one point before those of columns: as long as they decide, they do."""
    first = next(place for place, (_, moves) in enumerate(items) if moves)
    rest = tuple(part for part, _ in items[first:])
    columns = rest[0]
    if len(rest) > 1:
        columns = column_call("both" if op == "and" else "either", *rest)
    return (
        Logic(op, (*(part for part, _ in items[:first]), columns)) if first else columns
    )


def _factors(expr: Expr) -> Iterator[Expr]:
    match expr:
        case Binary("*", left, right):
            yield from _factors(left)
            yield from _factors(right)
        case _:
            yield expr


def assigned(statements: Iterable[Statement]) -> dict[str, None]:
    """Every name that statements give a value, in order."""
    found: dict[str, None] = {}
    for each in statements:
        if isinstance(each, Assign):
            found[each.name] = None
        else:
            found |= assigned(each.then) | assigned(each.other)
    return found


def _reads(statements: Iterable[Statement]) -> Iterator[str]:
    """Every name that statements read."""
    for each in statements:
        if isinstance(each, Assign):
            yield from (node.name for node in names(each.value))
        else:
            yield from (node.name for node in names(each.condition))
            yield from _reads((*each.then, *each.other))


def _renamed(
    statements: Iterable[Statement], others: Mapping[str, str]
) -> Iterator[Statement]:
    """Statements whose names, assigned or read, are others."""
    for each in statements:
        if isinstance(each, Assign):
            yield Assign(
                others.get(each.name, each.name), _renamed_expr(each.value, others)
            )
        else:
            yield Branch(
                _renamed_expr(each.condition, others),
                tuple(_renamed(each.then, others)),
                tuple(_renamed(each.other, others)),
            )


def _renamed_expr(expr: Expr, others: Mapping[str, str]) -> Expr:
    """A tree that reads other names."""
    if isinstance(expr, Name):
        return Name(others.get(expr.name, expr.name))
    return with_children(expr, [_renamed_expr(x, others) for x in expr.children])
