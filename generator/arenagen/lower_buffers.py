"""Buffers, their sizes, shapes, groups and trims, as views."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from . import naming
from .describe import buffer_details, extent_text
from .emit import positive_when
from .fills import fill_pattern
from .formula import Expr, Logic, spell
from .lower_scope import FACTS, Scope, bytes_literal
from .lower_uses import UseLowering
from .members import region_members, whole_members
from .model import (
    Buffer,
    Formula,
    Group,
    Schema,
    Shape,
    Use,
    Uses,
)
from .plan_buffers import BufferView, ShapeView
from .plan_groups import GroupView, RegionMemberView
from .plan_parts import StatementView
from .symbols import buffer_formulas, layout_calls


class BufferLowering(UseLowering):
    """Lowers sections `buffers` and `trims`."""

    def buffer(self, buffer: Buffer) -> BufferView:
        fill = "" if buffer.init is None else bytes_literal(fill_pattern(buffer))
        methods = {group.name: group.method for group in self.schema.groups}
        groups = [methods[name] for name, _ in buffer.groups]
        pointer = self.pointer(buffer)
        regions = tuple(
            (methods[each.group], each.path) for each in buffer.zero_regions
        )
        return BufferView(
            name=buffer.name,
            bytes_name=naming.bytes_accessor(buffer.name),
            doc=buffer.doc,
            details=tuple(buffer_details(buffer, groups, regions)),
            dtype=buffer.dtype.name if buffer.dtype else "",
            extent=extent_text(buffer.extent),
            gate=spell(buffer.when.expr) if buffer.when else "",
            otherwise=spell(buffer.otherwise.expr) if buffer.otherwise else "",
            groups=tuple(groups),
            region_groups=regions,
            inputs=self.inputs(buffer),
            token_major=buffer.token_major,
            checksum=buffer.checksum,
            carve_method=naming.carve_method(buffer.name) if buffer.carve else "",
            fill=fill,
            fill_literal=fill or 'b""',
            align=buffer.align,
            pointer=pointer,
        )

    def inputs(self, buffer: Buffer) -> tuple[str, ...]:
        formulas = [each.expr for each in buffer_formulas(buffer)]
        leaves = self.symbols.leaves(formulas).union(
            *(self.symbols.call_leaves(x.layout) for x in layout_calls(buffer.extent))
        )
        wanted = {name for kind, name in leaves if kind in ("field", "limit")}
        declared = (*self.symbols.fields, *self.symbols.limits)
        return tuple(name for name in declared if name in wanted)

    def shape_locals(self, buffers: Sequence[Buffer]) -> tuple[StatementView, ...]:
        """Everything that the shapes share."""
        exprs: list[Expr] = []
        for buffer, use, dims in self.shaped(buffers):
            gates = (buffer.when, use.when if use else None)
            exprs += [formula.expr for formula in (*dims, *gates) if formula]
        return self.shared_locals(self.sizes_scope("shapes"), exprs)

    def shaped(
        self, buffers: Sequence[Buffer]
    ) -> Iterator[tuple[Buffer, Use | None, tuple[Formula, ...]]]:
        """Every buffer, or each of its uses with a shape; no dimensions for bytes.

        A buffer whose shaped uses may all be off stands beside them by itself.
        """
        for buffer in buffers:
            uses = buffer.extent.items if isinstance(buffer.extent, Uses) else ()
            shapes = [use for use in uses if isinstance(use.extent, Shape)]
            if isinstance(buffer.extent, Shape):
                yield buffer, None, buffer.extent.dims
            elif all(use.when for use in shapes):
                yield buffer, None, ()
            for use in shapes:
                assert isinstance(use.extent, Shape)
                yield buffer, use, use.extent.dims

    def shapes(self, buffers: Sequence[Buffer]) -> tuple[ShapeView, ...]:
        """The shape of every buffer, or of each of its uses."""
        scope = self.sizes_scope("shapes")
        return tuple(self.shape(scope, *each) for each in self.shaped(buffers))

    def shape(
        self, scope: Scope, buffer: Buffer, use: Use | None, dims: tuple[Formula, ...]
    ) -> ShapeView:
        """One shape, under the gates of the buffer and of the use."""
        facts: FACTS = frozenset()
        gates: list[Expr] = []
        for gate in (buffer.when, use.when if use else None):
            if gate is not None:
                gates.append(scope.tree(gate.expr, buffer.name, facts))
                facts |= positive_when(gate.expr, True)
        extent = use.extent if use else buffer.extent
        dtype = extent.dtype if isinstance(extent, Shape) else buffer.dtype
        texts = [scope.text(dim.expr, buffer.name, facts) for dim in dims]
        if not texts:
            self.modules["shapes"].add("runtime.view", "FLAT")
        return ShapeView(
            buffer=buffer.name,
            use=use.name if use else "",
            dtype=dtype.name if dtype else "u8",
            dims=f"({', '.join(texts)}{',' * (len(texts) == 1)})" if texts else "FLAT",
            condition=(
                spell(gates[0] if len(gates) == 1 else Logic("and", tuple(gates)))
                if gates
                else ""
            ),
        )

    def groups(
        self, schema: Schema, views: Iterable[BufferView]
    ) -> tuple[GroupView, ...]:
        """The zeroing groups, with the views of their members among the buffers."""
        by_name = {each.name: each for each in views}
        return tuple(self.group(schema, each, by_name) for each in schema.groups)

    def group(
        self, schema: Schema, group: Group, views: dict[str, BufferView]
    ) -> GroupView:
        """A zeroing group with the views of its members."""
        regions = tuple(
            RegionMemberView(
                each.buffer.name,
                each.path,
                naming.place_function(
                    each.buffer.name, each.use.name if each.use else ""
                ),
                each.steps,
            )
            for each in region_members(schema, self.symbols, group.name)
        )
        return GroupView(
            name=group.name,
            doc=group.doc,
            method=group.method,
            rows_method=group.rows_method or "",
            buffers=tuple(
                views[each.name] for each in whole_members(schema, group.name)
            ),
            regions=regions,
        )
