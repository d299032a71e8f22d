"""Who belongs to a zeroing group: whole buffers, and regions inside of others.

A region has a path: `region`, `use.region`, and `region.inner` inside a named layout.
"""

from __future__ import annotations

from collections.abc import Iterator

from .model import Buffer, Bytes, LayoutCall, Regions, Schema, Shape, SingleExtent, Use
from .record import record
from .symbols import Symbols, buffer_extents


@record
class RegionPath:
    """The way to one region of a buffer: a use, then names of regions inside it."""

    buffer: Buffer
    use: Use | None
    steps: tuple[str, ...]

    @property
    def path(self) -> str:
        """The path, as a schema writes it."""
        return ".".join([*([self.use.name] if self.use else []), *self.steps])

    @property
    def label(self) -> str:
        """What a plan and an error call it."""
        return f"{self.buffer.name}.{self.path}"


def region_paths(buffer: Buffer, symbols: Symbols) -> dict[str, RegionPath]:
    """Every region of a buffer by its path; none where a buffer is one region."""
    found: dict[str, RegionPath] = {}
    for use, extent in buffer_extents(buffer):
        if use is None and isinstance(extent, Shape | Bytes):
            continue
        for steps in _steps(extent, symbols):
            each = RegionPath(buffer, use, steps)
            found[each.path] = each
    return found


def _steps(extent: SingleExtent, symbols: Symbols) -> Iterator[tuple[str, ...]]:
    match extent:
        case Shape() | Bytes():
            yield ()
        case LayoutCall(name):
            if name in symbols.layouts:
                yield from _steps(symbols.layouts[name].regions, symbols)
        case Regions(items):
            for region in items:
                for steps in _steps(region.extent, symbols):
                    yield region.name, *steps


def whole_members(schema: Schema, group: str) -> list[Buffer]:
    """The buffers that a group holds as a whole."""
    return [each for each in schema.buffers if group in dict(each.groups)]


def region_members(schema: Schema, symbols: Symbols, group: str) -> list[RegionPath]:
    """The regions that a group holds, beside those of buffers that it holds whole."""
    found: dict[RegionPath, None] = {}
    for buffer in schema.buffers:
        if group in dict(buffer.groups):
            continue
        paths = region_paths(buffer, symbols)
        for member in buffer.zero_regions:
            if member.group == group:
                found[paths[member.path]] = None
    return list(found)
