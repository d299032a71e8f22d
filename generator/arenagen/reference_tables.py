"""The tables of a reference: all that a schema declares beside its buffers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from .byte_map import byte_map, bytes_of
from .formula import spell
from .markdown import code, table, text
from .members import region_members, whole_members
from .model import Lever, Parameter, Schema
from .reference_marks import Lines, anchor, cell, cell_of, link, links
from .symbols import Symbols
from .trace import value_text


def limit_table(schema: Schema) -> Lines:
    """The limits."""
    rows = [
        (
            anchor("limit", each.name),
            code(each.symbol or ""),
            str(each.minimum),
            "" if each.maximum is None else str(each.maximum),
            "" if each.default is None else str(each.default),
            text(each.doc) + (" Bounds the tokens of a pass." if each.tokens else ""),
        )
        for each in schema.limits
    ]
    header = ("limit", "symbol", "minimum", "maximum", "default", "doc")
    yield from table(header, rows, ("minimum", "maximum", "default"))


def field_table(schema: Schema) -> Lines:
    """The fields of the model config."""
    rows = [
        (
            anchor("field", each.name),
            each.type,
            cell_of(each.default),
            ", ".join(map(cell, each.aliases)),
            code(each.shard or ""),
            text(each.doc),
        )
        for each in schema.config
    ]
    if rows:
        yield from table(("field", "type", "default", "aliases", "shard", "doc"), rows)


def lever_table(schema: Schema) -> Lines:
    """The levers, and how each is read."""
    rows = [
        (
            anchor("lever", each.name),
            cell(each.variable),
            each.type,
            "; ".join(_reading(each)),
            cell(each.default_name or value_text(each.default)),
            text(each.doc),
        )
        for each in schema.levers
    ]
    if rows:
        yield from table(
            ("lever", "variable", "type", "is read", "default", "doc"), rows
        )


def _reading(lever: Lever) -> Iterator[str]:
    """How the text of a lever's variable becomes its value."""
    if lever.on_when:
        yield f"on when {', '.join(map(cell, lever.on_when))}"
    if lever.off_when:
        yield f"off when {', '.join(map(cell, lever.off_when))}"
    for word, value, constant in lever.words:
        shown = constant if constant is not None else value_text(value)
        yield f"{cell(word)} is {cell(shown)}"
    if lever.clamp is not None:
        low, high = lever.clamp
        yield f"a count, clamped to {low} and {high}"
    if lever.arms is not None:
        yield f"arms the {text(lever.arms)} probe"


def target_table(schema: Schema) -> Lines:
    """The constants of the device."""
    rows = [
        (
            anchor("target", each.name),
            str(each.minimum),
            str(each.default),
            text(each.doc),
        )
        for each in schema.target
    ]
    if rows:
        header = ("constant of the device", "minimum", "default", "doc")
        yield from table(header, rows, ("minimum", "default"))


def constant_table(schema: Schema) -> Lines:
    """The constants."""
    rows = [
        (anchor("constant", each.name), cell(value_text(each.value)), text(each.doc))
        for each in schema.constants
    ]
    if rows:
        yield from table(("constant", "value", "doc"), rows)


def let_table(schema: Schema) -> Lines:
    """The named sub-formulas."""
    rows = [
        (anchor("let", each.name), cell_of(each.value), text(each.doc))
        for each in schema.lets
    ]
    if rows:
        yield from table(("name", "formula", "doc"), rows)


def function_lines(schema: Schema) -> Lines:
    """The functions, a heading each."""
    for place, each in enumerate(schema.functions):
        called = f"{each.name}({', '.join(p.name for p in each.parameters)})"
        yield from [""] * (place > 0)
        yield from (f"### {anchor('function', each.name)}", "", text(each.doc), "")
        yield f"- {code(called)} = {code(spell(each.value.expr))}"
        yield from _parameters(each.parameters)


def layout_lines(schema: Schema) -> Lines:
    """The layouts, a heading and a byte map each."""
    for place, each in enumerate(schema.layouts):
        yield from [""] * (place > 0)
        yield from (f"### {anchor('layout', each.name)}", "", text(each.doc))
        yield from _parameters(each.parameters)
        if each.lets:
            rows = [
                (code(let.name), cell_of(let.value), text(let.doc)) for let in each.lets
            ]
            yield from ("", *table(("name", "formula", "doc"), rows))
        yield from ("", *byte_map(each.regions))
        if each.accessor is not None:
            name, called = f"arena.{each.name}", spell(bytes_of(each.accessor))
            told = text(each.accessor_doc)
            yield from ("", f"{code(name)} is {code(called)}: {told}")


def _parameters(parameters: Sequence[Parameter]) -> Lines:
    if parameters:
        rows = [(code(each.name), each.type, text(each.doc)) for each in parameters]
        yield from ("", *table(("parameter", "type", "doc"), rows))


def group_table(schema: Schema) -> Lines:
    """The zeroing groups and their members."""
    symbols = Symbols(schema)
    rows = [
        (
            anchor("group", group.name),
            code(group.method),
            code(group.rows_method or ""),
            _group_members(schema, symbols, group.name),
            text(group.doc),
        )
        for group in schema.groups
    ]
    if rows:
        header = ("group", "method", "of a pass", "buffers", "doc")
        yield from table(header, rows)


def _group_members(schema: Schema, symbols: Symbols, group: str) -> str:
    regions = region_members(schema, symbols, group)
    whole = [link("buffer", each.name) for each in whole_members(schema, group)]
    parts = [f"{link('buffer', each.buffer.name)}.{each.path}" for each in regions]
    return ", ".join([*whole, *parts])


def trim_table(schema: Schema) -> Lines:
    """The trims and what they empty."""
    rows = [
        (
            anchor("trim", trim.name),
            cell_of(trim.when),
            links("buffer", (name for name, _ in trim.buffers)),
            text(trim.doc),
        )
        for trim in schema.trims
    ]
    if rows:
        yield from table(("trim", "when", "empties", "doc"), rows)
