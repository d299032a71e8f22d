"""What an arena asks of a GPU.

An arena calls the methods of GpuBackend, so a backend may be wrapped or replaced
freely. The other protocols are optional: their methods are called in place of those of
GpuBackend where a backend has them, also by `__getattr__`. So a wrapper that passes
every attribute on also passes on `alloc_many`, and never sees an `alloc`: it should
keep back what goes past it.

Every size is in bytes. A method that cannot do what it is asked raises BackendError,
and OutOfMemoryError when memory is what is missing.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias, runtime_checkable

from .device import DevicePtr
from .errors import ConfigError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

# Whatever the backend takes for a stream; an arena only passes it on.
Stream: TypeAlias = object

# Every allocation starts at a multiple of so many bytes, as cuMemAlloc's do. A buffer
# that needs more has it from an allocation that is larger by the difference.
ALIGNMENT: Final = 256


@runtime_checkable
class GpuBackend(Protocol):
    """Allocates, fills and copies device memory.

    A range is `nbytes` bytes from a pointer on. It lies within one live allocation
    and may start anywhere in it.
    """

    @abstractmethod
    def alloc(self, nbytes: int) -> DevicePtr:
        """Return the address of `nbytes` > 0 new bytes, aligned to ALIGNMENT or more.

        The content is undefined. Raise OutOfMemoryError when there is no room.
        """
        ...

    @abstractmethod
    def free(self, ptr: DevicePtr) -> None:
        """Give back an allocation, named by the address that `alloc` returned."""
        ...

    @abstractmethod
    def memset(self, ptr: DevicePtr, value: int, nbytes: int) -> None:
        """Set `nbytes` bytes to `value`, 0 to 255.

        Work that is enqueued later, on any stream, sees the new bytes.
        """
        ...

    @abstractmethod
    def memset_async(
        self, ptr: DevicePtr, value: int, nbytes: int, stream: Stream
    ) -> None:
        """Enqueue on `stream` what `memset` does; ordered on that stream only."""
        ...

    @abstractmethod
    def copy_h2d(self, dst: DevicePtr, src: ReadableBuffer) -> None:
        """Copy all bytes of `src`, a contiguous bytes-like object, to the device.

        `src` may be changed as soon as the call returns, and work that is enqueued
        later, on any stream, sees the new bytes.
        """
        ...

    @abstractmethod
    def copy_d2h(self, dst: WriteableBuffer, src: DevicePtr) -> None:
        """Fill `dst`, a contiguous writable bytes-like object, from the device.

        The length of `dst` is the number of bytes copied. They are there when the
        call returns. Work pending on a stream is not waited for: `synchronize` first.
        """
        ...

    @abstractmethod
    def copy_d2d(self, dst: DevicePtr, src: DevicePtr, nbytes: int) -> None:
        """Copy `nbytes` bytes between two ranges that do not overlap.

        Work that is enqueued later, on any stream, sees the new bytes.
        """
        ...

    @abstractmethod
    def synchronize(self, stream: Stream) -> None:
        """Wait until all work enqueued on `stream` so far is done."""
        ...

    @property
    @abstractmethod
    def default_stream(self) -> Stream:
        """The stream to use when the caller names none."""
        ...

    @abstractmethod
    def total_memory(self) -> int:
        """Return the bytes of memory that the device has."""
        ...

    @abstractmethod
    def free_memory(self) -> int:
        """Return the bytes that are not allocated, by this process or another.

        Less than that may be available in one piece.
        """
        ...


@runtime_checkable
class SupportsPatternFill(Protocol):
    """A backend that also fills memory with patterns wider than a byte.

    Optional: without it, such a pattern is copied from the host.
    """

    def memset_pattern(self, ptr: DevicePtr, pattern: bytes, count: int) -> None:
        """Write `pattern`, of 1, 2 or 4 bytes, `count` times end to end.

        `ptr` is a multiple of the pattern's length. Ordered as `memset` is.
        """
        ...


@runtime_checkable
class SupportsRangeMemset(Protocol):
    """A backend that sets several ranges at a lower cost than one by one.

    Optional: an arena prepares the ranges of a zeroing call once, and then hands them
    over whole. Without it, `memset_async` is called for each range.
    """

    def prepare_ranges(
        self, ranges: Sequence[tuple[DevicePtr, int]], value: int
    ) -> object:
        """Return ranges, pointer and bytes each, in a form that is cheap to set.

        value: what every byte of them is set to, 0 to 255.
        """
        ...

    def memset_ranges(self, prepared: object, stream: Stream) -> None:
        """Enqueue on `stream` a `memset_async` for every prepared range, in order.

        An error that it raises has the pointer that failed as its attribute `ptr`.
        """
        ...


@runtime_checkable
class SupportsManyAllocations(Protocol):
    """A backend that allocates and frees many buffers at a lower cost than each alone.

    Optional: an arena hands all its buffers over at once. Without it, `alloc` and
    `free` are called for each.
    """

    def alloc_many(self, sizes: Sequence[int], handles: list[Any]) -> None:
        """Append to `handles` a new allocation for each of the sizes, in order.

        A handle is a pointer, or the backend's own form of one, which `free_many` takes
        at a lower cost; `int` of it is the address that `alloc` would return. When it
        raises, what `handles` has by then is allocated, and the caller's to free.
        """
        ...

    def free_many(self, handles: Sequence[Any]) -> list[tuple[int, Exception]]:
        """Attempt to `free` every allocation, named by its handle or its pointer.

        Return the place of each that failed, and why, in order. An interrupt, such as
        KeyboardInterrupt, is raised when all were attempted.
        """
        ...


@runtime_checkable
class SupportsViews(Protocol):
    """A backend that says where its memory lies; optional, for tensor views."""

    @property
    def dlpack_device(self) -> tuple[int, int]:
        """The device as DLPack numbers it: (1, 0) is the host, (2, n) CUDA device n."""
        ...


def check_backend(gpu: GpuBackend) -> None:
    """Raise ConfigError, with all that it lacks, for what is no GpuBackend."""
    unsure = _lacking(type(gpu))
    if not unsure:
        return
    # An instance may have what its class has not, as an attribute or by __getattr__.
    lacking = [name for name in unsure if not hasattr(gpu, name)]
    if lacking:
        why = f"it lacks {', '.join(lacking)}"
        raise ConfigError(f"gpu: {type(gpu).__name__} is no GpuBackend: {why}")


# An isinstance with the protocol would cost as much as many allocations, each time.
# A process has one kind of backend or two, and a class should not be kept for ever.
@lru_cache(maxsize=2)
def _lacking(kind: type) -> tuple[str, ...]:
    """What GpuBackend asks for and a class does not have."""
    asked = (name for name in vars(GpuBackend) if not name.startswith("_"))
    return tuple(name for name in asked if not hasattr(kind, name))


def free_each(gpu: GpuBackend, handles: Sequence[Any]) -> list[tuple[int, Exception]]:
    """What `free_many` does, by `free`."""
    failures: list[tuple[int, Exception]] = []
    interrupt: BaseException | None = None
    left = enumerate(handles)
    while True:
        try:
            for place, handle in left:
                try:
                    known = type(handle) is DevicePtr
                    gpu.free(handle if known else DevicePtr(handle))
                except Exception as error:  # noqa: BLE001
                    failures.append((place, error))
            break
        except BaseException as stop:  # noqa: BLE001
            # Wherever it came, what is left would be out of reach for good.
            interrupt = stop
    if interrupt is not None:
        raise interrupt
    return failures
