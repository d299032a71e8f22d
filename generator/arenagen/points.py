"""The sizes of an arena at many values of one limit, all other inputs as they are.

What does not depend on that limit is worked out once, and only the rest at each value.
Gives what `size_arena` gives, and raises what it raises.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

from .evaluate import EvaluationError, Value
from .fold import Fold
from .formula import Bool, Name
from .model import Buffer, Schema
from .record import replace
from .series import Each, Series
from .sizing import (
    ArenaSize,
    BufferSize,
    Inputs,
    Known,
    Sizing,
    SizingError,
    size_arena,
    size_formulas,
)


class Points:
    """The sizes at the values of one limit, each worked out once.

    `inputs` hold all the others, and any value of that one.
    """

    def __init__(self, schema: Schema, inputs: Inputs, limit: str) -> None:
        self._schema = schema
        self._inputs = inputs
        self._limit = limit
        known = Known(schema)
        whole = Sizing(schema, inputs, known)
        fold = Fold(known.symbols, whole, limit)
        self._folded = fold.schema(schema)
        moving = tuple(name for name in known.lets if fold.moves([Name(name)]))
        self._known = known.folded(self._folded, moving)
        self._trims = [
            each for each in self._folded.trims if not isinstance(each.when.expr, Bool)
        ]
        self._lets: dict[str, Value] = {}
        # The buffers that a trim empties, and the sizes, whatever the limit is.
        self._trimmed: set[str] = set()
        self._still: dict[str, BufferSize] = {}
        self._found: dict[int, ArenaSize | None] = {}
        # Whether there are sizes at any value at all.
        self._possible = True
        try:
            for name in known.lets:
                if name not in moving:
                    self._lets[name] = whole.value(name)
        except EvaluationError:
            self._possible = False
            return
        for trim in self._folded.trims:
            if trim.when.expr == Bool(True):
                self._trimmed |= {name for name, _ in trim.buffers}
        undecided = {name for trim in self._trims for name, _ in trim.buffers}
        for buffer in schema.buffers:
            moves = fold.moves(size_formulas(buffer, known.symbols))
            if not moves and buffer.name not in undecided:
                self._keep(whole, buffer)

    def _keep(self, whole: Sizing, buffer: Buffer) -> None:
        try:
            size = whole.buffer(buffer, buffer.name in self._trimmed)
        except EvaluationError:
            # It is told at the value that is asked for.
            return
        self._still[buffer.name] = size

    def arena(self, value: int) -> ArenaSize:
        """The sizes at a value. Raises SizingError where there are none."""
        found = self.find(value)
        return size_arena(self._schema, self.inputs(value)) if found is None else found

    def find(self, value: int) -> ArenaSize | None:
        """The sizes at a value, None where there are none."""
        if value not in self._found:
            self._found[value] = self._evaluated(value)
        return self._found[value]

    def prepare(self, values: Iterable[int]) -> None:
        """Work the sizes at many values out at once, for `find` and `arena`."""
        new = [value for value in dict.fromkeys(values) if value not in self._found]
        if not new or not self._possible:
            return
        series = Series(self._sizing(new[0]), self._limit, new)
        holds = [series.holds(trim.when) for trim in self._trims]
        columns: list[Sequence[BufferSize | None]] = [
            (
                [self._still[buffer.name]] * len(new)
                if buffer.name in self._still
                else series.sizes(buffer, self._emptied(buffer, holds, len(new)))
            )
            for buffer in self._folded.buffers
        ]
        missing = series.missing(holds)
        for point, value in enumerate(new):
            sizes = [column[point] for column in columns]
            whole = tuple(size for size in sizes if size is not None)
            exists = len(whole) == len(sizes) and not missing[point]
            self._found[value] = (
                ArenaSize(self.inputs(value), whole) if exists else None
            )

    def totals(self, values: Sequence[int]) -> list[int | None]:
        """The bytes of all buffers at many values, None where there are no sizes."""
        if not values or not self._possible:
            return [None] * len(values)
        series = Series(self._sizing(values[0]), self._limit, values)
        holds = [series.holds(trim.when) for trim in self._trims]
        still = sum(each.nbytes for each in self._still.values())
        totals = [None if missing else still for missing in series.missing(holds)]
        for buffer in self._folded.buffers:
            if buffer.name in self._still:
                continue
            emptied = self._emptied(buffer, holds, len(values))
            sizes = zip(totals, series.nbytes(buffer), emptied, strict=True)
            totals = [
                (
                    None
                    if total is None or nbytes is None
                    else total + nbytes * (not empty)
                )
                for total, nbytes, empty in sizes
            ]
        return totals

    def _emptied(self, buffer: Buffer, holds: list[Each], points: int) -> list[bool]:
        """Where a trim empties a buffer, given where each undecided one applies."""
        gates = [
            gate
            for trim, gate in zip(self._trims, holds, strict=True)
            if buffer.name in {name for name, _ in trim.buffers}
        ]
        always = buffer.name in self._trimmed
        if not gates:
            return [always] * points
        return [always or any(point) for point in zip(*gates, strict=True)]

    def total_of(self, value: int, names: Collection[str]) -> int | None:
        """The bytes of some of the buffers, None where one of them has no size."""
        try:
            sizes = self._sizes(self._sizing(value), names)
            return sum(each.nbytes for each in sizes)
        except (EvaluationError, SizingError):
            return None

    def inputs(self, value: int) -> Inputs:
        """The inputs with a value of the limit."""
        limits = {**self._inputs.limits, self._limit: value}
        return replace(self._inputs, limits=limits)

    def _evaluated(self, value: int) -> ArenaSize | None:
        if not self._possible:
            return None
        sizing = self._sizing(value)
        names = {each.name for each in self._schema.buffers}
        try:
            sizing.settle()
            return ArenaSize(sizing.inputs, tuple(self._sizes(sizing, names)))
        except (EvaluationError, SizingError):
            return None

    def _sizing(self, value: int) -> Sizing:
        return Sizing(self._folded, self.inputs(value), self._known, self._lets)

    def _sizes(self, sizing: Sizing, names: Collection[str]) -> Iterator[BufferSize]:
        """The sizes of some of the buffers, in order. Raises EvaluationError."""
        trimmed = {
            name
            for trim in self._trims
            if sizing.holds(trim.when)
            for name, _ in trim.buffers
        }
        trimmed |= self._trimmed
        for buffer in self._folded.buffers:
            if buffer.name in names:
                still = self._still.get(buffer.name)
                yield still or sizing.buffer(buffer, buffer.name in trimmed)
