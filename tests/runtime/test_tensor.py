"""Views: what each form of export says, shares, refuses, and leaves behind.

Capsules are read here with struct and ctypes, by the layout of dlpack.h, and not with
the structures of the package.
"""

import copy
import ctypes
import gc
import os
import pickle
import struct
import subprocess
import sys
import threading
import tracemalloc
import weakref
from collections.abc import Callable, Iterator
from enum import IntEnum
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import pytest

import runtime
from runtime import dlpack
from runtime.device import NULL, DevicePtr
from runtime.errors import ArenaError, LayoutError, ReleasedError
from runtime.host import HostBackend
from runtime.layout import DTYPE_BITS
from runtime.tensor import TensorView, ViewError

HOST = (1, 0)
CUDA = (2, 3)


class Element(NamedTuple):
    """What a dtype is elsewhere, and how a few of its values are encoded."""

    code: int
    bits: int
    lanes: int
    typestr: str | None
    numpy: str
    torch: str
    values: tuple[float, ...]
    encoded: str


ELEMENTS = {
    "bool": Element(6, 8, 1, "|b1", "bool", "bool", (1, 0, 0, 1), "01000001"),
    "u8": Element(1, 8, 1, "|u1", "uint8", "uint8", (1, 255), "01ff"),
    "i8": Element(0, 8, 1, "|i1", "int8", "int8", (1, -2), "01fe"),
    "u16": Element(1, 16, 1, "<u2", "uint16", "uint16", (1, 65534), "0100feff"),
    "i16": Element(0, 16, 1, "<i2", "int16", "int16", (1, -2), "0100feff"),
    "u32": Element(1, 32, 1, "<u4", "uint32", "uint32", (2**31, 1), "0000008001000000"),
    "i32": Element(0, 32, 1, "<i4", "int32", "int32", (1, -2), "01000000feffffff"),
    "u64": Element(
        1,
        64,
        1,
        "<u8",
        "uint64",
        "uint64",
        (1, 2),
        "0100000000000000" + "02" + "00" * 7,
    ),
    "i64": Element(
        0, 64, 1, "<i8", "int64", "int64", (-1, 2), "ff" * 8 + "02" + "00" * 7
    ),
    "f16": Element(2, 16, 1, "<f2", "float16", "float16", (1.5, -2), "003e00c0"),
    "bf16": Element(4, 16, 1, None, "bfloat16", "bfloat16", (1.5, -2), "c03f00c0"),
    "f32": Element(
        2, 32, 1, "<f4", "float32", "float32", (1.5, -2), "0000c03f000000c0"
    ),
    "f64": Element(
        2,
        64,
        1,
        "<f8",
        "float64",
        "float64",
        (1.5, -2),
        "00" * 6 + "f83f" + "00" * 7 + "c0",
    ),
    "fp8_e4m3": Element(
        10, 8, 1, None, "float8_e4m3fn", "float8_e4m3fn", (1.5, -2), "3cc0"
    ),
    "fp8_e5m2": Element(
        12, 8, 1, None, "float8_e5m2", "float8_e5m2", (1.5, -2), "3ec0"
    ),
    # 1.5, -2, 0.5, 6, two to a byte, the first in the low bits.
    "fp4_e2m1": Element(
        17, 4, 2, None, "uint8", "float4_e2m1fn_x2", (0xC3, 0x71), "c371"
    ),
}
UNPACKED = [name for name in ELEMENTS if name != "fp4_e2m1"]
ML_DTYPES = ["bf16", "fp8_e4m3", "fp8_e5m2"]
NUMPY_OWN = [name for name in UNPACKED if name not in ML_DTYPES]


class Arena:
    """Stands in for an arena: memory that a view may not outlive."""

    def __init__(self) -> None:
        self.gpu = HostBackend(1 << 20)
        self.released = False

    def check(self) -> None:
        if self.released:
            raise ReleasedError("buffer arena", "a view of hidden_states")

    def view(
        self, dtype: str, shape: tuple[int, ...], content: bytes = b""
    ) -> TensorView:
        ptr = self.gpu.alloc(4096)
        self.gpu.copy_h2d(ptr, content)
        return make(ptr, dtype, shape, check=self.check)

    def read(self, view: TensorView) -> bytes:
        content = bytearray(view.nbytes)
        self.gpu.copy_d2h(content, view.ptr)
        return bytes(content)


