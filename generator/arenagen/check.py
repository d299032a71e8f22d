"""What a schema means: a tuple of small passes, each `(symbols) -> problems`.

Names first; then formulas; then what only a schema with sound names and formulas can
be asked. Errors stop generation, warnings do not.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from typing import Protocol

from . import naming
from .errors import Problem, Span, did_you_mean, sort_problems
from .formula import Bool, calls, names
from .formulas_check import all_formulas, check_types, find_cycles
from .model import (
    Buffer,
    Bytes,
    Formula,
    LayoutCall,
    Regions,
    Schema,
    Shape,
    SingleExtent,
    Uses,
)
from .monotone import trend
from .symbols import Symbols, layout_calls

Pass = Callable[[Symbols], Iterable[Problem]]


class Named(Protocol):
    """An entry of a schema."""

    @property
    def name(self) -> str:
        """Its name."""

    @property
    def span(self) -> Span:
        """Where the name stands."""


def check(schema: Schema) -> list[Problem]:
    """Every problem of the schema, errors and warnings, in order of place."""
    symbols = Symbols(schema)
    problems: list[Problem] = []
    for stage in (NAME_PASSES, (find_cycles,), (check_types,), MEANING_PASSES):
        for each in stage:
            problems += each(symbols)
        if any(problem.severity == "error" for problem in problems):
            break
    return sort_problems(problems)


def _declared(schema: Schema) -> Iterator[tuple[str, Span]]:
    """Everything that shares the one namespace of formulas and emitted locals."""
    for limit in schema.limits:
        yield limit.name, limit.span
        if limit.symbol:
            yield limit.symbol, limit.span
    sections: tuple[tuple[Named, ...], ...] = (
        schema.target,
        schema.config,
        schema.levers,
        schema.constants,
        schema.lets,
        schema.functions,
        schema.layouts,
        schema.buffers,
    )
    for section in sections:
        for entry in section:
            yield entry.name, entry.span


def check_identifiers(symbols: Symbols) -> Iterator[Problem]:
    """Names that cannot be identifiers of the emitted code."""
    schema = symbols.schema
    inner: list[tuple[str, Span]] = []
    for function in schema.functions:
        inner += [(each.name, each.span) for each in function.parameters]
    for layout in schema.layouts:
        inner += [(each.name, each.span) for each in layout.parameters]
        inner += [(each.name, each.span) for each in layout.lets]
    for name, span in (*_declared(schema), *inner):
        if why := naming.bad_identifier(name):
            yield _bad_name(name, why, span)
    for name, span in _parts(schema):
        if why := naming.bad_member(name):
            yield _bad_name(name, why, span)


def _bad_name(name: str, why: str, span: Span) -> Problem:
    return Problem(
        "AR050", f"the name `{name}` {why}", span, hint="choose another name"
    )


def _parts(schema: Schema) -> Iterator[tuple[str, Span]]:
    """Names of groups, trims, uses and regions."""
    yield from ((each.name, each.span) for each in schema.groups)
    yield from ((each.name, each.span) for each in schema.trims)
    for layout in schema.layouts:
        yield from ((each.name, each.span) for each in layout.regions.items)
    for buffer in schema.buffers:
        if isinstance(buffer.extent, Uses):
            for use in buffer.extent.items:
                yield use.name, use.span
                if isinstance(use.extent, Regions):
                    yield from ((e.name, e.span) for e in use.extent.items)
        elif isinstance(buffer.extent, Regions):
            yield from ((each.name, each.span) for each in buffer.extent.items)


def check_namespace(symbols: Symbols) -> Iterator[Problem]:
    """Two declarations under one name, or under names that differ in case alone."""
    seen: dict[str, tuple[str, Span]] = {}
    for name, span in _declared(symbols.schema):
        folded = name.casefold()
        if folded in seen:
            first, at = seen[folded]
            same = "" if first == name else f", beside `{first}`"
            yield Problem(
                "AR051",
                f"the name `{name}` is declared twice{same}",
                span,
                hint="every name of a schema is unique, whatever its section and case",
                related=(("first", at),),
            )
        else:
            seen[folded] = (name, span)
    for owner, parameters in _local_scopes(symbols.schema):
        local: dict[str, Span] = {}
        for name, span in parameters:
            if name in local:
                yield Problem(
                    "AR051",
                    f"the name `{name}` is declared twice in `{owner}`",
                    span,
                    related=(("first", local[name]),),
                )
            elif name.casefold() in seen:
                yield Problem(
                    "AR052",
                    f"`{name}` in `{owner}` would hide a name of the schema",
                    span,
                    related=(("hidden", seen[name.casefold()][1]),),
                )
            local[name] = span


def _local_scopes(schema: Schema) -> Iterator[tuple[str, list[tuple[str, Span]]]]:
    for function in schema.functions:
        yield function.name, [(each.name, each.span) for each in function.parameters]
    for layout in schema.layouts:
        local = [(each.name, each.span) for each in layout.parameters]
        yield layout.name, local + [(each.name, each.span) for each in layout.lets]


def check_members(symbols: Symbols) -> Iterator[Problem]:
    """Members of the emitted classes that would collide."""
    schema = symbols.schema
    seen: dict[str, tuple[str, Span]] = {}
    for name, what, span in _members(schema):
        if name in naming.ARENA_MEMBERS:
            yield Problem(
                "AR053", f"`{name}`, {what}, is a member of every arena class", span
            )
        elif name in seen:
            other, at = seen[name]
            yield Problem(
                "AR054",
                f"`{name}`, {what}, is also {other}",
                span,
                related=(("first", at),),
            )
        else:
            seen[name] = (what, span)
    for buffer in schema.buffers:
        if buffer.name in naming.SIZES_MEMBERS:
            yield Problem(
                "AR053",
                f"`{buffer.name}` is a member of every BufferSizes",
                buffer.span,
            )
    named: tuple[Named, ...] = (*schema.config, *schema.lets)
    for field in named:
        if field.name in naming.CONFIG_MEMBERS:
            yield Problem(
                "AR053", f"`{field.name}` is a member of every ModelConfig", field.span
            )


def _members(schema: Schema) -> Iterator[tuple[str, str, Span]]:
    for limit in schema.limits:
        if limit.name != "max_batch_tokens":
            yield limit.name, f"the limit `{limit.name}`", limit.span
    for group in schema.groups:
        what = f"a method of the group `{group.name}`"
        yield group.method, what, group.span
        if group.rows_method:
            yield group.rows_method, what, group.span
    for layout in schema.layouts:
        if layout.accessor is not None:
            what = f"the accessor of the layout `{layout.name}`"
            yield layout.name, what, layout.span
    for buffer in schema.buffers:
        yield buffer.name, f"the buffer `{buffer.name}`", buffer.span
        accessor = naming.bytes_accessor(buffer.name)
        yield accessor, f"the bytes of the buffer `{buffer.name}`", buffer.span
        if buffer.carve:
            method = naming.carve_method(buffer.name)
            yield method, f"the carve of the buffer `{buffer.name}`", buffer.span


def check_references(symbols: Symbols) -> Iterator[Problem]:
    """Groups, buffers and fields that are named and do not exist."""
    schema = symbols.schema
    groups = {group.name for group in schema.groups}
    for buffer in schema.buffers:
        for name, span in buffer.groups:
            if name not in groups:
                yield _unknown("group", name, span, groups)
    for trim in schema.trims:
        for name, span in trim.buffers:
            if name not in symbols.buffers:
                yield _unknown("buffer", name, span, symbols.buffers)
    for name in schema.arena.log_buffers:
        if name not in symbols.buffers:
            yield _unknown("buffer", name, schema.arena.span, symbols.buffers)
    for name in schema.arena.log_fields:
        if name not in symbols.fields:
            yield _unknown("field", name, schema.arena.span, symbols.fields)


def _unknown(what: str, name: str, span: Span, known: Iterable[str]) -> Problem:
    return Problem(
        "AR060",
        f"no {what} is named `{name}`",
        span,
        hint=did_you_mean(name, sorted(known)),
    )


def check_limits(symbols: Symbols) -> Iterator[Problem]:
    """Exactly one limit bounds the tokens of a pass."""
    schema = symbols.schema
    tokens = [limit for limit in schema.limits if limit.tokens]
    if not tokens:
        yield Problem(
            "AR063",
            "no limit has `tokens: true`",
            schema.limits[0].span,
            hint="mark the limit that bounds the tokens of a pass",
        )
    for limit in tokens[1:]:
        yield Problem(
            "AR063",
            "two limits have `tokens: true`",
            limit.span,
            related=(("first", tokens[0].span),),
        )
    for limit in schema.limits:
        if limit.maximum is not None and limit.maximum < limit.minimum:
            yield Problem(
                "AR064",
                f"the maximum of `{limit.name}` is less than its minimum",
                limit.span,
            )
        elif limit.default is not None and not (
            limit.minimum <= limit.default <= (limit.maximum or limit.default)
        ):
            yield Problem(
                "AR065",
                f"the default of `{limit.name}` is out of its bounds",
                limit.span,
            )


def check_token_major(symbols: Symbols) -> Iterator[Problem]:
    """Token-major buffers: the token count leads, and the size grows with it."""
    limit = symbols.schema.token_limit.name
    for buffer in symbols.schema.buffers:
        if buffer.token_major:
            yield from _token_major(buffer, limit, symbols)


def _token_major(buffer: Buffer, limit: str, symbols: Symbols) -> Iterator[Problem]:
    gates: list[Formula | None] = [buffer.when]
    extents: list[SingleExtent] = []
    if isinstance(buffer.extent, Uses):
        gates += [use.when for use in buffer.extent.items]
        extents += [use.extent for use in buffer.extent.items]
    else:
        extents.append(buffer.extent)
    for gate in gates:
        if gate is not None and trend(gate.expr, limit, symbols) != "fixed":
            yield Problem(
                "AR070",
                f"`{buffer.name}` is token-major, and its gate depends on `{limit}`",
                gate.scalar.span,
            )
    for extent in extents:
        yield from _token_leads(buffer, extent, limit, symbols)


def _token_leads(
    buffer: Buffer, extent: SingleExtent, limit: str, symbols: Symbols
) -> Iterator[Problem]:
    match extent:
        case Shape(_, dims):
            lead, *rest = dims
            move = trend(lead.expr, limit, symbols)
            if move == "fixed":
                yield _not_token_major(
                    buffer, lead, f"its leading dimension does not depend on `{limit}`"
                )
            elif move == "falling":
                yield _not_token_major(
                    buffer, lead, f"its leading dimension shrinks as `{limit}` grows"
                )
            elif move == "unknown":
                yield _not_token_major(
                    buffer,
                    lead,
                    f"its leading dimension cannot be shown to grow with `{limit}`",
                )
            for dim in rest:
                if trend(dim.expr, limit, symbols) != "fixed":
                    yield _not_token_major(
                        buffer, dim, f"`{limit}` sits behind the leading dimension"
                    )
        case Regions(items):
            for region in items:
                fixed = [each for each in (region.at, region.when) if each]
                for formula in fixed:
                    if trend(formula.expr, limit, symbols) == "unknown":
                        yield _not_token_major(
                            buffer, formula, "a region's place cannot be shown to grow"
                        )
                yield from _token_leads(buffer, region.extent, limit, symbols)
        case Bytes(value):
            yield _not_token_major(
                buffer, value, "bytes have no leading dimension; give a shape"
            )
        case LayoutCall(name):
            yield Problem(
                "AR071",
                f"`{buffer.name}` is not token-major: the layout `{name}` has no "
                "leading dimension",
                extent.span,
            )


def _not_token_major(buffer: Buffer, formula: Formula, why: str) -> Problem:
    return Problem(
        "AR071",
        f"`{buffer.name}` is not token-major: {why}",
        formula.scalar.span,
        hint="put the token count first, or remove `token_major`",
    )


def check_buffers(symbols: Symbols) -> Iterator[Problem]:
    """Entries whose keys do not go together."""
    for buffer in symbols.schema.buffers:
        if buffer.otherwise is not None and buffer.when is None:
            yield Problem(
                "AR072",
                f"`{buffer.name}` has a placeholder and no gate",
                buffer.otherwise.scalar.span,
                hint="remove `otherwise`, or add `when`",
            )
        if buffer.when is not None and isinstance(buffer.when.expr, Bool):
            yield Problem(
                "AR073",
                f"the gate of `{buffer.name}` is always {buffer.when.expr.value}",
                buffer.when.scalar.span,
                hint="remove the gate, or the buffer",
            )
        if buffer.align & (buffer.align - 1):
            yield Problem(
                "AR074",
                f"the alignment of `{buffer.name}` is {buffer.align}, which is no "
                "power of two",
                buffer.span,
            )
        if buffer.init not in (None, "zeros") and buffer.dtype is None:
            yield Problem(
                "AR075",
                f"`{buffer.name}` has an initial fill and no dtype",
                buffer.span,
            )
        for (name, first), (other, second) in _repeats(buffer.groups):
            yield Problem(
                "AR076",
                f"`{buffer.name}` lists the group `{name}` twice",
                second,
                related=((f"first {other}", first),),
            )


def _repeats(
    entries: tuple[tuple[str, Span], ...],
) -> Iterator[tuple[tuple[str, Span], tuple[str, Span]]]:
    seen: dict[str, Span] = {}
    for name, span in entries:
        if name in seen:
            yield (name, seen[name]), (name, span)
        seen[name] = span


def check_unused(symbols: Symbols) -> Iterator[Problem]:
    """Warnings: what is declared and nobody reads."""
    schema = symbols.schema
    read = Counter[str]()
    for formula in all_formulas(symbols):
        read.update(symbols.canonical(node.name) for node in names(formula.expr))
        read.update(call.name for call in calls(formula.expr))
    for buffer in schema.buffers:
        read.update(call.layout for call in layout_calls(buffer.extent))
    for layout in schema.layouts:
        read.update(call.layout for call in layout_calls(layout.regions))
        if layout.accessor is not None:
            read[layout.name] += 1
    read.update(schema.arena.log_fields)
    for lever in schema.levers:
        read.update(each for each in (lever.default_name, lever.arms) if each)
        read.update(constant for _, _, constant in lever.words if constant)
        if lever.arms:
            read[lever.name] += 1
    groups = {name for buffer in schema.buffers for name, _ in buffer.groups}
    sections: tuple[tuple[str, tuple[Named, ...]], ...] = (
        ("lever", schema.levers),
        ("config field", schema.config),
        ("let", schema.lets),
        ("layout", schema.layouts),
    )
    for what, section in sections:
        for entry in section:
            if not read[entry.name]:
                yield _unused(f"the {what} `{entry.name}` is read nowhere", entry.span)
    for group in schema.groups:
        if group.name not in groups:
            yield _unused(f"the group `{group.name}` holds no buffer", group.span)


def _unused(message: str, span: Span) -> Problem:
    return Problem("AR080", message, span, hint="remove it", severity="warning")


NAME_PASSES: tuple[Pass, ...] = (
    check_identifiers,
    check_namespace,
    check_members,
    check_references,
    check_limits,
)
MEANING_PASSES: tuple[Pass, ...] = (
    check_token_major,
    check_buffers,
    check_unused,
)
