"""Sizes at many values of one limit at once: every formula is walked a single time.

Over lists of Python integers, which are exact whatever their size and need no numpy.
What has no value at a point is None there, and so is all that reads it; a gate that is
false keeps the point from it. `Sizing` says why something has none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import prod
from typing import Any, TypeAlias

from .evaluate import MAX_BITS, EvaluationError, built_in, compare
from .formula import (
    Binary,
    Bool,
    Call,
    Compare,
    Expr,
    IfElse,
    Int,
    Logic,
    Name,
    Str,
    Unary,
)
from .model import (
    Buffer,
    Bytes,
    Extent,
    Formula,
    Layout,
    LayoutCall,
    Regions,
    Shape,
    SingleExtent,
    Uses,
)
from .sizing import MAX_SIZE, BufferSize, Sizing, lets_read
from .symbols import extent_formulas, let_order

# A value at each point, None where there is none; Any, as a formula has been typed.
Each: TypeAlias = list[Any]
Locals: TypeAlias = Mapping[str, Each]


class Series:
    """What `Sizing` is for one value of a limit, for all of `values` at once."""

    def __init__(self, sizing: Sizing, limit: str, values: Sequence[int]) -> None:
        """`sizing` has any value of the limit; only what is fixed is asked of it."""
        self._sizing = sizing
        self.points = len(values)
        self._names: dict[str, Each] = {limit: list(values)}
        self._leaf = ("limit", limit)

    def missing(self, gates: Iterable[Each]) -> list[bool]:
        """Where a let or one of the gates has no value, so that there are no sizes."""
        needed = [*map(self._name, self._sizing.known.lets), *gates]
        return [each is None for each in _only_with([True] * self.points, needed)]

    def holds(self, condition: Formula) -> Each:
        """Whether a gate, or the condition of a trim, is true."""
        return self._each(condition.expr, {})

    def nbytes(self, buffer: Buffer) -> Each:
        """The bytes of a buffer, whether or not a trim empties it."""
        return [None if size is None else size[0] for size in self._sizes(buffer)]

    def sizes(self, buffer: Buffer, trimmed: Sequence[bool]) -> list[BufferSize | None]:
        """The sizes of a buffer, given where a trim empties it."""
        gate, text = self._sizing.known.texts(buffer)
        found: list[BufferSize | None] = []
        shapes = self._shapes(buffer)
        dtype = buffer.dtype.name if buffer.dtype else ""
        for point, (size, empty) in enumerate(
            zip(self._sizes(buffer), trimmed, strict=True)
        ):
            if size is None:
                found.append(None)
                continue
            nbytes, active, place = size
            use, kind, dims = shapes[place] if active else ("", dtype, None)
            found.append(
                BufferSize(
                    name=buffer.name,
                    nbytes=0 if empty else nbytes,
                    trimmed=nbytes if empty else 0,
                    dtype=kind,
                    shape=None if dims is None else tuple(dim[point] for dim in dims),
                    gate=gate,
                    active=active and not empty,
                    use=use,
                    extent=text,
                )
            )
        return found

    def _sizes(self, buffer: Buffer) -> list[tuple[int, bool, int] | None]:
        """At each point: bytes, whether the gate is true, and the place of the use."""
        active = self._gate(buffer.when, {})
        places, opened = self._winner(buffer)
        if buffer.min_bytes is not None:
            floor = self._natural(buffer.min_bytes.expr, {})
            opened = [
                None if a is None or b is None else max(a, b)
                for a, b in zip(opened, floor, strict=True)
            ]
        closed = [0] * self.points
        if buffer.otherwise is not None:
            closed = self._each(buffer.otherwise.expr, {})
        found: list[tuple[int, bool, int] | None] = []
        for gate, large, small, place in zip(
            active, opened, closed, places, strict=True
        ):
            nbytes = large if gate else small
            exists = gate is not None and nbytes is not None
            if exists and 0 <= nbytes <= MAX_SIZE:
                found.append((nbytes, gate, place))
            else:
                found.append(None)
        return found

    def _winner(self, buffer: Buffer) -> tuple[list[int], Each]:
        """The place of the use that sets the size, -1 without one, and its bytes."""
        extent = buffer.extent
        if not isinstance(extent, Uses):
            return [-1] * self.points, self._extent(extent, {})
        places = [-1] * self.points
        best: Each = [0] * self.points
        for place, use in enumerate(extent.items):
            active = self._gate(use.when, {})
            sizes = self._extent(use.extent, {})
            for point, (gate, nbytes) in enumerate(zip(active, sizes, strict=True)):
                if gate is None or (gate and nbytes is None):
                    best[point] = None
                elif not gate or best[point] is None:
                    continue
                elif places[point] < 0 or nbytes > best[point]:
                    best[point], places[point] = nbytes, place
        return places, best

    def _shapes(self, buffer: Buffer) -> dict[int, tuple[str, str, list[Each] | None]]:
        """By the place of a use: its name, the element type, and the dimensions."""
        kind = buffer.dtype.name if buffer.dtype else ""

        def shape(name: str, extent: Extent) -> tuple[str, str, list[Each] | None]:
            if not isinstance(extent, Shape):
                return name, kind, None
            dims = [self._each(dim.expr, {}) for dim in extent.dims]
            return name, extent.dtype.name, dims

        found = {-1: shape("", buffer.extent)}
        if isinstance(buffer.extent, Uses):
            for place, use in enumerate(buffer.extent.items):
                found[place] = shape(use.name, use.extent)
        return found

    def _extent(self, extent: SingleExtent, local: Locals) -> Each:
        """The bytes of an extent."""
        match extent:
            case Shape(dtype, dims):
                counts = [self._natural(dim.expr, local) for dim in dims]
                return [
                    None if None in point else dtype.nbytes(prod(point))
                    for point in zip(*counts, strict=True)
                ]
            case Bytes(value):
                return self._natural(value.expr, local)
            case LayoutCall(name):
                layout = self._sizing.symbols.layouts[name]
                given = dict(extent.arguments)
                arguments = [
                    self._each(given[parameter.name].expr, local)
                    for parameter in layout.parameters
                ]
                return self._layout(layout, arguments)
            case Regions():
                return self._regions(extent, local)

    def _regions(self, regions: Regions, local: Locals) -> Each:
        """Where the last of the regions that are there ends."""
        ends: Each = [0] * self.points
        for region in regions.items:
            there = self._gate(region.when, local)
            sizes = self._extent(region.extent, local)
            starts: Each = [
                None if end is None else -(-end // region.align) * region.align
                for end in ends
            ]
            if region.at is not None:
                fixed = self._natural(region.at.expr, local)
                starts = [
                    None if a is None or end is None or a < end else a
                    for a, end in zip(fixed, ends, strict=True)
                ]
            for point, gate in enumerate(there):
                if gate is None:
                    ends[point] = None
                elif gate:
                    start, nbytes = starts[point], sizes[point]
                    missing = start is None or nbytes is None
                    ends[point] = None if missing else start + nbytes
        return ends

    def _layout(self, layout: Layout, arguments: Sequence[Each]) -> Each:
        """The bytes of a layout; an integer that is given to it is a size."""
        local: dict[str, Each] = {}
        for parameter, given in zip(layout.parameters, arguments, strict=True):
            counts = parameter.type == "int"
            local[parameter.name] = _naturals(given) if counts else given
        read: dict[str, Expr] = {each.name: each.value.expr for each in layout.lets}
        exprs = [each.expr for each in extent_formulas(layout.regions)]
        for let in let_order(layout.lets, read):
            local[let.name] = self._each(let.value.expr, local)
        needed = [local[name] for name in lets_read(exprs, read)]
        return _only_with(
            self._regions(layout.regions, local),
            [*(local[each.name] for each in layout.parameters), *needed],
        )

    def _gate(self, condition: Formula | None, local: Locals) -> Each:
        if condition is None:
            return [True] * self.points
        return self._each(condition.expr, local)

    def _natural(self, expr: Expr, local: Locals) -> Each:
        return _naturals(self._each(expr, local))

    def _name(self, name: str) -> Each:
        name = self._sizing.symbols.canonical(name)
        if name not in self._names:
            symbols = self._sizing.symbols
            if self._leaf in symbols.leaves([Name(name)]):
                self._names[name] = self._each(symbols.lets[name].value.expr, {})
            else:
                self._names[name] = [self._fixed(name)] * self.points
        return self._names[name]

    def _fixed(self, name: str) -> Any:
        try:
            return self._sizing.value(name)
        except EvaluationError:
            return None

    def _each(self, expr: Expr, local: Locals) -> Each:
        """The value of a formula; `local` holds parameters and the lets of a layout."""
        match expr:
            case Int(value) | Bool(value) | Str(value):
                return [value] * self.points
            case Name(name):
                return local[name] if name in local else self._name(name)
            case Unary("-", operand):
                values = self._each(operand, local)
                return [None if a is None else -a for a in values]
            case Unary(_, operand):
                values = self._each(operand, local)
                return [None if a is None else not a for a in values]
            case Binary(op, left, right):
                return _arithmetic(
                    op, self._each(left, local), self._each(right, local)
                )
            case Compare(op, left, right):
                pairs = zip(
                    self._each(left, local), self._each(right, local), strict=True
                )
                return [
                    None if a is None or b is None else compare(op, a, b)
                    for a, b in pairs
                ]
            case Logic(op, items):
                found = self._each(items[0], local)
                for item in items[1:]:
                    # What decides, or has no value, is not looked behind.
                    pairs = zip(found, self._each(item, local), strict=True)
                    found = [b if a is (op == "and") else a for a, b in pairs]
                return found
            case IfElse(condition, then, other):
                return [
                    None if gate is None else a if gate else b
                    for gate, a, b in zip(
                        self._each(condition, local),
                        self._each(then, local),
                        self._each(other, local),
                        strict=True,
                    )
                ]
            case Call(name, arguments):
                return self._call(expr, [self._each(each, local) for each in arguments])

    def _call(self, call: Call, arguments: list[Each]) -> Each:
        symbols = self._sizing.symbols
        if call.name in symbols.layouts:
            return self._layout(symbols.layouts[call.name], arguments)
        if call.name in symbols.functions:
            function = symbols.functions[call.name]
            names = (each.name for each in function.parameters)
            local = dict(zip(names, arguments, strict=True))
            return _only_with(self._each(function.value.expr, local), arguments)
        points = zip(*arguments, strict=True)
        match call.name:
            case "max":
                return [None if None in point else max(point) for point in points]
            case "min":
                return [None if None in point else min(point) for point in points]
        return [None if None in point else _built_in(call, point) for point in points]


def _built_in(call: Call, point: tuple[Any, ...]) -> Any:
    try:
        return built_in(call, list(point))
    except EvaluationError:
        return None


def _arithmetic(op: str, left: Each, right: Each) -> Each:
    pairs = zip(left, right, strict=True)
    match op:
        case "+":
            return [None if a is None or b is None else a + b for a, b in pairs]
        case "-":
            return [None if a is None or b is None else a - b for a, b in pairs]
        case "*":
            products = [None if a is None or b is None else a * b for a, b in pairs]
            return [
                None if a is not None and a.bit_length() > MAX_BITS else a
                for a in products
            ]
        case "//":
            return [None if a is None or not b else a // b for a, b in pairs]
    return [None if a is None or not b else a % b for a, b in pairs]


def _naturals(values: Each) -> Each:
    return [None if a is None or a < 0 else a for a in values]


def _only_with(values: Each, needed: Iterable[Each]) -> Each:
    """The values where everything that is needed for them has one."""
    for each in needed:
        values = [None if b is None else a for a, b in zip(values, each, strict=True)]
    return values
