"""DLPack capsules, built with ctypes.

Takes an address and what lies there; returns the PyCapsule that an array library's
`from_dlpack` consumes. A capsule owns only its own description of the memory, one block
of C memory, so no C code ever calls back into Python: the deleter is `PyMem_RawFree`
itself, which any thread may call, with or without the GIL and after the interpreter is
gone. The structures and their fields have the names of `dlpack.h`.
"""

from __future__ import annotations

from collections import deque
from ctypes import (
    PYFUNCTYPE,
    Structure,
    c_char_p,
    c_int32,
    c_int64,
    c_size_t,
    c_uint8,
    c_uint16,
    c_uint32,
    c_uint64,
    c_void_p,
    cast,
    memmove,
    py_object,
    pythonapi,
    sizeof,
)
from sys import getrefcount
from typing import Final

# DLDataTypeCode, bits and lanes. Two elements of fp4_e2m1 leave as one of two lanes,
# the form that torch takes, so that an element of a capsule is never less than a byte.
DTYPES: Final[dict[str, tuple[int, int, int]]] = {
    "bool": (6, 8, 1),
    "u8": (1, 8, 1),
    "i8": (0, 8, 1),
    "u16": (1, 16, 1),
    "i16": (0, 16, 1),
    "u32": (1, 32, 1),
    "i32": (0, 32, 1),
    "u64": (1, 64, 1),
    "i64": (0, 64, 1),
    "f16": (2, 16, 1),
    "bf16": (4, 16, 1),
    "f32": (2, 32, 1),
    "f64": (2, 64, 1),
    "fp8_e4m3": (10, 8, 1),
    "fp8_e5m2": (12, 8, 1),
    "fp4_e2m1": (17, 4, 2),
}

# The first with the type codes of fp8 and fp4.
_VERSION: Final = (1, 1)

_LEGACY: Final = b"dltensor"
_VERSIONED: Final = b"dltensor_versioned"


class DLDevice(Structure):
    """Where memory lies: a KDL_ type, and which one of that type."""

    _fields_ = (("device_type", c_int32), ("device_id", c_int32))


class DLDataType(Structure):
    """An element: `lanes` values of `bits` bits each."""

    _fields_ = (("code", c_uint8), ("bits", c_uint8), ("lanes", c_uint16))


class DLTensor(Structure):
    """An array; shape and strides count elements, byte_offset counts bytes."""

    _fields_ = (
        ("data", c_void_p),
        ("device", DLDevice),
        ("ndim", c_int32),
        ("dtype", DLDataType),
        ("shape", c_void_p),
        ("strides", c_void_p),
        ("byte_offset", c_uint64),
    )


class DLManagedTensor(Structure):
    """What a capsule named "dltensor" points to, the only one before DLPack 1.0."""

    _fields_ = (
        ("dl_tensor", DLTensor),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
    )


class DLPackVersion(Structure):
    """The DLPack version that a structure conforms to."""

    _fields_ = (("major", c_uint32), ("minor", c_uint32))


class DLManagedTensorVersioned(Structure):
    """What a capsule named "dltensor_versioned" points to, since DLPack 1.0."""

    _fields_ = (
        ("version", DLPackVersion),
        ("manager_ctx", c_void_p),
        ("deleter", c_void_p),
        ("flags", c_uint64),
        ("dl_tensor", DLTensor),
    )


# Prototypes of our own: those of ctypes.pythonapi are shared with the whole process.
_raw_calloc = PYFUNCTYPE(c_void_p, c_size_t, c_size_t)(("PyMem_RawCalloc", pythonapi))
_raw_free = PYFUNCTYPE(None, c_void_p)(("PyMem_RawFree", pythonapi))
_capsule_new = PYFUNCTYPE(py_object, c_void_p, c_void_p, c_void_p)(
    ("PyCapsule_New", pythonapi)
)
_capsule_name = PYFUNCTYPE(c_char_p, py_object)(("PyCapsule_GetName", pythonapi))
_capsule_pointer = PYFUNCTYPE(c_void_p, py_object, c_char_p)(
    ("PyCapsule_GetPointer", pythonapi)
)

_DELETER: Final = cast(_raw_free, c_void_p).value

# Capsules that may not be consumed yet, the oldest first.
_pending: deque[object] = deque()


def new_capsule(
    address: int,
    dtype: str,
    shape: tuple[int, ...],
    strides: tuple[int, ...],
    device: tuple[int, int],
    *,
    versioned: bool,
) -> object:
    """Return a capsule of the array at `address`, writable and not copied.

    dtype: a key of DTYPES.
    shape, strides: in elements, which for fp4_e2m1 are pairs.
    device: DLDeviceType and number.
    versioned: whether the consumer takes DLManagedTensorVersioned.

    The capsule keeps nothing alive. Its description is freed by the consumer through
    the deleter; that of a capsule which nobody consumed, by a later call of this.
    """
    _reclaim()
    kind = DLManagedTensorVersioned if versioned else DLManagedTensor
    name = (_VERSIONED if versioned else _LEGACY) + b"\0"
    dims = (c_int64 * (2 * len(shape)))(*shape, *strides)
    shape_at = sizeof(kind)
    strides_at = shape_at + sizeof(dims) // 2
    name_at = shape_at + sizeof(dims)
    block = _raw_calloc(1, name_at + len(name))
    if block is None:
        raise MemoryError
    try:
        memmove(block + shape_at, dims, sizeof(dims))
        memmove(block + name_at, name, len(name))
        managed = kind.from_address(block)
        managed.deleter = _DELETER
        managed.dl_tensor = DLTensor(
            data=address,
            device=DLDevice(*device),
            ndim=len(shape),
            dtype=DLDataType(*DTYPES[dtype]),
            shape=block + shape_at,
            strides=block + strides_at,
        )
        if isinstance(managed, DLManagedTensorVersioned):
            managed.version = DLPackVersion(*_VERSION)
        capsule: object = _capsule_new(block, block + name_at, None)
    except BaseException:
        _raw_free(block)
        raise
    _pending.append(capsule)
    return capsule


def _reclaim() -> None:
    """Free the descriptions of capsules that were dropped without being consumed.

    This stands in for a capsule destructor. One that ctypes makes would run Python code
    while the consumer's exception is set, if it is an exception that drops the capsule,
    and that exception would be lost.
    """
    # Two leave for one that comes, so that held ones cannot make a call slow.
    for _ in range(2):
        try:
            pair = (_pending.popleft(), object())
        except IndexError:
            return
        # Counted before the name is read: a capsule that nobody else holds, as nobody
        # else holds the other object, cannot be consumed any more.
        held, alone = map(getrefcount, pair)
        capsule = pair[0]
        name = _capsule_name(capsule)
        if name not in (_LEGACY, _VERSIONED):
            continue
        if held == alone:
            _raw_free(_capsule_pointer(capsule, name))
        else:
            _pending.append(capsule)
