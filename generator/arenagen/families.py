"""The family table: which families there are, and how their files are read.

Owns the table's loading and checks, and the way from a file to a schema's config.
Takes text and data, never a path.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from . import naming, resources, source
from .errors import InputProblems, Problem, Span, did_you_mean, nearest
from .evaluate import Value
from .family import (
    FUNCTIONS,
    ConfigFileError,
    Family,
    Key,
    Words,
    read_config,
    read_fields,
    wrong,
)
from .formula import (
    FUNCTION_HINTS,
    TYPE_WORDS,
    FormulaError,
    Type,
    UnknownFunction,
    UnknownName,
    infer,
)
from .load import TYPES, formula_problem, parse_formula
from .model import Formula, Schema
from .source import Node, Scalar, plain
from .structure import check_structure

__all__ = [
    "Canonical",
    "ConfigFileError",
    "Family",
    "FamilyTable",
    "Key",
    "load_families",
    "read_config",
]

# Names that an emitted function uses beside the keys.
LOCALS = frozenset({"file", "keys"})


@dataclass(frozen=True, slots=True)
class Canonical:
    """A file in the schema's terms: a value for every field of its config."""

    family: str
    model_type: str
    fields: dict[str, Value]


@dataclass(frozen=True, slots=True)
class FamilyTable:
    """Every family of a table, bases included."""

    families: dict[str, Family]

    @property
    def by_model_type(self) -> dict[str, Family]:
        """The family of every model_type, in the table's order."""
        return {
            model_type: family
            for family in self.families.values()
            for model_type in family.model_types
        }

    def check(self, schema: Schema) -> list[Problem]:
        """Where a key or a field has another type than the schema's field."""
        problems = []
        for family in self.families.values():
            types = {key.name: key.type for key in family.keys.values()}
            for each in schema.config:
                if formula := family.fields.get(each.name):
                    span = formula.scalar.span
                    found = infer(formula.expr, types, FUNCTIONS)
                elif each.name in types:
                    span, found = family.keys[each.name].span, types[each.name]
                else:
                    continue
                if found != each.type:
                    message = (
                        f"`{each.name}` is {TYPE_WORDS[found]} in the family "
                        f"`{family.name}` and {TYPE_WORDS[each.type]} in the schema"
                    )
                    related = (("schema", each.span),)
                    problems.append(Problem("AR095", message, span, related=related))
        return problems

    def canonical(
        self, raw: Mapping[str, object], schema: Schema, file: str = "config.json"
    ) -> Canonical:
        """What a file means to a schema.

        Raises ConfigFileError, which names the file, for the first thing that is
        missing or wrong in it; InputProblems where the table does not fit the schema.
        """
        if problems := self.check(schema):
            raise InputProblems(problems)
        known = self.by_model_type
        model_type = raw.get("model_type", "")
        if model_type is not None and not isinstance(model_type, str):
            raise wrong(f"{file}: model_type", model_type, "a str")
        hint = f"known: {', '.join(known)}"
        if not model_type:
            raise ConfigFileError(f"{file}: model_type is missing; {hint}")
        if model_type not in known:
            if close := nearest(model_type, known):
                hint = f"did you mean {close}? {hint}"
            shown = repr(model_type[:80])
            raise ConfigFileError(f"{file}: model_type {shown} is not known; {hint}")
        family = known[model_type]
        fields = read_fields(raw, family, schema, file)
        return Canonical(family.name, model_type, fields)


def load_families(text: str, file: str) -> FamilyTable:
    """The table in a YAML text. Raises InputProblems with everything wrong in it."""
    root = source.parse(text, file)
    if not isinstance(root, source.Mapping):
        problem = Problem("AR022", "the file is not a mapping of families", root.span)
        raise InputProblems([problem])
    if problems := check_structure(root, resources.families_schema()):
        raise InputProblems(problems)
    loader = _Loader(root)
    table = loader.table()
    if loader.problems:
        raise InputProblems(loader.problems)
    return table


