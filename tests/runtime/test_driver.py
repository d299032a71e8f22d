"""The simulated driver through the real bindings: refusals, order, records, faults."""

import ctypes
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from driver.simulated import FRESH, Driver, Live, Objects, UnavailableError, build

cu: Any = pytest.importorskip("cuda.bindings.driver")
pytest_plugins = ["driver.plugin"]

SUCCESS = cu.CUresult.CUDA_SUCCESS
INVALID_VALUE = cu.CUresult.CUDA_ERROR_INVALID_VALUE
OUT_OF_MEMORY = cu.CUresult.CUDA_ERROR_OUT_OF_MEMORY
NO_DEVICE = cu.CUresult.CUDA_ERROR_NO_DEVICE
INVALID_DEVICE = cu.CUresult.CUDA_ERROR_INVALID_DEVICE
INVALID_CONTEXT = cu.CUresult.CUDA_ERROR_INVALID_CONTEXT
INVALID_HANDLE = cu.CUresult.CUDA_ERROR_INVALID_HANDLE
ILLEGAL_STATE = cu.CUresult.CUDA_ERROR_ILLEGAL_STATE
NOT_FOUND = cu.CUresult.CUDA_ERROR_NOT_FOUND
NOT_READY = cu.CUresult.CUDA_ERROR_NOT_READY
ILLEGAL_ADDRESS = cu.CUresult.CUDA_ERROR_ILLEGAL_ADDRESS
CONTEXT_IS_DESTROYED = cu.CUresult.CUDA_ERROR_CONTEXT_IS_DESTROYED
NOT_SUPPORTED = cu.CUresult.CUDA_ERROR_NOT_SUPPORTED
UNSUPPORTED = cu.CUresult.CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED
INVALIDATED = cu.CUresult.CUDA_ERROR_STREAM_CAPTURE_INVALIDATED
MERGE = cu.CUresult.CUDA_ERROR_STREAM_CAPTURE_MERGE
UNMATCHED = cu.CUresult.CUDA_ERROR_STREAM_CAPTURE_UNMATCHED
UNJOINED = cu.CUresult.CUDA_ERROR_STREAM_CAPTURE_UNJOINED
ISOLATION = cu.CUresult.CUDA_ERROR_STREAM_CAPTURE_ISOLATION
IMPLICIT = cu.CUresult.CUDA_ERROR_STREAM_CAPTURE_IMPLICIT
CAPTURED_EVENT = cu.CUresult.CUDA_ERROR_CAPTURED_EVENT
WRONG_THREAD = cu.CUresult.CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD

GLOBAL, THREAD_LOCAL, RELAXED = cu.CUstreamCaptureMode
BLOCKING = int(cu.CUstream_flags.CU_STREAM_DEFAULT)
NON_BLOCKING = int(cu.CUstream_flags.CU_STREAM_NON_BLOCKING)
LEGACY, PER_THREAD = cu.CUstream(1), cu.CUstream(2)
MADE_UP = 0xDEAD0


def ok(answer: tuple[Any, ...]) -> Any:
    """What a call that succeeds returns besides its status."""
    status, *values = answer
    assert status == SUCCESS
    return values[0] if len(values) == 1 else values


def status(answer: tuple[Any, ...]) -> Any:
    return answer[0]


@pytest.fixture
def driver(simulated_driver: Driver) -> Driver:
    """The driver, with the primary context of device 0 current."""
    ok(cu.cuInit(0))
    ok(cu.cuCtxSetCurrent(ok(cu.cuDevicePrimaryCtxRetain(0))))
    simulated_driver.clear()
    return simulated_driver


def alloc(nbytes: int) -> Any:
    return ok(cu.cuMemAlloc(nbytes))


def stream(flags: int = NON_BLOCKING) -> Any:
    return ok(cu.cuStreamCreate(flags))


def event() -> Any:
    return ok(cu.cuEventCreate(0))


def read(ptr: Any, nbytes: int) -> bytes:
    content = bytearray(nbytes)
    ok(cu.cuMemcpyDtoH(content, ptr, nbytes))
    return bytes(content)


def in_thread(function: Callable[[], Any]) -> Any:
    """What a function returns when a new thread calls it."""
    results: list[Any] = []
    thread = threading.Thread(target=lambda: results.append(function()))
    thread.start()
    thread.join()
    return results[0]


# Loading


def test_the_bindings_use_the_simulated_driver(driver: Driver) -> None:
    assert ok(cu.cuDeviceGetName(32, 0)).startswith(b"Simulated GPU 0\0")
    assert [call.name for call in driver.calls()] == ["cuDeviceGetName"]


def test_a_fresh_process_finds_it_on_the_loader_path(loaded_driver: Driver) -> None:
    program = (
        "from cuda.bindings import driver as cu\n"
        "print([int(status) for status, *_ in "
        "(cu.cuMemAlloc(1), cu.cuDeviceGetCount(), cu.cuInit(1), cu.cuInit(0), "
        "cu.cuDeviceGetCount(), cu.cuMemAlloc(1))])"
    )
    folder = str(loaded_driver.library.parent)
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "LD_LIBRARY_PATH": folder},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[3, 3, 1, 0, 0, 201]\n"


