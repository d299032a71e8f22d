"""Which buffers share modules, where modules of all of them would be too long to read.

Takes the views of the buffers and how long a module may be, and returns runs of them in
their order. Counts lines before there are any, and rather too many than too few.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from operator import add

from .plan import BufferView
from .plan_parts import StatementView
from .plan_uses import PartView

# Lines of a module that one person reviews.
MAX_LINES = 3000
# What stands in a module beside its buffers: imports, exports, shared locals.
_FRAME = 400
# Characters of a docstring that a line holds, of a string, and of a broken formula.
_DOC = 70
_STRING = 58
_FORMULA = 26


def chunks(buffers: Sequence[BufferView], most: int) -> list[slice]:
    """Runs of buffers of which each fits in modules of `most` lines; all, if they do.

    A buffer that does not fit by itself is a run of its own.
    """
    runs: list[slice] = []
    start = 0
    used: Sequence[int] = ()
    for place, buffer in enumerate(buffers):
        lines = _lines(buffer)
        longer = tuple(map(add, used, lines)) if used else lines
        if place > start and max(longer) > most - _FRAME:
            runs.append(slice(start, place))
            start, longer = place, lines
        used = longer
    return [*runs, slice(start, len(buffers))]


def _lines(buffer: BufferView) -> tuple[int, ...]:
    """The lines that a buffer takes in each module."""
    parts = buffer.pointer.parts if buffer.pointer else ()
    texts = (buffer.doc, buffer.extent, buffer.gate, buffer.otherwise)
    lists = (buffer.inputs, buffer.groups, buffer.region_groups)
    return (
        14 + sum(map(_string, texts)) + sum(map(_items, lists)),
        14 + _docs(buffer.docs) + len(buffer.extent) // _FORMULA,
        12 + _string(buffer.slot_doc),
        18 * bool(parts) + sum(map(_method, parts)),
        sum(map(_placing, parts)),
    )


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
