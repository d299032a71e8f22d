"""Reading a Hugging Face config.json by a model family.

Owns everything that can be wrong in a file. Takes bytes and data, never a path; the
words of an error name the file, the family and the key.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence

from .errors import ArenagenError
from .evaluate import EvaluationError, Value, evaluate
from .family import Family, Indexes, Key, plain_key
from .formula import Type
from .model import Formula, Schema

MAX_CONFIG_BYTES = 16 * 1024 * 1024
# Longest list that a count in a file may stand for; real stacks have hundreds.
MAX_LAYERS = 65536
EMPTY: dict[Type, Value] = {"int": 0, "bool": False, "str": "", "list": ()}
_SHOWN_CHARACTERS = 80


class ConfigFileError(ArenagenError):
    """A config.json that cannot be read, says too little, or says nonsense."""


def read_config(data: bytes, file: str) -> dict[str, object]:
    """The object in a config.json. Raises ConfigFileError.

    Bare Infinity and NaN, which some files have, are read.
    """
    if len(data) > MAX_CONFIG_BYTES:
        raise ConfigFileError(f"{file}: more than {MAX_CONFIG_BYTES} bytes")
    try:
        raw = json.loads(data, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        raise ConfigFileError(f"{file}: not JSON: {error}") from None
    return dict(as_object(file, raw))


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    found: dict[str, object] = {}
    for key, value in pairs:
        if key in found:
            raise ValueError(f"the key {_shown(key)} stands twice in an object")
        found[key] = value
    return found


def read_fields(
    raw: Mapping[str, object],
    model_type: str,
    family: Family,
    schema: Schema,
    mentioned: frozenset[str],
    given: Mapping[str, Value],
    where: str,
) -> dict[str, Value]:
    """A value for every field of the schema's config.

    `mentioned` are the fields that any family of the table mentions; `given` are values
    of fields, over what the file says. Raises ConfigFileError.
    """
    section = next((each for each in family.sections if raw.get(each) is not None), "")
    if section:
        raw = as_object(f"{where}: {section}", raw[section])
    asked = [each for each in schema.config if each.name not in given]
    reader = _Reader(raw, section, where)
    reader.values.update(given)
    for key in family.keys_first(asked):
        if key.name not in given:
            reader.values[key.name] = reader.key(key)
    found: dict[str, Value] = dict(given)
    for each in asked:
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
        elif each.name in mentioned:
            value = None
        else:
            value = reader.find(plain_key(each))
        if value is not None:
            found[each.name] = value
    defaults = _Defaults(schema, found)
    try:
        return {each.name: defaults.value(each.name) for each in schema.config}
    except EvaluationError as error:
        raise ConfigFileError(f"{where}: {error}") from None


def spoken(
    raw: Mapping[str, object], family: Family, names: Iterable[str]
) -> list[str]:
    """Those of some names that say more in a file than null, 0 or nothing."""
    section = next((each for each in family.sections if raw.get(each) is not None), "")
    inside = raw[section] if section else raw
    return [each for each in names if _says(inside, each)]


def _says(value: object, name: str) -> bool:
    for part in name.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    return bool(value)


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
        match name, arguments:
            case "divide", [int(value), int(divisor)]:
                if divisor == 0 or value % divisor:
                    raise EvaluationError(f"{value} / {divisor} is not an integer")
                return value // divisor
            case "every", [int(count), int(period), int(offset), str(word), str(other)]:
                if not 0 <= count <= MAX_LAYERS:
                    raise EvaluationError(f"{count} layers; at most {MAX_LAYERS}")
                if period < 1:
                    raise EvaluationError(f"{period} is no period")
                return tuple(
                    word if place % period == offset else other
                    for place in range(count)
                )
        raise AssertionError(name)

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
                value = as_object(f"{self._where}: {path}", value).get(part)
                path = f"{path}.{part}" if path else part
                if value is None or value in key.absent:
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
            case "int", list() | tuple() if key.largest and value:
                return max(
                    _integer(f"{what}[{place}]", each, key.minimum)
                    for place, each in enumerate(value)
                )
            case "int", _:
                return _integer(what, value, key.minimum)
        items = self._items(what, value, key)
        length, least = None, key.minimum
        if key.length:
            length = least = self._length(key)
        if len(items) < least:
            raise ConfigFileError(f"{what}: {len(items)} entries; {least} are needed")
        table = key.words.table if key.words else {}
        return tuple(table.get(each, each) for each in items[:length])

    def _items(self, what: str, value: object, key: Key) -> Sequence[str]:
        if key.indexes:
            return _spread(what, value, key.indexes, self._length(key))
        if isinstance(value, str) and key.letters:
            return [_spelled(what, each, key.letters.table) for each in value]
        if not isinstance(value, list | tuple):
            raise wrong(what, value, "a list of str")
        if key.numbers and all(isinstance(each, int) for each in value):
            return [_spelled(what, str(each), key.numbers.table) for each in value]
        return [_text(f"{what}[{n}]", each) for n, each in enumerate(value)]

    def _length(self, key: Key) -> int:
        assert key.length is not None
        length = self.evaluate(key.length, key.name)
        assert isinstance(length, int)
        return length


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


def as_object(what: str, value: object) -> Mapping[str, object]:
    """The value, an object; `what` names it in the error."""
    if isinstance(value, Mapping):
        return value
    raise ConfigFileError(f"{what}: not an object ({type(value).__name__})")


def _integer(what: str, value: object, minimum: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool):
        raise wrong(what, value, "an int")
    if value < minimum:
        raise ConfigFileError(f"{what} is {_shown(value)}; at least {minimum}")
    return value


def _text(what: str, value: object) -> str:
    if isinstance(value, str):
        return value
    raise wrong(what, value, "a str")


def _spelled(what: str, letter: str, table: dict[str, str]) -> str:
    if letter in table:
        return table[letter]
    raise ConfigFileError(f"{what}: {_shown(letter)} is none of {' '.join(table)}")


def _spread(what: str, value: object, indexes: Indexes, count: int) -> list[str]:
    """A layer's word for each of `count` layers, by the list of those that have it."""
    if count > MAX_LAYERS:
        raise ConfigFileError(f"{what}: {count} layers; at most {MAX_LAYERS}")
    if isinstance(value, str):
        value = [_number(each.strip()) for each in value.split(",")] if value else []
    if not isinstance(value, list | tuple):
        raise wrong(what, value, "a list of layers")
    words = [indexes.others] * count
    for place, layer in enumerate(value):
        number = _integer(f"{what}[{place}]", layer, indexes.base)
        if number >= indexes.base + count:
            raise ConfigFileError(
                f"{what}[{place}]: {_shown(number)} is beyond the last of {count} "
                f"layers, counted from {indexes.base}"
            )
        words[number - indexes.base] = indexes.word
    return words


def _number(text: str) -> int | str:
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else text


def wrong(what: str, value: object, wanted: str) -> ConfigFileError:
    """The error for a value of another kind than is wanted."""
    kind = type(value).__name__
    return ConfigFileError(f"{what} is {_shown(value)} ({kind}), not {wanted}")


def _shown(value: object) -> str:
    """A value as an error shows it, however long it is."""
    # str() of an int of more than 4300 digits raises; hex() does not.
    text = hex(value) if isinstance(value, int) and abs(value) > 2**128 else repr(value)
    if len(text) > _SHOWN_CHARACTERS:
        return text[:_SHOWN_CHARACTERS] + "..."
    return text
