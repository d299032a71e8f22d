"""Regions that claim the same bytes, found by trying values.

For regions whose order their formulas do not show. Tries the limits, levers and layout
parameters that they read, round numbers first, and of config fields small values, those
that gates compare with, and counts that reach behind a place; what it finds is a case
that happens. Finding nothing proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations, islice, product
from typing import TypeAlias

from .cases import (
    BESIDE_ROUND,
    MOST,
    ROUND,
    Case,
    integer,
    limit_values,
    numbers_beside,
    scope_of,
    values_of_type,
)
from .evaluate import EvaluationError, Value, evaluate
from .formula import Expr
from .model import Layout, Lever, Region, Regions
from .record import record
from .symbols import Symbols, extent_formulas, layout_calls, layout_formulas

Candidates: TypeAlias = dict[str, Sequence[Value]]

_SMALL = (1, 2, 3, 8, 64)
# Of two inputs at once, so many values of each.
_PAIRED = 12


@record
class Collision:
    """Two regions in a case in which both claim the bytes from `low` to `high`.

    Where `high` is `low` they share none: the second begins there, before the first.
    """

    first: Region
    second: Region
    low: int
    high: int
    case: Case


def find_collisions(
    symbols: Symbols, regions: Regions, layout: Layout | None, most: int
) -> list[Collision]:
    """The collisions of the first case that has any, of `most` cases.

    layout: the one that the regions are of.
    """
    candidates = _candidates(symbols, regions, layout)
    if candidates is None:
        return []
    first = {name: values[0] for name, values in candidates.items()}
    filling = _filling(symbols, regions, layout, first)
    counts: Candidates = {
        name: filling
        for name in candidates
        if name in symbols.fields and symbols.fields[name].type == "int"
    }
    for case in islice(_cases(first, candidates, counts), most):
        if found := _collisions(symbols, regions, layout, case):
            return found
    return []


def _candidates(
    symbols: Symbols, regions: Regions, layout: Layout | None
) -> Candidates | None:
    """The values to try for everything that the regions read.

    None where a place depends on a config field: only models know what it can be. A
    field that a gate reads has the values that the gates compare with.
    """
    if _fields(symbols, (each.at.expr for each in regions.items if each.at)):
        return None
    conditions = [each.when.expr for each in regions.items if each.when]
    gates = _fields(symbols, conditions)
    exprs = [each.expr for each in extent_formulas(regions)]
    for call in layout_calls(regions):
        exprs += layout_formulas(symbols.layouts[call.layout], symbols)
    if layout is not None:
        exprs += (let.value.expr for let in layout.lets)
    found: Candidates = {}
    for kind, name in sorted(symbols.leaves(exprs)):
        if kind == "limit":
            found[name] = limit_values(symbols.limits[name])
        elif kind == "lever":
            found[name] = _of_lever(symbols.levers[name])
        elif kind == "field":
            found[name] = values_of_type(symbols.fields[name].type, _SMALL)
            if name in gates:
                found[name] = numbers_beside(symbols, conditions)
    for parameter in layout.parameters if layout else ():
        found[parameter.name] = values_of_type(parameter.type, (*ROUND, *BESIDE_ROUND))
    return found


def _filling(
    symbols: Symbols, regions: Regions, layout: Layout | None, case: Case
) -> list[int]:
    """Counts of elements of 1 to 8 bytes that reach behind a place, if only just.

    None beyond what limits are tried for: no model has so many of anything.
    """
    _, scope = scope_of(symbols, layout, case)
    found: set[int] = set()
    for region in regions.items:
        if region.at is None:
            continue
        try:
            start = integer(evaluate(region.at.expr, scope))
        except EvaluationError:
            continue
        found.update(start // nbytes + 1 for nbytes in (1, 2, 4, 8))
    return [each for each in sorted(found) if 0 < each <= MOST]


def _fields(symbols: Symbols, exprs: Iterable[Expr]) -> set[str]:
    """The integer fields of the config that formulas read."""
    leaves = symbols.leaves(exprs)
    fields = (symbols.fields[name] for kind, name in leaves if kind == "field")
    return {each.name for each in fields if each.type == "int"}


def _of_lever(lever: Lever) -> Sequence[Value]:
    if lever.type == "bool":
        return (False, True)
    words = (value for _, value, _ in lever.words)
    return list(dict.fromkeys([lever.default, *words, *(lever.clamp or ())]))


def _cases(first: Case, candidates: Candidates, counts: Candidates) -> Iterator[Case]:
    """One input moved, then two of them, the others at their first value; then all."""
    yield first
    for name, values in candidates.items():
        yield from ({**first, name: value} for value in values[1:])
    # Behind what is likelier to happen.
    for name, values in counts.items():
        yield from ({**first, name: value} for value in values)
    for one, other in combinations(candidates, 2):
        pairs = product(_spread(candidates[one]), _spread(candidates[other]))
        yield from ({**first, one: left, other: right} for left, right in pairs)
    yield {name: values[-1] for name, values in candidates.items()}


def _spread(values: Sequence[Value]) -> Sequence[Value]:
    """Some of the values, the last among them."""
    return [*values[:: -(-len(values) // _PAIRED)], values[-1]]


def _collisions(
    symbols: Symbols, regions: Regions, layout: Layout | None, case: Case
) -> list[Collision]:
    sizing, scope = scope_of(symbols, layout, case)
    try:
        placed = list(sizing.regions(regions, scope, overlapping=True))
    except EvaluationError:
        return []
    found = []
    for (first, start, nbytes), (second, begin, length) in combinations(placed, 2):
        low, high = max(start, begin), min(start + nbytes, begin + length)
        if low < high:
            found.append(Collision(first, second, low, high, case))
        elif begin < start:
            found.append(Collision(first, second, begin, begin, case))
    return found
