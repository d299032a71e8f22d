"""The initial fill of a buffer with a value of its dtype."""

from __future__ import annotations

from .backend import GpuBackend
from .device import DevicePtr
from .errors import SizeError

# A multiple of every pattern length, so that each piece starts with a whole pattern.
_CHUNK_BYTES = 1 << 20


def fill(gpu: GpuBackend, ptr: DevicePtr, pattern: bytes, nbytes: int) -> None:
    """Fill `nbytes` bytes at `ptr` with `pattern`, 1, 2, 4 or 8 bytes, repeated.

    When `nbytes` is not a multiple of the pattern's length, the last repetition is
    cut short. Device work enqueued later sees the filled buffer. Raise SizeError for
    a pattern of another length or a negative `nbytes`.
    """
    width = len(pattern)
    if width not in (1, 2, 4, 8):
        raise SizeError(f"a fill pattern has 1, 2, 4 or 8 bytes, not {width}")
    if nbytes < 0:
        raise SizeError(f"a fill cannot cover {nbytes} bytes")
    if nbytes == 0:
        return
    even = ptr % width == nbytes % width == 0
    if pattern == pattern[:1] * width:
        gpu.memset(ptr, pattern[0], nbytes)
        return
    memset_pattern = getattr(gpu, "memset_pattern", None)
    if width <= 4 and even and memset_pattern is not None:
        memset_pattern(ptr, pattern, nbytes // width)
    else:
        _fill_by_copy(gpu, ptr, pattern, nbytes)


def _fill_by_copy(gpu: GpuBackend, ptr: DevicePtr, pattern: bytes, nbytes: int) -> None:
    repetitions = min(nbytes, _CHUNK_BYTES) // len(pattern) + 1
    chunk = memoryview(pattern * repetitions)
    for done in range(0, nbytes, _CHUNK_BYTES):
        size = min(_CHUNK_BYTES, nbytes - done)
        gpu.copy_h2d(ptr.offset(done), chunk[:size])
