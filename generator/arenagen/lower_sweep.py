"""The size calculator over columns of limits, and the functions that it calls.

Made of the statements of the calculator over ints. A function or a layout that is given
a column is lowered once more, as a private function of the module.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator

from . import naming
from .formula import Call, Expr, Name, spell, walk
from .imports import Imports
from .lower_extents import ExtentLowering
from .lower_scope import PYTHON_TYPES, Scope, python_literal
from .model import Function, Layout, Parameter, Schema, Trim
from .plan import SweepFunctionView, SweepTrimView, SweepView
from .statements import Assign, SizesCode, Statement, lines
from .symbols import Symbols, extent_formulas, let_order, pure_config
from .vector import HELPERS, MODULE, Vector, assigned


class SweepLowering(ExtentLowering):
    """Lowers what `SizeLowering` has made of all buffers to columns."""

    def __init__(self, schema: Schema, symbols: Symbols) -> None:
        # What the scopes import is for ints; what is emitted is looked at in the end.
        super().__init__(schema, defaultdict(Imports), symbols)
        # What is called with columns, and which of its arguments are.
        self.called: dict[str, tuple[bool, ...]] = {}

    def sweep(self, code: SizesCode) -> tuple[SweepView, Imports]:
        """The module for the buffers of a calculator, and its imports."""
        symbols = self.symbols
        given = (*code.definitions, *code.statements)
        buffers = (each.name for each in self.schema.buffers)
        taken = {*symbols.signatures, *symbols.kinds, *buffers}
        fresh = naming.Locals(taken | {*assigned(given)})
        vector = Vector(symbols.limits, self.call, fresh)
        definitions = tuple(vector.statements(code.definitions))
        statements = tuple(vector.statements(code.statements))
        gates = [vector.expr(each) for each in code.trims]
        functions = self.functions()
        imports = Imports()
        imports.add("config", "ModelConfig")
        imports.add("levers", "Levers")
        imports.add("runtime.columns", "Column")
        imports.add("target", "Target")
        self.note(imports, _exprs((*definitions, *statements)))
        self.note(imports, gates)
        for _, inside in functions:
            self.note(imports, _exprs(inside))
        view = SweepView(
            body=_paragraphs(definitions, statements),
            trims=tuple(map(_trim, self.schema.trims, gates)),
            functions=tuple(
                SweepFunctionView(
                    head,
                    tuple(lines(tuple(inside[:-1]), 4)),
                    spell(inside[-1].value),
                )
                for head, inside in functions
            ),
        )
        return view, imports

    def call(self, name: str, columns: tuple[bool, ...]) -> str:
        """The name of a function over columns, which has to be emitted."""
        before = self.called.get(name, columns)
        self.called[name] = tuple(map(max, before, columns))
        return _private(name)

    def functions(self) -> list[tuple[str, list[Assign]]]:
        """Every function that is called with columns, also by another of them."""
        owners: dict[str, Function | Layout] = {**self.symbols.functions}
        for layout in self.schema.layouts:
            owners[naming.layout_function(layout.name)] = layout
        lowered: dict[str, tuple[str, list[Assign]]] = {}
        seen: dict[str, tuple[bool, ...]] = {}
        while seen != self.called:
            before, seen = seen, dict(self.called)
            for name, columns in seen.items():
                if before.get(name) != columns:
                    # Notes what it calls itself.
                    lowered[name] = self.function(owners[name], columns)
        return [lowered[name] for name in owners if name in lowered]

    def function(
        self, owner: Function | Layout, columns: tuple[bool, ...]
    ) -> tuple[str, list[Assign]]:
        """The head of a function over columns, and its body; the last is its value."""
        if isinstance(owner, Layout):
            name = naming.layout_function(owner.name)
            body = self.layout_body(owner)
            kinds = set()
        else:
            name = owner.name
            body = self.function_body(owner)
            kinds = {kind for kind, _ in self.symbols.call_leaves(name)}
        config = self.symbols.reads_config(owner.name)
        flags = columns[1:] if config else columns
        parameters = [*zip(owner.parameters, flags, strict=False)]
        moving = [each.name for each, column in parameters if column]
        head = ["config: ModelConfig"] if config else []
        head += [_parameter(*each) for each in parameters]
        last = {"lever": "levers: Levers", "target": "target: Target"}
        keywords = [text for kind, text in last.items() if kind in kinds]
        head += ["*", *keywords] if keywords else []
        vector = Vector(moving, self.call, lambda name: name)
        inside = [each for each in vector.statements(body) if isinstance(each, Assign)]
        return f"def {_private(name)}({', '.join(head)}) -> Column", inside

    def function_body(self, function: Function) -> list[Assign]:
        scope = self.arguments_scope("functions")
        expr = function.value.expr
        return [
            *self.outer_lets(scope, [expr]),
            Assign("", scope.tree(expr, function.name)),
        ]

    def layout_body(self, layout: Layout) -> list[Assign]:
        scope = self.scope("layouts", field="config.", pure="config.")
        exprs = [each.expr for each in extent_formulas(layout.regions)]
        exprs += [let.value.expr for let in layout.lets]
        scope.local.update({let.name: let.value.expr for let in layout.lets})
        ends, end = self.regions_size(
            scope, layout.regions, layout.name, frozenset(), lambda region: "end"
        )
        body = [
            *self.outer_lets(scope, exprs),
            *(
                Assign(let.name, scope.tree(let.value.expr, let.name))
                for let in let_order(layout.lets, (each.name for each in layout.lets))
            ),
            *(Assign(name, value) for name, value in ends),
            Assign("", end),
        ]
        return _needed(body)

    def outer_lets(self, scope: Scope, exprs: list[Expr]) -> Iterator[Assign]:
        """The lets of the schema that a function computes by itself."""
        symbols = self.symbols
        for let in let_order(self.schema.lets, symbols.lets_of(exprs)):
            if not pure_config(symbols, let):
                yield Assign(let.name, scope.tree(let.value.expr, let.name))

    def note(self, imports: Imports, exprs: Iterable[Expr]) -> None:
        """Import what formulas read of other modules."""
        layouts = {naming.layout_function(name) for name in self.symbols.layouts}
        for expr in exprs:
            for node in walk(expr):
                if isinstance(node, Name) and node.name in self.symbols.constants:
                    imports.add("constants", node.name)
                elif isinstance(node, Call):
                    if node.name.startswith(f"{MODULE}."):
                        imports.add("runtime", f"columns as {MODULE}")
                    elif node.name in HELPERS:
                        imports.add("runtime.numeric", node.name)
                    elif node.name in layouts:
                        imports.add("layouts", node.name)
                    elif node.name in self.symbols.functions:
                        imports.add("functions", node.name)


def _paragraphs(*parts: tuple[Statement, ...]) -> tuple[str, ...]:
    """The lines of a function's body, a blank line behind each part that has any."""
    body: list[str] = []
    for part in filter(None, parts):
        body += [*lines(part, 4), ""]
    return tuple(body)


def _private(name: str) -> str:
    return f"_{name}_columns"


def _trim(trim: Trim, gate: Expr) -> SweepTrimView:
    names = tuple(name for name, _ in trim.buffers)
    return SweepTrimView(spell(gate), python_literal(names))


def _parameter(parameter: Parameter, column: bool) -> str:
    kind = "Column" if column else PYTHON_TYPES[parameter.type]
    return f"{parameter.name}: {kind}"


def _exprs(statements: Iterable[Statement]) -> Iterator[Expr]:
    for each in statements:
        if isinstance(each, Assign):
            yield each.value
        else:
            yield each.condition
            yield from _exprs((*each.then, *each.other))


def _needed(body: list[Assign]) -> list[Assign]:
    """The statements that the last one reads, also through others."""
    read: set[str] = set()
    kept: list[Assign] = []
    for each in reversed(body):
        if each.name in read or each is body[-1]:
            kept.append(each)
            read |= {node.name for node in walk(each.value) if isinstance(node, Name)}
    return kept[::-1]
