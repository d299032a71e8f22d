"""The family table as straight-line Python: what `families.py.jinja` sees.

One function a family: the keys that formulas read become locals, in order; the others
are read where the model config is made. Everything is a final string here.
"""

from __future__ import annotations

from typing import TypeAlias

from .emit import Emitter
from .families import FamilyTable
from .family import Family, Indexes, Key, Words, plain_key
from .formula import Bool, Call, Expr, Int, Name, Str, Type, names, quote
from .imports import Imports
from .model import Field, Formula, Schema
from .record import record

GETTERS: dict[Type, str] = {
    "int": "integer",
    "bool": "flag",
    "str": "text",
    "list": "texts",
}
# Defaults that are what such a call gives for a key that is not there.
NOTHING = (Int(0), Bool(False), Str(""))
# The calls that read keys, by a key and what else they depend on: families share them.
Getters: TypeAlias = dict[tuple[int, frozenset[str]], str]


@record
class WordsView:
    """A table of words, as a constant."""

    name: str
    doc: str
    entries: tuple[str, ...]


@record
class ReadView:
    """`name = read`; with `otherwise`, only when `there`, else that."""

    name: str
    read: str
    there: str
    otherwise: str


@record
class FamilyView:
    """The function of one family.

    `refuse` is why it takes no file, `inner` finds the file inside it, `warn` is what
    an arena lacks for it, `note` warns of what was not read.
    """

    function: str
    name: str
    doc: str
    inner: str
    keys: str
    reads: tuple[ReadView, ...]
    arguments: tuple[str, ...]
    warn: str
    note: str
    refuse: str


@record
class FamiliesView:
    """Everything that the template sees."""

    imports: tuple[str, ...]
    words: tuple[WordsView, ...]
    size_keys: tuple[str, ...]
    families: tuple[FamilyView, ...]
    model_types: tuple[str, ...]
    marks: tuple[str, ...]
    choose: str


def lower_families(table: FamilyTable, schema: Schema) -> FamiliesView:
    """The view of a table that fits the schema."""
    imports = Imports()
    imports.add("config", "ModelConfig")
    imports.add("runtime.hf", "HfFile")
    words: dict[str, Words] = {}
    plain = {
        each.name: plain_key(each)
        for each in schema.config
        if each.name not in table.mentioned
    }
    getters: Getters = {}
    families = []
    for family in table.families.values():
        if family.model_types:
            lowering = _Lowering(family, table, schema, imports, plain, getters)
            families.append(lowering.family_view())
            words |= {each.name: each for each in lowering.words}
    marks = {
        model_type: family.marks
        for model_type, family in table.by_model_type.items()
        if family.marks
    }
    return FamiliesView(
        imports=imports.lines(),
        size_keys=tuple(map(quote, table.size_keys)),
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
        marks=tuple(
            f"{quote(model_type)}: ({', '.join(map(quote, names))},)"
            for model_type, names in marks.items()
        ),
        choose="choose(_FAMILIES, _MARKS)" if marks else "choose(_FAMILIES)",
    )


