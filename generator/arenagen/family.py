"""One model family, and reading a Hugging Face config.json by it.

Owns the family's model and everything that can be wrong in a file. Takes bytes and
data, never a path; the words of an error name the file, the family and the key. Knows
no family: all that differs between them is in the table.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from .errors import ArenagenError, Span
from .evaluate import EvaluationError, Value, evaluate
from .formula import BUILTINS, Binary, Bool, Call, Expr, Signature, Type, names, walk
from .model import Field, Formula, Schema

MAX_CONFIG_BYTES = 16 * 1024 * 1024
# Functions of a family's formulas: divide(a, b) is a quotient that comes out even.
FUNCTIONS = BUILTINS | {"divide": Signature(("int", "int"), "int")}
EMPTY: dict[Type, Value] = {"int": 0, "bool": False, "str": "", "list": ()}
_SHOWN_CHARACTERS = 80


class ConfigFileError(ArenagenError):
    """A config.json that cannot be read, says too little, or says nonsense."""


@dataclass(frozen=True, slots=True)
class Words:
    """A named table that puts one word in the place of another."""

    name: str
    doc: str
    table: dict[str, str]


@dataclass(frozen=True, slots=True)
class Key:
    """Something that a family reads from a file.

    `minimum` bounds an int, or the entries of a list. `letters` spells out a text that
    stands in the place of a list; `length` is how many entries of a list count.
    """

    name: str
    type: Type
    names: tuple[str, ...]
    required: Formula | None = None
    default: Formula | None = None
    minimum: int = 0
    words: Words | None = None
    letters: Words | None = None
    length: Formula | None = None
    span: Span = field(default=Span("", 1, 1), compare=False)

    @property
    def always_required(self) -> bool:
        """Whether no file may leave it out."""
        return self.required is not None and self.required.expr == Bool(True)

    @property
    def fallible(self) -> bool:
        """Whether its default may have no value."""
        return self.default is not None and not all(
            _total(node) for node in walk(self.default.expr)
        )

    @property
    def formulas(self) -> tuple[tuple[str, Formula, Type], ...]:
        """Its formulas, with what they are and the type that they must have."""
        listed: tuple[tuple[str, Formula | None, Type], ...] = (
            ("`required`", self.required, "bool"),
            ("the default", self.default, self.type),
            ("the length", self.length, "int"),
        )
        return tuple((what, each, kind) for what, each, kind in listed if each)


@dataclass(frozen=True, slots=True)
class Family:
    """A model family, with what it inherits; a base has no model types."""

    name: str
    doc: str
    model_types: tuple[str, ...]
    sections: tuple[str, ...]
    keys: dict[str, Key]
    fields: dict[str, Formula]
    refuse: str | None
    span: Span = field(compare=False)

    def keys_first(self, schema: Schema) -> list[Key]:
        """The keys to read before any field: those that a needed formula reads.

        Also those whose default may have no value, so that it is never worked out
        for a file that gives the key.
        """
        read: set[str] = set()
        wanted: set[str] = set()
        for each in schema.config:
            formula = self.fields.get(each.name)
            if formula:
                read |= _reads(formula)
            else:
                wanted.add(each.name)
        first: list[Key] = []
        for key in reversed(self.keys.values()):
            if key.name in read | wanted:
                read.update(*(_reads(formula) for _, formula, _ in key.formulas))
                if key.name in read or key.fallible:
                    first.insert(0, key)
        return first


def plain_key(each: Field) -> Key:
    """How a field that the family does not mention is read."""
    return Key(each.name, each.type, (each.name, *each.aliases))


def _total(node: Expr) -> bool:
    match node:
        case Binary(op):
            return op not in ("//", "%")
        case Call(name):
            return name in ("min", "max", "len", "count")
    return True


def _reads(formula: Formula) -> set[str]:
    return {node.name for node in names(formula.expr)}


def read_config(data: bytes, file: str) -> dict[str, object]:
    """The object in a config.json. Raises ConfigFileError.

    Bare Infinity and NaN, which some files have, are read.
    """
    if len(data) > MAX_CONFIG_BYTES:
        raise ConfigFileError(f"{file}: more than {MAX_CONFIG_BYTES} bytes")
    try:
        raw = json.loads(data)
    except (ValueError, RecursionError) as error:
        raise ConfigFileError(f"{file}: not JSON: {error}") from None
    return dict(_object(file, raw))


def read_fields(
    raw: Mapping[str, object], family: Family, schema: Schema, file: str
) -> dict[str, Value]:
    """A value for every field of the schema's config. Raises ConfigFileError."""
    model_type = str(raw["model_type"])
    where = f"{file}: {family.name}"
    if family.refuse:
        raise ConfigFileError(f"{where}: {family.refuse}")
    section = next((each for each in family.sections if raw.get(each) is not None), "")
    if section:
        raw = _object(f"{where}: {section}", raw[section])
    reader = _Reader(raw, section, where)
    for key in family.keys_first(schema):
        reader.values[key.name] = reader.key(key)
    found: dict[str, Value] = {}
    for each in schema.config:
        value: Value | None
        if each.name == "model_type":
            value = model_type
        elif each.name in family.fields:
            value = reader.evaluate(family.fields[each.name], each.name)
            if each.type == "int":
                value = reader.check(f"{where}: {each.name}", value, plain_key(each))
        elif each.name in family.keys:
            first = reader.values.get(each.name)
            value = reader.key(family.keys[each.name]) if first is None else first
        else:
            value = reader.find(plain_key(each))
        if value is not None:
            found[each.name] = value
    defaults = _Defaults(schema, found)
    try:
        return {each.name: defaults.value(each.name) for each in schema.config}
    except EvaluationError as error:
        raise ConfigFileError(f"{where}: {error}") from None


