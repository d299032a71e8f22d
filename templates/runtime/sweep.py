"""Sizes at many limits at once, chunk by chunk, with numpy.

Takes the sizing of one arena twice: over columns, and over the ints of one point. Gives
arrays that hold what the latter gives at every point. No integer leaves int64 unseen:
bounds of all that is computed are checked before anything is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias

from .columns import Bounds, Column, Unsure
from .errors import ArenaError, ConfigError, SizeError
from .numeric import MAX_SIZE, check_int, show

if TYPE_CHECKING:
    # Without numpy the package type-checks too, and its arrays are Any.
    import numpy  # type: ignore[import-not-found, unused-ignore]

    Array: TypeAlias = numpy.ndarray[Any, numpy.dtype[Any]]
else:
    Array = Any

# Points of a chunk: a few dozen of its columns stay in the cache of a core.
CHUNK_POINTS: Final = 1 << 14
# What sizing raises where a point has no size, or where a gate keeps it from none.
_NO_SIZE: Final = (Unsure, SizeError, ZeroDivisionError)
_TOTAL: Final = "total_bytes"


class SweepError(ArenaError, OverflowError):
    """A sweep whose integers may leave int64; it computes nothing.

    column: the buffer, or "total_bytes".
    bound: the largest magnitude that what it is computed from may have.
    """

    def __init__(self, column: str, bound: int) -> None:
        super().__init__(column, bound)
        self.column = column
        self.bound = bound

    def __str__(self) -> str:
        return (
            f"{self.column}: over these limits it may be computed from integers of up "
            f"to {show(self.bound)}, more than 2**63 - 1, which arrays cannot hold; "
            "sweep smaller limits, or call BufferSizes.from_config for each point"
        )


class Limit(NamedTuple):
    """A limit as it was passed, an int or an array of ints, and the values it can have.

    maximum: None where there is none.
    """

    value: object
    minimum: int
    maximum: int | None = None


class SizesSweep(NamedTuple):
    """The sizes at many points, each an int64 array in the shape of the limits.

    One that is the same at all points takes no memory, and cannot be written.
    """

    columns: dict[str, Array]
    """Bytes of each buffer under its name, in order."""
    trimmed: Array
    """Bytes that trims removed; part of no buffer and of no total."""
    total_bytes: Array
    """Bytes of all buffers together."""


class Sweep:
    """The sizes of one arena at the points that limits of several values make.

    names: the buffers in order, and at the end "trimmed".
    work: the sizing over columns; it gives one for each buffer, and the trimmed bytes.
    alone: the same over the ints of one point.
    shape: that of the arrays of limits, broadcast together.

    Raise ConfigError for limits that cannot be, or that do not broadcast.
    """

    def __init__(
        self,
        names: Sequence[str],
        limits: Mapping[str, Limit],
        work: Callable[..., dict[str, Column]],
        alone: Callable[..., Sequence[int]],
    ) -> None:
        import numpy

        self._names = names
        self._work = work
        self._alone = alone
        self._limits = tuple(limits)
        self._ints: dict[str, int] = {}
        arrays: dict[str, Array] = {}
        for name, limit in limits.items():
            if isinstance(limit.value, int):
                self._ints[name] = check_int(name, *limit)
            else:
                arrays[name] = _checked(name, *limit)
        try:
            together = numpy.broadcast_arrays(*arrays.values())
        except ValueError:
            shapes = ", ".join(f"{name} {each.shape}" for name, each in arrays.items())
            raise ConfigError(f"limits do not broadcast together: {shapes}") from None
        self.shape: tuple[int, ...] = together[0].shape if together else ()
        # All of one length, and as they were passed wherever that is possible.
        self._arrays = {
            name: each.reshape(-1) for name, each in zip(arrays, together, strict=True)
        }
        self._points = prod(self.shape)

    def sizes(self) -> SizesSweep:
        """All sizes. Raise SizeError for one that cannot exist, and SweepError."""
        total, *stores = [_Store(self._points) for _ in ("total", *self._names)]
        for start, columns in self._chunks():
            total.put(start, _total(columns))
            for name, store in zip(self._names, stores, strict=True):
                store.put(start, columns[name])
        *arrays, trimmed = [store.array(self.shape) for store in stores]
        columns = dict(zip(self._names, arrays, strict=False))
        return SizesSweep(columns, trimmed, total.array(self.shape))

    def totals(self) -> Array:
        """The bytes of all buffers together. Raises what `sizes` does."""
        store = _Store(self._points)
        for start, columns in self._chunks():
            store.put(start, _total(columns))
        return store.array(self.shape)

    def _chunks(self) -> Iterator[tuple[int, dict[str, Column]]]:
        """The first point of each chunk, and its columns."""
        import numpy

        if not self._points:
            return
        sure = self._check_bounds()
        ints: dict[str, Any] = {
            name: numpy.int64(value) for name, value in self._ints.items()
        }
        for start in range(0, self._points, CHUNK_POINTS):
            chunk = {
                name: each[start : start + CHUNK_POINTS].astype(numpy.int64)
                for name, each in self._arrays.items()
            }
            columns = self._at_once(ints | chunk) if sure else None
            yield start, self._one_by_one(chunk) if columns is None else columns

    def _at_once(self, limits: dict[str, Any]) -> dict[str, Column] | None:
        """The columns of a chunk; None where some point may have no size."""
        import numpy

        try:
            # What leaves int64 by now is read by no size.
            with numpy.errstate(divide="ignore", over="ignore"):
                return self._work(**limits)
        except (*_NO_SIZE, OverflowError):
            return None

    def _one_by_one(self, chunk: dict[str, Array]) -> dict[str, Column]:
        """The columns of a chunk in which some point may have no size."""
        import numpy

        values = [each.tolist() for each in chunk.values()]
        rows = [
            self._one(dict(zip(chunk, point, strict=True)))
            for point in (zip(*values, strict=True) if chunk else [()])
        ]
        arrays = numpy.array(rows, numpy.int64).T
        return dict(zip(self._names, arrays, strict=True))

    def _one(self, point: dict[str, int]) -> Sequence[int]:
        """The sizes of one point. Raise SizeError, which tells the point."""
        limits = {**self._ints, **point}
        try:
            sizes = self._alone(**limits)
        except SizeError as error:
            given = ", ".join(f"{name}={limits[name]}" for name in self._limits)
            raise SizeError(f"at {given}: {error}") from error
        total = max(sum(sizes[:-1]), sizes[-1])
        if total > MAX_SIZE:
            raise SweepError(_TOTAL, total)
        return sizes

    def _check_bounds(self) -> bool:
        """Whether columns can be computed. Raise SweepError where int64 may be left."""
        limits = {name: Bounds(value, value) for name, value in self._ints.items()}
        for name, each in self._arrays.items():
            limits[name] = Bounds(int(each.min()), int(each.max()))
        self._check_reach(limits)
        try:
            columns = self._work(**limits)
        except _NO_SIZE:
            return False
        self._check_reach({**columns, _TOTAL: _total(columns)})
        return True

    def _check_reach(self, columns: Mapping[str, Column]) -> None:
        for name, column in columns.items():
            bound = column.reach if isinstance(column, Bounds) else abs(column)
            if bound > MAX_SIZE:
                self._look_for_errors()
                raise SweepError(name, bound)

    def _look_for_errors(self) -> None:
        """Raise SizeError where a point with the most of a limit has no size."""
        places = {int(each.argmax(0)) for each in self._arrays.values()} or {0}
        for place in places:
            self._one({name: int(each[place]) for name, each in self._arrays.items()})


class _Store:
    """A column that is put together from chunks."""

    def __init__(self, points: int) -> None:
        self._points = points
        self._same: int | None = None
        self._array: Array | None = None

    def put(self, start: int, column: Column) -> None:
        """Add the column of a chunk that begins at a point."""
        import numpy

        if self._array is None:
            if numpy.ndim(column) == 0:
                self._same = int(column)
                return
            self._array = numpy.empty(self._points, numpy.int64)
            if self._same is not None:
                self._array[:start] = self._same
        self._array[start : start + CHUNK_POINTS] = column

    def array(self, shape: tuple[int, ...]) -> Array:
        """The whole column, in a shape."""
        import numpy

        if self._array is not None:
            return self._array.reshape(shape)
        return numpy.broadcast_to(numpy.int64(self._same or 0), shape)


def _total(columns: Mapping[str, Column]) -> Column:
    """The sum of all columns but the trimmed bytes."""
    sizes = [column for name, column in columns.items() if name != "trimmed"]
    numbers = sum(each for each in sizes if isinstance(each, int))
    return sum((each for each in sizes if not isinstance(each, int)), numbers)


def _checked(name: str, value: object, minimum: int, maximum: int | None) -> Array:
    """The array of a limit, whose every value it can have. Raise ConfigError."""
    import numpy

    if not isinstance(value, (numpy.ndarray, numpy.integer)):
        kind = type(value).__name__
        raise ConfigError(f"{name} is of {kind}; pass an int or a numpy array of ints")
    array = numpy.asarray(value)
    if array.dtype.kind not in "iu":
        raise ConfigError(f"{name} holds {array.dtype}; pass an array of ints")
    if array.size:
        check_int(name, int(array.min()), minimum, maximum)
        check_int(name, int(array.max()), minimum, maximum)
    return array
