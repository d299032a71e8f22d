"""Sizes that are negative at the smallest limits, whatever the model.

Passes `(bounds) -> problems`, for a schema whose names and types are sound. What
cannot be for any limits at all is an error, and told by `check_bounds`.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from .bounds import Bounds, Fact, Facts, Range, Undefined
from .check_bounds import formula_span, sizes_of
from .errors import Problem
from .model import Extent, Formula, Regions, Uses
from .symbols import Symbols


class _Smallest(Bounds):
    """What formulas are where every limit is as small as it may be."""

    def _name(self, name: str) -> Fact:
        limit = self.symbols.limits.get(name)
        if limit is None:
            return super()._name(name)
        return Range(limit.minimum, limit.minimum)


def check_smallest(bounds: Bounds) -> Iterator[Problem]:
    """Sizes that the smallest limits make negative, where their gates are true."""
    symbols = bounds.symbols
    smallest = _Smallest(symbols)
    for buffer in symbols.schema.buffers:
        gates = _and((), buffer.when)
        for what, formula, needed in _gated(f"`{buffer.name}`", buffer.extent, gates):
            try:
                most = bounds.fact(formula.expr, {})
                # What is never negative is none where less is possible either.
                if not isinstance(most, Range) or most.low >= 0 or _negative(most):
                    continue
                known = _assumed(smallest, needed)
                if known is None:
                    continue
                least = smallest.fact(formula.expr, known)
            except Undefined:
                continue
            if _negative(least):
                yield _problem(symbols, what, formula, least)


def _negative(fact: Fact) -> TypeGuard[Range]:
    """Whether a fact is that of a negative integer."""
    return isinstance(fact, Range) and fact.high < 0


def _gated(
    what: str, extent: Extent, gates: tuple[Formula, ...]
) -> Iterator[tuple[str, Formula, tuple[Formula, ...]]]:
    """Every size in an extent, and the gates that it is behind."""
    match extent:
        case Uses(items):
            for use in items:
                inside = _and(gates, use.when)
                yield from _gated(f"the use `{use.name}`", use.extent, inside)
        case Regions(items):
            for region in items:
                inside = _and(gates, region.when)
                yield from _gated(f"the region `{region.name}`", region.extent, inside)
        case _:
            for part, formula, _ in sizes_of(what, extent, {}):
                yield part, formula, gates


def _and(gates: tuple[Formula, ...], when: Formula | None) -> tuple[Formula, ...]:
    return gates if when is None else (*gates, when)


def _assumed(bounds: Bounds, gates: tuple[Formula, ...]) -> Facts | None:
    """What is known behind the gates; None when one of them is false."""
    known: Facts | None = {}
    for gate in gates:
        if known is not None:
            known = bounds.assume(gate.expr, True, known)
    return known


def _problem(symbols: Symbols, what: str, formula: Formula, least: Range) -> Problem:
    read = symbols.leaves([formula.expr])
    limits = [each for each in symbols.schema.limits if ("limit", each.name) in read]
    where = " and ".join(f"`{each.name}` is {each.minimum}" for each in limits)
    value = f"at most {least.high}" if least.low < least.high else str(least.high)
    return Problem(
        "AR140",
        f"{what} is {value} where {where}, and no size is negative",
        formula_span(formula),
        "raise the `minimum` of the limit, or give the formula a floor: `max(..., 0)`",
        "warning",
    )
