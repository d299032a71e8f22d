"""What lies inside buffers, and the pointers that lead to it, as views."""

from __future__ import annotations

from . import naming
from .describe import extent_text
from .emit import negation, positive_when
from .formula import Expr, Logic, spell
from .lower_layouts import LayoutLowering
from .lower_scope import FACTS, PYTHON_TYPES, Scope
from .model import (
    Buffer,
    Bytes,
    LayoutCall,
    Regions,
    Shape,
    SingleExtent,
    Use,
)
from .plan_parts import ParameterView, RegionView, StatementView
from .plan_uses import PartView, PointerView
from .symbols import (
    buffer_extents,
    extent_formulas,
    layout_calls,
)


class UseLowering(LayoutLowering):
    """Lowers what lies in a buffer: its uses, its regions or its layout."""

    def pointer(self, buffer: Buffer) -> PointerView | None:
        """The pointer class of a buffer, unless it is one shape or some bytes."""
        if isinstance(buffer.extent, Shape | Bytes):
            self.modules["arena"].add("runtime.device", "NULL")
            return None
        parts = tuple(self.part(buffer, *each) for each in buffer_extents(buffer))
        class_name = naming.pointer_class(buffer.name)
        pointers = self.modules["pointers"]
        pointers.add("runtime.device", "NULL")
        pointers.add("runtime.pointer", "BufferPtr", "released_arena")
        for part in parts:
            pointers.add("uses", part.place)
            module = "uses" if part.record else "layouts"
            pointers.add(
                "runtime.layout" if part.type == "Region" else module, part.type
            )
        self.modules["arena"].add("pointers", class_name)
        return PointerView(buffer.name, class_name, parts)

    def part(self, buffer: Buffer, use: Use | None, extent: SingleExtent) -> PartView:
        """One use of a buffer, or what a buffer without uses holds."""
        name = use.name if use else ""
        what = f"{buffer.name}.{name}" if use else buffer.name
        scope = self.arguments_scope("uses", limit="inputs.")
        gates: list[Expr] = []
        conditions: list[Expr] = []
        facts: FACTS = frozenset()
        for gate in (buffer.when, use.when if use else None):
            if gate is not None:
                gates.append(gate.expr)
                conditions.append(scope.tree(gate.expr, what, facts))
                facts |= positive_when(gate.expr, True)
        exprs = [*gates, *(each.expr for each in extent_formulas(extent))]
        regions: tuple[RegionView, ...] = ()
        asked: tuple[ParameterView, ...] = ()
        limits = self.other_limits(exprs)
        filled = use is None and isinstance(extent, LayoutCall)
        if isinstance(extent, Regions):
            regions, end = self.placed(scope, extent, what, facts)
            kind = naming.record_class(buffer.name, name)
            fields = [*(each.local for each in regions), end]
            value = f"{kind}({', '.join(fields)})"
        else:
            kind = "Region"
            if isinstance(extent, LayoutCall):
                kind = naming.layout_class(extent.layout)
                if filled:
                    asked, limits = self.asked(extent)
            names = [each.name for each in (*asked, *limits)] if filled else []
            value = self.extent_value(scope, extent, "0", what, facts, names)
        self.import_part(extent)
        return PartView(
            buffer=buffer.name,
            use=name,
            doc=use.doc if use else buffer.doc,
            extent=extent_text(extent),
            place=naming.place_function(buffer.name, name),
            type=kind,
            record=kind if isinstance(extent, Regions) else "",
            regions=regions,
            gate=spell(_all(gates)) if gates else "",
            absent=spell(negation(_all(conditions))) if gates else "",
            body=self.part_locals(scope, extent, exprs),
            value=value,
            limits=limits,
            layout=filled,
            parameters=asked,
        )

    def part_locals(
        self, scope: Scope, extent: SingleExtent, exprs: list[Expr]
    ) -> tuple[StatementView, ...]:
        """What the formulas of a use read, as statements."""
        leaves = self.symbols.leaves(exprs).union(
            *(self.symbols.call_leaves(each.layout) for each in layout_calls(extent))
        )
        kinds = {kind for kind, _ in leaves}
        owners = {
            "config": "field" in kinds or "let" in kinds,
            "levers": "lever" in kinds,
            "target": "target" in kinds,
        }
        return (
            *(
                StatementView(owner, f"inputs.{owner}")
                for owner, read in owners.items()
                if read
            ),
            *self.locals_for(scope, exprs, limit="inputs."),
        )

    def import_part(self, extent: SingleExtent) -> None:
        """Import what the fields of a record and the layouts of a use need."""
        imports = self.modules["uses"]
        for call in layout_calls(extent):
            imports.add("layouts", naming.layout_class(call.layout))
        parts = [extent]
        if isinstance(extent, Regions):
            parts = [each.extent for each in extent.items]
        if any(isinstance(each, Shape | Bytes) for each in parts):
            imports.add("runtime.layout", "Region")

    def asked(
        self, call: LayoutCall
    ) -> tuple[tuple[ParameterView, ...], tuple[ParameterView, ...]]:
        """The counts of a layout that depend on the tokens, and on other limits."""
        tokens = ("limit", self.schema.token_limit.name)
        given = dict(call.arguments)
        by_tokens: list[ParameterView] = []
        by_limits: list[ParameterView] = []
        for each in self.symbols.layouts[call.layout].parameters:
            leaves = self.symbols.leaves([given[each.name].expr])
            view = ParameterView(each.name, PYTHON_TYPES[each.type], each.doc)
            if tokens in leaves:
                by_tokens.append(view)
            elif each.type == "int" and any(kind == "limit" for kind, _ in leaves):
                by_limits.append(view)
        return tuple(by_tokens), tuple(by_limits)

    def other_limits(self, exprs: list[Expr]) -> tuple[ParameterView, ...]:
        """The limits that formulas read beside the tokens of the pass."""
        leaves = self.symbols.leaves(exprs)
        return tuple(
            ParameterView(each.name, "int", each.doc)
            for each in self.schema.limits
            if not each.tokens and ("limit", each.name) in leaves
        )


def _all(conditions: list[Expr]) -> Expr:
    """The condition that all of the conditions hold."""
    return conditions[0] if len(conditions) == 1 else Logic("and", tuple(conditions))
