"""Fingerprints of device buffers, for telling two runs apart byte for byte.

The digest covers every byte. The sums read the whole allocation as float32 lanes,
whatever the buffer holds; they show where two digests that differ went apart.
"""

from __future__ import annotations

import struct
from math import fsum, isfinite, isnan
from operator import mul
from typing import Literal, NamedTuple

from .backend import GpuBackend
from .device import DevicePtr

_LANE_BYTES = 4
_CHUNK_BYTES = 4 << 20


class BufferChecksum(NamedTuple):
    """The fingerprint of one buffer; all but the first three are empty unless ok."""

    name: str
    nbytes: int
    """Bytes of the allocation, all of which were read."""
    state: Literal["ok", "absent", "failed"]
    """Read, not allocated, or not readable."""
    digest: str = ""
    """BLAKE2b-128 of every byte, in hexadecimal."""
    total: float = 0.0
    """Sum of the finite lanes, exact until rounded once."""
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
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        return BufferChecksum(name, nbytes, "failed", error=text)


def _read(gpu: GpuBackend, name: str, ptr: DevicePtr, nbytes: int) -> BufferChecksum:
    from hashlib import blake2b

    digest = blake2b(digest_size=16)
    totals: list[float] = []
    squares: list[float] = []
    absolutes: list[float] = []
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
        totals = _add_exactly(totals, values)
        squares = _add_exactly(squares, list(map(mul, values, values)))
        absolutes = _add_exactly(absolutes, list(map(abs, values)))
    return BufferChecksum(
        name,
        nbytes,
        "ok",
        digest=digest.hexdigest(),
        total=fsum(totals),
        total_squares=fsum(squares),
        total_abs=fsum(absolutes),
        lanes=nbytes // _LANE_BYTES,
        nan_lanes=nan_lanes,
        inf_lanes=inf_lanes,
    )


def _add_exactly(parts: list[float], values: list[float]) -> list[float]:
    """Return a few floats whose sum is that of `parts` and `values`, unrounded.

    Rounding once per chunk would make the result depend on where the chunks end.
    """
    terms = parts + values
    exact = []
    while rest := fsum(terms):
        exact.append(rest)
        terms.append(-rest)
    return exact


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
