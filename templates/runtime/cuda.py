"""Device memory through cuda-python.

Imports cuda-python when a backend is made, so that a package without a GPU imports.
Works on the device's primary context, which it shares with torch, cupy and others.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from itertools import starmap
from operator import length_hint
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NoReturn

from .backend import Stream, free_each
from .device import NULL, DevicePtr
from .errors import BackendError, ConfigError, OutOfMemoryError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

INSTALL: Final = "install it with: pip install 'cuda-python>=12.9,<14'"
_OUT_OF_MEMORY: Final = 2
# Streams for which ranges keep their calls.
_MAX_STREAMS: Final = 4


class CudaError(BackendError):
    """A call of the CUDA driver that failed.

    call: name of the driver function.
    status, status_name: the CUresult, as a number and by name.
    ptr: the address that the call was about, or None.
    detail: what the driver says of the status, and what the call was about.
    """

    def __init__(
        self, call: str, status: int, status_name: str, ptr: int | None, detail: str
    ) -> None:
        super().__init__(call, status, status_name, ptr, detail)
        self.call = call
        self.status = status
        self.status_name = status_name
        self.ptr = ptr
        self.detail = detail

    def __str__(self) -> str:
        return f"{self.call}: {self.status_name} ({self.status}): {self.detail}"


class _Ranges:
    """Ranges to set, pointer and bytes each, and the value of their bytes.

    calls: the arguments of the driver's calls, by the handle of a stream of late.
    """

    __slots__ = ("calls", "ranges", "value")

    def __init__(self, ranges: tuple[tuple[DevicePtr, int], ...], value: int) -> None:
        self.ranges = ranges
        self.value = value
        self.calls: dict[int, tuple[tuple[Any, ...], ...]] = {}


class CudaBackend:
    """The memory of one CUDA device.

    Every call runs in the device's primary context, whichever is current in the calling
    thread, and leaves that as it was. Nothing waits for the device but `synchronize`,
    `memset`, `memset_pattern` and the copies, whose contract it is. A stream is an int
    handle, a `cuda.core` Stream, a `CUstream`, any object with `__cuda_stream__`, or a
    torch stream.
    """

    def __init__(self, device: int = 0, *, memory_resource: Any = None) -> None:
        """Retain the primary context of a device, by its number.

        memory_resource: a `cuda.core` MemoryResource to allocate from; None takes
            cuMemAlloc. One that allocates in stream order does so on the legacy default
            stream.

        Raise BackendError without cuda-python or a driver, and CudaError for what the
        driver refuses.
        """
        self._driver = load_driver()
        self._resource = memory_resource
        self._buffers: dict[int, Any] = {}
        self._lock = Lock()
        try:
            started = self._driver.cuInit(0)
        except Exception as error:
            raise BackendError(
                f"the CUDA driver cannot be loaded: {error}; libcuda.so.1 comes with "
                "the NVIDIA driver"
            ) from error
        if started[0]:
            self._fail("cuInit", started[0])
        status, self._device = self._driver.cuDeviceGet(device)
        if status:
            self._fail("cuDeviceGet", status, f"device {device}")
        status, self._context = self._driver.cuDevicePrimaryCtxRetain(self._device)
        if status:
            self._fail("cuDevicePrimaryCtxRetain", status)
        self._ordinal = device
        # A subclass that counts or changes calls must see every one of them.
        self._own_memset = type(self).memset_async is CudaBackend.memset_async
        own_alloc = type(self).alloc is CudaBackend.alloc
        own_free = type(self).free is CudaBackend.free
        self._plain_alloc = own_alloc and memory_resource is None
        self._plain_free = own_free and memory_resource is None

    def __reduce__(self) -> NoReturn:
        raise TypeError("a backend is neither copied nor pickled")

    @property
    def device(self) -> int:
        """Number of the device."""
        return self._ordinal

    @property
    def dlpack_device(self) -> tuple[int, int]:
        """The device as DLPack numbers it."""
        return 2, self._ordinal

    def close(self) -> None:
        """Give the primary context back; the backend cannot be used afterwards."""
        if self._context is not None:
            self._context = None
            (status,) = self._driver.cuDevicePrimaryCtxRelease(self._device)
            if status:
                self._fail("cuDevicePrimaryCtxRelease", status)

    def alloc(self, nbytes: int) -> DevicePtr:
        """Return the address of `nbytes` > 0 new bytes.

        Raise OutOfMemoryError with what was free, caused by the driver's error.
        """
        if nbytes <= 0:
            raise BackendError(
                f"alloc: {nbytes} bytes asked; an allocation has at least 1 byte, "
                "leave an empty buffer NULL"
            )
        ptr = NULL
        pushed = self._enter()
        try:
            if self._resource is not None:
                ptr = self._alloc_from_resource(nbytes)
            else:
                status, address = self._driver.cuMemAlloc(nbytes)
                if status:
                    self._refuse(nbytes, status)
                ptr = DevicePtr(address)
        finally:
            try:
                self._leave(pushed)
            except CudaError:
                # Nobody would learn of memory that is there by now.
                if ptr:
                    self._free_now(ptr)
                raise
        return ptr

    def _refuse(self, nbytes: int, status: Any) -> NoReturn:
        error = self._error("cuMemAlloc", status, None, f"{nbytes} bytes")
        if error.status != _OUT_OF_MEMORY:
            raise error
        raise OutOfMemoryError(nbytes, *self._memory_info()) from error

    def _alloc_from_resource(self, nbytes: int) -> DevicePtr:
        try:
            stream = import_module("cuda.core").LEGACY_DEFAULT_STREAM
            buffer = self._resource.allocate(nbytes, stream=stream)
        except Exception as error:
            free, total = self._memory_info()
            if free is not None and nbytes > free:
                raise OutOfMemoryError(nbytes, free, total) from error
            raise BackendError(
                f"{type(self._resource).__name__}.allocate: {nbytes} bytes: {error}"
            ) from error
        ptr = DevicePtr(int(buffer.handle))
        with self._lock:
            self._buffers[ptr] = buffer
        return ptr

    def free(self, ptr: DevicePtr) -> None:
        """Give back an allocation, named by the address that `alloc` returned."""
        pushed = self._enter()
        try:
            self._free_now(ptr)
        finally:
            self._leave(pushed)

    def _free_now(self, ptr: DevicePtr) -> None:
        if self._resource is None:
            (status,) = self._driver.cuMemFree(int(ptr))
            if status:
                self._fail("cuMemFree", status, ptr=ptr)
            return
        with self._lock:
            buffer = self._buffers.pop(int(ptr), None)
        if buffer is None:
            raise BackendError(
                f"free: {int(ptr):#x} is no live allocation of this backend"
            )
        buffer.close()

    def alloc_many(self, sizes: Sequence[int], handles: list[Any]) -> None:
        """Append the driver's address of `nbytes` new bytes for each of `sizes`.

        Raise what `alloc` raises; the addresses appended by then stay allocated.
        """
        if not self._plain_alloc:
            for nbytes in sizes:
                handles.append(self.alloc(nbytes))
            return
        earlier = len(handles)
        pushed = self._enter()
        try:
            for status, address in map(self._driver.cuMemAlloc, sizes):
                if status:
                    self._refuse(sizes[len(handles) - earlier], status)
                handles.append(address)
        finally:
            self._leave(pushed)

    def free_many(self, handles: Sequence[Any]) -> list[tuple[int, Exception]]:
        """Free every address, whatever others do; the place and error of each failure.

        Failing to enter the context counts for the first, to leave it for the last.
        """
        if not self._plain_free:
            return free_each(self, handles)
        free = self._driver.cuMemFree
        failures: list[tuple[int, Exception]] = []
        interrupt: BaseException | None = None
        # Here, as an interrupt that comes while the context is entered is raised by
        # the next call.
        left = enumerate(handles)
        try:
            pushed = self._enter()
        except BackendError as error:
            rest = free_each(self, handles[1:])
            return [(0, error), *((place + 1, failure) for place, failure in rest)]
        except BaseException:
            # An interrupt, before any was attempted.
            free_each(self, handles)
            raise
        while True:
            try:
                for place, handle in left:
                    try:
                        (status,) = free(handle)
                        if status:
                            self._fail("cuMemFree", status, ptr=handle)
                    except Exception as error:  # noqa: BLE001
                        failures.append((place, error))
                break
            except BaseException as stop:  # noqa: BLE001
                # Wherever it came, what is left would be out of reach for good.
                interrupt = stop
        try:
            self._leave(pushed)
        except CudaError as error:
            failures.append((len(handles) - 1, error))
        if interrupt is not None:
            raise interrupt
        return failures

    def memset(self, ptr: DevicePtr, value: int, nbytes: int) -> None:
        """Set `nbytes` bytes to `value`; work enqueued later sees them."""
        self._memset("cuMemsetD8", ptr, value, nbytes)

    def memset_pattern(self, ptr: DevicePtr, pattern: bytes, count: int) -> None:
        """Write a pattern of 1, 2 or 4 bytes `count` times; work later sees it."""
        name = {1: "cuMemsetD8", 2: "cuMemsetD16", 4: "cuMemsetD32"}.get(len(pattern))
        if name is None:
            raise BackendError(
                f"memset_pattern: {len(pattern)} bytes; a pattern has 1, 2 or 4"
            )
        self._memset(name, ptr, int.from_bytes(pattern, "little"), count)

    def _memset(self, name: str, ptr: DevicePtr, value: int, count: int) -> None:
        pushed = self._enter()
        try:
            (status,) = getattr(self._driver, name)(ptr, value, count)
            if status:
                self._fail(name, status, f"{count} elements", ptr)
            self._wait()
        finally:
            self._leave(pushed)

    def memset_async(
        self, ptr: DevicePtr, value: int, nbytes: int, stream: Stream
    ) -> None:
        """Enqueue on `stream` the setting of `nbytes` bytes to `value`."""
        handle = stream if type(stream) is int else stream_handle(stream)
        pushed = self._enter()
        try:
            (status,) = self._driver.cuMemsetD8Async(ptr, value, nbytes, handle)
            if status:
                self._fail("cuMemsetD8Async", status, f"{nbytes} bytes", ptr)
        finally:
            if pushed:
                self._leave(pushed)

    def prepare_ranges(
        self, ranges: Sequence[tuple[DevicePtr, int]], value: int
    ) -> _Ranges:
        """Return the ranges with room for the driver's own form of them."""
        return _Ranges(tuple(ranges), value)

    def memset_ranges(self, prepared: _Ranges, stream: Stream) -> None:
        """Enqueue on `stream` one memset for each prepared range, in order."""
        if not self._own_memset:
            for ptr, nbytes in prepared.ranges:
                self.memset_async(ptr, prepared.value, nbytes, stream)
            return
        handle = stream if type(stream) is int else stream_handle(stream)
        calls = prepared.calls.get(handle) or self._calls(prepared, handle)
        left = iter(calls)
        pushed = self._enter()
        try:
            for (status,) in starmap(self._driver.cuMemsetD8Async, left):
                if status:
                    # What is left tells the place, so that nothing counts the calls.
                    failed = len(calls) - length_hint(left) - 1
                    ptr, nbytes = prepared.ranges[failed]
                    self._fail("cuMemsetD8Async", status, f"{nbytes} bytes", ptr)
        finally:
            if pushed:
                self._leave(pushed)

    def _calls(self, prepared: _Ranges, handle: int) -> tuple[tuple[Any, ...], ...]:
        """The arguments of the memsets of prepared ranges, which are then kept."""
        address, stream = self._driver.CUdeviceptr, self._driver.CUstream(handle)
        calls = tuple(
            (address(int(ptr)), prepared.value, nbytes, stream)
            for ptr, nbytes in prepared.ranges
        )
        if len(prepared.calls) >= _MAX_STREAMS:
            prepared.calls.clear()
        prepared.calls[handle] = calls
        return calls

    def copy_h2d(self, dst: DevicePtr, src: ReadableBuffer) -> None:
        """Copy all bytes of `src` to the device; work enqueued later sees them."""
        view = memoryview(src).cast("B")
        host, kept = _host_address(view)
        pushed = self._enter()
        try:
            (status,) = self._driver.cuMemcpyHtoD(int(dst), host, view.nbytes)
            if status:
                self._fail("cuMemcpyHtoD", status, f"{view.nbytes} bytes", dst)
            self._wait()
        finally:
            self._leave(pushed)
        del kept

    def copy_d2h(self, dst: WriteableBuffer, src: DevicePtr) -> None:
        """Fill `dst` from the device; its length is the number of bytes."""
        view = memoryview(dst).cast("B")
        if view.readonly:
            raise BackendError("copy_d2h: the destination is read-only")
        host, kept = _host_address(view)
        pushed = self._enter()
        try:
            (status,) = self._driver.cuMemcpyDtoH(host, int(src), view.nbytes)
            if status:
                self._fail("cuMemcpyDtoH", status, f"{view.nbytes} bytes", src)
        finally:
            self._leave(pushed)
        del kept

    def copy_d2d(self, dst: DevicePtr, src: DevicePtr, nbytes: int) -> None:
        """Copy between two ranges of the device; work enqueued later sees it."""
        pushed = self._enter()
        try:
            (status,) = self._driver.cuMemcpyDtoD(int(dst), int(src), nbytes)
            if status:
                self._fail("cuMemcpyDtoD", status, f"{nbytes} bytes", dst)
            self._wait()
        finally:
            self._leave(pushed)

    def synchronize(self, stream: Stream) -> None:
        """Wait until all work enqueued on `stream` so far is done."""
        handle = stream_handle(stream)
        pushed = self._enter()
        try:
            (status,) = self._driver.cuStreamSynchronize(handle)
            if status:
                self._fail("cuStreamSynchronize", status)
        finally:
            self._leave(pushed)

    @property
    def default_stream(self) -> int:
        """The legacy default stream."""
        return 0

    def total_memory(self) -> int:
        """Bytes of device memory."""
        return self._memory()[1]

    def free_memory(self) -> int:
        """Bytes of device memory that are not in use, by whomever."""
        return self._memory()[0]

    def _memory(self) -> tuple[int, int]:
        pushed = self._enter()
        try:
            status, free, total = self._driver.cuMemGetInfo()
            if status:
                self._fail("cuMemGetInfo", status)
        finally:
            self._leave(pushed)
        return int(free), int(total)

    def _memory_info(self) -> tuple[int | None, int | None]:
        status, free, total = self._driver.cuMemGetInfo()
        return (None, None) if status else (int(free), int(total))

    def _wait(self) -> None:
        # Blocking memsets, uploads and copies inside the device return before the
        # device is done, and streams that do not wait for the default one see that.
        (status,) = self._driver.cuStreamSynchronize(0)
        if status:
            self._fail("cuStreamSynchronize", status)

    def _enter(self) -> bool:
        """Make the context current; whether another one has to come back."""
        if self._context is None:
            raise BackendError("the backend is closed; make a new one")
        status, current = self._driver.cuCtxGetCurrent()
        if status:
            self._fail("cuCtxGetCurrent", status)
        if current == self._context:
            return False
        (status,) = self._driver.cuCtxPushCurrent(self._context)
        if status:
            self._fail("cuCtxPushCurrent", status)
        return True

    def _leave(self, pushed: bool) -> None:
        if pushed:
            status, _ = self._driver.cuCtxPopCurrent()
            if status:
                self._fail("cuCtxPopCurrent", status)

    def _fail(
        self, name: str, status: Any, detail: str = "", ptr: int | None = None
    ) -> NoReturn:
        raise self._error(name, status, ptr, detail)

    def _error(self, name: str, status: Any, ptr: Any, detail: str) -> CudaError:
        code = int(status)
        named = self._text(self._driver.cuGetErrorName(status))
        said = self._text(self._driver.cuGetErrorString(status))
        address = None if ptr is None else int(ptr)
        about = [each for each in (detail, said) if each]
        if address is not None:
            about.insert(0, f"at {address:#x}")
        return CudaError(name, code, named or "unknown", address, ", ".join(about))

    def _text(self, result: tuple[Any, ...]) -> str:
        status, text = result
        return "" if status or text is None else text.decode()


