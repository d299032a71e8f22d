"""Probes an arena on a real backend and says what does not hold.

Knows an arena by the declarations of its buffers alone: every list in the arena's own
code is held against them, and against the calls that reach the backend.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

from .backend import ALIGNMENT, GpuBackend, Stream
from .device import DevicePtr
from .errors import ArenaError, CarveError, LayoutError, ReleasedError
from .info import BufferInfo
from .layout import Region
from .pointer import BufferPtr
from .view import view_device

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

_DIRTY = 0xA5
_SMALL_BYTES = 512
_WHOLE_READ_BYTES = 1 << 16


class SelfcheckReport(NamedTuple):
    """What was probed.

    passed: the number of probes that held.
    failures: a sentence for each that did not.
    left_out: what was not probed, and why.
    """

    passed: int
    failures: tuple[str, ...]
    left_out: tuple[str, ...] = ()

    @property
    def ok(self) -> bool:
        """Whether every probe held."""
        return not self.failures

    def __str__(self) -> str:
        head = f"selfcheck: {self.passed} passed, {len(self.failures)} failed"
        left_out = [f"left out: {each}" for each in self.left_out]
        return "\n  ".join([head, *self.failures, *left_out])


class _Runs:
    """Ranges of addresses; those that touch or overlap are one."""

    def __init__(self, ranges: Iterable[tuple[int, int]]) -> None:
        self._starts: list[int] = []
        self._ends: list[int] = []
        for first, length in sorted(ranges):
            if self._ends and first <= self._ends[-1]:
                self._ends[-1] = max(self._ends[-1], first + length)
            else:
                self._starts.append(first)
                self._ends.append(first + length)

    def covered(self, start: int, nbytes: int) -> int:
        """Bytes of [start, start + nbytes) that lie in one of the ranges."""
        covered, end = 0, start + nbytes
        place = bisect_right(self._ends, start)
        while place < len(self._starts) and self._starts[place] < end:
            covered += min(self._ends[place], end) - max(self._starts[place], start)
            place += 1
        return covered


class Recorder:
    """A backend that passes every call on and keeps what was set and allocated."""

    def __init__(self, gpu: GpuBackend) -> None:
        self._gpu = gpu
        self.allocated: dict[int, int] = {}
        self.live: dict[int, int] = {}
        self.freed: list[int] = []
        self.written: list[tuple[int, int]] = []
        self.cleared: list[tuple[int, int]] = []

    def alloc(self, nbytes: int) -> DevicePtr:
        ptr = self._gpu.alloc(nbytes)
        self.allocated[ptr] = self.live[ptr] = nbytes
        return ptr

    def free(self, ptr: DevicePtr) -> None:
        self._gpu.free(ptr)
        self.live.pop(ptr, None)
        self.freed.append(int(ptr))

    def memset(self, ptr: DevicePtr, value: int, nbytes: int) -> None:
        self._gpu.memset(ptr, value, nbytes)
        self.written.append((ptr, nbytes))

    def memset_async(
        self, ptr: DevicePtr, value: int, nbytes: int, stream: Stream
    ) -> None:
        self._gpu.memset_async(ptr, value, nbytes, stream)
        self.cleared.append((ptr, nbytes))

    def copy_h2d(self, dst: DevicePtr, src: ReadableBuffer) -> None:
        self._gpu.copy_h2d(dst, src)
        self.written.append((dst, memoryview(src).nbytes))

    def copy_d2h(self, dst: WriteableBuffer, src: DevicePtr) -> None:
        self._gpu.copy_d2h(dst, src)

    def copy_d2d(self, dst: DevicePtr, src: DevicePtr, nbytes: int) -> None:
        self._gpu.copy_d2d(dst, src, nbytes)

    def synchronize(self, stream: Stream) -> None:
        self._gpu.synchronize(stream)

    @property
    def default_stream(self) -> Stream:
        return self._gpu.default_stream

    @property
    def dlpack_device(self) -> tuple[int, int]:
        return view_device(self._gpu)

    def total_memory(self) -> int:
        return self._gpu.total_memory()

    def free_memory(self) -> int:
        return self._gpu.free_memory()


class Selfcheck:
    """Collects probes of one arena class; `report` is what they found."""

    def __init__(
        self,
        *,
        buffers: Mapping[str, BufferInfo],
        fields: Sequence[str],
        sizes: Mapping[str, int],
        sizes_of_pass: Callable[[int], Mapping[str, int]],
        tokens: int,
        rows_methods: Mapping[str, str],
        carve_methods: Mapping[str, str],
        layouts: Sequence[str],
        uses: Mapping[str, Iterable[str]],
        gpu: GpuBackend,
    ) -> None:
        """Probe arenas of these declarations.

        fields: the fields of the sizes, `trimmed` last.
        sizes: bytes of every buffer for the caller's model.
        sizes_of_pass: bytes of every buffer at a token limit.
        tokens: the token limit of the arenas.
        rows_methods: the method limited to a pass, by the method of the whole group.
        carve_methods: the method that carves, by buffer.
        layouts: accessors that hold a layout.
        uses: the uses of the buffers that have any.
        """
        self._buffers = buffers
        self._sizes = dict(sizes)
        self._sizes_of_pass = sizes_of_pass
        self._tokens = tokens
        self._rows_methods = rows_methods
        self._carve_methods = carve_methods
        self._layouts = layouts
        self._uses = uses
        self._gpu = gpu
        self._viewed = getattr(gpu, "dlpack_device", None) is not None
        self._passed = 0
        self._failures: list[str] = []
        self._scenario = "sizes"
        declared = list(buffers)
        self.compare("the fields of the sizes", list(fields), [*declared, "trimmed"])
        self.compare("the names of as_dict", list(sizes), declared)

    def report(self) -> SelfcheckReport:
        """What was probed so far."""
        left_out: tuple[str, ...] = ()
        if not self._viewed:
            kind = type(self._gpu).__name__
            left_out = (f"views of buffers, since {kind} has no dlpack_device",)
        return SelfcheckReport(self._passed, tuple(self._failures), left_out)

    def compare(self, what: str, found: object, wanted: object) -> None:
        """Note whether two values are equal."""
        self._note(found == wanted, f"{what}: {found!r}, not {wanted!r}")

    def small_sizes(self) -> list[int]:
        """A different small size for every buffer, none of them 0, and no trim."""
        count = len(self._buffers)
        return [*(_SMALL_BYTES + 32 * place for place in range(count)), 0]

    def run(
        self, scenario: str, build: Callable[[GpuBackend], Any], read: bool = False
    ) -> None:
        """Build an arena, probe all that it does, and release it.

        read: the arena is small and of made-up sizes, so that its checksum can be read
            and the layouts of its buffers cannot.
        """
        self._scenario = scenario
        recorder = Recorder(self._gpu)
        arena: Any = None
        try:
            arena = build(recorder)
            self._probe(arena, recorder, read)
            self._release(arena, recorder)
        except Exception as error:  # noqa: BLE001
            self._note(False, f"{type(error).__name__}: {error}")
            if arena is not None and not arena.released:
                arena.release()
        finally:
            for address in list(recorder.live):
                recorder.free(DevicePtr(address))

    def _note(self, holds: bool, failure: str) -> None:
        if holds:
            self._passed += 1
        else:
            self._failures.append(f"{self._scenario}: {failure}")

    def _probe(self, arena: Any, recorder: Recorder, read: bool) -> None:
        sizes: dict[str, int] = arena.sizes.as_dict()
        total = sum(sizes.values())
        self.compare("total_bytes", arena.sizes.total_bytes, total)
        pointers = self._pointers(arena, recorder, sizes)
        if len(recorder.allocated) == len(pointers):
            allocated = sum(recorder.allocated.values())
            spare = sum(
                max(self._buffers[name].align - ALIGNMENT, 0) for name in pointers
            )
            self.compare("bytes allocated", allocated, total + spare)
        self._bounds(pointers, sizes)
        self._zeroing(arena, recorder, pointers, sizes)
        if read:
            self._checksum(arena, pointers)
        elif self._viewed:
            self._views(arena, pointers)
        self._carves(arena, sizes)
        for name in self._layouts:
            self._no_overlap(name, getattr(arena, name))
        if not read:
            for name, ptr in pointers.items():
                if callable(ptr):
                    self._layout(name, ptr, sizes[name])
                for use in self._uses.get(name, ()):
                    self._use(arena, name, use, sizes[name])

    def _pointers(
        self, arena: Any, recorder: Recorder, sizes: Mapping[str, int]
    ) -> dict[str, DevicePtr]:
        pointers: dict[str, DevicePtr] = {}
        allocated, written = sorted(recorder.allocated), _Runs(recorder.written)
        # The package's own, without what its user derives.
        package = BufferPtr.__module__.removesuffix("runtime.pointer")
        kinds = {
            kind._buffer: kind.__name__
            for kind in BufferPtr.__subclasses__()
            if kind.__module__.startswith(package)
        }
        for name, info in self._buffers.items():
            ptr, nbytes = getattr(arena, name), getattr(arena, f"{name}_bytes")
            kind = kinds.get(name, DevicePtr.__name__)
            self.compare(f"{name}: its pointer's class", type(ptr).__name__, kind)
            self.compare(f"{name}_bytes", nbytes, sizes[name])
            self.compare(f"{name}: its pointer exists", bool(ptr), sizes[name] > 0)
            inside = True
            if ptr:
                place = bisect_right(allocated, ptr)
                base = allocated[place - 1] if place else ptr
                inside = ptr + nbytes <= base + recorder.allocated.get(base, 0)
            self._note(inside, f"{name}: {nbytes} bytes at its pointer are not its own")
            if ptr:
                pointers[name] = ptr
                skew = ptr % info.align
                self.compare(f"{name}: bytes beyond its alignment", skew, 0)
                if info.fill:
                    filled = written.covered(ptr, nbytes)
                    self.compare(f"{name}: bytes filled", filled, nbytes)
        places = sorted((int(ptr), name) for name, ptr in pointers.items())
        for (first, name), (second, other) in pairwise(places):
            apart = first + sizes[name] <= second
            self._note(apart, f"{name} and {other} overlap")
        return pointers

    def _bounds(
        self, pointers: Mapping[str, DevicePtr], sizes: Mapping[str, int]
    ) -> None:
        marks: dict[str, bytes] = {}
        for place, (name, ptr) in enumerate(pointers.items(), start=1):
            marks[name] = bytes([place % 251, place // 251 + 1])
            for offset in (0, sizes[name] - 1):
                self._gpu.copy_h2d(ptr.offset(offset), marks[name][:1])
        for name, ptr in pointers.items():
            ends = self._ends(ptr, sizes[name])
            wanted = {marks[name][0]}
            self._note(ends == wanted, f"{name}: its first or last byte is not its own")

    def _ends(self, ptr: DevicePtr, nbytes: int) -> set[int]:
        return {self._byte(ptr, 0), self._byte(ptr, nbytes - 1)}

    def _byte(self, ptr: DevicePtr, offset: int) -> int:
        byte = bytearray(1)
        self._gpu.copy_d2h(byte, ptr.offset(offset))
        return byte[0]

    def _zeroing(
        self,
        arena: Any,
        recorder: Recorder,
        every: Mapping[str, DevicePtr],
        sizes: Mapping[str, int],
    ) -> None:
        methods = dict.fromkeys(
            method
            for info in self._buffers.values()
            for method in (*info.groups, *dict(info.region_groups))
        )
        one = self._sizes_of_pass(1)
        for method in methods:
            members = {
                name: sizes[name]
                for name, info in self._buffers.items()
                if method in info.groups
            }
            full = getattr(arena, method)
            apart = {
                name
                for name, info in self._buffers.items()
                if method in dict(info.region_groups) and name not in members
            }
            pointers = {name: ptr for name, ptr in every.items() if name not in apart}
            self._one_zeroing(recorder, pointers, sizes, method, full, members)
            cleared = _Runs(recorder.cleared)
            for name in apart & every.keys():
                self._regions_cleared(cleared, name, every[name], sizes[name], method)
            rows_method = self._rows_methods.get(method)
            if rows_method is None:
                continue
            touched = {
                name: (
                    min(one[name], nbytes)
                    if self._buffers[name].token_major and self._tokens > 1
                    else nbytes
                )
                for name, nbytes in members.items()
            }
            rows = partial(getattr(arena, rows_method), tokens=1)
            self._one_zeroing(recorder, pointers, sizes, rows_method, rows, touched)

    def _one_zeroing(
        self,
        recorder: Recorder,
        pointers: Mapping[str, DevicePtr],
        sizes: Mapping[str, int],
        method: str,
        call: Callable[[Stream], None],
        wanted: Mapping[str, int],
    ) -> None:
        stream = self._gpu.default_stream
        for name, ptr in pointers.items():
            self._gpu.memset(ptr, _DIRTY, sizes[name])
        recorder.cleared.clear()
        call(stream)
        self._gpu.synchronize(stream)
        cleared = _Runs(recorder.cleared)
        for name, ptr in pointers.items():
            nbytes = sizes[name]
            due = wanted.get(name, 0)
            found = cleared.covered(ptr, nbytes)
            self.compare(f"{method}: bytes cleared of {name}", found, due)
            self._note(
                self._is_cleared(ptr, nbytes, due),
                f"{method}: {name} does not hold {due} zero bytes and then its own",
            )

    def _regions_cleared(
        self,
        cleared: _Runs,
        name: str,
        ptr: Any,
        nbytes: int,
        method: str,
    ) -> None:
        """Hold what was just cleared of a buffer against its accessors."""
        due: list[tuple[int, int]] = []
        for wanted, path in self._buffers[name].region_groups:
            if wanted != method:
                continue
            steps = path.split(".")
            try:
                part = getattr(ptr, steps.pop(0))() if name in self._uses else ptr()
            except LayoutError:
                # A gate that is false, or made-up sizes that hold less.
                return
            for step in steps:
                part = None if part is None else getattr(part, step)
            if part is not None:
                due.append((part.ptr, part.nbytes))
        found = cleared.covered(ptr, nbytes)
        wanted_bytes = _Runs(due).covered(ptr, nbytes)
        self.compare(f"{method}: bytes cleared of {name}", found, wanted_bytes)
        inside = all(cleared.covered(*each) == each[1] for each in due)
        self._note(inside, f"{method}: a region of {name} is not cleared")

    def _is_cleared(self, ptr: DevicePtr, nbytes: int, due: int) -> bool:
        if nbytes <= _WHOLE_READ_BYTES:
            content = bytearray(nbytes)
            self._gpu.copy_d2h(content, ptr)
            return content == bytes(due) + bytes([_DIRTY]) * (nbytes - due)
        probes = (at for at in (0, due - 1, due, nbytes - 1) if 0 <= at < nbytes)
        return all(self._byte(ptr, at) == (0 if at < due else _DIRTY) for at in probes)

    def _checksum(self, arena: Any, pointers: Mapping[str, DevicePtr]) -> None:
        stream = self._gpu.default_stream
        report = arena.debug_buffer_checksum(stream, "selfcheck", force=True)
        found = {entry.name: entry.state for entry in report.buffers}
        wanted = {
            name: "ok" if name in pointers else "absent"
            for name, info in self._buffers.items()
            if info.checksum
        }
        self.compare("the checksum probe", found, wanted)

    def _views(self, arena: Any, pointers: Mapping[str, DevicePtr]) -> None:
        for name in pointers:
            try:
                view = arena.tensor(name)
            except LayoutError as error:
                # A placeholder has memory and no shape.
                self._note(self._buffers[name].otherwise != "", str(error))
                continue
            held = getattr(arena, f"{name}_bytes")
            self._note(view.nbytes <= held, f"{name}: its view leaves the buffer")

    def _carves(self, arena: Any, sizes: Mapping[str, int]) -> None:
        for name, method in self._carve_methods.items():
            carve = getattr(arena, method)
            if sizes[name]:
                half = max(1, sizes[name] // 2)
                first = carve(half)
                self.compare(f"{method}: the first piece", first, getattr(arena, name))
                if sizes[name] > half:
                    second = carve(sizes[name] - half)
                    self.compare(f"{method}: the second piece", second, first + half)
            beyond = partial(carve, 1)
            self._raises(CarveError, f"{method} beyond the slab", beyond)

    def _raises(
        self, kind: type[ArenaError], what: str, call: Callable[[], object]
    ) -> None:
        try:
            call()
        except kind:
            self._note(True, "")
        else:
            self._note(False, f"{what}: not refused")

    def _layout(self, name: str, ptr: Any, nbytes: int) -> None:
        most: dict[str, int] = ptr.most
        # Where it was sized for none, a call cannot ask for 1.
        least = {key: 1 for key, value in most.items() if value}
        for asked in ({}, least):
            try:
                layout = ptr(**asked)
            except LayoutError as error:
                # A placeholder has memory and no regions, and a layout may take more
                # for less.
                expected = bool(asked) or self._buffers[name].otherwise != ""
                self._note(expected, str(error))
                continue
            self._no_overlap(name, layout)
            self._note(layout.nbytes <= nbytes, f"{name}: {asked} leaves the buffer")
        beyond = {key: value + 1 for key, value in most.items()}
        if beyond:
            self._raises(LayoutError, f"{name} for {beyond}", partial(ptr, **beyond))

    def _use(self, arena: Any, name: str, use: str, nbytes: int) -> None:
        offer = getattr(getattr(arena, name), use)
        needed = arena.required_bytes(name, use)
        try:
            part = offer()
        except LayoutError as error:
            self._note(needed == 0, str(error))
            return
        self.compare(f"{name}: bytes of {use}", part.nbytes, needed)
        self._no_overlap(f"{name}.{use}", part)
        self._note(needed <= nbytes, f"{name}: {use} leaves the buffer")
        beyond = partial(offer, tokens=self._tokens + 1)
        self._raises(LayoutError, f"{name}.{use} for one token more", beyond)

    def _no_overlap(self, name: str, layout: Any) -> None:
        places = sorted((each.offset, each.end) for each in _regions(layout))
        inside = all(end <= layout.nbytes for _, end in places)
        apart = all(
            first_end <= second_start
            for (_, first_end), (second_start, _) in pairwise(places)
        )
        self._note(inside and apart, f"{name}: regions overlap or leave the layout")

    def _release(self, arena: Any, recorder: Recorder) -> None:
        allocated = dict(recorder.allocated)
        names = {int(getattr(arena, name)): name for name in self._buffers}
        arena.release()
        left = [names.get(address, f"{address:#x}") for address in recorder.live]
        self._note(not left, f"not freed at release: {', '.join(left)}")
        self.compare("frees at release", len(recorder.freed), len(allocated))
        for name in self._buffers:
            gone = (getattr(arena, name), getattr(arena, f"{name}_bytes"))
            self.compare(f"{name} after release", gone, (0, 0))
        arena.release()
        self.compare("frees at a second release", len(recorder.freed), len(allocated))
        stream = self._gpu.default_stream
        for method in self._rows_methods:
            call = partial(getattr(arena, method), stream)
            self._raises(ReleasedError, f"{method} after release", call)


def _regions(layout: Any) -> Iterator[Region]:
    for part in layout:
        if isinstance(part, Region):
            yield part
