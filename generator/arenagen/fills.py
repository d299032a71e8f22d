"""The initial fill of a buffer, in its dtype's own encoding."""

from __future__ import annotations

import struct

from .model import Buffer, Fill

_FORMATS = {
    "bool": "<?",
    "u8": "<B",
    "i8": "<b",
    "u16": "<H",
    "i16": "<h",
    "u32": "<I",
    "i32": "<i",
    "u64": "<Q",
    "i64": "<q",
    "f16": "<e",
    "f32": "<f",
    "f64": "<d",
}
# Exponent bits, mantissa bits and bias of the 8-bit and 4-bit floats (OCP formats).
_SMALL_FLOATS = {
    "fp8_e4m3": (4, 3, 7, 448.0),
    "fp8_e5m2": (5, 2, 15, 57344.0),
    "fp4_e2m1": (2, 1, 1, 6.0),
}


class FillError(Exception):
    """A value that the dtype cannot hold exactly."""


def fill_pattern(buffer: Buffer) -> bytes:
    """The bytes of one element; b"\\0" for zeros, whatever the dtype.

    Raises FillError for a value that the dtype cannot hold.
    """
    value = buffer.init
    if value is None or value == "zeros":
        return b"\0"
    assert buffer.dtype is not None
    return encode(value, buffer.dtype.name)


def encode(value: Fill, dtype: str) -> bytes:
    """One element of the value, little-endian; two packed ones for fp4_e2m1."""
    number = (
        {"zeros": 0, "ones": 1}.get(value, value) if isinstance(value, str) else value
    )
    assert not isinstance(number, str)
    if dtype in _SMALL_FLOATS:
        code = _small_float(number, dtype)
        return bytes([code * 17 if dtype == "fp4_e2m1" else code])
    if dtype == "bf16":
        # The upper half of an f32.
        single = _packed(number, "<f", dtype)
        if single[:2] != b"\0\0":
            raise FillError(f"{number} is not exact in bf16")
        return single[2:]
    return _packed(number, _FORMATS[dtype], dtype)


def _packed(number: int | float, form: str, dtype: str) -> bytes:
    try:
        packed = struct.pack(form, number)
    except (struct.error, OverflowError):
        raise FillError(f"{number} does not fit {dtype}") from None
    if struct.unpack(form, packed)[0] != number:
        raise FillError(f"{number} is not exact in {dtype}")
    return packed


def _small_float(number: int | float, dtype: str) -> int:
    exponent_bits, mantissa_bits, bias, largest = _SMALL_FLOATS[dtype]
    for code in range(1 << (exponent_bits + mantissa_bits)):
        exponent, mantissa = divmod(code, 1 << mantissa_bits)
        fraction = mantissa / (1 << mantissa_bits)
        if exponent == 0:
            value = fraction * 2.0 ** (1 - bias)
        else:
            value = (1 + fraction) * 2.0 ** (exponent - bias)
        if value == abs(number) and value <= largest:
            sign = 1 << (exponent_bits + mantissa_bits)
            return code | (sign if number < 0 else 0)
    raise FillError(f"{number} is not exact in {dtype}")