class _Lowering:
    def __init__(
        self,
        family: Family,
        table: FamilyTable,
        schema: Schema,
        imports: Imports,
        plain: dict[str, Key],
        getters: Getters,
    ) -> None:
        self.family = family
        self.table = table
        self.schema = schema
        self.imports = imports
        self.words: list[Words] = []
        self._keys = {key.name: key for key in family.keys_first(schema.config)}
        self._positive = frozenset(
            key.name
            for key in self._keys.values()
            if key.always_required and key.minimum
        )
        self._plain = plain
        self._getters = getters
        self._asked: set[str] = set()
        self._what = ""
        helpers = imports.of("runtime.numeric")
        self._emitter = Emitter(Name, self._call, {}, lambda _: True, helpers=helpers)

    def family_view(self) -> FamilyView:
        family = self.family
        arguments = ((each.name, self.argument(each)) for each in self.schema.config)
        return FamilyView(
            function=_function(family),
            name=quote(family.name),
            doc=family.doc,
            inner=self._of_the_file("inner", family.inner) if family.inner else "",
            keys=self._of_the_file("keys", family.sections),
            reads=tuple(self.read(key) for key in self._keys.values()),
            arguments=tuple(f"{name}={text}" for name, text in arguments if text),
            warn=family.warn or "",
            note=self.note(),
            refuse=family.refuse or "",
        )

    def _of_the_file(self, method: str, sections: tuple[str, ...]) -> str:
        names = (self.family.name, *sections)
        return f"file.{method}({', '.join(map(quote, names))})"

    def note(self) -> str:
        """The call that notes what the file has beside what was asked of it."""
        if not self.table.size_keys:
            return ""
        plain = {name for key in self._plain.values() for name in key.names}
        known = (self.family.known_names | plain) - self._asked
        ignored = (quote(each) for each in self.table.size_keys if each in known)
        return f"keys.note_unread({', '.join(('_SIZE_KEYS', *ignored))})"

    def read(self, key: Key) -> ReadView:
        there = otherwise = ""
        if key.default is not None and key.fallible:
            there = _has(key)
            otherwise = self.text(key.default, key.name)
        return ReadView(key.name, self.getter(key), there, otherwise)

    def getter(self, key: Key) -> str:
        """The call that reads a key."""
        self._asked.update(key.names)
        case = id(key), self._positive & key.reads
        if case not in self._getters:
            self._getters[case] = self.new_getter(key)
        return self._getters[case]

    def new_getter(self, key: Key) -> str:
        options = [quote(each) for each in key.names]
        formulas = (
            ("required", key.required),
            ("default", None if key.fallible else key.default),
            ("length", key.length),
        )
        for option, formula in formulas:
            if formula is not None:
                options.append(f"{option}={self.text(formula, key.name)}")
        if key.absent:
            options.append(_absent(key))
        if key.minimum:
            options.append(f"minimum={key.minimum}")
        if key.largest:
            options.append("largest=True")
        tables = (
            ("words", key.words),
            ("letters", key.letters),
            ("numbers", key.numbers),
        )
        for option, words in tables:
            if words is not None:
                self.words.append(words)
                options.append(f"{option}={_constant(words)}")
        getter = GETTERS[key.type]
        if key.indexes is not None:
            getter = "spread"
            options += _spread(key.indexes)
        return f"keys.{getter}({', '.join(options)})"

    def argument(self, field: Field) -> str:
        """The value of a field, "" where it is the default of the model config."""
        if field.name == "model_type":
            return "file.model_type"
        if field.name in self.family.fields:
            return self.text(self.family.fields[field.name], field.name)
        key = self.family.keys.get(field.name)
        if key is not None:
            return field.name if field.name in self._keys else self.getter(key)
        key = self._plain.get(field.name)
        if key is None:
            return ""
        if field.default is None or field.default.expr in NOTHING:
            return self.getter(key)
        if any(names(field.default.expr)):
            self.imports.add("config", "DERIVED")
            otherwise = "DERIVED"
        else:
            otherwise = self.text(field.default, field.name)
        return f"{self.getter(key)} if {_has(key)} else {otherwise}"

    def text(self, formula: Formula, what: str) -> str:
        self._what = what
        return self._emitter.text(formula.expr, what, self._positive)

    def _call(self, name: str, arguments: tuple[Expr, ...]) -> Expr:
        return Call(f"keys.{name}", (Str(self._what), *arguments))


def _function(family: Family) -> str:
    return f"_{family.name}"


def _has(key: Key) -> str:
    options = [*map(quote, key.names), *([_absent(key)] if key.absent else [])]
    return f"keys.has({', '.join(options)})"


def _absent(key: Key) -> str:
    return f"absent=({', '.join(map(quote, key.absent))},)"


def _spread(indexes: Indexes) -> list[str]:
    options = [f"word={quote(indexes.word)}", f"others={quote(indexes.others)}"]
    return [*options, f"base={indexes.base}"] if indexes.base else options


def _constant(words: Words) -> str:
    return f"_{words.name.upper()}"