def make(
    ptr: int,
    dtype: str = "f32",
    shape: tuple[int, ...] = (2, 3),
    device: tuple[int, int] = HOST,
    check: Callable[[], None] = lambda: None,
) -> TensorView:
    return TensorView(
        name="hidden_states",
        ptr=DevicePtr(ptr),
        dtype=dtype,
        shape=shape,
        device=device,
        check=check,
    )


@pytest.fixture
def arena() -> Arena:
    return Arena()


@pytest.fixture
def np() -> ModuleType:
    return pytest.importorskip("numpy", reason="numpy is not installed")


@pytest.fixture
def ml_dtypes() -> ModuleType:
    return pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")


@pytest.fixture
def torch() -> ModuleType:
    return pytest.importorskip("torch", reason="torch is not installed")


def sample(arena: Arena, dtype: str) -> TensorView:
    """A view of shape [1, n] that holds the values of ELEMENTS."""
    element = ELEMENTS[dtype]
    count = len(element.values) * element.lanes
    return arena.view(dtype, (1, count), bytes.fromhex(element.encoded))


# What dlpack.h lays down.

DL_TENSOR = "QiiiBBHQQQ"
LEGACY = struct.Struct(DL_TENSOR + "QQ")
VERSIONED = struct.Struct("IIQQQ" + DL_TENSOR)

api = ctypes.pythonapi
capsule_is_valid = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_IsValid", api)
)
capsule_pointer = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_GetPointer", api)
)
capsule_set_name = ctypes.PYFUNCTYPE(ctypes.c_int, ctypes.py_object, ctypes.c_char_p)(
    ("PyCapsule_SetName", api)
)
# A CFUNCTYPE calls without the GIL.
Deleter = ctypes.CFUNCTYPE(None, ctypes.c_void_p)

USED = b"used_dltensor"


class Exported(NamedTuple):
    """The content of a capsule."""

    at: int
    version: tuple[int, int] | None
    flags: int
    context: int
    deleter: int
    data: int
    device: tuple[int, int]
    dtype: tuple[int, int, int]
    shape: tuple[int, ...]
    strides: tuple[int, ...]
    byte_offset: int


def inspect(capsule: object) -> Exported:
    version = None
    flags = 0
    if capsule_is_valid(capsule, b"dltensor"):
        at = capsule_pointer(capsule, b"dltensor")
        fields = LEGACY.unpack(ctypes.string_at(at, LEGACY.size))
        tensor, (context, deleter) = fields[:10], fields[10:]
    else:
        at = capsule_pointer(capsule, b"dltensor_versioned")
        fields = VERSIONED.unpack(ctypes.string_at(at, VERSIONED.size))
        version, (context, deleter, flags) = fields[:2], fields[2:5]
        tensor = fields[5:]
    data, kind, number, ndim, code, bits, lanes, shape, strides, byte_offset = tensor
    return Exported(
        at,
        version,
        flags,
        context,
        deleter,
        data,
        (kind, number),
        (code, bits, lanes),
        tuple((ctypes.c_int64 * ndim).from_address(shape)),
        tuple((ctypes.c_int64 * ndim).from_address(strides)),
        byte_offset,
    )


class Holder:
    """Hands out one capsule, as often as it is asked."""

    def __init__(self, capsule: object, device: tuple[int, int] = HOST) -> None:
        self.capsule = capsule
        self.device = device

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device

    def __dlpack__(self, **_: object) -> object:
        return self.capsule


@pytest.fixture
def live_blocks() -> Iterator[Callable[[], int]]:
    """Counts the capsule descriptions that were allocated and not freed."""
    source = Path(dlpack.__file__).read_text().splitlines()
    (line,) = (
        number
        for number, text in enumerate(source, start=1)
        if "block = _raw_calloc(" in text
    )
    only = tracemalloc.Filter(True, dlpack.__file__, line)
    dlpack._pending.clear()
    tracemalloc.start()

    def count() -> int:
        gc.collect()
        snapshot = tracemalloc.take_snapshot().filter_traces((only,))
        return len(snapshot.traces)

    yield count
    tracemalloc.stop()


# The view itself.


def test_the_table_is_complete() -> None:
    assert ELEMENTS.keys() == DTYPE_BITS.keys() == dlpack.DTYPES.keys()


def test_attributes() -> None:
    view = make(0x1000, "bf16", (2, 3, 4))
    assert view.name == "hidden_states"
    assert view.dtype == "bf16"
    assert view.shape == (2, 3, 4)
    assert view.strides == (12, 4, 1)
    assert (view.ndim, view.size, view.nbytes, len(view)) == (3, 24, 48, 2)
    assert view.ptr == 0x1000
    assert type(view.ptr) is DevicePtr
    assert view.__dlpack_device__() == (1, 0)
    assert not hasattr(view, "__dict__")


