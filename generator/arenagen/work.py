"""Extents worked out step by step, and the lets and calls that they take.

The counterpart of `sizing`, for people: the same scopes and the same evaluator, with
every step kept.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .describe import extent_text
from .evaluate import Scope, Value, evaluate
from .formula import Call, Expr, Name, names, spell
from .model import (
    Bytes,
    Formula,
    Layout,
    LayoutCall,
    Regions,
    Shape,
    SingleExtent,
)
from .record import record, replace
from .sizing import Sizing
from .symbols import extent_formulas, let_order
from .trace import Worked, evaluated, value_text, with_numbers, work


@record
class Step:
    """A let, or a function or layout called with these arguments, worked out.

    extent: of a layout, whose `worked` has no chain.
    """

    name: str
    worked: Worked
    extent: Work | None = None


@record
class Part:
    """A region that is there. placed: how its first byte came about, if by a rule."""

    name: str
    doc: str
    offset: int
    placed: tuple[str, ...]
    extent: Work


@record
class Work:
    """An extent worked out.

    chain: as of `Worked`. dtype, bits of an element and shape where it is one shape.
    steps: what a layout computes for itself; parts: its regions; absent: the names and
    the gates of regions that are not there.
    """

    chain: tuple[str, ...]
    nbytes: int
    dtype: str = ""
    bits: int = 0
    shape: tuple[int, ...] | None = None
    steps: tuple[Step, ...] = ()
    parts: tuple[Part, ...] = ()
    absent: tuple[tuple[str, Worked], ...] = ()


class Worker:
    """Works formulas out; `steps` holds the lets and calls that they took, in order."""

    def __init__(self, sizing: Sizing) -> None:
        self.sizing = sizing
        self.symbols = sizing.symbols
        self.steps: dict[str, Step] = {}

    def formula(self, formula: Formula, scope: Scope | None = None) -> Worked:
        """A formula of the schema, or of a function or layout in its scope."""
        return self._work(formula.expr, scope or self.sizing)

    def extent(self, extent: SingleExtent, scope: Scope) -> Work:
        """An extent, with its regions."""
        match extent:
            case Shape():
                return self._shape(extent, scope)
            case Bytes(value):
                worked = self.formula(value, scope)
                return Work(worked.chain, self.sizing.extent_bytes(extent, scope))
            case LayoutCall(name, arguments):
                for _, formula in arguments:
                    self._follow(formula.expr, scope)
                layout = self.symbols.layouts[name]
                values = self.sizing.layout_arguments(extent, scope)
                given = zip(layout.parameters, values, strict=True)
                shown = ", ".join(f"{each.name}={value_text(v)}" for each, v in given)
                work = self._layout(layout, values)
                called = f"layout {name}({shown})"
                written = extent_text(extent)
                chain = (written,) if called == written else (written, called)
                return replace(work, chain=chain)
            case Regions():
                return self._regions(extent, scope)

    def _shape(self, shape: Shape, scope: Scope) -> Work:
        for dim in shape.dims:
            self._follow(dim.expr, scope)
        exprs = [dim.expr for dim in shape.dims]
        numbers = ", ".join(spell(with_numbers(expr, scope)) for expr in exprs)
        dims = [evaluate(expr, scope) for expr in exprs]
        values = ", ".join(map(value_text, dims))
        bits = shape.dtype.bits
        element = f"{bits // 8} bytes" if bits >= 8 else f"{bits} bits"
        if bits == 8:
            element = "1 byte"
        chain = [extent_text(shape)]
        if numbers not in (values, ", ".join(map(spell, exprs))):
            chain.append(f"[{numbers}]")
        chain.append(f"[{values}] of {element}")
        return Work(
            tuple(chain),
            self.sizing.extent_bytes(shape, scope),
            shape.dtype.name,
            bits,
            tuple(int(dim) for dim in dims if not isinstance(dim, str | tuple)),
        )

    def _layout(self, layout: Layout, values: Sequence[Value]) -> Work:
        scope = self.sizing.inside(layout, values)
        exprs = [each.expr for each in extent_formulas(layout.regions)]
        wanted = {node.name for expr in exprs for node in names(expr)}
        steps = tuple(
            Step(let.name, self.formula(let.value, scope))
            for let in let_order(layout.lets, wanted)
        )
        return replace(self._regions(layout.regions, scope), steps=steps)

    def _regions(self, regions: Regions, scope: Scope) -> Work:
        absent = []
        for region in regions.items:
            if region.when is not None:
                gate = self.formula(region.when, scope)
                if not gate.value:
                    absent.append((region.name, gate))
        return Work(
            (),
            self.sizing.extent_bytes(regions, scope),
            parts=tuple(self._parts(regions, scope)),
            absent=tuple(absent),
        )

    def _parts(self, regions: Regions, scope: Scope) -> Iterator[Part]:
        end = 0
        for region, offset, nbytes in self.sizing.regions(regions, scope):
            placed: tuple[str, ...] = ()
            if region.at is not None:
                placed = self.formula(region.at, scope).chain
            elif end and region.align > 1:
                placed = (f"align({end}, {region.align})",)
            extent = self.extent(region.extent, scope)
            yield Part(region.name, region.doc, offset, placed, extent)
            end = offset + nbytes

    def _work(self, expr: Expr, scope: Scope) -> Worked:
        self._follow(expr, scope)
        return work(expr, scope)

    def _follow(self, expr: Expr, scope: Scope) -> None:
        """Keep the lets and calls that a formula takes, each behind its own."""
        for node in evaluated(expr, scope):
            match node:
                case Name(name) if name in self.symbols.lets:
                    if name not in self.steps:
                        worked = self.formula(self.symbols.lets[name].value)
                        self.steps[name] = Step(name, worked)
                case Call(name, arguments):
                    self._call(name, [evaluate(each, scope) for each in arguments])

    def _call(self, name: str, values: list[Value]) -> None:
        text = f"{name}({', '.join(map(value_text, values))})"
        if text in self.steps:
            return
        if name in self.symbols.functions:
            function = self.symbols.functions[name]
            inside = self.sizing.inside(function, values)
            self.steps[text] = Step(text, self._work(function.value.expr, inside))
        elif name in self.symbols.layouts:
            work = self._layout(self.symbols.layouts[name], values)
            self.steps[text] = Step(text, Worked((), work.nbytes), work)
