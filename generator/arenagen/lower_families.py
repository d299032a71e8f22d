"""The family table as straight-line Python: what `families.py.jinja` sees.

One function a family: the keys that formulas read become locals, in order; the others
are read where the model config is made. Everything is a final string here.
"""

from __future__ import annotations

from dataclasses import dataclass

from .emit import Emitter
from .errors import InputProblems
from .families import FamilyTable
from .family import Family, Key, Words, plain_key
from .formula import Call, Expr, Name, Str, Type, names, quote
from .imports import Imports
from .model import Field, Formula, Schema

GETTERS: dict[Type, str] = {
    "int": "integer",
    "bool": "flag",
    "str": "text",
    "list": "texts",
}


@dataclass(frozen=True, slots=True)
class WordsView:
    """A table of words, as a constant."""

    name: str
    doc: str
    entries: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class ReadView:
    """`name = read`; with `otherwise`, only when `there`, else that."""

    name: str
    read: str
    there: str
    otherwise: str


@dataclass(frozen=True, slots=True)
class FamilyView:
    """The function of one family; `refuse` is why it takes no file."""

    function: str
    name: str
    doc: str
    keys: str
    reads: tuple[ReadView, ...]
    arguments: tuple[str, ...]
    refuse: str


@dataclass(frozen=True, slots=True)
class FamiliesView:
    """Everything that the template sees."""

    imports: tuple[str, ...]
    words: tuple[WordsView, ...]
    families: tuple[FamilyView, ...]
    model_types: tuple[str, ...]


def lower_families(table: FamilyTable, schema: Schema) -> FamiliesView:
    """The view of a table. Raises InputProblems where it does not fit the schema."""
    if problems := table.check(schema):
        raise InputProblems(problems)
    imports = Imports()
    imports.add("config", "ModelConfig")
    imports.add("runtime.hf", "HfFile")
    words: dict[str, Words] = {}
    families = []
    for family in table.families.values():
        if family.model_types:
            lowering = _Lowering(family, schema, imports)
            families.append(lowering.family_view())
            words |= {each.name: each for each in lowering.words}
    return FamiliesView(
        imports=imports.lines(),
        words=tuple(
            WordsView(
                _constant(each),
                each.doc,
                tuple(f"{quote(a)}: {quote(b)}" for a, b in each.table.items()),
            )
            for each in words.values()
        ),
        families=tuple(families),
        model_types=tuple(
            f"{quote(model_type)}: {_function(family)}"
            for model_type, family in table.by_model_type.items()
        ),
    )


class _Lowering:
    def __init__(self, family: Family, schema: Schema, imports: Imports) -> None:
        self.family = family
        self.schema = schema
        self.imports = imports
        self.words: list[Words] = []
        self._keys = family.keys_first(schema)
        self._what = ""
        self._emitter = Emitter(Name, self._call, {}, lambda _: True)

    def family_view(self) -> FamilyView:
        family = self.family
        sections = (quote(each) for each in (family.name, *family.sections))
        return FamilyView(
            function=_function(family),
            name=quote(family.name),
            doc=family.doc,
            keys=f"file.keys({', '.join(sections)})",
            reads=tuple(self.read(key) for key in self._keys),
            arguments=tuple(
                f"{field.name}={self.argument(field)}" for field in self.schema.config
            ),
            refuse=family.refuse or "",
        )

    def read(self, key: Key) -> ReadView:
        there = otherwise = ""
        if key.default is not None and key.fallible:
            there = _has(key)
            otherwise = self.text(key.default, key.name)
        return ReadView(key.name, self.getter(key), there, otherwise)

    def getter(self, key: Key) -> str:
        """The call that reads a key."""
        options = [quote(each) for each in key.names]
        formulas = (
            ("required", key.required),
            ("default", None if key.fallible else key.default),
            ("length", key.length),
        )
        for option, formula in formulas:
            if formula is not None:
                options.append(f"{option}={self.text(formula, key.name)}")
        if key.minimum:
            options.append(f"minimum={key.minimum}")
        for option, words in (("words", key.words), ("letters", key.letters)):
            if words is not None:
                self.words.append(words)
                options.append(f"{option}={_constant(words)}")
        return f"keys.{GETTERS[key.type]}({', '.join(options)})"

    def argument(self, field: Field) -> str:
        """The value of a field."""
        if field.name == "model_type":
            return "file.model_type"
        if field.name in self.family.fields:
            return self.text(self.family.fields[field.name], field.name)
        key = self.family.keys.get(field.name)
        if key is not None:
            return field.name if key in self._keys else self.getter(key)
        key = plain_key(field)
        if field.default is None:
            return self.getter(key)
        if any(names(field.default.expr)):
            self.imports.add("config", "DERIVED")
            otherwise = "DERIVED"
        else:
            otherwise = self.text(field.default, field.name)
        return f"{self.getter(key)} if {_has(key)} else {otherwise}"

    def text(self, formula: Formula, what: str) -> str:
        self._what = what
        positive = frozenset(
            key.name for key in self._keys if key.always_required and key.minimum
        )
        text = self._emitter.text(formula.expr, what, positive)
        self.imports.add("runtime.numeric", *self._emitter.helpers)
        return text

    def _call(self, name: str, arguments: tuple[Expr, ...]) -> Expr:
        assert name == "divide"
        return Call("keys.divide", (Str(self._what), *arguments))


def _function(family: Family) -> str:
    return f"_{family.name}"


def _has(key: Key) -> str:
    return f"keys.has({', '.join(map(quote, key.names))})"


def _constant(words: Words) -> str:
    return f"_{words.name.upper()}"
