"""The reference of an arena as Markdown: `arenagen docs`.

Everything that a schema declares, in its order, and nothing that it does not. Docs are
untrusted and go through `markdown`; names are identifiers.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from .describe import extent_text, shape_text
from .formula import Binary, Call, Expr, Int, Name, spell
from .header import page_header
from .markdown import code, table, text
from .members import region_members, whole_members
from .model import (
    Buffer,
    Bytes,
    Extent,
    Formula,
    LayoutCall,
    Lever,
    Parameter,
    Regions,
    Schema,
    Shape,
    SingleExtent,
    Uses,
)
from .reads import buffer_reads
from .symbols import Symbols
from .trace import value_text

Lines = Iterator[str]


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
        ("Limits", "limits", _limits(schema)),
        ("Model config", "config", _fields(schema)),
        ("Levers", "levers", _levers(schema)),
        ("Target", "target", _target(schema)),
        ("Constants", "constants", _constants(schema)),
        ("Let", "let", _lets(schema)),
        ("Functions", "functions", _functions(schema)),
        ("Layouts", "layouts", _layouts(schema)),
        ("Zeroing groups", "groups", _groups(schema)),
        ("Trims", "trims", _trims(schema)),
    ]
    filled = [(title, key, [*lines]) for title, key, lines in sections]
    yield from ("", "## Contents", "")
    for title, key, lines in filled:
        if lines:
            yield f"- [{title}](#section-{key})"
            if key == "buffers":
                yield from (
                    f"  - {_link('buffer', each.name)}" for each in schema.buffers
                )
    for title, key, lines in filled:
        if lines:
            yield from ("", f'## <a id="section-{key}"></a>{title}', "", *lines)


def _buffers(schema: Schema) -> Lines:
    symbols = Symbols(schema)
    rows = [
        (
            _link("buffer", each.name),
            _overview(each.extent),
            _code_of(each.when),
            _code_of(each.otherwise),
            _yes(each.token_major),
            ", ".join(_link("group", name) for name, _ in each.groups),
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
    for buffer in schema.buffers:
        yield from (
            "",
            f"### {_anchor('buffer', buffer.name)}",
            "",
            text(buffer.doc),
            "",
        )
        yield from _facts(schema, symbols, buffer)
        yield from _extent(buffer.extent)


def _overview(extent: Extent) -> str:
    match extent:
        case Uses(items):
            return "the largest of " + ", ".join(code(each.name) for each in items)
        case Regions(items):
            return "regions " + ", ".join(code(each.name) for each in items)
        case LayoutCall(layout, _):
            return f"{_code(extent_text(extent))}, see {_link('layout', layout)}"
    return _code(extent_text(extent))


def _facts(schema: Schema, symbols: Symbols, buffer: Buffer) -> Lines:
    match buffer.extent:
        case Shape() as shape:
            yield f"- dtype {code(shape.dtype.name)}, shape {code(shape_text(shape))}"
            yield f"- bytes: {code(spell(_bytes(shape)))}"
        case Bytes(value):
            if buffer.dtype is not None:
                yield f"- dtype {code(buffer.dtype.name)}"
            yield f"- bytes: {code(spell(value.expr))}"
        case LayoutCall() as call:
            see = _link("layout", call.layout)
            yield f"- bytes: {code(spell(_bytes(call)))}, see {see}"
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
        yield f"- emptied by {_links('trim', (each.name for each in trims))}"
    if buffer.token_major:
        tokens = schema.token_limit.symbol or schema.token_limit.name
        yield (
            f"- token-major: a pass of t tokens touches the bytes at {code(tokens)} = t"
        )
    if buffer.groups:
        yield f"- cleared by {_links('group', (name for name, _ in buffer.groups))}"
    for member in buffer.zero_regions:
        yield f"- {code(member.path)} of it cleared by {_link('group', member.group)}"
    if buffer.checksum:
        yield "- in the checksum probe"
    if buffer.init is not None:
        yield f"- filled with {code(str(buffer.init))} at construction"
    if buffer.carve:
        yield "- a slab that callers carve"
    yield f"- aligned to {buffer.align} bytes"
    read = buffer_reads(symbols, buffer)
    linked = [_link(kind, name) for kind, name in _named(schema) if name in read]
    if linked:
        yield f"- reads {', '.join(linked)}"


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
        yield from ("", *_map(extent))
    if not isinstance(extent, Uses):
        return
    rows = [
        (
            code(use.name),
            _code_of(use.when),
            _overview(use.extent),
            text(use.doc),
        )
        for use in extent.items
    ]
    yield from ("", *table(("use", "active when", "extent", "doc"), rows))
    for use in extent.items:
        if isinstance(use.extent, Regions):
            yield from ("", f"Regions of the use {code(use.name)}:", "")
            yield from _map(use.extent)


def _map(regions: Regions) -> Lines:
    """The byte map of regions: where each begins, and what it holds."""
    rows = []
    gated = False
    for place, region in enumerate(regions.items):
        before = regions.items[place - 1] if place else None
        if region.at is not None:
            begins = _code(spell(region.at.expr))
        elif before is None:
            begins = code("0")
        elif gated:
            # What is absent has no first byte to count from.
            begins = f"behind {code(before.name)}"
        else:
            end: Expr = Binary("+", Name(before.name), _bytes(before.extent))
            if region.align > 1:
                end = Call("align", (end, Int(region.align)))
            begins = _code(spell(end))
        gated = gated or region.when is not None
        rows.append(
            (
                code(region.name),
                begins,
                str(region.align),
                _dtype(region.extent),
                _size(region.extent),
                _code_of(region.when),
                text(region.doc),
            )
        )
    header = ("region", "first byte", "align", "dtype", "shape", "exists when", "doc")
    yield from table(header, rows, ("align",))
    if len(rows) > 1:
        yield from ("", "The name of a region stands for its first byte.")


def _dtype(extent: SingleExtent) -> str:
    return code(extent.dtype.name) if isinstance(extent, Shape) else ""


def _size(extent: SingleExtent) -> str:
    if isinstance(extent, Shape):
        return _code(shape_text(extent))
    return _overview(extent)


def _bytes(extent: SingleExtent) -> Expr:
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
            return Binary("+", Name(last.name), _bytes(last.extent))


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


def _limits(schema: Schema) -> Lines:
    rows = [
        (
            _anchor("limit", each.name),
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


def _fields(schema: Schema) -> Lines:
    rows = [
        (
            _anchor("field", each.name),
            each.type,
            _code_of(each.default),
            ", ".join(map(_code, each.aliases)),
            text(each.doc),
        )
        for each in schema.config
    ]
    if rows:
        yield from table(("field", "type", "default", "aliases", "doc"), rows)


def _levers(schema: Schema) -> Lines:
    rows = [
        (
            _anchor("lever", each.name),
            _code(each.variable),
            each.type,
            "; ".join(_reading(each)),
            _code(each.default_name or value_text(each.default)),
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
        yield f"on when {', '.join(map(_code, lever.on_when))}"
    if lever.off_when:
        yield f"off when {', '.join(map(_code, lever.off_when))}"
    for word, value, constant in lever.words:
        shown = constant if constant is not None else value_text(value)
        yield f"{_code(word)} is {_code(shown)}"
    if lever.clamp is not None:
        low, high = lever.clamp
        yield f"a count, clamped to {low} and {high}"
    if lever.arms is not None:
        yield f"arms the {text(lever.arms)} probe"


def _target(schema: Schema) -> Lines:
    rows = [
        (
            _anchor("target", each.name),
            str(each.minimum),
            str(each.default),
            text(each.doc),
        )
        for each in schema.target
    ]
    if rows:
        header = ("constant of the device", "minimum", "default", "doc")
        yield from table(header, rows, ("minimum", "default"))


def _constants(schema: Schema) -> Lines:
    rows = [
        (_anchor("constant", each.name), _code(value_text(each.value)), text(each.doc))
        for each in schema.constants
    ]
    if rows:
        yield from table(("constant", "value", "doc"), rows)


def _lets(schema: Schema) -> Lines:
    rows = [
        (_anchor("let", each.name), _code_of(each.value), text(each.doc))
        for each in schema.lets
    ]
    if rows:
        yield from table(("name", "formula", "doc"), rows)


def _functions(schema: Schema) -> Lines:
    for place, each in enumerate(schema.functions):
        called = f"{each.name}({', '.join(p.name for p in each.parameters)})"
        yield from [""] * (place > 0)
        yield from (f"### {_anchor('function', each.name)}", "", text(each.doc), "")
        yield f"- {code(called)} = {code(spell(each.value.expr))}"
        yield from _parameters(each.parameters)


def _layouts(schema: Schema) -> Lines:
    for place, each in enumerate(schema.layouts):
        yield from [""] * (place > 0)
        yield from (f"### {_anchor('layout', each.name)}", "", text(each.doc))
        yield from _parameters(each.parameters)
        if each.lets:
            rows = [
                (code(let.name), _code_of(let.value), text(let.doc))
                for let in each.lets
            ]
            yield from ("", *table(("name", "formula", "doc"), rows))
        yield from ("", *_map(each.regions))
        if each.accessor is not None:
            called = code(spell(_bytes(each.accessor)))
            yield from ("", f"The arena has {called}: {text(each.accessor_doc)}")


def _parameters(parameters: Sequence[Parameter]) -> Lines:
    if parameters:
        rows = [(code(each.name), each.type, text(each.doc)) for each in parameters]
        yield from ("", *table(("parameter", "type", "doc"), rows))


def _group_members(schema: Schema, group: str) -> str:
    regions = region_members(schema, Symbols(schema), group)
    whole = [_link("buffer", each.name) for each in whole_members(schema, group)]
    parts = [f"{_link('buffer', each.buffer.name)}.{each.path}" for each in regions]
    return ", ".join([*whole, *parts])


def _groups(schema: Schema) -> Lines:
    rows = [
        (
            _anchor("group", group.name),
            code(group.method),
            code(group.rows_method or ""),
            _group_members(schema, group.name),
            text(group.doc),
        )
        for group in schema.groups
    ]
    if rows:
        header = ("group", "method", "of a pass", "buffers", "doc")
        yield from table(header, rows)


def _trims(schema: Schema) -> Lines:
    rows = [
        (
            _anchor("trim", trim.name),
            _code_of(trim.when),
            _links("buffer", (name for name, _ in trim.buffers)),
            text(trim.doc),
        )
        for trim in schema.trims
    ]
    if rows:
        yield from table(("trim", "when", "empties", "doc"), rows)


def _anchor(kind: str, name: str) -> str:
    """A name that links can lead to; GitHub's own anchors exist for headings alone."""
    return f'<a id="{kind}-{name}"></a>{code(name)}'


def _link(kind: str, name: str) -> str:
    return f"[{code(name)}](#{kind}-{name})"


def _links(kind: str, names: Iterable[str]) -> str:
    return ", ".join(_link(kind, name) for name in names)


def _code(words: str) -> str:
    return code(words, in_cell=True)


def _code_of(formula: Formula | None) -> str:
    return "" if formula is None else _code(spell(formula.expr))


def _yes(holds: bool) -> str:
    return "yes" if holds else ""
