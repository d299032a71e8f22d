"""The largest value of one limit for which an arena fits into a budget.

Pure: sizes are evaluated, nothing is printed. The answer is exact: the arena of the
value fits, and that of no greater value does.
"""

from __future__ import annotations

from collections.abc import Mapping

from .errors import ArenagenError
from .model import Buffer, Formula, Limit, Schema, Uses
from .monotone import Trend, extent_trend, trend
from .points import Points
from .record import record
from .sizing import MAX_SIZE, ArenaSize, Inputs
from .symbols import Symbols

# Values that are tried one by one where sizes are not shown to grow; some seconds.
MAX_SCAN = 4096
# A range that is halved; a longer one is cut by doublings first.
NEAR = 1 << 20
# Values behind the answer over which growth is averaged: whole tiles of any kernel.
GROWTH_SPAN = 1024


class FitError(ArenagenError):
    """A budget, or a limit, for which there is no answer."""


@record
class Fit:
    """The largest value of a limit that fits.

    value: None when nothing fits. size: the arena at that value, or the smallest one.
    maximum: the largest value that the limit can have at all.
    unit: what growth is told by, a token or the name of the limit.
    beyond: bytes at the next value, None where that has no size or is no value.
    growth: bytes a buffer takes more for each further 1 of the limit, on average over
        the values just below; of the buffers that grow.
    unproven: buffers that are not shown to grow with the limit; without any, smaller
        values fit too.
    """

    limit: str
    budget: int
    value: int | None
    size: ArenaSize
    maximum: int
    unit: str
    beyond: int | None
    growth: Mapping[str, float]
    unproven: tuple[str, ...]

    @property
    def total_growth(self) -> float:
        """Bytes that the arena takes more for each further 1 of the limit."""
        return sum(self.growth.values())


def find_limit(schema: Schema, name: str | None) -> Limit:
    """A limit by its name; that of tokens without one. Raises FitError."""
    if name is None:
        return schema.token_limit
    for limit in schema.limits:
        if name in (limit.name, limit.symbol):
            return limit
    known = ", ".join(each.name for each in schema.limits)
    raise FitError(f"no limit is named `{name}`; known: {known}")


def fit(schema: Schema, inputs: Inputs, limit: Limit, budget: int) -> Fit:
    """The largest value of a limit whose arena takes at most `budget` bytes.

    `inputs` hold every other limit. Raises FitError where the answer cannot be found,
    and SizingError where not even the smallest value has a size.
    """
    search = _Search(schema, inputs, limit, budget)
    return search.answer()


class _Search:
    def __init__(
        self, schema: Schema, inputs: Inputs, limit: Limit, budget: int
    ) -> None:
        self.limit = limit
        self.budget = budget
        self.maximum = MAX_SIZE if limit.maximum is None else limit.maximum
        self.points = Points(schema, inputs, limit.name)
        self.unproven = unproven(schema, limit.name, Symbols(schema))
        self.proven = {each.name for each in schema.buffers} - {*self.unproven}

    def answer(self) -> Fit:
        # Without a size at the minimum, its own error says why.
        smallest = self.points.arena(self.limit.minimum)
        value = self.largest()
        size = smallest if value is None else self.points.arena(value)
        beyond = None
        if value is not None and value < self.maximum:
            beyond = self.total(value + 1)
        return Fit(
            limit=self.limit.name,
            budget=self.budget,
            value=value,
            size=size,
            maximum=self.maximum,
            unit="token" if self.limit.tokens else self.limit.name,
            beyond=beyond,
            growth=self.growth(value, size),
            unproven=self.unproven,
        )

    def total(self, value: int) -> int | None:
        """Bytes at a value; None where it has no size."""
        size = self.points.find(value)
        return None if size is None else size.total_bytes

    def fits(self, value: int) -> bool:
        total = self.total(value)
        return total is not None and total <= self.budget

    def may_fit(self, value: int) -> bool:
        """Whether the buffers that grow fit; where they do not, nothing beyond fits."""
        if not self.unproven:
            return self.fits(value)
        total = self.points.total_of(value, self.proven)
        return total is not None and total <= self.budget

    def largest(self) -> int | None:
        if self.fits(self.maximum):
            return self.maximum
        bound = self.bound()
        if bound is None or not self.unproven:
            return bound
        last = max(self.limit.minimum, bound - MAX_SCAN)
        values = range(bound, last - 1, -1)
        for value, total in zip(values, self.points.totals(values), strict=True):
            if total is not None and total <= self.budget:
                return value
        if bound - last >= MAX_SCAN:
            raise FitError(
                f"{', '.join(self.unproven)}: not shown to grow with "
                f"`{self.limit.name}`, and none of the {MAX_SCAN} values up to "
                f"{bound} fits; smaller ones were not tried"
            )
        return None

    def bound(self) -> int | None:
        """The largest value that may fit."""
        low, high = self.limit.minimum, self.maximum
        if not self.may_fit(low):
            return None
        if self.may_fit(high):
            return high
        while high - low > 1:
            middle = _between(low, high)
            if self.may_fit(middle):
                low = middle
            else:
                high = middle
        return low

    def growth(self, value: int | None, size: ArenaSize) -> dict[str, float]:
        if value is None or value == self.limit.minimum:
            return {}
        span = min(value - self.limit.minimum, GROWTH_SPAN)
        before = self.points.find(value - span)
        if before is None:
            return {}
        pairs = zip(size.buffers, before.buffers, strict=True)
        return {
            each.name: (each.nbytes - below.nbytes) / span
            for each, below in pairs
            if each.nbytes != below.nbytes
        }


def _between(low: int, high: int) -> int:
    """A value between both, apart from them by as many doublings where they are far.

    Most limits are far below the largest value that there is.
    """
    power = 1 << (low.bit_length() + high.bit_length()) // 2
    far = high - low > NEAR and low < power < high
    return power if far else (low + high) // 2


def unproven(schema: Schema, limit: str, symbols: Symbols) -> tuple[str, ...]:
    """The buffers whose bytes are not shown never to shrink when a limit grows."""
    trims = {
        name
        for trim in schema.trims
        if trend(trim.when.expr, limit, symbols) != "fixed"
        for name, _ in trim.buffers
    }
    return tuple(
        each.name
        for each in schema.buffers
        if each.name in trims or not _grows(each, limit, symbols)
    )


def _grows(buffer: Buffer, limit: str, symbols: Symbols) -> bool:
    gates: list[Formula | None] = [buffer.when]
    moves: list[Trend] = []
    if isinstance(buffer.extent, Uses):
        gates += [use.when for use in buffer.extent.items]
        extents = [use.extent for use in buffer.extent.items]
    else:
        extents = [buffer.extent]
    moves += [extent_trend(extent, limit, symbols) for extent in extents]
    for floor in (buffer.min_bytes, buffer.otherwise):
        if floor is not None:
            moves.append(trend(floor.expr, limit, symbols))
    return {*moves} <= {"fixed", "rising"} and all(
        gate is None or trend(gate.expr, limit, symbols) == "fixed" for gate in gates
    )
