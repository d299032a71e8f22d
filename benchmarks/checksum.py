"""The checksum probe of a host arena, against the fastest digest of the same bytes.

The probe hashes in a thread beside the sums. So both are here: CPU time, which counts
what both threads do, and the clock, which a free second core makes shorter.
"""

from __future__ import annotations

import ctypes
import hashlib
from time import perf_counter, process_time

import numpy
from common import Row, calls, pairs

from metrale_arena import HostBackend
from metrale_arena.runtime.checksum import checksum_buffer

NBYTES = 1 << 30
_PIECE = 16 << 20
_TRIED = 64 << 20
COUNT = 7


def fastest(data: memoryview) -> str:
    """The digest of the standard library that takes the least CPU time here."""
    names = sorted(
        name
        for name in hashlib.algorithms_guaranteed
        if not name.startswith("shake")  # they have no length of their own
    )
    return min(names, key=lambda name: calls(lambda: hashlib.new(name, data), 3)())


def rows() -> list[Row]:
    """Digest and sums of random floats, by both clocks."""
    gpu = HostBackend(NBYTES)
    ptr = gpu.alloc(NBYTES)
    lanes = numpy.random.default_rng(1).standard_normal(_PIECE // 4, numpy.float32)
    for offset in range(0, NBYTES, _PIECE):
        gpu.copy_h2d(ptr.offset(offset), lanes.tobytes())
    data = memoryview((ctypes.c_char * NBYTES).from_address(ptr)).cast("B")
    name = fastest(data[:_TRIED])

    def ours() -> object:
        return checksum_buffer(gpu, "buffer", ptr, NBYTES)

    def digest() -> object:
        return hashlib.new(name, data).digest()

    return [
        pairs(
            f"`checksum_buffer` with numpy, {NBYTES >> 30} GiB of floats, {how}",
            f"`hashlib.{name}` alone, the fastest here",
            calls(ours, clock=clock),
            calls(digest, clock=clock),
            2.0,
            COUNT,
        )
        for how, clock in (("CPU time", process_time), ("by the clock", perf_counter))
    ]
