"""Model to plan: order, names, docs and every expression, as final strings.

The one place that knows both the schema and the emitted Python. Templates decide
nothing; what they print is decided here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from . import naming
from .describe import buffer_details, extent_text
from .emit import Emitter, positive_when, product
from .fills import fill_pattern
from .formula import (
    Binary,
    Call,
    Expr,
    IfElse,
    Int,
    Name,
    Type,
    infer,
    names,
    quote,
    spell,
)
from .imports import Imports
from .model import (
    Buffer,
    Bytes,
    Field,
    Formula,
    Function,
    Group,
    Layout,
    LayoutCall,
    Lever,
    Limit,
    Region,
    Regions,
    Schema,
    Shape,
    SingleExtent,
    Trim,
    Uses,
)
from .placement import slab_order
from .plan import (
    ArenaView,
    BufferView,
    ConstantView,
    FieldView,
    FunctionView,
    GroupView,
    LayoutAccessorView,
    LayoutView,
    LeverView,
    LimitView,
    ParameterView,
    PointerView,
    PropertyView,
    RegionView,
    StatementView,
    TrimView,
)
from .symbols import (
    Symbols,
    extent_formulas,
    layout_calls,
    layout_formulas,
    let_order,
    pure_config,
)

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


def lower(schema: Schema) -> ArenaView:
    """The plan of one package. The schema has passed `check` without errors."""
    return _Lowering(schema).arena()


class _Scope:
    """Spells formulas for one emitted module or function, and notes its imports.

    `spelling` gives the text of the fields, lets, levers, limits and target constants
    that are not plain locals here.
    """

    def __init__(
        self,
        symbols: Symbols,
        module: str,
        imports: Imports,
        spelling: Callable[[str], str | None],
    ) -> None:
        self.symbols = symbols
        self.module = module
        self.imports = imports
        self._spelling = spelling
        constants = {
            each.name: each.value
            for each in symbols.schema.constants
            if isinstance(each.value, int)
        }
        self.emitter = Emitter(self._name, self._call, constants, self._nonnegative)

    def tree(self, formula: Expr, what: str, facts: FACTS = frozenset()) -> Expr:
        tree = self.emitter.tree(formula, what, facts)
        self.imports.add("runtime.numeric", *self.emitter.helpers)
        return tree

    def text(self, formula: Expr, what: str, facts: FACTS = frozenset()) -> str:
        return spell(self.tree(formula, what, facts))

    def _name(self, name: str) -> Expr:
        if name in self.symbols.constants:
            self.imports.add("constants", name)
            return Name(name)
        return Name(self._spelling(name) or name)

    def _call(self, name: str, arguments: tuple[Expr, ...]) -> Expr:
        symbols = self.symbols
        if name in symbols.layouts:
            return self.layout_bytes(symbols.layouts[name], arguments)
        function = symbols.functions[name]
        if self.module != "functions":
            self.imports.add("functions", name)
        kinds = {kind for kind, _ in symbols.leaves([function.value.expr])}
        before = (Name("config"),) if "field" in kinds else ()
        keywords = {"lever": Name("levers=levers"), "target": Name("target=target")}
        after = (text for kind, text in keywords.items() if kind in kinds)
        return Call(name, (*before, *arguments, *after))

    def layout_bytes(self, layout: Layout, arguments: tuple[Expr, ...]) -> Expr:
        function = naming.layout_function(layout.name)
        if self.module != "layouts":
            self.imports.add("layouts", function)
        before = (Name("config"),) if layout_reads_config(self.symbols, layout) else ()
        return Call(function, (*before, *arguments))

    def _nonnegative(self, name: str) -> bool:
        kinds = self.symbols.kinds
        if kinds.get(name) == "let":
            return self.emitter.at_least_0(self.symbols.lets[name].value.expr)
        return kinds.get(name) in ("field", "limit", "target")


def layout_reads_config(symbols: Symbols, layout: Layout) -> bool:
    """Whether the regions of a layout depend on a config field."""
    leaves = symbols.leaves(layout_formulas(layout, symbols))
    return any(kind == "field" for kind, _ in leaves)


class _Lowering:
    def __init__(self, schema: Schema) -> None:
        self.schema = schema
        self.symbols = Symbols(schema)
        for let in let_order(schema.lets, (each.name for each in schema.lets)):
            self.symbols.types[let.name] = infer(
                let.value.expr, self.symbols.types, self.symbols.signatures
            )
        self.modules = {
            name: Imports()
            for name in (
                "arena",
                "buffers",
                "config",
                "functions",
                "layouts",
                "levers",
                "sizes",
            )
        }

    def arena(self) -> ArenaView:
        schema = self.schema
        buffers = tuple(self.buffer(each) for each in schema.buffers)
        by_name = {each.name: each for each in buffers}
        log_format, log_arguments = self.log()
        return ArenaView(
            package=schema.arena.package,
            class_name=schema.arena.class_name,
            label=schema.arena.label,
            doc=schema.arena.doc,
            families=schema.arena.families is not None,
            constants=tuple(
                ConstantView(
                    each.name,
                    PYTHON_TYPES[each.type],
                    python_literal(each.value),
                    each.doc,
                )
                for each in schema.constants
            ),
            target=tuple(
                FieldView(
                    each.name,
                    "int",
                    str(each.default),
                    each.doc,
                    f"check_int({quote(each.name)}, self.{each.name}, {each.minimum})",
                )
                for each in schema.target
            ),
            limits=tuple(_limit(each) for each in schema.limits),
            token_limit=schema.token_limit.name,
            fields=tuple(self.field(each) for each in schema.config),
            properties=self.properties(),
            levers=tuple(self.lever(each) for each in schema.levers),
            functions=tuple(self.function(each) for each in schema.functions),
            layouts=tuple(self.layout(each) for each in schema.layouts),
            accessors=tuple(
                self.accessor(each, each.accessor)
                for each in schema.layouts
                if each.accessor is not None
            ),
            buffers=buffers,
            pointer_locals=self.pointer_locals(),
            size_locals=self.size_locals(),
            trims=tuple(self.trim(each) for each in schema.trims),
            groups=tuple(_group(each, schema, by_name) for each in schema.groups),
            slab_order=tuple(slab_order(schema.buffers)),
            checksum_lever=next(
                (each.name for each in schema.levers if each.arms == "checksum"), ""
            ),
            log_format=log_format,
            log_arguments=log_arguments,
            imports=self.imports(),
        )

    # Config, levers, functions

    def field(self, field: Field) -> FieldView:
        default, derived = EMPTY[field.type], ""
        if field.default is not None:
            value = field.default.expr
            if any(names(value)):
                scope = self.scope("config", _dotted(self.symbols, field="self."))
                default = "DERIVED"
                derived = scope.text(value, field.name)
            else:
                default = spell(value)
        check = f"{CHECKS[field.type]}({quote(field.name)}, self.{field.name})"
        return FieldView(
            field.name,
            PYTHON_TYPES[field.type],
            default,
            field.doc,
            check,
            derived,
            normalised=field.type == "list",
        )

    def properties(self) -> tuple[PropertyView, ...]:
        scope = self.scope("config", _dotted(self.symbols, field="self.", let="self."))
        return tuple(
            PropertyView(
                let.name,
                PYTHON_TYPES[self.symbols.types[let.name]],
                let.doc,
                scope.text(let.value.expr, let.name),
            )
            for let in self.schema.lets
            if pure_config(self.symbols, let)
        )

    def lever(self, lever: Lever) -> LeverView:
        imports = self.modules["levers"]
        default = lever.default_name or python_literal(lever.default)
        if lever.default_name:
            imports.add("constants", lever.default_name)
        variable = quote(lever.variable)
        if lever.type == "bool":
            words = lever.on_when or lever.off_when
            helper = "switch_on" if lever.on_when else "switch_off"
            arguments = f"{python_literal(words)}, {default}"
        else:
            table = []
            for word, value, constant in lever.words:
                if constant:
                    imports.add("constants", constant)
                table.append(f"{quote(word)}: {constant or python_literal(value)}")
            helper = "count_or_word" if lever.type == "int" else "text_or_word"
            arguments = "{" + ", ".join(table) + "}"
            if lever.type == "int":
                arguments += f", {lever.clamp}"
            arguments += f", {default}"
        imports.add("runtime.environment", helper)
        view = FieldView(
            lever.name,
            PYTHON_TYPES[lever.type],
            default,
            lever.doc,
            self.lever_check(lever),
        )
        reader = f"{helper}(environ, {variable}, {arguments})"
        return LeverView(view, lever.variable, reader)

    def lever_check(self, lever: Lever) -> str:
        target = f"{quote(lever.name)}, self.{lever.name}"
        check = CHECKS[lever.type]
        self.modules["levers"].add("runtime.numeric", check)
        if lever.type != "int":
            return f"{check}({target})"
        values = [value for _, value, _ in lever.words if isinstance(value, int)]
        bounds = [*values, *(lever.clamp or ()), int(lever.default)]
        return f"{check}({target}, {min(bounds)}, {max(bounds)})"

    def function(self, function: Function) -> FunctionView:
        symbols = self.symbols
        scope = self.scope(
            "functions",
            _dotted(
                symbols,
                field="config.",
                pure="config.",
                lever="levers.",
                target="target.",
            ),
        )
        expr = function.value.expr
        kinds = {kind for kind, _ in symbols.leaves([expr])}
        parameters = tuple(
            ParameterView(each.name, PYTHON_TYPES[each.type], each.doc)
            for each in function.parameters
        )
        if "field" in kinds:
            self.modules["functions"].add("config", "ModelConfig")
            config = ParameterView("config", "ModelConfig", "The model.")
            parameters = (config, *parameters)
        if "lever" in kinds:
            self.modules["functions"].add("levers", "Levers")
        if "target" in kinds:
            self.modules["functions"].add("target", "DEFAULT_TARGET", "Target")
        body = tuple(
            StatementView(let.name, scope.text(let.value.expr, let.name))
            for let in let_order(symbols.schema.lets, symbols.lets_of([expr]))
            if not pure_config(symbols, let)
        )
        return FunctionView(
            name=function.name,
            doc=function.doc,
            parameters=parameters,
            reads_levers="lever" in kinds,
            reads_target="target" in kinds,
            body=body,
            value=scope.text(expr, function.name),
        )

    # Layouts

    def layout(self, layout: Layout) -> LayoutView:
        symbols = self.symbols
        imports = self.modules["layouts"]
        reads_config = layout_reads_config(symbols, layout)
        if reads_config:
            imports.add("config", "ModelConfig")
        imports.add("runtime.device", "NULL", "DevicePtr")
        scope = self.scope("layouts", _dotted(symbols, field="config.", pure="config."))
        exprs = [formula.expr for formula in extent_formulas(layout.regions)]
        lets = {let.name: let for let in layout.lets}
        inner = [
            StatementView(let.name, scope.text(let.value.expr, let.name))
            for let in let_order(layout.lets, lets)
        ]
        exprs += [let.value.expr for let in layout.lets]
        outer = [
            StatementView(let.name, scope.text(let.value.expr, let.name))
            for let in let_order(symbols.schema.lets, symbols.lets_of(exprs))
            if not pure_config(symbols, let)
        ]
        before = (*outer, *inner)
        body, value = self.regions_size(scope, layout.regions, "end", layout.name)
        needed = _needed(before, [*(each.value for each in body), value])
        return LayoutView(
            name=layout.name,
            class_name=naming.layout_class(layout.name),
            size_function=naming.layout_function(layout.name),
            doc=layout.doc,
            parameters=tuple(
                ParameterView(each.name, PYTHON_TYPES[each.type], each.doc)
                for each in layout.parameters
            ),
            reads_config=reads_config,
            size_body=(*needed, *body),
            size_value=value,
            place_body=before,
            regions=self.regions(scope, layout),
            size_after=self._end_of(layout.regions),
        )

    def regions(self, scope: _Scope, layout: Layout) -> tuple[RegionView, ...]:
        imports = self.modules["layouts"]
        views = []
        end: Expr = Int(0)
        for region in layout.regions.items:
            what = f"{layout.name}.{region.name}"
            start = self.region_start(scope, region, end, what)
            body: list[StatementView] = []
            at = spell(start)
            match region.extent:
                case LayoutCall():
                    nested = self.symbols.layouts[region.extent.layout]
                    class_name = naming.layout_class(nested.name)
                    imports.add("runtime.layout", "shift")
                    config = layout_reads_config(self.symbols, nested)
                    given = ["config"] if config else []
                    given += [
                        f"{name}={scope.text(formula.expr, what)}"
                        for name, formula in region.extent.arguments
                    ]
                    given.append(f"base=shift(base, {at})")
                    kind, value = class_name, f"{class_name}.of({', '.join(given)})"
                    after: Expr = Binary("+", start, Name(f"{region.name}.nbytes"))
                case Shape(dtype, dims):
                    imports.add("runtime.layout", "Region", "place")
                    spelled = [scope.text(dim.expr, what) for dim in dims]
                    shape = f"({', '.join(spelled)}{',' * (len(dims) == 1)})"
                    kind = "Region"
                    value = f"place(base, {at}, {quote(dtype.name)}, {shape})"
                    after = Name(f"{region.name}.end")
                case Bytes(size):
                    imports.add("runtime.layout", "Region", "place")
                    nbytes = scope.text(size.expr, what)
                    kind = "Region"
                    value = f'place(base, {at}, "u8", ({nbytes},))'
                    after = Name(f"{region.name}.end")
            if region.when is not None:
                condition = scope.text(region.when.expr, what)
                value = f"{value} if {condition} else None"
                kind = f"{kind} | None"
                present = spell(after)
                body.append(StatementView(region.name, value))
                body.append(
                    StatementView(
                        "end",
                        f"{spell(end)} if {region.name} is None else {present}",
                    )
                )
                after = Name("end")
            else:
                body.append(StatementView(region.name, value))
            views.append(RegionView(region.name, kind, region.doc, tuple(body)))
            end = after
        return tuple(views)

    def _end_of(self, regions: Regions) -> str:
        last = regions.items[-1]
        if last.when is not None:
            return "end"
        return f"{last.name}.end"

    def region_start(self, scope: _Scope, region: Region, end: Expr, what: str) -> Expr:
        if region.at is not None:
            return scope.tree(region.at.expr, what)
        if region.align == 1 or end == Int(0):
            return end
        raised = Binary("+", end, Int(region.align - 1))
        return Binary("*", Binary("//", raised, Int(region.align)), Int(region.align))

    def regions_size(
        self,
        scope: _Scope,
        regions: Regions,
        variable: str,
        what: str,
        facts: FACTS = frozenset(),
    ) -> tuple[list[StatementView], str]:
        """Statements and the final expression for the bytes of laid-out regions."""
        body: list[StatementView] = []
        end: Expr = Int(0)
        for region in regions.items:
            place = f"{what}.{region.name}"
            gate = region.when.expr if region.when is not None else None
            known = facts | (positive_when(gate, True) if gate else frozenset())
            size = self.size(scope, region.extent, place, known)
            if (region.align > 1 or gate is not None) and end != Int(0):
                # Aligning or gating repeats the end, so that it needs a name.
                if end != Name(variable):
                    body.append(StatementView(variable, spell(end), ""))
                end = Name(variable)
            start = self.region_start(scope, region, end, place)
            after = size if start == Int(0) else Binary("+", start, size)
            if gate is not None:
                after = IfElse(scope.tree(gate, place, facts), after, end)
            end = after
        return body, spell(end)

    def accessor(self, layout: Layout, call: LayoutCall) -> LayoutAccessorView:
        symbols = self.symbols
        self.modules["arena"].add("layouts", naming.layout_class(layout.name))
        scope = self.scope(
            "arena",
            _dotted(
                symbols,
                field="config.",
                pure="config.",
                lever="levers.",
                target="target.",
            ),
        )
        exprs = [formula.expr for _, formula in call.arguments]
        return LayoutAccessorView(
            name=layout.name,
            class_name=naming.layout_class(layout.name),
            doc=layout.accessor_doc,
            body=self.locals_for(scope, exprs),
            arguments=", ".join(
                (["config"] if layout_reads_config(symbols, layout) else [])
                + [
                    f"{name}={scope.text(formula.expr, layout.name)}"
                    for name, formula in call.arguments
                ]
            ),
        )

    def locals_for(
        self, scope: _Scope, exprs: Iterable[Expr], limit: str = ""
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

    # Buffers

    def size_locals(self) -> tuple[StatementView, ...]:
        """Everything that the size formulas share, each computed once, in order."""
        symbols, scope = self.symbols, self.sizes_scope()
        exprs = [each.expr for each in self.buffer_formulas()]
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

    def buffer_formulas(self) -> Iterable[Formula]:
        for buffer in self.schema.buffers:
            yield from extent_formulas(buffer.extent)
            optional = (buffer.when, buffer.otherwise, buffer.min_bytes)
            yield from (each for each in optional if each)
        yield from (trim.when for trim in self.schema.trims)

    def sizes_scope(self) -> _Scope:
        return self.scope(
            "sizes", _dotted(self.symbols, lever="levers.", target="target.")
        )

    def buffer(self, buffer: Buffer) -> BufferView:
        scope = self.sizes_scope()
        facts: FACTS = frozenset()
        if buffer.when is not None:
            facts = positive_when(buffer.when.expr, True)
        body, parts = self.buffer_size(scope, buffer, facts)
        if buffer.min_bytes is not None:
            parts.append((scope.text(buffer.min_bytes.expr, buffer.name), ""))
        value = parts[0][0]
        if len(parts) > 1 and not any(comment for _, comment in parts):
            value = f"max({', '.join(text for text, _ in parts)})"
        elif len(parts) > 1:
            inside = "".join(
                (f"\n# {comment}\n" if comment else "\n") + f"{text},"
                for text, comment in parts
            )
            value = f"max({inside}\n)"
        if buffer.when is not None:
            gate = scope.text(buffer.when.expr, buffer.name)
            other = "0"
            if buffer.otherwise is not None:
                other = scope.text(buffer.otherwise.expr, buffer.name)
            value = f"({value} if {gate} else {other})"
        fill = "" if buffer.init is None else bytes_literal(fill_pattern(buffer))
        methods = {group.name: group.method for group in self.schema.groups}
        groups = [methods[name] for name, _ in buffer.groups]
        return BufferView(
            name=buffer.name,
            bytes_name=naming.bytes_accessor(buffer.name),
            doc=buffer.doc,
            details=tuple(buffer_details(buffer, groups)),
            dtype=buffer.dtype.name if buffer.dtype else "",
            extent=extent_text(buffer.extent),
            gate=spell(buffer.when.expr) if buffer.when else "",
            otherwise=spell(buffer.otherwise.expr) if buffer.otherwise else "",
            groups=tuple(groups),
            inputs=self.inputs(buffer),
            token_major=buffer.token_major,
            checksum=buffer.checksum,
            carve_method=naming.carve_method(buffer.name) if buffer.carve else "",
            fill=fill,
            fill_literal=fill or 'b""',
            align=buffer.align,
            size_body=tuple(body),
            size_value=value,
            pointer=self.pointer(buffer),
        )

    def inputs(self, buffer: Buffer) -> tuple[str, ...]:
        formulas = [each.expr for each in extent_formulas(buffer.extent)]
        formulas += [each.expr for each in (buffer.when, buffer.min_bytes) if each]
        for call in layout_calls(buffer.extent):
            layout = self.symbols.layouts[call.layout]
            formulas += layout_formulas(layout, self.symbols)
        wanted = {
            name
            for kind, name in self.symbols.leaves(formulas)
            if kind in ("field", "limit")
        }
        declared = (*self.symbols.fields, *self.symbols.limits)
        return tuple(name for name in declared if name in wanted)

    def buffer_size(
        self, scope: _Scope, buffer: Buffer, facts: FACTS
    ) -> tuple[list[StatementView], list[tuple[str, str]]]:
        """Statements, and the candidates for the largest size with a comment each."""
        body: list[StatementView] = []
        if not isinstance(buffer.extent, Uses):
            text = self.single_size(
                scope, buffer.extent, buffer.name, buffer.name, facts, body
            )
            return body, [(text, "")]
        parts = []
        for use in buffer.extent.items:
            known = facts
            if use.when is not None:
                known |= positive_when(use.when.expr, True)
            text = self.single_size(
                scope,
                use.extent,
                f"{buffer.name}_{use.name}",
                f"{buffer.name}.{use.name}",
                known,
                body,
            )
            if use.when is not None:
                gate = scope.text(use.when.expr, buffer.name, facts)
                text = f"{text} if {gate} else 0"
            parts.append((text, use.name))
        return body, parts

    def single_size(
        self,
        scope: _Scope,
        extent: SingleExtent,
        variable: str,
        what: str,
        facts: FACTS,
        body: list[StatementView],
    ) -> str:
        if isinstance(extent, Regions):
            statements, text = self.regions_size(scope, extent, variable, what, facts)
            body += statements
            return text
        return spell(self.size(scope, extent, what, facts))

    def size(
        self,
        scope: _Scope,
        extent: Shape | Bytes | LayoutCall,
        what: str,
        facts: FACTS = frozenset(),
    ) -> Expr:
        """The bytes of one extent."""
        match extent:
            case Shape(dtype, dims):
                count = [scope.tree(dim.expr, what, facts) for dim in dims]
                if dtype.bits % 8 == 0:
                    return product([*count, Int(dtype.bits // 8)])
                per_byte = 8 // dtype.bits
                raised = Binary("+", product(count), Int(per_byte - 1))
                return Binary("//", raised, Int(per_byte))
            case Bytes(value):
                return scope.tree(value.expr, what, facts)
            case LayoutCall(name, arguments):
                layout = self.symbols.layouts[name]
                given = dict(arguments)
                ordered = tuple(
                    scope.tree(given[each.name].expr, what, facts)
                    for each in layout.parameters
                )
                return scope.layout_bytes(layout, ordered)

    def pointer(self, buffer: Buffer) -> PointerView | None:
        if not isinstance(buffer.extent, LayoutCall):
            return None
        symbols = self.symbols
        layout = symbols.layouts[buffer.extent.layout]
        class_name = naming.layout_pointer_class(buffer.name)
        self.modules["layouts"].add("runtime.errors", "LayoutError")
        self.modules["layouts"].add("runtime.numeric", "check_int")
        self.modules["arena"].add("layouts", class_name)
        scope = self.scope(
            "arena",
            _dotted(
                symbols,
                field="config.",
                pure="config.",
                lever="levers.",
                target="target.",
            ),
        )
        tokens = ("limit", self.schema.token_limit.name)
        given = dict(buffer.extent.arguments)
        views = {
            each.name: ParameterView(each.name, PYTHON_TYPES[each.type], each.doc)
            for each in layout.parameters
        }
        asked = [
            each.name
            for each in layout.parameters
            if tokens in symbols.leaves([given[each.name].expr])
        ]
        reads_config = layout_reads_config(symbols, layout)
        bound = ["self.config"] if reads_config else []
        bound += [
            f"{each.name}={scope.text(given[each.name].expr, buffer.name)}"
            for each in layout.parameters
        ]
        return PointerView(
            buffer=buffer.name,
            class_name=class_name,
            layout_class=naming.layout_class(layout.name),
            layout=layout.name,
            parameters=tuple(view for name, view in views.items() if name in asked),
            fixed=tuple(view for name, view in views.items() if name not in asked),
            reads_config=reads_config,
            asked=", ".join(f"{name}={{{name}}}" for name in asked),
            most=", ".join(f"{name}={{self._{name}}}" for name in asked),
            bound=", ".join(bound),
        )

    def pointer_locals(self) -> tuple[StatementView, ...]:
        """What the layout arguments of all pointers read, as statements."""
        symbols = self.symbols
        spelling = _dotted(
            symbols,
            field="self.config.",
            pure="self.config.",
            limit="self.",
            lever="self.levers.",
            target="self.target.",
        )
        scope = self.scope("arena", spelling)
        exprs = [
            formula.expr
            for buffer in self.schema.buffers
            if isinstance(buffer.extent, LayoutCall)
            for _, formula in buffer.extent.arguments
        ]
        return self.locals_for(scope, exprs, limit="self.")

    def trim(self, trim: Trim) -> TrimView:
        scope = self.sizes_scope()
        condition = scope.text(trim.when.expr, trim.name)
        buffers = tuple(name for name, _ in trim.buffers)
        return TrimView(trim.name, trim.doc, condition, buffers)

    def log(self) -> tuple[str, tuple[str, ...]]:
        info = self.schema.arena
        token = self.schema.token_limit.name
        parts = ["%d tokens", "%.1f MiB in all"]
        arguments = [f"self.{token}", "sizes.total_bytes / 2**20"]
        for name in info.log_buffers:
            parts.append(f"{name} %.1f MiB")
            arguments.append(f"sizes.{name} / 2**20")
        parts += [f"{name}=%s" for name in info.log_fields]
        arguments += [f"self.config.{name}" for name in info.log_fields]
        label = info.label.replace("%", "%%")
        return f"{label}: " + ", ".join(parts), tuple(arguments)

    def scope(self, module: str, spelling: Callable[[str], str | None]) -> _Scope:
        return _Scope(self.symbols, module, self.modules[module], spelling)

    def imports(self) -> dict[str, tuple[str, ...]]:
        modules = self.modules
        sizes = modules["sizes"]
        sizes.add("buffers", "BUFFERS")
        sizes.add("config", "ModelConfig")
        sizes.add("levers", "Levers")
        sizes.add("runtime.info", "impossible_size")
        sizes.add("runtime.numeric", "MAX_SIZE", "check_int")
        sizes.add("target", "DEFAULT_TARGET", "Target")
        modules["buffers"].add("runtime.info", "BufferInfo")
        for field in self.schema.config:
            modules["config"].add("runtime.numeric", CHECKS[field.type])
        arena = modules["arena"]
        arena.add("buffers", "BUFFERS")
        arena.add("config", "ModelConfig")
        arena.add("levers", "Levers")
        arena.add("runtime.backend", "GpuBackend", "Stream")
        arena.add("runtime.checksum", "ChecksumReport", "checksum_buffer")
        arena.add("runtime.device", "NULL", "DevicePtr")
        arena.add("runtime.errors", "ReleasedError", "ReleaseError", "format_bytes")
        arena.add("runtime.host", "HostBackend")
        arena.add("runtime.numeric", "check_int")
        arena.add("runtime.memory", "Placement", "new_clear", "new_memory")
        if self.schema.groups:
            arena.add("runtime.errors", "ConfigError")
            arena.add("runtime.memory", "EMPTY_PLAN", "ZeroRange")
        if any(group.rows_method for group in self.schema.groups):
            arena.add("runtime.memory", "ZeroPlan")
        arena.add("sizes", "BufferSizes")
        arena.add("target", "DEFAULT_TARGET", "Target")
        if any(buffer.carve for buffer in self.schema.buffers):
            arena.add("runtime.slab", "Slab")
        if any(buffer.init is not None for buffer in self.schema.buffers):
            arena.add("runtime.fill", "fill")
        return {name: module.lines() for name, module in modules.items()}


def _limit(limit: Limit) -> LimitView:
    bounds = str(limit.minimum)
    if limit.maximum is not None:
        bounds += f", {limit.maximum}"
    return LimitView(limit.name, limit.doc, bounds, limit.tokens)


def _group(group: Group, schema: Schema, views: dict[str, BufferView]) -> GroupView:
    members = [
        each
        for each in schema.buffers
        if group.name in {name for name, _ in each.groups}
    ]
    return GroupView(
        name=group.name,
        doc=group.doc,
        method=group.method,
        rows_method=group.rows_method or "",
        buffers=tuple(views[each.name] for each in members),
    )


def _dotted(
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

    def spelling(name: str) -> str | None:
        kind = symbols.kinds.get(name)
        if kind == "let":
            if pure and pure_config(symbols, symbols.lets[name]):
                return pure + name
            return let + name
        if kind == "limit" and name in symbols.by_symbol:
            return name
        prefixes = {"field": field, "limit": limit, "lever": lever, "target": target}
        return prefixes.get(kind or "", "") + name

    return spelling


def _needed(
    statements: Iterable[StatementView], texts: Iterable[str]
) -> tuple[StatementView, ...]:
    """The statements whose names occur in the texts, or in needed statements."""
    wanted = " ".join(texts)
    kept: list[StatementView] = []
    for statement in reversed(list(statements)):
        if re.search(rf"\b{statement.name}\b", wanted):
            kept.append(statement)
            wanted += " " + statement.value
    return tuple(reversed(kept))


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
