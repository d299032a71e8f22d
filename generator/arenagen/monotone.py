"""How a formula moves with one limit, when every input is at least 0.

The proof behind `token_major`: bytes(t) <= bytes(M) for every t <= M holds for what is
`rising` here. What cannot be shown is `unknown`, which callers refuse.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple, TypeAlias

from .formula import (
    Binary,
    Bool,
    Call,
    Compare,
    Expr,
    IfElse,
    Int,
    Logic,
    Name,
    Str,
    Unary,
)
from .model import Bytes, Extent, Layout, LayoutCall, Lever, Regions, Shape
from .symbols import Symbols, let_order

Trend: TypeAlias = Literal["fixed", "rising", "falling", "unknown"]

_REVERSED: dict[Trend, Trend] = {
    "fixed": "fixed",
    "rising": "falling",
    "falling": "rising",
    "unknown": "unknown",
}


class Motion(NamedTuple):
    """How a value moves, and whether it is shown never to be negative."""

    trend: Trend
    natural: bool


Motions: TypeAlias = Mapping[str, Motion]

_CONSTANT = Motion("fixed", True)
_UNKNOWN = Motion("unknown", False)


def trend(expr: Expr, limit: str, symbols: Symbols) -> Trend:
    """How `expr` moves when the limit named `limit` grows."""
    return Trends(limit, symbols).of(expr)


def extent_trend(extent: Extent, limit: str, symbols: Symbols) -> Trend:
    """How the bytes of an extent move when the limit named `limit` grows."""
    return Trends(limit, symbols).of_extent(extent)


class Trends:
    """How the formulas of one schema move when one limit grows."""

    def __init__(self, limit: str, symbols: Symbols) -> None:
        self.limit = limit
        self.symbols = symbols
        self._known: dict[tuple[str, tuple[Motion, ...]], Motion] = {}

    def of(self, expr: Expr) -> Trend:
        """How a formula moves."""
        return self.motion(expr, {}).trend

    def of_extent(self, extent: Extent) -> Trend:
        """How the bytes of an extent move."""
        return self.extent(extent, {}).trend

    def motion(self, expr: Expr, local: Motions) -> Motion:
        """The motion of a formula; `local` holds those of parameters."""
        if isinstance(expr, Name):
            name = expr.name
            return local[name] if name in local else self.named(name)

        def visit(node: Expr) -> Motion:
            return self.motion(node, local)

        match expr:
            case Int() | Bool() | Str():
                return _CONSTANT
            case Unary("-", operand):
                return Motion(_REVERSED[visit(operand).trend], False)
            case Unary(_, operand):
                return _still([visit(operand)])
            case Binary(op, left, right):
                return _binary(op, visit(left), visit(right))
            case Compare(_, left, right):
                return _still([visit(left), visit(right)])
            case Logic(_, items):
                return _still(visit(item) for item in items)
            case IfElse(condition, then, other):
                if visit(condition).trend != "fixed":
                    return _UNKNOWN
                return _sum([visit(then), visit(other)])
            case Call(name, arguments):
                return self.called(name, [visit(each) for each in arguments])

    def named(self, name: str, *given: Motion) -> Motion:
        """The motion of a name, or of a function or layout with given arguments."""
        key = name, given
        if key not in self._known:
            self._known[key] = self.name(name, given)
        return self._known[key]

    def name(self, name: str, given: tuple[Motion, ...]) -> Motion:
        symbols = self.symbols
        if name in symbols.functions:
            function = symbols.functions[name]
            names = (each.name for each in function.parameters)
            local = dict(zip(names, given, strict=True))
            return self.motion(function.value.expr, local)
        if name in symbols.layouts:
            return self.layout(symbols.layouts[name], given)
        name = symbols.canonical(name)
        if name == self.limit:
            return Motion("rising", True)
        if name in symbols.lets:
            return self.motion(symbols.lets[name].value.expr, {})
        if name in symbols.levers:
            return Motion("fixed", _natural(symbols.levers[name]))
        if name in symbols.constants:
            value = symbols.constants[name].value
            return Motion("fixed", not isinstance(value, int) or value >= 0)
        return _CONSTANT

    def called(self, name: str, given: list[Motion]) -> Motion:
        match name, given:
            case "max", _:
                return Motion(_joined(given), any(each.natural for each in given))
            case "min", _:
                return _sum(given)
            case "clamp", [value, low, high]:
                natural = high.natural and (value.natural or low.natural)
                return Motion(_joined(given), natural)
            case ("align" | "cdiv"), [value, step]:
                return _stepped(value, step)
            case "next_in", [_, least]:
                return least
        if name in self.symbols.functions or name in self.symbols.layouts:
            return self.named(name, *given)
        return _still(given)

    def layout(self, layout: Layout, given: tuple[Motion, ...]) -> Motion:
        """The motion of a layout's bytes."""
        names = (each.name for each in layout.parameters)
        local = dict(zip(names, given, strict=True))
        for let in let_order(layout.lets, (each.name for each in layout.lets)):
            local[let.name] = self.motion(let.value.expr, local)
        return self.extent(layout.regions, local)

    def extent(self, extent: Extent, local: Motions) -> Motion:
        """The motion of an extent's bytes."""
        match extent:
            case Shape(_, dims):
                total = _CONSTANT
                for dim in dims:
                    total = _binary("*", total, self.motion(dim.expr, local))
                return total
            case Bytes(value):
                return self.motion(value.expr, local)
            case LayoutCall(name, arguments):
                given = {key: self.motion(f.expr, local) for key, f in arguments}
                parameters = self.symbols.layouts[name].parameters
                return self.named(name, *(given[each.name] for each in parameters))
            case Regions(items):
                parts = []
                for region in items:
                    parts.append(self.extent(region.extent, local))
                    if region.at is not None:
                        parts.append(self.motion(region.at.expr, local))
                    if region.when is not None:
                        parts.append(_still([self.motion(region.when.expr, local)]))
                return _sum(parts)
        return _UNKNOWN


def _natural(lever: Lever) -> bool:
    values = [value for _, value, _ in lever.words]
    values += [*(lever.clamp or ()), lever.default]
    return all(value >= 0 for value in values if isinstance(value, int))


def _still(parts: Iterable[Motion]) -> Motion:
    """The motion of something that moves in no order: a truth value, a remainder."""
    return _CONSTANT if {each.trend for each in parts} <= {"fixed"} else _UNKNOWN


def _joined(parts: Iterable[Motion]) -> Trend:
    moves = {each.trend for each in parts} - {"fixed"}
    return "fixed" if not moves else moves.pop() if len(moves) == 1 else "unknown"


def _sum(parts: list[Motion]) -> Motion:
    return Motion(_joined(parts), all(each.natural for each in parts))


def _binary(op: str, left: Motion, right: Motion) -> Motion:
    natural = left.natural and right.natural
    match op:
        case "+":
            return _sum([left, right])
        case "-":
            return Motion(_joined([left, Motion(_REVERSED[right.trend], False)]), False)
        case "*":
            # A factor that may be negative turns the other one around.
            if any(
                one.trend != "fixed" and not other.natural
                for one, other in ((left, right), (right, left))
            ):
                return _UNKNOWN
            return Motion(_joined([left, right]), natural)
        case "//":
            return _stepped(left, right)
    return Motion(_still([left, right]).trend, right.natural)


def _stepped(value: Motion, step: Motion) -> Motion:
    """A value in steps: their number, or the next multiple of one."""
    if value.trend == step.trend == "fixed":
        return Motion("fixed", value.natural and step.natural)
    if step.trend == "fixed" and step.natural:
        return value
    return _UNKNOWN
