"""One model family: what it reads from a config.json, and what that means.

The family's model alone; `family_reader` reads files by it. Knows no family: all that
differs between them is in the table.
"""

from __future__ import annotations

from collections.abc import Collection

from .formula import BUILTINS, Binary, Bool, Call, Expr, Signature, Type, names, walk
from .model import Field, Formula, Placed
from .record import field, record
from .source import Document, Scalar

# Functions of a family's formulas. divide(a, b) is a quotient that comes out even;
# every(count, period, offset, word, other) a list with a word at regular places.
FUNCTIONS = BUILTINS | {
    "divide": Signature(("int", "int"), "int"),
    "every": Signature(("int", "int", "int", "str", "str"), "list"),
}

_NOWHERE = Scalar("", Document("", ""), 0, 0)


@record
class Words:
    """A named table that puts one word in the place of another."""

    name: str
    doc: str
    table: dict[str, str]


@record
class Indexes:
    """A list of places in the stack: `word` stands there, `others` elsewhere.

    The first layer has the number `base`.
    """

    base: int
    word: str
    others: str


@record
class Key(Placed):
    """Something that a family reads from a file.

    `absent` are texts that stand for no value. `minimum` bounds an int, or the entries
    of a list. Where an int is the `largest`, a list of them counts as its largest.
    `letters` spells out a text that stands in the place of a list, `numbers` a list of
    integers, `indexes` a list of places; `length` is how many entries of a list count.
    `reads` are the keys that its formulas read. Where it is `fallible`, its default may
    have no value.
    """

    name: str
    type: Type
    names: tuple[str, ...]
    required: Formula | None = None
    default: Formula | None = None
    absent: tuple[str, ...] = ()
    minimum: int = 0
    largest: bool = False
    words: Words | None = None
    letters: Words | None = None
    numbers: Words | None = None
    indexes: Indexes | None = None
    length: Formula | None = None
    reads: frozenset[str] = field(default=frozenset(), compare=False)
    fallible: bool = field(default=False, compare=False)
    node: Scalar = field(default=_NOWHERE, compare=False)

    @property
    def always_required(self) -> bool:
        """Whether no file may leave it out."""
        return self.required is not None and self.required.expr == Bool(True)

    @property
    def formulas(self) -> tuple[tuple[str, Formula, Type], ...]:
        """Its formulas, with what they are and the type that they must have."""
        listed: tuple[tuple[str, Formula | None, Type], ...] = (
            ("`required`", self.required, "bool"),
            ("the default", self.default, self.type),
            ("the length", self.length, "int"),
        )
        return tuple((what, each, kind) for what, each, kind in listed if each)


@record
class Family(Placed):
    """A model family, with what it inherits; a base has no model types.

    `keys` stand in an order in which each is read behind those that it reads.
    """

    name: str
    doc: str
    model_types: tuple[str, ...]
    marks: tuple[str, ...]
    sections: tuple[str, ...]
    inner: tuple[str, ...]
    keys: dict[str, Key]
    fields: dict[str, Formula]
    ignores: tuple[str, ...]
    warn: str | None
    refuse: str | None
    node: Scalar = field(compare=False)

    @property
    def known_names(self) -> set[str]:
        """The names that it reads, or knows to mean nothing."""
        return {
            *self.ignores,
            *(each for key in self.keys.values() for each in key.names),
        }

    def keys_first(self, fields: Collection[Field]) -> list[Key]:
        """The keys to read before any of some fields: those that a formula reads.

        Also those whose default may have no value, so that it is never worked out
        for a file that gives the key.
        """
        read: set[str] = set()
        wanted: set[str] = set()
        for each in fields:
            formula = self.fields.get(each.name)
            if formula:
                read |= _reads(formula)
            else:
                wanted.add(each.name)
        first: list[Key] = []
        for key in reversed(self.keys.values()):
            if key.name in read or key.name in wanted:
                read |= key.reads
                if key.name in read or key.fallible:
                    first.insert(0, key)
        return first


def plain_key(each: Field) -> Key:
    """How a field that no family mentions is read."""
    return Key(each.name, each.type, (each.name, *each.aliases))


def may_fail(formula: Formula) -> bool:
    """Whether a formula may have no value."""
    return not all(map(_total, walk(formula.expr)))


def _total(node: Expr) -> bool:
    match node:
        case Binary(op):
            return op not in ("//", "%")
        case Call(name):
            return name in ("min", "max", "len", "count")
    return True


def _reads(formula: Formula) -> set[str]:
    return {node.name for node in names(formula.expr)}
