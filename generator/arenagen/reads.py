"""What each buffer reads, through lets, functions and layouts: for explain and diff."""

from __future__ import annotations

from collections.abc import Iterable

from .formula import Expr, calls, names
from .model import Buffer, Schema
from .symbols import Symbols, buffer_formulas, extent_formulas, layout_calls


def buffer_reads(symbols: Symbols, buffer: Buffer) -> frozenset[str]:
    """Every name of the schema that a buffer's bytes depend on.

    Limits go by their own name, never by their symbol. The conditions of the trims
    that may empty the buffer count too.
    """
    exprs = [each.expr for each in buffer_formulas(buffer)]
    exprs += [
        trim.when.expr
        for trim in symbols.schema.trims
        if buffer.name in {name for name, _ in trim.buffers}
    ]
    found: set[str] = set()
    for call in layout_calls(buffer.extent):
        _follow_layout(symbols, call.layout, found)
    _follow(symbols, exprs, found)
    return frozenset(found)


def readers(schema: Schema) -> dict[str, tuple[str, ...]]:
    """The buffers that read each name, in schema order; no entry where none does."""
    symbols = Symbols(schema)
    table: dict[str, list[str]] = {}
    for buffer in schema.buffers:
        for name in buffer_reads(symbols, buffer):
            table.setdefault(name, []).append(buffer.name)
    return {name: tuple(buffers) for name, buffers in table.items()}


def _follow(symbols: Symbols, exprs: Iterable[Expr], found: set[str]) -> None:
    for expr in exprs:
        for node in names(expr):
            name = symbols.canonical(node.name)
            # What a function or a layout calls its own is no name of the schema.
            if name in found or name not in symbols.kinds:
                continue
            found.add(name)
            if name in symbols.lets:
                _follow(symbols, [symbols.lets[name].value.expr], found)
        for call in calls(expr):
            if call.name in symbols.layouts:
                _follow_layout(symbols, call.name, found)
            elif call.name in symbols.functions and call.name not in found:
                found.add(call.name)
                _follow(symbols, [symbols.functions[call.name].value.expr], found)


def _follow_layout(symbols: Symbols, name: str, found: set[str]) -> None:
    if name in found:
        return
    found.add(name)
    layout = symbols.layouts[name]
    exprs = [let.value.expr for let in layout.lets]
    exprs += [each.expr for each in extent_formulas(layout.regions)]
    _follow(symbols, exprs, found)
    for call in layout_calls(layout.regions):
        _follow_layout(symbols, call.layout, found)
