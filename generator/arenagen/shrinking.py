"""Two values of a limit between which a formula shrinks, found by trying values.

For formulas that cannot be shown to grow with it; what is found happens. Finding
nothing proves nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise

from .cases import (
    MOST,
    Case,
    integer,
    limit_values,
    numbers_beside,
    scope_of,
    values_of_type,
)
from .evaluate import EvaluationError, Value, evaluate
from .formula import Expr
from .model import Limit
from .record import record
from .symbols import Symbols

# What every other limit and config field is in one case.
_OTHERS = (1, 8, 64)


@record
class Shrink:
    """A formula is `before` at `low` of the limit, and less, `after`, at `high`.

    case: the other inputs that it reads.
    """

    low: int
    high: int
    before: int
    after: int
    case: Case


def find_shrink(symbols: Symbols, expr: Expr, limit: Limit) -> Shrink | None:
    """Where an integer formula shrinks as a limit grows."""
    lets = (symbols.lets[name].value.expr for name in symbols.lets_of([expr]))
    most = MOST if limit.maximum is None else limit.maximum
    named = numbers_beside(symbols, [expr, *lets])
    inside = (each for each in named if limit.minimum <= each <= most)
    values = sorted({*limit_values(limit), *inside})
    for others in _cases(symbols, expr, limit):
        known = []
        for value in values:
            _, scope = scope_of(symbols, None, {**others, limit.name: value})
            try:
                size = integer(evaluate(expr, scope))
            except EvaluationError:
                continue
            if size >= 0:
                known.append((value, size))
        for (low, before), (high, after) in pairwise(known):
            if after < before:
                return Shrink(low, high, before, after, others)
    return None


def _cases(symbols: Symbols, expr: Expr, limit: Limit) -> Iterator[Case]:
    """The other limits and the config fields that a formula reads, all alike."""
    leaves = sorted(symbols.leaves([expr]))
    for place, number in enumerate(_OTHERS):
        case: dict[str, Value] = {}
        for kind, name in leaves:
            if kind == "limit" and name != limit.name:
                least, most = symbols.limits[name].minimum, symbols.limits[name].maximum
                value = max(least, number)
                case[name] = value if most is None else min(value, most)
            elif kind == "field":
                values = values_of_type(symbols.fields[name].type, (number,))
                case[name] = values[place % len(values)]
        yield case
