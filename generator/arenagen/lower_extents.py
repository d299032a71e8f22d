"""The bytes of extents, as expressions."""

from __future__ import annotations

from .emit import positive_when, product
from .formula import Binary, Expr, IfElse, Int, Name, spell
from .lower_scope import FACTS, Lowering, Scope
from .model import Bytes, LayoutCall, Region, Regions, Shape
from .plan import StatementView


class ExtentLowering(Lowering):
    """Lowers what buffers and layouts have in common."""

    def size(
        self,
        scope: Scope,
        extent: Shape | Bytes | LayoutCall,
        what: str,
        facts: FACTS = frozenset(),
    ) -> Expr:
        """The bytes of one extent."""
        match extent:
            case Shape(dtype, dims):
                count = [scope.tree(dim.expr, what, facts) for dim in dims]
                if dtype.bits % 8 == 0:
                    return product([*count, Int(dtype.bits // 8)])
                per_byte = 8 // dtype.bits
                raised = Binary("+", product(count), Int(per_byte - 1))
                return Binary("//", raised, Int(per_byte))
            case Bytes(value):
                return scope.tree(value.expr, what, facts)
            case LayoutCall(name, arguments):
                layout = self.symbols.layouts[name]
                given = dict(arguments)
                ordered = tuple(
                    scope.tree(given[each.name].expr, what, facts)
                    for each in layout.parameters
                )
                return scope.layout_bytes(layout, ordered)

    def regions_size(
        self,
        scope: Scope,
        regions: Regions,
        variable: str,
        what: str,
        facts: FACTS = frozenset(),
    ) -> tuple[list[StatementView], Expr]:
        """Statements and the final expression for the bytes of laid-out regions."""
        body: list[StatementView] = []
        end: Expr = Int(0)
        for region in regions.items:
            place = f"{what}.{region.name}"
            gate = region.when.expr if region.when is not None else None
            known = facts | (positive_when(gate, True) if gate else frozenset())
            size = self.size(scope, region.extent, place, known)
            if (region.align > 1 or gate is not None) and end != Int(0):
                # Aligning or gating repeats the end, so that it needs a name.
                if end != Name(variable):
                    body.append(StatementView(variable, spell(end), ""))
                end = Name(variable)
            start = self.region_start(scope, region, end, place)
            after = size if start == Int(0) else Binary("+", start, size)
            if gate is not None:
                after = IfElse(scope.tree(gate, place, facts), after, end)
            end = after
        return body, end

    def region_start(self, scope: Scope, region: Region, end: Expr, what: str) -> Expr:
        if region.at is not None:
            return scope.tree(region.at.expr, what)
        if region.align == 1 or end == Int(0):
            return end
        raised = Binary("+", end, Int(region.align - 1))
        return Binary("*", Binary("//", raised, Int(region.align)), Int(region.align))
