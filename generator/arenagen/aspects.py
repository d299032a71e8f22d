"""What can be said of an entry of a schema, aspect by aspect, as texts.

`diff` compares them; a test holds that no field of the model is left out. An aspect
that an entry does not have is not among them.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TypeAlias

from .describe import extent_text, shape_text
from .formula import quote, spell
from .model import (
    ArenaInfo,
    Buffer,
    Constant,
    Extent,
    Field,
    Formula,
    Function,
    Group,
    Layout,
    Let,
    Lever,
    Limit,
    Parameter,
    Regions,
    Schema,
    Shape,
    TargetConstant,
    Trim,
    Uses,
)
from .trace import value_text

Entry: TypeAlias = (
    ArenaInfo
    | TargetConstant
    | Limit
    | Field
    | Lever
    | Constant
    | Let
    | Function
    | Layout
    | Group
    | Buffer
    | Trim
)
Aspects: TypeAlias = Iterator[tuple[str, str | None]]

# Aspects that say how a buffer is used, not which bytes it has.
USAGE = frozenset(
    {"gate", "otherwise", "token_major", "groups", "checksum", "init", "carve", "align"}
)


def sections(schema: Schema) -> dict[str, dict[str, Entry]]:
    """Every entry of a schema by section and name, in its order."""
    tables: dict[str, Sequence[Entry]] = {
        "target": schema.target,
        "limits": schema.limits,
        "config": schema.config,
        "levers": schema.levers,
        "constants": schema.constants,
        "let": schema.lets,
        "functions": schema.functions,
        "layouts": schema.layouts,
        "groups": schema.groups,
        "buffers": schema.buffers,
        "trims": schema.trims,
    }
    named = {
        section: {_name(entry): entry for entry in entries}
        for section, entries in tables.items()
    }
    return {"arena": {"arena": schema.arena}, **named}


def aspects(entry: Entry) -> dict[str, str]:
    """The aspects of an entry, those that it has."""
    return {name: text for name, text in _aspects(entry) if text is not None}


def _name(entry: Entry) -> str:
    return "arena" if isinstance(entry, ArenaInfo) else entry.name


def _aspects(entry: Entry) -> Aspects:
    yield "doc", entry.doc
    match entry:
        case ArenaInfo():
            yield "class", entry.class_name
            yield "package", entry.package
            yield "label", entry.label
            yield "families", entry.families
            yield "log buffers", _list(entry.log_buffers)
            yield "log fields", _list(entry.log_fields)
        case TargetConstant():
            yield "default", str(entry.default)
            yield "minimum", str(entry.minimum)
        case Limit():
            yield "symbol", entry.symbol
            yield "minimum", str(entry.minimum)
            yield "maximum", None if entry.maximum is None else str(entry.maximum)
            yield "default", None if entry.default is None else str(entry.default)
            yield "tokens", _flag(entry.tokens)
        case Field():
            yield "type", entry.type
            yield "default", _formula(entry.default)
            yield "aliases", _list(entry.aliases)
            yield "shard", entry.shard
        case Lever():
            yield from _lever(entry)
        case Constant():
            yield "type", entry.type
            yield "value", value_text(entry.value)
            yield "public", _flag(entry.public)
        case Let():
            yield "formula", spell(entry.value.expr)
        case Function():
            yield from _parameters(entry.parameters)
            yield "formula", spell(entry.value.expr)
        case Layout():
            yield from _layout(entry)
        case Group():
            yield "method", entry.method
            yield "rows_method", entry.rows_method
        case Buffer():
            yield from _buffer(entry)
        case Trim():
            yield "gate", spell(entry.when.expr)
            yield "buffers", _list(name for name, _ in entry.buffers)


def _lever(lever: Lever) -> Aspects:
    yield "variable", lever.variable
    yield "type", lever.type
    yield "default", _valued(lever.default, lever.default_name)
    yield "on_when", _list(map(quote, lever.on_when))
    yield "off_when", _list(map(quote, lever.off_when))
    words = (
        f"{quote(word)}: {_valued(value, constant)}"
        for word, value, constant in lever.words
    )
    yield "words", _list(words)
    yield "clamp", None if lever.clamp is None else _list(map(str, lever.clamp))
    yield "arms", lever.arms


def _valued(value: int | bool | str, constant: str | None) -> str:
    text = value_text(value)
    return text if constant is None else f"{constant} = {text}"


def _buffer(buffer: Buffer) -> Aspects:
    if not isinstance(buffer.extent, Shape):
        yield "dtype", buffer.dtype.name if buffer.dtype is not None else None
    yield from _extent("", buffer.extent)
    yield "gate", _formula(buffer.when)
    yield "otherwise", _formula(buffer.otherwise)
    yield "min_bytes", _formula(buffer.min_bytes)
    yield "token_major", _flag(buffer.token_major)
    yield "groups", _list(name for name, _ in buffer.groups)
    yield "zeroed regions", _list(f"{e.group}: {e.path}" for e in buffer.zero_regions)
    yield "checksum", _flag(buffer.checksum)
    yield "init", None if buffer.init is None else str(buffer.init)
    yield "carve", _flag(buffer.carve)
    yield "align", str(buffer.align)


def _layout(layout: Layout) -> Aspects:
    yield from _parameters(layout.parameters)
    for let in layout.lets:
        yield f"let {let.name}", spell(let.value.expr)
        yield f"let {let.name}, doc", let.doc or None
    yield "let", _list(let.name for let in layout.lets)
    yield from _extent("", layout.regions)
    if layout.accessor is not None:
        yield "accessor", extent_text(layout.accessor)
        yield "accessor, doc", layout.accessor_doc


def _parameters(parameters: Sequence[Parameter]) -> Aspects:
    listed = (f"{each.name}: {each.type}" for each in parameters)
    yield "parameters", _list(listed)
    for each in parameters:
        yield f"parameter {each.name}, doc", each.doc


def _extent(where: str, extent: Extent) -> Aspects:
    """The aspects of an extent; `where` leads to it, and is empty or ends in `, `."""
    match extent:
        case Shape(dtype, _):
            yield f"{where}dtype", dtype.name
            yield f"{where}formula", shape_text(extent)
        case Regions(items):
            yield f"{where}regions", _list(each.name for each in items)
            for region in items:
                inside = f"{where}region {region.name}, "
                yield from _extent(inside, region.extent)
                yield f"{inside}align", str(region.align)
                yield f"{inside}at", _formula(region.at)
                yield f"{inside}gate", _formula(region.when)
                yield f"{inside}doc", region.doc
        case Uses(items):
            yield f"{where}uses", _list(each.name for each in items)
            for use in items:
                inside = f"{where}use {use.name}, "
                yield from _extent(inside, use.extent)
                yield f"{inside}gate", _formula(use.when)
                yield f"{inside}doc", use.doc
        case _:
            yield f"{where}formula", extent_text(extent)


def _formula(formula: Formula | None) -> str | None:
    return None if formula is None else spell(formula.expr)


def _flag(holds: bool) -> str | None:
    return "true" if holds else None


def _list(words: Iterable[str]) -> str | None:
    return ", ".join(words) or None
