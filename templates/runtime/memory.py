"""Where the buffers of an arena lie, and which runs of bytes zeroing clears.

Two placements: every buffer in an allocation of its own, or all of them at aligned
offsets of one. Both give pointers, free them and plan zeroing. An alignment beyond what
a backend promises is had by allocating the difference more, and rounding up.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import pairwise
from operator import mod
from typing import Any, Final, Literal, NamedTuple, NoReturn, Protocol, TypeAlias

from .backend import ALIGNMENT, GpuBackend, Stream, free_each
from .device import NULL, DevicePtr
from .errors import AllocationError, BackendError, ClearError, ConfigError
from .numeric import show
from .pointer import BufferPtr, new_pointers
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


class Places:
    """What placing has to know of a package's buffers, worked out once.

    names, aligns: of the buffers, in the order of the schema.
    kinds: the class of each one's pointer.
    bound: where those stand whose pointers know their arena.
    slab: where each stands in `names`, in the order of a slab.
    widest: the largest alignment.
    """

    __slots__ = ("aligns", "bound", "kinds", "names", "slab", "widest")

    def __init__(
        self,
        aligns: Mapping[str, int],
        slab_order: Sequence[str],
        pointers: Mapping[str, type[BufferPtr]],
    ) -> None:
        """Keep alignments and pointer classes, by name; other pointers are plain."""
        self.names = tuple(aligns)
        self.aligns = tuple(aligns.values())
        self.kinds = tuple(pointers.get(name, DevicePtr) for name in aligns)
        at = {name: place for place, name in enumerate(self.names)}
        self.bound = tuple(at[name] for name in pointers)
        self.slab = tuple(at[name] for name in slab_order)
        self.widest = max(self.aligns, default=ALIGNMENT)

    def pointers(self, addresses: Iterable[Any], arena: Callable[[], Any]) -> list[Any]:
        """The pointers to the buffers of an arena, each of its own class.

        addresses: one a buffer, in order, as ints or what `int` makes one of.
        arena: a weak reference to it.
        """
        return new_pointers(self.kinds, addresses, self.bound, arena)


class Memory(Protocol):
    """The allocations of one arena."""

    def allocate(self, arena: Callable[[], Any]) -> Sequence[Any]:
        """The pointers of all buffers, in order; NULL for one of 0 bytes.

        arena: a weak reference to the arena, for the pointers that know theirs.

        What was allocated before an error is still there, for `free`.
        """
        ...

    def room(self, name: str) -> int:
        """Bytes from the start of a buffer that exists to what is no longer its own.

        Its guard is among them and, in a slab, the padding up to the next buffer.
        """
        ...

    def free(self) -> Failures:
        """Free everything, whatever earlier frees raised; return the failures."""
        ...

    def plan(self, *members: Member, regions: Sequence[RegionRun] = ()) -> ZeroPlan:
        """The fewest memsets that clear the members and no byte of another buffer.

        regions: parts to clear of buffers that are no members.
        """
        ...


class _Allocations:
    """What a memory holds of a backend: gets it, and gives it back."""

    def __init__(self, gpu: GpuBackend, places: Places, sizes: tuple[int, ...]) -> None:
        self._gpu = gpu
        self._places = places
        self._sizes = sizes
        # What `free_many` takes.
        self._handles: list[Any] = []

    def _labels(self) -> list[str]:
        """What errors call the allocations."""
        raise NotImplementedError

    def _sizes_by_name(self) -> dict[str, int]:
        return dict(zip(self._places.names, self._sizes, strict=True))

    def _preflight(self, asked: int, reserve: int) -> None:
        gpu = self._gpu
        free = gpu.free_memory()
        if asked + reserve > free:
            total, sizes = gpu.total_memory(), self._sizes_by_name()
            raise AllocationError.from_sizes(None, asked, free, total, sizes, reserve)

    def _allocate(self, asked: Sequence[int]) -> None:
        """Get an allocation for each number of bytes; raise AllocationError."""
        gpu, handles = self._gpu, self._handles
        alloc_many = getattr(gpu, "alloc_many", None)
        try:
            if alloc_many is not None:
                alloc_many(asked, handles)
                if len(handles) != len(asked):
                    why = f"{len(handles)} addresses for {len(asked)} sizes"
                    raise BackendError(f"alloc_many: {why}")
                return
            for nbytes in asked:
                ptr = gpu.alloc(nbytes)
                if not ptr:
                    raise BackendError(f"alloc: NULL for {nbytes} bytes")
                # A backend may give a plain int.
                handles.append(ptr if type(ptr) is DevicePtr else DevicePtr(ptr))
        except Exception as error:  # noqa: BLE001
            # A backend of many may fail when all are there.
            failed = min(len(handles), len(asked) - 1)
            self._fail(failed, asked[failed], error)

    def _refuse_address(self, asked: Sequence[int]) -> NoReturn:
        """Raise the error of a backend of many that gave what is no address."""
        handles = self._handles
        found = (_address(handle) for handle in handles)
        failed = next(at for at, each in enumerate(found) if not each or each < 0)
        what = "NULL" if _address(handles[failed]) == 0 else show(handles[failed])
        error = BackendError(f"alloc_many: {what} for {asked[failed]} bytes")
        self._fail(failed, asked[failed], error)

    def _fail(self, place: int, asked: int, error: Exception) -> NoReturn:
        """Raise AllocationError for the allocation that stands at `place`."""
        # NULL is nothing to free; what is behind it may be there.
        self._handles = [each for each in self._handles if _address(each) != 0]
        free, total = _memory_of(self._gpu)
        # The driver's own call and status, where the backend put a word round them.
        why = str(error.__cause__ or error)
        label, sizes = self._labels()[place], self._sizes_by_name()
        raise AllocationError.from_sizes(
            label, asked, free, total, sizes, why=why
        ) from error

    def free(self) -> Failures:
        """Free every allocation; return the failures in order."""
        handles, self._handles = self._handles, []
        failures = _free_all(self._gpu, handles) if handles else []
        if not failures:
            return ()
        labels = self._labels()
        return tuple((labels[place], error) for place, error in failures)


class SeparateMemory(_Allocations):
    """One allocation a buffer."""

    def __init__(
        self, gpu: GpuBackend, places: Places, sizes: tuple[int, ...], reserve: int
    ) -> None:
        """Raise AllocationError when the buffers and `reserve` bytes do not fit."""
        super().__init__(gpu, places, sizes)
        # What is asked of the backend: the sizes, and what rounding up takes.
        self._asked = sizes
        if places.widest > ALIGNMENT:
            self._asked = tuple(
                nbytes and nbytes + max(align - ALIGNMENT, 0)
                for nbytes, align in zip(sizes, places.aligns, strict=True)
            )
        self._preflight(sum(self._asked), reserve)

    def _labels(self) -> list[str]:
        return [name for name, nbytes in self._sizes_by_name().items() if nbytes]

    def allocate(self, arena: Callable[[], Any]) -> Sequence[Any]:
        """Allocate every buffer; nothing is asked of the backend for 0 bytes.

        Raise AllocationError with the buffer, its bytes, the memory that was free and
        the largest buffers; its cause is what the backend raised. Raise BackendError
        for an address that is not aligned as the buffer is, or as ALIGNMENT promises.
        """
        asked = tuple(filter(None, self._asked))
        if asked:
            self._allocate(asked)
        places, addresses = self._places, self._handles
        if len(asked) < len(self._asked):
            found = iter(addresses)
            addresses = [next(found) if nbytes else NULL for nbytes in self._asked]
        try:
            pointers = places.pointers(addresses, arena)
        except (TypeError, ValueError):
            self._refuse_address(asked)
        live = tuple(filter(None, pointers))
        if len(live) < len(asked) or min(live, default=1) < 0:
            self._refuse_address(asked)
        if any(map(mod, pointers, places.aligns)):
            rounded = map(_rounded, places.names, pointers, places.aligns)
            return places.pointers(rounded, arena)
        return pointers

    def room(self, name: str) -> int:
        """The bytes of the buffer's allocation."""
        return self._sizes_by_name()[name]

    def plan(self, *members: Member, regions: Sequence[RegionRun] = ()) -> ZeroPlan:
        """One memset a member: allocations are never merged, even side by side."""
        live = [each for each in members if each[1] and each[2]]
        ranges = tuple((ptr, nbytes) for _, ptr, nbytes in live)
        shown = tuple(ZeroRange((name,), 0, nbytes) for name, _, nbytes in live)
        ranges += tuple((each.ptr, each.nbytes) for each in regions)
        shown += tuple(ZeroRange(e.names, e.offset, e.nbytes) for e in regions)
        return ZeroPlan(ranges, shown, _prepare(self._gpu, ranges))


