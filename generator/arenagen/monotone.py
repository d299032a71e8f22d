"""How a formula moves with one name, when every name is at least 0.

The proof behind `token_major`: bytes(t) <= bytes(M) for every t <= M holds for what is
`rising` here. What cannot be shown is `unknown`, which callers refuse.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, TypeAlias

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
from .symbols import Symbols, layout_formulas

Trend: TypeAlias = Literal["fixed", "rising", "falling", "unknown"]
Trends: TypeAlias = Mapping[str, Trend]

_REVERSED: dict[Trend, Trend] = {
    "fixed": "fixed",
    "rising": "falling",
    "falling": "rising",
    "unknown": "unknown",
}


def trend(expr: Expr, limit: str, symbols: Symbols) -> Trend:
    """How `expr` moves when the limit named `limit` grows."""
    return _trend(expr, {}, limit, symbols)


def _trend(expr: Expr, local: Trends, limit: str, symbols: Symbols) -> Trend:
    def visit(node: Expr) -> Trend:
        return _trend(node, local, limit, symbols)

    match expr:
        case Int() | Bool() | Str():
            return "fixed"
        case Name(name):
            if name in local:
                return local[name]
            if symbols.canonical(name) == limit:
                return "rising"
            if name in symbols.lets:
                return _trend(symbols.lets[name].value.expr, {}, limit, symbols)
            return "fixed"
        case Unary("-", operand):
            return _REVERSED[visit(operand)]
        case Binary(op, left, right):
            return _binary(op, visit(left), visit(right), right)
        case IfElse(condition, then, other):
            if visit(condition) != "fixed":
                return "unknown"
            return _join(visit(then), visit(other))
        case Call(name, arguments):
            return _call(name, [visit(each) for each in arguments], limit, symbols)
        case Unary(_, operand):
            return "fixed" if visit(operand) == "fixed" else "unknown"
        case Compare(_, left, right):
            moves = {visit(left), visit(right)}
            return "fixed" if moves == {"fixed"} else "unknown"
        case Logic(_, items):
            moves = {visit(item) for item in items}
            return "fixed" if moves == {"fixed"} else "unknown"


def _join(left: Trend, right: Trend) -> Trend:
    if left == "fixed":
        return right
    if right == "fixed" or left == right:
        return left
    return "unknown"


def _binary(op: str, left: Trend, right: Trend, divisor: Expr) -> Trend:
    match op:
        case "+" | "*":
            return _join(left, right)
        case "-":
            return _join(left, _REVERSED[right])
        case "//" if right == "fixed":
            return left
    return "fixed" if left == right == "fixed" else "unknown"


def _call(name: str, moves: list[Trend], limit: str, symbols: Symbols) -> Trend:
    if name in ("min", "max", "clamp"):
        result: Trend = "fixed"
        for move in moves:
            result = _join(result, move)
        return result
    if name in ("align", "cdiv"):
        return moves[0] if moves[1] == "fixed" else "unknown"
    if name == "next_in":
        return moves[1]
    if name in symbols.functions:
        function = symbols.functions[name]
        local = {
            parameter.name: move
            for parameter, move in zip(function.parameters, moves, strict=True)
        }
        return _trend(function.value.expr, local, limit, symbols)
    if name in symbols.layouts:
        layout = symbols.layouts[name]
        local = {
            parameter.name: move
            for parameter, move in zip(layout.parameters, moves, strict=True)
        }
        for let in layout.lets:
            local[let.name] = _trend(let.value.expr, local, limit, symbols)
        result = "fixed"
        for expr in layout_formulas(layout, symbols):
            result = _join(result, _trend(expr, local, limit, symbols))
        return result
    return "fixed" if set(moves) <= {"fixed"} else "unknown"
