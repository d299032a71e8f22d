"""What levers, gates and trims do to an arena, one at a time.

Each lever is set to every other value that it has a word for, all else as it was, and
the arena is sized again.
"""

from __future__ import annotations

from ..formula import Expr, spell
from ..model import Lever, Schema
from ..record import record, replace
from ..sizing import ArenaSize, BufferSize, Inputs, SizingError, size_arena
from ..symbols import Symbols
from .words import value_text

LeverValue = int | bool | str


@record
class Choice:
    """A lever at another value.

    word: how it would be set. total: bytes of the arena, None where `problem` says why
    there is no size. changed: every buffer that differs, with its signed difference.
    """

    word: str
    total: int | None
    changed: tuple[tuple[str, int], ...]
    problem: str


@record
class LeverEffect:
    """A lever, the word for its value, and its other values."""

    lever: Lever
    word: str
    choices: tuple[Choice, ...]


@record
class GateState:
    """A gate and the buffers that have it.

    reads: every input that it depends on, with its value. nbytes: bytes of its buffers
    before any trim; while it is off, their placeholders. trimmed: what trims remove.
    """

    gate: str
    on: bool
    reads: tuple[tuple[str, object], ...]
    buffers: tuple[str, ...]
    nbytes: int
    trimmed: int


@record
class TrimState:
    """A trim, whether it applies, and the bytes that it removes, or would hold back."""

    name: str
    doc: str
    when: str
    on: bool
    reads: tuple[tuple[str, object], ...]
    buffers: tuple[str, ...]
    nbytes: int


def lever_effects(schema: Schema, size: ArenaSize) -> list[LeverEffect]:
    """Every lever at every other value, in schema order."""
    inputs = size.inputs
    found = []
    for lever in schema.levers:
        value = inputs.levers[lever.name]
        words = _words(lever)
        choices = tuple(
            _choice(schema, size, lever, word, other)
            for other, word in words.items()
            if other != value
        )
        current = words.get(value, value_text(value))
        found.append(LeverEffect(lever, current, choices))
    return found


def _words(lever: Lever) -> dict[LeverValue, str]:
    """A word for each value of a lever; for a count, the ends of its range too."""
    if lever.type == "bool":
        return {True: "on", False: "off"}
    found: dict[LeverValue, str] = {}
    for word, value, _ in lever.words:
        # Of several words, one that is no number.
        if value not in found or found[value].isdecimal():
            found[value] = word
    for end in lever.clamp or ():
        found.setdefault(end, str(end))
    return found


def _choice(
    schema: Schema, size: ArenaSize, lever: Lever, word: str, value: LeverValue
) -> Choice:
    levers = {**size.inputs.levers, lever.name: value}
    try:
        other = size_arena(schema, replace(size.inputs, levers=levers))
    except SizingError as error:
        return Choice(word, None, (), str(error))
    changed = tuple(
        (after.name, after.nbytes - before.nbytes)
        for before, after in zip(size.buffers, other.buffers, strict=True)
        if after.nbytes != before.nbytes
    )
    return Choice(word, other.total_bytes, changed, "")


def gate_states(schema: Schema, size: ArenaSize) -> list[GateState]:
    """Every gate of a buffer, in the order in which they first appear."""
    untrimmed = size_arena(replace(schema, trims=()), size.inputs)
    trimmed = {each.name: each.trimmed for each in size.buffers}
    symbols = Symbols(schema)
    formulas: dict[str, Expr] = {}
    behind: dict[str, list[BufferSize]] = {}
    for buffer, each in zip(schema.buffers, untrimmed.buffers, strict=True):
        if buffer.when is not None:
            formulas[each.gate] = buffer.when.expr
            behind.setdefault(each.gate, []).append(each)
    return [
        GateState(
            gate,
            members[0].active,
            _reads(symbols, size.inputs, formulas[gate]),
            tuple(each.name for each in members),
            sum(each.nbytes for each in members),
            sum(trimmed[each.name] for each in members),
        )
        for gate, members in behind.items()
    ]


def trim_states(schema: Schema, inputs: Inputs) -> list[TrimState]:
    """Every trim by itself, as if there were no other."""
    symbols = Symbols(schema)
    whole = size_arena(replace(schema, trims=()), inputs)
    found = []
    for trim in schema.trims:
        names = tuple(name for name, _ in trim.buffers)
        size = size_arena(replace(schema, trims=(trim,)), inputs)
        found.append(
            TrimState(
                trim.name,
                trim.doc,
                spell(trim.when.expr),
                size.buffers != whole.buffers,
                _reads(symbols, inputs, trim.when.expr),
                names,
                sum(each.nbytes for each in whole.buffers if each.name in names),
            )
        )
    return found


def _reads(
    symbols: Symbols, inputs: Inputs, expr: Expr
) -> tuple[tuple[str, object], ...]:
    read = {name for _, name in symbols.leaves([expr])}
    values: dict[str, object] = {
        **inputs.config,
        **inputs.limits,
        **inputs.levers,
        **inputs.target,
    }
    return tuple((name, value) for name, value in values.items() if name in read)
