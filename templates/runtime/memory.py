"""Where the buffers of an arena lie, and which runs of bytes zeroing clears.

Two placements: every buffer in an allocation of its own, or all of them at aligned
offsets of one. Both give pointers, free them and plan zeroing. An alignment beyond what
a backend promises is had by allocating the difference more, and rounding up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from typing import Final, Literal, NamedTuple, Protocol, TypeAlias

from .backend import ALIGNMENT, GpuBackend, Stream
from .device import NULL, DevicePtr
from .errors import AllocationError, BackendError, ClearError, ConfigError
from .regions import RegionRun

# A pointer and the bytes from it on.
Range: TypeAlias = tuple[DevicePtr, int]
# A buffer's name, its pointer, and the bytes of it to clear.
Member: TypeAlias = tuple[str, DevicePtr, int]
# Names, and the offset and bytes of what is cleared of one buffer.
_Piece: TypeAlias = tuple[tuple[str, ...], int, int]
Failures: TypeAlias = tuple[tuple[str, Exception], ...]
Placement: TypeAlias = Literal["separate", "slab"]
PLACEMENTS: Final[tuple[Placement, ...]] = ("separate", "slab")


class ZeroRange(NamedTuple):
    """A run of bytes that one memset clears.

    buffers: the buffers that it covers, in order of address; `buffer.region` where only
        a region of one is a member.
    offset: bytes from the first buffer of the allocation.
    nbytes: its length; between two buffers it covers their padding too.
    """

    buffers: tuple[str, ...]
    offset: int
    nbytes: int


class ZeroPlan:
    """The memsets of one zeroing call, ready to be enqueued."""

    __slots__ = ("prepared", "ranges", "shown")

    def __init__(
        self,
        ranges: tuple[Range, ...],
        shown: tuple[ZeroRange, ...],
        prepared: object,
    ) -> None:
        self.ranges = ranges
        self.shown = shown
        self.prepared = prepared


EMPTY_PLAN = ZeroPlan((), (), ())


class Memory(Protocol):
    """The allocations of one arena."""

    def take(self, name: str) -> DevicePtr:
        """The pointer of a buffer, NULL for one of 0 bytes."""
        ...

    def room(self, name: str) -> int:
        """Bytes from the start of a buffer that exists to what is no longer its own.

        Its guard is among them and, in a slab, the padding up to the next buffer.
        """
        ...

    def free(self, owned: Iterable[tuple[str, DevicePtr]]) -> Failures:
        """Free every pointer, whatever earlier frees raised; return the failures."""
        ...

    def plan(self, *members: Member, regions: Sequence[RegionRun] = ()) -> ZeroPlan:
        """The fewest memsets that clear the members and no byte of another buffer.

        regions: parts to clear of buffers that are no members.
        """
        ...


class SeparateMemory:
    """One allocation a buffer."""

    def __init__(
        self,
        gpu: GpuBackend,
        sizes: Mapping[str, int],
        reserve: int,
        aligns: Mapping[str, int],
    ) -> None:
        """Raise AllocationError when the buffers and `reserve` bytes do not fit."""
        self._gpu = gpu
        self._sizes = sizes
        self._aligns = aligns
        # The allocations of buffers that begin behind the start of their own.
        self._bases: dict[str, DevicePtr] = {}
        spare = sum(
            align - ALIGNMENT
            for name, align in aligns.items()
            if align > ALIGNMENT and sizes[name]
        )
        _preflight(gpu, sum(sizes.values()) + spare, sizes, reserve)

    def take(self, name: str) -> DevicePtr:
        """Allocate a buffer; nothing is asked of the backend for 0 bytes.

        Raise AllocationError with the buffer, its bytes, the memory that was free and
        the largest buffers; its cause is what the backend raised. Raise BackendError
        for an address that is not aligned as the buffer is, or as ALIGNMENT promises.
        """
        nbytes = self._sizes[name]
        if not nbytes:
            return NULL
        align = self._aligns[name]
        spare = align - ALIGNMENT if align > ALIGNMENT else 0
        base = _allocate(self._gpu, name, nbytes + spare, self._sizes)
        if not base % align:
            return base
        promised = min(align, ALIGNMENT)
        if base % promised:
            raise _misaligned(self._gpu, name, base, promised)
        self._bases[name] = base
        return base.offset(-base % align)

    def room(self, name: str) -> int:
        """The bytes of the buffer's allocation."""
        return self._sizes[name]

    def free(self, owned: Iterable[tuple[str, DevicePtr]]) -> Failures:
        """Free every pointer that is not NULL; return the failures in order."""
        bases = self._bases
        if bases:
            owned = [(name, bases.pop(name, ptr)) for name, ptr in owned]
        return _free_all(self._gpu, owned)

    def plan(self, *members: Member, regions: Sequence[RegionRun] = ()) -> ZeroPlan:
        """One memset a member: allocations are never merged, even side by side."""
        live = [each for each in members if each[1] and each[2]]
        ranges = tuple((ptr, nbytes) for _, ptr, nbytes in live)
        shown = tuple(ZeroRange((name,), 0, nbytes) for name, _, nbytes in live)
        ranges += tuple((each.ptr, each.nbytes) for each in regions)
        shown += tuple(ZeroRange(e.names, e.offset, e.nbytes) for e in regions)
        return ZeroPlan(ranges, shown, _prepare(self._gpu, ranges))


