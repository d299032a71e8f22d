"""Types and names of every formula of a schema, and the cycles among them.

One pass over all formulas; each is reported at its first fault, at the exact token.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from types import MappingProxyType
from typing import TypeAlias

from .errors import MAX_PROBLEMS, Problem, Span, did_you_mean, nearest
from .formula import (
    BUILTINS,
    FUNCTION_HINTS,
    NAME_HINTS,
    TYPE_WORDS,
    Call,
    Expr,
    FormulaError,
    Name,
    Type,
    UnknownFunction,
    UnknownName,
    calls,
    infer,
    names,
)
from .load import formula_problem
from .model import (
    Bytes,
    Extent,
    Formula,
    LayoutCall,
    Parameter,
    Regions,
    Shape,
    Uses,
)
from .symbols import (
    Symbols,
    buffer_formulas,
    extent_formulas,
    layout_calls,
    layout_formulas,
)

# Why a name cannot be read where a formula stands; None where any can be.
Rule: TypeAlias = Callable[[str], str | None] | None
NO_LOCALS: Mapping[str, Type] = MappingProxyType({})
MAX_HEIGHT = 100
# Calls that one formula may lead to, through functions that call functions.
MAX_CALLS = 10_000


def find_cycles(symbols: Symbols) -> list[Problem]:
    """Lets, functions, layouts and field defaults that depend on themselves."""
    problems: list[Problem] = []
    edges: dict[str, tuple[Span, list[str]]] = {}
    for let in symbols.lets.values():
        edges[let.name] = (let.span, _reads([let.value.expr]))
    for function in symbols.functions.values():
        edges[function.name] = (function.span, _reads([function.value.expr]))
    for layout in symbols.layouts.values():
        formulas = [each.expr for each in extent_formulas(layout.regions)]
        nested = [call.layout for call in layout_calls(layout.regions)]
        edges[layout.name] = (layout.span, _reads(formulas) + nested)
        local = {let.name: _reads([let.value.expr]) for let in layout.lets}
        edges[layout.name][1].extend(name for each in local.values() for name in each)
        spans = {let.name: let.span for let in layout.lets}
        problems += _cycles({name: (spans[name], local[name]) for name in local})
    for field in symbols.fields.values():
        if field.default is not None:
            edges[field.name] = (field.span, _reads([field.default.expr]))
    problems += _cycles(edges)
    return problems or _endless(edges, {*symbols.functions, *symbols.layouts})


def _endless(
    edges: Mapping[str, tuple[Span, list[str]]], called: set[str]
) -> list[Problem]:
    """The first function or layout that calls others too often; there are no cycles."""
    counts: dict[str, int] = {}

    def count(name: str) -> int:
        if name not in counts:
            below = (count(each) for each in edges[name][1] if each in called)
            counts[name] = 1 + sum(below)
        return counts[name]

    for name in edges:
        if name in called and count(name) > MAX_CALLS:
            return [
                Problem(
                    "AR056",
                    f"`{name}` leads to more than {MAX_CALLS} calls of functions and "
                    "layouts",
                    edges[name][0],
                    hint="compute what they share once, in `let`",
                )
            ]
    return []


def _reads(exprs: Iterable[Expr]) -> list[str]:
    found: list[str] = []
    for expr in exprs:
        found += [node.name for node in names(expr)]
        found += [call.name for call in calls(expr)]
    return found


def _cycles(edges: Mapping[str, tuple[Span, list[str]]]) -> list[Problem]:
    problems: list[Problem] = []
    # How many names, one built on another, lead to each.
    heights: dict[str, int] = {}
    for start in edges:
        path: list[str] = []

        def visit(name: str, path: list[str] = path) -> None:
            if name in path:
                ring = path[path.index(name) :]
                chain = " -> ".join(f"`{each}`" for each in [*ring, name])
                problems.append(
                    Problem(
                        "AR045",
                        f"`{name}` depends on itself: {chain}",
                        edges[name][0],
                        hint="break the ring with a formula that reads inputs only",
                    )
                )
                return
            if name in heights or name not in edges or len(path) > MAX_HEIGHT:
                return
            path.append(name)
            below = dict.fromkeys(edges[name][1])
            for child in below:
                visit(child)
            path.pop()
            heights[name] = 1 + max((heights.get(each, 0) for each in below), default=0)

        visit(start)
    for name, height in heights.items():
        if height > MAX_HEIGHT:
            problem = Problem(
                "AR049",
                f"`{name}` stands on more than {MAX_HEIGHT} names, each on another",
                edges[name][0],
            )
            return [*problems, problem]
    return problems


def check_types(symbols: Symbols) -> list[Problem]:
    """Every formula that reads an unknown name or has the wrong type."""
    checker = _Types(symbols)
    checker.run()
    return checker.problems


class _Types:
    def __init__(self, symbols: Symbols) -> None:
        self.symbols = symbols
        self.problems: list[Problem] = []
        self._broken: set[str] = set()
        self._found: dict[int, Type] = {}
        self._earlier: set[str] = set()

    def run(self) -> None:
        schema = self.symbols.schema
        self._lets()
        for field in schema.config:
            if field.default is not None:
                self._formula(field.default, field.type, "the default", self._fields)
            self._earlier.add(field.name)
        for function in schema.functions:
            types = self._parameters(function.parameters)
            self._formula(function.value, "int", "the value", self._helper, types)
        for layout in schema.layouts:
            types = self._parameters(layout.parameters)
            for let in layout.lets:
                types[let.name] = "int"
            for let in layout.lets:
                self._formula(let.value, "int", "the value", self._layout, types)
            self._extent(layout.regions, self._layout, types)
            if layout.accessor is not None:
                self._layout_call(layout.accessor, None, NO_LOCALS)
        for buffer in schema.buffers:
            self._extent(buffer.extent, None, NO_LOCALS)
            self._gate(buffer.when)
            for floor in (buffer.otherwise, buffer.min_bytes):
                if floor is not None:
                    self._formula(floor, "int", "the size", None)
        for trim in schema.trims:
            self._gate(trim.when)
        self._modules()

    def _lets(self) -> None:
        symbols = self.symbols
        visited: set[str] = set()

        def visit(name: str) -> None:
            if name in visited or name not in symbols.lets:
                return
            visited.add(name)
            let = symbols.lets[name]
            for node in names(let.value.expr):
                visit(node.name)
            kind = self._formula(let.value, None, "the value", None)
            symbols.types[name] = kind or "int"
            if kind is None:
                self._broken.add(name)

        for name in symbols.lets:
            visit(name)

    def _parameters(self, parameters: Iterable[Parameter]) -> dict[str, Type]:
        return {each.name: each.type for each in parameters}

    def _gate(self, formula: Formula | None) -> None:
        if formula is not None:
            self._formula(formula, "bool", "a gate", None)

    def _extent(
        self,
        extent: Extent,
        allowed: Rule,
        local: Mapping[str, Type],
    ) -> None:
        match extent:
            case Shape(_, dims):
                for dim in dims:
                    self._formula(dim, "int", "a dimension", allowed, local)
            case Bytes(value):
                self._formula(value, "int", "the size", allowed, local)
            case LayoutCall():
                self._layout_call(extent, allowed, local)
            case Regions(items):
                for region in items:
                    self._extent(region.extent, allowed, local)
                    if region.at is not None:
                        self._formula(region.at, "int", "an offset", allowed, local)
                    if region.when is not None:
                        self._formula(region.when, "bool", "a gate", allowed, local)
            case Uses(items):
                for use in items:
                    self._extent(use.extent, allowed, local)
                    if use.when is not None:
                        self._formula(use.when, "bool", "a gate", allowed, local)

    def _layout_call(
        self,
        call: LayoutCall,
        allowed: Rule,
        local: Mapping[str, Type],
    ) -> None:
        layout = self.symbols.layouts.get(call.layout)
        if layout is None:
            self.problems.append(
                Problem(
                    "AR060",
                    f"no layout is named `{call.layout}`",
                    call.span,
                    hint=did_you_mean(call.layout, list(self.symbols.layouts)),
                )
            )
            return
        wanted = {each.name: each.type for each in layout.parameters}
        given = dict(call.arguments)
        for name in wanted.keys() - given.keys():
            self.problems.append(
                Problem(
                    "AR061",
                    f"the layout `{call.layout}` needs the argument `{name}`",
                    call.span,
                    hint=f"add `{name}: …` to its `arguments`",
                )
            )
        for name, formula in call.arguments:
            if name not in wanted:
                self.problems.append(
                    Problem(
                        "AR062",
                        f"the layout `{call.layout}` has no parameter `{name}`",
                        call.places[name],
                        hint=did_you_mean(name, list(wanted)),
                    )
                )
                continue
            what = f"the argument `{name}`"
            self._formula(formula, wanted[name], what, allowed, local)

    def _formula(
        self,
        formula: Formula,
        wanted: Type | None,
        what: str,
        allowed: Rule,
        local: Mapping[str, Type] = NO_LOCALS,
    ) -> Type | None:
        if len(self.problems) >= MAX_PROBLEMS:
            return None
        if self._broken and any(
            node.name in self._broken for node in names(formula.expr)
        ):
            return None
        try:
            found = self._type(formula.expr, local)
            if allowed is not None:
                self._allow(formula.expr, allowed, local)
            if wanted is not None and found != wanted:
                hint = _type_hint(found, wanted)
                if what == "the default":
                    hint = f"give another default, or `type: {found}`"
                raise FormulaError(
                    f"{what} is {TYPE_WORDS[found]}; it must be {TYPE_WORDS[wanted]}",
                    formula.expr.at,
                    hint,
                )
        except UnknownName as error:
            known = [*local, *self.symbols.kinds]
            error.hint = NAME_HINTS.get(error.name) or did_you_mean(error.name, known)
            if error.name in self.symbols.buffers:
                error.hint = "a formula reads inputs, not the sizes of other buffers"
            elif error.name in self.symbols.signatures:
                error.hint = f"call the function: `{error.name}(…)`"
            elif symbol := self._symbol_for(error.name, known):
                error.hint = f"did you mean `{symbol}`, the limit of tokens?"
            elif wanted == "str":
                error.hint = f"a text has quotes of its own: \"'{error.name}'\""
            self.problems.append(formula_problem("AR041", error, formula.scalar))
        except UnknownFunction as error:
            error.hint = FUNCTION_HINTS.get(error.name) or did_you_mean(
                error.name, list(self.symbols.signatures)
            )
            if error.name in self.symbols.kinds or error.name in local:
                error.hint = "it is a value; write a product with `*`"
            self.problems.append(formula_problem("AR042", error, formula.scalar))
        except FormulaError as error:
            self.problems.append(formula_problem("AR043", error, formula.scalar))
        else:
            return found
        return None

    def _type(self, expr: Expr, local: Mapping[str, Type]) -> Type:
        """The type of a formula. Raises FormulaError."""
        symbols = self.symbols
        if local:
            return infer(expr, {**symbols.types, **local}, symbols.signatures)
        # Formulas of one text have one tree.
        if id(expr) not in self._found:
            self._found[id(expr)] = infer(expr, symbols.types, symbols.signatures)
        return self._found[id(expr)]

    def _allow(
        self,
        expr: Expr,
        allowed: Callable[[str], str | None],
        local: Mapping[str, Type],
    ) -> None:
        """Raise FormulaError for the first name that cannot be read or called."""
        for node in names(expr):
            if node.name not in local and (why := allowed(node.name)):
                raise FormulaError(f"`{node.name}` cannot be read here", node.at, why)
        for call in calls(expr):
            if call.name not in BUILTINS and (why := allowed(call.name)):
                at = (call.at[0], call.at[0] + len(call.name))
                raise FormulaError(f"`{call.name}` cannot be called here", at, why)

    def _symbol_for(self, name: str, known: Iterable[str]) -> str:
        """The symbol of tokens for one letter that is like no name, empty otherwise."""
        limits = self.symbols.schema.limits
        # There may be none, which is told too.
        symbol = next((limit.symbol for limit in limits if limit.tokens), None)
        alone = len(name) == 1 and nearest(name, known) is None
        return symbol if alone and symbol and name not in NAME_HINTS else ""

    def _fields(self, name: str) -> str | None:
        if self.symbols.kinds.get(name) == "constant" or name in self._earlier:
            return None
        if name in self.symbols.fields:
            return "a default reads fields that stand before it; move one of the two"
        return "a default reads other fields and constants only"

    def _helper(self, name: str) -> str | None:
        return self._without(name, {"limit": "a limit"}, "a function reads no limits")

    def _layout(self, name: str) -> str | None:
        kinds = {"limit": "a limit", "lever": "a lever", "target": "the target"}
        rule = "a layout reads no limits, levers or target constants"
        return self._without(name, kinds, rule)

    def _without(self, name: str, kinds: Mapping[str, str], rule: str) -> str | None:
        """Why a name that leads to one of the kinds cannot be read."""
        symbols = self.symbols
        if name in symbols.functions or name in symbols.layouts:
            leaves = symbols.leaves([Call(name, ())])
        else:
            leaves = symbols.leaves([Name(name)])
        for kind, _ in sorted(leaves):
            if kind in kinds:
                if symbols.kinds.get(name) == kind:
                    why = rule
                    cure = "make it a parameter, so that callers pass their own"
                else:
                    why = f"it depends on {kinds[kind]}, and {rule}"
                    cure = "make it a parameter"
                return f"{why}; {cure}"
        return None

    def _modules(self) -> None:
        """Report functions that call layouts while layouts call functions.

        The modules of both would import each other.
        """
        symbols = self.symbols

        def called(exprs: list[Expr], section: Mapping[str, object]) -> str | None:
            lets = symbols.lets_of(exprs)
            exprs = [*exprs, *(symbols.lets[name].value.expr for name in lets)]
            found = (call.name for expr in exprs for call in calls(expr))
            return next((name for name in found if name in section), None)

        for layout in symbols.schema.layouts:
            other = called([*layout_formulas(layout, symbols)], symbols.functions)
            for function in symbols.schema.functions:
                own = called([function.value.expr], symbols.layouts)
                if own and other:
                    problem = Problem(
                        "AR048",
                        f"the function `{function.name}` calls the layout `{own}`, and "
                        f"the layout `{layout.name}` calls the function `{other}`",
                        function.span,
                        hint="let only one of the two sections call the other",
                        related=(("layout", layout.span),),
                    )
                    self.problems.append(problem)


def _type_hint(found: Type, wanted: Type) -> str:
    if (found, wanted) == ("int", "bool"):
        return "compare it, as in `… > 0`"
    if (found, wanted) == ("bool", "int"):
        return "write `1 if … else 0`"
    return ""


def all_formulas(symbols: Symbols) -> Iterator[Formula]:
    """Every formula of the schema, wherever it stands."""
    schema = symbols.schema
    yield from (let.value for let in schema.lets)
    yield from (each.default for each in schema.config if each.default)
    yield from (function.value for function in schema.functions)
    for layout in schema.layouts:
        yield from (let.value for let in layout.lets)
        yield from extent_formulas(layout.regions)
        if layout.accessor is not None:
            yield from extent_formulas(layout.accessor)
    for buffer in schema.buffers:
        yield from buffer_formulas(buffer)
    yield from (trim.when for trim in schema.trims)
