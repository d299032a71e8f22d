"""A backend on host memory: the embedded default, and a checker for tests.

It refuses every call that would read or write outside a live allocation. Addresses
are real, so ctypes and numpy can look at them while the allocation lives.
"""

from __future__ import annotations

import mmap
import os
import sys
from bisect import bisect_left, bisect_right, insort
from ctypes import addressof, c_char, memmove, memset
from threading import RLock
from typing import TYPE_CHECKING, NoReturn

from .backend import Stream
from .device import DevicePtr
from .errors import BackendError, ConfigError, OutOfMemoryError
from .numeric import check_int

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_FREED_REMEMBERED = 1024

# Linux refuses to map more than it could back in full, unless told not to reserve.
# Python names the flag from 3.13 on; this is its value on x86 and Arm.
_MAP_NORESERVE = 0x4000


class HostBackend:
    """A GpuBackend on host memory, where all work is done at once.

    Memory takes physical pages only where it is touched, and starts as zeros, which
    device memory does not. A freed address may be given out again. Safe to share
    between threads.
    """

    def __init__(self, total_memory: int | None = None) -> None:
        """Offer `total_memory` bytes, or as many as the machine has."""
        self._total = (
            _physical_memory()
            if total_memory is None
            else check_int("total_memory", total_memory)
        )
        # Reentrant: a finalizer that frees may run in the middle of any call.
        self._lock = RLock()
        self._bases: list[int] = []
        self._blocks: dict[int, mmap.mmap] = {}
        self._freed: dict[int, int] = {}
        self._live_bytes = 0
        self._peak_bytes = 0

    def __reduce__(self) -> NoReturn:
        raise TypeError("a backend is neither copied nor pickled")

    @property
    def dlpack_device(self) -> tuple[int, int]:
        """The device as DLPack numbers it."""
        return 1, 0

    @property
    def live_bytes(self) -> int:
        """Bytes allocated now."""
        return self._live_bytes

    @property
    def live_allocations(self) -> int:
        """Number of allocations that have not been freed."""
        return len(self._blocks)

    @property
    def peak_bytes(self) -> int:
        """The most bytes that were allocated at one time."""
        return self._peak_bytes

    def alloc(self, nbytes: int) -> DevicePtr:
        """Return the address of `nbytes` > 0 new bytes, page-aligned."""
        if nbytes <= 0:
            raise BackendError(
                f"alloc: {nbytes} bytes asked; an allocation has at least 1 byte, "
                "leave an empty buffer NULL"
            )
        with self._lock:
            free = self._total - self._live_bytes
            if nbytes > free:
                raise OutOfMemoryError(nbytes, free, self._total)
            try:
                block = _map_pages(nbytes)
            except (OSError, OverflowError) as error:
                raise OutOfMemoryError(nbytes, free, self._total) from error
            address = addressof(c_char.from_buffer(block))
            self._blocks[address] = block
            insort(self._bases, address)
            self._live_bytes += nbytes
            self._peak_bytes = max(self._peak_bytes, self._live_bytes)
            return DevicePtr(address)

    def free(self, ptr: DevicePtr) -> None:
        """Give back an allocation, named by the address that `alloc` returned."""
        with self._lock:
            block = self._blocks.pop(ptr, None)
            if block is None:
                base = self._check_range("free", ptr, 1)
                raise BackendError(
                    f"free: {ptr:#x} is {ptr - base} bytes into the allocation at "
                    f"{base:#x}; free takes the address that alloc returned"
                )
            nbytes = len(block)
            del self._bases[bisect_left(self._bases, ptr)]
            self._live_bytes -= nbytes
            self._freed[int(ptr)] = nbytes
            if len(self._freed) > _FREED_REMEMBERED:
                del self._freed[next(iter(self._freed))]
            block.close()

    def memset(self, ptr: DevicePtr, value: int, nbytes: int) -> None:
        """Set `nbytes` bytes to `value`, 0 to 255."""
        self._set("memset", ptr, value, nbytes)

    def memset_async(
        self, ptr: DevicePtr, value: int, nbytes: int, stream: Stream
    ) -> None:
        """Do what `memset` does, at once, whatever the stream."""
        self._set("memset_async", ptr, value, nbytes)

    def memset_pattern(self, ptr: DevicePtr, pattern: bytes, count: int) -> None:
        """Write `pattern`, of 1, 2 or 4 bytes, `count` times end to end."""
        width = len(pattern)
        if width not in (1, 2, 4):
            raise BackendError(
                f"memset_pattern: a pattern of {width} bytes; it has 1, 2 or 4, "
                "copy anything else with copy_h2d"
            )
        if ptr % width:
            raise BackendError(
                f"memset_pattern: {ptr:#x} is not a multiple of the pattern's "
                f"{width} bytes"
            )
        nbytes = width * count
        with self._lock:
            self._check_range("memset_pattern", ptr, nbytes)
            done = min(width, nbytes)
            memmove(ptr, pattern, done)
            while done < nbytes:
                size = min(done, nbytes - done)
                memmove(ptr + done, ptr, size)
                done += size

    def copy_h2d(self, dst: DevicePtr, src: ReadableBuffer) -> None:
        """Copy all bytes of `src`, a contiguous bytes-like object."""
        with memoryview(src) as view, self._lock:
            _check_contiguous("copy_h2d: src", view)
            base = self._check_range("copy_h2d", dst, view.nbytes)
            start = dst - base
            self._blocks[base][start : start + view.nbytes] = src

    def copy_d2h(self, dst: WriteableBuffer, src: DevicePtr) -> None:
        """Fill `dst`, a contiguous writable bytes-like object."""
        with memoryview(dst) as view, self._lock:
            _check_contiguous("copy_d2h: dst", view)
            if view.readonly:
                raise BackendError("copy_d2h: dst is read-only; pass a writable one")
            self._check_range("copy_d2h", src, view.nbytes)
            if view.nbytes:
                memmove(addressof(c_char.from_buffer(dst)), src, view.nbytes)

    def copy_d2d(self, dst: DevicePtr, src: DevicePtr, nbytes: int) -> None:
        """Copy `nbytes` bytes between two ranges that do not overlap."""
        with self._lock:
            self._check_range("copy_d2d: src", src, nbytes)
            self._check_range("copy_d2d: dst", dst, nbytes)
            if abs(dst - src) < nbytes:
                raise BackendError(
                    f"copy_d2d: {nbytes} bytes at {src:#x} and at {dst:#x} "
                    "overlap; copy through a third buffer"
                )
            memmove(dst, src, nbytes)

    def synchronize(self, stream: Stream) -> None:
        """Return, as no work is ever pending."""

    @property
    def default_stream(self) -> Stream:
        """A token that stands for the only stream."""
        return 0

    def total_memory(self) -> int:
        """Return the bytes of memory that the backend offers."""
        return self._total

    def free_memory(self) -> int:
        """Return the bytes that are not allocated."""
        return self._total - self._live_bytes

    def _set(self, operation: str, ptr: DevicePtr, value: int, nbytes: int) -> None:
        if not 0 <= value <= 255:
            raise BackendError(f"{operation}: {value} is not a byte, 0 to 255")
        with self._lock:
            self._check_range(operation, ptr, nbytes)
            memset(ptr, value, nbytes)

    def _check_range(self, operation: str, ptr: DevicePtr, nbytes: int) -> int:
        """Return the base of the allocation that holds the range, or raise."""
        if nbytes < 0:
            raise BackendError(f"{operation}: a range cannot have {nbytes} bytes")
        place = bisect_right(self._bases, ptr) - 1
        if place >= 0:
            base = self._bases[place]
            end = base + len(self._blocks[base])
            if ptr + nbytes <= end:
                return base
            if ptr < end:
                raise BackendError(
                    f"{operation}: {nbytes} bytes at {ptr:#x} end "
                    f"{ptr + nbytes - end} bytes past the allocation of {end - base} "
                    f"bytes at {base:#x}"
                )
        raise self._unknown(operation, ptr)

    def _unknown(self, operation: str, ptr: DevicePtr) -> BackendError:
        if not ptr:
            return BackendError(
                f"{operation}: the pointer is NULL; a buffer that is gated off or "
                "released has no memory"
            )
        for base, nbytes in self._freed.items():
            if base <= ptr < base + nbytes:
                return BackendError(
                    f"{operation}: {ptr:#x} is in the allocation of {nbytes} bytes "
                    f"at {base:#x}, which was already freed"
                )
        return BackendError(
            f"{operation}: {ptr:#x} is in no allocation of this backend; use an "
            "address that its alloc returned, or one inside that allocation"
        )


def _check_contiguous(what: str, view: memoryview) -> None:
    if not view.c_contiguous:
        raise BackendError(f"{what} is not contiguous; pass a contiguous copy")


def _map_pages(nbytes: int) -> mmap.mmap:
    if sys.platform == "win32":
        return mmap.mmap(-1, nbytes)
    flags = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS
    if sys.platform == "linux":
        flags |= _MAP_NORESERVE
    return mmap.mmap(-1, nbytes, flags=flags)


def _physical_memory() -> int:
    try:
        return os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    except (AttributeError, ValueError, OSError) as error:
        raise ConfigError(
            "total_memory: this system does not tell how much it has; pass it"
        ) from error