def test_packed_elements_round_up_to_a_byte() -> None:
    assert make(0x1000, "fp4_e2m1", (3, 3)).nbytes == 5


def test_no_dimensions() -> None:
    view = make(0x1000, "f32", ())
    assert (view.strides, view.ndim, view.size, view.nbytes) == ((), 0, 1, 4)
    with pytest.raises(TypeError) as caught:
        len(view)
    assert str(caught.value) == "hidden_states: a view without dimensions has no length"


def test_null_is_refused() -> None:
    with pytest.raises(LayoutError) as caught:
        make(NULL, "bf16", (7, 4))
    assert caught.value.buffer == "hidden_states"
    assert str(caught.value) == (
        "hidden_states: no room for bf16 [7, 4] (56 bytes): it is not allocated in "
        "this arena (0 bytes)"
    )


@pytest.mark.parametrize("shape", [(0, 4), (4, 0)])
@pytest.mark.parametrize("ptr", [0, 0x1000])
def test_size_0_needs_no_memory(ptr: int, shape: tuple[int, ...]) -> None:
    view = make(ptr, "f32", shape, CUDA)
    assert (view.ptr, view.size, view.nbytes, len(view)) == (ptr, 0, 0, shape[0])
    exported = inspect(view.__dlpack__())
    assert (exported.data, exported.shape) == (0, shape)
    assert view.__cuda_array_interface__["data"] == (0, False)
    assert view.__cuda_array_interface__["shape"] == shape


def test_repr() -> None:
    assert repr(make(0x1000, "bf16", (7, 1024), CUDA)) == (
        "<TensorView hidden_states: bf16 [7, 1024], 14.00 KiB (14336 bytes) at 0x1000, "
        "cuda:3>"
    )
    assert repr(make(0x1000, "u8", ())) == (
        "<TensorView hidden_states: u8 [], 1 byte at 0x1000, host>"
    )


@pytest.mark.parametrize("how", [pickle.dumps, copy.copy, copy.deepcopy])
def test_pickle_and_copy_are_refused(how: Callable[[object], object]) -> None:
    with pytest.raises(TypeError) as caught:
        how(make(0x1000))
    assert str(caught.value) == (
        "hidden_states: a view cannot be pickled or copied, as it points into the "
        "arena's memory; copy the content"
    )


USES: list[Callable[[TensorView], object]] = [
    lambda view: view.ptr,
    lambda view: view.__dlpack__(),
    lambda view: view.__dlpack__(copy=True),
    lambda view: view.__dlpack_device__(),
    lambda view: view.numpy(),
]


@pytest.mark.parametrize("use", USES)
def test_use_after_release(arena: Arena, use: Callable[[TensorView], object]) -> None:
    view = arena.view("f32", (2, 3))
    arena.released = True
    with pytest.raises(ReleasedError, match="a view of hidden_states after release"):
        use(view)
    assert repr(view).startswith("<TensorView hidden_states: f32 [2, 3], 24 bytes at")
    assert (len(view), view.shape, view.nbytes) == (2, (2, 3), 24)


def test_cuda_array_interface_after_release(arena: Arena) -> None:
    view = make(0x1000, device=CUDA, check=arena.check)
    assert hasattr(view, "__cuda_array_interface__")
    arena.released = True
    with pytest.raises(ReleasedError, match="hidden_states"):
        _ = view.__cuda_array_interface__


def test_consumers_see_the_release(arena: Arena, np: ModuleType) -> None:
    view = arena.view("f32", (2, 3))
    arena.released = True
    with pytest.raises(ReleasedError, match="hidden_states"):
        np.from_dlpack(view)


# DLPack: what a capsule says.


@pytest.mark.parametrize("max_version", [None, (0, 8), (1, 0), (1, 1), (1, 9), (2, 0)])
def test_capsule_versions(max_version: tuple[int, int] | None) -> None:
    capsule = make(0x1000).__dlpack__(max_version=max_version)
    versioned = max_version is not None and max_version >= (1, 0)
    assert capsule_is_valid(capsule, b"dltensor_versioned") == versioned
    assert capsule_is_valid(capsule, b"dltensor") == (not versioned)
    exported = inspect(capsule)
    assert exported.version == ((1, 1) if versioned else None)
    assert (exported.flags, exported.context, exported.byte_offset) == (0, 0, 0)
    free = ctypes.cast(api.PyMem_RawFree, ctypes.c_void_p)
    assert exported.deleter == free.value


