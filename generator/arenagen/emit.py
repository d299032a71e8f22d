"""Formulas as Python text for the emitted package.

Rewrites the tree into plain Python operations, then spells it. Rounding is written
out, since a helper call would cost more than the arithmetic; a division is written
out where its divisor is shown to be positive, and checked by a helper elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TypeAlias

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
    joined,
    spell,
)

# Longer texts would leave the line of the emitted call.
_ABOUT_LENGTH = 60

# What a name or a call of the schema becomes; None keeps a built-in function.
NameSpelling = Callable[[str], Expr]
CallSpelling = Callable[[str, tuple[Expr, ...]], Expr]
# Names, each with a value that it does not have.
Excluded: TypeAlias = frozenset[tuple[str, int]]


class Emitter:
    """Turns formulas into Python; `helpers` collects the runtime functions it used.

    `constants` maps the integer constants to their values; `nonnegative` and
    `positive` tell which names are shown to be at least 0, and at least 1. `least` is
    the smallest value of a name that may be negative, where it has one.
    """

    def __init__(
        self,
        name: NameSpelling,
        call: CallSpelling,
        constants: dict[str, int],
        nonnegative: Callable[[str], bool],
        positive: Callable[[str], bool] = lambda name: False,
        nonnegative_call: Callable[[str], bool] = lambda name: False,
        counts: Callable[[str], tuple[bool, ...]] = lambda name: (),
        least: Callable[[str], int | None] = lambda name: None,
        helpers: set[str] | None = None,
    ) -> None:
        self._name = name
        self._call = call
        self._constants = constants
        self._nonnegative = nonnegative
        self._positive = positive
        self._nonnegative_call = nonnegative_call
        self._counts = counts
        self._least = least
        self.helpers: set[str] = set() if helpers is None else helpers

    def text(self, expr: Expr, what: str, facts: frozenset[str] = frozenset()) -> str:
        """Python text of a formula; `what` names it in errors at run time."""
        return spell(self.tree(expr, what, facts))

    def tree(self, expr: Expr, what: str, facts: frozenset[str] = frozenset()) -> Expr:
        """The rewritten tree.

        `facts` are the names known to be positive here, and `name != 0` for those
        known not to be zero.
        """
        match expr:
            case Name(name):
                return self._name(name)
            case Binary(op, left, right):
                first = self.tree(left, what, facts)
                second = self.tree(right, what, facts)
                if op in ("//", "%") and not self.nonzero(right, facts):
                    helper = "floordiv" if op == "//" else "modulo"
                    return self._helper(helper, first, second, _about(what, expr))
                return Binary(op, first, second)
            case Compare(op, left, right):
                first = self.tree(left, what, facts)
                return _comparison(op, first, self.tree(right, what, facts))
            case Unary("not", operand):
                return negation(self.tree(operand, what, facts))
            case Unary(op, operand):
                return Unary(op, self.tree(operand, what, facts))
            case Logic(op, items):
                known = facts
                parts = []
                for item in items:
                    parts.append(self.tree(item, what, known))
                    known |= positive_when(item, op == "and")
                return Logic(op, tuple(parts))
            case IfElse(condition, then, other):
                return _choice(
                    self.tree(condition, what, facts),
                    self.tree(then, what, facts | positive_when(condition, True)),
                    self.tree(other, what, facts | positive_when(condition, False)),
                )
            case Call():
                return self._rewrite(expr, what, facts)
        return expr

    def natural(
        self, expr: Expr, what: str, facts: frozenset[str] = frozenset()
    ) -> Expr:
        """The rewritten tree of a size, checked where it could be negative."""
        tree = self.tree(expr, what, facts)
        if self.at_least_0(expr):
            return tree
        return self._helper("natural", tree, _about(what, expr))

    def behind(self, start: Expr, end: Expr, what: str) -> Expr:
        """A checked offset: not before the end of what lies in front of it."""
        return self._helper("behind", start, end, Str(what))

    def _rewrite(self, call: Call, what: str, facts: frozenset[str]) -> Expr:
        name, arguments = call.name, call.arguments
        parts = tuple([self.tree(each, what, facts) for each in arguments])
        match name:
            case "align" | "cdiv":
                if not self.positive(arguments[1], facts):
                    return self._helper(name, *parts, _about(what, call))
                steps = _steps_up(*parts)
                return Binary("*", steps, parts[1]) if name == "align" else steps
            case "clamp":
                value, low, high = parts
                if not self._ordered(arguments[1], arguments[2]):
                    return self._helper("clamp", *parts, _about(what, call))
                return Call("min", (Call("max", (value, low)), high))
            case "min" | "max":
                return parts[0] if len(parts) == 1 else Call(name, parts)
            case "len":
                return Call("len", parts)
            case "count":
                items, *words = parts
                return joined("+", (Call(".count", (items, word)) for word in words))
            case "next_in":
                return self._helper("next_in", *parts, _about(what, call))
        counts = self._counts(name)
        if any(counts):
            parts = tuple(
                self.natural(given, what, facts) if count else part
                for given, part, count in zip(arguments, parts, counts, strict=True)
            )
        return self._call(name, parts)

    def _helper(self, name: str, *arguments: Expr) -> Expr:
        self.helpers.add(name)
        return Call(name, arguments)

    def _ordered(self, low: Expr, high: Expr) -> bool:
        """Whether two bounds are constants in order."""
        values = []
        for bound in (low, high):
            match bound:
                case Int(value):
                    values.append(value)
                case Name(name) if name in self._constants:
                    values.append(self._constants[name])
        return len(values) == 2 and values[0] <= values[1]

    def positive(self, expr: Expr, facts: frozenset[str]) -> bool:
        """Whether a formula is shown to be at least 1."""

        def sure(node: Expr) -> bool:
            return self.positive(node, facts)

        match expr:
            case Int(value):
                return value > 0
            case Name(name):
                if _nonzero(name) in facts and self._nonnegative(name):
                    return True
                known = name in facts or self._constants.get(name, 0) > 0
                return known or self._positive(name)
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

    def nonzero(self, expr: Expr, facts: frozenset[str]) -> bool:
        """Whether a formula is shown not to be 0, so that it can divide."""
        if isinstance(expr, Name) and _nonzero(expr.name) in facts:
            return True
        return self.positive(expr, facts)

    def at_least_0(self, expr: Expr, other: Excluded = frozenset()) -> bool:
        """Whether a formula is shown to be at least 0.

        `other` are the values that names are known not to have here.
        """
        match expr:
            case Name(name):
                if name in self._constants:
                    return self._constants[name] >= 0
                return self._nonnegative(name) or self._spared(name, other)
            case Int() | Bool() | Str():
                return True
            case Binary("+" | "*" | "//" | "%", left, right):
                return self.at_least_0(left, other) and self.at_least_0(right, other)
            case Call("count" | "len", _):
                return True
            case Call("next_in", (_, least)):
                return self.at_least_0(least, other)
            case Call(name, arguments):
                sure = [self.at_least_0(each, other) for each in arguments]
                if name == "max":
                    return any(sure)
                built_in = name in ("min", "align", "cdiv", "clamp")
                return all(sure) and (built_in or self._nonnegative_call(name))
            case IfElse(condition, then, otherwise):
                holds, fails = (
                    self._excluded(condition, each) for each in (True, False)
                )
                return self.at_least_0(then, other | holds) and self.at_least_0(
                    otherwise, other | fails
                )
        return False

    def _spared(self, name: str, other: Excluded) -> bool:
        """Whether a name has none of the negative values that it could have."""
        least = self._least(name)
        while least is not None and (name, least) in other:
            least += 1
        return least is not None and least >= 0

    def _excluded(self, condition: Expr, truth: bool) -> Excluded:
        """What names are not, as the condition being `truth` says."""
        match condition:
            case Compare("==" | "!=" as op, Name(name), Name(constant)) if (
                constant in self._constants and (op == "!=") == truth
            ):
                return frozenset({(name, self._constants[constant])})
            case Compare("==" | "!=" as op, Name(name), Int(value)) if (
                op == "!="
            ) == truth:
                return frozenset({(name, value)})
        return frozenset()


def positive_when(condition: Expr, truth: bool) -> frozenset[str]:
    """What the condition being `truth` says: `name` is positive, `name != 0`."""
    match condition:
        case Compare(op, Int() as number, Name() as name) if op in MIRRORED:
            return positive_when(Compare(MIRRORED[op], name, number), truth)
        case Compare(op, Name(name), Int(0)):
            if op == (">" if truth else "<="):
                return frozenset({name})
            holds = op == ("!=" if truth else "==")
            return frozenset({_nonzero(name)}) if holds else frozenset()
        case Compare(op, Name(name), Int(value)) if value > 0 and truth:
            return frozenset({name}) if op in (">", ">=", "==") else frozenset()
        case Unary("not", operand):
            return positive_when(operand, not truth)
        case Logic(op, items) if (op == "and") == truth:
            return frozenset().union(*(positive_when(item, truth) for item in items))
    return frozenset()


def _nonzero(name: str) -> str:
    return f"{name} != 0"


_INVERSE = {
    "==": "!=",
    "!=": "==",
    "<": ">=",
    "<=": ">",
    ">": "<=",
    ">=": "<",
    "in": "not in",
    "not in": "in",
}
MIRRORED = {"==": "==", "!=": "!=", "<": ">", "<=": ">=", ">": "<", ">=": "<="}


def negation(expr: Expr) -> Expr:
    """`not` as a person writes it: `a != b`, not `not a == b`."""
    match expr:
        case Unary("not", operand):
            return operand
        case Compare(op, left, right):
            return Compare(_INVERSE[op], left, right)
        case Bool(value):
            return Bool(not value)
    return Unary("not", expr)


def _comparison(op: str, left: Expr, right: Expr) -> Expr:
    """A comparison with what varies on its left, which ruff asks for."""
    if op in MIRRORED and _constancy(left) > _constancy(right):
        return Compare(MIRRORED[op], right, left)
    return Compare(op, left, right)


def _constancy(expr: Expr) -> int:
    """2 for a literal, 1 for a name in capitals, 0 for what varies; as ruff sees it."""
    match expr:
        case Int() | Str() | Bool():
            return 2
        case Name(name):
            return int(name.rpartition(".")[2].isupper())
        case Unary("-", operand):
            return _constancy(operand)
        case Binary(_, left, right):
            return min(_constancy(left), _constancy(right))
    return 0


def _choice(condition: Expr, then: Expr, other: Expr) -> Expr:
    """A conditional, or the truth value that it only repeats."""
    if (then, other) == (Bool(True), Bool(False)):
        return condition
    if (then, other) == (Bool(False), Bool(True)):
        return negation(condition)
    return IfElse(condition, then, other)


def _steps_up(value: Expr, step: Expr) -> Expr:
    if isinstance(step, Int):
        if step.value == 1:
            return value
        return Binary("//", Binary("+", value, Int(step.value - 1)), step)
    if isinstance(step, Name):
        raised = Binary("-", Binary("+", value, step), Int(1))
        return Binary("//", raised, step)
    return Unary("-", Binary("//", Unary("-", value), step))


def product(factors: Iterable[Expr]) -> Expr:
    """The product of the factors, without the ones."""
    kept = [factor for factor in factors if factor != Int(1)]
    return joined("*", kept or [Int(1)])


def _about(what: str, expr: Expr) -> Str:
    """What an error calls a formula: by its text too, where a line has room for it."""
    text = f"{what}: {spell(expr)}"
    return Str(text if len(text) <= _ABOUT_LENGTH else what)


def never_less(
    left: Expr,
    right: Expr,
    constants: dict[str, int],
    natural: Callable[[str], bool],
) -> bool:
    """Whether `left >= right` is shown, whatever the names are.

    Both are expanded to sums of products; `natural` tells which names are shown to be
    at least 0. What is no name, sum or product may be anything.
    """
    difference = _terms(Binary("-", left, right), constants)
    return all(
        factor == 0
        or (factor > 0 and all(each.isidentifier() and natural(each) for each in names))
        for names, factor in difference.items()
    )


def _terms(expr: Expr, constants: dict[str, int]) -> dict[tuple[str, ...], int]:
    """The factor of each product of names, the empty product being the constant."""
    match expr:
        case Int(value):
            return {(): value}
        case Name(name) if name in constants:
            return {(): constants[name]}
        case Unary("-", operand):
            return _terms(Binary("-", Int(0), operand), constants)
        case Binary("+" | "-" as op, left, right):
            terms = dict(_terms(left, constants))
            sign = 1 if op == "+" else -1
            for names, factor in _terms(right, constants).items():
                terms[names] = terms.get(names, 0) + sign * factor
            return terms
        case Binary("*", left, right):
            product_of: dict[tuple[str, ...], int] = {}
            for names, factor in _terms(left, constants).items():
                for others, other in _terms(right, constants).items():
                    key = tuple(sorted((*names, *others)))
                    product_of[key] = product_of.get(key, 0) + factor * other
            return product_of
    return {(spell(expr),): 1}