class _Reader:
    """Reads one file by name; the scope of its family's formulas."""

    def __init__(self, raw: Mapping[str, object], section: str, where: str) -> None:
        self.values: dict[str, Value] = {}
        self._raw = raw
        self._section = section
        self._where = where

    def value(self, name: str) -> Value:
        return self.values[name]

    def call(self, name: str, arguments: Sequence[Value]) -> Value:
        value, divisor = arguments
        assert name == "divide" and isinstance(value, int) and isinstance(divisor, int)
        if divisor == 0 or value % divisor:
            raise EvaluationError(f"{value} / {divisor} is not an integer")
        return value // divisor

    def evaluate(self, formula: Formula, what: str) -> Value:
        try:
            return evaluate(formula.expr, self)
        except EvaluationError as error:
            raise ConfigFileError(f"{self._where}: {what}: {error}") from None

    def key(self, key: Key) -> Value:
        found = self.find(key)
        if found is not None:
            return found
        if key.required and self.evaluate(key.required, key.name):
            wanted, place = " or ".join(key.names), self._section or "the file"
            raise ConfigFileError(f"{self._where}: {wanted} is missing from {place}")
        if key.default is None:
            return EMPTY[key.type]
        return self.evaluate(key.default, key.name)

    def find(self, key: Key) -> Value | None:
        """The value under the first of the key's names that is there."""
        for name in key.names:
            value: object = self._raw
            path = self._section
            for part in name.split("."):
                value = _object(f"{self._where}: {path}", value).get(part)
                path = f"{path}.{part}" if path else part
                if value is None:
                    break
            else:
                return self.check(f"{self._where}: {path}", value, key)
        return None

    def check(self, what: str, value: object, key: Key) -> Value:
        match key.type, value:
            case "bool", bool():
                return value
            case "bool", _:
                raise wrong(what, value, "True or False")
            case "str", _:
                return _text(what, value)
            case "int", int() if not isinstance(value, bool) and value >= key.minimum:
                return value
            case "int", _:
                raise wrong(what, value, f"an int, at least {key.minimum}")
        return self._list(what, value, key)

    def _list(self, what: str, value: object, key: Key) -> tuple[str, ...]:
        if isinstance(value, str) and key.letters:
            items = [_letter(what, each, key.letters.table) for each in value]
        elif isinstance(value, list | tuple):
            items = [_text(f"{what}[{n}]", each) for n, each in enumerate(value)]
        else:
            raise wrong(what, value, "a list of str")
        length, least = None, key.minimum
        if key.length:
            count = self.evaluate(key.length, key.name)
            assert isinstance(count, int)
            length = least = count
        if len(items) < least:
            raise ConfigFileError(f"{what}: {len(items)} entries; {least} are needed")
        table = key.words.table if key.words else {}
        return tuple(table.get(each, each) for each in items[:length])


class _Defaults:
    """Fields by name; one that was not found takes the schema's default."""

    def __init__(self, schema: Schema, found: dict[str, Value]) -> None:
        self._fields = {each.name: each for each in schema.config}
        self._constants = {each.name: each.value for each in schema.constants}
        self._found = found

    def value(self, name: str) -> Value:
        if name in self._constants:
            return self._constants[name]
        if name not in self._found:
            each = self._fields[name]
            self._found[name] = (
                evaluate(each.default.expr, self) if each.default else EMPTY[each.type]
            )
        return self._found[name]

    def call(self, name: str, arguments: Sequence[Value]) -> Value:
        raise EvaluationError(f"the default of a field calls `{name}`")


def _object(what: str, value: object) -> Mapping[str, object]:
    if isinstance(value, Mapping):
        return value
    raise ConfigFileError(f"{what}: not an object ({type(value).__name__})")


def _text(what: str, value: object) -> str:
    if isinstance(value, str):
        return value
    raise wrong(what, value, "a str")


def _letter(what: str, letter: str, table: dict[str, str]) -> str:
    if letter in table:
        return table[letter]
    raise ConfigFileError(f"{what}: {letter!r} is none of {' '.join(table)}")


def wrong(what: str, value: object, wanted: str) -> ConfigFileError:
    """The error for a value of another kind than is wanted."""
    # str() of an int of more than 4300 digits raises; hex() does not.
    huge = isinstance(value, int) and abs(value) > 2**128
    text = f"{value:#x}" if huge else repr(value)
    if len(text) > _SHOWN_CHARACTERS:
        text = text[:_SHOWN_CHARACTERS] + "..."
    return ConfigFileError(f"{what}: {text} ({type(value).__name__}) is not {wanted}")
