"""One logical line of Python as leaves: tokens with what a line break needs to know.

Knows the statements and expressions that templates emit. Anything else raises
Unknown, and is black's to form.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from itertools import pairwise
from typing import TypeAlias


class Unknown(Exception):
    """A construct whose form is not known here."""


# Where a line may break, from the outermost to the innermost: black's own order.
COMPREHENSION, COMMA, TERNARY, LOGIC, STRINGS, COMPARISON = 20, 18, 16, 14, 12, 10
OPERATORS = {"|": 9, "^": 8, "&": 7, "<<": 6, ">>": 6, "+": 5, "-": 5, "**": 2}
OPERATORS |= dict.fromkeys(("*", "/", "//", "%", "@"), 4)
_COMPARISONS = {"<", ">", "==", "!=", "<=", ">=", "in", "is"}
DOT = 1
# What a line may break in front of, strings apart.
_PARTING = {*OPERATORS, *_COMPARISONS, "and", "or", "."}

_OPEN = {"(": ")", "[": "]", "{": "}"}
_CLOSE = set(_OPEN.values())
_BRACKETS = {*_OPEN, *_CLOSE}
_STRING = r"""[rbfRBF]{0,2}(?:"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*')"""
_TOKEN = re.compile(
    rf"(\s*)({_STRING}|#.*|\d(?:[\w.]|(?<=[eE])[-+])*|\w+"
    r"|(?:\*\*|//|<<|>>)=?|->|:=|[-+*/%&|^=!<>]=|\S)"
)
_TRIPLE = re.compile(r"'''|\"\"\"")
# Keywords behind which an operand is due, so that `-` and `*` are no operators there.
_BEFORE_OPERAND = {
    *("return", "in", "if", "elif", "else", "and", "or", "not", "is", "for", "lambda"),
    *("while", "import", "from", "raise", "yield", "await", "assert", "del", "with"),
}
_ASSIGNMENTS = {"=", "+=", "-=", "*=", "//=", "|=", "&="}
_UNKNOWN = {"async", "assert", "await", "del", "match", "with", "yield", ":="}


class Leaf:
    """A token.

    text: empty for a bracket that is there only where the line breaks at it.
    prefix: the space in front of it, or nothing.
    bracket: which bracket it is, also where its text is empty.
    opens, closes: whether it is an opening bracket, or a closing one.
    opening: of a closing bracket, its counterpart.
    before: the priority of a line break in front of it, 0 for none.
    atom: of an opening bracket, whether it is a value of its own, and no call's.
    is_comment: whether it is a comment on a line of its own.
    """

    __slots__ = (
        "atom",
        "before",
        "bracket",
        "closes",
        "is_comment",
        "opening",
        "opens",
        "prefix",
        "text",
    )

    def __init__(self, text: str, prefix: str = "", bracket: str = "") -> None:
        self.text = text
        self.prefix = prefix
        self.bracket = bracket
        self.opens = bracket in _OPEN
        self.closes = bracket in _CLOSE
        self.opening: Leaf | None = None
        self.before = 0
        self.atom = False
        self.is_comment = text[:1] == "#"

    @property
    def is_string(self) -> bool:
        """Whether it is a string literal."""
        return self.text[-1:] in ('"', "'")


class Group:
    """A pair of brackets and what they hold."""

    __slots__ = ("close", "items", "open")

    def __init__(self, open: Leaf, close: Leaf, items: list[Item]) -> None:
        self.open = open
        self.close = close
        self.items = items


Item: TypeAlias = Leaf | Group


def statement(lines: Iterable[str]) -> list[Leaf]:
    """The leaves of a statement that physical lines hold. Raises Unknown."""
    return list(_flat(_statement(_items(lines))))


def element(lines: Iterable[str]) -> list[Leaf]:
    """The leaves of one element of a list in brackets, up to its comma."""
    return list(_flat(_elements(_items(lines), alone=False)))


def _items(lines: Iterable[str]) -> list[Item]:
    leaves = _scan(lines)
    if not _UNKNOWN.isdisjoint([leaf.text for leaf in leaves]):
        raise Unknown
    items = _nested(leaves)
    for item in items:
        _mark_groups(item)
    return items


def _scan(lines: Iterable[str]) -> list[Leaf]:
    leaves: list[Leaf] = []
    last: Leaf | None = None
    for line in lines:
        if _TRIPLE.search(line) or not line.isascii():
            raise Unknown
        for place, (space, text) in enumerate(_TOKEN.findall(line.strip())):
            prefix = " " if space or not place else ""
            if last is None or last.opens or text == "," or text in _CLOSE:
                prefix = ""
            bracket = text if text in _BRACKETS else ""
            leaf = Leaf(text, prefix, bracket)
            if place and leaf.is_comment:
                raise Unknown
            if leaf.opens:
                leaf.atom = not _ends_operand(last)
            elif text in _PARTING or leaf.is_string:
                leaf.before = _priority(leaf, last)
            leaves.append(leaf)
            last = leaf
    return leaves


def _ends_operand(leaf: Leaf | None) -> bool:
    if leaf is None:
        return False
    if leaf.closes or leaf.is_string:
        return True
    word = leaf.text
    return (word[0].isalnum() or word[0] == "_") and word not in _BEFORE_OPERAND


def _priority(leaf: Leaf, last: Leaf | None) -> int:
    text = leaf.text
    if text in OPERATORS:
        return OPERATORS[text] if _ends_operand(last) else 0
    if text == ".":
        return DOT if last is not None and last.closes else 0
    if leaf.is_string:
        return STRINGS if last is not None and last.is_string else 0
    if text in ("and", "or"):
        return LOGIC
    if text == "in" and last is not None and last.text == "not":
        # The break is in front of `not`.
        last.before = COMPARISON
        return 0
    return COMPARISON if text in _COMPARISONS else 0


def _nested(leaves: list[Leaf]) -> list[Item]:
    top: list[Item] = []
    stack: list[tuple[Leaf, list[Item]]] = []
    items = top
    for leaf in leaves:
        if leaf.opens:
            stack.append((leaf, items))
            items = []
        elif leaf.closes:
            opening, outer = stack.pop()
            leaf.opening = opening
            outer.append(Group(opening, leaf, items))
            items = outer
        else:
            items.append(leaf)
    return top


def _flat(items: Iterable[Item]) -> Iterable[Leaf]:
    for item in items:
        if isinstance(item, Group):
            yield item.open
            yield from _flat(item.items)
            yield item.close
        else:
            yield item


def _mark_groups(item: Item) -> None:
    if isinstance(item, Group):
        for each in item.items:
            _mark_groups(each)
        item.items = _elements(item.items, alone=item.open.bracket == "(")


def _text(item: Item) -> str:
    return item.text if isinstance(item, Leaf) else ""


def _place(items: list[Item], *texts: str) -> int:
    """The place of the first item that is one of these texts, -1 for none."""
    for place, item in enumerate(items):
        if isinstance(item, Leaf) and item.text in texts:
            return place
    return -1


def _elements(items: list[Item], alone: bool) -> list[Item]:
    """The elements of a list, each conditional in brackets of its own.

    alone: whether an only element stands in brackets already.
    """
    found: list[Item] = []
    parts: list[list[Item]] = [[]]
    target = False
    for item in items:
        parts[-1].append(item)
        # The commas between `for` and `in` part no elements.
        target = (target or _text(item) == "for") and _text(item) != "in"
        if _text(item) == "," and not target:
            parts.append([])
    alone = alone and len(parts) == 1
    for part in parts:
        found += _element(part, alone)
    return found


def _element(items: list[Item], alone: bool) -> list[Item]:
    if _place(items, "if", "for", "lambda") < 0:
        return items
    tail: list[Item] = [items[-1]] if items and _text(items[-1]) == "," else []
    body = items[: len(items) - len(tail)]
    head: list[Item] = []
    while body and isinstance(body[0], Leaf) and body[0].is_comment:
        head.append(body.pop(0))
    comments: list[Item] = []
    while body and isinstance(body[-1], Leaf) and body[-1].is_comment:
        comments.insert(0, body.pop())
    if (place := _place(body, "lambda")) >= 0 and (
        _text(body[place + 1]) != ":" or _place(body, "if", "for") >= 0
    ):
        raise Unknown
    start = max(_place(body, "="), _place(body, ":")) + 1
    if start and place < 0:
        head, body = [*head, *body[:start]], body[start:]
        alone = False
    loop = _place(body, "for")
    if loop >= 0:
        comprehension = body[loop:]
        for item in comprehension:
            if isinstance(item, Leaf) and item.text in ("for", "if"):
                item.before = COMPREHENSION
            elif isinstance(item, Leaf) and item.text == "in" and item.before:
                item.before = 0
            if _text(item) == "else":
                raise Unknown
        return [*head, *_conditional(body[:loop], False), *comprehension, *tail]
    return [*head, *_conditional(body, alone), *comments, *tail]


def _conditional(items: list[Item], alone: bool) -> list[Item]:
    """`a if b else c`, in brackets that show where it is broken; else as it is."""
    place = _place(items, "if")
    if place < 0:
        return items
    other = place + _place(items[place:], "else")
    for item in (items[place], items[other]):
        assert isinstance(item, Leaf)
        item.before = TERNARY
    items = [*items[: other + 1], *_conditional(items[other + 1 :], False)]
    return items if alone else [_hidden(items)]


def _hidden(items: list[Item]) -> Group:
    """Brackets round items, which show only where the line breaks at them."""
    opening, closing = Leaf("", "", "("), Leaf("", "", ")")
    opening.atom, closing.opening = True, opening
    first = next(iter(_flat(items)))
    opening.prefix, first.prefix = first.prefix, ""
    return Group(opening, closing, items)


def _statement(items: list[Item]) -> list[Item]:
    word = _text(items[0])
    match word:
        case "def" | "class" | "@" | "import" | "raise" | "pass":
            return items
        case "from":
            return _import(items)
        case "return" | "if" | "elif" | "while":
            end = len(items) if word == "return" else len(items) - 1
            return [items[0], *_optional(items[1:end]), *items[end:]]
        case "for":
            place = _place(items, "in")
            loop = items[place]
            assert isinstance(loop, Leaf)
            loop.before = 0
            target, values = items[1:place], items[place + 1 : -1]
            targets, ends = _optional(target), _optional(values)
            return [items[0], *targets, loop, *ends, items[-1]]
    places = [i for i, each in enumerate(items) if _text(each) in _ASSIGNMENTS]
    if places:
        target = items[: places[0]]
        if _place(target, ",") >= 0:
            target = [_hidden(target)]
        found = target
        for place, end in pairwise([*places, len(items)]):
            found += [items[place], *_optional(items[place + 1 : end])]
        return found
    if any(isinstance(each, Leaf) and each.before >= 5 for each in items):
        raise Unknown
    return items


def _import(items: list[Item]) -> list[Item]:
    place = _place(items, "import") + 1
    names = items[place:]
    if len(names) == 1 and isinstance(names[0], Group):
        names[0].open.text = names[0].close.text = ""
        return items
    return [*items[:place], _hidden(names)]


def _optional(items: list[Item]) -> list[Item]:
    """An expression whose own brackets, if any, show only where the line breaks."""
    if len(items) == 1 and isinstance(group := items[0], Group):
        inside = group.items
        round_ones = group.open.bracket == "("
        if round_ones and inside and _place(inside, ",", "for") < 0:
            if len(inside) == 1 and isinstance(inside[0], Group):
                raise Unknown
            if any(isinstance(each, Leaf) and each.is_comment for each in inside):
                raise Unknown
            group.open.text = group.close.text = ""
            return items
        if round_ones:
            # A tuple or a generator keeps its brackets, and gets no others.
            return items
    if _place(items, "if") >= 0:
        items = _conditional(items, True)
    if any(_text(each) == "," for each in items):
        items = _elements(items, alone=False)
    return [_hidden(items)]
