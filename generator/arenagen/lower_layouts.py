"""Layouts, and the accessors that publish them, as views."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from . import naming
from .emit import positive_when
from .formula import Binary, Expr, IfElse, Int, Name, quote, spell
from .lower_extents import ExtentLowering
from .lower_scope import FACTS, PYTHON_TYPES, Scope
from .model import Bytes, Layout, LayoutCall, Regions, Shape
from .plan_declared import LayoutAccessorView, LayoutView
from .plan_parts import ParameterView, RegionView, StatementView
from .symbols import extent_formulas, let_order, pure_config


class LayoutLowering(ExtentLowering):
    """Lowers section `layouts`."""

    def layout(self, layout: Layout) -> LayoutView:
        symbols = self.symbols
        imports = self.modules["layouts"]
        if any(not isinstance(e.extent, LayoutCall) for e in layout.regions.items):
            imports.add("runtime.layout", "Region")
        reads_config = symbols.reads_config(layout.name)
        if reads_config:
            imports.add("config", "ModelConfig")
        imports.add("runtime.device", "NULL", "DevicePtr")
        scope = self.scope("layouts", field="config.", pure="config.")
        exprs = [formula.expr for formula in extent_formulas(layout.regions)]
        lets = {let.name: let for let in layout.lets}
        scope.local.update({let.name: let.value.expr for let in layout.lets})
        inner = [
            StatementView(let.name, scope.text(let.value.expr, let.name))
            for let in let_order(layout.lets, lets)
        ]
        exprs += [let.value.expr for let in layout.lets]
        outer = [
            StatementView(let.name, scope.text(let.value.expr, let.name))
            for let in let_order(symbols.schema.lets, symbols.lets_of(exprs))
            if not pure_config(symbols, let)
        ]
        before = (*outer, *inner)
        ends, end = self.regions_size(
            scope, layout.regions, layout.name, frozenset(), lambda region: "end"
        )
        body = [StatementView(name, spell(expr)) for name, expr in ends]
        value = spell(end)
        regions, after = self.placed(scope, layout.regions, layout.name)
        placed = [each.value for region in regions for each in region.body]
        return LayoutView(
            name=layout.name,
            class_name=naming.layout_class(layout.name),
            size_function=naming.layout_function(layout.name),
            doc=layout.doc,
            parameters=tuple(
                ParameterView(each.name, PYTHON_TYPES[each.type], each.doc)
                for each in layout.parameters
            ),
            reads_config=reads_config,
            size_body=(
                *_needed(before, [*(each.value for each in body), value]),
                *body,
            ),
            size_value=value,
            place_body=_needed(before, placed),
            regions=regions,
            size_after=after,
        )

    def placed(
        self, scope: Scope, regions: Regions, what: str, facts: FACTS = frozenset()
    ) -> tuple[tuple[RegionView, ...], str]:
        """The regions, and where the last one ends."""
        views = []
        end: Expr = Int(0)
        taken = {*self.symbols.signatures, *self.symbols.kinds}
        proofs = self.proofs(scope, regions, what)
        # A region that is shown to begin behind it does not read where the last ended.
        reads_end = [
            region.at is None or region.when is not None or not proven
            for region, proven in zip(regions.items, proofs, strict=True)
        ]
        read_later = (*reads_end[1:], True)
        for region, proven, read in zip(regions.items, proofs, read_later, strict=True):
            place = f"{what}.{region.name}"
            name = naming.local(region.name, taken)
            taken.add(name)
            gate = region.when.expr if region.when is not None else None
            known = facts | (positive_when(gate, True) if gate else frozenset())
            start = self.region_start(scope, region, end, place, proven)
            value = self.extent_value(scope, region.extent, spell(start), place, known)
            kind = "Region"
            after: Expr = Name(f"{name}.end")
            if isinstance(region.extent, LayoutCall):
                kind = naming.layout_class(region.extent.layout)
                after = Binary("+", start, Name(f"{name}.nbytes"))
            body = [StatementView(name, value)]
            if gate is not None:
                condition = scope.tree(gate, place, facts)
                value = spell(IfElse(condition, Name(value), Name("None")))
                present = f"{spell(end)} if {name} is None else {spell(after)}"
                body = [StatementView(name, value)]
                if read:
                    body.append(StatementView("end", present))
                kind = f"{kind} | None"
                after = Name("end")
            end = after
            views.append(RegionView(region.name, name, kind, region.doc, tuple(body)))
        return tuple(views), spell(end)

    def extent_value(
        self,
        scope: Scope,
        extent: Shape | Bytes | LayoutCall,
        start: str,
        what: str,
        facts: FACTS = frozenset(),
        asked: Sequence[str] = (),
    ) -> str:
        """The call that lays an extent out from `start` on.

        `asked` are the arguments of a layout that a caller may give, else None.
        """
        imports = self.modules[scope.module]
        if not isinstance(extent, LayoutCall):
            dtype = extent.dtype.name if isinstance(extent, Shape) else "u8"
            dims = extent.dims if isinstance(extent, Shape) else (extent.value,)
            imports.add("runtime.layout", "place")
            spelled = [spell(scope.natural(dim.expr, what, facts)) for dim in dims]
            shape = f"({', '.join(spelled)}{',' * (len(dims) == 1)})"
            return f"place(base, {start}, {quote(dtype)}, {shape})"
        layout = self.symbols.layouts[extent.layout]
        class_name = naming.layout_class(layout.name)
        given = ["config"] if self.symbols.reads_config(layout.name) else []
        for name, expr in self.layout_arguments(scope, extent, what, facts).items():
            if name in asked:
                expr = IfElse(Name(f"{name} is None"), expr, Name(name))
            given.append(f"{name}={spell(expr)}")
        base = "base"
        if start != "0":
            imports.add("runtime.layout", "shift")
            base = f"shift(base, {start})"
        return f"{class_name}.of({', '.join([*given, f'base={base}'])})"

    def accessor(self, layout: Layout, call: LayoutCall) -> LayoutAccessorView:
        self.modules["arena"].add("layouts", naming.layout_class(layout.name))
        scope = self.scope(
            "arena",
            owner="self.",
            field="self.config.",
            pure="self.config.",
            limit="self.",
            lever="self.levers.",
            target="self.target.",
        )
        exprs = [formula.expr for _, formula in call.arguments]
        return LayoutAccessorView(
            name=layout.name,
            class_name=naming.layout_class(layout.name),
            doc=layout.accessor_doc,
            body=self.locals_for(scope, exprs, limit="self."),
            arguments=", ".join(
                (["self.config"] if self.symbols.reads_config(layout.name) else [])
                + [
                    f"{name}={scope.text(formula.expr, layout.name)}"
                    for name, formula in call.arguments
                ]
            ),
        )


def _needed(
    statements: Iterable[StatementView], texts: Iterable[str]
) -> tuple[StatementView, ...]:
    """The statements whose names occur in the texts, or in needed statements."""
    wanted = " ".join(texts)
    kept: list[StatementView] = []
    for statement in reversed(list(statements)):
        if re.search(rf"\b{statement.name}\b", wanted):
            kept.append(statement)
            wanted += " " + statement.value
    return tuple(reversed(kept))
