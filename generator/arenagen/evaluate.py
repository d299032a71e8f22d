"""Exact evaluation of formulas over integers of any size.

Takes a tree and a scope that gives names and functions their values; returns a value.
An undefined result is an EvaluationError, never a default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from .formula import (
    BUILTINS,
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
)

# Far beyond any size; a chain of products would fill the memory.
MAX_BITS = 4096

Value: TypeAlias = int | bool | str | tuple[str, ...] | tuple[int, ...]


class EvaluationError(Exception):
    """A formula without a value for these inputs; says which part and why."""


class Scope(Protocol):
    """Where a formula's names and functions come from."""

    def value(self, name: str) -> Value:
        """The value of a name."""

    def call(self, name: str, arguments: Sequence[Value]) -> Value:
        """The value of a function of the schema."""


def evaluate(expr: Expr, scope: Scope) -> Value:
    """The value of a formula that `infer` has typed.

    Raises EvaluationError for a division by zero or a list without a fitting element.
    """
    match expr:
        case Int(value) | Bool(value) | Str(value):
            return value
        case Name(name):
            return scope.value(name)
        case Unary("-", operand):
            return -_number(operand, scope)
        case Unary(_, operand):
            return not evaluate(operand, scope)
        case Binary(op, left, right):
            return _arithmetic(expr, op, _number(left, scope), _number(right, scope))
        case Compare(op, left, right):
            return compare(op, evaluate(left, scope), evaluate(right, scope))
        case Logic("and", items):
            return all(evaluate(item, scope) for item in items)
        case Logic(_, items):
            return any(evaluate(item, scope) for item in items)
        case IfElse(condition, then, other):
            return evaluate(then if evaluate(condition, scope) else other, scope)
        case Call(name, arguments):
            values = [evaluate(argument, scope) for argument in arguments]
            if name in BUILTINS:
                return built_in(expr, values)
            return scope.call(name, values)


def _number(expr: Expr, scope: Scope) -> int:
    value = evaluate(expr, scope)
    assert isinstance(value, int)
    return value


def _arithmetic(expr: Expr, op: str, left: int, right: int) -> int:
    if op == "+":
        return left + right
    if op == "-":
        return left - right
    if op == "*":
        product = left * right
        if product.bit_length() > MAX_BITS:
            raise EvaluationError(f"`{spell(expr)}` has more than {MAX_BITS} bits")
        return product
    if right == 0:
        raise EvaluationError(f"`{spell(expr)}` divides {left} by zero")
    return left // right if op == "//" else left % right


def compare(op: str, left: Value, right: Value) -> bool:
    """The truth of a comparison of two values."""
    if op in ("in", "not in"):
        assert isinstance(right, tuple)
        return (left in right) == (op == "in")
    if op in ("==", "!="):
        return (left == right) == (op == "==")
    assert isinstance(left, int) and isinstance(right, int)
    if op == "<":
        return left < right
    if op == "<=":
        return left <= right
    return left > right if op == ">" else left >= right


def built_in(call: Call, values: list[Value]) -> Value:
    """The value of a call of a function of the language. Raises EvaluationError."""
    match call.name, values:
        case "min", _:
            return min(_ints(values))
        case "max", _:
            return max(_ints(values))
        case "clamp", _:
            value, low, high = _ints(values)
            if low > high:
                raise EvaluationError(
                    f"`{spell(call)}`: no integer is from {low} to {high}"
                )
            return min(max(value, low), high)
        case ("align" | "cdiv" as name), _:
            value, step = _ints(values)
            if step == 0 or (step < 0 and name == "align"):
                raise EvaluationError(f"`{spell(call)}` takes steps of {step}")
            steps = -(-value // step)
            return steps * step if name == "align" else steps
        case "count", [tuple() as items, *words]:
            return sum(list(items).count(word) for word in words)
        case "len", [tuple() as items]:
            return len(items)
        case "next_in", [tuple() as items, int() as least]:
            for item in items:
                if isinstance(item, int) and item >= least:
                    return item
            raise EvaluationError(
                f"`{spell(call)}`: no element reaches {least}; the largest is "
                f"{items[-1]}"
            )
    raise AssertionError(f"no function of the language is {call.name}")


def _ints(values: list[Value]) -> list[int]:
    return [value for value in values if isinstance(value, int)]
