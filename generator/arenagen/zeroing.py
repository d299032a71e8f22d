"""What a zeroing method clears, evaluated without emitting code.

The same ranges as the emitted `zero_plan`, for a real config and any placement. Tests
hold the two equal.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from .errors import ArenagenError
from .members import region_members, whole_members
from .model import Group, Schema
from .placement import slab_offsets
from .record import record, replace
from .sizing import Inputs, Known, Sizing, size_arena
from .symbols import Symbols

Placement: TypeAlias = Literal["separate", "slab"]


@record
class ZeroRange:
    """A run of bytes that one memset clears; the offset counts in its allocation.

    buffers: those that it covers, `buffer.region` where only a region is a member.
    """

    buffers: tuple[str, ...]
    offset: int
    nbytes: int


# What is cleared of each buffer, offsets counted from its start.
Pieces: TypeAlias = dict[str, list[ZeroRange]]


def find_group(schema: Schema, method: str | None) -> Group:
    """The group of a method, or the first one. Raises ArenagenError without it."""
    for group in schema.groups:
        if method in (None, group.method):
            return group
    known = ", ".join(group.method for group in schema.groups) or "none"
    raise ArenagenError(f"no zeroing method is named `{method}`; known: {known}")


def zero_plan(
    schema: Schema,
    inputs: Inputs,
    group: Group,
    tokens: int | None,
    placement: Placement,
) -> list[ZeroRange]:
    """The ranges that clear a group, of a pass of `tokens` tokens or in full.

    Raises ArenagenError for tokens of a group that has no method limited to a pass.
    """
    full = _sizes(schema, inputs)
    limit = schema.token_limit
    of_pass = inputs
    if tokens is not None:
        if group.rows_method is None:
            raise _no_rows_method(schema, group)
        if tokens < limit.minimum:
            raise ArenagenError(f"a pass of {tokens} tokens; at least {limit.minimum}")
        if tokens < inputs.limits[limit.name]:
            limits = {**inputs.limits, limit.name: tokens}
            of_pass = replace(inputs, limits=limits)
    rows = full if of_pass is inputs else _sizes(schema, of_pass)
    pieces = cleared_pieces(schema, of_pass, group, full, rows)
    if placement == "separate":
        return [piece for each in pieces.values() for piece in each]
    return _merge(slab_offsets(schema.buffers, full), full, pieces)


def cleared_pieces(
    schema: Schema,
    inputs: Inputs,
    group: Group,
    full: dict[str, int],
    rows: dict[str, int],
) -> Pieces:
    """What a group clears of each buffer.

    `inputs` are those of the pass and `rows` the bytes that it needs of each buffer;
    `full` are the bytes that the buffer has.
    """
    pieces: Pieces = {}
    for buffer in whole_members(schema, group.name):
        nbytes = full[buffer.name]
        if buffer.token_major:
            nbytes = min(nbytes, rows[buffer.name])
        if nbytes:
            pieces[buffer.name] = [ZeroRange((buffer.name,), 0, nbytes)]
    return pieces | _region_pieces(schema, group, inputs, full)


def _no_rows_method(schema: Schema, group: Group) -> ArenagenError:
    advice = f"add `rows_method` to the group `{group.name}`"
    able = [each.method for each in schema.groups if each.rows_method is not None]
    if able:
        advice += f", or take one that has: --method {able[0]}"
    name = group.method
    return ArenagenError(f"`{name}` has no form that is limited to a pass; {advice}")


def _sizes(schema: Schema, inputs: Inputs) -> dict[str, int]:
    return {each.name: each.nbytes for each in size_arena(schema, inputs).buffers}


def _region_pieces(
    schema: Schema, group: Group, inputs: Inputs, full: dict[str, int]
) -> Pieces:
    """The regions of a group that exist, those side by side as one."""
    symbols = Symbols(schema)
    sizing = Sizing(schema, inputs, Known(schema, symbols))
    found: Pieces = {}
    for member in region_members(schema, symbols, group.name):
        capacity = full[member.buffer.name]
        span = sizing.region(member.buffer, member.use, member.steps)
        if span is None or span[0] >= capacity or not span[1]:
            continue
        nbytes = min(span[1], capacity - span[0])
        piece = ZeroRange((member.label,), span[0], nbytes)
        found.setdefault(member.buffer.name, []).append(piece)
    return {name: joined(pieces) for name, pieces in found.items()}


def joined(pieces: list[ZeroRange]) -> list[ZeroRange]:
    """The pieces of one buffer in order, those that touch or overlap as one."""
    found: list[ZeroRange] = []
    for piece in sorted(pieces, key=lambda each: each.offset):
        last = found[-1] if found else None
        if last and piece.offset <= last.offset + last.nbytes:
            end = max(last.offset + last.nbytes, piece.offset + piece.nbytes)
            names = (*last.buffers, *piece.buffers)
            found[-1] = ZeroRange(names, last.offset, end - last.offset)
        else:
            found.append(piece)
    return found


def _merge(
    offsets: dict[str, int], sizes: dict[str, int], pieces: Pieces
) -> list[ZeroRange]:
    plan: list[ZeroRange] = []
    # Whether all is cleared up to the start of the buffer at hand.
    reached = False
    for name, start in offsets.items():
        whole = False
        for piece in pieces.get(name, ()):
            last = plan[-1] if plan else None
            if last and reached and piece.offset == 0:
                length = start + piece.nbytes - last.offset
                names = (*last.buffers, *piece.buffers)
                plan[-1] = ZeroRange(names, last.offset, length)
            else:
                plan.append(
                    ZeroRange(piece.buffers, start + piece.offset, piece.nbytes)
                )
            reached = False
            whole = piece.offset + piece.nbytes == sizes[name]
        reached = whole
    return plan
