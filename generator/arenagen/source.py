"""YAML text to a tree of nodes with spans.

Reads one UTF-8 document by the YAML 1.2 core schema, whatever PyYAML's own resolver
would make of it: `no`, `012`, `12:30` and `1_000` are never turned into something
else. Duplicate keys, tags and recursive aliases are problems. Never touches a disk.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from itertools import accumulate
from sys import intern
from typing import Any, NoReturn, TypeAlias

import yaml
from yaml import (
    AliasEvent,
    MappingEndEvent,
    ScalarEvent,
    SequenceEndEvent,
    SequenceStartEvent,
    StreamEndEvent,
)

from .errors import BIDI, InputProblems, Problem, Span
from .record import field, record

MAX_BYTES = 8 * 1024 * 1024
MAX_DEPTH = 64
# Nodes that are written, and those that aliases make of them.
MAX_NODES = 500_000
MAX_ALIASED = 50_000

_NULL = frozenset({"", "~", "null", "Null", "NULL"})
_BOOL = dict.fromkeys(("true", "True", "TRUE"), True) | dict.fromkeys(
    ("false", "False", "FALSE"), False
)
_INT = re.compile(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(
    r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?"
    r"|[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)"
)
# What anything but a text begins with.
_BEGINS_VALUE = frozenset("~nNtTfF+-.0123456789")
_MAX_INT_DIGITS = 40
# Characters of a word that may stand in many places.
_MAX_WORD = 24
# What ends a line for YAML, which is more than what ends one for Python's editors.
_BREAK = r"\r\n|[\n\r\x85\u2028\u2029]"
_NOT_YAML = (
    r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|\ufeff"
)
_CONTROL = rf"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f{BIDI}]"
_PROPERTIES = r"(?:[&!]\S*\s+)*"

Value: TypeAlias = bool | int | float | str | None


@record
class Text:
    """The bytes of an input and the name that problems call it by."""

    name: str
    data: bytes


class Document:
    """The text of a file, in which its nodes lie, and the name that problems call it.

    Characters are counted from 0.
    """

    __slots__ = ("_lines", "_starts", "file", "is_simple", "text")

    def __init__(self, text: str, file: str) -> None:
        self.text = text
        self.file = file
        # Nearly all are: line feeds, and characters of ASCII that print.
        self.is_simple = text.isascii() and text.replace("\n", "").isprintable()
        self._lines: list[str] = []
        self._starts: list[int] = []

    def place(self, index: int) -> tuple[int, int]:
        """Line and column of a character, both from 0."""
        # Most documents have no place to tell.
        from bisect import bisect_right

        if not self._starts:
            self._split()
        line = bisect_right(self._starts, index) - 1
        return line, index - self._starts[line]

    def _split(self) -> None:
        if self.is_simple:
            self._lines = self.text.split("\n")
            self._starts = [0, *accumulate(len(line) + 1 for line in self._lines)]
        else:
            self._lines = re.split(_BREAK, self.text)
            self._starts = [0, *(each.end() for each in re.finditer(_BREAK, self.text))]

    def span(self, start: int, length: int) -> Span:
        """The place of so many characters, those on their first line."""
        line, column = self.place(start)
        source = self._lines[line]
        length = max(1, min(length, len(source) - column))
        return Span(self.file, line + 1, column + 1, length, source)

    def at(self, mark: Any) -> Span:
        """The place of a mark of YAML's own, which may be behind the last line."""
        if not self._starts:
            self._split()
        source = self._lines[mark.line] if mark.line < len(self._lines) else ""
        return Span(self.file, mark.line + 1, mark.column + 1, 1, source)

    def rest(self, index: int) -> str:
        """What stands from a character on, up to the end of its line."""
        return re.split(_BREAK, self.text[index : index + 1000], maxsplit=1)[0]


@record
class Scalar:
    """A scalar with its YAML 1.2 core value."""

    value: Value
    document: Document = field(compare=False)
    start: int = field(compare=False)
    length: int = field(compare=False)

    @property
    def span(self) -> Span:
        """Where it stands."""
        return self.document.span(self.start, self.length)

    @property
    def end(self) -> int:
        """The character behind it."""
        return self.start + self.length

    @property
    def raw(self) -> str:
        """Its text in the document."""
        return self.document.text[self.start : self.end]

    @property
    def rest(self) -> str:
        """What stands behind it on its last line."""
        return self.document.rest(self.end)


