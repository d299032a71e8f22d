"""What the parts of the lowering share: scopes, names, and literals of Python."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from . import naming
from .emit import Emitter
from .formula import Call, Expr, Name, Type, names, quote, spell
from .imports import Imports
from .model import Layout, Lever, Schema
from .plan_parts import StatementView
from .symbols import Symbols, let_order, pure_config

PYTHON_TYPES: dict[Type, str] = {
    "int": "int",
    "bool": "bool",
    "str": "str",
    "list": "tuple[str, ...]",
    "ints": "tuple[int, ...]",
}
CHECKS: dict[Type, str] = {
    "int": "check_int",
    "bool": "check_bool",
    "str": "check_str",
    "list": "check_strs",
}
EMPTY: dict[Type, str] = {"int": "0", "bool": "False", "str": '""', "list": "()"}
FACTS = frozenset[str]


class Scope:
    """Spells formulas for one emitted module or function, and notes its imports.

    `spelling` gives the text of the fields, lets, levers, limits and target constants
    that are not plain locals here; `owner` leads to the config, levers and target.
    """

    def __init__(
        self,
        symbols: Symbols,
        module: str,
        imports: Imports,
        spelling: Callable[[str], str | None],
        owner: str = "",
    ) -> None:
        self.symbols = symbols
        self.module = module
        self.imports = imports
        self._spelling = spelling
        # What is shown of each let, so that a chain of them is walked once.
        self._naturals: dict[str, bool] = {}
        self._positives: dict[str, bool] = {}
        self._owner = owner
        self._names: dict[str, Expr] = {}
        self.constants = symbols.integers
        emitter = Emitter(
            self._name,
            self._call,
            self.constants,
            self.nonnegative,
            self._positive,
            self._nonnegative_call,
            self._counts,
            self._least,
            imports.of("runtime.numeric"),
        )
        self.emitter = emitter
        self.tree, self.natural, self.behind = (
            emitter.tree,
            emitter.natural,
            emitter.behind,
        )
        # Lets of a layout, which only its own scope knows.
        self.local: dict[str, Expr] = {}

    def text(self, formula: Expr, what: str, facts: FACTS = frozenset()) -> str:
        return spell(self.tree(formula, what, facts))

    def _name(self, name: str) -> Expr:
        if name not in self._names:
            if name in self.symbols.constants:
                self.imports.add("constants", name)
                self._names[name] = Name(name)
            else:
                self._names[name] = Name(self._spelling(name) or name)
        return self._names[name]

    def _call(self, name: str, arguments: tuple[Expr, ...]) -> Expr:
        symbols = self.symbols
        if name in symbols.layouts:
            return self.layout_bytes(symbols.layouts[name], arguments)
        if self.module != "functions":
            self.imports.add("functions", name)
        kinds = {kind for kind, _ in symbols.call_leaves(name)}
        owner = self._owner
        before = (Name(f"{owner}config"),) if symbols.reads_config(name) else ()
        keywords = {
            "lever": Name(f"levers={owner}levers"),
            "target": Name(f"target={owner}target"),
        }
        after = (text for kind, text in keywords.items() if kind in kinds)
        return Call(name, (*before, *arguments, *after))

    def layout_bytes(self, layout: Layout, arguments: tuple[Expr, ...]) -> Expr:
        function = naming.layout_function(layout.name)
        if self.module != "layouts":
            self.imports.add("layouts", function)
        reads_config = self.symbols.reads_config(layout.name)
        before = (Name(f"{self._owner}config"),) if reads_config else ()
        return Call(function, (*before, *arguments))

    def aside(self) -> Scope:
        """A scope for formulas that are not emitted: they keep their names."""
        twin = Scope(self.symbols, self.module, Imports(), lambda name: None)
        twin.local = self.local
        return twin

    def _counts(self, name: str) -> tuple[bool, ...]:
        """Which arguments of a call may not be negative: the integers of a layout."""
        if name not in self.symbols.layouts:
            return ()
        parameters = self.symbols.layouts[name].parameters
        return tuple(each.type == "int" for each in parameters)

    def _nonnegative_call(self, name: str) -> bool:
        symbols = self.symbols
        if name in symbols.layouts:
            return True
        if name not in self._naturals:
            expr = symbols.functions[name].value.expr
            self._naturals[name] = self.emitter.at_least_0(expr)
        return self._naturals[name]

    def nonnegative(self, name: str) -> bool:
        """Whether a name is shown to be at least 0."""
        kinds = self.symbols.kinds
        if name in self.local:
            return self.emitter.at_least_0(self.local[name])
        if name not in kinds:
            # A layout checks what it is given; a function may be given anything.
            return self.module != "functions"
        if kinds.get(name) == "let":
            if name not in self._naturals:
                expr = self.symbols.lets[name].value.expr
                self._naturals[name] = self.emitter.at_least_0(expr)
            return self._naturals[name]
        return kinds.get(name) in ("field", "limit", "target")

    def _least(self, name: str) -> int | None:
        lever = self.symbols.levers.get(name)
        return lever_bounds(lever)[0] if lever and lever.type == "int" else None

    def _positive(self, name: str) -> bool:
        symbols = self.symbols
        match symbols.kinds.get(name):
            case "limit":
                return symbols.limits[symbols.canonical(name)].minimum > 0
            case "target":
                return symbols.target[name].minimum > 0
            case "let":
                if name not in self._positives:
                    expr = symbols.lets[name].value.expr
                    self._positives[name] = self.emitter.positive(expr, frozenset())
                return self._positives[name]
        return False


def lever_bounds(lever: Lever) -> tuple[int, int]:
    """The least and the most that an integer lever may be."""
    values = [value for _, value, _ in lever.words if isinstance(value, int)]
    bounds = [*values, *(lever.clamp or ()), int(lever.default)]
    return min(bounds), max(bounds)


# Emitted modules whose imports depend on the schema.
MODULES = (
    "arena",
    "buffers",
    "config",
    "functions",
    "layouts",
    "inputs",
    "levers",
    "pointers",
    "shapes",
    "sizes",
    "sweep",
    "sweep_columns",
    "target",
    "uses",
)


class Lowering:
    """One schema on its way to a plan; the parts of the lowering extend it."""

    def __init__(
        self,
        schema: Schema,
        modules: dict[str, Imports],
        symbols: Symbols | None = None,
    ) -> None:
        self.schema = schema
        self.modules = modules
        # Those of the whole schema, where this is a part of one.
        self.symbols = symbols or Symbols(schema)

    def scope(self, module: str, *, owner: str = "", **prefixes: str) -> Scope:
        """A scope for an emitted module; see `dotted` for the prefixes."""
        spelling = dotted(self.symbols, **prefixes)
        return Scope(self.symbols, module, self.modules[module], spelling, owner)

    def sizes_scope(self, module: str) -> Scope:
        """The scope of a function with fields and lets as locals."""
        # Levers and target constants are attributes alone: one may be named as a local.
        return self.scope(module, lever="levers.", target="target.")

    def arguments_scope(self, module: str, limit: str = "") -> Scope:
        """The scope of a function with a config, levers and a target as locals."""
        return self.scope(
            module,
            field="config.",
            pure="config.",
            limit=limit,
            lever="levers.",
            target="target.",
        )

    def locals_for(
        self, scope: Scope, exprs: Iterable[Expr], limit: str = ""
    ) -> tuple[StatementView, ...]:
        """The symbols and lets that the formulas read, as statements."""
        symbols = self.symbols
        exprs = list(exprs)
        lets = [
            let
            for let in let_order(symbols.schema.lets, symbols.lets_of(exprs))
            if not pure_config(symbols, let)
        ]
        read = {
            node.name
            for expr in (*exprs, *(let.value.expr for let in lets))
            for node in names(expr)
        }
        return (
            *(
                StatementView(symbol, limit + name)
                for symbol, name in symbols.by_symbol.items()
                if symbol in read
            ),
            *(
                StatementView(let.name, scope.text(let.value.expr, let.name))
                for let in lets
            ),
        )

    def shared_locals(
        self, scope: Scope, exprs: Iterable[Expr]
    ) -> tuple[StatementView, ...]:
        """The fields, symbols and lets that the formulas read, as statements."""
        symbols, exprs = self.symbols, list(exprs)
        lets = let_order(symbols.schema.lets, symbols.lets_of(exprs))
        everything = [*exprs, *(let.value.expr for let in lets)]
        read = {node.name for expr in everything for node in names(expr)}
        statements = [
            StatementView(field.name, f"config.{field.name}")
            for field in self.schema.config
            if field.name in read
        ]
        statements += [
            StatementView(symbol, limit)
            for symbol, limit in symbols.by_symbol.items()
            if symbol in read
        ]
        statements += [
            StatementView(let.name, scope.text(let.value.expr, let.name))
            for let in lets
        ]
        return tuple(statements)


def dotted(
    symbols: Symbols,
    *,
    field: str = "",
    pure: str = "",
    let: str = "",
    limit: str = "",
    lever: str = "",
    target: str = "",
) -> Callable[[str], str | None]:
    """Prefixes by kind; `pure` is for lets of config fields only, `let` for all."""
    prefixes = {"field": field, "limit": limit, "lever": lever, "target": target}

    def spelling(name: str) -> str | None:
        kind = symbols.kinds.get(name)
        if kind == "let":
            if pure and pure_config(symbols, symbols.lets[name]):
                return pure + name
            return let + name
        if kind == "limit" and name in symbols.by_symbol:
            return name
        return prefixes.get(kind or "", "") + name

    return spelling


def python_literal(value: object) -> str:
    """A Python literal of a constant, in black's form."""
    if isinstance(value, str):
        return quote(value)
    if isinstance(value, tuple):
        inside = ", ".join(python_literal(item) for item in value)
        return f"({inside}{',' * (len(value) == 1)})"
    return str(value)


def bytes_literal(value: bytes) -> str:
    """A Python literal of some bytes, in black's form."""
    return 'b"' + "".join(f"\\x{byte:02x}" for byte in value) + '"'