@pytest.mark.parametrize("max_version", [None, (1, 0)])
@pytest.mark.parametrize("device", [HOST, CUDA])
@pytest.mark.parametrize("dtype", UNPACKED)
def test_capsule_content(
    dtype: str, device: tuple[int, int], max_version: tuple[int, int] | None
) -> None:
    view = make(0x1000, dtype, (5, 1, 3), device)
    exported = inspect(view.__dlpack__(max_version=max_version))
    assert exported.data == 0x1000
    assert exported.device == device == view.__dlpack_device__()
    assert exported.dtype == ELEMENTS[dtype][:3]
    assert exported.shape == (5, 1, 3)
    assert exported.strides == view.strides == (3, 3, 1)


def test_capsule_of_packed_elements() -> None:
    exported = inspect(make(0x1000, "fp4_e2m1", (5, 4)).__dlpack__())
    assert exported.dtype == (17, 4, 2)
    assert (exported.shape, exported.strides) == ((5, 2), (2, 1))


def test_capsule_without_dimensions() -> None:
    exported = inspect(make(0x1000, "f32", ()).__dlpack__())
    assert (exported.data, exported.shape, exported.strides) == (0x1000, (), ())


def test_long_shape_and_high_address() -> None:
    shape = (1,) * 20 + (2**40,)
    view = make(2**63 + 0x1000, "u8", shape, CUDA)
    exported = inspect(view.__dlpack__(max_version=(1, 0)))
    assert exported.data == 2**63 + 0x1000
    assert exported.shape == shape
    assert exported.strides == (2**40,) * 20 + (1,)


class Kind(IntEnum):
    CUDA = 2


@pytest.mark.parametrize("stream", [None, -1, 1, 2, 3, 0x7F00_0000_1234])
def test_streams_of_cuda(stream: int | None) -> None:
    view = make(0x1000, device=CUDA)
    capsule = view.__dlpack__(stream=stream, dl_device=(Kind.CUDA, 3), copy=False)
    assert inspect(capsule).data == 0x1000


NOT_A_STREAM = "pass None, -1, 1 (legacy default), 2 (per-thread default) or a handle"
REFUSALS: list[tuple[tuple[int, int], dict[str, Any], str]] = [
    (CUDA, {"stream": 0}, f"stream=0: {NOT_A_STREAM}"),
    (CUDA, {"stream": -2}, f"stream=-2: {NOT_A_STREAM}"),
    (CUDA, {"stream": True}, f"stream=True: {NOT_A_STREAM}"),
    (CUDA, {"stream": "s"}, f"stream='s': {NOT_A_STREAM}"),
    (HOST, {"stream": 1}, "stream=1: host memory has no streams; pass None"),
    (HOST, {"stream": -1}, "stream=-1: host memory has no streams; pass None"),
    (
        HOST,
        {"copy": True},
        "copy=True: a view only shares its memory; export it, then copy",
    ),
    (
        HOST,
        {"dl_device": (2, 0)},
        "dl_device=(2, 0): the memory is on host (1, 0) and a view does not move it; "
        "export it there, then copy",
    ),
    (
        CUDA,
        {"dl_device": (2, 0)},
        "dl_device=(2, 0): the memory is on cuda:3 (2, 3) and a view does not move it; "
        "export it there, then copy",
    ),
]


@pytest.mark.parametrize(("device", "arguments", "reason"), REFUSALS)
def test_refused_exports(
    device: tuple[int, int], arguments: dict[str, Any], reason: str
) -> None:
    view = make(0x1000, device=device)
    with pytest.raises(BufferError) as caught:
        view.__dlpack__(**arguments)
    assert type(caught.value) is ViewError
    assert str(caught.value) == f"hidden_states: {reason}"


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 1)])
def test_half_a_byte_is_refused(shape: tuple[int, ...]) -> None:
    view = make(0x1000, "fp4_e2m1", shape)
    why = (
        f"fp4_e2m1 {list(shape)} has no even last dimension, and two elements share a "
        "byte; use ptr"
    )
    with pytest.raises(ViewError) as caught:
        view.__dlpack__()
    assert str(caught.value) == f"hidden_states: a DLPack capsule: {why}"
    with pytest.raises(ViewError) as caught:
        view.numpy()
    assert str(caught.value) == f"hidden_states: numpy(): {why}"
    assert view.ptr == 0x1000


