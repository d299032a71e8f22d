"""What a zeroing method clears, evaluated without emitting code.

The same ranges as the emitted `zero_plan`, for a real config and any placement. Tests
hold the two equal.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from .errors import ArenagenError
from .model import Group, Schema
from .placement import slab_offsets
from .sizing import Inputs, size_arena

Placement: TypeAlias = Literal["separate", "slab"]


@dataclass(frozen=True, slots=True)
class ZeroRange:
    """A run of bytes that one memset clears; the offset counts in its allocation."""

    buffers: tuple[str, ...]
    offset: int
    nbytes: int


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
    full = {each.name: each.nbytes for each in size_arena(schema, inputs).buffers}
    wanted = {
        buffer.name: full[buffer.name]
        for buffer in schema.buffers
        if group.name in {name for name, _ in buffer.groups} and full[buffer.name]
    }
    if tokens is not None:
        wanted = _of_pass(schema, inputs, group, tokens, wanted)
    if placement == "separate":
        return [ZeroRange((name,), 0, nbytes) for name, nbytes in wanted.items()]
    return _merge(slab_offsets(schema.buffers, full), full, wanted)


def _of_pass(
    schema: Schema, inputs: Inputs, group: Group, tokens: int, wanted: dict[str, int]
) -> dict[str, int]:
    limit = schema.token_limit
    if group.rows_method is None:
        raise ArenagenError(f"`{group.method}` has no form that is limited to a pass")
    if tokens < limit.minimum:
        raise ArenagenError(f"a pass of {tokens} tokens; at least {limit.minimum}")
    if tokens >= inputs.limits[limit.name]:
        return wanted
    limits = {**inputs.limits, limit.name: tokens}
    part = size_arena(schema, replace(inputs, limits=limits))
    rows = {each.name: each.nbytes for each in part.buffers}
    leading = {buffer.name for buffer in schema.buffers if buffer.token_major}
    cut = {
        name: min(rows[name], nbytes) if name in leading else nbytes
        for name, nbytes in wanted.items()
    }
    return {name: nbytes for name, nbytes in cut.items() if nbytes}


def _merge(
    offsets: dict[str, int], sizes: dict[str, int], wanted: dict[str, int]
) -> list[ZeroRange]:
    plan: list[ZeroRange] = []
    before = ""
    for name, offset in offsets.items():
        if name in wanted:
            last = plan[-1] if plan else None
            # A buffer that is cleared in part leaves bytes that the next must not join.
            if last and last.buffers[-1] == before and wanted[before] == sizes[before]:
                length = offset + wanted[name] - last.offset
                plan[-1] = ZeroRange((*last.buffers, name), last.offset, length)
            else:
                plan.append(ZeroRange((name,), offset, wanted[name]))
        before = name
    return plan
