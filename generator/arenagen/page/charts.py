"""Where the marks of a chart go: shares of its width and height, as SVG spells them.

Everything is a percentage, so that charts stretch while their texts keep their size.
Takes numbers, returns positions; knows neither words nor colours.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import log2

from ..record import record
from .curve import Sample

# The address map is folded into at most so many rows.
MAP_ROWS = 12
# Below this share of the width nothing is to be seen; a run is drawn this wide.
HAIRLINE = 0.15
# The side of the square that lines are drawn in, stretched to the chart.
SIDE = 1000
GRID_LINES = 7


@record
class Piece:
    """A part of a buffer in one row of the address map.

    row: 0 is the first. start, width: in percent of the row. widest: whether this is
    the widest piece of its buffer, which carries the label.
    """

    name: str
    row: int
    start: float
    width: float
    widest: bool


def percent(share: float) -> str:
    """A share of 100 as an SVG length."""
    return f"{share:.3f}".rstrip("0").rstrip(".") + "%"


def row_bytes(total: int) -> int:
    """Bytes of one row of the map: the least power of two that needs few rows."""
    return 1 << max(0, -(-total // MAP_ROWS) - 1).bit_length()


def map_pieces(spans: Sequence[tuple[str, int, int]], row: int) -> list[Piece]:
    """The pieces of (name, offset, bytes) in rows of `row` bytes, in order."""
    found = []
    for name, offset, nbytes in spans:
        parts = []
        at, end = offset, offset + nbytes
        while at < end:
            stop = min(end, (at // row + 1) * row)
            parts.append((at, stop))
            at = stop
        largest = max(range(len(parts)), key=lambda k: parts[k][1] - parts[k][0])
        for place, (start, stop) in enumerate(parts):
            found.append(
                Piece(
                    name,
                    start // row,
                    100 * (start % row) / row,
                    100 * (stop - start) / row,
                    place == largest,
                )
            )
    return found


@record
class Axes:
    """Both axes of the size chart; each doubles at equal steps.

    low, high: powers of two around every size that is drawn.
    """

    least: int
    most: int
    low: int
    high: int

    def x(self, tokens: int) -> float:
        """Percent from the left."""
        return 100 * log2(tokens / self.least) / log2(self.most / self.least)

    def y(self, nbytes: int) -> float:
        """Percent from the top."""
        height = log2(self.high) - log2(self.low)
        return 100 * (log2(self.high) - log2(nbytes)) / height

    def grid(self) -> list[int]:
        """Sizes of the horizontal lines, which are powers of two."""
        bottom, top = self.low.bit_length() - 1, self.high.bit_length() - 1
        step = -(-(top - bottom) // GRID_LINES)
        return [1 << power for power in range(bottom, top, step)]

    def ticks(self) -> list[int]:
        """Token counts below the chart: powers of two, and both ends."""
        bottom, top = self.least.bit_length(), self.most.bit_length()
        step = max(1, -(-(top - bottom) // GRID_LINES))
        inner = [1 << power for power in range(bottom, top, step)]
        room = [each for each in inner if 8 < self.x(each) < 86]
        return [self.least, *room, self.most]


def axes(samples: Sequence[Sample], names: Sequence[str]) -> Axes | None:
    """Axes for the total and some buffers; None where there is no line to draw."""
    sizes = [each.sizes[name] for each in samples for name in names]
    shown = [each for each in (*sizes, *(each.total for each in samples)) if each]
    if len(samples) < 2 or not shown:
        return None
    low = 1 << (min(shown).bit_length() - 1)
    high = 1 << max(shown).bit_length()
    return Axes(samples[0].tokens, samples[-1].tokens, low, high)


def lines(frame: Axes, sizes: Mapping[int, int]) -> list[str]:
    """The points of the lines through sizes by token count; nothing is a gap."""
    found: list[list[str]] = [[]]
    for tokens, nbytes in sizes.items():
        if nbytes:
            x, y = SIDE * frame.x(tokens) / 100, SIDE * frame.y(nbytes) / 100
            found[-1].append(f"{x:.1f},{y:.1f}")
        else:
            found.append([])
    return [" ".join(points) for points in found if points]