def test_view_error() -> None:
    error = ViewError("logits", "copy=True: no")
    assert isinstance(error, ArenaError)
    assert isinstance(error, BufferError)
    assert (error.buffer, error.reason) == ("logits", "copy=True: no")
    again = pickle.loads(pickle.dumps(error))
    assert type(again) is ViewError
    assert str(again) == str(error) == "logits: copy=True: no"


# DLPack: who frees what.


def consume(capsule: object) -> Exported:
    """Take a capsule over as a consumer does, up to the deleter."""
    exported = inspect(capsule)
    capsule_set_name(capsule, USED)
    return exported


@pytest.mark.parametrize("max_version", [None, (1, 0)])
def test_consumed_and_deleted(
    live_blocks: Callable[[], int], max_version: tuple[int, int] | None
) -> None:
    view = make(0x1000)
    for _ in range(50):
        exported = consume(view.__dlpack__(max_version=max_version))
        Deleter(exported.deleter)(exported.at)
    assert live_blocks() == 0


def test_consumed_and_kept(live_blocks: Callable[[], int]) -> None:
    view = make(0x1000, shape=(4, 5))
    kept = [consume(view.__dlpack__()) for _ in range(50)]
    del view
    view = make(0x2000)
    for _ in range(50):
        view.__dlpack__()
    assert len(kept) <= live_blocks() <= len(kept) + 2
    for exported in kept:
        assert LEGACY.unpack(ctypes.string_at(exported.at, LEGACY.size))[0] == 0x1000
        assert tuple((ctypes.c_int64 * 2).from_address(exported.at + 64)) == (4, 5)
        Deleter(exported.deleter)(exported.at)
    assert live_blocks() <= 2


def test_never_consumed(live_blocks: Callable[[], int]) -> None:
    view = make(0x1000)
    for _ in range(500):
        view.__dlpack__()
    assert live_blocks() <= 2
    assert len(dlpack._pending) <= 2


def test_held_for_later(live_blocks: Callable[[], int]) -> None:
    view = make(0x1000)
    held = [view.__dlpack__() for _ in range(20)]
    for _ in range(500):
        view.__dlpack__()
    assert live_blocks() <= len(held) + 20
    assert [inspect(capsule).data for capsule in held] == [0x1000] * len(held)
    for capsule in held[:10]:
        exported = consume(capsule)
        Deleter(exported.deleter)(exported.at)
    del held, capsule
    for _ in range(500):
        view.__dlpack__()
    assert live_blocks() <= 2


def test_consumed_while_reclaimed(monkeypatch: pytest.MonkeyPatch) -> None:
    dlpack._pending.clear()
    held = [make(0x1000).__dlpack__()]
    name_of = dlpack._capsule_name
    freed: list[int] = []

    def consumed_by_another_thread(capsule: object) -> bytes:
        name: bytes = name_of(capsule)
        if held:
            exported = consume(held.pop())
            Deleter(exported.deleter)(exported.at)
        return name

    monkeypatch.setattr(dlpack, "_capsule_name", consumed_by_another_thread)
    monkeypatch.setattr(dlpack, "_raw_free", freed.append)
    dlpack._reclaim()
    assert held == []
    dlpack._reclaim()
    assert (freed, list(dlpack._pending)) == ([], [])


