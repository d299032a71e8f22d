"""A typed, shaped view of device memory, in the forms that array libraries take.

Takes what an arena knows of a part of a buffer; hands it out as a pointer, a DLPack
capsule, a CUDA array interface or a numpy array, never as a copy. Imports nothing but
the standard library until `TensorView.numpy` is called.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from math import prod
from typing import TYPE_CHECKING, Any, Final, NoReturn

from .device import DevicePtr
from .errors import ArenaError, LayoutError, format_bytes
from .layout import DTYPE_BITS

if TYPE_CHECKING:
    # Without numpy the package type-checks too, and its arrays are Any.
    import numpy  # type: ignore[import-not-found, unused-ignore]

# Types of a DLDevice, as dlpack.h names them.
KDL_CPU: Final = 1
KDL_CUDA: Final = 2

_TYPESTRS: Final = {
    "bool": "|b1",
    "u8": "|u1",
    "i8": "|i1",
    "u16": "<u2",
    "i16": "<i2",
    "u32": "<u4",
    "i32": "<i4",
    "u64": "<u8",
    "i64": "<i8",
    "f16": "<f2",
    "f32": "<f4",
    "f64": "<f8",
}

_ML_DTYPES: Final = {
    "bf16": "bfloat16",
    "fp8_e4m3": "float8_e4m3fn",
    "fp8_e5m2": "float8_e5m2",
}


class ViewError(ArenaError, BufferError):
    """A view that cannot be handed over in the form asked for.

    buffer: name of the buffer.
    reason: what was asked, why it cannot be, and what to do instead.
    """

    def __init__(self, buffer: str, reason: str) -> None:
        super().__init__(buffer, reason)
        self.buffer = buffer
        self.reason = reason

    def __str__(self) -> str:
        return f"{self.buffer}: {self.reason}"


class TensorView:
    """A part of a buffer as an array, row-major and without gaps.

    `torch.from_dlpack`, `cupy.from_dlpack`, `numpy.from_dlpack` and their like take a
    view and share its memory, which they may write.

    The memory is the arena's. Each use of a view raises ReleasedError once the arena is
    released. What a view gave out before that, a pointer, a capsule, an array, cannot
    be taken back: it keeps neither the view nor the arena alive, and dangles after the
    release as whatever points into freed memory does. Drop it first.

    No stream is waited for, as the arena leaves no work of its own pending. Work that
    the caller has enqueued on the buffer is the caller's to order with the consumer's.

    name: name of the buffer.
    dtype: element type as the schema spells it.
    shape: elements in each dimension.
    strides: elements from one index to the next, in each dimension.
    ndim: number of dimensions.
    size: elements in all.
    nbytes: bytes in all; fp4_e2m1 packs two elements in a byte.
    """

    __slots__ = (
        "_check",
        "_device",
        "_ptr",
        "dtype",
        "name",
        "nbytes",
        "ndim",
        "shape",
        "size",
        "strides",
    )

    def __init__(
        self,
        *,
        name: str,
        ptr: DevicePtr,
        dtype: str,
        shape: tuple[int, ...],
        device: tuple[int, int],
        check: Callable[[], None],
    ) -> None:
        """View the memory at `ptr`; raise LayoutError for NULL unless the size is 0.

        device: DLPack device type and number, (1, 0) for host memory or (2, n) for
            CUDA device n.
        check: raises ReleasedError when the arena has been released.
        """
        self.name = name
        self.dtype = dtype
        self.shape = shape
        self.strides = _row_major(shape)
        self.ndim = len(shape)
        self.size = prod(shape)
        self.nbytes = (self.size * DTYPE_BITS[dtype] + 7) // 8
        self._ptr = ptr
        self._device = device
        self._check = check
        if self.size and not ptr:
            asked = f"{self._type_text()} ({self.nbytes} bytes)"
            raise LayoutError(name, asked, 0)

    @property
    def ptr(self) -> DevicePtr:
        """Address of the first element."""
        self._check()
        return self._ptr

    def data_ptr(self) -> int:
        """Address of the first element, as torch calls it; Triton asks for it."""
        return int(self.ptr)

    def __len__(self) -> int:
        """Elements in the leading dimension."""
        if not self.shape:
            raise TypeError(f"{self.name}: a view without dimensions has no length")
        return self.shape[0]

    def __repr__(self) -> str:
        return (
            f"<TensorView {self.name}: {self._type_text()}, "
            f"{format_bytes(self.nbytes)} at {int(self._ptr):#x}, "
            f"{self._device_text()}>"
        )

    def __reduce__(self) -> NoReturn:
        raise TypeError(
            f"{self.name}: a view cannot be pickled or copied, as it points into the "
            "arena's memory; copy the content"
        )

    def __dlpack_device__(self) -> tuple[int, int]:
        """DLPack device type and number."""
        self._check()
        return self._device

    def __dlpack__(
        self,
        *,
        stream: int | None = None,
        max_version: tuple[int, int] | None = None,
        dl_device: tuple[int, int] | None = None,
        copy: bool | None = None,
    ) -> object:
        """Return a DLPack capsule that shares the memory.

        The parameters are those of the array API standard 2024.12.
        Elements of fp4_e2m1 leave in pairs, with the last dimension halved, as a
        `torch.float4_e2m1fn_x2` has it. The address may have less than the 256 bytes
        of alignment that `dlpack.h` asks for, and byte_offset is 0.

        stream: where the consumer will use the memory. On CUDA None, -1, 1 (legacy
            default), 2 (per-thread default) or a handle; on the host None. It changes
            nothing, see the class.
        max_version: newest DLPack version that the consumer takes; from (1, 0) on the
            capsule is a "dltensor_versioned", otherwise a "dltensor".
        dl_device: None or the view's own device.
        copy: None or False.

        Raise ViewError, a BufferError, for anything else.
        """
        self._check()
        self._check_stream(stream)
        if dl_device is not None and tuple(dl_device) != self._device:
            raise ViewError(
                self.name,
                f"dl_device={dl_device!r}: the memory is on "
                f"{self._device_text()} {self._device} and a view does not move it; "
                "export it there, then copy",
            )
        if copy:
            raise ViewError(
                self.name,
                "copy=True: a view only shares its memory; export it, then copy",
            )
        shape = self._stored_shape("a DLPack capsule")
        from .dlpack import new_capsule

        return new_capsule(
            self._ptr if self.size else 0,
            self.dtype,
            shape,
            _row_major(shape),
            self._device,
            versioned=max_version is not None and max_version[0] >= 1,
        )

    @property
    def __cuda_array_interface__(self) -> dict[str, object]:
        """The CUDA array interface, version 3.

        Its stream is None: the consumer need not synchronize with the arena.

        Raise AttributeError for host memory, and for element types without a typestr.
        """
        if self._device[0] != KDL_CUDA:
            raise AttributeError(
                f"{self.name}: no CUDA array interface, the memory is on "
                f"{self._device_text()}; use numpy() or from_dlpack"
            )
        typestr = _TYPESTRS.get(self.dtype)
        if typestr is None:
            raise AttributeError(
                f"{self.name}: no CUDA array interface, it has no type for "
                f"{self.dtype}; use from_dlpack"
            )
        self._check()
        return {
            "shape": self.shape,
            "typestr": typestr,
            "data": (int(self._ptr) if self.size else 0, False),
            "strides": None,
            "stream": None,
            "version": 3,
        }

    def __array__(
        self, dtype: Any = None, copy: bool | None = None
    ) -> numpy.ndarray[Any, numpy.dtype[Any]]:
        """What `numpy.asarray` and its like take: `numpy()`, converted if asked."""
        array = self.numpy()
        if dtype is not None and dtype != array.dtype:
            if copy is False:
                raise ViewError(self.name, f"a view as {dtype} needs a copy")
            return array.astype(dtype)
        return array.copy() if copy else array

    def numpy(self) -> numpy.ndarray[Any, numpy.dtype[Any]]:
        """Return the view as a writable numpy array on the same host memory.

        bf16, fp8_e4m3 and fp8_e5m2 have the types of ml_dtypes. fp4_e2m1 comes as u8
        with the last dimension halved: each holds two elements, the first in the low
        four bits. `ml_dtypes.float4_e2m1fn` takes a byte for each, so it cannot be
        shared.

        Raise ViewError for device memory, and without numpy or ml_dtypes.
        """
        self._check()
        if self._device[0] != KDL_CPU:
            raise ViewError(
                self.name,
                f"numpy(): the memory is on {self._device_text()}; copy it to the host "
                "with the backend's copy_d2h, or use from_dlpack of torch or cupy",
            )
        shape = self._stored_shape("numpy()")
        np = self._imported("numpy")
        if self.dtype in _ML_DTYPES:
            dtype = getattr(self._imported("ml_dtypes"), _ML_DTYPES[self.dtype])
        else:
            dtype = _TYPESTRS.get(self.dtype, "|u1")
        from ctypes import c_char

        memory = (c_char * self.nbytes).from_address(self._ptr)
        array: numpy.ndarray[Any, numpy.dtype[Any]] = np.ndarray(shape, dtype, memory)
        return array

    def _check_stream(self, stream: int | None) -> None:
        if stream is None:
            return
        if self._device[0] == KDL_CPU:
            raise ViewError(
                self.name, f"stream={stream!r}: host memory has no streams; pass None"
            )
        valid = isinstance(stream, int) and not isinstance(stream, bool)
        if not valid or stream < -1 or stream == 0:
            raise ViewError(
                self.name,
                f"stream={stream!r}: pass None, -1, 1 (legacy default), 2 (per-thread "
                "default) or a handle",
            )

    def _stored_shape(self, asked: str) -> tuple[int, ...]:
        """The shape in what memory is addressed by: elements, or pairs of fp4_e2m1."""
        if self.dtype != "fp4_e2m1":
            return self.shape
        if not self.shape or self.shape[-1] % 2:
            raise ViewError(
                self.name,
                f"{asked}: {self._type_text()} has no even last dimension, and two "
                "elements share a byte; use ptr",
            )
        return (*self.shape[:-1], self.shape[-1] // 2)

    def _imported(self, module: str) -> Any:
        try:
            return import_module(module)
        except ImportError as error:
            raise ViewError(
                self.name,
                f"numpy() of {self.dtype} needs {module}, which cannot be imported: "
                f"{error}; install it with: pip install {module}",
            ) from error

    def _type_text(self) -> str:
        return f"{self.dtype} {list(self.shape)}"

    def _device_text(self) -> str:
        kind, number = self._device
        return "host" if kind == KDL_CPU else f"cuda:{number}"


def _row_major(shape: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(prod(shape[place + 1 :]) for place in range(len(shape)))
