"""Whether a document fits a JSON Schema, and not a word of why it does not.

Nearly every document fits, and to load jsonschema takes longer than to read, check
and lower one. So `structure` asks here first, and asks jsonschema, whose answer is the
one that counts, only after a no. Keywords mean what they mean in `structure`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any, TypeAlias

from .source import Mapping, Node, Scalar, Sequence

Check: TypeAlias = Callable[[Node], bool]

_TYPES: dict[str, tuple[type, ...]] = {
    "array": (Sequence,),
    "boolean": (bool,),
    "integer": (int,),
    "null": (type(None),),
    "number": (int, float),
    "object": (Mapping,),
    "string": (str,),
}
# Words for readers, and names, which `check_names` looks at.
_SILENT = frozenset(
    ("$defs", "$schema", "description", "examples", "propertyNames", "title")
)


def accepts(schema: Any, root: Node) -> bool:
    """Whether a document fits. Raise ValueError for a keyword that is not known."""
    return _Checks(schema.get("$defs", {})).of(schema)(root)


class _Checks:
    """The checks of schemas, made once for each definition."""

    def __init__(self, definitions: dict[str, Any]) -> None:
        self._definitions = definitions
        self._made: dict[str, Check] = {}

    def of(self, schema: Any) -> Check:
        """The check that stands for a schema."""
        if isinstance(schema, bool):
            return lambda _: schema
        checks: list[Check] = []
        for keyword, wanted in schema.items():
            if keyword in _SILENT:
                continue
            match keyword:
                case "$ref":
                    checks.append(self._definition(wanted))
                case "properties":
                    more = schema.get("additionalProperties", True)
                    checks.append(self._entries(wanted, more))
                case "additionalProperties":
                    if "properties" not in schema:
                        checks.append(self._entries({}, wanted))
                case "items":
                    checks.append(self._items(wanted))
                case "not":
                    checks.append(self._not(wanted))
                case "if":
                    then, otherwise = schema.get("then", True), schema.get("else", True)
                    checks.append(self._either(wanted, then, otherwise))
                case "then" | "else" if "if" in schema:
                    pass
                case _:
                    if keyword not in _KEYWORDS:
                        raise ValueError(f"a JSON Schema with `{keyword}`")
                    checks.append(_KEYWORDS[keyword](wanted))
        return checks[0] if len(checks) == 1 else _all(checks)

    def _definition(self, reference: str) -> Check:
        name = reference.removeprefix("#/$defs/")
        if name not in self._made:
            # For a definition that holds itself.
            self._made[name] = lambda node: self._made[name](node)
            self._made[name] = self.of(self._definitions[name])
        return self._made[name]

    def _entries(self, properties: dict[str, Any], more: Any) -> Check:
        known: dict[str, Check] = {
            name: self.of(schema) for name, schema in properties.items()
        }
        other = self.of(more)

        def check(node: Node) -> bool:
            if type(node) is Mapping:
                for key, value in node.values.items():
                    if not known.get(key, other)(value):
                        return False
            return True

        return check

    def _items(self, schema: Any) -> Check:
        check = self.of(schema)
        return _of_lists(lambda items: all(map(check, items)))

    def _not(self, schema: Any) -> Check:
        check = self.of(schema)
        return lambda node: not check(node)

    def _either(self, condition: Any, then: Any, otherwise: Any) -> Check:
        holds, yes, no = self.of(condition), self.of(then), self.of(otherwise)
        return lambda node: yes(node) if holds(node) else no(node)


def _all(checks: list[Check]) -> Check:
    # Asked for every node of every document: a generator would take half as long again.
    def check(node: Node) -> bool:
        for each in checks:  # noqa: SIM110
            if not each(node):
                return False
        return True

    return check


def _of_mappings(holds: Callable[[dict[str, Node]], bool]) -> Check:
    return lambda node: type(node) is not Mapping or holds(node.values)


def _of_lists(holds: Callable[[tuple[Node, ...]], bool]) -> Check:
    return lambda node: type(node) is not Sequence or holds(node.items)


def _of_values(kinds: tuple[type, ...], holds: Callable[[Any], bool]) -> Check:
    return lambda node: (
        type(node) is not Scalar or type(node.value) not in kinds or holds(node.value)
    )


def _type(wanted: str | list[str]) -> Check:
    names = [wanted] if isinstance(wanted, str) else wanted
    kinds = {kind for name in names for kind in _TYPES[name]}

    def check(node: Node) -> bool:
        kind = type(node.value) if type(node) is Scalar else type(node)
        return kind in kinds

    return check


def _enum(wanted: list[Any]) -> Check:
    values = {_distinct(each) for each in wanted}
    return lambda node: type(node) is Scalar and _distinct(node.value) in values


def _unique(wanted: bool) -> Check:
    return _of_lists(
        lambda items: not wanted or len({*map(_content, items)}) == len(items)
    )


def _content(node: Node) -> object:
    match node:
        case Scalar(value):
            return _distinct(value)
        case Sequence(items):
            return tuple(map(_content, items))
        case Mapping(values):
            return frozenset((key, _content(value)) for key, value in values.items())


def _distinct(value: object) -> tuple[bool, object]:
    """A value that is equal to its like: `true` is not 1, as 1.0 is."""
    return isinstance(value, bool), value


def _required(wanted: list[str]) -> Check:
    names = frozenset(wanted)
    return _of_mappings(lambda values: names <= values.keys())


_KEYWORDS: dict[str, Callable[[Any], Check]] = {
    "enum": _enum,
    "maxItems": lambda most: _of_lists(lambda items: len(items) <= most),
    "maxLength": lambda most: _of_values((str,), lambda text: len(text) <= most),
    "minItems": lambda least: _of_lists(lambda items: len(items) >= least),
    "minLength": lambda least: _of_values(
        (str,), lambda text: len(text.strip()) >= least
    ),
    "minProperties": lambda least: _of_mappings(lambda values: len(values) >= least),
    "minimum": lambda least: _of_values((int, float), lambda value: not value < least),
    "pattern": lambda wanted: _of_values(
        (str,), lambda text: re.fullmatch(wanted, text) is not None
    ),
    "required": _required,
    "type": _type,
    "uniqueItems": _unique,
}
