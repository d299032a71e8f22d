"""YAML text to a tree of nodes with spans.

Reads one UTF-8 document by the YAML 1.2 core schema, whatever PyYAML's own resolver
would make of it: `no`, `012`, `12:30` and `1_000` are never turned into something
else. Duplicate keys, tags and recursive aliases are problems. Never touches a disk.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any, TypeAlias

import yaml

from .errors import BIDI, InputProblems, Problem, Span
from .malformed import malformed, not_yaml
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
_MAX_INT_DIGITS = 40
# What ends a line for YAML, which is more than what ends one for Python's editors.
_BREAK = re.compile(r"\r\n|[\n\r\x85\u2028\u2029]")
_NOT_YAML = re.compile(
    r"[^\t\n\r\x20-\x7e\x85\xa0-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]|\ufeff"
)
_CONTROL = re.compile(rf"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x84\x86-\x9f{BIDI}]")
_PROPERTIES = re.compile(r"(?:[&!]\S*\s+)*")

Value: TypeAlias = bool | int | float | str | None


@record
class Text:
    """The bytes of an input and the name that problems call it by."""

    name: str
    data: bytes


@record
class Scalar:
    """A scalar with its YAML 1.2 core value.

    `raw` is its text in the document, which ends at character `end` of `document`.
    """

    value: Value
    span: Span = field(compare=False)
    raw: str = field(default="", compare=False)
    document: str = field(default="", compare=False)
    end: int = field(default=0, compare=False)

    @property
    def rest(self) -> str:
        """What stands behind it on its last line."""
        return _BREAK.split(self.document[self.end : self.end + 1000], maxsplit=1)[0]


@record
class Sequence:
    """A list of nodes."""

    items: tuple[Node, ...]
    span: Span = field(compare=False)


@record
class Mapping:
    """A mapping with string keys, in document order."""

    entries: tuple[tuple[Scalar, Node], ...]
    span: Span = field(compare=False)

    def get(self, key: str) -> Node | None:
        """The value of a key, or None."""
        for name, value in self.entries:
            if name.value == key:
                return value
        return None

    def key(self, key: str) -> Scalar:
        """The node of a key that is there."""
        return next(name for name, _ in self.entries if name.value == key)


Node: TypeAlias = Scalar | Sequence | Mapping


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
        before = _BREAK.split(data[: error.start].decode("utf-8", "replace"))
        lines = _BREAK.split(data.decode("utf-8", "replace"))
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
    composer = _Composer(text, file)
    if bad := _NOT_YAML.search(text):
        line, column = composer.place(bad.start())
        span = Span(file, line + 1, column + 1, 1, composer.lines[line])
        raise InputProblems([not_yaml(f"the character {bad[0]!a}", span)])
    try:
        node = composer.document()
    except yaml.MarkedYAMLError as error:
        raise InputProblems([malformed(error, file, composer.span)]) from None
    except yaml.YAMLError as error:
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
        case Mapping(entries):
            return {str(key.value): plain(value) for key, value in entries}


class _Composer:
    def __init__(self, text: str, file: str) -> None:
        self.file = file
        self.lines = _BREAK.split(text)
        self.text = text
        self.problems: list[Problem] = []
        self._anchors: dict[str, Node | None] = {}
        self._nodes = 0
        self._aliased = 0
        self._events: Iterator[Any] = iter(())

    def span(self, start: Any, end: Any = None) -> Span:
        line = self.lines[start.line] if start.line < len(self.lines) else ""
        length = 1
        if end is not None:
            stop = end.column if end.line == start.line else len(line)
            length = max(1, stop - start.column)
        return Span(self.file, start.line + 1, start.column + 1, length, line)

    def place(self, index: int) -> tuple[int, int]:
        """Line and column of a character, both from 0."""
        ends = [found.end() for found in _BREAK.finditer(self.text, 0, index)]
        return len(ends), index - (ends[-1] if ends else 0)

    def document(self) -> Node:
        loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._events = iter(yaml.parse(self.text, Loader=loader))
        next(self._events)
        first = next(self._events)
        if isinstance(first, yaml.StreamEndEvent):
            raise InputProblems([self._empty()])
        node = self._node(next(self._events), 0)
        next(self._events)
        after = next(self._events)
        if isinstance(node, Scalar) and node.value is None:
            raise InputProblems([self._empty()])
        if not isinstance(after, yaml.StreamEndEvent):
            self._report("AR004", "a second document", self.span(after.start_mark))
        return node

    def _empty(self) -> Problem:
        return Problem(
            "AR003",
            "the file is empty",
            Span(self.file, 1, 1),
            hint="`arenagen generate` reads a schema that begins with `arena:`",
        )

    def _report(self, code: str, message: str, span: Span, **more: Any) -> None:
        self.problems.append(Problem(code, message, span, **more))

    def _node(self, event: Any, depth: int, is_key: bool = False) -> Node:
        span = self.span(event.start_mark, event.end_mark)
        self._nodes += 1
        if self._nodes > MAX_NODES or self._aliased > MAX_ALIASED:
            most = MAX_ALIASED if self._aliased > MAX_ALIASED else MAX_NODES
            message = f"more than {most} nodes"
            raise InputProblems([Problem("AR005", message, span)])
        if depth > MAX_DEPTH:
            message = f"nested more than {MAX_DEPTH} deep"
            raise InputProblems([Problem("AR005", message, span)])
        if isinstance(event, yaml.AliasEvent):
            return self._alias(str(event.anchor), span, depth)
        if event.tag is not None:
            tag = str(event.tag).replace("tag:yaml.org,2002:", "!!", 1)
            self._report(
                "AR006",
                f"the tag `{tag}`; a schema has none",
                span,
                hint="remove it; quote a text that begins with `!`",
            )
        if event.anchor is not None:
            self._anchors[event.anchor] = None
        node: Node
        if isinstance(event, yaml.ScalarEvent):
            node = self._scalar(event, span, is_key)
        elif isinstance(event, yaml.SequenceStartEvent):
            node = Sequence(tuple(self._items(depth)), span)
        else:
            node = Mapping(tuple(self._entries(depth)), span)
        if event.anchor is not None:
            self._anchors[event.anchor] = node
        return node

    def _alias(self, anchor: str, span: Span, depth: int) -> Node:
        node = self._anchors.get(anchor)
        if node is None:
            what = "itself" if anchor in self._anchors else "nothing before it"
            self._report("AR007", f"the alias `*{anchor}` stands for {what}", span)
            return Scalar(None, span)
        count, height = _measure(node)
        self._aliased += count
        if depth + height > MAX_DEPTH:
            message = f"nested more than {MAX_DEPTH} deep"
            raise InputProblems([Problem("AR005", message, span)])
        return node

    def _scalar(self, event: Any, span: Span, is_key: bool) -> Scalar:
        start, end = event.start_mark.index, event.end_mark.index
        if event.anchor is not None or event.tag is not None:
            shift = _PROPERTIES.match(self.text, start, end)
            start = shift.end() if shift else start
            line, column = self.place(start)
            length = max(1, end - start)
            span = Span(self.file, line + 1, column + 1, length, self.lines[line])
        raw = self.text[start:end]
        text: str = event.value
        value: Value = text
        if bad := _CONTROL.search(text):
            self._report("AR011", f"the control character {bad[0]!a} in a text", span)
            value = text = ""
        elif not event.implicit[0] or is_key:
            # A key is a name: `0:` means the text 0, not a number.
            value = text
        elif _INT.fullmatch(text) and len(text) > _MAX_INT_DIGITS:
            self._report("AR008", f"an integer of {len(text)} digits", span)
            value = 0
        else:
            value = core_value(text)
        return Scalar(value, span, raw, self.text, end)

    def _items(self, depth: int) -> Iterator[Node]:
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            yield self._node(event, depth + 1)

    def _entries(self, depth: int) -> Iterator[tuple[Scalar, Node]]:
        seen: dict[object, Span] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            key = self._node(event, depth + 1, is_key=True)
            value = self._node(next(self._events), depth + 1)
            if not isinstance(key, Scalar) or not isinstance(key.value, str):
                self._report("AR009", "a key that is not a plain word", key.span)
                continue
            if key.value in seen:
                self._report(
                    "AR010",
                    f"the key `{key.value}` stands twice",
                    key.span,
                    related=(("first", seen[key.value]),),
                )
                continue
            seen[key.value] = key.span
            yield key, value


def _measure(node: Node) -> tuple[int, int]:
    """Nodes in a tree, and how deep it nests."""
    count, height = 1, 0
    match node:
        case Sequence(items):
            below = [_measure(item) for item in items]
        case Mapping(entries):
            count += len(entries)
            below = [_measure(value) for _, value in entries]
        case _:
            below = []
    for inner, depth in below:
        count, height = count + inner, max(height, depth + 1)
    return count, height


def core_value(text: str) -> Value:
    """What a plain scalar means in the YAML 1.2 core schema."""
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
