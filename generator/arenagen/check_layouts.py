"""Where regions lie: that none overlap, that all are aligned, and that passes fit.

Passes `(symbols) -> problems`, which `check` runs once names and formulas are sound.
Sizes are shown from their formulas where that is possible, and tried where it is not.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from .divisors import GLOBAL, Divisors
from .errors import Problem, Span
from .formula import Expr
from .model import (
    Buffer,
    Bytes,
    Formula,
    Layout,
    LayoutCall,
    Parameter,
    Region,
    Regions,
    Schema,
    Shape,
    SingleExtent,
    Use,
)
from .monotone import Trends
from .record import record, replace
from .symbols import Symbols, buffer_extents

if TYPE_CHECKING:
    from .collisions import Collision

# Cases that are tried in all, and for each set of regions at least.
_MAX_CASES = 20_000
_MIN_CASES = 100
GROWS = ("fixed", "rising")


@record
class _Laid:
    """Regions that are laid out together, what they belong to, and its gates."""

    owner: str
    regions: Regions
    layout: Layout | None
    gates: tuple[Expr, ...] = ()


def _laid(schema: Schema) -> Iterator[_Laid]:
    for layout in schema.layouts:
        yield _Laid(layout.name, layout.regions, layout)
    for buffer in schema.buffers:
        for use, extent in buffer_extents(buffer):
            if isinstance(extent, Regions):
                owner = f"{buffer.name}.{use.name}" if use else buffer.name
                gates = (buffer.when, use.when if use else None)
                held = tuple(gate.expr for gate in gates if gate)
                yield _Laid(owner, extent, None, held)


def check_overlaps(symbols: Symbols) -> Iterator[Problem]:
    """Regions of one layout that claim the same bytes."""
    divisors = Divisors(symbols)
    unproven = []
    for laid in _laid(symbols.schema):
        if all(region.at is None for region in laid.regions.items):
            continue
        env = divisors.free(laid.layout) if laid.layout else GLOBAL
        if not all(place.behind for place in divisors.places(laid.regions, env)):
            unproven.append(laid)
    if not unproven:
        return
    # Takes a while to load, and the places of most regions are proven.
    from .collisions import find_collisions

    for laid in unproven:
        most = max(_MIN_CASES, _MAX_CASES // len(unproven))
        found = find_collisions(symbols, laid.regions, laid.layout, most)
        yield from (_overlap(laid.owner, each) for each in found)


def _overlap(owner: str, collision: Collision) -> Problem:
    first, second = collision.first, collision.second
    case = ", ".join(f"{name}={value}" for name, value in collision.case.items())
    at = f" at {case}" if case else ""
    if collision.low < collision.high:
        message = (
            f"`{first.name}` and `{second.name}` of `{owner}` both claim the bytes "
            f"[{collision.low}, {collision.high}){at}"
        )
    else:
        message = (
            f"`{second.name}` of `{owner}` begins at byte {collision.low}, before "
            f"`{first.name}`{at}"
        )
    return Problem(
        "AR081",
        message,
        second.at.scalar.span if second.at else second.span,
        hint=f"let `{second.name}` begin where the region before it ends: remove `at`, "
        "or write it as a formula of the sizes before it",
        related=(("the other", first.span),),
    )


def check_alignment(symbols: Symbols) -> Iterator[Problem]:
    """Regions that begin where their elements, or their own `align`, do not."""
    divisors = Divisors(symbols)
    for laid in _laid(symbols.schema):
        yield from _misplaced(symbols, divisors, laid)
    for buffer in symbols.schema.buffers:
        beyond = [
            region
            for _, extent in buffer_extents(buffer)
            for region in _regions(symbols, extent)
            if region.align > buffer.align
        ]
        for region in dict.fromkeys(beyond):
            yield Problem(
                "AR082",
                f"`{region.name}` is aligned to {region.align} bytes in "
                f"`{buffer.name}`, which is aligned to {buffer.align}",
                region.span,
                hint=f"align `{buffer.name}` to {region.align}, or the region less",
                related=(("buffer", buffer.span),),
            )
        needed = max(
            [_alignment(symbols, extent) for _, extent in buffer_extents(buffer)]
        )
        if needed > buffer.align and not beyond:
            yield Problem(
                "AR083",
                f"`{buffer.name}` is aligned to {buffer.align} bytes, and its elements "
                f"need {needed}",
                buffer.places["align"],
                hint=f"write `align: {needed}`",
                severity="warning",
            )


def _regions(symbols: Symbols, extent: SingleExtent) -> Iterator[Region]:
    """Every region of an extent, those of nested layouts too."""
    match extent:
        case LayoutCall(name):
            yield from _regions(symbols, symbols.layouts[name].regions)
        case Regions(items):
            for region in items:
                yield region
                yield from _regions(symbols, region.extent)


def _misplaced(symbols: Symbols, divisors: Divisors, laid: _Laid) -> Iterator[Problem]:
    env = divisors.free(laid.layout) if laid.layout else GLOBAL

    def needs(region: Region) -> int:
        return _alignment(symbols, region.extent)

    for place in divisors.places(laid.regions, env, laid.gates, needs):
        if not place.askew:
            continue
        region, needed = place.region, _needed(symbols, place.region.extent)
        span, hint = region.span, f"add `align: {needed.nbytes}`"
        if region.at is not None:
            span = region.at.scalar.span
            hint = f"let `at` be a multiple of {needed.nbytes}"
        yield Problem(
            "AR083",
            f"`{region.name}` of `{laid.owner}` cannot be shown to begin at a multiple "
            f"of {needed.nbytes} bytes, which {needed.why}",
            span,
            hint=hint,
            severity="warning",
        )


def _alignment(symbols: Symbols, extent: SingleExtent) -> int:
    """The alignment in bytes that an extent needs for what lies in it."""
    match extent:
        case Shape(dtype):
            return max(1, dtype.bits // 8)
        case LayoutCall(name):
            return _alignment(symbols, symbols.layouts[name].regions)
        case Regions(items):
            return max(max(e.align, _alignment(symbols, e.extent)) for e in items)
    return 1


@record
class _Needed:
    """An alignment in bytes, and what asks for it."""

    nbytes: int
    why: str


def _needed(symbols: Symbols, extent: SingleExtent) -> _Needed:
    """As `_alignment`, and what asks for it."""
    match extent:
        case Shape(dtype):
            return _Needed(
                max(1, dtype.bits // 8), f"its elements of {dtype.name} need"
            )
        case LayoutCall(name):
            return _needed(symbols, symbols.layouts[name].regions)
        case Regions(items):
            parts = [_needed_by(symbols, region) for region in items]
            return max(parts, key=lambda each: each.nbytes)
    return _Needed(1, "")


def _needed_by(symbols: Symbols, region: Region) -> _Needed:
    inner = _needed(symbols, region.extent)
    if region.align > inner.nbytes:
        return _Needed(region.align, f"the `align` of its `{region.name}` needs")
    if isinstance(region.extent, Shape):
        return replace(
            inner, why=f"its `{region.name}` of {region.extent.dtype.name} needs"
        )
    return inner


def uncounted_arguments(
    buffer: Buffer, symbols: Symbols
) -> Iterator[tuple[Parameter, Formula]]:
    """Arguments of a buffer's layout that depend on the tokens and are no integers."""
    if isinstance(buffer.extent, LayoutCall):
        tokens = ("limit", symbols.schema.token_limit.name)
        given = dict(buffer.extent.arguments)
        for parameter in symbols.layouts[buffer.extent.layout].parameters:
            formula = given[parameter.name]
            if parameter.type != "int" and tokens in symbols.leaves([formula.expr]):
                yield parameter, formula