@record
class Sequence:
    """A list of nodes."""

    items: tuple[Node, ...]
    document: Document = field(compare=False)
    start: int = field(compare=False)
    length: int = field(compare=False)

    @property
    def span(self) -> Span:
        """Where it begins."""
        return self.document.span(self.start, self.length)


@record
class Mapping:
    """A mapping with string keys, in document order.

    marks: where each key starts that stands as it is read; of any other one, such as a
    key in quotes or from another document, its node.
    """

    values: dict[str, Node]
    marks: tuple[int | Scalar, ...] = field(compare=False)
    document: Document = field(compare=False)
    start: int = field(compare=False)
    length: int = field(compare=False)

    @property
    def span(self) -> Span:
        """Where it begins."""
        return self.document.span(self.start, self.length)

    def keys(self) -> Iterator[Scalar]:
        """The node of each key, made for who asks: nearly all keys are but read."""
        for name, mark in zip(self.values, self.marks, strict=True):
            if isinstance(mark, int):
                yield Scalar(name, self.document, mark, len(name))
            else:
                yield mark

    def entries(self) -> Iterator[tuple[Scalar, Node]]:
        """Each key with its value."""
        return zip(self.keys(), self.values.values(), strict=True)

    def get(self, key: str) -> Node | None:
        """The value of a key, or None."""
        return self.values.get(key)

    def key(self, key: str) -> Scalar:
        """The node of a key that is there."""
        return next(each for each in self.keys() if each.value == key)

    def with_entries(self, entries: Iterable[tuple[Scalar, Node]]) -> Mapping:
        """A mapping at the same place with other entries."""
        marks, values = [], {}
        for key, value in entries:
            marks.append(key)
            values[str(key.value)] = value
        return Mapping(values, tuple(marks), self.document, self.start, self.length)


Node: TypeAlias = Scalar | Sequence | Mapping


class Places:
    """Where nodes that have a name stand, worked out when a problem asks."""

    __slots__ = ("_nodes",)

    def __init__(self, nodes: dict[str, Node]) -> None:
        self._nodes = nodes

    def __getitem__(self, name: str) -> Span:
        return self._nodes[name].span

    def node(self, name: str) -> Node:
        """What has that name."""
        return self._nodes[name]

    def __contains__(self, name: str) -> bool:
        return name in self._nodes


def decode(data: bytes, file: str) -> str:
    """The text of a file: UTF-8, with or without a BOM, any line ends.

    Raises InputProblems when it is too large or not UTF-8.
    """
    at = Span(file, 1, 1)
    if len(data) > MAX_BYTES:
        raise InputProblems(
            [Problem("AR001", f"{len(data)} bytes; at most {MAX_BYTES} are read", at)]
        )
    if wide := _wide_encoding(data):
        hint = "save the file as UTF-8"
        raise InputProblems([Problem("AR001", f"not UTF-8 but {wide}", at, hint=hint)])
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        before = re.split(_BREAK, data[: error.start].decode("utf-8", "replace"))
        lines = re.split(_BREAK, data.decode("utf-8", "replace"))
        line, column = len(before), len(before[-1]) + 1
        problem = Problem(
            "AR001",
            f"not UTF-8: byte 0x{data[error.start]:02X} at offset {error.start}",
            Span(file, line, column, 1, lines[line - 1]),
            hint="save the file as UTF-8",
        )
        raise InputProblems([problem]) from None
    return text.replace("\r\n", "\n").replace("\r", "\n")


def _wide_encoding(data: bytes) -> str | None:
    """UTF-16 or UTF-32, which a byte order mark or the NULs of ASCII letters tell."""
    head = data[:4]
    if head.startswith((b"\xff\xfe\0\0", b"\0\0\xfe\xff")) or head.count(0) == 3:
        return "UTF-32"
    if head.startswith((b"\xff\xfe", b"\xfe\xff")) or head.count(0) == 2:
        return "UTF-16"
    return None


def parse(text: str, file: str) -> Node:
    """The one document of `text`.

    Raises InputProblems with every duplicate key, tag and bad alias, or with the
    first place that is not YAML.
    """
    document = Document(text, file)
    if not document.is_simple and (bad := re.search(_NOT_YAML, text)):
        from .malformed import not_yaml

        span = document.span(bad.start(), len(bad[0]))
        raise InputProblems([not_yaml(f"the character {bad[0]!a}", span)])
    composer = _Composer(document)
    try:
        node = composer.root()
    except yaml.MarkedYAMLError as error:
        from .malformed import malformed

        raise InputProblems([malformed(error, file, document.at)]) from None
    except yaml.YAMLError as error:
        from .malformed import not_yaml

        what = " ".join(str(error).split())
        raise InputProblems([not_yaml(what, Span(file, 1, 1))]) from None
    if composer.problems:
        raise InputProblems(composer.problems)
    return node


