"""What a formula's value can be, whatever the model and the limits.

An integer has bounds, a truth value may be decided, a text or list may be known. Sound
and not complete: what is told is true of every input, and much that is true is not
told. A part that is undefined for every input is an Undefined.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeAlias

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
    Type,
    Unary,
)
from .model import Function, Layout, Lever
from .symbols import Symbols, let_order

# Beyond this, a bound is as good as none, and stays cheap.
_FAR = 2**160


class Range(NamedTuple):
    """The integers from `low` to `high`, which may be infinite."""

    low: int | float
    high: int | float


ANY = Range(-math.inf, math.inf)
NATURAL = Range(0, math.inf)
# A range for an integer, a truth value, text or list that is known, or None.
Fact: TypeAlias = Range | bool | str | tuple[str, ...] | tuple[int, ...] | None
Facts: TypeAlias = Mapping[str, Fact]


class Undefined(Exception):
    """A part of a formula that has no value for any input, and why."""

    def __init__(self, expr: Expr, why: str) -> None:
        super().__init__(why)
        self.expr = expr
        self.why = why


class Bounds:
    """The facts about the names and formulas of one schema, which is well typed."""

    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        # With their formulas, which keep their identities as long as they are here.
        self._facts: dict[int, tuple[Expr, Fact]] = {}
        self._names: dict[str, Fact] = {}
        self._calls: dict[tuple[str, tuple[Fact, ...]], Fact] = {}
        # Whether a call had no value, and has been taken for any integer since.
        self.met_undefined = False

    def fact(self, expr: Expr, known: Facts) -> Fact:
        """What is true of the value; `known` holds parameters and what is assumed.

        Raises Undefined.
        """
        if known:
            return self._fact(expr, known)
        if (found := self._facts.get(id(expr))) is None:
            found = self._facts[id(expr)] = expr, self._fact(expr, known)
        return found[1]

    def _fact(self, expr: Expr, known: Facts) -> Fact:
        match expr:
            case Name(name):
                name = self.symbols.canonical(name)
                return known[name] if name in known else self.name(name)
            case Int(value):
                return Range(value, value)
            case Binary(op, left, right):
                first, second = self._fact(left, known), self._fact(right, known)
                assert isinstance(first, Range) and isinstance(second, Range)
                return _binary(expr, op, first, second)
            case Call(name, arguments):
                return self._call(expr, [self._fact(each, known) for each in arguments])
            case Compare(op, left, right):
                return _compare(expr, self._fact(left, known), self._fact(right, known))
            case Logic(op, items):
                return self._logic(items, op == "and", known)
            case IfElse(condition, then, other):
                return self._choice(condition, then, other, known)
            case Unary("-", operand):
                low, high = self.range(operand, known)
                return Range(-high, -low)
            case Unary(_, operand):
                truth = self._fact(operand, known)
                return None if truth is None else not truth
            case Bool(value) | Str(value):
                return value

    def range(self, expr: Expr, known: Facts) -> Range:
        """The bounds of an integer formula. Raises Undefined."""
        fact = self._fact(expr, known)
        assert isinstance(fact, Range)
        return fact

    def assume(self, expr: Expr, truth: bool, known: Facts) -> Facts | None:
        """What is known once a condition is true or false; None when it cannot be."""
        if self.fact(expr, known) is (not truth):
            return None
        match expr:
            case Unary("not", operand):
                return self.assume(operand, not truth, known)
            case Name(name):
                return {**known, name: truth}
            case Logic(op, items) if (op == "and") == truth:
                for item in items:
                    assumed = self.assume(item, truth, known)
                    if assumed is None:
                        return None
                    known = assumed
            case Compare(op, left, right):
                op = op if truth else _OPPOSITE[op]
                for one, way, other in (
                    (left, op, right),
                    (right, _MIRROR.get(op), left),
                ):
                    if isinstance(one, Name) and way is not None:
                        name = self.symbols.canonical(one.name)
                        old, new = self.fact(one, known), self.fact(other, known)
                        fact = _narrowed(old, way, new)
                        if isinstance(fact, Range) and fact.low > fact.high:
                            return None
                        known = {**known, name: fact}
        return known

    def name(self, name: str) -> Fact:
        """What is true of a name of the schema."""
        if name not in self._names:
            self._names[name] = self._name(name)
        return self._names[name]

    def _name(self, name: str) -> Fact:
        symbols = self.symbols
        if name in symbols.limits:
            limit = symbols.limits[name]
            return Range(limit.minimum, _high(limit.maximum))
        if name in symbols.target:
            return Range(symbols.target[name].minimum, math.inf)
        if name in symbols.constants:
            value = symbols.constants[name].value
            if isinstance(value, int) and not isinstance(value, bool):
                return _range(value, value)
            return value
        if name in symbols.lets:
            try:
                return self.fact(symbols.lets[name].value.expr, {})
            except Undefined:
                # It is told where it stands.
                return unknown(symbols.types[name])
        if name in symbols.levers and symbols.levers[name].type == "int":
            return _lever(symbols.levers[name])
        return NATURAL if symbols.types[name] == "int" else None

    def _logic(self, items: tuple[Expr, ...], both: bool, known: Facts) -> bool | None:
        """`and` where `both`, else `or`."""
        decided = True
        for item in items:
            truth = self.fact(item, known)
            if truth is (not both):
                return not both
            decided &= truth is both
            assumed = self.assume(item, both, known)
            if assumed is None:
                return not both
            known = assumed
        return both if decided else None

    def _choice(self, condition: Expr, then: Expr, other: Expr, known: Facts) -> Fact:
        facts = []
        for truth, branch in ((True, then), (False, other)):
            assumed = self.assume(condition, truth, known)
            if assumed is not None:
                facts.append(self.fact(branch, assumed))
        first, *rest = facts or [self.fact(then, known)]
        return _either(first, rest[0]) if rest else first

    def _call(self, expr: Call, given: list[Fact]) -> Fact:
        name, symbols = expr.name, self.symbols
        if name in symbols.layouts:
            return NATURAL
        if name not in symbols.functions:
            return _built_in(expr, given)
        key = name, tuple(given)
        if key not in self._calls:
            self._calls[key] = ANY
            function = symbols.functions[name]
            names = (each.name for each in function.parameters)
            known = dict(zip(names, given, strict=True))
            if self._defined(function):
                try:
                    self._calls[key] = self.fact(function.value.expr, known)
                except Undefined as error:
                    self.met_undefined = True
                    raise Undefined(expr, f"in `{name}`, {error.why}") from None
        return self._calls[key]

    def _defined(self, function: Function) -> bool:
        """Whether a function has a value for some arguments; else it is told there."""
        try:
            self.fact(function.value.expr, self.parameters(function))
        except Undefined:
            return False
        return True

    def parameters(self, function: Function) -> Facts:
        """What is true of the parameters of a function: callers may pass anything."""
        return {each.name: unknown(each.type) for each in function.parameters}

    def layout_names(self, layout: Layout) -> Facts:
        """What is true of the parameters, which are counts, and lets of a layout."""
        known: dict[str, Fact] = {
            each.name: NATURAL if each.type == "int" else None
            for each in layout.parameters
        }
        for let in let_order(layout.lets, (each.name for each in layout.lets)):
            try:
                known[let.name] = self.fact(let.value.expr, known)
            except Undefined:
                known[let.name] = ANY
        return known


def unknown(kind: Type) -> Fact:
    """What is true of any value of a type."""
    return ANY if kind == "int" else None


_OPPOSITE = {
    "==": "!=",
    "!=": "==",
    "<": ">=",
    ">=": "<",
    ">": "<=",
    "<=": ">",
    "in": "not in",
    "not in": "in",
}
_MIRROR = {"==": "==", "!=": "!=", "<": ">", ">": "<", "<=": ">=", ">=": "<="}


def _high(maximum: int | None) -> int | float:
    return math.inf if maximum is None else maximum


def _lever(lever: Lever) -> Range:
    values = [value for _, value, _ in lever.words]
    numbers = [*(lever.clamp or ()), lever.default, *values]
    ints = [value for value in numbers if isinstance(value, int)]
    return Range(min(ints), max(ints))


def _range(low: int | float, high: int | float) -> Range:
    """A range whose bounds stay small enough to be worth their while."""
    if low < -_FAR:
        low = -math.inf
    if high > _FAR:
        high = math.inf
    return Range(min(low, _FAR), max(high, -_FAR))


def _hull(numbers: Iterable[int | float]) -> Range:
    found = list(numbers)
    return _range(min(found), max(found))


def _times(left: int | float, right: int | float) -> int | float:
    if left == 0 or right == 0:
        return 0
    if math.inf in (abs(left), abs(right)):
        return math.inf if (left > 0) == (right > 0) else -math.inf
    return left * right


def _quotient(value: int | float, step: int | float) -> int | float:
    """`value // step` of a positive step."""
    if abs(value) == math.inf:
        return value
    if step == math.inf:
        return 0 if value >= 0 else -1
    return value // step


def _binary(expr: Expr, op: str, left: Range, right: Range) -> Range:
    match op:
        case "+":
            return _range(left.low + right.low, left.high + right.high)
        case "-":
            return _range(left.low - right.high, left.high - right.low)
        case "*" if left.low >= 0 and right.low >= 0:
            return _range(_times(left.low, right.low), _times(left.high, right.high))
        case "*":
            return _hull(_times(a, b) for a in left for b in right)
    if right == (0, 0):
        raise Undefined(expr, "the divisor is zero")
    if right.low < 0:
        return ANY
    if op == "//":
        return _steps(left, right)
    if left.low >= 0 and left.high < right.low:
        return left
    return Range(0, right.high - 1)


def _steps(value: Range, step: Range) -> Range:
    """The bounds of `value // step`, whose step is not negative."""
    steps = (max(step.low, 1), step.high)
    return _hull(_quotient(a, b) for a in value for b in steps)


def _built_in(expr: Call, given: list[Fact]) -> Fact:
    ranges = [each for each in given if isinstance(each, Range)]
    match expr.name:
        case "max":
            return Range(max(a.low for a in ranges), max(a.high for a in ranges))
        case "min":
            return Range(min(a.low for a in ranges), min(a.high for a in ranges))
        case "clamp":
            value, low, high = ranges
            if low.low > high.high:
                raise Undefined(expr, "no integer lies between the bounds")
            smallest, largest = min(value.low, high.low), min(value.high, high.high)
            return Range(max(smallest, low.low), max(largest, low.high))
        case "cdiv":
            value, step = ranges
            if step == (0, 0):
                raise Undefined(expr, "the divisor is zero")
            if step.low < 0:
                return ANY
            steps = _steps(Range(-value.high, -value.low), step)
            return Range(-steps.high, -steps.low)
        case "align":
            value, step = ranges
            if step.high < 1:
                raise Undefined(expr, "the step is less than 1")
            return _range(value.low, value.high + step.high - 1)
        case "next_in":
            return _next_in(expr, given[0], ranges[0])
        case "len":
            size = len(given[0]) if isinstance(given[0], tuple) else None
            return NATURAL if size is None else Range(size, size)
    return NATURAL


def _next_in(expr: Expr, items: Fact, least: Range) -> Range:
    assert isinstance(items, tuple)
    numbers = [item for item in items if isinstance(item, int)]
    reached = [item for item in numbers if item >= least.low]
    if not reached:
        raise Undefined(expr, f"no element reaches {least.low}")
    beyond = [item for item in numbers if item >= least.high]
    return Range(reached[0], (beyond or numbers[-1:])[0])


def _compare(expr: Compare, left: Fact, right: Fact) -> bool | None:
    op = expr.op
    if op in ("in", "not in"):
        return _contains(left, right, op == "in")
    if expr.left == expr.right:
        return op in ("==", "<=", ">=")
    if isinstance(left, Range) and isinstance(right, Range):
        return _ordered(op, left, right)
    if left is None or right is None:
        return None
    return (left == right) == (op == "==")


def _ordered(op: str, left: Range, right: Range) -> bool | None:
    match op:
        case "<":
            return True if left.high < right.low else _never(left.low >= right.high)
        case "<=":
            return True if left.high <= right.low else _never(left.low > right.high)
        case ">" | ">=":
            return _ordered(_MIRROR[op], right, left)
    apart = left.high < right.low or right.high < left.low
    same = left.low == left.high == right.low == right.high
    if apart or same:
        return same == (op == "==")
    return None


def _never(known: bool) -> bool | None:
    return False if known else None


def _contains(item: Fact, items: Fact, wanted: bool) -> bool | None:
    if not isinstance(items, tuple) or item is None:
        return None
    if isinstance(item, Range):
        numbers = (each for each in items if isinstance(each, int))
        within = [each for each in numbers if item.low <= each <= item.high]
        if not within:
            return not wanted
        return wanted if item.low == item.high else None
    return (item in items) == wanted


def _narrowed(old: Fact, op: str, new: Fact) -> Fact:
    """A fact of a name once it stands in a comparison that is true."""
    if not isinstance(old, Range) or not isinstance(new, Range):
        return new if op == "==" and new is not None else old
    match op:
        case "<":
            return Range(old.low, min(old.high, new.high - 1))
        case "<=":
            return Range(old.low, min(old.high, new.high))
        case ">":
            return Range(max(old.low, new.low + 1), old.high)
        case ">=":
            return Range(max(old.low, new.low), old.high)
        case "==":
            return Range(max(old.low, new.low), min(old.high, new.high))
        case "!=" if new.low == new.high == old.low:
            return Range(old.low + 1, old.high)
        case "!=" if new.low == new.high == old.high:
            return Range(old.low, old.high - 1)
    return old


def _either(one: Fact, other: Fact) -> Fact:
    if isinstance(one, Range) and isinstance(other, Range):
        return Range(min(one.low, other.low), max(one.high, other.high))
    return one if one == other else None
