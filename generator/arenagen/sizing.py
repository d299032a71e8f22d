"""The sizes of an arena, evaluated from the model without emitting code.

What `arenagen sizes` prints. Independent of the emitted calculator: one walks trees,
the other is straight-line Python, and tests hold them equal.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property

from .describe import extent_text
from .errors import ArenagenError
from .evaluate import EvaluationError, Scope, Value, evaluate
from .formula import Expr, names, spell
from .model import (
    Buffer,
    Bytes,
    Extent,
    Formula,
    Function,
    Layout,
    LayoutCall,
    Lever,
    Limit,
    Region,
    Regions,
    Schema,
    Shape,
    SingleExtent,
    TargetConstant,
    Use,
    Uses,
)
from .record import record
from .symbols import (
    Symbols,
    buffer_formulas,
    extent_formulas,
    layout_calls,
    layout_formulas,
)

MAX_SIZE = 2**63 - 1


class SizingError(ArenagenError):
    """Inputs that no size exists for."""


@record
class Inputs:
    """Everything that sizes depend on, by name.

    `config` is that of one of `tp` tensor-parallel ranks.
    """

    config: Mapping[str, Value]
    limits: Mapping[str, int]
    levers: Mapping[str, int | bool | str]
    target: Mapping[str, int]
    tp: int = 1


@record
class BufferSize:
    """One buffer under given inputs.

    nbytes: allocated bytes; trimmed: bytes that a trim removed.
    active: whether the gate is true and no trim applies.
    use: the use that set the size, where a buffer has several.
    shape: elements, leading dimension first, where the extent in use is one shape.
    """

    name: str
    nbytes: int
    trimmed: int
    dtype: str
    shape: tuple[int, ...] | None
    gate: str
    active: bool
    use: str
    extent: str


@record
class ArenaSize:
    """All buffers of an arena under given inputs."""

    inputs: Inputs
    buffers: tuple[BufferSize, ...]

    @property
    def total_bytes(self) -> int:
        """Bytes of all buffers together."""
        return sum(each.nbytes for each in self.buffers)

    @property
    def trimmed(self) -> int:
        """Bytes that trims removed."""
        return sum(each.trimmed for each in self.buffers)


def complete_inputs(
    schema: Schema,
    config: Mapping[str, Value],
    limits: Mapping[str, int],
    levers: Mapping[str, int | bool | str],
    target: Mapping[str, int],
) -> Inputs:
    """The inputs with every default filled in.

    Raises SizingError for an unknown name, a value out of bounds, or a limit that has
    neither a value nor a default.
    """
    variables = {each.variable: each.name for each in schema.levers}
    for what, given, known in (
        ("limit", limits, schema.limits),
        ("lever", levers, schema.levers),
        ("target constant", target, schema.target),
    ):
        for name in given:
            if name not in {each.name for each in known}:
                listed = ", ".join(each.name for each in known) or "none"
                hint = f"known: {listed}"
                if what == "lever" and name in variables:
                    hint = f"it is the variable of `{variables[name]}`"
                raise SizingError(f"no {what} is named `{name}`; {hint}")
    return Inputs(
        config=config,
        limits={each.name: _limit(each, limits) for each in schema.limits},
        levers={
            each.name: levers.get(each.name, each.default) for each in schema.levers
        },
        target={each.name: _constant(each, target) for each in schema.target},
    )


def _limit(limit: Limit, given: Mapping[str, int]) -> int:
    value = given.get(limit.name, limit.default)
    if value is None:
        raise SizingError(f"the limit `{limit.name}` has no value and no default")
    if value < limit.minimum:
        raise SizingError(f"{limit.name}={value}; at least {limit.minimum}")
    if limit.maximum is not None and value > limit.maximum:
        raise SizingError(f"{limit.name}={value}; at most {limit.maximum}")
    return value


def _constant(constant: TargetConstant, given: Mapping[str, int]) -> int:
    value = given.get(constant.name, constant.default)
    if value < constant.minimum:
        raise SizingError(f"{constant.name}={value}; at least {constant.minimum}")
    return value


def read_lever(lever: Lever, text: str) -> int | bool | str:
    """What a lever means when its variable holds `text`."""
    if lever.type == "bool":
        return text in lever.on_when if lever.on_when else text not in lever.off_when
    word = text.strip().lower()
    for name, value, _ in lever.words:
        if name == word:
            return value
    if lever.type == "int":
        digits = word.removeprefix("+")
        if lever.clamp is None or not (digits.isascii() and digits.isdecimal()):
            return lever.default
        low, high = lever.clamp
        # Beyond these digits every count is past any bound.
        significant = digits.lstrip("0")[:40]
        return max(low, min(int(significant or "0"), high))
    return lever.default if lever.words else text


def size_arena(schema: Schema, inputs: Inputs) -> ArenaSize:
    """The size of every buffer. Raises SizingError for one that cannot exist."""
    return ArenaSize(inputs, tuple(Sizing(schema, inputs).buffers()))


class Known:
    """What is known of a schema whatever its inputs, each part worked out once."""

    def __init__(self, schema: Schema, symbols: Symbols | None = None) -> None:
        self.schema = schema
        self.symbols = symbols or Symbols(schema)
        self._texts: dict[str, tuple[str, str]] = {}

    @cached_property
    def lets(self) -> tuple[str, ...]:
        """The lets that sizes read, also through one another, those read first."""
        exprs = [trim.when.expr for trim in self.schema.trims]
        for buffer in self.schema.buffers:
            exprs += (each.expr for each in buffer_formulas(buffer))
        lets = {each.name: each.value.expr for each in self.schema.lets}
        return tuple(lets_read(exprs, lets))

    def texts(self, buffer: Buffer) -> tuple[str, str]:
        """The gate and the extent of a buffer, as the schema spells them."""
        if buffer.name not in self._texts:
            gate = spell(buffer.when.expr) if buffer.when else ""
            self._texts[buffer.name] = gate, extent_text(buffer.extent)
        return self._texts[buffer.name]

    def folded(self, schema: Schema, lets: tuple[str, ...]) -> Known:
        """The same of this schema once it is folded, with the lets that are left.

        The texts stay as they were written.
        """
        folded = Known(schema)
        folded.lets = lets
        for buffer in self.schema.buffers:
            folded._texts[buffer.name] = self.texts(buffer)
        return folded


class Sizing(Scope):
    """The global scope: inputs, constants and lets, each evaluated once."""

    def __init__(
        self,
        schema: Schema,
        inputs: Inputs,
        known: Known | None = None,
        values: Mapping[str, Value] | None = None,
    ) -> None:
        """`values` holds lets that have been evaluated."""
        self.schema = schema
        self.known = known or Known(schema)
        self.symbols = self.known.symbols
        self.inputs = inputs
        self._values: dict[str, Value] = {
            **inputs.config,
            **inputs.limits,
            **inputs.levers,
            **inputs.target,
            **{each.name: each.value for each in schema.constants},
            **(values or {}),
        }

    def value(self, name: str) -> Value:
        name = self.symbols.canonical(name)
        if name not in self._values:
            self._values[name] = evaluate(self.symbols.lets[name].value.expr, self)
        return self._values[name]

    def call(self, name: str, arguments: Sequence[Value]) -> Value:
        if name in self.symbols.layouts:
            for value in arguments:
                if isinstance(value, int) and value < 0:
                    raise EvaluationError(f"`{name}` is asked for {value}")
            return self.layout_bytes(self.symbols.layouts[name], arguments)
        function = self.symbols.functions[name]
        return evaluate(function.value.expr, self.inside(function, arguments))

    def inside(self, owner: Function | Layout, arguments: Sequence[Value]) -> Local:
        """The scope of a function or a layout that is called with arguments."""
        given = zip((each.name for each in owner.parameters), arguments, strict=True)
        lets = owner.lets if isinstance(owner, Layout) else ()
        return Local(self, dict(given), {each.name: each.value.expr for each in lets})

    def layout_bytes(self, layout: Layout, arguments: Sequence[Value]) -> int:
        lets = {each.name: each.value.expr for each in layout.lets}
        scope = self.inside(layout, arguments)
        exprs = [each.expr for each in extent_formulas(layout.regions)]
        for name in lets_read(exprs, lets):
            scope.value(name)
        return self.extent_bytes(layout.regions, scope)

    def settle(self) -> None:
        """Compute every let that sizes read.

        The emitted code does so before it looks at any gate, so that a let without a
        value is an error even where no size needs it.
        """
        for name in self.known.lets:
            try:
                self.value(name)
            except EvaluationError as error:
                inputs = self._inputs_of([self.symbols.lets[name].value.expr])
                raise SizingError(f"{name}: {error}, with {inputs}") from None

    def buffers(self) -> Iterator[BufferSize]:
        self.settle()
        trimmed = set(self.trimmed())
        for buffer in self.schema.buffers:
            try:
                yield self.buffer(buffer, buffer.name in trimmed)
            except EvaluationError as error:
                inputs = self._inputs_of(size_formulas(buffer, self.symbols))
                raise SizingError(f"{buffer.name}: {error}, with {inputs}") from None

    def trimmed(self) -> Iterator[str]:
        """The buffers that a trim empties."""
        for trim in self.schema.trims:
            try:
                holds = self.holds(trim.when)
            except EvaluationError as error:
                inputs = self._inputs_of([trim.when.expr])
                raise SizingError(
                    f"the trim {trim.name}: {error}, with {inputs}"
                ) from None
            if holds:
                yield from (name for name, _ in trim.buffers)

    def buffer(self, buffer: Buffer, trimmed: bool) -> BufferSize:
        active = buffer.when is None or self.holds(buffer.when)
        use, shape, dtype = "", None, buffer.dtype.name if buffer.dtype else ""
        if not active:
            nbytes = self.closed_bytes(buffer)
        else:
            use, extent, nbytes = self.open_bytes(buffer)
            if isinstance(extent, Shape):
                shape = tuple(self.number(dim) for dim in extent.dims)
                dtype = extent.dtype.name
        if not 0 <= nbytes <= MAX_SIZE:
            why = "negative" if nbytes < 0 else "more than 2**63 - 1"
            raise EvaluationError(
                f"{nbytes} bytes is {why}: {extent_text(buffer.extent)}"
            )
        gate, text = self.known.texts(buffer)
        return BufferSize(
            name=buffer.name,
            nbytes=0 if trimmed else nbytes,
            trimmed=nbytes if trimmed else 0,
            dtype=dtype,
            shape=shape,
            gate=gate,
            active=active and not trimmed,
            use=use,
            extent=text,
        )

    def open_bytes(self, buffer: Buffer) -> tuple[str, SingleExtent | None, int]:
        """The winning use of a buffer whose gate is true, its extent, and the bytes."""
        use, extent, nbytes = self.winner(buffer.extent)
        if buffer.min_bytes is not None:
            nbytes = max(nbytes, _natural(buffer.min_bytes.expr, self))
        return use, extent, nbytes

    def closed_bytes(self, buffer: Buffer) -> int:
        """The bytes of a buffer whose gate is false."""
        return self.number(buffer.otherwise) if buffer.otherwise is not None else 0

    def holds(self, condition: Formula) -> bool:
        """Whether a gate, or the condition of a trim, is true."""
        return bool(evaluate(condition.expr, self))

    def winner(self, extent: Extent) -> tuple[str, SingleExtent | None, int]:
        """The use that sets the size, its extent and its bytes."""
        if not isinstance(extent, Uses):
            return "", extent, self.extent_bytes(extent, self)
        best: tuple[str, SingleExtent | None, int] = ("", None, 0)
        for use, nbytes in self.uses(extent):
            if nbytes is not None and (best[1] is None or nbytes > best[2]):
                best = (use.name, use.extent, nbytes)
        return best

    def uses(self, extent: Uses) -> Iterator[tuple[Use, int | None]]:
        """Each use and its bytes, None while its gate is false."""
        for use in extent.items:
            active = use.when is None or self.holds(use.when)
            yield use, self.extent_bytes(use.extent, self) if active else None

    def number(self, formula: Formula) -> int:
        return _number(formula.expr, self)

    def extent_bytes(self, extent: SingleExtent, scope: Scope) -> int:
        match extent:
            case Shape(dtype, dims):
                count = 1
                for dim in dims:
                    count *= _natural(dim.expr, scope)
                return dtype.nbytes(count)
            case Bytes(value):
                return _natural(value.expr, scope)
            case LayoutCall(name):
                return self.layout_bytes(
                    self.symbols.layouts[name], self.layout_arguments(extent, scope)
                )
            case Regions():
                end = 0
                for _, start, nbytes in self.regions(extent, scope):
                    end = start + nbytes
                return end

    def layout_arguments(self, call: LayoutCall, scope: Scope) -> list[Value]:
        """The arguments of a layout, in the order of its parameters."""
        given = dict(call.arguments)
        return [
            (_natural if each.type == "int" else evaluate)(given[each.name].expr, scope)
            for each in self.symbols.layouts[call.layout].parameters
        ]

    def regions(
        self, extent: Regions, scope: Scope, overlapping: bool = False
    ) -> Iterator[tuple[Region, int, int]]:
        """Each region that is there, its first byte and its bytes.

        Raises EvaluationError for one that begins before the end of another, unless
        they may be `overlapping`.
        """
        end = 0
        for region in extent.items:
            if region.when and not evaluate(region.when.expr, scope):
                continue
            if region.at is not None:
                start = _natural(region.at.expr, scope)
                if start < end and not overlapping:
                    raise EvaluationError(
                        f"the region `{region.name}` begins at byte {start}, "
                        f"inside what ends at byte {end}"
                    )
            else:
                start = -(-end // region.align) * region.align
            nbytes = self.extent_bytes(region.extent, scope)
            yield region, start, nbytes
            end = start + nbytes

    def region(
        self, buffer: Buffer, use: Use | None, steps: Sequence[str]
    ) -> tuple[int, int] | None:
        """First byte and bytes of a region, None where a gate on the way is false."""
        for gate in (buffer.when, use.when if use else None):
            if gate is not None and not evaluate(gate.expr, self):
                return None
        extent = use.extent if use else buffer.extent
        assert not isinstance(extent, Uses)
        scope: Scope = self
        start = 0
        for step in steps:
            if isinstance(extent, LayoutCall):
                layout = self.symbols.layouts[extent.layout]
                scope = self.inside(layout, self.layout_arguments(extent, scope))
                extent = layout.regions
            assert isinstance(extent, Regions)
            places = {
                region.name: (region, offset)
                for region, offset, _ in self.regions(extent, scope)
            }
            if step not in places:
                return None
            region, offset = places[step]
            extent, start = region.extent, start + offset
        return start, self.extent_bytes(extent, scope)

    def _inputs_of(self, formulas: list[Expr]) -> str:
        read = {
            name
            for kind, name in self.symbols.leaves(formulas)
            if kind in ("field", "limit", "lever", "target")
        }
        order = [*self.symbols.fields, *self.symbols.limits, *self.symbols.levers]
        order += self.symbols.target
        return ", ".join(f"{name}={self.value(name)}" for name in order if name in read)


class Local(Scope):
    """Parameters and lets of a function or layout, in front of the global scope."""

    def __init__(
        self, outer: Sizing, values: dict[str, Value], lets: Mapping[str, Expr]
    ) -> None:
        self._outer = outer
        self._values = values
        self._lets = lets

    def value(self, name: str) -> Value:
        if name in self._values:
            return self._values[name]
        if name in self._lets:
            self._values[name] = evaluate(self._lets[name], self)
            return self._values[name]
        return self._outer.value(name)

    def call(self, name: str, arguments: Sequence[Value]) -> Value:
        return self._outer.call(name, arguments)


def size_formulas(buffer: Buffer, symbols: Symbols) -> list[Expr]:
    """Every formula that a buffer's size depends on, those of its layouts too."""
    formulas = [each.expr for each in buffer_formulas(buffer)]
    for call in layout_calls(buffer.extent):
        formulas += layout_formulas(symbols.layouts[call.layout], symbols)
    return formulas


def lets_read(exprs: Iterable[Expr], lets: Mapping[str, Expr]) -> list[str]:
    """The lets that formulas read, also through one another, those read first."""
    order: dict[str, None] = {}
    for expr in exprs:
        for node in names(expr):
            if node.name in lets and node.name not in order:
                order |= dict.fromkeys(lets_read([lets[node.name]], lets))
                order[node.name] = None
    return list(order)


def _natural(expr: Expr, scope: Scope) -> int:
    value = _number(expr, scope)
    if value < 0:
        raise EvaluationError(f"`{spell(expr)}` is {value}, which is negative")
    return value


def _number(expr: Expr, scope: Scope) -> int:
    value = evaluate(expr, scope)
    assert isinstance(value, int)
    return value