def plain(node: Node) -> Any:
    """The node as dicts, lists and scalars."""
    match node:
        case Scalar(value):
            return value
        case Sequence(items):
            return [plain(item) for item in items]
        case Mapping(values):
            return {key: plain(value) for key, value in values.items()}


class _Composer:
    def __init__(self, document: Document) -> None:
        self.document = document
        self.problems: list[Problem] = []
        self._anchors: dict[str, Node | None] = {}
        self._nodes = 0
        self._aliased = 0
        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._next: Callable[[], Any] = loader(document.text).get_event

    def root(self) -> Node:
        self._next()
        first = self._next()
        if isinstance(first, StreamEndEvent):
            raise InputProblems([self._empty()])
        node = self._node(self._next(), 0)
        self._next()
        after = self._next()
        if isinstance(node, Scalar) and node.value is None:
            raise InputProblems([self._empty()])
        if not isinstance(after, StreamEndEvent):
            at = self.document.at(after.start_mark)
            self._report("AR004", "a second document", at)
        return node

    def _empty(self) -> Problem:
        return Problem(
            "AR003",
            "the file is empty",
            Span(self.document.file, 1, 1),
            hint="`arenagen generate` reads a schema that begins with `arena:`",
        )

    def _span(self, event: Any) -> Span:
        return self.document.span(*_extent(event))

    def _report(self, code: str, message: str, span: Span, **more: Any) -> None:
        self.problems.append(Problem(code, message, span, **more))

    def _node(self, event: Any, depth: int, is_key: bool = False) -> Node:
        self._nodes += 1
        if self._nodes > MAX_NODES or self._aliased > MAX_ALIASED:
            most = MAX_ALIASED if self._aliased > MAX_ALIASED else MAX_NODES
            self._too_much(event, f"more than {most} nodes")
        if depth > MAX_DEPTH:
            self._too_much(event, f"nested more than {MAX_DEPTH} deep")
        kind = type(event)
        if kind is AliasEvent:
            return self._alias(event, depth)
        if kind is ScalarEvent and event.tag is None and event.anchor is None:
            # Nearly all are.
            return self._scalar(event, is_key)
        if event.tag is not None:
            tag = str(event.tag).replace("tag:yaml.org,2002:", "!!", 1)
            self._report(
                "AR006",
                f"the tag `{tag}`; a schema has none",
                self._span(event),
                hint="remove it; quote a text that begins with `!`",
            )
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        node: Node
        if kind is ScalarEvent:
            node = self._scalar(event, is_key)
        else:
            extent = _extent(event)
            if kind is SequenceStartEvent:
                node = Sequence(self._items(depth + 1), self.document, *extent)
            else:
                node = Mapping(*self._entries(depth + 1), self.document, *extent)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _too_much(self, event: Any, message: str) -> NoReturn:
        raise InputProblems([Problem("AR005", message, self._span(event))])

    def _alias(self, event: Any, depth: int) -> Node:
        anchor = str(event.anchor)
        node = self._anchors.get(anchor)
        if node is None:
            what = "itself" if anchor in self._anchors else "nothing before it"
            message = f"the alias `*{anchor}` stands for {what}"
            self._report("AR007", message, self._span(event))
            return Scalar(None, self.document, *_extent(event))
        count, height = _measure(node)
        self._aliased += count
        if depth + height > MAX_DEPTH:
            self._too_much(event, f"nested more than {MAX_DEPTH} deep")
        return node

    def _scalar(self, event: Any, is_key: bool) -> Scalar:
        start = event.start_mark.index
        length = event.end_mark.index - start
        if event.anchor is not None or event.tag is not None:
            shift = re.match(_PROPERTIES, self.document.text[start : start + length])
            if shift is not None:
                start, length = start + shift.end(), length - shift.end()
        text: str = event.value
        value: Value = text
        # Where the document has no control character, an escape may still make one.
        is_simple = (self.document.is_simple and event.style != '"') or (
            text.isascii() and text.isprintable()
        )
        if not is_simple and (bad := re.search(_CONTROL, text)):
            message = f"the control character {bad[0]!a} in a text"
            self._report("AR011", message, self.document.span(start, length))
            value = ""
        elif is_key:
            # A key is a name: `0:` means the text 0, not a number. Few names are keys
            # of many mappings.
            value = intern(text)
        elif not event.implicit[0]:
            pass
        elif len(text) <= _MAX_WORD:
            # A dtype, a dimension: words that stand in many places, and are kept once.
            value = core_value(intern(text))
        elif len(text) > _MAX_INT_DIGITS and _INT.fullmatch(text):
            message = f"an integer of {len(text)} digits"
            self._report("AR008", message, self.document.span(start, length))
            value = 0
        else:
            value = core_value(text)
        return Scalar(value, self.document, start, length)

    def _items(self, depth: int) -> tuple[Node, ...]:
        items = []
        while type(event := self._next()) is not SequenceEndEvent:
            items.append(self._node(event, depth))
        return tuple(items)

    def _entries(self, depth: int) -> tuple[dict[str, Node], tuple[int | Scalar, ...]]:
        values: dict[str, Node] = {}
        marks: list[int | Scalar] = []
        while type(event := self._next()) is not MappingEndEvent:
            if self._is_plain_key(event, depth) and event.value not in values:
                # As nearly all are: `_node` has nothing to say of it.
                self._nodes += 1
                marks.append(event.start_mark.index)
                name = intern(event.value)
                values[name] = self._node(self._next(), depth)
                continue
            key = self._node(event, depth, is_key=True)
            value = self._node(self._next(), depth)
            if not isinstance(key, Scalar) or not isinstance(key.value, str):
                self._report("AR009", "a key that is not a plain word", key.span)
            elif key.value in values:
                known = Mapping(values, tuple(marks), self.document, 0, 0)
                first = known.key(key.value)
                self._report(
                    "AR010",
                    f"the key `{key.value}` stands twice",
                    key.span,
                    related=(("first", first.span),),
                )
            else:
                marks.append(key)
                values[key.value] = value
        return values, tuple(marks)

    def _is_plain_key(self, event: Any, depth: int) -> bool:
        """Whether a key is a word that stands as it is, with nothing wrong with it."""
        length = event.end_mark.index - event.start_mark.index
        return (
            type(event) is ScalarEvent
            and event.anchor is None
            # Without a tag, quotes or a break.
            and len(event.value) == length
            and depth <= MAX_DEPTH
            and self._nodes < MAX_NODES
            and self._aliased <= MAX_ALIASED
            and event.value.isascii()
            and event.value.isprintable()
        )


