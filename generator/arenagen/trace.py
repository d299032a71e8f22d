"""How a formula comes to its value: the steps that `explain` shows.

Takes trees and the scopes that `sizing` evaluates them in, and gives texts of formulas
in which numbers stand for names. Evaluates nothing that the evaluator does not: the
side of a choice that is not taken keeps its names.
"""

from __future__ import annotations

from collections.abc import Iterator

from .evaluate import Scope, Value, evaluate
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
    spell,
    with_children,
)
from .record import record

BUILT_IN = frozenset({"min", "max", "clamp", "align", "cdiv"})


@record
class Worked:
    """A formula and its value.

    chain: the formula, the formula with numbers for its names, and with numbers for
    the parts of its outermost operator; what repeats another or the value is left out.
    """

    chain: tuple[str, ...]
    value: Value


def work(expr: Expr, scope: Scope) -> Worked:
    """A formula with its numbers put in. Raises EvaluationError as `evaluate` does."""
    value = evaluate(expr, scope)
    chain = [spell(expr)]
    for each in (with_numbers(expr, scope), with_parts(expr, scope)):
        text = spell(each)
        if text != chain[-1] and text != value_text(value):
            chain.append(text)
    return Worked(tuple(chain), value)


def value_text(value: Value) -> str:
    """A value as a formula would spell it; a list as its elements."""
    if isinstance(value, tuple):
        return "[" + ", ".join(value_text(each) for each in value) + "]"
    return spell(_literal(value))


def with_numbers(expr: Expr, scope: Scope) -> Expr:
    """The formula with values for its names.

    Lists keep their names; calls that read them, and those of the schema's own
    functions and layouts, become their values.
    """

    def visit(node: Expr) -> Expr:
        return with_numbers(node, scope)

    match expr:
        case Name(name):
            value = scope.value(name)
            return expr if isinstance(value, tuple) else _literal(value)
        case Unary() | Binary() | Compare():
            return with_children(expr, map(visit, expr.children))
        case Logic(op, items):
            decided = False
            parts = []
            for item in items:
                parts.append(item if decided else visit(item))
                decided = decided or evaluate(item, scope) == (op == "or")
            return Logic(op, tuple(parts))
        case IfElse(condition, then, other):
            if evaluate(condition, scope):
                return IfElse(visit(condition), visit(then), other)
            return IfElse(visit(condition), then, visit(other))
        case Call(name) if name in BUILT_IN:
            return with_children(expr, map(visit, expr.children))
        case Call():
            return _value_of(expr, scope)
    return expr


def with_parts(expr: Expr, scope: Scope) -> Expr:
    """The formula with values for the parts of its outermost operator.

    A sum is one operator, and so is a product; a choice is the side that is taken.
    """
    match expr:
        case Unary(op, operand):
            return Unary(op, _value_of(operand, scope))
        case Binary(op, left, right):
            return Binary(op, _chained(op, left, scope), _value_of(right, scope))
        case Compare(op, left, right):
            return Compare(op, _value_of(left, scope), _value_of(right, scope))
        case IfElse(condition, then, other):
            return with_parts(then if evaluate(condition, scope) else other, scope)
        case Call(name, arguments) if name in BUILT_IN:
            return Call(name, tuple(_value_of(each, scope) for each in arguments))
    return with_numbers(expr, scope)


def evaluated(expr: Expr, scope: Scope) -> Iterator[Expr]:
    """Every part of a formula that evaluating it looks at, innermost first."""
    match expr:
        case Logic(op, items):
            for item in items:
                yield from evaluated(item, scope)
                if evaluate(item, scope) == (op == "or"):
                    break
        case IfElse(condition, then, other):
            yield from evaluated(condition, scope)
            taken = then if evaluate(condition, scope) else other
            yield from evaluated(taken, scope)
        case _:
            for child in expr.children:
                yield from evaluated(child, scope)
    yield expr


def _chained(op: str, expr: Expr, scope: Scope) -> Expr:
    """The left of an operator: the rest of the same sum or product, or a value."""
    match expr:
        case Binary(inner, left, right) if _same(inner, op):
            return Binary(inner, _chained(op, left, scope), _value_of(right, scope))
    return _value_of(expr, scope)


def _same(inner: str, op: str) -> bool:
    return inner == op == "*" or (inner in "+-" and op in "+-")


def _value_of(expr: Expr, scope: Scope) -> Expr:
    value = evaluate(expr, scope)
    return expr if isinstance(value, tuple) else _literal(value)


def _literal(value: int | bool | str) -> Expr:
    if isinstance(value, bool):
        return Bool(value)
    if isinstance(value, str):
        return Str(value)
    # `-1` is a sign in front of a number, so that brackets come where they must.
    return Int(value) if value >= 0 else Unary("-", Int(-value))