class SlabMemory:
    """One allocation for all buffers, at aligned offsets."""

    def __init__(
        self,
        gpu: GpuBackend,
        sizes: Mapping[str, int],
        reserve: int,
        order: Sequence[str],
        aligns: Mapping[str, int],
        label: str,
    ) -> None:
        """Lay the buffers out in `order`, each at a multiple of its alignment.

        `label` names the slab in errors. Raise AllocationError when the slab and
        `reserve` bytes do not fit.
        """
        self._gpu = gpu
        self._sizes = sizes
        self._offsets: dict[str, int] = {}
        end = 0
        for name in order:
            if sizes[name]:
                start = -(-end // aligns[name]) * aligns[name]
                self._offsets[name] = start
                end = start + sizes[name]
        self._next = dict(pairwise(self._offsets))
        self._end = end
        self._label = f"{label} slab"
        most = max((aligns[name] for name in self._offsets), default=ALIGNMENT)
        spare = max(most - ALIGNMENT, 0)
        self._allocation = NULL
        _preflight(gpu, end and end + spare, sizes, reserve)
        if end:
            self._allocation = _allocate(gpu, self._label, end + spare, sizes)
            self._check_allocation(aligns)
        # Where the first buffer begins.
        self._base = DevicePtr(self._allocation + -self._allocation % most)

    def _check_allocation(self, aligns: Mapping[str, int]) -> None:
        ptr = self._allocation
        for name in self._offsets:
            promised = min(aligns[name], ALIGNMENT)
            if ptr % promised:
                raise _misaligned(self._gpu, self._label, ptr, promised, name)

    def take(self, name: str) -> DevicePtr:
        """The pointer of a buffer inside the slab."""
        offset = self._offsets.get(name)
        return NULL if offset is None else self._base.offset(offset)

    def room(self, name: str) -> int:
        """Bytes from the start of a buffer to the next one, or to the slab's end."""
        following = self._next.get(name)
        end = self._end if following is None else self._offsets[following]
        return end - self._offsets[name]

    def free(self, owned: Iterable[tuple[str, DevicePtr]]) -> Failures:
        """Free the slab; the buffers inside have nothing of their own."""
        ptr, self._allocation = self._allocation, NULL
        return _free_all(self._gpu, [(self._label, ptr)])

    def plan(self, *members: Member, regions: Sequence[RegionRun] = ()) -> ZeroPlan:
        """One memset a run of members that lie side by side and are cleared whole.

        A region joins the buffer before it where both reach to where the other begins.
        """
        pieces: dict[str, list[_Piece]] = {
            name: [((name,), 0, nbytes)]
            for name, ptr, nbytes in members
            if ptr and nbytes
        }
        for run in regions:
            piece = (run.names, run.offset, run.nbytes)
            pieces.setdefault(run.buffer, []).append(piece)
        shown: list[ZeroRange] = []
        # The buffer up to whose start all is cleared.
        reached: str | None = None
        for buffer, start in self._offsets.items():
            for names, offset, nbytes in pieces.get(buffer, ()):
                if reached == buffer and offset == 0:
                    last = shown[-1]
                    length = start + nbytes - last.offset
                    shown[-1] = ZeroRange((*last.buffers, *names), last.offset, length)
                else:
                    shown.append(ZeroRange(names, start + offset, nbytes))
                whole = offset + nbytes == self._sizes[buffer]
                reached = self._next.get(buffer) if whole else None
        ranges = tuple(
            (self._base.offset(offset), nbytes) for _, offset, nbytes in shown
        )
        return ZeroPlan(ranges, tuple(shown), _prepare(self._gpu, ranges))


def new_memory(
    placement: Placement,
    gpu: GpuBackend,
    sizes: Mapping[str, int],
    reserve: int,
    order: Sequence[str],
    aligns: Mapping[str, int],
    label: str,
    guard: int = 0,
) -> Memory:
    """The memory of an arena. Raise ConfigError for an unknown placement.

    guard: bytes to allocate behind every buffer beside its own. With any, no buffer
        is cleared whole by its own size, so that a plan never merges two over a guard.
    """
    if guard:
        sizes = {name: nbytes and nbytes + guard for name, nbytes in sizes.items()}
    if placement == "separate":
        return SeparateMemory(gpu, sizes, reserve, aligns)
    if placement == "slab":
        return SlabMemory(gpu, sizes, reserve, order, aligns, label)
    raise ConfigError(f"placement: {placement!r}; allowed: {', '.join(PLACEMENTS)}")


def new_clear(gpu: GpuBackend) -> Callable[[ZeroPlan, Stream], None]:
    """The way to enqueue a plan on a backend.

    Raise ClearError, which names the buffers, for what the backend raises.
    """
    memset_ranges = getattr(gpu, "memset_ranges", None)
    if memset_ranges is not None:

        def clear_prepared(plan: ZeroPlan, stream: Stream) -> None:
            try:
                memset_ranges(plan.prepared, 0, stream)
            except Exception as error:
                failed = getattr(error, "ptr", None)
                raise _clear_error(plan, failed, error) from error

        return clear_prepared
    memset_async = gpu.memset_async

    def clear(plan: ZeroPlan, stream: Stream) -> None:
        ptr = None
        try:
            for ptr, nbytes in plan.ranges:
                memset_async(ptr, 0, nbytes, stream)
        except Exception as error:
            raise _clear_error(plan, ptr, error) from error

    return clear


def _clear_error(plan: ZeroPlan, ptr: int | None, error: Exception) -> ClearError:
    for (start, _), entry in zip(plan.ranges, plan.shown, strict=True):
        if start == ptr:
            return ClearError(entry.buffers, str(error))
    names = (name for entry in plan.shown for name in entry.buffers)
    return ClearError(tuple(names), str(error))


def _prepare(gpu: GpuBackend, ranges: tuple[Range, ...]) -> object:
    # An isinstance with a protocol costs more than all the rest of a plan.
    prepare = getattr(gpu, "prepare_ranges", None)
    return None if prepare is None else prepare(ranges)


def _allocate(
    gpu: GpuBackend, name: str, nbytes: int, sizes: Mapping[str, int]
) -> DevicePtr:
    try:
        ptr = gpu.alloc(nbytes)
        if not ptr:
            raise BackendError(f"alloc: NULL for {nbytes} bytes")
    except Exception as error:
        free, total = _memory_of(gpu)
        # The driver's own call and status, where the backend put a word around them.
        why = str(error.__cause__ or error)
        raise AllocationError.from_sizes(
            name, nbytes, free, total, sizes, why=why
        ) from error
    # A backend may give a plain int.
    return ptr if type(ptr) is DevicePtr else DevicePtr(ptr)


def _misaligned(
    gpu: GpuBackend, label: str, ptr: DevicePtr, align: int, needed_by: str = ""
) -> BackendError:
    """The error of an allocation at the wrong address, which it frees."""
    why = f"{label}: its address {ptr:#x} is no multiple of {align}"
    error = BackendError(f"{why}, which {needed_by} needs" if needed_by else why)
    for name, failure in _free_all(gpu, [(label, ptr)]):
        error.add_note(f"{name} could not be freed: {failure}")
    return error


def _preflight(
    gpu: GpuBackend, asked: int, sizes: Mapping[str, int], reserve: int
) -> None:
    free = gpu.free_memory()
    if asked + reserve > free:
        total = gpu.total_memory()
        raise AllocationError.from_sizes(
            None, asked, free, total, sizes, reserve=reserve
        )


def _memory_of(gpu: GpuBackend) -> tuple[int | None, int | None]:
    try:
        return gpu.free_memory(), gpu.total_memory()
    except Exception:  # noqa: BLE001
        # The error in flight matters more than the figures that would explain it.
        return None, None


def _free_all(gpu: GpuBackend, owned: Iterable[tuple[str, DevicePtr]]) -> Failures:
    failures: list[tuple[str, Exception]] = []
    interrupt: BaseException | None = None
    for name, ptr in owned:
        if not ptr:
            continue
        try:
            gpu.free(ptr)
        except Exception as error:  # noqa: BLE001
            failures.append((name, error))
        except BaseException as stop:  # noqa: BLE001
            # What comes after it would be out of reach for good.
            interrupt = stop
    if interrupt is not None:
        raise interrupt
    return tuple(failures)
