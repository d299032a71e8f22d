"""What every arena does with its allocations, one buffer at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TypeAlias

from .backend import GpuBackend
from .device import NULL, DevicePtr
from .errors import AllocationError, BackendError

# A pointer and the bytes from it on.
Range: TypeAlias = tuple[DevicePtr, int]


def allocate(
    gpu: GpuBackend, name: str, nbytes: int, sizes: Mapping[str, int]
) -> DevicePtr:
    """Allocate one buffer; NULL for 0 bytes, which no backend is asked for.

    Raise AllocationError with the buffer, its bytes, the memory that was free and the
    largest of `sizes`; its cause is what the backend raised.
    """
    if nbytes == 0:
        return NULL
    try:
        ptr = gpu.alloc(nbytes)
        if not ptr:
            raise BackendError(f"alloc: NULL for {nbytes} bytes")
    except Exception as error:
        free, total = memory_of(gpu)
        raise AllocationError.from_sizes(name, nbytes, free, total, sizes) from error
    return DevicePtr(ptr)


def preflight(gpu: GpuBackend, sizes: Mapping[str, int]) -> None:
    """Raise AllocationError when all buffers together exceed the free memory."""
    asked = sum(sizes.values())
    free, total = memory_of(gpu)
    if free is not None and asked > free:
        raise AllocationError.from_sizes(None, asked, free, total, sizes)


def memory_of(gpu: GpuBackend) -> tuple[int | None, int | None]:
    """Free and total bytes of the device, None where the backend cannot say."""
    try:
        return gpu.free_memory(), gpu.total_memory()
    except Exception:
        # The error in flight matters more than the figures that would explain it.
        return None, None


def free_all(
    gpu: GpuBackend, owned: Iterable[tuple[str, DevicePtr]]
) -> tuple[tuple[str, Exception], ...]:
    """Free every pointer that is not NULL, whatever earlier frees raised.

    Return the failures, in the order of the attempts.
    """
    failures: list[tuple[str, Exception]] = []
    for name, ptr in owned:
        if not ptr:
            continue
        try:
            gpu.free(ptr)
        except Exception as error:
            failures.append((name, error))
    return tuple(failures)


def live(*ranges: Range) -> tuple[Range, ...]:
    """The ranges that have memory and at least one byte."""
    return tuple(each for each in ranges if each[0] and each[1])