def test_per_thread_default_streams_on_request(loaded_driver: Driver) -> None:
    program = (
        "from cuda.bindings import driver as cu\n"
        "cu.cuInit(0)\n"
        "cu.cuCtxSetCurrent(cu.cuDevicePrimaryCtxRetain(0)[1])\n"
        "print([int(cu.cuStreamBeginCapture(s, cu.CUstreamCaptureMode(2))[0]) "
        "for s in (1, 0)])"
    )
    environ = {
        **os.environ,
        "LD_LIBRARY_PATH": str(loaded_driver.library.parent),
        "CUDA_PYTHON_CUDA_PER_THREAD_DEFAULT_STREAM": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environ,
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[900, 0]\n"


def test_it_is_compiled_once(
    loaded_driver: Driver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(subprocess, "run", pytest.fail)
    folder = loaded_driver.library.parent.parent
    assert build(folder) == loaded_driver.library


def test_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CC", "no-such-compiler")
    with pytest.raises(UnavailableError, match=r"^no C compiler$"):
        build(tmp_path)


def test_what_is_not_implemented_is_recorded(driver: Driver) -> None:
    assert status(cu.cuModuleUnload(MADE_UP)) == NOT_SUPPORTED
    assert status(cu.cuCtxGetLimit(cu.CUlimit.CU_LIMIT_STACK_SIZE)) == NOT_SUPPORTED
    assert [(call.name, call.result) for call in driver.calls()] == [
        ("cuModuleUnload", NOT_SUPPORTED),
        ("cuCtxGetLimit", NOT_SUPPORTED),
    ]


def test_errors_have_names_and_texts(driver: Driver) -> None:
    assert ok(cu.cuGetErrorName(OUT_OF_MEMORY)) == b"CUDA_ERROR_OUT_OF_MEMORY"
    assert ok(cu.cuGetErrorString(OUT_OF_MEMORY)) == b"out of memory"


# Devices and contexts


def test_devices(driver: Driver) -> None:
    driver.reset(devices=2, memory=[1 << 30, 1 << 20])
    assert ok(cu.cuDeviceGetCount()) == 2
    assert [ok(cu.cuDeviceTotalMem(i)) for i in (0, 1)] == [1 << 30, 1 << 20]
    assert ok(cu.cuDeviceGetUuid(0)).bytes != ok(cu.cuDeviceGetUuid(1)).bytes
    assert status(cu.cuDeviceGet(2)) == INVALID_DEVICE
    assert status(cu.cuDevicePrimaryCtxRetain(2)) == INVALID_DEVICE


def test_no_device(driver: Driver) -> None:
    driver.reset(devices=0)
    assert status(cu.cuInit(0)) == NO_DEVICE
    assert ok(cu.cuDeviceGetCount()) == 0


def test_attributes(driver: Driver) -> None:
    count = cu.CUdevice_attribute.CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT
    assert ok(cu.cuDeviceGetAttribute(count, 0)) == 132
    driver.set_attribute(count, 48)
    assert ok(cu.cuDeviceGetAttribute(count, 0)) == 48
    driver.reset()
    assert ok(cu.cuDeviceGetAttribute(count, 0)) == 132


CONTEXT_CALLS: dict[str, Callable[[], tuple[Any, ...]]] = {
    "cuMemAlloc": lambda: cu.cuMemAlloc(1),
    "cuMemFree": lambda: cu.cuMemFree(MADE_UP),
    "cuMemAllocHost": lambda: cu.cuMemAllocHost(1),
    "cuMemGetInfo": lambda: cu.cuMemGetInfo(),
    "cuMemsetD8": lambda: cu.cuMemsetD8(MADE_UP, 0, 1),
    "cuMemsetD8Async": lambda: cu.cuMemsetD8Async(MADE_UP, 0, 1, 0),
    "cuMemcpyHtoD": lambda: cu.cuMemcpyHtoD(MADE_UP, b"x", 1),
    "cuMemcpyDtoH": lambda: cu.cuMemcpyDtoH(bytearray(1), MADE_UP, 1),
    "cuMemcpyDtoD": lambda: cu.cuMemcpyDtoD(MADE_UP, MADE_UP, 1),
    "cuMemAllocAsync": lambda: cu.cuMemAllocAsync(1, 0),
    "cuMemFreeAsync": lambda: cu.cuMemFreeAsync(MADE_UP, 0),
    "cuStreamCreate": lambda: cu.cuStreamCreate(0),
    "cuStreamSynchronize": lambda: cu.cuStreamSynchronize(0),
    "cuStreamQuery": lambda: cu.cuStreamQuery(0),
    "cuStreamGetCtx": lambda: cu.cuStreamGetCtx(0),
    "cuEventCreate": lambda: cu.cuEventCreate(0),
    "cuEventSynchronize": lambda: cu.cuEventSynchronize(MADE_UP),
    "cuCtxSynchronize": lambda: cu.cuCtxSynchronize(),
    "cuCtxGetDevice": lambda: cu.cuCtxGetDevice(),
}


@pytest.mark.parametrize("name", CONTEXT_CALLS)
def test_a_call_needs_a_context(driver: Driver, name: str) -> None:
    ok(cu.cuCtxSetCurrent(0))
    driver.clear()
    assert status(CONTEXT_CALLS[name]()) == INVALID_CONTEXT
    (call,) = driver.calls()
    assert (call.name, call.device, call.result) == (name, -1, INVALID_CONTEXT)


@pytest.mark.parametrize("name", CONTEXT_CALLS)
def test_a_call_needs_a_living_context(driver: Driver, name: str) -> None:
    ok(cu.cuDevicePrimaryCtxRelease(0))
    assert status(CONTEXT_CALLS[name]()) == CONTEXT_IS_DESTROYED


def test_a_primary_context_is_counted(driver: Driver) -> None:
    context = ok(cu.cuCtxGetCurrent())
    assert int(ok(cu.cuDevicePrimaryCtxRetain(0))) == int(context)
    assert driver.objects().contexts == 2
    alloc(100)
    stream()
    ok(cu.cuDevicePrimaryCtxRelease(0))
    assert ok(cu.cuDevicePrimaryCtxGetState(0)) == [0, 1]
    ok(cu.cuDevicePrimaryCtxRelease(0))
    assert ok(cu.cuDevicePrimaryCtxGetState(0)) == [0, 0]
    assert status(cu.cuDevicePrimaryCtxRelease(0)) == INVALID_CONTEXT
    assert (driver.live(), driver.objects()) == (Live(0, 0), Objects(0, 0, 0, 0, 0))


def test_the_stack_of_contexts(driver: Driver) -> None:
    driver.reset(devices=2)
    first, second = (ok(cu.cuDevicePrimaryCtxRetain(i)) for i in (0, 1))
    assert int(ok(cu.cuCtxGetCurrent())) == 0
    assert status(cu.cuCtxPopCurrent()) == INVALID_CONTEXT
    ok(cu.cuCtxPushCurrent(first))
    ok(cu.cuCtxPushCurrent(second))
    assert int(ok(cu.cuCtxGetDevice())) == 1
    assert int(ok(cu.cuCtxPopCurrent())) == int(second)
    assert int(ok(cu.cuCtxGetDevice())) == 0
    assert status(cu.cuCtxSetCurrent(MADE_UP)) == INVALID_CONTEXT
    driver.clear()
    ok(cu.cuCtxSetCurrent(second))
    ok(cu.cuCtxSetCurrent(0))
    assert [call.device for call in driver.calls()] == [1, -1]


def test_a_context_belongs_to_a_thread(driver: Driver) -> None:
    assert status(in_thread(lambda: cu.cuMemGetInfo())) == INVALID_CONTEXT
    assert status(cu.cuMemGetInfo()) == SUCCESS


def test_a_created_context(driver: Driver) -> None:
    version_13 = hasattr(cu, "CUctxCreateParams") and cu.CUDA_VERSION >= 13000
    context = ok(cu.cuCtxCreate(*([None] if version_13 else []), 0, 0))
    assert int(ok(cu.cuCtxGetCurrent())) == int(context)
    alloc(10)
    ok(cu.cuCtxDestroy(context))
    assert driver.live() == (0, 0)
    assert int(ok(cu.cuCtxGetCurrent())) != int(context)
    assert status(cu.cuCtxSetCurrent(context)) == CONTEXT_IS_DESTROYED


# Memory


def test_addresses(driver: Driver) -> None:
    pointers = [int(alloc(nbytes)) for nbytes in (1, 512, 513, 1)]
    assert all(ptr % 512 == 0 for ptr in pointers)
    assert pointers == sorted(pointers)
    ok(cu.cuMemFree(pointers[3]))
    assert int(alloc(1)) not in pointers


def test_memory_is_accounted_for(driver: Driver) -> None:
    driver.reset(devices=1, memory=4096)
    ok(cu.cuDevicePrimaryCtxRetain(0))
    ok(cu.cuCtxSetCurrent(ok(cu.cuDevicePrimaryCtxRetain(0))))
    ptr = alloc(1000)
    assert driver.live() == Live(allocations=1, bytes=1000)
    assert ok(cu.cuMemGetInfo()) == [4096 - 1024, 4096]
    assert status(cu.cuMemAlloc(3073)) == OUT_OF_MEMORY
    rest = alloc(3072)
    assert ok(cu.cuMemGetInfo()) == [0, 4096]
    assert status(cu.cuMemAlloc(1)) == OUT_OF_MEMORY
    ok(cu.cuMemFree(ptr))
    ok(cu.cuMemFree(rest))
    assert driver.live() == Live(0, 0)
    assert ok(cu.cuMemGetInfo()) == [4096, 4096]


@pytest.mark.parametrize("nbytes", [81 << 30, 1 << 50, 1 << 63, (1 << 64) - 1])
def test_more_than_there_is(driver: Driver, nbytes: int) -> None:
    assert status(cu.cuMemAlloc(nbytes)) == OUT_OF_MEMORY
    assert driver.live() == (0, 0)


def test_gigabytes_cost_nothing_until_they_differ(driver: Driver) -> None:
    ptr = int(alloc(64 << 30))
    last = ptr + (64 << 30) - 1
    assert read(last, 1) == bytes([FRESH])
    ok(cu.cuMemsetD8(ptr, 7, 64 << 30))
    ok(cu.cuMemcpyHtoD(ptr + (32 << 30), b"abc", 3))
    assert read(last, 1) == b"\7"
    assert read(ptr + (32 << 30) - 1, 5) == b"\7abc\7"


@pytest.mark.parametrize("size", [1000, 1024])
def test_a_range_outside_an_allocation_is_refused(driver: Driver, size: int) -> None:
    ptr, other, host = int(alloc(size)), alloc(2000), bytearray(2000)
    for start, nbytes in (
        (0, 1),
        (MADE_UP, 1),
        (ptr - 1, 1),
        (ptr, size + 1),
        (ptr + size - 1, 2),
        (ptr + size, 1),
        (ptr, (1 << 64) - 1),
    ):
        for answer in (
            cu.cuMemsetD8(start, 0, nbytes),
            cu.cuMemsetD8Async(start, 0, nbytes, 0),
            cu.cuMemcpyHtoD(start, host, nbytes),
            cu.cuMemcpyDtoH(host, start, nbytes),
            cu.cuMemcpyDtoD(start, other, nbytes),
            cu.cuMemcpyDtoD(other, start, nbytes),
            cu.cuMemcpyHtoDAsync(start, host, nbytes, 0),
            cu.cuMemcpyDtoHAsync(host, start, nbytes, 0),
            cu.cuMemcpyDtoDAsync(other, start, nbytes, 0),
        ):
            assert status(answer) == INVALID_VALUE, (hex(start), nbytes)
    assert driver.pending() == 0


def test_host_memory_is_no_device_memory(driver: Driver) -> None:
    ptr, host = alloc(8), ctypes.create_string_buffer(8)
    assert status(cu.cuMemsetD8(ctypes.addressof(host), 0, 8)) == INVALID_VALUE
    assert status(cu.cuMemcpyHtoD(ctypes.addressof(host), host, 8)) == INVALID_VALUE
    assert status(cu.cuMemcpyHtoD(ptr, int(ptr), 8)) == INVALID_VALUE
    assert status(cu.cuMemcpyDtoH(0, ptr, 8)) == INVALID_VALUE


def test_nothing_is_a_legal_length_but_not_a_legal_size(driver: Driver) -> None:
    ptr = alloc(1)
    assert status(cu.cuMemsetD8(ptr, 0, 0)) == SUCCESS
    assert status(cu.cuMemcpyDtoD(ptr, ptr, 0)) == SUCCESS
    assert status(cu.cuMemAlloc(0)) == INVALID_VALUE
    assert status(cu.cuMemAllocAsync(0, 0)) == INVALID_VALUE


@pytest.mark.parametrize(("memset", "unit"), [("cuMemsetD16", 2), ("cuMemsetD32", 4)])
def test_wide_memsets_are_aligned(driver: Driver, memset: str, unit: int) -> None:
    ptr = int(alloc(64))
    for start in range(ptr, ptr + 5):
        expected = SUCCESS if start % unit == 0 else INVALID_VALUE
        assert status(getattr(cu, memset)(start, 1, 1)) == expected
        assert status(getattr(cu, f"{memset}Async")(start, 1, 1, 0)) == expected
    count = 64 // unit
    assert status(getattr(cu, memset)(ptr, 1, count + 1)) == INVALID_VALUE
    assert status(getattr(cu, memset)(ptr, 1, (1 << 64) // unit + 1)) == INVALID_VALUE


@pytest.mark.parametrize("start", [0, 4, 65532, 65536, 70000])
@pytest.mark.parametrize("nbytes", [4, 65536, 131080])
def test_patterns(driver: Driver, start: int, nbytes: int) -> None:
    """Across the chunks that the driver keeps memory in."""
    size = 70000 + 131080
    ptr = int(alloc(size))
    for memset, unit, value in (
        (cu.cuMemsetD8, 1, 0x5A),
        (cu.cuMemsetD16, 2, 0x1234),
        (cu.cuMemsetD32, 4, 0x01020304),
    ):
        ok(cu.cuMemsetD8(ptr, FRESH, size))
        ok(memset(ptr + start, value, nbytes // unit))
        written = value.to_bytes(unit, "little") * (nbytes // unit)
        fresh = bytes([FRESH])
        rest = size - start - nbytes
        content = fresh * start + written + fresh * rest
        assert read(ptr, size) == content
        assert read(ptr + 65537, 65536) == content[65537 : 65537 + 65536]


def test_copies(driver: Driver) -> None:
    size = 200_001
    source, target = int(alloc(size)), int(alloc(size))
    content = bytes(i * 31 % 251 for i in range(size))
    ok(cu.cuMemcpyHtoD(source, content, size))
    ok(cu.cuMemcpyDtoD(target + 1, source, size - 1))
    ok(cu.cuMemcpy(target, source + size - 1, 1))
    assert read(target, size) == content[-1:] + content[:-1]


def test_frees_that_are_refused(driver: Driver) -> None:
    ptr = int(alloc(100))
    for wrong in (0, MADE_UP, ptr + 1, ptr - 1):
        assert status(cu.cuMemFree(wrong)) == INVALID_VALUE
    ok(cu.cuMemFree(ptr))
    assert status(cu.cuMemFree(ptr)) == INVALID_VALUE
    assert status(cu.cuMemsetD8(ptr, 0, 1)) == INVALID_VALUE
    assert status(cu.cuMemcpyDtoH(bytearray(1), ptr, 1)) == INVALID_VALUE


def test_pinned_memory(driver: Driver) -> None:
    host, ptr = ok(cu.cuMemAllocHost(64)), alloc(64)
    assert (driver.pinned(), driver.live()) == (Live(1, 64), Live(1, 64))
    ok(cu.cuMemsetD8(host, 9, 64))
    assert ctypes.string_at(host, 64) == b"\t" * 64
    assert status(cu.cuMemcpyHtoD(ptr, host, 65)) == INVALID_VALUE
    assert status(cu.cuMemFree(host)) == INVALID_VALUE
    assert status(cu.cuMemFreeHost(int(ptr))) == INVALID_VALUE
    ok(cu.cuMemFreeHost(host))
    assert driver.pinned() == (0, 0)


def test_pointer_attributes(driver: Driver) -> None:
    ptr = int(alloc(1000))
    kind = cu.CUpointer_attribute.CU_POINTER_ATTRIBUTE_MEMORY_TYPE
    ordinal = cu.CUpointer_attribute.CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL
    start = cu.CUpointer_attribute.CU_POINTER_ATTRIBUTE_RANGE_START_ADDR
    assert ok(cu.cuPointerGetAttribute(kind, ptr)) == 2
    assert int(ok(cu.cuPointerGetAttribute(start, ptr + 9))) == ptr
    assert status(cu.cuPointerGetAttribute(kind, MADE_UP)) == INVALID_VALUE
    kinds = ok(cu.cuPointerGetAttributes(2, [kind, ordinal], ptr))
    assert [int(value) for value in kinds] == [2, 0]
    base, nbytes = ok(cu.cuMemGetAddressRange(ptr + 999))
    assert (int(base), nbytes) == (ptr, 1000)
    assert status(cu.cuMemGetAddressRange(ptr + 1000)) == NOT_FOUND


# Two devices


def test_each_device_has_its_own_memory(driver: Driver) -> None:
    driver.reset(devices=2, memory=1 << 20)
    contexts = [ok(cu.cuDevicePrimaryCtxRetain(i)) for i in (0, 1)]
    ok(cu.cuCtxSetCurrent(contexts[0]))
    ptr, ours = alloc(1 << 20), stream()
    assert status(cu.cuMemAlloc(1)) == OUT_OF_MEMORY
    ok(cu.cuCtxSetCurrent(contexts[1]))
    other = alloc(512)
    assert (driver.live(0), driver.live(1)) == (Live(1, 1 << 20), Live(1, 512))
    assert ok(cu.cuMemGetInfo()) == [(1 << 20) - 512, 1 << 20]
    for answer in (
        cu.cuMemsetD8(ptr, 0, 1),
        cu.cuMemcpyHtoD(ptr, b"x", 1),
        cu.cuMemcpyDtoH(bytearray(1), ptr, 1),
        cu.cuMemcpyDtoD(other, ptr, 1),
    ):
        assert status(answer) == INVALID_VALUE
    assert status(cu.cuMemsetD8Async(other, 0, 1, ours)) == INVALID_HANDLE
    assert [call.device for call in driver.calls("cuMemsetD8")] == [1]
    ok(cu.cuDevicePrimaryCtxRelease(0))
    assert (driver.live(0), driver.live(1)) == (Live(0, 0), Live(1, 512))


# Streams and order


def test_work_is_done_when_its_stream_is_synchronised(driver: Driver) -> None:
    ptr, mine, other = alloc(4), stream(), stream()
    ok(cu.cuMemsetD8Async(ptr, 1, 4, mine))
    ok(cu.cuMemsetD8Async(ptr, 2, 2, mine))
    assert (driver.pending(), driver.peek(ptr, 4)) == (2, bytes([FRESH] * 4))
    ok(cu.cuStreamSynchronize(other))
    assert driver.pending() == 2
    ok(cu.cuStreamSynchronize(mine))
    assert (driver.pending(), driver.peek(ptr, 4)) == (0, b"\2\2\1\1")


def test_a_context_synchronises_all_its_streams(driver: Driver) -> None:
    ptr = int(alloc(2))
    for i in range(2):
        ok(cu.cuMemsetD8Async(ptr + i, 1, 1, stream()))
    ok(cu.cuCtxSynchronize())
    assert driver.peek(ptr, 2) == b"\1\1"


def test_polling_makes_progress(driver: Driver) -> None:
    ptr, mine, mark = int(alloc(2)), stream(), event()
    for i in range(2):
        ok(cu.cuMemsetD8Async(ptr + i, 1, 1, mine))
    assert status(cu.cuStreamQuery(mine)) == NOT_READY
    assert driver.peek(ptr, 2) == bytes([1, FRESH])
    assert status(cu.cuStreamQuery(mine)) == NOT_READY
    assert status(cu.cuStreamQuery(mine)) == SUCCESS
    ok(cu.cuEventRecord(mark, mine))
    assert [status(cu.cuEventQuery(mark)) for _ in range(2)] == [NOT_READY, SUCCESS]


def test_an_event_ends_a_wait_at_its_place(driver: Driver) -> None:
    ptr, mine, mark = alloc(1), stream(), event()
    assert status(cu.cuEventQuery(mark)) == SUCCESS
    ok(cu.cuMemsetD8Async(ptr, 1, 1, mine))
    ok(cu.cuEventRecord(mark, mine))
    ok(cu.cuMemsetD8Async(ptr, 2, 1, mine))
    ok(cu.cuEventSynchronize(mark))
    assert driver.peek(ptr, 1) == b"\1"
    assert status(cu.cuEventQuery(mark)) == SUCCESS
    ok(cu.cuEventDestroy(mark))
    for answer in (cu.cuEventSynchronize(mark), cu.cuEventDestroy(mark)):
        assert status(answer) == INVALID_HANDLE
    assert status(cu.cuEventRecord(mark, mine)) == INVALID_HANDLE
    assert status(cu.cuStreamWaitEvent(mine, mark, 0)) == INVALID_HANDLE


def test_a_stream_waits_for_an_event_as_it_was(driver: Driver) -> None:
    ptr, first, second, mark = alloc(1), stream(), stream(), event()
    ok(cu.cuMemsetD8Async(ptr, 1, 1, first))
    ok(cu.cuEventRecord(mark, first))
    ok(cu.cuStreamWaitEvent(second, mark, 0))
    ok(cu.cuMemsetD8Async(ptr, 2, 1, first))
    ok(cu.cuEventRecord(mark, first))
    ok(cu.cuMemsetD8Async(ptr, 3, 1, second))
    ok(cu.cuStreamSynchronize(second))
    assert driver.peek(ptr, 1) == b"\3"
    ok(cu.cuStreamSynchronize(first))
    assert driver.peek(ptr, 1) == b"\2"


def test_elapsed_time(driver: Driver) -> None:
    start, end, mine = event(), event(), stream()
    assert status(cu.cuEventElapsedTime(start, end)) == INVALID_HANDLE
    ok(cu.cuEventRecord(start, mine))
    ok(cu.cuEventRecord(end, mine))
    assert status(cu.cuEventElapsedTime(start, end)) == NOT_READY
    ok(cu.cuEventSynchronize(start))
    time.sleep(0.005)
    ok(cu.cuEventSynchronize(end))
    assert 4 <= ok(cu.cuEventElapsedTime(start, end)) < 10_000


@pytest.mark.parametrize("legacy", [0, LEGACY])
def test_the_legacy_stream_is_ordered_with_blocking_streams(
    driver: Driver, legacy: Any
) -> None:
    ptr, blocking = alloc(1), stream(BLOCKING)
    ok(cu.cuMemsetD8Async(ptr, 1, 1, blocking))
    ok(cu.cuMemsetD8Async(ptr, 2, 1, legacy))
    ok(cu.cuMemsetD8Async(ptr, 3, 1, blocking))
    assert driver.peek(ptr, 1) == bytes([FRESH])
    ok(cu.cuStreamSynchronize(legacy))
    assert driver.peek(ptr, 1) == b"\3"


def test_legacy_work_waits_for_earlier_blocking_work_only(driver: Driver) -> None:
    ptr, blocking, mark = alloc(2), stream(BLOCKING), event()
    ok(cu.cuMemsetD8Async(ptr, 1, 2, blocking))
    ok(cu.cuMemsetD8Async(ptr, 2, 1, LEGACY))
    ok(cu.cuEventRecord(mark, LEGACY))
    ok(cu.cuMemsetD8Async(ptr, 3, 2, blocking))
    ok(cu.cuEventSynchronize(mark))
    assert driver.peek(ptr, 2) == b"\2\1"


def test_blocking_work_waits_for_legacy_work(driver: Driver) -> None:
    ptr, blocking = alloc(2), stream(BLOCKING)
    ok(cu.cuMemsetD8(ptr, 1, 2))
    ok(cu.cuMemsetD8Async(ptr, 2, 1, blocking))
    ok(cu.cuStreamSynchronize(blocking))
    assert driver.peek(ptr, 2) == b"\2\1"


def test_a_non_blocking_stream_is_ordered_with_nothing(driver: Driver) -> None:
    ptr, mine = alloc(1), stream(NON_BLOCKING)
    ok(cu.cuMemsetD8(ptr, 1, 1))
    ok(cu.cuMemsetD8Async(ptr, 2, 1, mine))
    ok(cu.cuStreamSynchronize(mine))
    assert driver.peek(ptr, 1) == b"\2"
    ok(cu.cuStreamSynchronize(LEGACY))
    assert driver.peek(ptr, 1) == b"\1"


def test_a_per_thread_stream_is_a_threads_own(driver: Driver) -> None:
    context, ptr = ok(cu.cuCtxGetCurrent()), int(alloc(2))

    def elsewhere() -> None:
        ok(cu.cuCtxSetCurrent(context))
        ok(cu.cuMemsetD8Async(ptr + 1, 1, 1, PER_THREAD))

    ok(cu.cuMemsetD8Async(ptr, 1, 1, PER_THREAD))
    in_thread(elsewhere)
    ok(cu.cuStreamSynchronize(PER_THREAD))
    assert driver.peek(ptr, 2) == bytes([1, FRESH])
    ok(cu.cuMemsetD8(ptr, 2, 1))
    ok(cu.cuStreamSynchronize(LEGACY))
    assert driver.peek(ptr, 2) == b"\2\1"


def test_a_stale_or_made_up_stream_is_refused(driver: Driver) -> None:
    ptr, gone = alloc(1), stream()
    ok(cu.cuMemsetD8Async(ptr, 1, 1, gone))
    ok(cu.cuStreamDestroy(gone))
    for wrong in (gone, MADE_UP):
        for answer in (
            cu.cuMemsetD8Async(ptr, 0, 1, wrong),
            cu.cuMemcpyDtoDAsync(ptr, ptr, 1, wrong),
            cu.cuStreamSynchronize(wrong),
            cu.cuStreamQuery(wrong),
            cu.cuStreamDestroy(wrong),
            cu.cuStreamGetCtx(wrong),
            cu.cuEventRecord(event(), wrong),
            cu.cuMemAllocAsync(1, wrong),
        ):
            assert status(answer) == INVALID_HANDLE
    for default in (0, LEGACY, PER_THREAD):
        assert status(cu.cuStreamDestroy(default)) == INVALID_HANDLE


def test_a_destroyed_stream_does_its_work(driver: Driver) -> None:
    ptr, gone, mark = alloc(1), stream(), event()
    ok(cu.cuMemsetD8Async(ptr, 1, 1, gone))
    ok(cu.cuEventRecord(mark, gone))
    ok(cu.cuStreamDestroy(gone))
    assert driver.objects().streams == 0
    ok(cu.cuEventSynchronize(mark))
    assert driver.peek(ptr, 1) == b"\1"


def test_what_a_stream_knows(driver: Driver) -> None:
    mine = ok(cu.cuStreamCreateWithPriority(NON_BLOCKING, -1))
    assert int(ok(cu.cuStreamGetCtx(mine))) == int(ok(cu.cuCtxGetCurrent()))
    assert ok(cu.cuStreamGetFlags(mine)) == NON_BLOCKING
    assert ok(cu.cuStreamGetPriority(mine)) == -1
    assert ok(cu.cuCtxGetStreamPriorityRange()) == [0, -5]
    assert status(cu.cuStreamCreate(2)) == INVALID_VALUE


# What blocks


def test_memset_and_device_copy_return_early(driver: Driver) -> None:
    ptr, other = alloc(1), alloc(1)
    ok(cu.cuMemsetD8(ptr, 1, 1))
    ok(cu.cuMemcpyDtoD(other, ptr, 1))
    assert (driver.pending(), driver.peek(other, 1)) == (2, bytes([FRESH]))
    ok(cu.cuCtxSynchronize())
    assert driver.peek(other, 1) == b"\1"


def test_a_copy_to_the_host_blocks(driver: Driver) -> None:
    ptr = int(alloc(3))
    ok(cu.cuMemsetD8Async(ptr, 1, 1, stream(BLOCKING)))
    ok(cu.cuMemsetD8(ptr + 1, 1, 1))
    ok(cu.cuMemsetD8Async(ptr + 2, 1, 1, stream(NON_BLOCKING)))
    assert read(ptr, 3) == bytes([1, 1, FRESH])


def test_a_copy_from_pageable_memory_has_read_it(driver: Driver) -> None:
    ptr, mine, host = int(alloc(8)), stream(), bytearray(b"abcd")
    ok(cu.cuMemcpyHtoD(ptr, host, 4))
    ok(cu.cuMemcpyHtoDAsync(ptr + 4, host, 4, mine))
    host[:] = b"ABCD"
    assert (driver.pending(), driver.peek(ptr, 8)) == (2, bytes([FRESH] * 8))
    ok(cu.cuCtxSynchronize())
    assert driver.peek(ptr, 8) == b"abcdabcd"


def test_a_copy_from_pageable_memory_waits_first(driver: Driver) -> None:
    ptr, other = alloc(1), alloc(1)
    ok(cu.cuMemsetD8Async(other, 1, 1, stream(BLOCKING)))
    ok(cu.cuMemcpyHtoD(ptr, b"a", 1))
    assert driver.peek(other, 1) == b"\1"


def test_a_copy_from_pinned_memory_reads_it_late(driver: Driver) -> None:
    ptr, mine, host = alloc(4), stream(), ok(cu.cuMemAllocHost(4))
    ctypes.memmove(host, b"abcd", 4)
    ok(cu.cuMemcpyHtoDAsync(ptr, host, 4, mine))
    ctypes.memmove(host, b"ABCD", 4)
    ok(cu.cuStreamSynchronize(mine))
    assert driver.peek(ptr, 4) == b"ABCD"
    ctypes.memmove(host, b"abcd", 4)
    ok(cu.cuMemcpyHtoD(ptr, host, 4))
    assert driver.peek(ptr, 4) == b"abcd"


def test_an_asynchronous_copy_to_the_host(driver: Driver) -> None:
    ptr, mine = alloc(1), stream()
    pageable, pinned = bytearray(1), ok(cu.cuMemAllocHost(1))
    ctypes.memmove(pinned, b"-", 1)
    ok(cu.cuMemsetD8Async(ptr, 1, 1, mine))
    ok(cu.cuMemcpyDtoHAsync(pinned, ptr, 1, mine))
    assert ctypes.string_at(pinned, 1) == b"-"
    ok(cu.cuMemcpyDtoHAsync(pageable, ptr, 1, mine))
    assert bytes(pageable) == ctypes.string_at(pinned, 1) == b"\1"


def test_free_waits_for_pending_work(driver: Driver) -> None:
    ptr, kept = int(alloc(1)), int(alloc(2))
    ok(cu.cuMemcpyDtoDAsync(kept, ptr, 1, stream()))
    ok(cu.cuMemsetD8Async(kept + 1, 1, 1, stream()))
    ok(cu.cuMemFree(ptr))
    assert (driver.pending(), driver.peek(kept, 2)) == (0, bytes([FRESH, 1]))


# Stream-ordered memory


def test_memory_is_freed_in_stream_order(driver: Driver) -> None:
    mine = stream()
    ptr = ok(cu.cuMemAllocAsync(100, mine))
    ok(cu.cuMemsetD8Async(ptr, 1, 100, mine))
    ok(cu.cuMemFreeAsync(ptr, mine))
    assert driver.live() == Live(1, 100)
    assert status(cu.cuMemFreeAsync(ptr, mine)) == INVALID_VALUE
    assert status(cu.cuMemFree(ptr)) == INVALID_VALUE
    assert status(cu.cuMemsetD8Async(ptr, 1, 1, mine)) == INVALID_VALUE
    ok(cu.cuStreamSynchronize(mine))
    assert driver.live() == Live(0, 0)


def test_ordered_memory_is_reused(driver: Driver) -> None:
    driver.reset(devices=1, memory=1024)
    ok(cu.cuCtxSetCurrent(ok(cu.cuDevicePrimaryCtxRetain(0))))
    mine = stream()
    ok(cu.cuMemFreeAsync(ok(cu.cuMemAllocAsync(1024, mine)), mine))
    ok(cu.cuMemAllocAsync(1024, mine))
    assert status(cu.cuMemAllocAsync(1, mine)) == OUT_OF_MEMORY


def test_plain_memory_is_not_freed_in_stream_order(driver: Driver) -> None:
    assert status(cu.cuMemFreeAsync(alloc(1), 0)) == INVALID_VALUE


def test_an_ordinary_stream_brings_its_context(driver: Driver) -> None:
    mine = stream()

    def elsewhere() -> None:
        ok(cu.cuMemFreeAsync(ok(cu.cuMemAllocAsync(1, mine)), mine))

    in_thread(elsewhere)
    ok(cu.cuStreamSynchronize(mine))
    assert driver.live() == (0, 0)


def test_work_that_comes_after_the_free_is_an_illegal_access(driver: Driver) -> None:
    mine, late = stream(), stream()
    ptr = ok(cu.cuMemAllocAsync(1, mine))
    ok(cu.cuMemsetD8Async(ptr, 1, 1, late))
    ok(cu.cuMemFreeAsync(ptr, mine))
    ok(cu.cuStreamSynchronize(mine))
    assert status(cu.cuStreamSynchronize(late)) == ILLEGAL_ADDRESS
    for answer in (cu.cuMemAlloc(1), cu.cuCtxSynchronize(), cu.cuStreamQuery(mine)):
        assert status(answer) == ILLEGAL_ADDRESS
    ok(cu.cuDevicePrimaryCtxReset(0))
    alloc(1)


def test_pools(driver: Driver) -> None:
    pool = ok(cu.cuDeviceGetDefaultMemPool(0))
    threshold = cu.CUmemPool_attribute.CU_MEMPOOL_ATTR_RELEASE_THRESHOLD
    used = cu.CUmemPool_attribute.CU_MEMPOOL_ATTR_USED_MEM_CURRENT
    ok(cu.cuMemPoolSetAttribute(pool, threshold, cu.cuuint64_t(77)))
    assert int(ok(cu.cuMemPoolGetAttribute(pool, threshold))) == 77
    ptr = ok(cu.cuMemAllocFromPoolAsync(100, pool, 0))
    assert int(ok(cu.cuMemPoolGetAttribute(pool, used))) == 512
    ok(cu.cuMemFree(ptr))
    assert int(ok(cu.cuMemPoolGetAttribute(pool, used))) == 0
    assert status(cu.cuMemAllocFromPoolAsync(1, MADE_UP, 0)) == INVALID_VALUE


# Records and faults


def test_calls_are_recorded(driver: Driver) -> None:
    ptr, mine = alloc(1000), stream()
    ok(cu.cuMemsetD32Async(int(ptr) + 4, 0xABCD, 10, mine))
    ok(cu.cuMemcpyDtoD(int(ptr), int(ptr) + 500, 7))
    ok(cu.cuMemFree(ptr))
    assert status(cu.cuMemFree(ptr)) == INVALID_VALUE
    address, handle = int(ptr), int(mine)
    recorded = driver.calls()
    first = recorded[0].sequence
    assert [tuple(call) for call in recorded] == [
        (first, "cuMemAlloc", 0, address, 0, 1000, 0, 0, 0),
        (first + 1, "cuStreamCreate", handle, 0, 0, 0, NON_BLOCKING, 0, 0),
        (first + 2, "cuMemsetD32Async", handle, address + 4, 0, 40, 0xABCD, 0, 0),
        (first + 3, "cuMemcpyDtoD", 0, address, address + 500, 7, 0, 0, 0),
        (first + 4, "cuMemFree", 0, address, 0, 1000, 0, 0, 0),
        (first + 5, "cuMemFree", 0, address, 0, 0, 0, 0, INVALID_VALUE),
    ]
    assert driver.calls("cuStreamCreate", "cuMemAlloc") == recorded[:2]
    driver.clear()
    assert driver.calls() == []


def test_the_nth_call_fails(driver: Driver) -> None:
    driver.fail("cuMemAlloc", nth=2)
    assert [status(cu.cuMemAlloc(1)) for _ in range(4)] == [
        SUCCESS,
        OUT_OF_MEMORY,
        SUCCESS,
        SUCCESS,
    ]
    assert driver.live().allocations == 3
    assert [call.result for call in driver.calls()] == [0, OUT_OF_MEMORY, 0, 0]


def test_every_later_call_fails(driver: Driver) -> None:
    driver.fail("cuMemGetInfo", nth=2, status=ILLEGAL_ADDRESS, sticky=True)
    answers = [status(cu.cuMemGetInfo()) for _ in range(3)]
    assert answers == [SUCCESS, ILLEGAL_ADDRESS, ILLEGAL_ADDRESS]
    driver.mend()
    assert status(cu.cuMemGetInfo()) == SUCCESS


def test_several_faults(driver: Driver) -> None:
    driver.fail("cuMemAlloc", nth=1, status=NOT_READY)
    driver.fail("cuMemAlloc", nth=2)
    answers = [status(cu.cuMemAlloc(1)) for _ in range(3)]
    assert answers == [NOT_READY, OUT_OF_MEMORY, SUCCESS]


def test_a_fault_in_any_call(driver: Driver) -> None:
    driver.fail("*", nth=3)
    ok(cu.cuMemGetInfo())
    ptr = alloc(1)
    ok(cu.cuGetErrorName(OUT_OF_MEMORY))
    assert status(cu.cuMemFree(ptr)) == OUT_OF_MEMORY
    assert driver.live() == (1, 1)
    ok(cu.cuMemFree(ptr))


@pytest.mark.parametrize("name", CONTEXT_CALLS)
def test_a_fault_for_any_name(driver: Driver, name: str) -> None:
    driver.fail(name, status=NOT_FOUND)
    assert status(CONTEXT_CALLS[name]()) == NOT_FOUND
    assert [(call.name, call.result) for call in driver.calls()] == [(name, NOT_FOUND)]


@pytest.mark.parametrize("name", ["cuInit", "cuModuleUnload", "cuDeviceGetCount"])
def test_a_fault_where_no_context_is_needed(driver: Driver, name: str) -> None:
    driver.fail(name, status=999)
    arguments = {"cuInit": [0], "cuModuleUnload": [MADE_UP]}.get(name, [])
    assert status(getattr(cu, name)(*arguments)) == 999


def test_a_fault_leaves_work_undone(driver: Driver) -> None:
    ptr, mine = alloc(1), stream()
    ok(cu.cuMemsetD8Async(ptr, 1, 1, mine))
    driver.fail("cuStreamSynchronize", status=ILLEGAL_ADDRESS)
    assert status(cu.cuStreamSynchronize(mine)) == ILLEGAL_ADDRESS
    assert driver.pending() == 1


def test_what_cannot_be_asked(driver: Driver) -> None:
    for wrong in (
        lambda: driver.fail("cuMemAlloc", nth=0),
        lambda: driver.fail("x" * 64),
        lambda: driver.peek(MADE_UP, 1),
        lambda: driver.peek(int(alloc(1)), 2),
        lambda: driver.live(8),
        lambda: driver.set_attribute(0, 1),
        lambda: driver.reset(devices=9),
        lambda: driver.reset(devices=2, memory=[1]),
    ):
        with pytest.raises(ValueError):
            wrong()


def test_a_reset_starts_anew(driver: Driver) -> None:
    ptr, mine, mark = alloc(1), stream(), event()
    ok(cu.cuMemsetD8Async(ptr, 1, 1, mine))
    driver.fail("cuInit", sticky=True)
    driver.reset()
    assert (driver.live(), driver.pending(), driver.calls()) == ((0, 0), 0, [])
    assert driver.objects() == Objects(0, 0, 0, 0, 0)
    ok(cu.cuInit(0))
    assert status(cu.cuMemGetInfo()) == INVALID_CONTEXT
    ok(cu.cuCtxSetCurrent(ok(cu.cuDevicePrimaryCtxRetain(0))))
    assert status(cu.cuMemFree(ptr)) == INVALID_VALUE
    assert status(cu.cuStreamDestroy(mine)) == INVALID_HANDLE
    assert status(cu.cuEventDestroy(mark)) == INVALID_HANDLE
    assert int(alloc(1)) != int(ptr)


# Captures and graphs


def captured(mine: Any, mode: Any = GLOBAL) -> None:
    ok(cu.cuStreamBeginCapture(mine, mode))


def is_invalidated(mine: Any) -> bool:
    return bool(
        ok(cu.cuStreamIsCapturing(mine))
        == cu.CUstreamCaptureStatus.CU_STREAM_CAPTURE_STATUS_INVALIDATED
    )


def test_a_capture_is_replayed(driver: Driver) -> None:
    ptr, mine = int(alloc(8)), stream()
    captured(mine)
    ok(cu.cuMemsetD8Async(ptr, 5, 4, mine))
    ok(cu.cuMemcpyDtoDAsync(ptr + 4, ptr, 4, mine))
    graph = ok(cu.cuStreamEndCapture(mine))
    assert (driver.pending(), driver.peek(ptr, 8)) == (0, bytes([FRESH] * 8))

    nodes, count = ok(cu.cuGraphGetNodes(graph, 2))
    assert count == 2
    memcpy, memset = (
        cu.CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMCPY,
        cu.CUgraphNodeType.CU_GRAPH_NODE_TYPE_MEMSET,
    )
    assert [ok(cu.cuGraphNodeGetType(node)) for node in nodes] == [memset, memcpy]

    executable = ok(cu.cuGraphInstantiate(graph, 0))
    ok(cu.cuGraphDestroy(graph))
    assert driver.objects()[2:4] == (0, 1)
    for _ in range(2):
        ok(cu.cuMemsetD8Async(ptr, 0, 8, mine))
        ok(cu.cuStreamSynchronize(mine))
        ok(cu.cuGraphLaunch(executable, mine))
        assert (driver.pending(), driver.peek(ptr, 8)) == (2, bytes(8))
        ok(cu.cuStreamSynchronize(mine))
        assert driver.peek(ptr, 8) == bytes([5] * 8)
    ok(cu.cuGraphExecDestroy(executable))
    assert status(cu.cuGraphLaunch(executable, mine)) == INVALID_VALUE
    assert status(cu.cuGraphDestroy(graph)) == INVALID_VALUE


def test_a_replay_over_freed_memory_is_an_illegal_access(driver: Driver) -> None:
    ptr, mine = alloc(1), stream()
    captured(mine)
    ok(cu.cuMemsetD8Async(ptr, 5, 1, mine))
    executable = ok(cu.cuGraphInstantiate(ok(cu.cuStreamEndCapture(mine)), 0))
    ok(cu.cuMemFree(ptr))
    ok(cu.cuGraphLaunch(executable, mine))
    assert status(cu.cuStreamSynchronize(mine)) == ILLEGAL_ADDRESS


def test_a_captured_copy_reads_the_host_when_it_runs(driver: Driver) -> None:
    ptr, mine, host = alloc(1), stream(), bytearray(b"a")
    captured(mine)
    ok(cu.cuMemcpyHtoDAsync(ptr, host, 1, mine))
    executable = ok(cu.cuGraphInstantiate(ok(cu.cuStreamEndCapture(mine)), 0))
    host[:] = b"b"
    ok(cu.cuGraphLaunch(executable, mine))
    assert read(ptr, 1) == bytes([FRESH])
    ok(cu.cuStreamSynchronize(mine))
    assert read(ptr, 1) == b"b"


def test_capture_information(driver: Driver) -> None:
    mine = stream()
    assert ok(cu.cuStreamGetCaptureInfo(mine))[0] == 0
    captured(mine)
    active, number, graph, *_ = ok(cu.cuStreamGetCaptureInfo(mine))
    assert (active, int(number) > 0) == (1, True)
    assert int(ok(cu.cuStreamEndCapture(mine))) == int(graph)
    assert ok(cu.cuStreamIsCapturing(mine)) == 0


CaptureCall = Callable[[int, Any, Any], tuple[Any, ...]]

# Calls that a capture forbids, by what they answer; the capture is of a blocking and of
# a non-blocking stream.
FORBIDDEN: dict[str, tuple[CaptureCall, Any, Any]] = {
    "cuMemAlloc": (lambda p, s, e: cu.cuMemAlloc(1), UNSUPPORTED, UNSUPPORTED),
    "cuMemFree": (lambda p, s, e: cu.cuMemFree(p), UNSUPPORTED, UNSUPPORTED),
    "cuMemAllocHost": (lambda p, s, e: cu.cuMemAllocHost(1), UNSUPPORTED, UNSUPPORTED),
    "cuStreamSynchronize": (
        lambda p, s, e: cu.cuStreamSynchronize(s),
        UNSUPPORTED,
        UNSUPPORTED,
    ),
    "cuStreamQuery": (lambda p, s, e: cu.cuStreamQuery(s), UNSUPPORTED, UNSUPPORTED),
    "cuCtxSynchronize": (
        lambda p, s, e: cu.cuCtxSynchronize(),
        UNSUPPORTED,
        UNSUPPORTED,
    ),
    "cuMemcpyDtoH": (
        lambda p, s, e: cu.cuMemcpyDtoH(bytearray(1), p, 1),
        IMPLICIT,
        UNSUPPORTED,
    ),
    "cuMemcpyHtoD": (
        lambda p, s, e: cu.cuMemcpyHtoD(p, b"x", 1),
        IMPLICIT,
        UNSUPPORTED,
    ),
    "cuMemsetD8": (lambda p, s, e: cu.cuMemsetD8(p, 0, 1), IMPLICIT, None),
    "cuMemsetD8Async on legacy": (
        lambda p, s, e: cu.cuMemsetD8Async(p, 0, 1, LEGACY),
        IMPLICIT,
        None,
    ),
    "cuStreamSynchronize of legacy": (
        lambda p, s, e: cu.cuStreamSynchronize(LEGACY),
        IMPLICIT,
        None,
    ),
    "cuStreamWaitEvent": (
        lambda p, s, e: cu.cuStreamWaitEvent(s, e, 0),
        ISOLATION,
        ISOLATION,
    ),
}


@pytest.mark.parametrize("flags", [BLOCKING, NON_BLOCKING])
@pytest.mark.parametrize("name", FORBIDDEN)
def test_a_forbidden_call_invalidates_the_capture(
    driver: Driver, name: str, flags: int
) -> None:
    ptr, mine, outside = int(alloc(1)), stream(flags), event()
    ok(cu.cuEventRecord(outside, stream()))
    call, *expected = FORBIDDEN[name]
    captured(mine)
    answer = expected[flags]
    assert status(call(ptr, mine, outside)) == (answer or SUCCESS)
    assert is_invalidated(mine) == (answer is not None)
    if answer:
        assert status(cu.cuMemsetD8Async(ptr, 0, 1, mine)) == INVALIDATED
        assert status(cu.cuStreamEndCapture(mine)) == INVALIDATED
        assert driver.objects().graphs == 0
    else:
        ok(cu.cuStreamEndCapture(mine))
    assert driver.live() == (1, 1)
    assert ok(cu.cuStreamIsCapturing(mine)) == 0


def test_memory_of_a_graph_is_not_supported(driver: Driver) -> None:
    mine = stream()
    ptr = ok(cu.cuMemAllocAsync(1, mine))
    captured(mine)
    assert status(cu.cuMemAllocAsync(1, mine)) == NOT_SUPPORTED
    assert status(cu.cuMemFreeAsync(ptr, mine)) == NOT_SUPPORTED


def test_unsafe_calls_by_mode_and_thread(driver: Driver) -> None:
    context = ok(cu.cuCtxGetCurrent())

    def elsewhere() -> Any:
        ok(cu.cuCtxSetCurrent(context))
        return status(cu.cuMemAlloc(1))

    for mode, here, there in (
        (GLOBAL, UNSUPPORTED, UNSUPPORTED),
        (THREAD_LOCAL, UNSUPPORTED, SUCCESS),
        (RELAXED, SUCCESS, SUCCESS),
    ):
        mine = stream()
        captured(mine, mode)
        assert in_thread(elsewhere) == there
        assert is_invalidated(mine) == (there != SUCCESS)
        assert status(cu.cuMemAlloc(1)) == here
        cu.cuStreamEndCapture(mine)

    mine = stream()
    captured(mine, GLOBAL)
    assert ok(cu.cuThreadExchangeStreamCaptureMode(RELAXED)) == GLOBAL
    assert status(cu.cuMemAlloc(1)) == SUCCESS
    assert ok(cu.cuThreadExchangeStreamCaptureMode(GLOBAL)) == RELAXED
    ok(cu.cuStreamEndCapture(mine))


def test_no_capture_lets_its_context_be_synchronised(driver: Driver) -> None:
    mine = stream()
    captured(mine, RELAXED)
    assert status(cu.cuCtxSynchronize()) == UNSUPPORTED
    assert is_invalidated(mine)


def test_a_capture_begins_and_ends_in_its_place(driver: Driver) -> None:
    mine = stream()
    assert status(cu.cuStreamBeginCapture(LEGACY, GLOBAL)) == UNSUPPORTED
    assert status(cu.cuStreamBeginCapture(0, GLOBAL)) == UNSUPPORTED
    assert status(cu.cuStreamEndCapture(mine)) == ILLEGAL_STATE
    captured(mine, THREAD_LOCAL)
    assert status(cu.cuStreamBeginCapture(mine, GLOBAL)) == ILLEGAL_STATE
    context = ok(cu.cuCtxGetCurrent())

    def elsewhere() -> Any:
        ok(cu.cuCtxSetCurrent(context))
        return status(cu.cuStreamEndCapture(mine))

    assert in_thread(elsewhere) == WRONG_THREAD
    ok(cu.cuStreamEndCapture(mine))


def test_a_capture_forks_and_joins(driver: Driver) -> None:
    ptr, mine, other = int(alloc(2)), stream(), stream()
    fork, join = event(), event()
    captured(mine)
    ok(cu.cuEventRecord(fork, mine))
    ok(cu.cuStreamWaitEvent(other, fork, 0))
    ok(cu.cuMemsetD8Async(ptr, 1, 1, other))
    assert status(cu.cuEventQuery(fork)) == CAPTURED_EVENT
    ok(cu.cuEventRecord(join, other))
    ok(cu.cuStreamWaitEvent(mine, join, 0))
    ok(cu.cuMemsetD8Async(ptr + 1, 2, 1, mine))
    executable = ok(cu.cuGraphInstantiate(ok(cu.cuStreamEndCapture(mine)), 0))
    assert ok(cu.cuStreamIsCapturing(other)) == 0
    assert status(cu.cuStreamWaitEvent(mine, fork, 0)) == CAPTURED_EVENT
    ok(cu.cuGraphLaunch(executable, mine))
    ok(cu.cuStreamSynchronize(mine))
    assert driver.peek(ptr, 2) == b"\1\2"


def test_a_fork_has_to_be_joined(driver: Driver) -> None:
    ptr, mine, other, fork, early = alloc(1), stream(), stream(), event(), event()
    captured(mine)
    ok(cu.cuEventRecord(fork, mine))
    ok(cu.cuStreamWaitEvent(other, fork, 0))
    ok(cu.cuEventRecord(early, other))
    ok(cu.cuMemsetD8Async(ptr, 1, 1, other))
    ok(cu.cuStreamWaitEvent(mine, early, 0))
    assert status(cu.cuStreamEndCapture(mine)) == UNJOINED


def test_a_fork_cannot_end_the_capture(driver: Driver) -> None:
    mine, other, fork = stream(), stream(), event()
    captured(mine)
    ok(cu.cuEventRecord(fork, mine))
    ok(cu.cuStreamWaitEvent(other, fork, 0))
    assert status(cu.cuStreamEndCapture(other)) == UNMATCHED
    assert status(cu.cuStreamEndCapture(mine)) == INVALIDATED


def test_two_captures_do_not_merge(driver: Driver) -> None:
    mine, other, mark = stream(), stream(), event()
    captured(mine)
    captured(other)
    ok(cu.cuEventRecord(mark, mine))
    assert status(cu.cuStreamWaitEvent(other, mark, 0)) == MERGE
    assert is_invalidated(mine)
    assert is_invalidated(other)


def test_a_captured_stream_may_be_destroyed(driver: Driver) -> None:
    mine = stream()
    captured(mine)
    ok(cu.cuStreamDestroy(mine))
    assert driver.objects()[:4] == (0, 0, 0, 0)
    alloc(1)


# Threads


def test_many_threads(driver: Driver) -> None:
    context = ok(cu.cuCtxGetCurrent())

    def work(value: int) -> None:
        ok(cu.cuCtxSetCurrent(context))
        mine = stream()
        for _ in range(50):
            ptr = alloc(1000)
            ok(cu.cuMemsetD8Async(ptr, value, 1000, mine))
            ok(cu.cuStreamSynchronize(mine))
            assert driver.peek(ptr, 1000) == bytes([value]) * 1000
            ok(cu.cuMemFree(ptr))
        ok(cu.cuStreamDestroy(mine))

    failures: list[BaseException] = []

    def guarded(value: int) -> None:
        try:
            work(value)
        except BaseException as failure:
            failures.append(failure)

    threads = [threading.Thread(target=guarded, args=(i,)) for i in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []
    assert (driver.live(), driver.pending()) == ((0, 0), 0)
    assert len(driver.calls("cuMemFree")) == 8 * 50
    sequence = [call.sequence for call in driver.calls()]
    assert sequence == list(range(sequence[0], sequence[0] + len(sequence)))


# cuda.core


def test_cuda_core(driver: Driver) -> None:
    core = pytest.importorskip("cuda.core")
    device = core.Device(0)
    device.set_current()
    mine = device.create_stream()
    assert mine.__cuda_stream__() == (0, int(mine.handle))
    buffer = device.memory_resource.allocate(1000, stream=mine)
    copy = device.memory_resource.allocate(1000, stream=mine)
    ptr = int(copy.handle)
    buffer.fill(7, stream=mine)
    copy.copy_from(buffer, stream=mine)
    assert driver.peek(ptr, 1) == bytes([FRESH])
    mine.sync()
    assert driver.peek(ptr, 1000) == b"\7" * 1000
    mark = mine.record()
    assert not mark.is_done
    mark.sync()
    assert mark.is_done
    buffer.close()
    copy.close()
    mine.sync()
    assert driver.live() == (0, 0)
    mine.close()


def test_cuda_core_captures(driver: Driver) -> None:
    core = pytest.importorskip("cuda.core")
    device = core.Device(0)
    device.set_current()
    mine = device.create_stream()
    builder = mine.create_graph_builder()
    builder.begin_building()
    buffer = core.Buffer.from_handle(int(alloc(4)), 4)
    buffer.fill(7, stream=builder)
    builder.end_building()
    assert [call.result for call in driver.calls("cuStreamEndCapture")] == [0]
    builder.close()
    mine.close()