def load_driver() -> Any:
    """The module `cuda.bindings.driver`. Raise BackendError without it."""
    try:
        return import_module("cuda.bindings.driver")
    except ImportError as error:
        raise BackendError(f"cuda-python cannot be imported: {error}; {INSTALL}") from (
            error
        )


def stream_handle(stream: Any) -> int:
    """The CUstream of whatever the ecosystem calls a stream, as an int.

    Raise ConfigError for what is no stream; None is none, the default stream is 0.
    """
    if isinstance(stream, int) and not isinstance(stream, bool):
        return int(stream)
    protocol = getattr(stream, "__cuda_stream__", None)
    if protocol is not None:
        # A method by the protocol; cuda.core had it as a property at first.
        _, handle = protocol() if callable(protocol) else protocol
        return int(handle)
    handle = getattr(stream, "cuda_stream", None)
    if handle is not None:
        return int(handle)
    if type(stream).__name__ == "CUstream":
        return int(stream)
    raise ConfigError(
        f"{type(stream).__name__} is no CUDA stream; pass an int handle (0 is the "
        "default stream) or an object with __cuda_stream__"
    )


def _host_address(view: memoryview) -> tuple[int, object]:
    """Where a buffer lies, and what must stay alive for as long as it is used."""
    import ctypes

    if view.readonly:
        kept = ctypes.create_string_buffer(bytes(view), view.nbytes)
    else:
        kept = (ctypes.c_char * view.nbytes).from_buffer(view)
    return ctypes.addressof(kept), kept
