"""Fingerprints of device buffers, for telling two runs apart byte for byte.

The digest covers every byte. The sums read the whole allocation as float32 lanes,
whatever the buffer holds; they show where two digests that differ went apart. They are
made block by block: by numpy where it is installed, in float64, else exactly, which
takes some eighty times as long. The two differ by 1e-14 of `total_abs` at most, and of
`total_squares`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import fsum, isfinite, isnan
from operator import mul
from typing import Literal, NamedTuple

from .backend import GpuBackend
from .device import DevicePtr

_LANE_BYTES = 4
# A block, a multiple of the lane. All that is held at once is one and its lanes, in
# float64 by numpy, or as Python integers, which take 20 times as much.
_CHUNK_BYTES = 1 << 20

# Any finite float32 times this is an integer, which a float64 holds exactly. Sums of
# integers are exact.
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
    """The first 128 bits of the SHA-256 of every byte, in hexadecimal."""
    total: float = 0.0
    """Sum of the finite lanes, to 1e-14 of `total_abs`."""
    total_squares: float = 0.0
    """Sum of the squares of the finite lanes, to 1e-14 of itself."""
    total_abs: float = 0.0
    """Sum of the absolute values of the finite lanes, to 1e-14 of itself."""
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


class _Block(NamedTuple):
    """The sums of the finite lanes of one block, and how many are not finite."""

    total: float = 0.0
    squares: float = 0.0
    absolute: float = 0.0
    nan_lanes: int = 0
    inf_lanes: int = 0


def _read(gpu: GpuBackend, name: str, ptr: DevicePtr, nbytes: int) -> BufferChecksum:
    # Not at the top: they load OpenSSL and more, which only a probe needs.
    from concurrent.futures import ThreadPoolExecutor
    from hashlib import sha256

    digest = sha256()
    add = _adder(min(_CHUNK_BYTES, nbytes) // _LANE_BYTES)
    blocks: list[_Block] = []
    with ThreadPoolExecutor(1) as thread:
        for done in range(0, nbytes, _CHUNK_BYTES):
            chunk = bytearray(min(_CHUNK_BYTES, nbytes - done))
            gpu.copy_d2h(chunk, ptr.offset(done))
            # Neither hashing nor numpy holds the interpreter's lock.
            hashed = thread.submit(digest.update, chunk)
            # A cleared buffer is common, and comparing is far cheaper than adding.
            if chunk != bytes(len(chunk)):
                blocks.append(add(chunk))
            hashed.result()
    return BufferChecksum(
        name,
        nbytes,
        "ok",
        digest=digest.hexdigest()[:32],
        total=fsum(block.total for block in blocks),
        total_squares=fsum(block.squares for block in blocks),
        total_abs=fsum(block.absolute for block in blocks),
        lanes=nbytes // _LANE_BYTES,
        nan_lanes=sum(block.nan_lanes for block in blocks),
        inf_lanes=sum(block.inf_lanes for block in blocks),
    )


def _adder(most: int) -> Callable[[bytearray], _Block]:
    """What adds a block of at most so many lanes: numpy, where it is installed."""
    try:
        import numpy  # type: ignore[import-not-found, unused-ignore]
    except ImportError:
        return _exact
    # One array for all blocks: memory that is new each time costs more than adding.
    room = numpy.empty(most, numpy.float64)

    def fast(chunk: bytearray) -> _Block:
        count = len(chunk) // _LANE_BYTES
        read, lanes = numpy.frombuffer(chunk, "<f4", count), room[:count]
        nans = infs = 0
        with numpy.errstate(invalid="ignore"):
            lanes[:] = read
            total = float(lanes.sum())
        if not isfinite(total):
            # Bytes that are no floats make one lane in 256 a NaN. To leave such lanes
            # out takes longer than to add a 0 for each.
            odd = ~numpy.isfinite(read)
            nans = int(numpy.count_nonzero(numpy.isnan(read)))
            infs = int(numpy.count_nonzero(odd)) - nans
            numpy.copyto(lanes, 0.0, where=odd)
            total = float(lanes.sum())
        numpy.abs(lanes, out=lanes)
        absolute = float(lanes.sum())
        numpy.square(lanes, out=lanes)
        return _Block(total, float(lanes.sum()), absolute, nans, infs)

    return fast


def _exact(chunk: bytearray) -> _Block:
    from struct import unpack_from

    values = list(unpack_from(f"<{len(chunk) // _LANE_BYTES}f", chunk))
    nans = infs = 0
    if not isfinite(sum(values)):
        finite = list(filter(isfinite, values))
        nans = sum(map(isnan, values))
        infs = len(values) - len(finite) - nans
        values = finite
    scaled = list(map(int, map(_SCALE.__mul__, values)))
    return _Block(
        sum(scaled) / 2**_UNIT,
        sum(map(mul, scaled, scaled)) / 2 ** (2 * _UNIT),
        sum(map(abs, scaled)) / 2**_UNIT,
        nans,
        infs,
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
