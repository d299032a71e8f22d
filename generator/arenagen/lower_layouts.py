"""Layouts, and the pointers and accessors that lead to them, as views."""

from __future__ import annotations

import re
from collections.abc import Iterable

from . import naming
from .formula import Binary, Expr, IfElse, Int, Name, quote, spell
from .lower_extents import ExtentLowering
from .lower_scope import PYTHON_TYPES, Scope, layout_reads_config
from .model import Buffer, Bytes, Layout, LayoutCall, Shape
from .plan import (
    LayoutAccessorView,
    LayoutView,
    ParameterView,
    PointerView,
    RegionView,
    StatementView,
)
from .symbols import extent_formulas, let_order, pure_config


class LayoutLowering(ExtentLowering):
    """Lowers section `layouts`, and the buffers that a layout fills."""

    def layout(self, layout: Layout) -> LayoutView:
        symbols = self.symbols
        imports = self.modules["layouts"]
        reads_config = layout_reads_config(symbols, layout)
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
        ends, end = self.regions_size(scope, layout.regions, "end", layout.name)
        body = [StatementView(name, spell(expr)) for name, expr in ends]
        value = spell(end)
        regions, after = self.regions(scope, layout)
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

    def regions(
        self, scope: Scope, layout: Layout
    ) -> tuple[tuple[RegionView, ...], str]:
        """The regions, and where the last one ends."""
        imports = self.modules["layouts"]
        views = []
        end: Expr = Int(0)
        proofs = self.proofs(scope, layout.regions, layout.name)
        for region, proven in zip(layout.regions.items, proofs, strict=True):
            what = f"{layout.name}.{region.name}"
            start = self.region_start(scope, region, end, what, proven)
            body: list[StatementView] = []
            at = spell(start)
            match region.extent:
                case LayoutCall():
                    nested = self.symbols.layouts[region.extent.layout]
                    class_name = naming.layout_class(nested.name)
                    imports.add("runtime.layout", "shift")
                    config = layout_reads_config(self.symbols, nested)
                    given = ["config"] if config else []
                    arguments = self.layout_arguments(scope, region.extent, what)
                    given += [f"{name}={spell(e)}" for name, e in arguments.items()]
                    given.append(f"base=shift(base, {at})")
                    kind, value = class_name, f"{class_name}.of({', '.join(given)})"
                    after: Expr = Binary("+", start, Name(f"{region.name}.nbytes"))
                case Shape(dtype, dims):
                    imports.add("runtime.layout", "Region", "place")
                    spelled = [spell(scope.natural(dim.expr, what)) for dim in dims]
                    shape = f"({', '.join(spelled)}{',' * (len(dims) == 1)})"
                    kind = "Region"
                    value = f"place(base, {at}, {quote(dtype.name)}, {shape})"
                    after = Name(f"{region.name}.end")
                case Bytes(size):
                    imports.add("runtime.layout", "Region", "place")
                    nbytes = spell(scope.natural(size.expr, what))
                    kind = "Region"
                    value = f'place(base, {at}, "u8", ({nbytes},))'
                    after = Name(f"{region.name}.end")
            if region.when is not None:
                condition = scope.tree(region.when.expr, what)
                value = spell(IfElse(condition, Name(value), Name("None")))
                kind = f"{kind} | None"
                present = spell(after)
                body.append(StatementView(region.name, value))
                body.append(
                    StatementView(
                        "end",
                        f"{spell(end)} if {region.name} is None else {present}",
                    )
                )
                after = Name("end")
            else:
                body.append(StatementView(region.name, value))
            views.append(RegionView(region.name, kind, region.doc, tuple(body)))
            end = after
        return tuple(views), spell(end)

    def accessor(self, layout: Layout, call: LayoutCall) -> LayoutAccessorView:
        symbols = self.symbols
        self.modules["arena"].add("layouts", naming.layout_class(layout.name))
        scope = self.arguments_scope("arena")
        exprs = [formula.expr for _, formula in call.arguments]
        return LayoutAccessorView(
            name=layout.name,
            class_name=naming.layout_class(layout.name),
            doc=layout.accessor_doc,
            body=self.locals_for(scope, exprs),
            arguments=", ".join(
                (["config"] if layout_reads_config(symbols, layout) else [])
                + [
                    f"{name}={scope.text(formula.expr, layout.name)}"
                    for name, formula in call.arguments
                ]
            ),
        )

    def pointer(self, buffer: Buffer) -> PointerView | None:
        if not isinstance(buffer.extent, LayoutCall):
            return None
        symbols = self.symbols
        layout = symbols.layouts[buffer.extent.layout]
        class_name = naming.layout_pointer_class(buffer.name)
        self.modules["layouts"].add("runtime.errors", "LayoutError")
        self.modules["arena"].add("layouts", class_name)
        scope = self.pointer_scope()
        tokens = ("limit", self.schema.token_limit.name)
        given = dict(buffer.extent.arguments)
        views = {
            each.name: ParameterView(each.name, PYTHON_TYPES[each.type], each.doc)
            for each in layout.parameters
        }
        asked = [
            each.name
            for each in layout.parameters
            if tokens in symbols.leaves([given[each.name].expr])
        ]
        if asked:
            self.modules["layouts"].add("runtime.numeric", "check_int")
        reads_config = layout_reads_config(symbols, layout)
        bound = ["self.config"] if reads_config else []
        bound += [
            f"{each.name}={scope.text(given[each.name].expr, buffer.name)}"
            for each in layout.parameters
        ]
        return PointerView(
            buffer=buffer.name,
            class_name=class_name,
            layout_class=naming.layout_class(layout.name),
            layout=layout.name,
            parameters=tuple(view for name, view in views.items() if name in asked),
            fixed=tuple(view for name, view in views.items() if name not in asked),
            reads_config=reads_config,
            asked=", ".join(f"{name}={{{name}}}" for name in asked),
            most=", ".join(f"{name}={{self._{name}}}" for name in asked),
            bound=", ".join(bound),
        )

    def pointer_locals(self) -> tuple[StatementView, ...]:
        """What the layout arguments of all pointers read, as statements."""
        scope = self.pointer_scope()
        exprs = [
            formula.expr
            for buffer in self.schema.buffers
            if isinstance(buffer.extent, LayoutCall)
            for _, formula in buffer.extent.arguments
        ]
        return self.locals_for(scope, exprs, limit="self.")

    def pointer_scope(self) -> Scope:
        """The scope of an arena's method that takes no arguments."""
        return self.scope(
            "arena",
            owner="self.",
            field="self.config.",
            pure="self.config.",
            limit="self.",
            lever="self.levers.",
            target="self.target.",
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
