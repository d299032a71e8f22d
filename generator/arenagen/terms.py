"""The terms of emitted statements, each once, however often it is written.

Equal terms are one node of a graph. A product is one whatever the order of its factors,
with its numbers multiplied, so that `M * width * 2` and `width * M * 2` are equal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from math import prod
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
    with_children,
)
from .record import record

# The place of a node in the graph; parts come before what they are parts of.
Node: TypeAlias = int

# Functions that have a value for all arguments.
_TOTAL = frozenset({"max", "min", "len", ".count"})
# In an operator's form, where a part belongs.
_PART = Int(0)
_PRODUCT = Binary("*", _PART, _PART)


@record
class Copy:
    """The form of a term that is another one under a second name."""

    name: str


class Term:
    """One node.

    form: an operand as it is, or an operator without its parts.
    raises: whether it may have no value, so that it must not be computed where a gate
    would have left it out.
    """

    __slots__ = ("form", "parts", "raises")

    def __init__(
        self, form: Expr | Copy, parts: tuple[Node, ...], raises: bool
    ) -> None:
        self.form = form
        self.parts = parts
        self.raises = raises

    @property
    def is_product(self) -> bool:
        """Whether the parts are factors, in any order."""
        return self.form is _PRODUCT


class Terms:
    """The graph. `constants` are the integer constants, by name."""

    def __init__(self, constants: Mapping[str, int]) -> None:
        self.constants = constants
        self.terms: list[Term] = []
        # What a name stands for, and the name that a term has.
        self.meanings: dict[str, Node] = {}
        self.names: dict[Node, str] = {}
        self._known: dict[tuple[object, ...], Node] = {}

    def __getitem__(self, node: Node) -> Term:
        return self.terms[node]

    def is_operand(self, node: Node) -> bool:
        """Whether a term is nothing but a name or a literal."""
        return not self.terms[node].parts

    def define(self, name: str, value: Expr) -> Node:
        """Give a term a name of its own, by which all others know it."""
        node = self.add(value)
        if node in self.names or not self._can_be_named(node):
            node = self._intern(Copy(name), (node,))
        self.names[node] = name
        self.meanings[name] = node
        return node

    def _can_be_named(self, node: Node) -> bool:
        """Whether every occurrence of a term can be read by a new name."""
        form = self.terms[node].form
        if isinstance(form, Name):
            return form.name not in self.constants
        return not isinstance(form, Int | Bool | Str)

    def add(self, expr: Expr) -> Node:
        """The node of a tree."""
        match expr:
            case Name(name) if name in self.meanings:
                return self.meanings[name]
            case Binary("*"):
                return self.product([self.add(each) for each in _factors(expr)])
        return self._intern(expr, tuple([self.add(each) for each in expr.children]))

    def product(self, factors: Iterable[Node]) -> Node:
        """The node of a product, its numbers multiplied where the last one stands."""
        factors = list(factors)
        numbers = [each for each in factors if isinstance(self.terms[each].form, Int)]
        if len(numbers) > 1 or any(self._number(each) == 1 for each in numbers):
            value = prod(self._number(each) for each in numbers)
            last = len(factors) - 1 - factors[::-1].index(numbers[-1])
            kept = [
                each if place != last else self.add(Int(value))
                for place, each in enumerate(factors)
                if each not in numbers or (place == last and value != 1)
            ]
            factors = kept or [self.add(Int(value))]
        if len(factors) == 1:
            return factors[0]
        return self._intern(_PRODUCT, tuple(factors))

    def _number(self, node: Node) -> int:
        form = self.terms[node].form
        assert isinstance(form, Int)
        return form.value

    def _intern(self, head: Expr | Copy, parts: tuple[Node, ...]) -> Node:
        """The node of an operator, of which only the head counts, over its parts."""
        key = _key(head, sorted(parts) if head is _PRODUCT else parts)
        node = self._known.get(key)
        if node is None:
            node = self._known[key] = len(self.terms)
            raises = any(self.terms[each].raises for each in parts)
            # A division that may fail is a call of a helper.
            raises |= isinstance(head, Call) and head.name not in _TOTAL
            self.terms.append(Term(_form(head), parts, raises))
        return node

    def known_product(self, factors: Iterable[Node]) -> Node | None:
        """The node of a product, if there is one."""
        return self._known.get(_key(_PRODUCT, sorted(factors)))

    def rearrange(self, node: Node, factors: tuple[Node, ...]) -> None:
        """Give a product other factors, whose product is the same."""
        self.terms[node].parts = factors
        self._known.setdefault(_key(_PRODUCT, sorted(factors)), node)

    def below(self, roots: Iterable[Node]) -> Iterator[Node]:
        """All terms of some terms, each once, behind its parts."""
        seen: set[Node] = set()
        # A stack of its own: lets may be chained as deep as a schema is long.
        stack = [(node, False) for node in reversed(list(roots))]
        while stack:
            node, done = stack.pop()
            if done:
                yield node
            elif node not in seen:
                seen.add(node)
                stack.append((node, True))
                stack += [(each, False) for each in reversed(self.terms[node].parts)]

    def conditional(self, node: Node) -> list[tuple[Node, bool]]:
        """The parts, and whether each is computed only under some condition."""
        term = self.terms[node]
        some = isinstance(term.form, IfElse | Logic)
        return [(part, some and place > 0) for place, part in enumerate(term.parts)]

    def tree(self, node: Node, part: Callable[[Node], Expr]) -> Expr:
        """The tree of a term over the trees of its parts."""
        term = self.terms[node]
        parts = tuple(map(part, term.parts))
        match term.form:
            case Copy():
                return parts[0]
            case Binary("*"):
                factors = (each for tree in parts for each in _unpacked(tree))
                return joined("*", factors)
        return with_children(term.form, parts)


def _key(head: Expr | Copy, parts: Iterable[Node]) -> tuple[object, ...]:
    """What equal terms have in common. Quicker to look up than the form itself."""
    match head:
        case Binary(op) | Unary(op) | Compare(op) | Logic(op):
            return (type(head), op, *parts)
        case Name(name) | Call(name) | Copy(name):
            return (type(head), name, *parts)
        case Int(value) | Bool(value) | Str(value):
            return (type(head), value)
    return (type(head), *parts)


def _form(head: Expr | Copy) -> Expr | Copy:
    """An operator without its parts, or an operand."""
    match head:
        case Binary(op):
            return Binary(op, _PART, _PART) if op != "*" else _PRODUCT
        case Compare(op):
            return Compare(op, _PART, _PART)
        case Unary(op):
            return Unary(op, _PART)
        case Logic(op):
            return Logic(op, ())
        case IfElse():
            return IfElse(_PART, _PART, _PART)
        case Call(name):
            return Call(name, ())
    return head


def _factors(expr: Expr) -> list[Expr]:
    """The factors of a product, however it is bracketed."""
    match expr:
        case Binary("*", left, right):
            return [*_unpacked(left), *_unpacked(right)]
    return [expr]


def _unpacked(factor: Expr) -> list[Expr]:
    """The factors of a factor; what is rounded up to a multiple stays in one piece."""
    match factor:
        case Binary("*", Binary("//", _, step), multiple) if step == multiple:
            return [factor]
    return _factors(factor)
