"""From the facts of configs to what the page says of them."""

from __future__ import annotations

from ..describe import extent_text
from ..formula import spell
from ..load import DEFAULT_ALIGN
from ..model import Buffer, Schema, Uses
from ..report import human
from ..sizing import BufferSize
from .facts import ConfigFacts, largest_name
from .growth import curve_view
from .space import bar_views, buffer_keys, clearing_view, map_view
from .switches import gate_view, lever_views, trim_view
from .view import BufferRow, ConfigView, Fact, Key, Page, Setting, Settings, UseRow
from .words import counted, exact, share_of, value_text


def page_view(
    schema: Schema, found: list[ConfigFacts], overrides: tuple[str, ...]
) -> Page:
    """The page of one or several configs."""
    title = f"{schema.arena.label}: {', '.join(each.name for each in found)}"
    return Page(
        title=title,
        package=schema.arena.package,
        doc=schema.arena.doc,
        overrides=", ".join(overrides),
        several=len(found) > 1,
        configs=tuple(
            _config(schema, f"config-{number}", facts)
            for number, facts in enumerate(found, start=1)
        ),
    )


def _config(schema: Schema, anchor: str, facts: ConfigFacts) -> ConfigView:
    size = facts.size
    keys = buffer_keys(schema)
    bars, rest = bar_views(facts, keys)
    limit = schema.token_limit
    tokens = exact(size.inputs.limits[limit.name])
    return ConfigView(
        id=anchor,
        name=facts.name,
        human=human(size.total_bytes),
        exact=exact(size.total_bytes),
        tokens=f"{limit.symbol or limit.name} = {tokens}",
        live=_live(facts),
        largest=largest_name(size) or "none",
        trimmed=human(size.trimmed),
        facts=_headline(facts),
        settings=_settings(schema, facts),
        fields=_fields(schema, facts),
        empty_fields=_empty_fields(schema, facts),
        keys=tuple(dict.fromkeys(keys.values())),
        bars=bars,
        rest=rest,
        map=map_view(facts, keys),
        clearings=tuple(clearing_view(each, facts) for each in facts.cleared),
        curve=curve_view(schema, facts),
        levers=lever_views(facts),
        gates=tuple(map(gate_view, facts.gates)),
        trims=tuple(map(trim_view, facts.trims)),
        buffers=tuple(
            _row(place, buffer, each, facts, keys[buffer.name])
            for place, (buffer, each) in enumerate(
                zip(schema.buffers, size.buffers, strict=True)
            )
        ),
    )


def _headline(facts: ConfigFacts) -> tuple[Fact, ...]:
    size = facts.size
    name = largest_name(size)
    largest = next((each.nbytes for each in size.buffers if each.name == name), 0)
    of_total = f"{human(largest)}, {share_of(largest, size.total_bytes)} of the total"
    trimmed = [each for each in size.buffers if each.trimmed]
    padding = facts.slab_bytes - size.total_bytes
    return (
        Fact("Live buffers", _live(facts), "with memory"),
        Fact("Largest", name or "none", of_total),
        Fact(
            "Trimmed",
            human(size.trimmed),
            (
                f"{exact(size.trimmed)} bytes, {counted(len(trimmed), 'buffer')}"
                if trimmed
                else "no buffer loses memory to a trim"
            ),
        ),
        Fact(
            "In one slab",
            human(facts.slab_bytes),
            f"{exact(padding)} bytes of padding",
        ),
    )


def _live(facts: ConfigFacts) -> str:
    buffers = facts.size.buffers
    return f"{sum(each.nbytes > 0 for each in buffers)} of {len(buffers)}"


def _settings(schema: Schema, facts: ConfigFacts) -> tuple[Settings, ...]:
    inputs = facts.size.inputs
    kinds = (
        ("Limits", schema.limits, inputs.limits),
        ("Levers", schema.levers, inputs.levers),
        ("Target", schema.target, inputs.target),
    )
    words = {each.lever.name: each.word for each in facts.levers}
    found = []
    for kind, entries, values in kinds:
        items = tuple(
            Setting(
                each.name,
                words.get(each.name) or value_text(values[each.name]),
                values[each.name] == each.default,
                each.doc,
            )
            for each in entries
        )
        if items:
            found.append(Settings(kind, items))
    return tuple(found)


def _fields(schema: Schema, facts: ConfigFacts) -> tuple[Setting, ...]:
    """The config fields that are not empty."""
    values = facts.size.inputs.config
    return tuple(
        Setting(each.name, value_text(values[each.name]), True, each.doc)
        for each in schema.config
        if values[each.name]
    )


def _empty_fields(schema: Schema, facts: ConfigFacts) -> str:
    values = facts.size.inputs.config
    empty = [each.name for each in schema.config if not values[each.name]]
    return f"0, false or empty: {', '.join(empty)}." if empty else ""


def _row(
    place: int, buffer: Buffer, size: BufferSize, facts: ConfigFacts, key: Key
) -> BufferRow:
    uses: tuple[UseRow, ...] = ()
    if isinstance(buffer.extent, Uses):
        uses = tuple(
            UseRow(
                each.name,
                extent_text(each.extent)
                + (f" when {spell(each.when.expr)}" if each.when else ""),
                each.name == size.use and size.nbytes > 0,
            )
            for each in buffer.extent.items
        )
    part = share_of(size.nbytes, facts.size.total_bytes)
    shape = ""
    if size.shape is not None and size.active:
        shape = " \N{MULTIPLICATION SIGN} ".join(map(str, size.shape))
    return BufferRow(
        place=place,
        name=buffer.name,
        doc=buffer.doc,
        number=size.nbytes,
        exact=exact(size.nbytes),
        note=f"{human(size.nbytes)}, {part}" if size.nbytes else "",
        dtype=size.dtype,
        shape=shape,
        state=_state(buffer, size, facts),
        gate=size.gate,
        use=size.use if size.active else "",
        formula="" if uses else size.extent,
        uses=uses,
        facts=_extras(buffer),
        key=key,
        live=size.nbytes > 0,
    )


def _state(buffer: Buffer, size: BufferSize, facts: ConfigFacts) -> str:
    if size.trimmed:
        names = [
            each.name for each in facts.trims if each.on and buffer.name in each.buffers
        ]
        return f"trimmed by {', '.join(names)}: {human(size.trimmed)}"
    if not size.gate:
        return "always"
    return "on" if size.active else "off"


def _extras(buffer: Buffer) -> str:
    """What the formula leaves out: floor, placeholder, alignment and the like."""
    parts = []
    if buffer.min_bytes is not None:
        parts.append(f"at least {spell(buffer.min_bytes.expr)} bytes")
    if buffer.otherwise is not None:
        parts.append(f"while off {spell(buffer.otherwise.expr)} bytes")
    if buffer.token_major:
        parts.append("token-major")
    if buffer.align != DEFAULT_ALIGN:
        parts.append(f"aligned to {buffer.align}")
    return "; ".join(parts)
