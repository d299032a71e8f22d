"""What the page says of levers, gates and trims."""

from __future__ import annotations

from ..report import human
from .effects import GateState, LeverEffect, TrimState
from .facts import ConfigFacts
from .view import Alternative, Condition
from .words import assignments, exact, signed


def lever_views(facts: ConfigFacts) -> tuple[Alternative, ...]:
    """A row for every other value of every lever."""
    total = facts.size.total_bytes
    return tuple(row for each in facts.levers for row in _alternatives(each, total))


def _alternatives(effect: LeverEffect, total: int) -> list[Alternative]:
    lever = effect.lever
    rows: list[Alternative] = []
    for choice in effect.choices:
        changed = ", ".join(f"{name} {signed(by)}" for name, by in choice.changed)
        if choice.total is None:
            change, after, changed = "no size", "", choice.problem
        else:
            same = choice.total == total
            change = "no change" if same else signed(choice.total - total)
            after = exact(choice.total)
        if lever.arms and not changed:
            changed = f"arms the {lever.arms} probe"
        rows.append(
            Alternative(
                lever.name,
                "" if rows else lever.doc,
                lever.variable,
                effect.word,
                choice.word,
                change,
                after,
                changed or "none",
            )
        )
    return rows


def gate_view(gate: GateState) -> Condition:
    """A gate, and the bytes that exist because of it."""
    held = f"{human(gate.nbytes)} ({exact(gate.nbytes)} bytes)"
    if gate.on:
        effect = f"{held} exist because it is on."
        if gate.trimmed:
            effect += f" Trims remove {human(gate.trimmed)} of that."
    elif gate.nbytes:
        effect = f"Keeps the buffers at their placeholders, {held}."
    else:
        effect = "Keeps the buffers at 0 bytes."
    return Condition(
        name="",
        doc="",
        formula=gate.gate,
        on=gate.on,
        state="on" if gate.on else "off",
        reads=assignments(gate.reads) or "constants alone",
        buffers=", ".join(gate.buffers),
        effect=effect,
    )


def trim_view(trim: TrimState) -> Condition:
    """A trim, and the bytes that it saves."""
    held = f"{human(trim.nbytes)} ({exact(trim.nbytes)} bytes)"
    return Condition(
        name=trim.name,
        doc=trim.doc,
        formula=trim.when,
        on=trim.on,
        state="applies" if trim.on else "does not apply",
        reads=assignments(trim.reads) or "constants alone",
        buffers=", ".join(trim.buffers),
        effect=f"Saves {held}." if trim.on else f"Its buffers hold {held}.",
    )