def check_passes(symbols: Symbols) -> Iterator[Problem]:
    """Uses of which a smaller pass may need more bytes than the buffer has."""
    limit = symbols.schema.token_limit.name
    trends = Trends(limit, symbols)
    for buffer in symbols.schema.buffers:
        if buffer.token_major or isinstance(buffer.extent, Shape | Bytes):
            continue
        for use, extent in buffer_extents(buffer):
            span = use.span if use else buffer.span
            if use is None and any(uncounted_arguments(buffer, symbols)):
                continue
            gate = use.when if use else None
            if gate is not None and trends.of(gate.expr) != "fixed":
                span, moves = gate.scalar.span, "its gate depends on"
            elif trends.of_extent(extent) not in GROWS:
                moves = "it cannot be shown to grow with"
            else:
                continue
            yield _pass(buffer, use, moves, limit, span)


def _pass(
    buffer: Buffer, use: Use | None, moves: str, limit: str, span: Span
) -> Problem:
    name = f"{buffer.name}.{use.name}" if use else buffer.name
    return Problem(
        "AR084",
        f"a pass of fewer tokens may need more of `{name}` than it has: {moves} "
        f"`{limit}`",
        span,
        hint="size it by a formula that never shrinks as the tokens grow",
        severity="warning",
    )
