"""The checksum probe of a host arena, against the fastest digest of the same bytes.

Both in CPU time: where a second core is free, the probe takes little longer.
"""

from __future__ import annotations

import hashlib

import numpy
from common import Row, calls, pairs

from metrale_arena import HostBackend
from metrale_arena.runtime.checksum import checksum_buffer

NBYTES = 256 << 20


def rows() -> list[Row]:
    """One figure: digest and sums of random lanes."""
    gpu = HostBackend(2 * NBYTES)
    ptr = gpu.alloc(NBYTES)
    lanes = numpy.random.default_rng(1).standard_normal(NBYTES // 4, numpy.float32)
    data = lanes.tobytes()
    gpu.copy_h2d(ptr, data)

    def ours() -> object:
        return checksum_buffer(gpu, "buffer", ptr, NBYTES)

    def digest() -> object:
        return hashlib.sha256(data).digest()

    return [
        pairs(
            f"`checksum_buffer`, {NBYTES >> 20} MiB on the host",
            "`hashlib.sha256` alone",
            calls(ours),
            calls(digest),
            2.0,
            7,
        )
    ]
