"""What a schema means: a tuple of small passes, each `(symbols) -> problems`.

Names first; then formulas; then what only a schema with sound names and formulas can
be asked. Errors stop generation, warnings do not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from .bounds import Bounds
from .check_bounds import (
    check_gates,
    check_literal_gates,
    check_sizes,
    check_trims,
    check_undefined,
)
from .check_layouts import (
    check_alignment,
    check_overlaps,
    check_passes,
    uncounted_arguments,
)
from .check_names import (
    check_identifiers,
    check_made_names,
    check_members,
    check_namespace,
    check_private,
    check_references,
)
from .check_smallest import check_smallest
from .check_waste import check_docs, check_literals, check_unused
from .errors import Problem, Span, sort_problems
from .fills import FillError, fill_pattern
from .formula import TYPE_WORDS, Int, Unary
from .formulas_check import check_types, find_cycles
from .model import (
    Buffer,
    Bytes,
    Formula,
    LayoutCall,
    Lever,
    Regions,
    Schema,
    Shape,
    SingleExtent,
    Uses,
)
from .monotone import Trends
from .symbols import Symbols

Pass = Callable[[Symbols], Iterable[Problem]]
BoundsPass = Callable[[Bounds], Iterable[Problem]]
GROWS = ("fixed", "rising")
_NEVER_SHRINKS = (
    "size it by a formula that never shrinks as the tokens grow, or remove "
    "`token_major`"
)
# Names that cannot be what they are, whatever the reason.
NAME_CODES = ("AR050", "AR051", "AR052", "AR053", "AR054", "AR055")


def check(schema: Schema) -> list[Problem]:
    """Every problem of the schema, errors and warnings, in order of place."""
    symbols = Symbols(schema)
    problems = _unsound(symbols)
    if not problems:
        problems = [problem for each in MEANING_PASSES for problem in each(symbols)]
        problems += _bounded(symbols)
    return sort_problems(problems)


def check_soundness(schema: Schema) -> list[Problem]:
    """The problems of names and formulas alone, of a schema that may lack entries."""
    return _unsound(Symbols(schema))


def _unsound(symbols: Symbols) -> list[Problem]:
    problems = _one_a_name(problem for each in NAME_PASSES for problem in each(symbols))
    # Where a name stands for two things, formulas cannot be judged.
    if not any(problem.code in ("AR051", "AR052") for problem in problems):
        problems += find_cycles(symbols) or check_types(symbols)
    return problems


def _bounded(symbols: Symbols) -> Iterator[Problem]:
    bounds = Bounds(symbols)
    for each in BOUNDS_PASSES:
        yield from each(bounds)
        if bounds.met_undefined:
            bounds = Bounds(symbols)


def _one_a_name(problems: Iterable[Problem]) -> list[Problem]:
    """The problems without all but the first of one name, which another name cures."""
    found: list[Problem] = []
    faulty: set[Span] = set()
    for problem in problems:
        if problem.code in NAME_CODES:
            if problem.span in faulty:
                continue
            faulty.add(problem.span)
        found.append(problem)
    return found


def check_limits(symbols: Symbols) -> Iterator[Problem]:
    """Exactly one limit bounds the tokens of a pass; defaults keep their bounds."""
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
    for limit in tokens:
        # Zeroing and views size the buffers for a pass of any tokens, from 1 on.
        if limit.minimum > 1:
            yield Problem(
                "AR057",
                f"the minimum of `{limit.name}` is {limit.minimum}, and a pass may "
                "hold a single token",
                limit.places["minimum"],
                hint="give 0 or 1",
            )
    for limit in schema.limits:
        if limit.maximum is not None and limit.maximum < limit.minimum:
            yield Problem(
                "AR064",
                f"the maximum of `{limit.name}` is {limit.maximum}, its minimum "
                f"{limit.minimum}",
                limit.places["maximum"],
            )
        elif limit.default is not None:
            low, high = limit.minimum, limit.maximum
            if limit.default < low or (high is not None and limit.default > high):
                bounds = f"at least {low}" if high is None else f"from {low} to {high}"
                yield Problem(
                    "AR065",
                    f"the default of `{limit.name}` is {limit.default}, and its values "
                    f"are {bounds}",
                    limit.places["default"],
                )
    for constant in schema.target:
        if constant.default < constant.minimum:
            yield Problem(
                "AR065",
                f"the default of `{constant.name}` is {constant.default}, and its "
                f"values are at least {constant.minimum}",
                constant.places["default"],
                hint=(
                    ""
                    if "minimum" in constant.places
                    else "the minimum is 1 unless said"
                ),
            )


def check_fields(symbols: Symbols) -> Iterator[Problem]:
    """Only counts are shared among ranks."""
    for field in symbols.schema.config:
        if field.shard and field.type != "int":
            yield Problem(
                "AR113",
                f"`{field.name}` is {TYPE_WORDS[field.type]}; ranks share integers",
                field.places["shard"],
                hint="remove `shard`",
            )


def check_levers(symbols: Symbols) -> Iterator[Problem]:
    """Levers that read one variable, or arm one probe, twice."""
    variables: dict[str, Lever] = {}
    armed: dict[str, Lever] = {}
    for lever in symbols.schema.levers:
        first = variables.setdefault(lever.variable, lever)
        if first is not lever:
            yield Problem(
                "AR066",
                f"`{lever.name}` and `{first.name}` read the variable "
                f"`{lever.variable}`",
                lever.places["variable"],
                related=(("first", first.places["variable"]),),
            )
        if lever.arms is None:
            continue
        if lever.type != "bool":
            yield Problem(
                "AR067",
                f"`{lever.name}` arms the {lever.arms} probe and is no bool",
                lever.places["arms"],
                hint="a probe is armed or not: make the lever a bool",
            )
        first = armed.setdefault(lever.arms, lever)
        if first is not lever:
            yield Problem(
                "AR068",
                f"`{lever.name}` and `{first.name}` arm the {lever.arms} probe",
                lever.places["arms"],
                hint="keep one",
                related=(("first", first.places["arms"]),),
            )


def check_defaults(symbols: Symbols) -> Iterator[Problem]:
    """Defaults of config fields that no config may hold."""
    for field in symbols.schema.config:
        match field.default:
            case Formula(Unary("-", Int(value)), scalar) if value > 0:
                yield Problem(
                    "AR069",
                    f"the default of `{field.name}` is -{value}",
                    scalar.span,
                    hint="a config field is never negative",
                )


def check_token_major(symbols: Symbols) -> Iterator[Problem]:
    """Token-major buffers: the token count leads, and the size grows with it."""
    trends = Trends(symbols.schema.token_limit.name, symbols)
    for buffer in symbols.schema.buffers:
        if buffer.token_major:
            yield from _token_major(buffer, trends)
    yield from _token_trims(trends)


def _token_major(buffer: Buffer, trends: Trends) -> Iterator[Problem]:
    limit = trends.limit
    gates: list[Formula | None] = [buffer.when]
    extents: list[SingleExtent] = []
    if isinstance(buffer.extent, Uses):
        gates += [use.when for use in buffer.extent.items]
        extents += [use.extent for use in buffer.extent.items]
    else:
        extents.append(buffer.extent)
    for gate in gates:
        if gate is not None and trends.of(gate.expr) != "fixed":
            yield Problem(
                "AR070",
                f"`{buffer.name}` is token-major, and its gate depends on `{limit}`",
                gate.scalar.span,
            )
    for extent in extents:
        yield from _token_leads(buffer, extent, trends)
    for key, floor in (
        ("min_bytes", buffer.min_bytes),
        ("otherwise", buffer.otherwise),
    ):
        if floor is not None and trends.of(floor.expr) not in GROWS:
            why = f"its `{key}` cannot be shown to grow with `{limit}`"
            yield _not_token_major(buffer, floor, why, hint="remove `token_major`")


def _token_trims(trends: Trends) -> Iterator[Problem]:
    buffers, limit = trends.symbols.buffers, trends.limit
    for trim in trends.symbols.schema.trims:
        if trends.of(trim.when.expr) == "fixed":
            continue
        for name, node in trim.buffers:
            if buffers[name].token_major:
                yield Problem(
                    "AR070",
                    f"`{name}` is token-major, and the gate of the trim "
                    f"`{trim.name}` depends on `{limit}`",
                    node.span,
                    related=(("gate", trim.when.scalar.span),),
                )


def _token_leads(
    buffer: Buffer, extent: SingleExtent, trends: Trends
) -> Iterator[Problem]:
    limit = trends.limit
    match extent:
        case Shape(_, dims):
            lead, *rest = dims
            move = trends.of(lead.expr)
            behind = [dim for dim in rest if trends.of(dim.expr) != "fixed"]
            if move == "fixed" and not behind:
                yield _not_token_major(
                    buffer, lead, f"its leading dimension does not depend on `{limit}`"
                )
            elif move not in GROWS:
                why = _shrinks(lead, trends)
                yield _not_token_major(
                    buffer, lead, f"its leading dimension {why}", _NEVER_SHRINKS
                )
            for dim in behind:
                yield _not_token_major(
                    buffer, dim, f"`{limit}` sits behind the leading dimension"
                )
        case Regions(items):
            for region in items:
                name = f"the region `{region.name}`"
                at, when = region.at, region.when
                if at is not None and trends.of(at.expr) not in GROWS:
                    why = f"the place of {name} cannot be shown to grow with `{limit}`"
                    yield _not_token_major(buffer, at, why, "remove `token_major`")
                if when is not None and trends.of(when.expr) != "fixed":
                    why = f"the gate of {name} depends on `{limit}`"
                    yield _not_token_major(buffer, when, why, "remove `token_major`")
                yield from _token_leads(buffer, region.extent, trends)
        case Bytes(value):
            yield _not_token_major(
                buffer,
                value,
                "bytes have no leading dimension",
                "give a dtype and a shape, or remove `token_major`",
            )
        case LayoutCall(name):
            yield Problem(
                "AR071",
                f"`{buffer.name}` is not token-major: the layout `{name}` has no "
                "leading dimension",
                extent.span,
                hint="give a dtype and a shape, or remove `token_major`",
            )


def _shrinks(lead: Formula, trends: Trends) -> str:
    """How a leading dimension moves that does not grow with the tokens."""
    # Takes a while to load, and most schemas have no such fault.
    from .shrinking import find_shrink

    limit = trends.symbols.limits[trends.limit]
    found = find_shrink(trends.symbols, lead.expr, limit)
    if found is None:
        return f"cannot be shown to grow with `{limit.name}`"
    case = ", ".join(f"{name}={value}" for name, value in found.case.items())
    return (
        f"shrinks from {found.before} to {found.after} as `{limit.name}` grows from "
        f"{found.low} to {found.high}{f', at {case}' if case else ''}"
    )


def _not_token_major(
    buffer: Buffer,
    formula: Formula,
    why: str,
    hint: str = "put the token count first, or remove `token_major`",
) -> Problem:
    message = f"`{buffer.name}` is not token-major: {why}"
    return Problem("AR071", message, formula.scalar.span, hint=hint)


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
        if buffer.align & (buffer.align - 1):
            yield Problem(
                "AR074",
                f"the alignment of `{buffer.name}` is {buffer.align}, which is no "
                "power of two",
                buffer.places["align"],
            )
        if buffer.init not in (None, "zeros"):
            yield from _fill(buffer)


def _fill(buffer: Buffer) -> Iterator[Problem]:
    if buffer.dtype is None:
        yield Problem(
            "AR075",
            f"`{buffer.name}` has an initial fill and no dtype",
            buffer.places["init"],
            hint="add the dtype that the fill is written in",
        )
        return
    try:
        fill_pattern(buffer)
    except FillError as error:
        yield Problem(
            "AR077", f"`{buffer.name}` cannot be filled: {error}", buffer.places["init"]
        )


def check_layout_arguments(symbols: Symbols) -> Iterator[Problem]:
    """Arguments that callers give for a pass, which are counts."""
    limit = symbols.schema.token_limit.name
    for buffer in symbols.schema.buffers:
        for parameter, formula in uncounted_arguments(buffer, symbols):
            yield Problem(
                "AR079",
                f"the argument `{parameter.name}` of `{buffer.name}` depends on "
                f"`{limit}` and is no integer",
                formula.scalar.span,
                hint="give the layout the count itself",
            )


def check_groups(symbols: Symbols) -> Iterator[Problem]:
    """Groups with a method for a pass, of which a pass would clear everything."""
    schema = symbols.schema
    leading = {
        name
        for buffer in schema.buffers
        if buffer.token_major
        for name, _ in buffer.groups
    }
    # The place and the bytes of a region are those of the pass.
    leading |= {each.group for buffer in schema.buffers for each in buffer.zero_regions}
    for group in schema.groups:
        if group.rows_method is not None and group.name not in leading:
            yield Problem(
                "AR078",
                f"the group `{group.name}` has a `rows_method`, and none of its "
                "buffers is token-major",
                group.places["rows_method"],
                hint="remove it, or mark the buffers `token_major`",
            )


NAME_PASSES: tuple[Pass, ...] = (
    check_identifiers,
    check_namespace,
    check_members,
    check_private,
    check_made_names,
    check_references,
    check_limits,
    check_fields,
    check_levers,
    check_defaults,
    check_buffers,
    check_literal_gates,
    check_groups,
)
MEANING_PASSES: tuple[Pass, ...] = (
    check_token_major,
    check_layout_arguments,
    check_overlaps,
    check_alignment,
    check_passes,
    check_unused,
    check_literals,
    check_docs,
)
BOUNDS_PASSES: tuple[BoundsPass, ...] = (
    check_undefined,
    check_sizes,
    check_smallest,
    check_gates,
    check_trims,
)