def _extent(event: Any) -> tuple[int, int]:
    """The first character of an event, and how many there are."""
    start = event.start_mark.index
    return start, event.end_mark.index - start


def _measure(node: Node) -> tuple[int, int]:
    """Nodes in a tree, and how deep it nests."""
    count, height = 1, 0
    match node:
        case Sequence(items):
            below = [_measure(item) for item in items]
        case Mapping(values):
            count += len(values)
            below = [_measure(value) for value in values.values()]
        case _:
            below = []
    for inner, depth in below:
        count, height = count + inner, max(height, depth + 1)
    return count, height


def core_value(text: str) -> Value:
    """What a plain scalar means in the YAML 1.2 core schema."""
    if text and text[0] not in _BEGINS_VALUE:
        return text
    if text in _NULL:
        return None
    if text in _BOOL:
        return _BOOL[text]
    if _INT.fullmatch(text):
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if _FLOAT.fullmatch(text):
        return float(text.lower().replace(".inf", "inf").replace(".nan", "nan"))
    return text


def locate(scalar: Scalar, start: int, length: int) -> Span:
    """The span of `scalar.value[start:start + length]` in the document.

    Walks the document's text beside the value, since folding and quoting move the
    characters; where escapes make the two differ, the whole scalar is the answer.
    """
    value = scalar.value
    span = scalar.span
    if not isinstance(value, str) or not span.source:
        return span
    raw = scalar.raw
    position = raw.index("\n") if raw[:1] in (">", "|") and "\n" in raw else 0
    if raw[:1] in ("'", '"'):
        position = 1
    wanted = [char for char in value[:start] if not char.isspace()]
    for char in [*wanted, *value[start : start + 1]]:
        while position < len(raw) and raw[position].isspace():
            position += 1
        if position >= len(raw) or raw[position] != char:
            return span
        position += 1
    position -= 1
    before = raw[:position]
    line = span.line + before.count("\n")
    if "\n" in before:
        column = position - before.rindex("\n")
        source = (raw + scalar.rest)[before.rindex("\n") + 1 :].partition("\n")[0]
    else:
        column, source = span.column + position, span.source
    return Span(span.file, line, column, length, source)
