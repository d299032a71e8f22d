"""Regions as members of a zeroing group."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple, TypeAlias

from .device import DevicePtr

# A buffer, the path of a region in it, the function that lays it out, and the names
# that lead from what that returns to the region.
RegionEntry: TypeAlias = tuple[
    str, str, Callable[[Any, DevicePtr], Any], tuple[str, ...]
]


class RegionRun(NamedTuple):
    """Regions of one buffer that lie side by side.

    names: their names, behind that of the buffer, in order of address.
    offset: bytes from the start of the buffer.
    """

    buffer: str
    names: tuple[str, ...]
    ptr: DevicePtr
    offset: int
    nbytes: int


def region_runs(
    arena: Any, inputs: Any, entries: Iterable[RegionEntry]
) -> tuple[RegionRun, ...]:
    """Where the regions lie for given inputs, each byte once.

    Without those of a buffer that has no memory, and those whose gate is false.
    """
    runs: list[RegionRun] = []
    for buffer, path, place, steps in entries:
        ptr: DevicePtr = getattr(arena, buffer)
        part = place(inputs, ptr) if ptr else None
        for step in steps:
            part = None if part is None else getattr(part, step)
        if part is None:
            continue
        offset = part.ptr - ptr
        # Sizes given to from_sizes may be smaller than the formulas' own.
        nbytes = min(part.nbytes, getattr(arena, f"{buffer}_bytes") - offset)
        if nbytes > 0:
            name = f"{buffer}.{path}"
            runs.append(RegionRun(buffer, (name,), part.ptr, offset, nbytes))
    return _joined(runs)


def _joined(runs: list[RegionRun]) -> tuple[RegionRun, ...]:
    order = {run.buffer: place for place, run in enumerate(runs)}
    joined: list[RegionRun] = []
    for run in sorted(runs, key=lambda each: (order[each.buffer], each.offset)):
        last = joined[-1] if joined else None
        if (
            last
            and last.buffer == run.buffer
            and run.offset <= last.offset + last.nbytes
        ):
            end = max(last.offset + last.nbytes, run.offset + run.nbytes)
            names = (*last.names, *run.names)
            joined[-1] = last._replace(names=names, nbytes=end - last.offset)
        else:
            joined.append(run)
    return tuple(joined)
