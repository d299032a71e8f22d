"""Which bytes depend on what: the accounts of `arenagen sizes --by`.

Takes the model and inputs, sizes the arena under these and under others, and returns
rows of names and numbers.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, TypeAlias

from .evaluate import EvaluationError
from .formula import Expr, spell
from .members import region_members, whole_members
from .model import Buffer, Schema, Uses
from .record import record, replace
from .sizing import (
    MAX_SIZE,
    ArenaSize,
    BufferSize,
    Inputs,
    Sizing,
    SizingError,
    size_arena,
)
from .symbols import Symbols, extent_formulas, layout_calls, layout_formulas
from .zeroing import Pieces, ZeroRange, cleared_pieces, joined

By: TypeAlias = Literal["limit", "gate", "group", "use"]
# Of a table: names, one name, a number, or nothing to say.
Cell: TypeAlias = tuple[str, ...] | str | int | None


@record
class Account:
    """Rows under their columns, and what has to be known to add them up."""

    columns: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    note: str


def account(schema: Schema, inputs: Inputs, by: By) -> Account:
    """The bytes of an arena by one aspect. Raises SizingError as `size_arena` does."""
    size = size_arena(schema, inputs)
    table: dict[By, Callable[[Schema, ArenaSize], Account]] = {
        "limit": by_limit,
        "gate": by_gate,
        "group": by_group,
        "use": by_use,
    }
    return table[by](schema, size)


def by_limit(schema: Schema, size: ArenaSize) -> Account:
    """The bytes by the limits that they are computed from, the most first.

    The limits are those that the formula in use reads: that of the winning use, the
    floor where it sets the size, the placeholder where the gate is false. Beside them,
    the bytes that are left when one limit alone is halved, None where it cannot be.
    """
    buckets: dict[tuple[str, ...], list[str]] = {}
    sizing = Sizing(schema, size.inputs)
    for buffer, each in zip(schema.buffers, size.buffers, strict=True):
        if each.nbytes:
            read = _limits_read(sizing, buffer, each)
            buckets.setdefault(read, []).append(each.name)
    now = _by_name(size)
    halved = {limit.name: _halved(schema, size, limit.name) for limit in schema.limits}
    rows: list[tuple[Cell, ...]] = []
    most = sorted(
        (-sum(now[name] for name in names), limits) for limits, names in buckets.items()
    )
    for nbytes, limits in most:
        names = buckets[limits]
        half = (
            None if sizes is None else sum(sizes[name] for name in names)
            for sizes in halved.values()
        )
        rows.append((limits, -nbytes, *half, tuple(names)))
    columns = ("limits", "bytes", *(f"half {name}" for name in halved), "buffers")
    return Account(columns, tuple(rows), f"{size.total_bytes:,} bytes in all")


def _limits_read(sizing: Sizing, buffer: Buffer, size: BufferSize) -> tuple[str, ...]:
    exprs: list[Expr] = []
    if not size.active:
        if buffer.otherwise is not None:
            exprs.append(buffer.otherwise.expr)
    else:
        _, extent, nbytes = sizing.winner(buffer.extent)
        floor = buffer.min_bytes
        if floor is not None and nbytes < sizing.number(floor):
            exprs.append(floor.expr)
        elif extent is not None:
            exprs += [each.expr for each in extent_formulas(extent)]
            for call in layout_calls(extent):
                layout = sizing.symbols.layouts[call.layout]
                exprs += layout_formulas(layout, sizing.symbols)
    leaves = sizing.symbols.leaves(exprs)
    return tuple(name for name in sizing.symbols.limits if ("limit", name) in leaves)


def _halved(schema: Schema, size: ArenaSize, name: str) -> dict[str, int] | None:
    """The bytes of each buffer with half of a limit; None where there are none."""
    limit = next(each for each in schema.limits if each.name == name)
    value = size.inputs.limits[name]
    half = max(limit.minimum, value // 2)
    if half == value:
        return None
    limits = {**size.inputs.limits, name: half}
    try:
        return _by_name(size_arena(schema, replace(size.inputs, limits=limits)))
    except SizingError:
        # The sizes that were asked for exist; those of half the limit need not.
        return None


def by_gate(schema: Schema, size: ArenaSize) -> Account:
    """The bytes behind each gate as it is, and if it were true or false.

    A gate that many buffers share is one row, and so are the buffers without one. A
    trim is a row too, and takes away what its buffers have.
    """
    sizing = Sizing(schema, size.inputs)
    sizes = {each.name: each for each in size.buffers}
    gates: dict[str, list[Buffer]] = {}
    for buffer in schema.buffers:
        gates.setdefault(sizes[buffer.name].gate, []).append(buffer)
    rows: list[tuple[Cell, ...]] = []
    for gate, buffers in gates.items():
        now = sum(sizes[each.name].nbytes for each in buffers)
        names = tuple(each.name for each in buffers)
        if not gate:
            rows.append(("no gate", None, now, None, None, names))
            continue
        when = buffers[0].when
        holds = when is not None and sizing.holds(when)
        opened = [_if_gate(sizing, each, sizes[each.name], True) for each in buffers]
        closed = [_if_gate(sizing, each, sizes[each.name], False) for each in buffers]
        rows.append((gate, _word(holds), now, _sum(opened), _sum(closed), names))
    holding = [trim for trim in schema.trims if sizing.holds(trim.when)]
    for trim in schema.trims:
        names = tuple(name for name, _ in trim.buffers)
        others = {
            name for other in holding if other != trim for name, _ in other.buffers
        }
        now = sum(sizes[name].nbytes for name in names)
        without = sum(
            sizes[name].nbytes + sizes[name].trimmed
            for name in names
            if name not in others
        )
        label = f"trim {trim.name}: {spell(trim.when.expr)}"
        rows.append((label, _word(trim in holding), now, 0, without, names))
    columns = ("gate", "is", "bytes", "if true", "if false", "buffers")
    note = f"{size.total_bytes:,} bytes in all"
    if schema.trims:
        note += "; the buffers of a trim count under their gates too"
    return Account(columns, tuple(rows), note)


def _if_gate(
    sizing: Sizing, buffer: Buffer, size: BufferSize, holds: bool
) -> int | None:
    """The bytes of a buffer if its gate were so; None where they do not exist."""
    if size.trimmed:
        return 0
    try:
        nbytes = sizing.open_bytes(buffer)[2] if holds else sizing.closed_bytes(buffer)
    except EvaluationError:
        # Nothing has to exist behind a gate that is false.
        return None
    return nbytes if 0 <= nbytes <= MAX_SIZE else None


def by_group(schema: Schema, size: ArenaSize) -> Account:
    """The bytes that each zeroing group clears, and those that none does.

    Of a buffer that groups hold by regions, the bytes outside of these are in no group.
    """
    now = _by_name(size)
    symbols = Symbols(schema)
    pieces: Pieces = {name: [] for name in now}
    rows: list[tuple[Cell, ...]] = []
    for group in schema.groups:
        whole = [each.name for each in whole_members(schema, group.name)]
        regions = [each.label for each in region_members(schema, symbols, group.name)]
        cleared = cleared_pieces(schema, size.inputs, group, now, now)
        for name, found in cleared.items():
            pieces[name] += found
        nbytes = sum(_length(found) for found in cleared.values())
        rows.append((group.name, group.method, nbytes, (*whole, *regions)))
    once = {name: _length(joined(found)) for name, found in pieces.items()}
    rest = {name: now[name] - once[name] for name in now}
    loose = [
        each.name
        for each in schema.buffers
        if rest[each.name] or not (each.groups or each.zero_regions)
    ]
    rows.append(("no group", None, sum(rest.values()), tuple(loose)))
    again = {name: _length(pieces[name]) - once[name] for name in now}
    note = f"{size.total_bytes:,} bytes in all"
    if several := [name for name in now if again[name]]:
        shared = sum(again.values())
        note += f"; counted in several groups: {', '.join(several)}, {shared:,} bytes"
    return Account(("group", "method", "bytes", "buffers"), tuple(rows), note)


def by_use(schema: Schema, size: ArenaSize) -> Account:
    """The uses of each buffer that exists and has several.

    margin: bytes between a use and the winner, or the winner and the next. saved: what
    the other active uses of the buffer would take if they had memory of their own.
    """
    sizing = Sizing(schema, size.inputs)
    rows: list[tuple[Cell, ...]] = []
    total = 0
    for buffer, each in zip(schema.buffers, size.buffers, strict=True):
        if not each.active or not isinstance(buffer.extent, Uses):
            continue
        uses = [(use.name, nbytes) for use, nbytes in sizing.uses(buffer.extent)]
        active = [nbytes for _, nbytes in uses if nbytes is not None]
        best = max(active, default=0)
        saved = sum(active) - best
        total += saved
        for name, nbytes in uses:
            if nbytes is None:
                rows.append((each.name, name, None, "inactive", None, None))
            elif name == each.use:
                ahead = best - max((n for u, n in uses if u != name and n), default=0)
                rows.append((each.name, name, nbytes, "wins", ahead, saved))
            else:
                rows.append((each.name, name, nbytes, "loses", best - nbytes, None))
    columns = ("buffer", "use", "bytes", "is", "margin", "saved")
    return Account(columns, tuple(rows), f"{total:,} bytes saved by sharing")


def _length(pieces: list[ZeroRange]) -> int:
    return sum(each.nbytes for each in pieces)


def _by_name(size: ArenaSize) -> dict[str, int]:
    return {each.name: each.nbytes for each in size.buffers}


def _sum(parts: list[int | None]) -> int | None:
    known = [part for part in parts if part is not None]
    return sum(known) if len(known) == len(parts) else None


def _word(holds: bool) -> str:
    return "true" if holds else "false"
