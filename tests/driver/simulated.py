"""The simulated CUDA driver: compiled, loaded into this process, and looked into.

`build` compiles it; `Driver` loads it under the name libcuda.so.1, so that CUDA
bindings that are first used afterwards take it for the driver. What it models is said
in driver.c. Nothing here imports the bindings.
"""

from __future__ import annotations

import ctypes
import hashlib
import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

SONAME = "libcuda.so.1"
OUT_OF_MEMORY = 2
# Every byte of memory that nothing was written to.
FRESH = 0xCD

_SOURCES = Path(__file__).parent
_FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Werror", "-fPIC", "-shared")
_LINK = ("-fvisibility=hidden", "-pthread", f"-Wl,-soname,{SONAME}")


class UnavailableError(Exception):
    """The driver cannot be compiled or loaded here."""


class Call(NamedTuple):
    """A call of the driver API; what it has none of is 0."""

    sequence: int
    name: str
    stream: int
    pointer: int
    source: int
    bytes: int
    value: int
    device: int
    result: int


class Live(NamedTuple):
    """What is allocated and not freed; bytes as they were asked for."""

    allocations: int
    bytes: int


class Objects(NamedTuple):
    """What is created and not destroyed; primary contexts as often as retained."""

    streams: int
    events: int
    graphs: int
    executables: int
    contexts: int


class _Call(ctypes.Structure):
    _fields_ = (
        ("sequence", ctypes.c_uint64),
        ("name", ctypes.c_char_p),
        ("stream", ctypes.c_uint64),
        ("pointer", ctypes.c_uint64),
        ("source", ctypes.c_uint64),
        ("bytes", ctypes.c_uint64),
        ("value", ctypes.c_uint64),
        ("device", ctypes.c_int32),
        ("result", ctypes.c_int32),
    )


def build(folder: Path) -> Path:
    """Compile the driver, unless `folder` has it from the same sources already."""
    compiler = shutil.which(os.environ.get("CC", "cc"))
    if compiler is None:
        raise UnavailableError("no C compiler")
    sources = sorted(_SOURCES.glob("*.[ch]"))
    content = hashlib.sha256(repr((compiler, _FLAGS, _LINK)).encode())
    for source in sources:
        content.update(source.read_bytes())
    library = folder / content.hexdigest()[:16] / SONAME
    if not library.exists():
        library.parent.mkdir(parents=True, exist_ok=True)
        part = library.with_name(f"{os.getpid()}.part")
        units = [str(source) for source in sources if source.suffix == ".c"]
        command = [compiler, *_FLAGS, *_LINK, "-o", str(part), *units]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode:
            raise UnavailableError(f"the driver does not compile:\n{done.stderr}")
        part.replace(library)
    return library


class Driver:
    """The driver in this process: what was called, what is there, faults on demand."""

    def __init__(self, library: Path) -> None:
        """Load the driver; raise UnavailableError where another one is loaded."""
        self.library = library
        self._library = ctypes.CDLL(str(library), mode=ctypes.RTLD_GLOBAL)
        if not hasattr(ctypes.CDLL(SONAME), "sim_reset"):
            raise UnavailableError("another CUDA driver is loaded in this process")
        self._library.sim_calls_count.restype = ctypes.c_uint64
        self._library.sim_pending.restype = ctypes.c_uint64

    def _do(self, name: str, *arguments: object) -> None:
        if getattr(self._library, name)(*arguments):
            raise ValueError(f"{name} does not take {arguments}")

    def reset(self, devices: int = 1, memory: int | Sequence[int] = 80 << 30) -> None:
        """Start anew with `devices` of `memory` bytes, of the same or of each.

        Calls, faults, memory and objects are gone, and no thread has a context. A
        library that keeps a primary context over a reset has to retain it anew.
        """
        sizes = [memory] * devices if isinstance(memory, int) else list(memory)
        if len(sizes) != devices:
            raise ValueError(f"{devices} devices, but memory for {len(sizes)}")
        self._do("sim_reset", devices, (ctypes.c_uint64 * devices)(*sizes))

    def calls(self, *names: str) -> list[Call]:
        """The calls so far, oldest first: all of them, or those of these names."""
        found = []
        record = _Call()
        for i in range(self._library.sim_calls_count()):
            self._library.sim_call(ctypes.c_uint64(i), ctypes.byref(record))
            _, name, *rest = (getattr(record, field) for field, _ in _Call._fields_)
            if not names or name.decode() in names:
                found.append(Call(record.sequence, name.decode(), *rest))
        return found

    def clear(self) -> None:
        """Forget the calls so far."""
        self._library.sim_clear()

    def fail(
        self,
        name: str,
        nth: int = 1,
        status: int = OUT_OF_MEMORY,
        sticky: bool = False,
    ) -> None:
        """Let the n-th call of `name` from now on answer `status` and do nothing.

        With `sticky`, every later one too. "*" is a call of any name.
        """
        encoded = name.encode()
        self._do("sim_fail", encoded, ctypes.c_uint64(nth), int(status), sticky)

    def mend(self) -> None:
        """Forget the faults that are still to come."""
        self._library.sim_mend()

    def live(self, device: int = 0) -> Live:
        """What is allocated on a device."""
        allocations, nbytes = ctypes.c_uint64(), ctypes.c_uint64()
        self._do("sim_live", device, ctypes.byref(allocations), ctypes.byref(nbytes))
        return Live(allocations.value, nbytes.value)

    def pinned(self) -> Live:
        """What is allocated of pinned host memory."""
        return self.live(-1)

    def peek(self, ptr: int, nbytes: int) -> bytes:
        """What memory holds at this moment; work that is pending stays undone."""
        content = ctypes.create_string_buffer(nbytes)
        address, size = ctypes.c_uint64(int(ptr)), ctypes.c_uint64(nbytes)
        self._do("sim_peek", address, content, size)
        return content.raw

    def pending(self) -> int:
        """How many pieces of work are queued in all streams."""
        return int(self._library.sim_pending())

    def objects(self) -> Objects:
        """How many streams, events, graphs and contexts there are."""
        found = (ctypes.c_uint64 * len(Objects._fields))()
        self._library.sim_objects(found)
        return Objects(*found)

    def set_attribute(self, attribute: int, value: int, device: int = 0) -> None:
        """Change what cuDeviceGetAttribute answers, until the next reset."""
        self._do("sim_set_attribute", device, int(attribute), value)
