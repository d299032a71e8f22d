"""The config, levers and sizing helpers of a package, as views."""

from __future__ import annotations

from .formula import infer, names, quote
from .lower_scope import (
    CHECKS,
    EMPTY,
    PYTHON_TYPES,
    Lowering,
    lever_bounds,
    python_literal,
)
from .model import Field, Function, Lever
from .plan_declared import FieldView, FunctionView, LeverView, PropertyView
from .plan_parts import ParameterView, StatementView
from .symbols import let_order, pure_config


class ConfigLowering(Lowering):
    """Lowers sections `config`, `levers`, `let` and `functions`."""

    def field(self, field: Field) -> FieldView:
        default, derived = EMPTY[field.type], ""
        if field.default is not None:
            value = field.default.expr
            default = self.scope("config").text(value, field.name)
            if any(names(value)):
                default, derived = "DERIVED", default
        check = f"{CHECKS[field.type]}({quote(field.name)}, {field.name})"
        return FieldView(
            field.name,
            PYTHON_TYPES[field.type],
            default,
            field.doc,
            check,
            derived,
            normalised=field.type == "list",
        )

    def shares(self) -> tuple[str, ...]:
        """What a rank has of each field that ranks share, as arguments."""
        imports = self.modules["config"]
        shares = []
        for field in self.schema.config:
            if field.shard:
                helper = f"split_{field.shard}"
                imports.add("runtime.numeric", "check_int")
                imports.add("runtime.shard", helper)
                arguments = f"{quote(field.name)}, self.{field.name}, tp"
                shares.append(f"{field.name}={helper}({arguments})")
        return tuple(shares)

    def shard_docs(self) -> tuple[str, ...]:
        """Paragraphs on what ranks share."""
        parts = []
        for kind, what in (
            ("heads", "Divided evenly"),
            ("kv_heads", "Divided evenly, or one copied to each where ranks are more"),
        ):
            named = [each.name for each in self.schema.config if each.shard == kind]
            if named:
                parts.append(f"{what}: {', '.join(named)}.")
        return (
            "The config of one of `tp` tensor-parallel ranks.",
            " ".join([*parts, "All else stays."]),
            "Raise ConfigError with the field, its value and tp where it cannot be.",
        )

    def properties(self) -> tuple[PropertyView, ...]:
        symbols = self.symbols
        for let in let_order(self.schema.lets, symbols.lets):
            symbols.types[let.name] = infer(
                let.value.expr, symbols.types, symbols.signatures
            )
        scope = self.scope("config", field="self.", let="self.")
        return tuple(
            PropertyView(
                let.name,
                PYTHON_TYPES[symbols.types[let.name]],
                let.doc,
                scope.text(let.value.expr, let.name),
            )
            for let in self.schema.lets
            if pure_config(symbols, let)
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
        target = f"{quote(lever.name)}, {lever.name}"
        check = CHECKS[lever.type]
        self.modules["levers"].add("runtime.numeric", check)
        if lever.type != "int":
            return f"{check}({target})"
        least, most = lever_bounds(lever)
        return f"{check}({target}, {least}, {most})"

    def function(self, function: Function) -> FunctionView:
        symbols = self.symbols
        scope = self.arguments_scope("functions")
        expr = function.value.expr
        kinds = {kind for kind, _ in symbols.call_leaves(function.name)}
        parameters = tuple(
            ParameterView(each.name, PYTHON_TYPES[each.type], each.doc)
            for each in function.parameters
        )
        if symbols.reads_config(function.name):
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
