"""Fingerprints of device buffers, for telling two runs apart byte for byte.

The digest covers every byte. The sums read the whole allocation as float32 lanes,
whatever the buffer holds; they show where two digests that differ went apart.
"""

from __future__ import annotations

import struct
from math import isfinite, isnan
from operator import mul
from typing import Literal, NamedTuple

from .backend import GpuBackend
from .device import DevicePtr

_LANE_BYTES = 4
# A multiple of the lane; one piece of lanes as Python integers takes 20 times as much.
_CHUNK_BYTES = 1 << 20

# Any finite float32 times this is an integer, which a float64 holds exactly. Sums of
# integers are exact, so they do not depend on where the pieces end.
_UNIT = 149
_SCALE = 2.0**_UNIT


class BufferChecksum(NamedTuple):
    """The fingerprint of one buffer.

    Of a buffer that is absent or failed, everything that reading gives is empty or 0.
    """

    name: str
    nbytes: int
    """Bytes of the allocation."""
    state: Literal["ok", "absent", "failed"]
    """Read, not allocated, or not readable."""
    digest: str = ""
    """BLAKE2b-128 of every byte, in hexadecimal."""
    total: float = 0.0
    """Sum of the finite lanes, rounded once."""
    total_squares: float = 0.0
    """Sum of the squares of the finite lanes, rounded once."""
    total_abs: float = 0.0
    """Sum of the absolute values of the finite lanes, rounded once."""
    lanes: int = 0
    """Little-endian float32 lanes; up to 3 bytes at the end belong to none."""
    nan_lanes: int = 0
    inf_lanes: int = 0
    error: str | None = None
    """Why the buffer could not be read."""


class ChecksumReport(NamedTuple):
    """The fingerprints of an arena's buffers at one moment, which `tag` names."""

    tag: str
    buffers: tuple[BufferChecksum, ...]

    def __str__(self) -> str:
        names = max((len(buffer.name) for buffer in self.buffers), default=0)
        sizes = max((len(str(buffer.nbytes)) for buffer in self.buffers), default=0)
        lines = [f"checksum {self.tag}"]
        for buffer in self.buffers:
            start = f"  {buffer.name:<{names}}  {buffer.nbytes:>{sizes}} bytes  "
            lines.append((start + _result_text(buffer)).rstrip())
        return "\n".join(lines)


def checksum_buffer(
    gpu: GpuBackend, name: str, ptr: DevicePtr, nbytes: int
) -> BufferChecksum:
    """Read `nbytes` bytes at `ptr` in pieces and return their fingerprint.

    A NULL or empty buffer is absent, and nothing is read. An error of the backend
    makes a failed fingerprint instead of being raised. Work pending on a stream is
    not waited for.
    """
    if not ptr or not nbytes:
        return BufferChecksum(name, nbytes, "absent")
    try:
        return _read(gpu, name, ptr, nbytes)
    except Exception as error:  # noqa: BLE001
        text = f"{type(error).__name__}: {error}"
        return BufferChecksum(name, nbytes, "failed", error=text)


def _read(gpu: GpuBackend, name: str, ptr: DevicePtr, nbytes: int) -> BufferChecksum:
    # Not at the top: it loads OpenSSL, which only a probe needs.
    from hashlib import blake2b

    digest = blake2b(digest_size=16)
    total = 0
    total_squares = 0
    total_abs = 0
    nan_lanes = 0
    inf_lanes = 0
    for done in range(0, nbytes, _CHUNK_BYTES):
        chunk = bytearray(min(_CHUNK_BYTES, nbytes - done))
        gpu.copy_d2h(chunk, ptr.offset(done))
        digest.update(chunk)
        # A cleared buffer is common, and comparing is far cheaper than adding.
        if chunk == bytes(len(chunk)):
            continue
        values = list(struct.unpack_from(f"<{len(chunk) // _LANE_BYTES}f", chunk))
        if not isfinite(sum(values)):
            finite = list(filter(isfinite, values))
            nans = sum(map(isnan, values))
            nan_lanes += nans
            inf_lanes += len(values) - len(finite) - nans
            values = finite
        scaled = list(map(int, map(_SCALE.__mul__, values)))
        total += sum(scaled)
        total_squares += sum(map(mul, scaled, scaled))
        total_abs += sum(map(abs, scaled))
    return BufferChecksum(
        name,
        nbytes,
        "ok",
        digest=digest.hexdigest(),
        total=total / 2**_UNIT,
        total_squares=total_squares / 2 ** (2 * _UNIT),
        total_abs=total_abs / 2**_UNIT,
        lanes=nbytes // _LANE_BYTES,
        nan_lanes=nan_lanes,
        inf_lanes=inf_lanes,
    )


def _result_text(buffer: BufferChecksum) -> str:
    if buffer.state == "absent":
        return "absent"
    if buffer.state == "failed":
        return "failed  " + " ".join((buffer.error or "").split())
    return (
        f"{buffer.digest}  sum {buffer.total:+.9e}  squares {buffer.total_squares:.9e}"
        f"  abs {buffer.total_abs:.9e}  lanes {buffer.lanes}"
        f"  nan {buffer.nan_lanes}  inf {buffer.inf_lanes}"
    )
