"""Everything that the page tells of one config, as numbers.

The one place where sizes are evaluated for the page; views and embedded data read it.
"""

from __future__ import annotations

from .. import report
from ..model import Group, Schema
from ..placement import slab_offsets
from ..record import record
from ..sizing import ArenaSize, Inputs, size_arena
from ..zeroing import ZeroRange, zero_plan
from .curve import Curve, largest_buffer, size_curve
from .effects import (
    GateState,
    LeverEffect,
    TrimState,
    gate_states,
    lever_effects,
    trim_states,
)

# The pass of a rows method that the page shows.
PASS_TOKENS = 1
# Buffers that the size chart draws at least, and at most.
LARGEST = 4
MAX_LINES = 6


@record
class Span:
    """A buffer in the slab; padding: bytes between it and what lies before it."""

    name: str
    offset: int
    nbytes: int
    padding: int


@record
class Cleared:
    """What a zeroing method clears; tokens: those of the pass, None for all."""

    group: Group
    call: str
    tokens: int | None
    separate: tuple[ZeroRange, ...]
    slab: tuple[ZeroRange, ...]


@record
class ConfigFacts:
    """One config. drawn: the buffers that the size chart draws, the largest first."""

    name: str
    size: ArenaSize
    slab: tuple[Span, ...]
    cleared: tuple[Cleared, ...]
    curve: Curve
    drawn: tuple[str, ...]
    levers: tuple[LeverEffect, ...]
    gates: tuple[GateState, ...]
    trims: tuple[TrimState, ...]

    @property
    def slab_bytes(self) -> int:
        """Bytes of the slab with its padding."""
        return self.slab[-1].offset + self.slab[-1].nbytes if self.slab else 0


def find_facts(schema: Schema, name: str, inputs: Inputs) -> ConfigFacts:
    """The facts of one config. Raises SizingError where it has no size."""
    size = size_arena(schema, inputs)
    curve = size_curve(schema, inputs)
    return ConfigFacts(
        name=name,
        size=size,
        slab=tuple(_spans(schema, size)),
        cleared=tuple(_cleared(schema, inputs)),
        curve=curve,
        drawn=_drawn(size, curve),
        levers=tuple(lever_effects(schema, size)),
        gates=tuple(gate_states(schema, size)),
        trims=tuple(trim_states(schema, inputs)),
    )


def _spans(schema: Schema, size: ArenaSize) -> list[Span]:
    sizes = {each.name: each.nbytes for each in size.buffers}
    spans = []
    end = 0
    for name, offset in slab_offsets(schema.buffers, sizes).items():
        spans.append(Span(name, offset, sizes[name], offset - end))
        end = offset + sizes[name]
    return spans


def _cleared(schema: Schema, inputs: Inputs) -> list[Cleared]:
    limit = schema.token_limit
    tokens = max(PASS_TOKENS, limit.minimum)
    found = []
    for group in schema.groups:
        calls: list[tuple[str, int | None]] = [(f"{group.method}()", None)]
        if group.rows_method is not None:
            calls.append((f"{group.rows_method}({tokens})", tokens))
        for call, rows in calls:
            separate = zero_plan(schema, inputs, group, rows, "separate")
            slab = zero_plan(schema, inputs, group, rows, "slab")
            found.append(Cleared(group, call, rows, tuple(separate), tuple(slab)))
    return found


def _drawn(size: ArenaSize, curve: Curve) -> tuple[str, ...]:
    """The largest buffers at the limit, and those that lead anywhere below it."""
    largest = sorted(size.buffers, key=lambda each: -each.nbytes)
    names = [each.name for each in largest[:LARGEST] if each.nbytes]
    names += [each.buffer for each in reversed(curve.leaders)]
    return tuple(dict.fromkeys(names))[:MAX_LINES]


def as_data(schema: Schema, facts: ConfigFacts) -> dict[str, object]:
    """The facts as plain data: what `arenagen sizes` prints, and what comes of it."""
    curve = facts.curve
    return {
        "sizes": report.as_data(schema, facts.name, facts.size),
        "slab": [
            {
                "buffer": each.name,
                "offset": each.offset,
                "bytes": each.nbytes,
                "padding": each.padding,
            }
            for each in facts.slab
        ],
        "slab_bytes": facts.slab_bytes,
        "zeroing": [
            report.plan_as_data(facts.name, each.call, each.slab)
            for each in facts.cleared
        ],
        "curve": {
            "tokens": [each.tokens for each in curve.samples],
            "total": [each.total for each in curve.samples],
            "buffers": {
                name: [each.sizes[name] for each in curve.samples]
                for name in facts.drawn
            },
        },
        "crossovers": [
            {
                "tokens": each.tokens,
                "buffer": each.buffer,
                "before": each.before,
                "after": each.after,
                "bytes": each.nbytes,
            }
            for each in curve.crossovers
        ],
        "largest": [
            {
                "tokens": each.tokens,
                "last": each.last,
                "buffer": each.buffer,
                "bytes": each.nbytes,
            }
            for each in curve.leaders
        ],
    }


def largest_name(size: ArenaSize) -> str:
    """The name of the largest buffer, empty without any memory."""
    largest = largest_buffer(size)
    return "" if largest is None else largest.name
