"""The bytes of extents, as expressions."""

from __future__ import annotations

from collections.abc import Callable

from .emit import never_less, positive_when, product
from .formula import Binary, Expr, IfElse, Int, Name
from .lower_scope import FACTS, Lowering, Scope
from .model import Bytes, LayoutCall, Region, Regions, Shape

# Regions that are added up in one formula; a longer one is hard to read, and to walk.
_LONGEST_SUM = 40


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
                count = [scope.natural(dim.expr, what, facts) for dim in dims]
                if dtype.bits % 8 == 0:
                    return product([*count, Int(dtype.bits // 8)])
                per_byte = 8 // dtype.bits
                raised = Binary("+", product(count), Int(per_byte - 1))
                return Binary("//", raised, Int(per_byte))
            case Bytes(value):
                return scope.natural(value.expr, what, facts)
            case LayoutCall():
                layout = self.symbols.layouts[extent.layout]
                given = self.layout_arguments(scope, extent, what, facts)
                return scope.layout_bytes(layout, tuple(given.values()))

    def layout_arguments(
        self, scope: Scope, call: LayoutCall, what: str, facts: FACTS = frozenset()
    ) -> dict[str, Expr]:
        """The arguments of a layout by parameter, integers checked to be sizes."""
        given = dict(call.arguments)
        return {
            each.name: (scope.natural if each.type == "int" else scope.tree)(
                given[each.name].expr, f"{what}.{each.name}", facts
            )
            for each in self.symbols.layouts[call.layout].parameters
        }

    def regions_size(
        self,
        scope: Scope,
        regions: Regions,
        what: str,
        facts: FACTS,
        local: Callable[[str], str],
    ) -> tuple[list[tuple[str, Expr]], Expr]:
        """Statements and the final expression for the bytes of laid-out regions.

        `local` names what holds the end of a region.
        """
        body: list[tuple[str, Expr]] = []
        end: Expr = Int(0)
        before = ""
        summed = 0
        placed = list(
            zip(regions.items, self.proofs(scope, regions, what), strict=True)
        )
        # Nothing reads where the regions before a fixed place end that is behind them.
        fixed = (
            index
            for index, (region, proven) in enumerate(placed)
            if region.at is not None and region.when is None and proven
        )
        for region, proven in placed[max(fixed, default=0) :]:
            place = f"{what}.{region.name}"
            gate = region.when.expr if region.when is not None else None
            known = facts | (positive_when(gate, True) if gate else frozenset())
            size = self.size(scope, region.extent, place, known)
            aligned = region.align > 1 and region.at is None
            # Aligning or gating repeats the end, so that it needs a name.
            repeated = aligned or gate is not None or summed == _LONGEST_SUM
            if repeated and not isinstance(end, Int | Name):
                name = local(before)
                body.append((name, end))
                end, summed = Name(name), 0
            start = self.region_start(scope, region, end, place, proven)
            after = size if start == Int(0) else Binary("+", start, size)
            if gate is not None:
                after = IfElse(scope.tree(gate, place, facts), after, end)
            end, before, summed = after, region.name, summed + 1
        return body, end

    def region_start(
        self, scope: Scope, region: Region, end: Expr, what: str, proven: bool
    ) -> Expr:
        """Where a region begins, behind the end of those before it."""
        if region.at is not None:
            start = scope.natural(region.at.expr, what)
            return start if proven else scope.behind(start, end, what)
        if region.align == 1 or end == Int(0):
            return end
        raised = Binary("+", end, Int(region.align - 1))
        return Binary("*", Binary("//", raised, Int(region.align)), Int(region.align))

    def proofs(self, scope: Scope, regions: Regions, what: str) -> list[bool]:
        """For each region, whether it is shown not to begin before an earlier end.

        Behind one that is not, nothing is: its check stands in the end that it gives.
        """
        if all(region.at is None for region in regions.items):
            return [True] * len(regions.items)
        found: list[bool] = []
        scope = scope.aside()
        # Never less than the end of the regions so far.
        bound: Expr = Int(0)
        for region in regions.items:
            size = self.size(scope, region.extent, f"{what}.{region.name}")
            if region.at is None:
                found.append(True)
                bound = Binary("+", bound, Int(region.align - 1))
            else:
                start = scope.tree(region.at.expr, what)
                found.append(
                    all(found)
                    and never_less(start, bound, scope.constants, scope.nonnegative)
                )
                bound = start
            bound = Binary("+", bound, size)
        return found
