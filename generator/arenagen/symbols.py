"""What a schema's names stand for.

One table of every name, its kind and its type, and what a formula reads once lets,
functions and layouts are followed. Built by `check`, read by `lower`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Literal, TypeAlias

from .formula import BUILTINS, Call, Expr, Name, Signature, Type, calls, names
from .model import (
    Buffer,
    Bytes,
    Extent,
    Formula,
    Layout,
    LayoutCall,
    Let,
    Parameter,
    Regions,
    Schema,
    Shape,
    SingleExtent,
    Use,
    Uses,
)

Kind: TypeAlias = Literal["limit", "field", "lever", "target", "constant", "let"]
# A name that formulas read, with its kind; lets are followed to what they read.
Leaf: TypeAlias = tuple[Kind, str]


class Symbols:
    """The names of one schema. Follows lets and functions, so cycles come first."""

    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.limits = {each.name: each for each in schema.limits}
        self.by_symbol = {
            each.symbol: each.name for each in schema.limits if each.symbol
        }
        self.fields = {each.name: each for each in schema.config}
        self.levers = {each.name: each for each in schema.levers}
        self.target = {each.name: each for each in schema.target}
        self.constants = {each.name: each for each in schema.constants}
        self.integers = {
            each.name: each.value
            for each in schema.constants
            if isinstance(each.value, int)
        }
        self.lets = {each.name: each for each in schema.lets}
        self.functions = {each.name: each for each in schema.functions}
        self.layouts = {each.name: each for each in schema.layouts}
        self.buffers = {each.name: each for each in schema.buffers}
        self.kinds: dict[str, Kind] = {}
        tables: tuple[tuple[Kind, Iterable[str]], ...] = (
            ("limit", [*self.limits, *self.by_symbol]),
            ("field", self.fields),
            ("lever", self.levers),
            ("target", self.target),
            ("constant", self.constants),
            ("let", self.lets),
        )
        for kind, table in tables:
            for name in table:
                self.kinds.setdefault(name, kind)
        self.types: dict[str, Type] = {
            name: "int" for name in self.kinds if name not in self.lets
        }
        self.types |= {each.name: each.type for each in schema.config}
        self.types |= {each.name: each.type for each in schema.levers}
        self.types |= {each.name: each.type for each in schema.constants}
        self.signatures: dict[str, Signature] = dict(BUILTINS)
        for layout in schema.layouts:
            self.signatures[layout.name] = _signature(layout.parameters)
        for function in schema.functions:
            self.signatures[function.name] = _signature(function.parameters)
        # What is known already of names and lets, so that none is followed twice.
        self._leaves: dict[str, frozenset[Leaf]] = {}
        self._lets_of: dict[str, frozenset[str]] = {}
        self.pure: dict[str, bool] = {}

    def canonical(self, name: str) -> str:
        """A limit's own name for its symbol; any other name as it is."""
        return self.by_symbol.get(name, name)

    def leaves(self, exprs: Iterable[Expr]) -> frozenset[Leaf]:
        """Every limit, field, lever, target constant and constant that is read."""
        found: set[Leaf] = set()
        nodes = list(exprs)
        for node in nodes:
            if isinstance(node, Name):
                found |= self._name_leaves(node.name)
                continue
            if isinstance(node, Call):
                found |= self.call_leaves(node.name)
            nodes += node.children
        return frozenset(found)

    def reads_config(self, name: str) -> bool:
        """Whether a function or a layout is given the config.

        It is where it reads a field, or a let that is a property of the config.
        """
        return any(kind in ("field", "let") for kind, _ in self.call_leaves(name))

    def lets_of(self, exprs: Iterable[Expr]) -> frozenset[str]:
        """Every let that is read, also through other lets."""
        found: set[str] = set()
        for expr in exprs:
            for node in names(expr):
                if node.name in self.lets and node.name not in found:
                    found |= self._with_lets(node.name)
        return frozenset(found)

    def _with_lets(self, name: str) -> frozenset[str]:
        """A let, and those that it reads."""
        if name not in self._lets_of:
            read = self.lets_of([self.lets[name].value.expr])
            self._lets_of[name] = read | {name}
        return self._lets_of[name]

    def _name_leaves(self, name: str) -> frozenset[Leaf]:
        if name in self._leaves:
            return self._leaves[name]
        kind = self.kinds.get(name)
        if kind is None:
            return frozenset()
        if kind != "let":
            self._leaves[name] = frozenset({(kind, self.canonical(name))})
        else:
            found = self.leaves([self.lets[name].value.expr])
            still = all(kind == "constant" for kind, _ in found)
            if still and pure_config(self, self.lets[name]):
                # It depends on nothing, and yet it is read from the config.
                found |= {("let", name)}
            self._leaves[name] = found
        return self._leaves[name]

    def call_leaves(self, name: str) -> frozenset[Leaf]:
        """The same of what a function or a layout reads, nested ones included."""
        if name not in self._leaves:
            exprs: Iterable[Expr] = ()
            if name in self.functions:
                exprs = [self.functions[name].value.expr]
            elif name in self.layouts:
                exprs = layout_formulas(self.layouts[name], self)
            self._leaves[name] = self.leaves(exprs)
        return self._leaves[name]


