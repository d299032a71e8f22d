"""Buffers, their sizes, shapes, groups and trims, as views."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from . import naming
from .describe import buffer_details, extent_text
from .emit import positive_when
from .fills import fill_pattern
from .formula import Call, Expr, IfElse, Int, Logic, Name, spell
from .lower_scope import FACTS, Scope, bytes_literal
from .lower_uses import UseLowering
from .members import region_members, whole_members
from .model import (
    Buffer,
    Formula,
    Group,
    Regions,
    Shape,
    SingleExtent,
    Trim,
    Use,
    Uses,
)
from .plan import BufferView, GroupView, RegionMemberView, ShapeView, TrimView
from .plan_parts import StatementView
from .symbols import extent_formulas, layout_calls, layout_formulas


class BufferLowering(UseLowering):
    """Lowers sections `buffers` and `trims`."""

    def buffer(self, buffer: Buffer) -> BufferView:
        scope = self.sizes_scope("sizes")
        facts: FACTS = frozenset()
        gate: Expr | None = None
        if buffer.when is not None:
            facts = positive_when(buffer.when.expr, True)
            gate = scope.tree(buffer.when.expr, buffer.name)
        body, parts = self.buffer_size(scope, buffer, facts, gate)
        if buffer.min_bytes is not None:
            parts.append((scope.natural(buffer.min_bytes.expr, buffer.name), ""))
        value = _largest(parts)
        if gate is not None:
            other: Expr = Int(0)
            if buffer.otherwise is not None:
                other = scope.natural(buffer.otherwise.expr, buffer.name)
            value = IfElse(gate, value, other)
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
            size_body=tuple(body),
            size_value=f"({spell(value)})" if buffer.when else spell(value),
            pointer=pointer,
        )

    def buffer_size(
        self, scope: Scope, buffer: Buffer, facts: FACTS, gate: Expr | None
    ) -> tuple[list[StatementView], list[tuple[Expr, str]]]:
        """Statements, and the candidates for the largest size with a comment each."""
        body: list[StatementView] = []
        if not isinstance(buffer.extent, Uses):
            size = self.single_size(
                scope, buffer.extent, buffer.name, buffer.name, facts, gate, body
            )
            return body, [(size, "")]
        parts = []
        for use in buffer.extent.items:
            known = facts
            active = gate
            if use.when is not None:
                known |= positive_when(use.when.expr, True)
                condition = scope.tree(use.when.expr, buffer.name, facts)
                active = Logic("and", (gate, condition)) if gate else condition
            size = self.single_size(
                scope,
                use.extent,
                naming.use_end(buffer.name, use.name),
                f"{buffer.name}.{use.name}",
                known,
                active,
                body,
            )
            if use.when is not None:
                size = IfElse(condition, size, Int(0))
            parts.append((size, use.name))
        return body, parts

    def single_size(
        self,
        scope: Scope,
        extent: SingleExtent,
        variable: str,
        what: str,
        facts: FACTS,
        gate: Expr | None,
        body: list[StatementView],
    ) -> Expr:
        """The bytes of an extent; what it needs before is computed under its gate."""
        if not isinstance(extent, Regions):
            return self.size(scope, extent, what, facts)
        ends, size = self.regions_size(scope, extent, variable, what, facts)
        for name, end in ends:
            value = end if gate is None else IfElse(gate, end, Int(0))
            body.append(StatementView(name, spell(value)))
        return size

    def inputs(self, buffer: Buffer) -> tuple[str, ...]:
        formulas = [each.expr for each in extent_formulas(buffer.extent)]
        optional = (buffer.when, buffer.otherwise, buffer.min_bytes)
        formulas += [each.expr for each in optional if each]
        for call in layout_calls(buffer.extent):
            layout = self.symbols.layouts[call.layout]
            formulas += layout_formulas(layout, self.symbols)
        wanted = {
            name
            for kind, name in self.symbols.leaves(formulas)
            if kind in ("field", "limit")
        }
        declared = (*self.symbols.fields, *self.symbols.limits)
        return tuple(name for name in declared if name in wanted)

    def size_locals(self) -> tuple[StatementView, ...]:
        """Everything that the size formulas share, each computed once, in order."""
        exprs = [each.expr for each in self.buffer_formulas()]
        return self.shared_locals(self.sizes_scope("sizes"), exprs)

    def buffer_formulas(self) -> Iterable[Formula]:
        for buffer in self.schema.buffers:
            yield from extent_formulas(buffer.extent)
            optional = (buffer.when, buffer.otherwise, buffer.min_bytes)
            yield from (each for each in optional if each)
        yield from (trim.when for trim in self.schema.trims)

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

    def group(self, group: Group, views: dict[str, BufferView]) -> GroupView:
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
            for each in region_members(self.schema, self.symbols, group.name)
        )
        for region in regions:
            self.modules["arena"].add("uses", region.place)
        return GroupView(
            name=group.name,
            doc=group.doc,
            method=group.method,
            rows_method=group.rows_method or "",
            buffers=tuple(
                views[each.name] for each in whole_members(self.schema, group.name)
            ),
            regions=regions,
        )

    def trim(self, trim: Trim) -> TrimView:
        scope = self.sizes_scope("sizes")
        condition = scope.text(trim.when.expr, trim.name)
        buffers = tuple(name for name, _ in trim.buffers)
        return TrimView(trim.name, trim.doc, condition, buffers)


def _largest(parts: list[tuple[Expr, str]]) -> Expr:
    """The largest of the candidates, each under its comment."""
    if len(parts) == 1:
        return parts[0][0]
    if not any(comment for _, comment in parts):
        return Call("max", tuple(size for size, _ in parts))
    inside = "".join(
        (f"\n# {comment}\n" if comment else "\n") + f"{spell(size)},"
        for size, comment in parts
    )
    return Name(f"max({inside}\n)")
