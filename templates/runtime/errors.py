"""Every error that the package raises, each an ArenaError and a built-in error.

An error that carries facts takes them as arguments and writes its own text from them,
so that callers read attributes instead of parsing messages. All of them pickle.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Self

_UNITS = ("KiB", "MiB", "GiB", "TiB", "PiB", "EiB")
_LARGEST_SHOWN = 5
_SHOWN_CHARACTERS = 40


def format_bytes(nbytes: int) -> str:
    """Return a byte count in readable units, followed by the exact count."""
    if abs(nbytes) > 2**128:
        # str() of an int of more than 4300 digits raises; hex() does not.
        return f"{hex(nbytes)[:_SHOWN_CHARACTERS]}... bytes"
    exact = f"{nbytes} byte" if nbytes == 1 else f"{nbytes} bytes"
    if abs(nbytes) < 1024:
        return exact
    power = min((abs(nbytes).bit_length() - 1) // 10, len(_UNITS))
    return f"{nbytes / 1024**power:.2f} {_UNITS[power - 1]} ({exact})"


def spelling_hint(name: str, known: Iterable[str]) -> str:
    """Return what an unknown name may have meant, else the names that are known."""
    from difflib import get_close_matches

    names = list(known)
    near = get_close_matches(str(name), names, 1)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"


class ArenaError(Exception):
    """Base of every error of this package."""


class ConfigError(ArenaError, ValueError):
    """A config field, limit, lever or target constant has a value it cannot have."""


class SizeError(ArenaError, ValueError):
    """A size that cannot exist: negative, too large, or undefined."""


class PointerError(ArenaError, ValueError):
    """Pointer arithmetic that leads nowhere."""


class AllocationError(ArenaError, MemoryError):
    """The device cannot hold a buffer, or the arena as a whole.

    buffer: name of the buffer, or None when all of them together do not fit.
    nbytes: bytes asked for.
    free, total: bytes of device memory, None when the backend could not say.
    largest: (name, bytes) of the largest buffers, largest first.
    reserve: bytes that were to stay free beside them.
    why: what the backend said, or "" when it was not asked.
    """

    def __init__(
        self,
        buffer: str | None,
        nbytes: int,
        free: int | None,
        total: int | None,
        largest: tuple[tuple[str, int], ...],
        reserve: int = 0,
        why: str = "",
    ) -> None:
        super().__init__(buffer, nbytes, free, total, largest, reserve, why)
        self.buffer = buffer
        self.nbytes = nbytes
        self.free = free
        self.total = total
        self.largest = largest
        self.reserve = reserve
        self.why = why

    @classmethod
    def from_sizes(
        cls,
        buffer: str | None,
        nbytes: int,
        free: int | None,
        total: int | None,
        sizes: Mapping[str, int],
        reserve: int = 0,
        why: str = "",
    ) -> Self:
        """Build the error, taking the largest buffers from all sizes in bytes."""
        present = [entry for entry in sizes.items() if entry[1] > 0]
        present.sort(key=lambda entry: entry[1], reverse=True)
        largest = tuple(present[:_LARGEST_SHOWN])
        return cls(buffer, nbytes, free, total, largest, reserve, why)

    def __str__(self) -> str:
        subject = "all buffers together" if self.buffer is None else self.buffer
        memory = _memory_text(self.free, self.total)
        asked = format_bytes(self.nbytes)
        if self.reserve:
            asked += f" and keep {format_bytes(self.reserve)} in reserve"
        lines = [f"{subject}: cannot allocate {asked}; {memory}"]
        if self.why:
            lines.append(f"the backend said: {self.why}")
        if self.largest:
            width = max(len(name) for name, _ in self.largest)
            lines.append("the largest buffers:")
            lines += [
                f"  {name:<{width}}  {format_bytes(nbytes)}"
                for name, nbytes in self.largest
            ]
        return "\n".join(lines)


class BackendError(ArenaError, RuntimeError):
    """A call that the backend refused, or that failed on the device."""


class OutOfMemoryError(BackendError, MemoryError):
    """The backend has no room for an allocation.

    asked: bytes of the allocation.
    free, total: bytes of device memory, None when the backend could not say.
    """

    def __init__(self, asked: int, free: int | None, total: int | None) -> None:
        super().__init__(asked, free, total)
        self.asked = asked
        self.free = free
        self.total = total

    def __str__(self) -> str:
        memory = _memory_text(self.free, self.total)
        return f"out of memory: {format_bytes(self.asked)} asked; {memory}"


class ClearError(BackendError):
    """Buffers that could not be cleared.

    buffers: names of the buffers of the range that failed, or of all ranges when the
        backend did not say which.
    why: what the backend said; its own error is the cause.
    """

    def __init__(self, buffers: tuple[str, ...], why: str) -> None:
        super().__init__(buffers, why)
        self.buffers = buffers
        self.why = why

    def __str__(self) -> str:
        return f"{', '.join(self.buffers)}: cannot be cleared: {self.why}"


class ReleasedError(ArenaError, RuntimeError):
    """An operation on an arena that has been released.

    label: label of the arena.
    operation: what was attempted.
    dropped: whether the arena itself is gone, as nothing held it.
    """

    def __init__(self, label: str, operation: str, dropped: bool = False) -> None:
        super().__init__(label, operation, dropped)
        self.label = label
        self.operation = operation
        self.dropped = dropped

    def __str__(self) -> str:
        start = f"{self.label}: {self.operation} after release"
        if self.dropped:
            return f"{start}, as nothing held the arena; build a new one and keep it"
        return f"{start}; its memory is gone, build a new arena"


class CarveError(ArenaError, RuntimeError):
    """A slab that cannot give the bytes asked of it; the slab is unchanged.

    buffer: name of the slab.
    asked, used, capacity: bytes asked for, given out so far, and held in all.
    """

    def __init__(self, buffer: str, asked: int, used: int, capacity: int) -> None:
        super().__init__(buffer, asked, used, capacity)
        self.buffer = buffer
        self.asked = asked
        self.used = used
        self.capacity = capacity

    def __str__(self) -> str:
        start = f"{self.buffer}: cannot carve {format_bytes(self.asked)}: "
        if self.capacity == 0:
            return f"{start}the slab is not allocated in this arena"
        if self.asked <= 0:
            return f"{start}a piece has at least 1 byte"
        left = self.capacity - self.used
        return (
            f"{start}{format_bytes(left)} left, {self.used} used "
            f"of {format_bytes(self.capacity)}"
        )


class LayoutError(ArenaError, ValueError):
    """A layout that does not fit the buffer it is asked of.

    buffer: name of the buffer.
    requested: what was asked for, such as "rows=9000 (4608000 bytes)".
    capacity: bytes of the buffer, 0 when it is not allocated.
    why: what is wrong where it is not the room, or "".
    """

    def __init__(
        self, buffer: str, requested: str, capacity: int, why: str = ""
    ) -> None:
        super().__init__(buffer, requested, capacity, why)
        self.buffer = buffer
        self.requested = requested
        self.capacity = capacity
        self.why = why

    def __str__(self) -> str:
        if self.why:
            return f"{self.buffer} {self.why}"
        capacity = (
            f"it has {format_bytes(self.capacity)}"
            if self.capacity
            else "it is not allocated in this arena (0 bytes)"
        )
        return f"{self.buffer}: no room for {self.requested}: {capacity}"


class ReleaseError(ArenaError, RuntimeError):
    """Allocations that could not be freed; all the others were.

    label: label of the arena.
    failures: (name, error) of each allocation, in the order of the attempts.
    """

    def __init__(self, label: str, failures: tuple[tuple[str, Exception], ...]) -> None:
        super().__init__(label, failures)
        self.label = label
        self.failures = failures

    def __str__(self) -> str:
        return f"{self.label}: could not free:{_failures_text(self.failures)}"


class TeardownError(ArenaError, RuntimeError):
    """Resources that could not be released; all the others were.

    failures: (label, error) of each resource, in the order of the attempts.
    """

    def __init__(self, failures: tuple[tuple[str, Exception], ...]) -> None:
        super().__init__(failures)
        self.failures = failures

    def __str__(self) -> str:
        return f"teardown: could not release:{_failures_text(self.failures)}"


def _memory_text(free: int | None, total: int | None) -> str:
    free_text = "unknown" if free is None else format_bytes(free)
    total_text = "an unknown total" if total is None else format_bytes(total)
    return f"free: {free_text} of {total_text}"


def _failures_text(failures: Iterable[tuple[str, Exception]]) -> str:
    texts = (f"{name}: {type(error).__name__}: {error}" for name, error in failures)
    return "".join("\n  " + text.replace("\n", "\n  ") for text in texts)
