"""Arithmetic on many integers at once, and the bounds that show when it is exact.

A column is an int64 array, or its Bounds: sizing code that is run over Bounds first
tells how large any integer on the way can be, and whether arrays can hold them all.
numpy is imported when arrays come.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from functools import reduce
from operator import and_, or_
from typing import Any, TypeAlias

# An int64 array, an int that all points share, or Bounds; truths are such too.
Column: TypeAlias = Any


class Unsure(Exception):
    """Points among which some may have no size; each has to be looked at by itself."""


class Bounds:
    """The integers from `low` to `high`, of which a column holds some.

    reach: the largest magnitude of any integer that the column was computed from, and
    of its own. A truth is 0 or 1.
    """

    __slots__ = ("high", "low", "reach")

    def __init__(self, low: int, high: int, reach: int = 0) -> None:
        self.low = low
        self.high = high
        self.reach = max(reach, -low, high)

    def __add__(self, other: Bounds | int) -> Bounds:
        other = _bounds(other)
        return _joined((self.low + other.low, self.high + other.high), self, other)

    __radd__ = __add__

    def __neg__(self) -> Bounds:
        return Bounds(-self.high, -self.low, self.reach)

    def __sub__(self, other: Bounds | int) -> Bounds:
        return self + -_bounds(other)

    def __rsub__(self, other: int) -> Bounds:
        return -self + other

    def __mul__(self, other: Bounds | int) -> Bounds:
        other = _bounds(other)
        corners = [a * b for a in self._ends() for b in other._ends()]
        return _joined(corners, self, other)

    __rmul__ = __mul__

    def __floordiv__(self, other: Bounds | int) -> Bounds:
        other = _bounds(other)
        if other.low < 0:
            most = max(-self.low, self.high)
            return _joined((-most, most), self, other)
        # Where numpy divides by 0, it gives 0.
        steps = max(other.low, 1), max(other.high, 1)
        corners = [a // b for a in self._ends() for b in steps]
        return _joined([*corners, 0] if other.low == 0 else corners, self, other)

    def __rfloordiv__(self, other: int) -> Bounds:
        return _bounds(other) // self

    def __mod__(self, other: Bounds | int) -> Bounds:
        other = _bounds(other)
        most = max(-other.low, other.high)
        return _joined((-most if other.low < 0 else 0, most), self, other)

    def __rmod__(self, other: int) -> Bounds:
        return _bounds(other) % self

    def _truth(self, other: object) -> Bounds:
        return _joined((0, 1), self, _bounds(other))

    __lt__ = __le__ = __gt__ = __ge__ = _truth
    __eq__ = __ne__ = _truth  # type: ignore[assignment]
    __hash__ = None  # type: ignore[assignment]

    def __bool__(self) -> bool:
        raise TypeError("Bounds decide nothing; use `where`, `both` and their like")

    def _ends(self) -> tuple[int, int]:
        return self.low, self.high


def _bounds(value: object) -> Bounds:
    if isinstance(value, Bounds):
        return value
    assert isinstance(value, int)
    return Bounds(int(value), int(value))


def _joined(ends: Iterable[int], *parts: Bounds) -> Bounds:
    """Bounds around all `ends`, computed from `parts`."""
    ends = list(ends)
    return Bounds(min(ends), max(ends), max(part.reach for part in parts))


def largest(*columns: Column) -> Column:
    """Return the largest of the columns at each point."""
    return _outermost(max, columns)


def smallest(*columns: Column) -> Column:
    """Return the smallest of the columns at each point."""
    return _outermost(min, columns)


def where(condition: Column, then: Column, other: Column) -> Column:
    """Return `then` where the condition is true, else `other`; both are computed."""
    if isinstance(condition, bool):
        return then if condition else other
    if _bounded(condition):
        parts = _bounds(then), _bounds(other)
        low, high = min(part.low for part in parts), max(part.high for part in parts)
        return _joined((low, high), condition, *parts)
    import numpy  # type: ignore[import-not-found, unused-ignore]

    return numpy.where(condition, then, other)


def both(*truths: Column) -> Column:
    """Return where all are true."""
    if _bounded(*truths):
        return _joined((0, 1), *map(_bounds, truths))
    return reduce(and_, truths)


def either(*truths: Column) -> Column:
    """Return where one at least is true."""
    if _bounded(*truths):
        return _joined((0, 1), *map(_bounds, truths))
    return reduce(or_, truths)


def negated(truth: Column) -> Column:
    """Return where it is false."""
    if isinstance(truth, Bounds):
        return truth
    return truth ^ True


def contains(values: Sequence[int], column: Column) -> Column:
    """Return where the column is one of `values`."""
    if isinstance(column, int):
        return column in values
    if isinstance(column, Bounds):
        return _joined((0, 1), column, *map(_bounds, values))
    import numpy

    return numpy.isin(column, values)


def natural(column: Column) -> Column:
    """Return a column of sizes; raise Unsure where one is negative."""
    if isinstance(column, Bounds):
        return Bounds(max(column.low, 0), max(column.high, 0), column.reach)
    _rule_out(column < 0)
    return column


def floordiv(column: Column, divisor: Column) -> Column:
    """Return `column // divisor`; raise Unsure where one is divided by 0."""
    if not _bounded(column, divisor):
        _rule_out(divisor == 0)
    return column // divisor


def modulo(column: Column, divisor: Column) -> Column:
    """Return `column % divisor`; raise Unsure where one is divided by 0."""
    if not _bounded(column, divisor):
        _rule_out(divisor == 0)
    return column % divisor


def cdiv(column: Column, divisor: Column) -> Column:
    """Return the quotient rounded up; raise Unsure where one is divided by 0."""
    return -floordiv(-column, divisor)


def align(column: Column, multiple: Column) -> Column:
    """Return the next multiple of `multiple`; raise Unsure where that is below 1."""
    if not _bounded(column, multiple):
        _rule_out(multiple < 1)
    return -(-column // multiple) * multiple


def clamp(column: Column, low: Column, high: Column) -> Column:
    """Return what is nearest from `low` to `high`; raise Unsure where nothing is."""
    if not _bounded(column, low, high):
        _rule_out(low > high)
    return largest(low, smallest(column, high))


def behind(offset: Column, end: Column) -> Column:
    """Return the offset of a region; raise Unsure where it lies before `end`."""
    if _bounded(offset, end):
        first = _bounds(offset)
        return _joined((first.low, first.high), first, _bounds(end))
    _rule_out(offset < end)
    return offset


def next_in(values: Sequence[int], column: Column) -> Column:
    """Return the smallest of ascending `values` that is at least the column.

    Raise Unsure where all are smaller.
    """
    if not values:
        raise Unsure
    if isinstance(column, Bounds):
        return _joined((values[0], values[-1]), column)
    if isinstance(column, int):
        place = bisect_left(values, column)
        _rule_out(place == len(values))
        return values[place]
    import numpy

    places = numpy.searchsorted(values, column)
    _rule_out(places == len(values))
    return numpy.asarray(values, numpy.int64)[places]


def trimmed(
    columns: dict[str, Column], *trims: tuple[Column, tuple[str, ...]]
) -> dict[str, Column]:
    """Return the columns less what trims remove, and at the end the bytes of that.

    trims: where each applies, and the names of what it empties.
    """
    removed: Column = 0
    left = dict(columns)
    for applies, names in trims:
        if applies is not False:
            part = sum(left[name] for name in names)
            removed = removed + where(applies, part, 0)
            left |= {name: where(applies, 0, left[name]) for name in names}
    return {**left, "trimmed": removed}


def _outermost(
    choose: Callable[[Iterable[int]], int], columns: Sequence[Column]
) -> Column:
    """What `choose`, max or min, takes of the columns at each point."""
    ints = [column for column in columns if isinstance(column, int)]
    others = [column for column in columns if not isinstance(column, int)]
    if not others:
        return choose(ints)
    if _bounded(*others):
        parts = [_bounds(column) for column in columns]
        ends = choose(part.low for part in parts), choose(part.high for part in parts)
        return _joined(ends, *parts)
    import numpy

    of_two = numpy.maximum if choose is max else numpy.minimum
    return reduce(of_two, [*others, choose(ints)] if ints else others)


def _bounded(*columns: Column) -> bool:
    return any(isinstance(column, Bounds) for column in columns)


def _rule_out(truth: Column) -> None:
    if truth if isinstance(truth, bool) else truth.any():
        raise Unsure