class SlabMemory(_Allocations):
    """One allocation for all buffers, at aligned offsets."""

    def __init__(
        self,
        gpu: GpuBackend,
        places: Places,
        sizes: tuple[int, ...],
        reserve: int,
        label: str,
    ) -> None:
        """Lay the buffers out in the order of a slab, each at its alignment.

        `label` names the slab in errors. Raise AllocationError when the slab and
        `reserve` bytes do not fit.
        """
        super().__init__(gpu, places, sizes)
        self._label = f"{label} slab"
        aligns = places.aligns
        self._offsets = [0] * len(sizes)
        end = 0
        for place in places.slab:
            nbytes = sizes[place]
            if nbytes:
                end += -end % aligns[place]
                self._offsets[place] = end
                end += nbytes
        self._end = end
        # What the whole slab begins at a multiple of.
        self._align = ALIGNMENT
        if places.widest > ALIGNMENT:
            pairs = zip(aligns, sizes, strict=True)
            self._align = max([ALIGNMENT, *(align for align, size in pairs if size)])
        # Where the first buffer begins.
        self._base = NULL
        self._preflight(end and end + self._align - ALIGNMENT, reserve)

    def _labels(self) -> list[str]:
        return [self._label]

    def allocate(self, arena: Callable[[], Any]) -> Sequence[Any]:
        """Allocate the slab; the pointers of the buffers inside.

        Raise AllocationError for what the backend raises, and BackendError for an
        address that is not aligned as a buffer is, or as ALIGNMENT promises.
        """
        if not self._end:
            return self._places.pointers([NULL] * len(self._sizes), arena)
        asked = [self._end + self._align - ALIGNMENT]
        self._allocate(asked)
        address = _address(self._handles[0])
        if not address or address < 0:
            self._refuse_address(asked)
        base = DevicePtr(address)
        if base % ALIGNMENT:
            self._refuse(base)
        elif base % self._align:
            base = base.offset(-base % self._align)
        self._base = base
        addresses = [
            base + offset if nbytes else NULL
            for offset, nbytes in zip(self._offsets, self._sizes, strict=True)
        ]
        return self._places.pointers(addresses, arena)

    def _refuse(self, base: DevicePtr) -> None:
        """Raise BackendError where a buffer needs more than `base` is a multiple of."""
        aligns = dict(zip(self._places.names, self._places.aligns, strict=True))
        for name in self._starts():
            _check_promise(self._label, base, aligns[name], name)

    def _starts(self) -> dict[str, int]:
        """The offset of each buffer that exists, in order of address."""
        names = self._places.names
        live = (place for place in self._places.slab if self._sizes[place])
        return {names[place]: self._offsets[place] for place in live}

    def room(self, name: str) -> int:
        """Bytes from the start of a buffer to the next one, or to the slab's end."""
        starts = self._starts()
        following = dict(pairwise(starts)).get(name)
        end = self._end if following is None else starts[following]
        return end - starts[name]

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
        starts, sizes = self._starts(), self._sizes_by_name()
        following = dict(pairwise(starts))
        shown: list[ZeroRange] = []
        # The buffer up to whose start all is cleared.
        reached: str | None = None
        for buffer, start in starts.items():
            for names, offset, nbytes in pieces.get(buffer, ()):
                if reached == buffer and offset == 0:
                    last = shown[-1]
                    length = start + nbytes - last.offset
                    shown[-1] = ZeroRange((*last.buffers, *names), last.offset, length)
                else:
                    shown.append(ZeroRange(names, start + offset, nbytes))
                whole = offset + nbytes == sizes[buffer]
                reached = following.get(buffer) if whole else None
        ranges = tuple(
            (self._base.offset(offset), nbytes) for _, offset, nbytes in shown
        )
        return ZeroPlan(ranges, tuple(shown), _prepare(self._gpu, ranges))


