"""Byte maps: where each region begins and what it holds, as formulas in Markdown."""

from __future__ import annotations

from .describe import extent_text, shape_text
from .formula import Binary, Call, Expr, Int, Name, spell
from .markdown import code, table, text
from .model import (
    Bytes,
    Extent,
    LayoutCall,
    Regions,
    Shape,
    SingleExtent,
    Uses,
)
from .reference_marks import Lines, cell, cell_of, link


def byte_map(regions: Regions) -> Lines:
    """The byte map of regions: where each begins, and what it holds."""
    rows = []
    gated = False
    for place, region in enumerate(regions.items):
        before = regions.items[place - 1] if place else None
        if region.at is not None:
            begins = cell(spell(region.at.expr))
        elif before is None:
            begins = code("0")
        elif gated:
            # What is absent has no first byte to count from.
            begins = f"behind {code(before.name)}"
        else:
            end: Expr = Binary("+", Name(before.name), bytes_of(before.extent))
            if region.align > 1:
                end = Call("align", (end, Int(region.align)))
            begins = cell(spell(end))
        gated = gated or region.when is not None
        rows.append(
            (
                code(region.name),
                begins,
                str(region.align),
                _dtype(region.extent),
                _size(region.extent),
                cell_of(region.when),
                text(region.doc),
            )
        )
    header = ("region", "first byte", "align", "dtype", "shape", "exists when", "doc")
    yield from table(header, rows, ("align",))
    if len(rows) > 1:
        yield from ("", "The name of a region stands for its first byte.")


def overview(extent: Extent) -> str:
    """An extent in one cell: its shape, or the names of its parts."""
    match extent:
        case Uses(items):
            return "the largest of " + ", ".join(code(each.name) for each in items)
        case Regions(items):
            return "regions " + ", ".join(code(each.name) for each in items)
        case LayoutCall(layout, _):
            return f"{cell(extent_text(extent))}, see {link('layout', layout)}"
    return cell(extent_text(extent))


def bytes_of(extent: SingleExtent) -> Expr:
    """The bytes of an extent as a formula."""
    match extent:
        case Shape(dtype, dims):
            count: Expr = Int(1)
            for dim in dims:
                count = _times(count, dim.expr)
            if dtype.bits % 8:
                return Call("cdiv", (Binary("*", count, Int(dtype.bits)), Int(8)))
            nbytes = dtype.bits // 8
            return _times(count, Int(nbytes))
        case Bytes(value):
            return value.expr
        case LayoutCall(layout, arguments):
            return Call(layout, tuple(value.expr for _, value in arguments))
        case Regions(items):
            last = items[-1]
            return Binary("+", Name(last.name), bytes_of(last.extent))


def _times(count: Expr, expr: Expr) -> Expr:
    """A product without ones and without brackets around a product on its right."""
    match count, expr:
        case Int(1), _:
            return expr
        case _, Int(1):
            return count
        case _, Binary("*", left, right):
            return Binary("*", _times(count, left), right)
    return Binary("*", count, expr)


def _dtype(extent: SingleExtent) -> str:
    return code(extent.dtype.name) if isinstance(extent, Shape) else ""


def _size(extent: SingleExtent) -> str:
    if isinstance(extent, Shape):
        return cell(shape_text(extent))
    return overview(extent)
