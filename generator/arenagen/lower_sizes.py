"""The size calculator: every buffer's bytes, as statements over expression trees.

What a gate switches off stands in one branch with all else that the gate does. Sizes
that a gate of a use decides about have a local each where several uses share the gate.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TypeAlias

from . import naming
from .emit import MIRRORED, negation, positive_when
from .formula import Call, Compare, Expr, IfElse, Int, Name, Unary
from .imports import Imports
from .lower_extents import ExtentLowering
from .lower_scope import FACTS, Scope
from .model import Buffer, Formula, Regions, Schema, SingleExtent, Use, Uses
from .sharing import shared
from .statements import Assign, Branch, SizesCode, Statement
from .symbols import Symbols, buffer_formulas, let_order

# A gate, as the formula that it or its negation is, and which of the two it is.
Gate: TypeAlias = tuple[Expr, bool]


class _Group:
    """What one gate decides about; `sides` hold it where it is true, and else."""

    __slots__ = ("condition", "holds", "sides")

    def __init__(self, condition: Expr, holds: bool, sides: dict[bool, _Block]) -> None:
        self.condition = condition
        self.holds = holds
        self.sides = sides


class _Block:
    """Statements, and the groups among them by their gates."""

    __slots__ = ("groups", "items")

    def __init__(self) -> None:
        self.items: list[Assign | _Group] = []
        self.groups: dict[Expr, _Group] = {}

    def group(self, gate: Gate, condition: Expr) -> tuple[_Block, _Block]:
        """The blocks for when a gate is true and for when it is not."""
        key, holds = gate
        if key not in self.groups:
            group = _Group(condition, holds, {True: _Block(), False: _Block()})
            self.groups[key] = group
            self.items.append(group)
        sides = self.groups[key].sides
        return sides[holds], sides[not holds]

    def statements(self) -> tuple[Statement, ...]:
        return tuple(
            (
                each
                if isinstance(each, Assign)
                else Branch(
                    each.condition,
                    each.sides[each.holds].statements(),
                    each.sides[not each.holds].statements(),
                )
            )
            for each in self.items
        )


class SizeLowering(ExtentLowering):
    """Lowers the extents of all buffers to the body of the size calculator."""

    def __init__(
        self,
        schema: Schema,
        modules: dict[str, Imports],
        symbols: Symbols | None = None,
    ) -> None:
        super().__init__(schema, modules, symbols)
        self.fresh = naming.Locals(self.taken())
        # How many buffers or uses share a gate, under the gate of a buffer.
        self.shared: Counter[tuple[Gate | None, Expr]] = Counter()
        # The local of a use's size under its gates.
        self.gated: dict[tuple[Gate | None, Gate, Expr], str] = {}

    def code(self) -> SizesCode:
        """The statements, every term computed once."""
        scope = self.sizes_scope("sizes")
        trims = [scope.tree(each.when.expr, each.name) for each in self.schema.trims]
        return shared(
            self.definitions(scope),
            self.statements(scope),
            trims,
            scope.constants,
            self.fresh,
        )

    def statements(self, scope: Scope) -> tuple[Statement, ...]:
        """The statements as the schema has them, buffer by buffer within each gate."""
        for buffer in self.schema.buffers:
            outer = self.gate(scope, buffer.when)
            if outer is not None:
                self.shared[None, outer[0]] += 1
            for use in _uses(buffer):
                inner = self.gate(scope, use.when)
                if inner is not None:
                    self.shared[outer, inner[0]] += 1
        block = _Block()
        for buffer in self.schema.buffers:
            self.buffer(scope, buffer, block)
        return block.statements()

    def taken(self) -> Iterator[str]:
        """Names that no local may have."""
        yield from self.symbols.signatures
        yield from self.symbols.kinds
        yield from (each.name for each in self.schema.buffers)
        yield from map(naming.layout_function, self.symbols.layouts)

    def definitions(self, scope: Scope) -> dict[str, Expr]:
        """The fields, symbols and lets that formulas read."""
        symbols = self.symbols
        exprs = [each.expr for each in self.formulas()]
        lets = let_order(self.schema.lets, symbols.lets_of(exprs))
        return {
            **{each: Name(f"config.{each}") for each in symbols.fields},
            **{symbol: Name(limit) for symbol, limit in symbols.by_symbol.items()},
            **{let.name: scope.tree(let.value.expr, let.name) for let in lets},
        }

    def formulas(self) -> Iterator[Formula]:
        for buffer in self.schema.buffers:
            yield from buffer_formulas(buffer)
        yield from (trim.when for trim in self.schema.trims)

    def gate(self, scope: Scope, when: Formula | None) -> Gate | None:
        """A gate in the form that it shares with its negation."""
        return None if when is None else _gate(when.expr, scope)

    def buffer(self, scope: Scope, buffer: Buffer, block: _Block) -> None:
        """Add the statements for one buffer to a block."""
        gate = self.gate(scope, buffer.when)
        if buffer.when is None or gate is None:
            self.size_into(scope, buffer, block, None, frozenset())
            return
        condition = scope.tree(buffer.when.expr, buffer.name)
        there, absent = block.group(gate, condition)
        facts = positive_when(buffer.when.expr, True)
        self.size_into(scope, buffer, there, gate, facts)
        other: Expr = Int(0)
        if buffer.otherwise is not None:
            other = scope.natural(buffer.otherwise.expr, buffer.name)
        absent.items.append(Assign(buffer.name, other))

    def size_into(
        self,
        scope: Scope,
        buffer: Buffer,
        block: _Block,
        outer: Gate | None,
        facts: FACTS,
    ) -> None:
        """Add the size of a buffer to the block where its gate is true."""
        if not isinstance(buffer.extent, Uses):
            name = buffer.name
            size = self.single(scope, buffer.extent, name, name, facts, block)
            block.items.append(self.largest(scope, buffer, [(size, "")]))
            return
        uses = buffer.extent.items
        gates = [self.gate(scope, use.when) for use in uses]
        keys = {None if gate is None else gate[0] for gate in gates}
        if len(keys) > 1 or None in keys:
            sizes = [
                (self.use(scope, buffer, use, block, outer, facts), use.name)
                for use in uses
            ]
            block.items.append(self.largest(scope, buffer, sizes))
            return
        # One gate decides about all uses, so that it decides about the buffer.
        for holds in (True, False):
            sizes = []
            for use, gate in zip(uses, gates, strict=True):
                assert use.when is not None and gate is not None
                condition = scope.tree(use.when.expr, buffer.name, facts)
                side = block.group(gate, condition)[gate[1] != holds]
                if gate[1] == holds:
                    size = self.use_size(scope, buffer, use, facts, side)
                    sizes.append((size, use.name))
            side.items.append(self.largest(scope, buffer, sizes))

    def largest(
        self, scope: Scope, buffer: Buffer, sizes: list[tuple[Expr, str]]
    ) -> Assign:
        """The largest of a buffer's sizes, each with its use, and of its floor."""
        sizes = sizes or [(Int(0), "")]
        if buffer.min_bytes is not None:
            floor = scope.natural(buffer.min_bytes.expr, buffer.name)
            sizes = [*sizes, (floor, "")]
        values = tuple(size for size, _ in sizes)
        if len(values) == 1:
            return Assign(buffer.name, values[0])
        labels = tuple(use for _, use in sizes)
        return Assign(buffer.name, Call("max", values), labels)

    def use(
        self,
        scope: Scope,
        buffer: Buffer,
        use: Use,
        block: _Block,
        outer: Gate | None,
        facts: FACTS,
    ) -> Expr:
        """The bytes of a use, 0 where its gate is false."""
        gate = self.gate(scope, use.when)
        if use.when is None or gate is None:
            return self.use_size(scope, buffer, use, facts, block)
        condition = scope.tree(use.when.expr, buffer.name, facts)
        alone = self.shared[outer, gate[0]] == 1
        if alone and not isinstance(use.extent, Regions):
            size = self.use_size(scope, buffer, use, facts, block)
            return IfElse(condition, size, Int(0))
        there, absent = block.group(gate, condition)
        size = self.use_size(scope, buffer, use, facts, there)
        key = (outer, gate, size)
        if key not in self.gated:
            end = naming.use_end(buffer.name, use.name)
            self.gated[key] = name = self.fresh(end)
            there.items.append(Assign(name, size))
            absent.items.append(Assign(name, Int(0)))
        return Name(self.gated[key])

    def use_size(
        self, scope: Scope, buffer: Buffer, use: Use, facts: FACTS, block: _Block
    ) -> Expr:
        """The bytes of a use where its gate is true, in a block where it is."""
        if use.when is not None:
            facts = facts | positive_when(use.when.expr, True)
        end = naming.use_end(buffer.name, use.name)
        what = f"{buffer.name}.{use.name}"
        return self.single(scope, use.extent, end, what, facts, block)

    def single(
        self,
        scope: Scope,
        extent: SingleExtent,
        variable: str,
        what: str,
        facts: FACTS,
        block: _Block,
    ) -> Expr:
        """The bytes of an extent; the ends of regions become locals of the block."""
        if not isinstance(extent, Regions):
            return self.size(scope, extent, what, facts)
        ends, size = self.regions_size(
            scope,
            extent,
            what,
            facts,
            lambda region: self.fresh(f"{variable}_{region}"),
        )
        block.items += [Assign(name, end, local=True) for name, end in ends]
        return size


def _uses(buffer: Buffer) -> tuple[Use, ...]:
    return buffer.extent.items if isinstance(buffer.extent, Uses) else ()


def _gate(expr: Expr, scope: Scope) -> Gate:
    """A gate and its truth; of two that negate each other, one is said to be false."""
    match expr:
        case Unary("not", operand):
            key, holds = _gate(operand, scope)
            return key, not holds
        case Compare(op, Int(value) as number, Name() as name) if op in MIRRORED:
            return _gate(Compare(MIRRORED[op], name, number), scope)
        case Compare(op, Name(name) as operand, Int(value)) if scope.nonnegative(name):
            if (op, value) in ((">", 0), ("!=", 0), (">=", 1)):
                return Compare(">", operand, Int(0)), True
            if (op, value) in (("<=", 0), ("==", 0), ("<", 1)):
                return Compare(">", operand, Int(0)), False
    if isinstance(expr, Compare) and expr.op in ("!=", "<=", "<", "not in"):
        return negation(expr), False
    return expr, True