def new_memory(
    placement: Placement,
    gpu: GpuBackend,
    places: Places,
    sizes: tuple[int, ...],
    reserve: int,
    label: str,
    guard: int = 0,
) -> Memory:
    """The memory of an arena. Raise ConfigError for an unknown placement.

    sizes: bytes of the buffers, in the order of `places`.
    guard: bytes to allocate behind every buffer beside its own. With any, no buffer
        is cleared whole by its own size, so that a plan never merges two over a guard.
    """
    if guard:
        sizes = tuple(nbytes and nbytes + guard for nbytes in sizes)
    if placement == "separate":
        return SeparateMemory(gpu, places, sizes, reserve)
    if placement == "slab":
        return SlabMemory(gpu, places, sizes, reserve, label)
    raise ConfigError(f"placement: {placement!r}; allowed: {', '.join(PLACEMENTS)}")


def new_clear(gpu: GpuBackend) -> Callable[[ZeroPlan, Stream], None]:
    """The way to enqueue a plan on a backend.

    Raise ClearError, which names the buffers, for what the backend raises.
    """
    memset_ranges = getattr(gpu, "memset_ranges", None)
    if memset_ranges is not None and getattr(gpu, "prepare_ranges", None) is not None:

        def clear_prepared(plan: ZeroPlan, stream: Stream) -> None:
            try:
                memset_ranges(plan.prepared, stream)
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
    return None if prepare is None else prepare(ranges, 0)


