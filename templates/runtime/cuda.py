"""Device memory through cuda-python.

Imports cuda-python when a backend is made, so that a package without a GPU imports.
Works on the device's primary context, which it shares with torch, cupy and others.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module
from threading import Lock
from typing import TYPE_CHECKING, Any, Final, NoReturn

from .backend import Stream
from .device import DevicePtr
from .errors import BackendError, ConfigError, OutOfMemoryError

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

INSTALL: Final = "install it with: pip install 'cuda-python>=12.9,<14'"
_OUT_OF_MEMORY: Final = 2


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
        self._call("cuInit", started)
        self._device = self._call("cuDeviceGet", self._driver.cuDeviceGet(device))
        self._context = self._call(
            "cuDevicePrimaryCtxRetain",
            self._driver.cuDevicePrimaryCtxRetain(self._device),
        )
        self._context_handle = int(self._context)
        self._ordinal = device
        # A subclass that counts or changes memsets must see every one of them.
        self._own_memset = type(self).memset_async is CudaBackend.memset_async

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
            release = self._driver.cuDevicePrimaryCtxRelease(self._device)
            self._call("cuDevicePrimaryCtxRelease", release)

    def alloc(self, nbytes: int) -> DevicePtr:
        """Return the address of `nbytes` > 0 new bytes.

        Raise OutOfMemoryError with what was free, caused by the driver's error.
        """
        if nbytes <= 0:
            raise BackendError(
                f"alloc: {nbytes} bytes asked; an allocation has at least 1 byte, "
                "leave an empty buffer NULL"
            )
        ptr = None
        try:
            with self._current():
                if self._resource is not None:
                    ptr = self._alloc_from_resource(nbytes)
                else:
                    ptr = self._alloc_from_driver(nbytes)
        except CudaError:
            # Going back to the caller's context may fail once the memory is there.
            if ptr is not None:
                self._free_now(ptr)
            raise
        return ptr

    def _alloc_from_driver(self, nbytes: int) -> DevicePtr:
        result = self._driver.cuMemAlloc(nbytes)
        if int(result[0]) == _OUT_OF_MEMORY:
            free, total = self._memory_info()
            error = self._error("cuMemAlloc", result[0], None, f"{nbytes} bytes")
            raise OutOfMemoryError(nbytes, free, total) from error
        return DevicePtr(int(self._call("cuMemAlloc", result, f"{nbytes} bytes")))

    def _alloc_from_resource(self, nbytes: int) -> DevicePtr:
        try:
            buffer = self._resource.allocate(nbytes, stream=self._resource_stream())
        except Exception as error:
            free, total = self._memory_info()
            if free is not None and nbytes > free:
                raise OutOfMemoryError(nbytes, free, total) from error
            raise BackendError(
                f"{type(self._resource).__name__}.allocate: {nbytes} bytes: {error}"
            ) from error
        address = int(buffer.handle)
        with self._lock:
            self._buffers[address] = buffer
        return DevicePtr(address)

    def _resource_stream(self) -> Any:
        return import_module("cuda.core").LEGACY_DEFAULT_STREAM

    def free(self, ptr: DevicePtr) -> None:
        """Give back an allocation, named by the address that `alloc` returned."""
        with self._current():
            self._free_now(ptr)

    def _free_now(self, ptr: DevicePtr) -> None:
        if self._resource is None:
            freed = self._driver.cuMemFree(self._driver.CUdeviceptr(int(ptr)))
            self._call("cuMemFree", freed, ptr=ptr)
            return
        with self._lock:
            buffer = self._buffers.pop(int(ptr), None)
        if buffer is None:
            raise BackendError(
                f"free: {int(ptr):#x} is no live allocation of this backend"
            )
        buffer.close()

    def memset(self, ptr: DevicePtr, value: int, nbytes: int) -> None:
        """Set `nbytes` bytes to `value`; work enqueued later sees them."""
        self.memset_pattern(ptr, bytes([value]), nbytes)

    def memset_pattern(self, ptr: DevicePtr, pattern: bytes, count: int) -> None:
        """Write a pattern of 1, 2 or 4 bytes `count` times; work later sees it."""
        driver = self._driver
        name = {1: "cuMemsetD8", 2: "cuMemsetD16", 4: "cuMemsetD32"}.get(len(pattern))
        if name is None:
            raise BackendError(
                f"memset_pattern: {len(pattern)} bytes; a pattern has 1, 2 or 4"
            )
        value = int.from_bytes(pattern, "little")
        with self._current():
            address = driver.CUdeviceptr(int(ptr))
            result = getattr(driver, name)(address, value, count)
            self._call(name, result, f"{count} elements", ptr)
            self._wait()

    def memset_async(
        self, ptr: DevicePtr, value: int, nbytes: int, stream: Stream
    ) -> None:
        """Enqueue on `stream` the setting of `nbytes` bytes to `value`."""
        handle = self._driver.CUstream(stream_handle(stream))
        with self._current():
            result = self._driver.cuMemsetD8Async(int(ptr), value, nbytes, handle)
            self._call("cuMemsetD8Async", result, f"{nbytes} bytes", ptr)

    def prepare_ranges(self, ranges: Sequence[tuple[DevicePtr, int]]) -> object:
        """Return the ranges with their addresses in the driver's own form."""
        address = self._driver.CUdeviceptr
        return tuple((ptr, address(int(ptr)), nbytes) for ptr, nbytes in ranges)

    def memset_ranges(self, prepared: Any, value: int, stream: Stream) -> None:
        """Enqueue on `stream` one memset for each prepared range, in order."""
        if not self._own_memset:
            for ptr, _, nbytes in prepared:
                self.memset_async(ptr, value, nbytes, stream)
            return
        driver = self._driver
        memset = driver.cuMemsetD8Async
        handle = driver.CUstream(stream_handle(stream))
        status, current = driver.cuCtxGetCurrent()
        if status:
            self._fail("cuCtxGetCurrent", status, None, "")
        if int(current) != self._context_handle:
            with self._current():
                self.memset_ranges(prepared, value, stream)
            return
        for ptr, address, nbytes in prepared:
            result = memset(address, value, nbytes, handle)
            if result[0]:
                self._fail("cuMemsetD8Async", result[0], ptr, f"{nbytes} bytes")

    def copy_h2d(self, dst: DevicePtr, src: ReadableBuffer) -> None:
        """Copy all bytes of `src` to the device; work enqueued later sees them."""
        view = memoryview(src).cast("B")
        with self._current():
            address = self._driver.CUdeviceptr(int(dst))
            host, kept = _host_address(view)
            result = self._driver.cuMemcpyHtoD(address, host, view.nbytes)
            self._call("cuMemcpyHtoD", result, f"{view.nbytes} bytes", dst)
            self._wait()
            del kept

    def copy_d2h(self, dst: WriteableBuffer, src: DevicePtr) -> None:
        """Fill `dst` from the device; its length is the number of bytes."""
        view = memoryview(dst).cast("B")
        if view.readonly:
            raise BackendError("copy_d2h: the destination is read-only")
        with self._current():
            address = self._driver.CUdeviceptr(int(src))
            host, kept = _host_address(view)
            result = self._driver.cuMemcpyDtoH(host, address, view.nbytes)
            self._call("cuMemcpyDtoH", result, f"{view.nbytes} bytes", src)
            del kept

    def copy_d2d(self, dst: DevicePtr, src: DevicePtr, nbytes: int) -> None:
        """Copy between two ranges of the device; work enqueued later sees it."""
        address = self._driver.CUdeviceptr
        with self._current():
            result = self._driver.cuMemcpyDtoD(
                address(int(dst)), address(int(src)), nbytes
            )
            self._call("cuMemcpyDtoD", result, f"{nbytes} bytes", dst)
            self._wait()

    def synchronize(self, stream: Stream) -> None:
        """Wait until all work enqueued on `stream` so far is done."""
        handle = self._driver.CUstream(stream_handle(stream))
        with self._current():
            self._call("cuStreamSynchronize", self._driver.cuStreamSynchronize(handle))

    @property
    def default_stream(self) -> int:
        """The legacy default stream."""
        return 0

    def total_memory(self) -> int:
        """Bytes of device memory."""
        with self._current():
            return int(self._call("cuMemGetInfo", self._driver.cuMemGetInfo())[1])

    def free_memory(self) -> int:
        """Bytes of device memory that are not in use, by whomever."""
        with self._current():
            return int(self._call("cuMemGetInfo", self._driver.cuMemGetInfo())[0])

    def _wait(self) -> None:
        # Blocking memsets, uploads and copies inside the device return before the
        # device is done, and streams that do not wait for the default one see that.
        result = self._driver.cuStreamSynchronize(self._driver.CUstream(0))
        self._call("cuStreamSynchronize", result)

    def _memory_info(self) -> tuple[int | None, int | None]:
        status, free, total = self._driver.cuMemGetInfo()
        return (None, None) if status else (int(free), int(total))

    @contextmanager
    def _current(self) -> Iterator[None]:
        driver = self._driver
        if self._context is None:
            raise BackendError("the backend is closed; make a new one")
        current = self._call("cuCtxGetCurrent", driver.cuCtxGetCurrent())
        if int(current) == self._context_handle:
            yield
            return
        self._call("cuCtxPushCurrent", driver.cuCtxPushCurrent(self._context))
        try:
            yield
        finally:
            self._call("cuCtxPopCurrent", driver.cuCtxPopCurrent())

    def _call(
        self, name: str, result: tuple[Any, ...], detail: str = "", ptr: Any = None
    ) -> Any:
        status, *values = result
        if status:
            self._fail(name, status, ptr, detail)
        return values[0] if len(values) == 1 else values

    def _fail(self, name: str, status: Any, ptr: Any, detail: str) -> NoReturn:
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
