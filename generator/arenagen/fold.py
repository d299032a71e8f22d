"""Formulas with everything worked out that does not depend on one limit.

Takes a scope that knows every input but that limit; gives a schema whose formulas hold
numbers in place of what they read of the others. A part without a value is left as it
is: it may stand behind a gate. What a formula is worth, and whether it is worth
anything, is the same before and after.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, cast

from .evaluate import EvaluationError, Scope, evaluate
from .formula import (
    Bool,
    Call,
    Expr,
    IfElse,
    Int,
    Name,
    Str,
    with_children,
)
from .model import (
    Buffer,
    Bytes,
    Extent,
    Formula,
    Function,
    Layout,
    LayoutCall,
    Regions,
    Schema,
    Shape,
    Uses,
)
from .record import replace
from .symbols import Symbols

AnyExtent = TypeVar("AnyExtent", bound=Extent)


class Fold:
    """Folds the formulas of one schema; `scope` knows all inputs but `limit`."""

    def __init__(self, symbols: Symbols, scope: Scope, limit: str) -> None:
        self._symbols = symbols
        self._scope = scope
        self._leaf = ("limit", limit)
        self._moving: dict[str, bool] = {}

    def moves(self, exprs: Sequence[Expr]) -> bool:
        """Whether any of the formulas depends on the limit."""
        return self._leaf in self._symbols.leaves(exprs)

    def schema(self, schema: Schema) -> Schema:
        """The schema with all its formulas folded."""
        return replace(
            schema,
            lets=tuple(
                replace(each, value=self._formula(each.value)) for each in schema.lets
            ),
            functions=tuple(map(self._function, schema.functions)),
            layouts=tuple(map(self._layout, schema.layouts)),
            buffers=tuple(map(self._buffer, schema.buffers)),
            trims=tuple(
                replace(each, when=self._formula(each.when)) for each in schema.trims
            ),
        )

    def _buffer(self, buffer: Buffer) -> Buffer:
        return replace(
            buffer,
            extent=self._extent(buffer.extent),
            when=self._optional(buffer.when),
            otherwise=self._optional(buffer.otherwise),
            min_bytes=self._optional(buffer.min_bytes),
        )

    def _function(self, function: Function) -> Function:
        local = frozenset(each.name for each in function.parameters)
        return replace(function, value=self._formula(function.value, local))

    def _layout(self, layout: Layout) -> Layout:
        parameters = frozenset(each.name for each in layout.parameters)
        local = parameters | {each.name for each in layout.lets}
        return replace(
            layout,
            lets=tuple(
                replace(each, value=self._formula(each.value, local))
                for each in layout.lets
            ),
            regions=self._extent(layout.regions, local),
        )

    def _extent(
        self, extent: AnyExtent, local: frozenset[str] = frozenset()
    ) -> AnyExtent:
        folded: Extent
        match extent:
            case Shape(_, dims):
                folded = replace(
                    extent, dims=tuple(self._formula(each, local) for each in dims)
                )
            case Bytes(value):
                folded = replace(extent, value=self._formula(value, local))
            case LayoutCall(_, arguments):
                given = tuple((name, self._formula(f, local)) for name, f in arguments)
                folded = replace(extent, arguments=given)
            case Regions(items):
                folded = Regions(
                    tuple(
                        replace(
                            each,
                            extent=self._extent(each.extent, local),
                            at=self._optional(each.at, local),
                            when=self._optional(each.when, local),
                        )
                        for each in items
                    )
                )
            case Uses(items):
                folded = Uses(
                    tuple(
                        replace(
                            each,
                            extent=self._extent(each.extent, local),
                            when=self._optional(each.when, local),
                        )
                        for each in items
                    )
                )
        # Of the same kind.
        return cast(AnyExtent, folded)

    def _optional(
        self, formula: Formula | None, local: frozenset[str] = frozenset()
    ) -> Formula | None:
        return None if formula is None else self._formula(formula, local)

    def _formula(
        self, formula: Formula, local: frozenset[str] = frozenset()
    ) -> Formula:
        return replace(formula, expr=self.fold(formula.expr, local)[0])

    def fold(self, expr: Expr, local: frozenset[str]) -> tuple[Expr, bool]:
        """The folded formula, and whether it depends on the limit or on `local`."""
        moving = False

        def sub(node: Expr) -> Expr:
            nonlocal moving
            folded, moves = self.fold(node, local)
            moving |= moves
            return folded

        match expr:
            case Name(name):
                moving = name in local or self._moves(name)
            case IfElse(condition, then, other):
                test = sub(condition)
                if isinstance(test, Bool):
                    return self.fold(then if test.value else other, local)
                expr = IfElse(test, sub(then), sub(other))
            case Call(name):
                moving = self._moves(name)
                expr = with_children(expr, map(sub, expr.children))
            case _:
                expr = with_children(expr, map(sub, expr.children))
        return (expr, True) if moving else (self._constant(expr), False)

    def _constant(self, expr: Expr) -> Expr:
        if isinstance(expr, Int | Bool | Str):
            return expr
        try:
            value = evaluate(expr, self._scope)
        except EvaluationError:
            return expr
        match value:
            case bool():
                return Bool(value)
            case int():
                return Int(value)
            case str():
                return Str(value)
        # No formula holds a list; its name does.
        return expr

    def _moves(self, name: str) -> bool:
        """Whether a name, or a call of it, depends on the limit."""
        if name not in self._moving:
            self._moving[name] = self.moves([Name(name), Call(name, ())])
        return self._moving[name]
