"""Extents, gates and shapes in words: for docstrings, docs and tables."""

from __future__ import annotations

from collections.abc import Iterable

from . import naming
from .formula import Binary, Expr, spell
from .model import (
    Buffer,
    Bytes,
    Extent,
    LayoutCall,
    Region,
    Regions,
    Shape,
    Use,
    Uses,
)


def shape_text(shape: Shape) -> str:
    """`[M, hidden_size]`."""
    return "[" + ", ".join(spell(dim.expr) for dim in shape.dims) + "]"


def extent_text(extent: Extent) -> str:
    """What sets a size, on one line."""
    match extent:
        case Shape(dtype, _):
            return f"{dtype.name} {shape_text(extent)}"
        case Bytes(value):
            return f"{spell(value.expr)} bytes"
        case LayoutCall(layout, arguments):
            given = ", ".join(f"{name}={spell(f.expr)}" for name, f in arguments)
            return f"layout {layout}({given})"
        case Regions(items):
            return ", then ".join(_region_text(each) for each in items)
        case Uses(items):
            return "the largest of " + "; ".join(_use_text(each) for each in items)


def _region_text(region: Region) -> str:
    text = f"{region.name} {extent_text(region.extent)}"
    if region.at is not None:
        text += f" at byte {spell(region.at.expr)}"
    elif region.align > 1:
        text += f" aligned to {region.align}"
    if region.when is not None:
        text += f" when {spell(region.when.expr)}"
    return text


def _use_text(use: Use) -> str:
    text = f"{use.name} {extent_text(use.extent)}"
    return text if use.when is None else f"{text} when {spell(use.when.expr)}"


def buffer_details(
    buffer: Buffer,
    methods: Iterable[str],
    region_methods: Iterable[tuple[str, str]] = (),
) -> list[str]:
    """The facts of a buffer, a sentence each.

    methods: those that clear it; region_methods: those that clear a region of it.
    """
    lines = [_sentence(extent_text(buffer.extent))]
    if buffer.min_bytes is not None:
        lines.append(f"At least {_bytes_text(buffer.min_bytes.expr)}.")
    if buffer.when is not None:
        other = "NULL"
        if buffer.otherwise is not None:
            other = _bytes_text(buffer.otherwise.expr)
        lines.append(f"Exists when {spell(buffer.when.expr)}, else {other}.")
    if buffer.token_major:
        lines.append("Token-major.")
    if buffer.init is not None:
        lines.append(f"Filled with {buffer.init} at construction.")
    if methods:
        lines.append(f"Cleared by {', '.join(methods)}.")
    for method, path in region_methods:
        lines.append(f"Of it, {path} is cleared by {method}.")
    if buffer.carve:
        lines.append(f"Carved by {naming.carve_method(buffer.name)}.")
    if buffer.checksum:
        lines.append("In the checksum probe.")
    return lines


def _bytes_text(expr: Expr) -> str:
    text = spell(expr)
    return f"({text}) bytes" if isinstance(expr, Binary) else f"{text} bytes"


def _sentence(text: str) -> str:
    first = text[:1].upper() if text.startswith("the ") else text[:1]
    return f"{first}{text[1:]}."
