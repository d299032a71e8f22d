"""Random formulas with an evaluator of their own, for random schemas.

A formula is drawn as its text together with a function that works its value out and a
bound that it cannot pass: never undefined, small, and negative only where its author is
told to `subtract`. It must never import arenagen.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn

Env = Mapping[str, Any]

# No number that a formula gives is larger.
MAX_NUMBER = 4096

WORDS = ("dense", "sparse", "x")
DOCS = (
    "One thing.",
    "What it says, and then some more words, so that the text is longer than a line.",
    'A "quoted" word.',
    "A backslash \\ inside.",
    "Braces {0} and 100%.",
)
KINDS = (
    *("+", "*", "-", "//", "%", "align", "cdiv", "max", "min", "clamp", "if"),
    *("count", "len", "call", "next_in"),
)

COMPARISONS: dict[str, Callable[[int, int], bool]] = {
    "==": lambda one, other: one == other,
    "!=": lambda one, other: one != other,
    "<": lambda one, other: one < other,
    "<=": lambda one, other: one <= other,
    ">": lambda one, other: one > other,
    ">=": lambda one, other: one >= other,
}


class NoSizeError(Exception):
    """There is no such size, for inputs beyond those that formulas are bounded for."""


class Formula(NamedTuple):
    """A number or a truth value: its text, its value, and the most that it can be.

    moves: whether it depends on the token limit.
    """

    text: str
    value: Callable[[Env], Any]
    most: int = 1
    moves: bool = False


def bucket(value: int) -> int:
    """The smallest of the constant BUCKETS that is at least `value`."""
    for each in (1, 8, 64):
        if each >= value:
            return each
    raise NoSizeError(value)


def up(value: int, multiple: int) -> int:
    """`value` rounded up to a multiple."""
    return -(-value // multiple) * multiple


class FormulaAuthor:
    """Draws formulas over what has been declared so far."""

    def __init__(self, draw: DrawFn) -> None:
        self.draw = draw
        self.subtract = False
        self.numbers: list[Formula] = []
        # Those that grow with the tokens of a pass.
        self.growing: list[Formula] = []
        self.truths: list[Formula] = []
        self.words: list[Formula] = []
        self.lists: list[Formula] = []
        self.calls: list[Callable[[Sequence[Formula]], Formula]] = []

    # Draws

    def some(self, low: int, high: int) -> int:
        return self.draw(st.integers(low, high))

    def chance(self, one_in: int = 2) -> bool:
        return self.draw(st.integers(1, one_in)) == 1

    def pick(self, options: Iterable[Any]) -> Any:
        return self.draw(st.sampled_from(tuple(options)))

    def doc(self) -> str:
        return str(self.pick(DOCS))

    # Formulas

    def number(self, leaves: Sequence[Formula], depth: int = 2) -> Formula:
        """A formula over `leaves`."""
        if depth == 0 or self.chance(3):
            if leaves and not self.chance(4):
                return self.pick(leaves)
            return literal(self.some(0, 9))
        one = self.number(leaves, depth - 1)
        kind = self.pick(KINDS)
        if kind in ("//", "%", "align", "cdiv"):
            return divided(kind, one, self.divisor(leaves))
        if kind == "clamp":
            low = self.some(0, 9)
            high = low + self.some(0, 40)
            return Formula(
                f"clamp({one.text}, {low}, {high})",
                lambda env: max(low, min(one.value(env), high)),
                max(low, min(one.most, high)),
                one.moves,
            )
        if kind == "if":
            return chosen(self.truth(leaves), one, self.number(leaves, depth - 1))
        if kind == "count" and self.lists:
            source, word = self.pick(self.lists), self.pick(WORDS)
            return Formula(
                f"count({source.text}, '{word}')",
                lambda env: list(source.value(env)).count(word),
                source.most,
            )
        if kind == "len" and self.lists:
            source = self.pick(self.lists)
            return Formula(
                f"len({source.text})", lambda env: len(source.value(env)), source.most
            )
        if kind == "call" and self.calls:
            return self.pick(self.calls)(leaves)
        if kind == "next_in" and one.most <= 64:
            return Formula(
                f"next_in(BUCKETS, {one.text})",
                lambda env: bucket(one.value(env)),
                64,
                one.moves,
            )
        other = self.number(leaves, depth - 1)
        widths = [each for each in leaves if each.text.startswith("width")]
        if kind == "-" and self.subtract and widths:
            # What has no upper bound cannot be shown to be negative.
            one = self.pick(widths)
            return Formula(
                f"({one.text} - {other.text})",
                lambda env: one.value(env) - other.value(env),
                one.most,
                one.moves or other.moves,
            )
        return combined(kind if kind in ("*", "-", "max", "min") else "+", one, other)

    def divisor(self, leaves: Sequence[Formula]) -> Formula:
        if self.chance(3):
            other = self.number(leaves, 0)
            return Formula(
                f"max(1, {other.text})",
                lambda env: max(1, other.value(env)),
                max(1, other.most),
                other.moves,
            )
        return literal(self.some(1, 16))

    def truth(self, leaves: Sequence[Formula], depth: int = 1) -> Formula:
        """A truth value over numbers, and over the fixed truths, words and lists."""
        kind = self.pick(("compare", "leaf", "word", "in", "not", "and", "or"))
        if kind == "leaf" and self.truths:
            return self.pick(self.truths)
        if kind == "word" and self.words:
            one, op, word = self.pick(self.words), self.pick(("==", "!=")), self.word()
            return Formula(
                f"{one.text} {op} {word.text}",
                lambda env: (one.value(env) == word.value(env)) is (op == "=="),
            )
        if kind == "in" and self.lists:
            word, source, op = (
                self.word(),
                self.pick(self.lists),
                self.pick(("in", "not in")),
            )
            return Formula(
                f"{word.text} {op} {source.text}",
                lambda env: (word.value(env) in source.value(env)) is (op == "in"),
            )
        if kind == "not" and depth:
            one = self.truth(leaves, depth - 1)
            return Formula(
                f"not ({one.text})", lambda env: not one.value(env), 1, one.moves
            )
        if kind in ("and", "or") and depth:
            one, other = self.truth(leaves, 0), self.truth(leaves, 0)
            return Formula(
                f"({one.text} {kind} {other.text})",
                lambda env: (
                    one.value(env) and other.value(env)
                    if kind == "and"
                    else one.value(env) or other.value(env)
                ),
                1,
                one.moves or other.moves,
            )
        one, other = self.number(leaves, 1), self.number(leaves, 0)
        if one.text.isdigit() and other.text.isdigit():
            # Type checkers refuse to compare two literals.
            one = self.pick(leaves)
        op = self.pick(COMPARISONS)
        return Formula(
            f"{one.text} {op} {other.text}",
            lambda env: COMPARISONS[op](one.value(env), other.value(env)),
            1,
            one.moves or other.moves,
        )

    def word(self) -> Formula:
        if self.words and self.chance(3):
            return self.pick(self.words)
        word = self.pick(WORDS)
        return Formula(f"'{word}'", lambda env: word)

    def rows(self, depth: int = 2) -> Formula:
        """A number that grows with the tokens of a pass."""
        if depth == 0 or self.chance(3):
            return self.pick(self.growing)
        one = self.rows(depth - 1)
        kind = self.pick(("+", "*", "align", "cdiv", "max", "min"))
        if kind in ("align", "cdiv"):
            return divided(kind, one, literal(self.some(1, 16)))
        # A factor that may be negative would turn it around.
        by_number = kind == "*" and self.subtract
        other = literal(self.some(0, 9)) if by_number else self.number(self.fixed, 1)
        return combined(kind, one, other)

    @property
    def fixed(self) -> list[Formula]:
        return [each for each in self.numbers if not each.moves]


def read(name: str, most: int) -> Formula:
    """An input by its name."""
    return Formula(name, lambda env: env[name], most)


def natural(formula: Formula, env: Env) -> int:
    """The value of a size, a dimension or a count; raise NoSizeError when negative."""
    value = int(formula.value(env))
    if value < 0:
        raise NoSizeError(value)
    return value


def literal(value: int) -> Formula:
    """A number."""
    return Formula(str(value), lambda env: value, value)


def plain(formula: Formula) -> object:
    """A formula as YAML holds it: a number for a literal, else its text."""
    return int(formula.text) if formula.text.isdigit() else formula.text


def values(names: Sequence[str], given: Sequence[Formula], env: Env) -> dict[str, Any]:
    """The values of arguments, by the names of their parameters."""
    return {name: each.value(env) for name, each in zip(names, given, strict=True)}


def chosen(condition: Formula, one: Formula, other: Formula) -> Formula:
    """`one if condition else other`."""
    return Formula(
        f"({one.text} if {condition.text} else {other.text})",
        lambda env: one.value(env) if condition.value(env) else other.value(env),
        max(one.most, other.most),
        one.moves or condition.moves or other.moves,
    )


def divided(kind: str, one: Formula, by: Formula) -> Formula:
    """A quotient, a remainder, or a number rounded up."""
    text = (
        f"({one.text} {kind} {by.text})"
        if kind in ("//", "%")
        else f"{kind}({one.text}, {by.text})"
    )
    value: dict[str, Callable[[int, int], int]] = {
        "//": lambda a, b: a // b,
        "%": lambda a, b: a % b,
        "cdiv": lambda a, b: (a + b - 1) // b,
        "align": up,
    }
    compute = value[kind]
    most = one.most + by.most if kind == "align" else max(one.most, by.most)
    found = Formula(
        text,
        lambda env: compute(one.value(env), by.value(env)),
        most,
        one.moves or by.moves,
    )
    return found if most <= MAX_NUMBER else one


def combined(kind: str, one: Formula, other: Formula) -> Formula:
    """A sum, a product or a choice of two numbers; a difference is cut off at 0."""
    moves = one.moves or other.moves
    text, most = f"({one.text} {kind} {other.text})", 0
    if kind == "-":
        text = f"max({one.text} - {other.text}, 0)"
        return Formula(
            text, lambda env: max(one.value(env) - other.value(env), 0), one.most, moves
        )
    if kind in ("max", "min"):
        text = f"{kind}({one.text}, {other.text})"
        pick: Callable[[int, int], int] = max if kind == "max" else min
        return Formula(
            text,
            lambda env: pick(one.value(env), other.value(env)),
            pick(one.most, other.most),
            moves,
        )
    most = one.most * other.most if kind == "*" else one.most + other.most
    if most > MAX_NUMBER:
        return one
    if kind == "*":
        return Formula(text, lambda env: one.value(env) * other.value(env), most, moves)
    return Formula(text, lambda env: one.value(env) + other.value(env), most, moves)
