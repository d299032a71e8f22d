"""What a package knows of its own buffers, as data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from .errors import SizeError
from .numeric import MAX_SIZE, show


class BufferInfo(NamedTuple):
    """The declaration of one buffer.

    doc: what it holds.
    dtype: element type, or "" where its uses or regions have their own.
    extent: what sets the size, as the schema spells it.
    gate: the formula that switches it on, or "" when it always exists.
    otherwise: bytes when the gate is false, as the schema spells them.
    groups: names of the zeroing methods that clear it.
    token_major: whether a pass of fewer tokens touches a prefix of it.
    checksum: whether the checksum probe reads it.
    carved: whether callers carve it.
    fill: the pattern that fills it at construction, b"" when nothing does.
    align: its pointer is a multiple of so many bytes.
    inputs: config fields and limits that the size depends on.
    region_groups: zeroing methods that clear a region of it, each with the region.
    """

    doc: str
    dtype: str
    extent: str
    gate: str
    otherwise: str
    groups: tuple[str, ...]
    token_major: bool
    checksum: bool
    carved: bool
    fill: bytes
    align: int
    inputs: tuple[str, ...]
    region_groups: tuple[tuple[str, str], ...] = ()


def impossible_size(
    sizes: Mapping[str, int],
    buffers: Mapping[str, BufferInfo],
    inputs: Mapping[str, object],
) -> SizeError:
    """The error for the first of the sizes that is negative or beyond 2**63 - 1."""
    name, nbytes = next(
        entry for entry in sizes.items() if not 0 <= entry[1] <= MAX_SIZE
    )
    info = buffers[name]
    why = "negative" if nbytes < 0 else "more than 2**63 - 1"
    given = ", ".join(f"{each}={show(inputs[each])}" for each in info.inputs)
    return SizeError(
        f"{name}: {show(nbytes)} bytes is {why}: {info.extent} with {given}"
    )