def test_failed_export_frees(
    live_blocks: Callable[[], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: object) -> object:
        raise MemoryError

    monkeypatch.setattr(dlpack, "_capsule_new", fail)
    for _ in range(10):
        with pytest.raises(MemoryError):
            make(0x1000).__dlpack__()
    assert live_blocks() == 0


def test_an_export_keeps_nothing_alive(np: ModuleType) -> None:
    arena = Arena()
    gpu = arena.gpu
    view = arena.view("f32", (2, 3))
    first, second = np.from_dlpack(view), view.numpy()
    capsule = view.__dlpack__()
    gone = weakref.ref(arena)
    del arena, view
    assert gone() is None
    # The memory is still there, as nothing freed it.
    first[1, 2] = 5
    assert second[1, 2] == 5
    gpu.free(DevicePtr(second.ctypes.data))
    assert gpu.live_allocations == 0
    del capsule


@pytest.mark.parametrize("consumer", ["numpy", "torch"])
def test_consumers_call_the_deleter_once(
    arena: Arena, consumer: str, live_blocks: Callable[[], int]
) -> None:
    module = pytest.importorskip(consumer, reason=f"{consumer} is not installed")
    view = arena.view("f32", (2, 3), struct.pack("<6f", *range(6)))
    deleted: list[int] = []
    free: list[Callable[[int], None]] = []

    @Deleter
    def deleter(at: int) -> None:
        deleted.append(at)
        free[0](at)

    capsule = view.__dlpack__(max_version=(1, 0))
    exported = inspect(capsule)
    free.append(Deleter(exported.deleter))
    address = ctypes.cast(deleter, ctypes.c_void_p).value or 0
    ctypes.c_void_p.from_address(exported.at + 16).value = address
    array = module.from_dlpack(Holder(capsule))
    del capsule, view
    gc.collect()
    assert deleted == []
    assert array.tolist() == [[0, 1, 2], [3, 4, 5]]
    del array
    gc.collect()
    assert deleted == [exported.at]
    assert live_blocks() == 0


@pytest.mark.parametrize("max_version", [None, (1, 0)])
@pytest.mark.parametrize("consumer", ["numpy", "torch"])
def test_a_capsule_is_consumed_once(
    arena: Arena, consumer: str, max_version: tuple[int, int] | None
) -> None:
    module = pytest.importorskip(consumer, reason=f"{consumer} is not installed")
    view = arena.view("f32", (2, 3))
    holder = Holder(view.__dlpack__(max_version=max_version))
    first = module.from_dlpack(holder)
    with pytest.raises((ValueError, RuntimeError, BufferError)):
        module.from_dlpack(holder)
    assert first.shape == (2, 3)
    assert module.from_dlpack(view).shape == (2, 3)


@pytest.mark.parametrize("dtype", [*ML_DTYPES, "fp4_e2m1"])
def test_a_consumer_that_refuses_says_why(
    arena: Arena,
    np: ModuleType,
    dtype: str,
    live_blocks: Callable[[], int],
    capfd: pytest.CaptureFixture[str],
) -> None:
    view = sample(arena, dtype)
    for _ in range(20):
        # numpy drops the capsule while its own exception is set, a RuntimeError before
        # numpy 2.5.
        with pytest.raises((BufferError, RuntimeError), match="Unsupported"):
            np.from_dlpack(view)
    assert live_blocks() <= 2
    assert capfd.readouterr() == ("", "")


def test_threads(arena: Arena) -> None:
    view = arena.view("f32", (2, 3))
    ready: list[object] = []
    failures: list[BaseException] = []

    def work(seed: int) -> None:
        try:
            for turn in range(400):
                capsule = view.__dlpack__(max_version=(1, 0) if seed % 2 else None)
                if (turn + seed) % 3 == 0:
                    ready.append(capsule)
                elif (turn + seed) % 3 == 1:
                    del capsule
                else:
                    exported = consume(capsule)
                    assert exported.data == view.ptr
                    Deleter(exported.deleter)(exported.at)
                if len(ready) > 20:
                    exported = consume(ready.pop())
                    assert exported.shape == (2, 3)
                    Deleter(exported.deleter)(exported.at)
        except BaseException as error:
            failures.append(error)

    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        threads = [threading.Thread(target=work, args=(seed,)) for seed in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    finally:
        sys.setswitchinterval(interval)
    assert failures == []


PRELUDE = """
import builtins, sys
from runtime.host import HostBackend
from runtime.tensor import TensorView
gpu = HostBackend(1 << 20)
ptr = gpu.alloc(4096)
view = TensorView(
    name="x", ptr=ptr, dtype="f32", shape=(2, 3), device=(1, 0), check=lambda: None
)
"""

EXITS = {
    "a capsule in the module": "capsule = view.__dlpack__()",
    "a capsule in builtins": "builtins.kept = view.__dlpack__(max_version=(1, 0))",
    "a capsule in a cycle": "kept = [view.__dlpack__()]; kept.append(kept)",
    "a dropped capsule": "view.__dlpack__()",
    "a capsule with its module gone": (
        "builtins.kept = view.__dlpack__()\n"
        "for name in [name for name in sys.modules if name.startswith('runtime')]:\n"
        "    del sys.modules[name]\n"
        "del TensorView, HostBackend, view"
    ),
    "an array in the module": "import numpy; kept = numpy.from_dlpack(view)",
    "an array in builtins": "import numpy; builtins.kept = numpy.from_dlpack(view)",
    "an array in sys": "import numpy; sys.kept = numpy.from_dlpack(view)",
    "a view as an array": "import numpy; builtins.kept = view.numpy()",
    "a tensor in the module": "import torch; kept = torch.from_dlpack(view)",
    "a tensor in builtins": "import torch; builtins.kept = torch.from_dlpack(view)",
    "a tensor in a cycle": (
        "import torch; kept = [torch.from_dlpack(view)]; kept.append(kept)"
    ),
}


def run(code: str, *flags: str) -> subprocess.CompletedProcess[str]:
    packages = str(Path(runtime.__file__).parents[1])
    return subprocess.run(
        [sys.executable, *flags, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": packages, "PYTHONMALLOC": "debug"},
        check=False,
    )


@pytest.mark.parametrize("situation", EXITS)
def test_interpreter_exit(situation: str) -> None:
    code = EXITS[situation]
    for consumer in ("numpy", "torch"):
        if f"import {consumer}" in code:
            pytest.importorskip(consumer, reason=f"{consumer} is not installed")
    done = run(PRELUDE + code, "-X", "faulthandler")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_import_is_light() -> None:
    done = run(
        "import runtime.tensor, sys\n"
        "loaded = {name.partition('.')[0] for name in sys.modules}\n"
        "print(sorted(loaded & {'numpy', 'ml_dtypes', 'torch', 'cupy', 'cuda'}))"
    )
    assert (done.stdout, done.stderr) == ("[]\n", "")


# Sharing memory with numpy and torch.


@pytest.mark.parametrize("dtype", ELEMENTS)
def test_numpy_shares_the_memory(arena: Arena, np: ModuleType, dtype: str) -> None:
    element = ELEMENTS[dtype]
    if dtype in ML_DTYPES:
        pytest.importorskip("ml_dtypes", reason="ml_dtypes is not installed")
    view = sample(arena, dtype)
    array = view.numpy()
    assert type(array) is np.ndarray
    assert array.dtype.name == element.numpy
    assert array.shape == (1, len(element.values))
    assert array.flags.writeable
    assert array.flags.c_contiguous
    assert array.ctypes.data == view.ptr
    assert array[0].astype(float).tolist() == list(element.values)
    array[0] = array[0, ::-1].copy()
    assert arena.read(view) == array.tobytes()
    assert arena.read(view) != bytes(view.nbytes)
    arena.gpu.memset(view.ptr, 0, view.nbytes)
    assert not array.astype(float).any()


@pytest.mark.parametrize("dtype", NUMPY_OWN)
def test_numpy_from_dlpack(arena: Arena, np: ModuleType, dtype: str) -> None:
    element = ELEMENTS[dtype]
    view = sample(arena, dtype)
    array = np.from_dlpack(view)
    assert array.dtype.name == element.numpy
    assert array.ctypes.data == view.ptr
    assert array.tolist() == [list(element.values)]
    array[...] = 0
    assert arena.read(view) == bytes(view.nbytes)


def test_numpy_on_the_cpu(arena: Arena, np: ModuleType) -> None:
    view = arena.view("i32", (2, 3))
    assert np.from_dlpack(view, device="cpu", copy=False).shape == (2, 3)
    with pytest.raises(BufferError, match="hidden_states: copy=True"):
        np.from_dlpack(view, copy=True)


@pytest.mark.parametrize("shape", [(), (0, 4), (4, 0), (1, 1), (2, 3, 4)])
def test_shapes(arena: Arena, np: ModuleType, shape: tuple[int, ...]) -> None:
    view = arena.view("i32", shape)
    assert view.numpy().shape == np.from_dlpack(view).shape == shape
    assert view.numpy().nbytes == view.nbytes


def test_no_memory_no_elements(np: ModuleType) -> None:
    view = make(NULL, "f32", (0, 4))
    assert view.numpy().shape == np.from_dlpack(view).shape == (0, 4)


def test_packed_elements_unpack(
    arena: Arena, np: ModuleType, ml_dtypes: ModuleType
) -> None:
    packed = sample(arena, "fp4_e2m1").numpy()
    nibbles = np.stack([packed & 15, packed >> 4], axis=-1).reshape(1, 4)
    values = nibbles.view(ml_dtypes.float4_e2m1fn).astype(float)
    assert values.tolist() == [[1.5, -2.0, 0.5, 6.0]]


@pytest.mark.parametrize("dtype", ELEMENTS)
def test_torch_shares_the_memory(arena: Arena, torch: ModuleType, dtype: str) -> None:
    element = ELEMENTS[dtype]
    torch_dtype = getattr(torch, element.torch, None)
    if torch_dtype is None:
        pytest.skip(f"torch {torch.__version__} has no {element.torch}")
    view = sample(arena, dtype)
    tensor = torch.from_dlpack(view)
    assert tensor.dtype is torch_dtype
    assert tensor.shape == (1, len(element.values))
    assert tensor.data_ptr() == view.ptr
    assert tensor.device.type == "cpu"
    if element.lanes == 1:
        assert tensor[0].to(torch.float64).tolist() == list(element.values)
    # Few operations know every dtype; all know the bytes.
    written = tensor.view(torch.uint8)
    assert bytes(written.flatten().tolist()) == arena.read(view)
    written[...] = 0x41
    assert arena.read(view) == b"\x41" * view.nbytes


def test_torch_takes_both_capsules(arena: Arena, torch: ModuleType) -> None:
    view = arena.view("bf16", (2, 3))
    for max_version in (None, (1, 0)):
        tensor = torch.from_dlpack(view.__dlpack__(max_version=max_version))
        assert tensor.dtype is torch.bfloat16
        assert tensor.stride() == (3, 1)
        assert tensor.data_ptr() == view.ptr


DEVICE_MEMORY = (
    "hidden_states: numpy(): the memory is on cuda:3; copy it to the host with the "
    "backend's copy_d2h, or use from_dlpack of torch or cupy"
)


def test_numpy_refuses_device_memory() -> None:
    with pytest.raises(ViewError) as caught:
        make(0x1000, device=CUDA).numpy()
    assert str(caught.value) == DEVICE_MEMORY


@pytest.mark.parametrize(
    ("missing", "dtype"), [("numpy", "f32"), ("numpy", "bf16"), ("ml_dtypes", "bf16")]
)
def test_numpy_is_missing(
    arena: Arena, missing: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    if missing == "ml_dtypes":
        pytest.importorskip("numpy", reason="numpy is not installed")
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ViewError) as caught:
        arena.view(dtype, (2, 3)).numpy()
    assert isinstance(caught.value.__cause__, ImportError)
    assert str(caught.value) == (
        f"hidden_states: numpy() of {dtype} needs {missing}, which cannot be imported: "
        f"{caught.value.__cause__}; install it with: pip install {missing}"
    )


# The CUDA array interface.


@pytest.mark.parametrize("dtype", NUMPY_OWN)
def test_cuda_array_interface(dtype: str) -> None:
    view = make(0x1000, dtype, (2, 3), CUDA)
    interface = view.__cuda_array_interface__
    assert interface == {
        "shape": (2, 3),
        "typestr": ELEMENTS[dtype].typestr,
        "data": (0x1000, False),
        "strides": None,
        "stream": None,
        "version": 3,
    }
    assert type(interface["data"][0]) is int


@pytest.mark.parametrize("dtype", ["bf16", "fp8_e4m3", "fp8_e5m2", "fp4_e2m1"])
def test_no_typestr(dtype: str) -> None:
    view = make(0x1000, dtype, (2, 4), CUDA)
    assert not hasattr(view, "__cuda_array_interface__")
    with pytest.raises(AttributeError) as caught:
        _ = view.__cuda_array_interface__
    assert str(caught.value) == (
        f"hidden_states: no CUDA array interface, it has no type for {dtype}; use "
        "from_dlpack"
    )


def test_no_cuda() -> None:
    view = make(0x1000)
    assert not hasattr(view, "__cuda_array_interface__")
    assert not hasattr(view, "__array_interface__")
    with pytest.raises(AttributeError) as caught:
        _ = view.__cuda_array_interface__
    assert str(caught.value) == (
        "hidden_states: no CUDA array interface, the memory is on host; use numpy() or "
        "from_dlpack"
    )


def test_a_launcher_that_asks_for_data_ptr_gets_the_address() -> None:
    assert make(0x1000).data_ptr() == 0x1000


def test_asarray_shares_the_memory_and_converts_when_asked(
    arena: Arena, np: ModuleType
) -> None:
    view = sample(arena, "f32")
    shared = np.asarray(view)
    assert shared.shape == view.shape
    assert shared.ctypes.data == int(view.ptr)
    assert np.array(view).ctypes.data != int(view.ptr)
    assert np.asarray(view, dtype="f8").dtype == np.dtype("f8")
    with pytest.raises(ViewError, match="needs a copy"):
        view.__array__("f8", copy=False)