def _rounded(name: str, ptr: DevicePtr, align: int) -> DevicePtr:
    """The first address from `ptr` on that is aligned; NULL for NULL."""
    _check_promise(name, ptr, align)
    return ptr.offset(-ptr % align) if ptr else NULL


def _check_promise(label: str, ptr: DevicePtr, align: int, needed_by: str = "") -> None:
    promised = min(align, ALIGNMENT)
    if ptr % promised:
        why = f"{label}: its address {ptr:#x} is no multiple of {promised}"
        raise BackendError(f"{why}, which {needed_by} needs" if needed_by else why)


def _address(handle: Any) -> int | None:
    """The address that a handle stands for, 0 for nothing; None where it is none."""
    try:
        return int(handle or 0)
    except (TypeError, ValueError):
        return None


def _memory_of(gpu: GpuBackend) -> tuple[int | None, int | None]:
    try:
        return gpu.free_memory(), gpu.total_memory()
    except Exception:  # noqa: BLE001
        # The error in flight matters more than the figures that would explain it.
        return None, None


def _free_all(gpu: GpuBackend, handles: list[Any]) -> list[tuple[int, Exception]]:
    free_many = getattr(gpu, "free_many", None)
    if free_many is None:
        return free_each(gpu, handles)
    try:
        failures: list[tuple[int, Exception]] = free_many(handles)
    except Exception as error:  # noqa: BLE001
        # It does not say which, so that any may be left.
        return [(place, error) for place in range(len(handles))]
    return failures
