"""Which buffers share modules, where modules of all of them would be too long to read.

Takes the views of the buffers and how long a module may be, and returns runs of them in
their order. Counts lines before there are any, and rather too many than too few. Names
decide where a run ends, so that a buffer more or less moves few ends.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import add
from zlib import crc32

from .plan_buffers import BufferView
from .plan_parts import StatementView
from .plan_uses import PartView

# Lines of a module that one person reviews.
MAX_LINES = 3000
# What stands in a module beside its buffers: imports, exports, shared locals, a piece
# of the order in a slab.
_FRAME = 450
# The fewest lines that a buffer takes in the module that needs most for it.
_LEAST = 14
# Characters of a docstring that a line holds, of a string, and of a broken formula.
_DOC = 70
_STRING = 58
_FORMULA = 26


def chunks(buffers: Sequence[BufferView], most: int) -> list[slice]:
    """Runs of buffers of which each fits in modules of `most` lines; all, if they do.

    A buffer that does not fit by itself is a run of its own.
    """
    names = [each.name for each in buffers]
    return _cut(names, [_lines(each) for each in buffers], most - _FRAME)


def pieces(order: Sequence[str], count: int, most: int) -> list[slice]:
    """Runs of the buffers in their order in a slab, one for each of `count` chunks.

    All but the last hold at least as many buffers as the fullest chunk could, so that
    there is a chunk for each; those of the last chunks are empty.
    """
    room = 2 * max((most - _FRAME) // _LEAST, 1)
    runs = _cut(order, [(1,)] * len(order), room)
    return [*runs, *[slice(0)] * (count - len(runs))]


def _cut(
    names: Sequence[str], lines: Sequence[tuple[int, ...]], room: int
) -> list[slice]:
    """Runs that fit, each but the last cut where it is half full at least.

    Of the places for a cut, that in front of the name with the smallest checksum is
    taken: the same one still, as a rule, where a name comes or goes or where the run
    begins elsewhere, so that the runs behind it stay as they were.
    """
    runs: list[slice] = []
    start = 0
    while True:
        end, used = start, (0,) * len(lines[0])
        places = []
        while end < len(names):
            longer = tuple(map(add, used, lines[end]))
            if end > start and max(longer) > room:
                break
            if end > start and 2 * max(used) >= room:
                places.append(end)
            used, end = longer, end + 1
        if end == len(names):
            return [*runs, slice(start, end)]
        cut = min([*places, end], key=lambda place: crc32(names[place].encode()))
        runs.append(slice(start, cut))
        start = cut


def _lines(buffer: BufferView) -> tuple[int, ...]:
    """The lines that a buffer takes in each module."""
    parts = buffer.pointer.parts if buffer.pointer else ()
    texts = (buffer.doc, buffer.extent, buffer.gate, buffer.otherwise)
    lists = (buffer.inputs, buffer.groups, buffer.region_groups)
    return (
        _LEAST + sum(map(_string, texts)) + sum(map(_items, lists)),
        14 + _docs(buffer.docs) + len(buffer.extent) // _FORMULA,
        12 + _string(buffer.slot_doc) + _members(buffer),
        18 * bool(parts) + sum(map(_method, parts)),
        sum(map(_placing, parts)),
    )


def _members(buffer: BufferView) -> int:
    """What fills and lists a buffer in the arena: its groups, the probe."""
    regions = 6 * len(buffer.region_groups)
    return 5 * len(buffer.groups) + regions + 7 * bool(buffer.fill) + buffer.checksum


def _method(part: PartView) -> int:
    """The method of a pointer, and what it imports."""
    arguments = len(part.limits) + len(part.parameters)
    return 8 + _docs(part.docs) + _string(part.gate) + 3 * arguments


def _placing(part: PartView) -> int:
    """The function that lays a part out, and the record that it returns."""
    record = 10 + _docs(part.record_docs) if part.record else 0
    regions = (2 + _docs((each.doc,)) + _statements(each.body) for each in part.regions)
    value = 8 + len(part.value) // _FORMULA + len(part.parameters)
    return record + sum(regions) + value + _statements(part.body)


def _docs(texts: Iterable[str]) -> int:
    return 2 + sum(1 + len(text) // _DOC for text in texts)


def _string(text: str) -> int:
    """Lines that a string takes beside its own."""
    return 2 + len(text) // _STRING if len(text) > _STRING else 0


def _items(items: Sequence[object]) -> int:
    """Lines that a list takes beside its own."""
    return 1 + len(items) if len(str(items)) > _STRING else 0


def _statements(body: Iterable[StatementView]) -> int:
    return sum(
        1 + each.value.count("\n") + len(each.value) // _FORMULA for each in body
    )
