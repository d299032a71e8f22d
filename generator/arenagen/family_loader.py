"""Loading the family table: YAML text to families, with everything wrong in it.

Owns the table's own checks. Takes text and returns a `FamilyTable`.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from . import naming, source
from .errors import InputProblems, Problem, Span, did_you_mean
from .families import FamilyTable
from .family import FUNCTIONS, Family, Indexes, Key, Words, may_fail
from .formula import (
    FUNCTION_HINTS,
    TYPE_WORDS,
    Expr,
    FormulaError,
    Type,
    UnknownFunction,
    UnknownName,
    infer,
    names,
)
from .load import TYPES, formula_problem, parse_formula
from .model import Formula
from .source import Node, Scalar, plain
from .structure import check_structure

# Names that an emitted function uses beside the keys.
LOCALS = frozenset({"config", "file", "keys"})
# What does not go with a key of a type.
_OF_A_LIST = frozenset({"words", "letters", "numbers", "indexes", "length"})
_MISPLACED: dict[Type, frozenset[str]] = {
    "int": _OF_A_LIST,
    "bool": _OF_A_LIST | {"minimum", "largest"},
    "str": _OF_A_LIST | {"minimum", "largest"},
    "list": frozenset({"largest"}),
}


def load_families(text: str, file: str) -> FamilyTable:
    """The table in a YAML text. Raises InputProblems with everything wrong in it."""
    root = source.parse(text, file)
    if not isinstance(root, source.Mapping):
        problem = Problem("AR022", "the file is not a mapping of families", root.span)
        raise InputProblems([problem])
    if problems := check_structure(root, families=True):
        raise InputProblems(problems)
    loader = _Loader(root)
    table = loader.table()
    if loader.problems:
        raise InputProblems(loader.problems)
    return table


class _Loader:
    def __init__(self, root: source.Mapping) -> None:
        self.problems: list[Problem] = []
        self._told: set[tuple[Span, str]] = set()
        self._checked: set[tuple[object, ...]] = set()
        self._good_names: set[tuple[str, str]] = set()
        self._nodes = {
            str(key.value): (key, node) for key, node in _in(root, "families")
        }
        self._trees: dict[str, Expr] = {}
        self._families: dict[str, Family] = {}
        self._words: dict[str, Words] = {}
        for key, node in _in(root, "words"):
            self._check_name("table", key)
            data = plain(node)
            words = Words(str(key.value), _doc(data), data["table"])
            self._words[words.name] = words
        size_keys = root.get("size_keys")
        self._size_keys = tuple(plain(size_keys)) if size_keys else ()

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
        return FamilyTable(families, self._size_keys)

    def _family(self, name: str, chain: tuple[str, ...]) -> Family:
        if name in self._families:
            return self._families[name]
        key, node = self._nodes[name]
        self._check_name("family", key)
        base = self._base(node.get("extends"), (*chain, name))
        values = node.values
        keys = dict(base.keys) if base else {}
        for each, content in _in(node, "keys"):
            keys[str(each.value)] = self._key(each, content)
        keys = self._in_order(keys)
        fields = dict(base.fields) if base else {}
        formulas = values.get("fields")
        if isinstance(formulas, source.Mapping):
            for each, formula in formulas.entries():
                fields[str(each.value)] = self._formula(formula)
        data = {
            word: plain(value)
            for word, value in values.items()
            if word not in ("keys", "fields")
        }
        for end in ("inner", "refuse"):
            for other in ("extends", "sections", "keys", "fields", "ignores", "warn"):
                if end in values and other in values:
                    span = node.key(other).span
                    message = f"`{other}` does not go with `{end}`"
                    hint = "such a family reads nothing itself"
                    self._report("AR111", message, span, hint=hint)
        self._families[name] = Family(
            name=name,
            doc=_doc(data),
            model_types=tuple(data.get("model_types", ())),
            marks=tuple(data.get("marks", ())),
            sections=tuple(data.get("sections", base.sections if base else ())),
            inner=tuple(data.get("inner", ())),
            keys=keys,
            fields=fields,
            ignores=(
                *(base.ignores if base else ()),
                *self._ignores(values.get("ignores")),
            ),
            warn=data.get("warn"),
            refuse=data.get("refuse"),
            node=key,
        )
        return self._families[name]

    def _ignores(self, listed: Node | None) -> list[str]:
        ignored: list[str] = plain(listed) if listed else []
        for name in ignored:
            if name not in self._size_keys:
                assert listed is not None
                hint = did_you_mean(name, self._size_keys) or "nothing warns of it"
                message = f"`{name}` is none of `size_keys`"
                self._report("AR112", message, listed.span, hint=hint)
        return ignored

    def _in_order(self, keys: dict[str, Key]) -> dict[str, Key]:
        """The keys, each behind those that its formulas read."""
        ordered: dict[str, Key] = {}

        def add(key: Key, chain: tuple[str, ...]) -> None:
            if key.name in chain:
                ring = " -> ".join(f"`{each}`" for each in (*chain, key.name))
                message = f"`{key.name}` is read for itself: {ring}"
                hint = "read one of them without the other"
                self._report("AR110", message, key.span, hint=hint)
            elif key.name not in ordered:
                for name in keys if key.reads else ():
                    if name in key.reads:
                        add(keys[name], (*chain, key.name))
                ordered[key.name] = key

        for key in keys.values():
            add(key, ())
        return ordered

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
        data, values = plain(node), node.values
        kind = TYPES[data.get("type", "int")]
        for word in sorted(_MISPLACED[kind] & data.keys()):
            self._report(
                "AR093",
                f"`{word}` does not go with a key of type {data.get('type', 'int')}",
                node.key(word).span,
            )
        indexes = data.get("indexes")
        if indexes is not None:
            for word in sorted(
                {"minimum", "words", "letters", "numbers"} & data.keys()
            ):
                message = f"`{word}` does not go with `indexes`"
                self._report("AR093", message, node.key(word).span)
            if "length" not in data:
                message = "`indexes` need the `length` of the list that they are in"
                self._report("AR093", message, node.key("indexes").span)
                indexes = None
        required = self._optional_formula(values.get("required"))
        default = self._optional_formula(values.get("default"))
        length = self._optional_formula(values.get("length"))
        return Key(
            name=name,
            type=kind,
            names=tuple(data.get("names", [name])),
            required=required,
            default=default,
            absent=tuple(data.get("absent", ())),
            minimum=data.get("minimum", 0),
            largest=data.get("largest", False),
            words=self._table(values.get("words")),
            letters=self._table(values.get("letters")),
            numbers=self._table(values.get("numbers")),
            indexes=indexes and Indexes(**{"base": 0, **indexes}),
            length=length,
            reads=frozenset(
                read.name
                for formula in (required, default, length)
                if formula is not None
                for read in names(formula.expr)
            ),
            fallible=default is not None and may_fail(default),
            node=key,
        )

    def _table(self, given: Node | None) -> Words | None:
        if given is None:
            return None
        name = str(plain(given))
        if name not in self._words:
            hint = did_you_mean(name, list(self._words))
            message = f"no table of words is named `{name}`"
            self._report("AR094", message, given.span, hint=hint)
        return self._words.get(name)

    def _optional_formula(self, given: Node | None) -> Formula | None:
        return None if given is None else self._formula(given)

    def _formula(self, node: Node) -> Formula:
        assert isinstance(node, Scalar)
        formula, problem = parse_formula(node, self._trees)
        if problem is not None:
            self.problems.append(problem)
        return formula

    def _check_name(self, what: str, key: Scalar) -> None:
        name = str(key.value)
        if (what, name) in self._good_names:
            return
        why = naming.bad_identifier(name) if what == "key" else naming.bad_member(name)
        if not why and not naming.PACKAGE.fullmatch(name):
            why = "is not in lower case"
        if not why and name in LOCALS:
            why = "is used by the emitted code itself"
        if why:
            self._report("AR090", f"the {what} `{name}` {why}", key.span)
        else:
            self._good_names.add((what, name))

    def _check_formulas(self, family: Family) -> None:
        types = {key.name: key.type for key in family.keys.values()}
        for key in family.keys.values():
            # Most are a base's, and read what they read there.
            case = id(key), *map(types.get, key.reads)
            if case not in self._checked:
                self._checked.add(case)
                for what, formula, kind in key.formulas:
                    self._check_formula(formula, types, what, kind)
        for formula in family.fields.values():
            self._check_formula(formula, types, "", None)

    def _check_formula(
        self,
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
        except UnknownFunction as error:
            code, fault = "AR042", error
            fault.hint = FUNCTION_HINTS.get(error.name) or did_you_mean(
                error.name, list(FUNCTIONS)
            )
        except FormulaError as error:
            fault = error
        problem = formula_problem(code, fault, formula.scalar)
        # Families that extend this one have the formula too.
        if (problem.span, problem.message) not in self._told:
            self._told.add((problem.span, problem.message))
            self.problems.append(problem)

    def _report(self, code: str, message: str, span: Span, **more: Any) -> None:
        self.problems.append(Problem(code, message, span, **more))


def _in(node: source.Mapping, section: str) -> Iterator[tuple[Scalar, source.Mapping]]:
    table = node.get(section)
    if isinstance(table, source.Mapping):
        for key, value in table.entries():
            assert isinstance(value, source.Mapping)
            yield key, value


def _doc(data: Mapping[str, str]) -> str:
    return " ".join(data["doc"].split())
