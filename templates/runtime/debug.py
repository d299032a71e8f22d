"""Guard bytes behind buffers and regions, and poison in them, to find stray writes.

Takes pointers that an arena has allocated with room for guards. Calls nothing of a
backend but what GpuBackend has.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from .backend import GpuBackend, Stream
from .device import DevicePtr
from .errors import ConfigError, LayoutError, format_bytes
from .fill import fill
from .info import BufferInfo
from .layout import Region
from .memory import Member, Memory
from .numeric import check_int, show
from .record import Record

# Spells itself in a dump of memory, and is no value that kernels write by habit.
_PATTERN = b"[guard]\xf7"
_SHOWN_BYTES = 16


class Debug(Record):
    """How an arena is built for debugging."""

    guard: int
    """Guard bytes behind every buffer, at least; in a slab they reach the next one."""

    poison: int
    """The value of every byte of a buffer that is not filled at construction."""

    def __init__(self, *, guard: int = 256, poison: int = 0xA5) -> None:
        """Raise ConfigError for less than 1 guard byte, and for poison that is none."""
        self._hold(
            guard=check_int("guard", guard, 1),
            poison=check_int("poison", poison, 0, 255),
        )

    @property
    def pattern(self) -> bytes:
        """The guard bytes, repeated from the end of each buffer on; none is poison."""
        return bytes(byte ^ 0xFF if byte == self.poison else byte for byte in _PATTERN)


class Overrun(NamedTuple):
    """Guard bytes that something wrote. Bytes are counted from the end of what they
    lie behind.

    buffer: the buffer.
    region: the region of it that they lie behind, "" behind the buffer itself.
    nbytes: bytes of that region or of the buffer.
    first: the first byte that changed; 0 lies right behind the end.
    reach: bytes up to the last one that changed, that one included.
    guard: the guard bytes there are; what lies behind them is not looked at.
    behind: the region or buffer that begins where they end, or "".
    found: what the bytes from `first` to `reach` hold now.
    """

    buffer: str
    region: str
    nbytes: int
    first: int
    reach: int
    guard: int
    behind: str
    found: bytes

    def __str__(self) -> str:
        what = f"{self.buffer}.{self.region}" if self.region else self.buffer
        shown = self.found[:_SHOWN_BYTES].hex(" ")
        dots = " ..." if len(self.found) > _SHOWN_BYTES else ""
        text = (
            f"{what}: {_range_text(self.first, self.reach)} behind its "
            f"{format_bytes(self.nbytes)} changed to {shown}{dots}"
        )
        if self.reach < self.guard:
            return text
        unit = "byte" if self.guard == 1 else "bytes"
        text += f"; the guard ends there, after {self.guard} {unit}, "
        text += "and more may follow"
        if self.behind:
            text += f", or something wrote in front of {self.behind}, which comes next"
        return text


class _Guard(NamedTuple):
    """Guard bytes as they lie in memory, and what they are told by.

    size: bytes of what they lie behind.
    zeroed: whether a zeroing method clears them, as it does all of a buffer.
    """

    buffer: str
    region: str
    size: int
    ptr: DevicePtr
    nbytes: int
    behind: str
    zeroed: bool


def guard_bytes(debug: Debug | None) -> int:
    """Guard bytes behind every buffer. Raise ConfigError for what is no Debug."""
    if debug is None:
        return 0
    if isinstance(debug, Debug):
        return debug.guard
    kind = type(debug).__name__
    raise ConfigError(f"debug is {show(debug)} ({kind}), not a Debug, nor None")


class Guards:
    """The guards of one arena: written at construction, read back on demand."""

    __slots__ = ("_gaps", "_gpu", "_guards", "_pattern")

    def __init__(
        self,
        gpu: GpuBackend,
        debug: Debug,
        memory: Memory,
        members: Iterable[Member],
        buffers: Mapping[str, BufferInfo],
    ) -> None:
        """Poison every buffer that `buffers` does not fill, and write all guards.

        memory: where the members lie, with room for guards.
        members: every buffer, with its pointer and its bytes.
        """
        self._gpu = gpu
        self._pattern = debug.pattern
        live = [member for member in members if member[1]]
        starts = {ptr: name for name, ptr, _ in live}
        guards: list[_Guard] = []
        gaps: list[_Guard] = []
        for name, ptr, nbytes in live:
            if not buffers[name].fill:
                gpu.memset(ptr, debug.poison, nbytes)
                gaps += _gaps(name, ptr, buffers[name])
            room = memory.room(name)
            end, behind = ptr.offset(nbytes), starts.get(ptr.offset(room), "")
            guards.append(_Guard(name, "", nbytes, end, room - nbytes, behind, False))
        for guard in (*guards, *gaps):
            fill(gpu, guard.ptr, self._pattern, guard.nbytes)
        self._guards, self._gaps = tuple(guards), tuple(gaps)

    def check(self, stream: Stream, gaps: bool) -> tuple[Overrun, ...]:
        """Wait for the stream; return every guard that was written.

        gaps: look between the regions of buffers too.
        """
        self._gpu.synchronize(stream)
        guards = (*self._guards, *self._gaps) if gaps else self._guards
        found = map(self._check, guards)
        return tuple(overrun for overrun in found if overrun is not None)

    def _check(self, guard: _Guard) -> Overrun | None:
        content = bytearray(guard.nbytes)
        self._gpu.copy_d2h(content, guard.ptr)
        repeated = self._pattern * (guard.nbytes // len(self._pattern) + 1)
        if repeated.startswith(content):
            return None
        changed = [
            at
            for at, byte in enumerate(content)
            if byte != repeated[at] and not (guard.zeroed and byte == 0)
        ]
        if not changed:
            return None
        first, reach = changed[0], changed[-1] + 1
        return Overrun(
            guard.buffer,
            guard.region,
            guard.size,
            first,
            reach,
            guard.nbytes,
            guard.behind,
            bytes(content[first:reach]),
        )


def _gaps(name: str, ptr: Any, info: BufferInfo) -> Iterator[_Guard]:
    """The bytes between the regions of a buffer, as the largest pass lays them out."""
    if not callable(ptr) or info.carved:
        return
    try:
        regions = sorted(_regions("", ptr()), key=lambda each: each[1].ptr)
    except LayoutError:
        # A placeholder has no regions, nor have sizes that hold no whole pass.
        return
    for (region, one), (behind, other) in pairwise(regions):
        end = one.ptr.offset(one.nbytes)
        if end < other.ptr:
            nbytes, zeroed = other.ptr - end, bool(info.groups or info.region_groups)
            following = f"{name}.{behind}"
            yield _Guard(name, region, one.nbytes, end, nbytes, following, zeroed)


def _regions(name: str, part: Any) -> Iterator[tuple[str, Region]]:
    """The regions of a layout and their names, with those of the layouts inside it."""
    if isinstance(part, Region):
        yield name, part
        return
    fields: Mapping[str, Any] = getattr(part, "_asdict", dict)()
    for inside, field in fields.items():
        yield from _regions(f"{name}.{inside}" if name else inside, field)


def _range_text(first: int, end: int) -> str:
    last = end - 1
    return f"byte {first}" if first == last else f"bytes {first} to {last}"
