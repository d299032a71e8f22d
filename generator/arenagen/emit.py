"""Formulas as Python text for the emitted package.

Rewrites the tree into plain Python operations, then spells it. Rounding is written
out, since a helper call would cost more than the arithmetic; a division is written
out where its divisor is shown to be positive, and checked by a helper elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

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
)

# What a name or a call of the schema becomes; None keeps a built-in function.
NameSpelling = Callable[[str], Expr]
CallSpelling = Callable[[str, tuple[Expr, ...]], Expr]


class Emitter:
    """Turns formulas into Python; `helpers` collects the runtime functions it used.

    `constants` maps the integer constants to their values, `nonnegative` names the
    inputs that are checked to be at least 0.
    """

    def __init__(
        self,
        name: NameSpelling,
        call: CallSpelling,
        constants: dict[str, int],
        nonnegative: Callable[[str], bool],
    ) -> None:
        self._name = name
        self._call = call
        self._constants = constants
        self._nonnegative = nonnegative
        self.helpers: set[str] = set()

    def text(self, expr: Expr, what: str, facts: frozenset[str] = frozenset()) -> str:
        """Python text of a formula; `what` names it in errors at run time."""
        return spell(self.tree(expr, what, facts))

    def tree(self, expr: Expr, what: str, facts: frozenset[str] = frozenset()) -> Expr:
        """The rewritten tree; `facts` are names known to be positive here."""

        def sub(node: Expr) -> Expr:
            return self.tree(node, what, facts)

        match expr:
            case Name(name):
                return self._name(name)
            case Unary(op, operand):
                return Unary(op, sub(operand))
            case Binary(op, left, right):
                if op in ("//", "%") and not self.positive(right, facts):
                    helper = "floordiv" if op == "//" else "modulo"
                    return self._helper(helper, sub(left), sub(right), Str(what))
                return Binary(op, sub(left), sub(right))
            case Compare(op, left, right):
                return Compare(op, sub(left), sub(right))
            case Logic(op, items):
                known = facts
                parts = []
                for item in items:
                    parts.append(self.tree(item, what, known))
                    known |= positive_when(item, op == "and")
                return Logic(op, tuple(parts))
            case IfElse(condition, then, other):
                return IfElse(
                    sub(condition),
                    self.tree(then, what, facts | positive_when(condition, True)),
                    self.tree(other, what, facts | positive_when(condition, False)),
                )
            case Call(name, arguments):
                return self._rewrite(name, arguments, what, facts)
        return expr

    def _rewrite(
        self, name: str, arguments: tuple[Expr, ...], what: str, facts: frozenset[str]
    ) -> Expr:
        parts = tuple(self.tree(each, what, facts) for each in arguments)
        match name:
            case "align" | "cdiv":
                if not self.positive(arguments[1], facts):
                    return self._helper(name, *parts)
                steps = _steps_up(*parts)
                return Binary("*", steps, parts[1]) if name == "align" else steps
            case "clamp":
                value, low, high = parts
                return Call("min", (Call("max", (value, low)), high))
            case "min" | "max":
                return parts[0] if len(parts) == 1 else Call(name, parts)
            case "len":
                return Call("len", parts)
            case "count":
                words = [
                    Call(f"{spell(parts[0])}.count", (word,)) for word in parts[1:]
                ]
                return _sum(words)
            case "next_in":
                return self._helper("next_in", *parts, Str(spell(arguments[0])))
        return self._call(name, parts)

    def _helper(self, name: str, *arguments: Expr) -> Expr:
        self.helpers.add(name)
        return Call(name, arguments)

    def positive(self, expr: Expr, facts: frozenset[str]) -> bool:
        """Whether a formula is shown to be at least 1."""

        def sure(node: Expr) -> bool:
            return self.positive(node, facts)

        match expr:
            case Int(value):
                return value > 0
            case Name(name):
                return name in facts or self._constants.get(name, 0) > 0
            case Binary("+", left, right):
                first, second = sure(left), sure(right)
                return (first and (second or self.at_least_0(right))) or (
                    second and self.at_least_0(left)
                )
            case Binary("*", left, right):
                return sure(left) and sure(right)
            case Call("max", arguments):
                return any(sure(argument) for argument in arguments)
            case Call("min", arguments):
                return all(sure(argument) for argument in arguments)
            case Call("align" | "cdiv", (value, step)):
                return sure(value) and sure(step)
            case IfElse(condition, then, other):
                return self.positive(
                    then, facts | positive_when(condition, True)
                ) and self.positive(other, facts | positive_when(condition, False))
        return False

    def at_least_0(self, expr: Expr) -> bool:
        """Whether a formula is shown to be at least 0."""
        match expr:
            case Int() | Bool() | Str():
                return True
            case Name(name):
                return self._constants.get(name, 0) >= 0 and self._nonnegative(name)
            case Binary("+" | "*" | "//" | "%", left, right):
                return self.at_least_0(left) and self.at_least_0(right)
            case Call("min" | "max" | "align" | "cdiv" | "clamp", arguments):
                return all(self.at_least_0(argument) for argument in arguments)
            case Call("count" | "len", _):
                return True
            case IfElse(_, then, other):
                return self.at_least_0(then) and self.at_least_0(other)
        return False


def positive_when(condition: Expr, truth: bool) -> frozenset[str]:
    """Names that are at least 1 when the condition is `truth`; inputs are never < 0."""
    match condition:
        case Compare(op, Name(name), Int(0)):
            holds = op in (">", "!=") if truth else op in ("==", "<=")
            return frozenset({name}) if holds else frozenset()
        case Compare(op, Name(name), Int(value)) if value > 0 and truth:
            return frozenset({name}) if op in (">", ">=", "==") else frozenset()
        case Unary("not", operand):
            return positive_when(operand, not truth)
        case Logic(op, items) if (op == "and") == truth:
            return frozenset().union(*(positive_when(item, truth) for item in items))
    return frozenset()


def _steps_up(value: Expr, step: Expr) -> Expr:
    if isinstance(step, Int):
        if step.value == 1:
            return value
        return Binary("//", Binary("+", value, Int(step.value - 1)), step)
    if isinstance(step, Name):
        raised = Binary("-", Binary("+", value, step), Int(1))
        return Binary("//", raised, step)
    return Unary("-", Binary("//", Unary("-", value), step))


def _sum(parts: Iterable[Expr]) -> Expr:
    first, *rest = parts
    total = first
    for part in rest:
        total = Binary("+", total, part)
    return total


def product(factors: Iterable[Expr]) -> Expr:
    """The product of the factors, without the ones."""
    kept = [factor for factor in factors if factor != Int(1)]
    if not kept:
        return Int(1)
    total = kept[0]
    for factor in kept[1:]:
        total = Binary("*", total, factor)
    return total