def _signature(parameters: Iterable[Parameter]) -> Signature:
    return Signature(tuple(each.type for each in parameters), "int")


def layout_formulas(layout: Layout, symbols: Symbols) -> Iterator[Expr]:
    """Every formula that a layout's size depends on, nested layouts included."""
    for let in layout.lets:
        yield let.value.expr
    for formula in extent_formulas(layout.regions):
        yield formula.expr
    for call in layout_calls(layout.regions):
        if call.layout in symbols.layouts:
            yield from layout_formulas(symbols.layouts[call.layout], symbols)


def extent_formulas(extent: Extent) -> Iterator[Formula]:
    """Every formula written in an extent."""
    match extent:
        case Shape(_, dims):
            yield from dims
        case Bytes(value):
            yield value
        case LayoutCall(_, arguments):
            yield from (formula for _, formula in arguments)
        case Regions(items):
            for region in items:
                yield from extent_formulas(region.extent)
                yield from (each for each in (region.at, region.when) if each)
        case Uses(items):
            for use in items:
                yield from extent_formulas(use.extent)
                if use.when:
                    yield use.when


def buffer_formulas(buffer: Buffer) -> Iterator[Formula]:
    """Every formula of a buffer's entry."""
    yield from extent_formulas(buffer.extent)
    optional = (buffer.when, buffer.otherwise, buffer.min_bytes)
    yield from (each for each in optional if each)


def buffer_extents(buffer: Buffer) -> Iterator[tuple[Use | None, SingleExtent]]:
    """The extent of each use, or the one extent of a buffer without uses."""
    if isinstance(buffer.extent, Uses):
        yield from ((use, use.extent) for use in buffer.extent.items)
    else:
        yield None, buffer.extent


def layout_calls(extent: Extent) -> Iterator[LayoutCall]:
    """Every named layout that an extent refers to."""
    match extent:
        case LayoutCall():
            yield extent
        case Regions(items) | Uses(items):
            for item in items:
                yield from layout_calls(item.extent)


def let_order(lets: Iterable[Let], wanted: Iterable[str]) -> list[Let]:
    """The wanted lets, each behind those that it reads, in schema order otherwise."""
    needed = set(wanted)
    order: list[Let] = []
    if not needed:
        return order
    table = {let.name: let for let in lets}
    placed: set[str] = set()

    def place(let: Let) -> None:
        if let.name in placed:
            return
        placed.add(let.name)
        for node in names(let.value.expr):
            if node.name in table:
                place(table[node.name])
        order.append(let)

    for let in table.values():
        if let.name in needed:
            place(let)
    return order


def pure_config(symbols: Symbols, let: Let) -> bool:
    """Whether a let reads config fields and constants only, and calls nothing.

    The config cannot call sizing helpers, which are built on it.
    """
    if let.name not in symbols.pure:
        own = symbols.functions.keys() | symbols.layouts.keys()
        exprs = [
            symbols.lets[name].value.expr for name in symbols.lets_of([Name(let.name)])
        ]
        kinds = {kind for kind, _ in symbols.leaves(exprs)}
        called = {call.name for expr in exprs for call in calls(expr)}
        pure = kinds <= {"field", "constant", "let"} and not called & own
        symbols.pure[let.name] = pure
    return symbols.pure[let.name]