class _Loader:
    def __init__(self, root: source.Mapping) -> None:
        self.problems: list[Problem] = []
        self._nodes = {
            str(key.value): (key, node) for key, node in _in(root, "families")
        }
        self._families: dict[str, Family] = {}
        self._words: dict[str, Words] = {}
        for key, node in _in(root, "words"):
            self._check_name("table", key)
            data = plain(node)
            words = Words(str(key.value), _doc(data), data["table"])
            self._words[words.name] = words

    def table(self) -> FamilyTable:
        families = {name: self._family(name, ()) for name in self._nodes}
        first: dict[str, Family] = {}
        for family in families.values():
            self._check_formulas(family)
            for model_type in family.model_types:
                other = first.setdefault(model_type, family)
                if other is not family:
                    self._report(
                        "AR092",
                        f"the model_type `{model_type}` names two families",
                        family.span,
                        related=(("the other one", other.span),),
                    )
        return FamilyTable(families)

    def _family(self, name: str, chain: tuple[str, ...]) -> Family:
        if name in self._families:
            return self._families[name]
        key, node = self._nodes[name]
        self._check_name("family", key)
        base = self._base(node.get("extends"), (*chain, name))
        keys = dict(base.keys) if base else {}
        for each, content in _in(node, "keys"):
            keys[str(each.value)] = self._key(each, content)
        fields = dict(base.fields) if base else {}
        formulas = node.get("fields")
        if isinstance(formulas, source.Mapping):
            for each, formula in formulas.entries:
                fields[str(each.value)] = self._formula(formula)
        data = plain(node)
        self._families[name] = Family(
            name=name,
            doc=_doc(data),
            model_types=tuple(data.get("model_types", ())),
            sections=tuple(data.get("sections", base.sections if base else ())),
            keys=keys,
            fields=fields,
            refuse=data.get("refuse"),
            span=key.span,
        )
        return self._families[name]

    def _base(self, node: Node | None, chain: tuple[str, ...]) -> Family | None:
        if node is None:
            return None
        name = str(plain(node))
        if name in chain:
            ring = " -> ".join(f"`{each}`" for each in (*chain, name))
            message = f"`{chain[-1]}` extends itself: {ring}"
            hint = "break the ring"
        elif name not in self._nodes:
            message = f"no family is named `{name}`"
            hint = did_you_mean(name, list(self._nodes))
        else:
            return self._family(name, chain)
        self._report("AR091", message, node.span, hint=hint)
        return None

    def _key(self, key: Scalar, node: source.Mapping) -> Key:
        name = str(key.value)
        self._check_name("key", key)
        data = plain(node)
        kind = TYPES[data.get("type", "int")]
        misplaced = {"words", "letters", "length"} if kind != "list" else set()
        misplaced |= {"minimum"} if kind in ("bool", "str") else set()
        for word in sorted(misplaced & data.keys()):
            self._report(
                "AR093",
                f"`{word}` does not go with a key of type {data.get('type', 'int')}",
                node.key(word).span,
            )
        return Key(
            name=name,
            type=kind,
            names=tuple(data.get("names", [name])),
            required=self._optional_formula(node, "required"),
            default=self._optional_formula(node, "default"),
            minimum=data.get("minimum", 0),
            words=self._table(node, "words"),
            letters=self._table(node, "letters"),
            length=self._optional_formula(node, "length"),
            span=key.span,
        )

    def _table(self, node: source.Mapping, key: str) -> Words | None:
        given = node.get(key)
        if given is None:
            return None
        name = str(plain(given))
        if name not in self._words:
            hint = did_you_mean(name, list(self._words))
            message = f"no table of words is named `{name}`"
            self._report("AR094", message, given.span, hint=hint)
        return self._words.get(name)

    def _optional_formula(self, node: source.Mapping, key: str) -> Formula | None:
        given = node.get(key)
        return None if given is None else self._formula(given)

    def _formula(self, node: Node) -> Formula:
        assert isinstance(node, Scalar)
        formula, problem = parse_formula(node)
        if problem is not None:
            self.problems.append(problem)
        return formula

    def _check_name(self, what: str, key: Scalar) -> None:
        name = str(key.value)
        why = naming.bad_identifier(name) if what == "key" else naming.bad_member(name)
        if not why and not naming.PACKAGE.fullmatch(name):
            why = "is not in lower case"
        if not why and name in LOCALS:
            why = "is used by the emitted code itself"
        if why:
            self._report("AR090", f"the {what} `{name}` {why}", key.span)

    def _check_formulas(self, family: Family) -> None:
        types: dict[str, Type] = {}
        for key in family.keys.values():
            for what, formula, kind in key.formulas:
                self._check_formula(family, formula, types, what, kind)
            types[key.name] = key.type
        for formula in family.fields.values():
            self._check_formula(family, formula, types, "", None)

    def _check_formula(
        self,
        family: Family,
        formula: Formula,
        types: Mapping[str, Type],
        what: str,
        wanted: Type | None,
    ) -> None:
        code = "AR043"
        try:
            found = infer(formula.expr, types, FUNCTIONS)
            if wanted in (None, found):
                return
            message = f"{what} is {TYPE_WORDS[found]}; it must be {TYPE_WORDS[wanted]}"
            fault = FormulaError(message, formula.expr.at)
        except UnknownName as error:
            code, fault = "AR041", error
            fault.hint = did_you_mean(error.name, list(types))
            if error.name in family.keys:
                fault.hint = "keys are read in order, and this one comes later"
        except UnknownFunction as error:
            code, fault = "AR042", error
            fault.hint = FUNCTION_HINTS.get(error.name) or did_you_mean(
                error.name, list(FUNCTIONS)
            )
        except FormulaError as error:
            fault = error
        self.problems.append(formula_problem(code, fault, formula.scalar))

    def _report(self, code: str, message: str, span: Span, **more: Any) -> None:
        self.problems.append(Problem(code, message, span, **more))


def _in(node: source.Mapping, section: str) -> Iterator[tuple[Scalar, source.Mapping]]:
    table = node.get(section)
    if isinstance(table, source.Mapping):
        for key, value in table.entries:
            assert isinstance(value, source.Mapping)
            yield key, value


def _doc(data: Mapping[str, str]) -> str:
    return " ".join(data["doc"].split())
