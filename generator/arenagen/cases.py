"""Inputs to try where nothing can be shown of a formula.

Values of limits and of numbers by their type, and the scope that formulas have in such
a case.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

from .evaluate import Scope, Value
from .formula import Expr, Int, Name, Type, walk
from .model import Layout, Limit
from .sizing import Inputs, Known, Sizing
from .symbols import Symbols

# Inputs by name; those that are left out are least, or their default.
Case: TypeAlias = Mapping[str, Value]

ROUND = tuple(1 << power for power in range(21))
BESIDE_ROUND = tuple(each + step for each in ROUND[2:] for step in (-1, 1))
MOST = ROUND[-1]


def limit_values(limit: Limit) -> Sequence[int]:
    """The least first, then round numbers, the most, and what is beside them."""
    most = MOST if limit.maximum is None else limit.maximum
    values = (limit.minimum, *ROUND, most, limit.default or 0, *BESIDE_ROUND)
    inside = (each for each in values if limit.minimum <= each <= most)
    return list(dict.fromkeys(inside)) or [limit.minimum]


def scope_of(
    symbols: Symbols, layout: Layout | None, case: Case
) -> tuple[Sizing, Scope]:
    """The sizing of a case, and what the formulas of regions read in it."""
    schema = symbols.schema
    sizing = Sizing(
        schema,
        Inputs(
            config={
                each.name: case.get(each.name, values_of_type(each.type, (0,))[0])
                for each in schema.config
            },
            limits={
                each.name: integer(case.get(each.name, each.minimum))
                for each in schema.limits
            },
            levers={
                each.name: _plain(case.get(each.name, each.default))
                for each in schema.levers
            },
            target={each.name: each.default for each in schema.target},
        ),
        Known(schema, symbols),
    )
    if layout is None:
        return sizing, sizing
    return sizing, sizing.inside(
        layout, [case[each.name] for each in layout.parameters]
    )


def numbers_beside(symbols: Symbols, exprs: Iterable[Expr]) -> Sequence[int]:
    """0, 1 and the integers that formulas name, with those beside them."""
    named: list[Value] = [0]
    for expr in exprs:
        for node in walk(expr):
            if isinstance(node, Int):
                named.append(node.value)
            elif isinstance(node, Name) and node.name in symbols.constants:
                named.append(symbols.constants[node.name].value)
    numbers = [each for each in named if type(each) is int]
    beside = [each + step for step in (0, 1, -1) for each in numbers]
    return list(dict.fromkeys(each for each in beside if each >= 0))


def values_of_type(kind: Type, numbers: Sequence[int]) -> Sequence[Value]:
    """The values of a type to try, of which integers are those given."""
    match kind:
        case "int":
            return numbers
        case "bool":
            return (False, True)
        case "str":
            return ("",)
    return ((),)


def integer(value: Value) -> int:
    """A value that its formula says is an integer."""
    assert isinstance(value, int)
    return value


def _plain(value: Value) -> int | bool | str:
    assert not isinstance(value, tuple)
    return value
