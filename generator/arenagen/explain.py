"""Everything about the bytes of one buffer: `arenagen explain`.

Takes the model, and inputs where there are some; returns records of texts and numbers.
What it works out step by step is what `sizing` evaluates.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal, Protocol, TypeAlias

from .describe import buffer_details
from .errors import ArenagenError, did_you_mean
from .evaluate import EvaluationError, Value
from .formula import spell
from .model import Buffer, Function, Let, Schema, Uses
from .reads import buffer_reads, readers
from .record import record, replace
from .sizing import Inputs, Sizing, size_arena
from .symbols import Symbols
from .trace import Worked
from .work import Step, Work, Worker

TermKind: TypeAlias = Literal[
    "limit", "field", "lever", "target", "constant", "let", "function", "layout"
]


class _Named(Protocol):
    @property
    def name(self) -> str: ...

    @property
    def doc(self) -> str: ...


@record
class Term:
    """A name that the bytes depend on; its value where the inputs give it one.

    formula: of a let or a function. readers: the other buffers that read it.
    """

    kind: TermKind
    name: str
    doc: str
    formula: str
    value: Value | None
    readers: tuple[str, ...]


@record
class UseWork:
    """A use; without an extent while its gate is false."""

    name: str
    doc: str
    gate: Worked | None
    extent: Work | None


# Terms that have no value of their own.
CALLED = ("function", "layout")


@record
class TrimWork:
    """A trim that may empty the buffer."""

    name: str
    doc: str
    gate: Worked


@record
class Sized:
    """The bytes of a buffer under some inputs, and how they come about.

    nbytes: allocated; trimmed: removed by a trim. extent: of a buffer without uses.
    use: the winner, `margin` bytes before `runner_up`, which is empty without one.
    floor: `min_bytes`; otherwise: what is taken while the gate is false.
    """

    inputs: Inputs
    nbytes: int
    trimmed: int
    gate: Worked | None
    trims: tuple[TrimWork, ...]
    otherwise: Worked | None
    floor: Worked | None
    floor_bites: bool
    extent: Work | None
    uses: tuple[UseWork, ...]
    use: str
    runner_up: str
    margin: int
    steps: tuple[Step, ...]

    @property
    def open(self) -> bool:
        """Whether the gate is true."""
        return self.gate is None or bool(self.gate.value)


@record
class Explanation:
    """A buffer, what its bytes depend on, and the bytes themselves.

    full: at the limits that are given; of_pass: what a pass of `tokens` tokens touches.
    """

    name: str
    doc: str
    details: tuple[str, ...]
    token_major: bool
    terms: tuple[Term, ...]
    full: Sized | None
    tokens: int | None
    of_pass: Sized | None


def explain(
    schema: Schema, name: str, inputs: Inputs | None, tokens: int | None = None
) -> Explanation:
    """Explain the buffer `name`, in symbols alone where there are no inputs.

    tokens: of a pass, whose part of a token-major buffer is worked out too. Raises
    ArenagenError for an unknown buffer or impossible tokens, SizingError for sizes
    that do not exist.
    """
    known = {each.name: each for each in schema.buffers}
    if name not in known:
        raise _no_buffer(schema, name)
    buffer = known[name]
    methods = {group.name: group.method for group in schema.groups}
    cleared = [methods[group] for group, _ in buffer.groups]
    regions = [(methods[each.group], each.path) for each in buffer.zero_regions]
    full = _sized(schema, buffer, inputs) if inputs is not None else None
    of_pass = None
    if inputs is not None and tokens is not None:
        limit = schema.token_limit
        if tokens < limit.minimum:
            raise ArenagenError(f"a pass of {tokens} tokens; at least {limit.minimum}")
        if buffer.token_major and tokens < inputs.limits[limit.name]:
            limits = {**inputs.limits, limit.name: tokens}
            of_pass = _sized(schema, buffer, replace(inputs, limits=limits))
        else:
            of_pass = full
    return Explanation(
        name=name,
        doc=buffer.doc,
        details=tuple(buffer_details(buffer, cleared, regions)),
        token_major=buffer.token_major,
        terms=_terms(schema, buffer, inputs),
        full=full,
        tokens=tokens,
        of_pass=of_pass,
    )


def _no_buffer(schema: Schema, name: str) -> ArenagenError:
    """What a name is instead, or a buffer of a similar name."""
    for kind, each in _named(schema):
        if each.name == name:
            what = "config field" if kind == "field" else kind
            text = f"`{name}` is a {what}, and no buffer"
            reading = readers(schema).get(name)
            if reading:
                text += f"; the first that reads it is `{reading[0]}`"
            return ArenagenError(text)
    known = [each.name for each in schema.buffers]
    hint = did_you_mean(name, known) or f"{len(known)} buffers are declared"
    return ArenagenError(f"no buffer is named `{name}`; {hint}")


def _named(schema: Schema) -> Iterator[tuple[TermKind, _Named]]:
    """Everything that formulas read, by section."""
    sections: tuple[tuple[TermKind, Sequence[_Named]], ...] = (
        ("limit", schema.limits),
        ("field", schema.config),
        ("lever", schema.levers),
        ("target", schema.target),
        ("constant", schema.constants),
        ("let", schema.lets),
        ("function", schema.functions),
        ("layout", schema.layouts),
    )
    for kind, entries in sections:
        for each in entries:
            yield kind, each


def _terms(schema: Schema, buffer: Buffer, inputs: Inputs | None) -> tuple[Term, ...]:
    symbols = Symbols(schema)
    sizing = Sizing(schema, inputs) if inputs is not None else None
    read = buffer_reads(symbols, buffer)
    shared = readers(schema)
    return tuple(
        Term(
            kind=kind,
            name=each.name,
            doc=each.doc,
            formula=_formula_text(each),
            value=_value(sizing, each.name) if sizing and kind not in CALLED else None,
            readers=tuple(other for other in shared[each.name] if other != buffer.name),
        )
        for kind, each in _named(schema)
        if each.name in read
    )


def _value(sizing: Sizing, name: str) -> Value | None:
    try:
        return sizing.value(name)
    except EvaluationError:
        # Of a let that only a function reads which is not called for these inputs.
        return None


def _formula_text(entry: _Named) -> str:
    return spell(entry.value.expr) if isinstance(entry, Let | Function) else ""


def _sized(schema: Schema, buffer: Buffer, inputs: Inputs) -> Sized:
    sizes = {each.name: each for each in size_arena(schema, inputs).buffers}
    worker = Worker(Sizing(schema, inputs))
    trims = tuple(
        TrimWork(trim.name, trim.doc, worker.formula(trim.when))
        for trim in schema.trims
        if buffer.name in {name for name, _ in trim.buffers}
    )
    gate = worker.formula(buffer.when) if buffer.when is not None else None
    extent: Work | None = None
    uses: tuple[UseWork, ...] = ()
    otherwise = floor = None
    least = 0
    if gate is None or gate.value:
        if isinstance(buffer.extent, Uses):
            uses = tuple(_uses(worker, buffer.extent))
        else:
            extent = worker.extent(buffer.extent, worker.sizing)
        if buffer.min_bytes is not None:
            floor = worker.formula(buffer.min_bytes)
            least = worker.sizing.number(buffer.min_bytes)
    elif buffer.otherwise is not None:
        otherwise = worker.formula(buffer.otherwise)
    active = [(each.extent.nbytes, each.name) for each in uses if each.extent]
    # Of two uses that are equal, the first one wins.
    ranked = sorted(active, key=lambda each: -each[0])
    needed = ranked[0][0] if ranked else extent.nbytes if extent else 0
    return Sized(
        inputs=inputs,
        nbytes=sizes[buffer.name].nbytes,
        trimmed=sizes[buffer.name].trimmed,
        gate=gate,
        trims=trims,
        otherwise=otherwise,
        floor=floor,
        floor_bites=needed < least,
        extent=extent,
        uses=uses,
        use=ranked[0][1] if ranked else "",
        runner_up=ranked[1][1] if len(ranked) > 1 else "",
        margin=ranked[0][0] - ranked[1][0] if len(ranked) > 1 else 0,
        steps=tuple(worker.steps.values()),
    )


def _uses(worker: Worker, extent: Uses) -> Iterator[UseWork]:
    for use in extent.items:
        gate = worker.formula(use.when) if use.when is not None else None
        work = None
        if gate is None or gate.value:
            work = worker.extent(use.extent, worker.sizing)
        yield UseWork(use.name, use.doc, gate, work)
