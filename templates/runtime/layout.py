"""Regions: the typed parts that a layout divides a buffer into."""

from __future__ import annotations

from math import prod
from typing import Final, NamedTuple

from .device import NULL, DevicePtr

# Bits of one element; fp4_e2m1 packs two in a byte.
DTYPE_BITS: Final[dict[str, int]] = {
    "bool": 8,
    "u8": 8,
    "i8": 8,
    "u16": 16,
    "i16": 16,
    "u32": 32,
    "i32": 32,
    "u64": 64,
    "i64": 64,
    "f16": 16,
    "bf16": 16,
    "f32": 32,
    "f64": 64,
    "fp8_e4m3": 8,
    "fp8_e5m2": 8,
    "fp4_e2m1": 4,
}


class Region(NamedTuple):
    """A part of a buffer.

    ptr: where it begins, NULL when the layout is not bound to memory.
    offset: bytes from the start of the layout.
    nbytes: its size in bytes.
    dtype: element type.
    shape: elements, leading dimension first.
    """

    ptr: DevicePtr
    offset: int
    nbytes: int
    dtype: str
    shape: tuple[int, ...]

    @property
    def end(self) -> int:
        """Bytes from the start of the layout to the end of the region."""
        return self.offset + self.nbytes


def place(base: DevicePtr, offset: int, dtype: str, shape: tuple[int, ...]) -> Region:
    """Return the region of that dtype and shape, `offset` bytes behind `base`."""
    nbytes = (prod(shape) * DTYPE_BITS[dtype] + 7) // 8
    return Region(shift(base, offset), offset, nbytes, dtype, shape)


def shift(base: DevicePtr, offset: int) -> DevicePtr:
    """Return the pointer `offset` bytes behind `base`; NULL for a layout without one.

    An unbound layout has offsets and sizes, and no addresses.
    """
    return base.offset(offset) if base else NULL
