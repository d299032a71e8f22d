"""The reference of an arena as Markdown: `arenagen docs`.

Everything that a schema declares, in its order, and nothing that it does not. Docs are
untrusted and go through `markdown`; names are identifiers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from . import reference_tables as tables
from .byte_map import byte_map, bytes_of, overview
from .describe import shape_text
from .formula import spell
from .header import page_header
from .markdown import code, table, text
from .model import (
    Buffer,
    Bytes,
    Extent,
    LayoutCall,
    Regions,
    Schema,
    Shape,
    Uses,
)
from .reads import buffer_reads
from .reference_marks import Lines, anchor, cell, cell_of, link, links
from .symbols import Symbols


def reference(schema: Schema, source: str) -> str:
    """The page of an arena; `source` is the schema's file name."""
    return page_header(source) + "\n".join(_page(schema)) + "\n"


def _page(schema: Schema) -> Lines:
    arena = schema.arena
    yield from ("", f"# {code(arena.class_name)}", "", text(arena.doc), "")
    yield f"Package {code(arena.package)}, label {code(arena.label)}."
    if arena.families is not None:
        yield f"Configs are read by the family table {code(arena.families)}."
    sections = [
        ("Buffers", "buffers", _buffers(schema)),
        ("Limits", "limits", tables.limit_table(schema)),
        ("Model config", "config", tables.field_table(schema)),
        ("Levers", "levers", tables.lever_table(schema)),
        ("Target", "target", tables.target_table(schema)),
        ("Constants", "constants", tables.constant_table(schema)),
        ("Let", "let", tables.let_table(schema)),
        ("Functions", "functions", tables.function_lines(schema)),
        ("Layouts", "layouts", tables.layout_lines(schema)),
        ("Zeroing groups", "groups", tables.group_table(schema)),
        ("Trims", "trims", tables.trim_table(schema)),
    ]
    filled = [(title, key, [*lines]) for title, key, lines in sections]
    yield from ("", "## Contents", "")
    for title, key, lines in filled:
        if lines:
            yield f"- [{title}](#section-{key})"
            if key == "buffers":
                yield from (
                    f"  - {link('buffer', each.name)}" for each in schema.buffers
                )
    for title, key, lines in filled:
        if lines:
            yield from ("", f'## <a id="section-{key}"></a>{title}', "", *lines)


def _buffers(schema: Schema) -> Lines:
    symbols = Symbols(schema)
    rows = [
        (
            link("buffer", each.name),
            overview(each.extent),
            cell_of(each.when),
            cell_of(each.otherwise),
            _yes(each.token_major),
            ", ".join(_clearing(each)),
            _yes(each.checksum),
        )
        for each in schema.buffers
    ]
    yield from table(
        (
            "buffer",
            "extent",
            "exists when",
            "else bytes",
            "token-major",
            "groups",
            "checksum",
        ),
        rows,
    )
    named = [(name, link(kind, name)) for kind, name in _named(schema)]
    for buffer in schema.buffers:
        yield from (
            "",
            f"### {anchor('buffer', buffer.name)}",
            "",
            text(buffer.doc),
            "",
        )
        yield from _facts(schema, buffer)
        read = buffer_reads(symbols, buffer)
        linked = [spelled for name, spelled in named if name in read]
        if linked:
            yield f"- reads {', '.join(linked)}"
        yield from _extent(buffer.extent)


def _facts(schema: Schema, buffer: Buffer) -> Lines:
    match buffer.extent:
        case Shape() as shape:
            yield f"- dtype {code(shape.dtype.name)}, shape {code(shape_text(shape))}"
            yield f"- bytes: {code(spell(bytes_of(shape)))}"
        case Bytes(value):
            if buffer.dtype is not None:
                yield f"- dtype {code(buffer.dtype.name)}"
            yield f"- bytes: {code(spell(value.expr))}"
        case LayoutCall() as call:
            see = link("layout", call.layout)
            yield f"- bytes: {code(spell(bytes_of(call)))}, see {see}"
        case Regions():
            yield "- bytes: those of its regions, laid end to end"
        case Uses():
            yield "- bytes: those of its largest active use"
    if buffer.min_bytes is not None:
        yield f"- at least {code(spell(buffer.min_bytes.expr))} bytes"
    if buffer.when is not None:
        other = "no memory and a NULL pointer"
        if buffer.otherwise is not None:
            other = f"a placeholder of {code(spell(buffer.otherwise.expr))} bytes"
        yield f"- exists when {code(spell(buffer.when.expr))}, else {other}"
    trims = [trim for trim in schema.trims if buffer.name in dict(trim.buffers)]
    if trims:
        yield f"- emptied by {links('trim', (each.name for each in trims))}"
    if buffer.token_major:
        tokens = schema.token_limit.symbol or schema.token_limit.name
        yield (
            f"- token-major: a pass of t tokens touches the bytes at {code(tokens)} = t"
        )
    if buffer.groups:
        yield f"- cleared by {links('group', (name for name, _ in buffer.groups))}"
    for member in buffer.zero_regions:
        yield f"- {code(member.path)} of it cleared by {link('group', member.group)}"
    if buffer.checksum:
        yield "- in the checksum probe"
    if buffer.init is not None:
        yield f"- filled with {code(str(buffer.init))} at construction"
    if buffer.carve:
        yield "- a slab that callers carve"
    yield f"- aligned to {buffer.align} bytes"


def _clearing(buffer: Buffer) -> Iterator[str]:
    """The groups of a buffer, and those of regions of it."""
    for name, _ in buffer.groups:
        yield link("group", name)
    for member in buffer.zero_regions:
        yield f"{cell(member.path)} of it by {link('group', member.group)}"


def _named(schema: Schema) -> Iterator[tuple[str, str]]:
    """Every name that a formula may read, with the kind that its anchor has."""
    sections: tuple[tuple[str, Iterable[str]], ...] = (
        ("limit", (each.name for each in schema.limits)),
        ("field", (each.name for each in schema.config)),
        ("lever", (each.name for each in schema.levers)),
        ("target", (each.name for each in schema.target)),
        ("constant", (each.name for each in schema.constants)),
        ("let", (each.name for each in schema.lets)),
        ("function", (each.name for each in schema.functions)),
        ("layout", (each.name for each in schema.layouts)),
    )
    for kind, names in sections:
        yield from ((kind, name) for name in names)


def _extent(extent: Extent) -> Lines:
    """The byte maps of an extent."""
    if isinstance(extent, Regions):
        yield from ("", *byte_map(extent))
    if not isinstance(extent, Uses):
        return
    rows = [
        (
            code(use.name),
            cell_of(use.when),
            overview(use.extent),
            text(use.doc),
        )
        for use in extent.items
    ]
    yield from ("", *table(("use", "active when", "extent", "doc"), rows))
    for use in extent.items:
        if isinstance(use.extent, Regions):
            yield from ("", f"Regions of the use {code(use.name)}:", "")
            yield from byte_map(use.extent)


def _yes(holds: bool) -> str:
    return "yes" if holds else ""
