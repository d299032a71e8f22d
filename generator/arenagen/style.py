"""Python text in black's form, for the part of Python that templates emit.

The rules are black's: break at the last bracket, then at the outermost delimiters.
Text that is in this form already is only looked over. `styled` raises Unknown where
it meets anything else, and never guesses; the tests hold what it makes against black.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from .leaves import COMMA, DOT, Leaf, Unknown, element, logical_line

WIDTH = 88
_STRINGS = re.compile(r"""[rbf]{0,2}"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""")
_BRACKETS = re.compile(r"[()\[\]{}]")
_INNER = re.compile(r"[(\[{][^()\[\]{}]*[)\]}]")
# What black could have to touch although the line is short and whole.
_SPACED = (",)", ",]", ",}", " )", " ]", "( ", "[ ")
_BRACKETED = ("= (", "return (", " in (", "if (", "while (")
_IMPORTS = ("import ", "from ")
_DEFINITIONS = ("@", "class ", "def ")
_LAST_COMMA = re.compile(r",[)\]}]|,$")
# A line that ends in the bracket of a list whose elements have a line each.
_HEAD = re.compile(
    r"(?:def |class |return |(?:\w+=)|(?:[\w.]+(?:: [\w.\[\], |]+)? [-+*|]?= )"
    r'|(?:"[^"]*": ))?(?P<name>[\w.]*)(?P<bracket>[(\[{])(?:  # .*)?'
)
_TAIL = re.compile(r"[)\]}](?:,|:| -> [\w.\[\], |\"]+:)?")


class _CannotSplit(Exception):
    """A line that stays as it is."""


def styled(text: str) -> str:
    """The text in black's form. Raises Unknown."""
    return "\n".join(_Reader(text.split("\n")).statements())


class _Reader:
    def __init__(self, lines: list[str]) -> None:
        self.lines = lines
        # What each line leaves open, string literals apart.
        self.open = [_left_open(line) for line in lines]

    def statements(self) -> Iterator[str]:
        """All lines, blank ones among them: two at most, and one inside of a block."""
        lines, at, blank, behind_import = self.lines, 0, 0, False
        while at < len(lines):
            line = lines[at]
            code = line.lstrip()
            if not code:
                blank += 1
                at += 1
                continue
            indent = len(line) - len(code)
            if behind_import:
                blank = self.behind_imports(at, blank)
            yield from [""] * min(blank, 1 if indent else 2)
            blank, behind_import = 0, code.startswith(_IMPORTS) and not indent
            is_docstring = code.startswith('"""')
            end = self.docstring_end(at) if is_docstring else self.end(at)
            if is_docstring:
                yield from lines[at:end]
            elif code[0] == "#" or (end == at + 1 and _is_settled(line)):
                yield line
            else:
                yield from self.statement(at, end, indent)
            at = end
        yield ""

    def behind_imports(self, at: int, blank: int) -> int:
        """How many blank lines stand between imports and what follows them."""
        code = next((each for each in self.lines[at:] if each[:1] != "#"), "")
        if code.startswith(_IMPORTS):
            return blank
        return 2 if code.startswith(_DEFINITIONS) else 1

    def docstring_end(self, at: int) -> int:
        """The line behind a docstring."""
        first = self.lines[at].strip()
        if not (first.endswith('"""') and len(first) >= 6):
            at += 1
            while not self.lines[at].endswith('"""'):
                at += 1
        return at + 1

    def end(self, at: int) -> int:
        """The line behind what begins here, up to where no bracket is open."""
        depth = self.open[at]
        while depth:
            at += 1
            if at == len(self.lines):
                raise Unknown
            depth += self.open[at]
        return at + 1

    def statement(self, at: int, end: int, indent: int) -> Iterator[str]:
        if self.is_list(at, end, indent):
            yield from self.list_lines(at, end, indent)
        else:
            leaves = logical_line(self.lines[at:end])
            line = _Line(leaves, indent // 4)
            yield from (each.text() for each in _transform(line))

    def is_list(self, at: int, end: int, indent: int) -> bool:
        """Whether the lines are a list in brackets, one element a line or more."""
        if end - at < 3:
            return False
        first, last = self.lines[at].strip(), self.lines[end - 1].strip()
        head = _HEAD.fullmatch(first)
        if head is None or not _TAIL.fullmatch(last):
            return False
        if self.open[at] != 1 or self.open[end - 1] != -1:
            return False
        if indent + len(first) > WIDTH or indent + len(last) > WIDTH:
            return False
        starts = list(self.elements(at, end))
        texts = [self.lines[stop - 1].strip() for _, stop in starts]
        if not all(text.endswith(",") or text.startswith("#") for text in texts):
            return False
        if not texts or texts[-1].startswith("#"):
            return False
        for start, stop in starts:
            if stop == start + 1 and not _is_one_element(self.lines[start]):
                return False
            if self.lines[start].lstrip().startswith("for "):
                return False
        if sum(text.endswith(",") for text in texts) > 1:
            return True
        # One element and a comma are a tuple, which is joined where it is short.
        return len(texts) == 1 and (bool(head["name"]) or head["bracket"] != "(")

    def elements(self, at: int, end: int) -> Iterator[tuple[int, int]]:
        place = at + 1
        while place < end - 1:
            stop = self.end(place)
            # An operator at the start of a line goes on with the element.
            yield place, stop
            place = stop

    def list_lines(self, at: int, end: int, indent: int) -> Iterator[str]:
        yield " " * indent + self.lines[at].strip()
        inner = " " * (indent + 4)
        for start, stop in self.elements(at, end):
            line = inner + self.lines[start].strip()
            if line.lstrip().startswith("#") or (
                stop == start + 1 and _is_settled(line)
            ):
                yield line
            elif self.is_list(start, stop, indent + 4):
                yield from self.list_lines(start, stop, indent + 4)
            else:
                leaves = element(self.lines[start:stop])
                body = _Line(leaves, indent // 4 + 1, inside=True)
                yield from (each.text() for each in _transform(body))
        yield " " * indent + self.lines[end - 1].strip()


def _left_open(line: str) -> int:
    if not _BRACKETS.search(line):
        return 0
    bare = _STRINGS.sub("", line) if '"' in line or "'" in line else line
    if "#" in bare:
        bare = bare.partition("#")[0]
    found = _BRACKETS.findall(bare)
    return sum(1 if each in "([{" else -1 for each in found)


def _is_settled(line: str) -> bool:
    if len(line) > WIDTH or not line.isascii():
        return False
    if line[-1] in "):" and any(map(line.__contains__, _BRACKETED)):
        return False
    code = line.lstrip()
    return not any(map(code.__contains__, _SPACED))


def _is_one_element(line: str) -> bool:
    bare = _STRINGS.sub("", line.strip()).removesuffix(",")
    if bare.startswith("#") or "," not in bare:
        return True
    while "," in bare and (inner := _INNER.sub("", bare)) != bare:
        bare = inner
    return "," not in bare


@dataclass(slots=True)
class _Line:
    """Leaves that stand on one line, as long as it is not broken further.

    inside: whether it stands in brackets. part: whether it is all of what was broken,
    or a head or a tail, where only what is in brackets counts, or nothing does.
    must_split: whether it is broken at its commas although it is short.
    """

    leaves: list[Leaf]
    depth: int
    inside: bool = False
    part: Literal["all", "head", "tail"] = "all"
    must_split: bool = False
    places: dict[Leaf, int] = field(init=False, default_factory=dict)
    # The leaves behind which a line may break, and the priorities of the breaks.
    delimiters: dict[Leaf, int] = field(init=False, default_factory=dict)
    # The brackets that show only where the line is broken: outermost ones, and all.
    outermost: list[Leaf] = field(init=False, default_factory=list)
    hidden: list[Leaf] = field(init=False, default_factory=list)
    # Whether a list ends in a comma that keeps it broken.
    magic: bool = field(init=False, default=False)

    def track(self) -> None:
        """Find the places where it may break."""
        if self.places:
            return
        self.places.update((leaf, place) for place, leaf in enumerate(self.leaves))
        depth = 0
        loops: list[int] = []
        tracked = self._tracked()
        last: Leaf | None = None
        for leaf in self.leaves:
            if loops and loops[-1] == depth and leaf.text == "in":
                depth -= 1
                loops.pop()
            if leaf.closes and leaf.opening in self.places:
                depth -= 1
            if leaf in tracked:
                if depth == 0:
                    if leaf.before and last is not None:
                        self.delimiters[last] = leaf.before
                    elif leaf.text == ",":
                        self.delimiters[leaf] = COMMA
                if leaf.bracket and not leaf.text:
                    self.hidden.append(leaf)
                    if depth == 0:
                        self.outermost.append(leaf)
                if leaf.closes and last is not None and last.text == ",":
                    self.magic = self.magic or self._keeps_broken(leaf)
            if leaf.opens:
                depth += 1
            elif leaf.text == "for":
                depth += 1
                loops.append(depth)
            last = leaf

    def _tracked(self) -> Collection[Leaf]:
        if self.part == "all":
            return self.places
        found: set[Leaf] = set()
        if self.part == "head":
            for place, leaf in enumerate(self.leaves):
                if leaf.opening is not None and leaf.opening in self.places:
                    start = self.places[leaf.opening]
                    found.update(self.leaves[start : place + 1])
        return found

    def _keeps_broken(self, closing: Leaf) -> bool:
        if closing.opening not in self.places:
            return False
        if closing.bracket == "}" or self.leaves[0].text == "from":
            return True
        is_list = closing.bracket == "]"
        return closing.opening.atom is is_list or not self.is_one(closing)

    def is_one(self, closing: Leaf) -> bool:
        """Whether brackets hold one element and a comma."""
        assert closing.opening is not None
        depth = commas = 0
        start = self.places[closing.opening] + 1
        for leaf in self.leaves[start : self.places[closing]]:
            depth += leaf.opens - leaf.closes
            commas += depth == 0 and leaf.text == ","
        return commas < 2 and closing.opening.atom

    def text(self) -> str:
        """The line, indented."""
        first, *others = self.leaves
        rest = "".join([leaf.prefix + leaf.text for leaf in others])
        return "    " * self.depth + first.text + rest

    @property
    def has_comments(self) -> bool:
        """Whether a comment stands on a line of its own in it."""
        return any(leaf.is_comment for leaf in self.leaves)

    def is_short(self, width: int = WIDTH) -> bool:
        """Whether it can stay one line."""
        return len(self.text()) <= width and not self.has_comments

    def highest(self, without: Leaf | None = None) -> int:
        """The highest priority of a delimiter, 0 for none."""
        return max(
            (value for leaf, value in self.delimiters.items() if leaf is not without),
            default=0,
        )

    def copy(self) -> _Line:
        """The same line of leaves of its own."""
        twins: dict[Leaf, Leaf] = {}
        for leaf in self.leaves:
            twin = twins[leaf] = Leaf(leaf.text, leaf.prefix, leaf.bracket)
            twin.before, twin.atom = leaf.before, leaf.atom
            if leaf.opening is not None:
                twin.opening = twins.get(leaf.opening)
        return _Line(list(twins.values()), self.depth, self.inside)


def _transform(line: _Line, forced: bool = False) -> list[_Line]:
    """The lines that a line becomes. forced: hidden brackets show where they can."""
    text = line.text()
    if len(text) <= WIDTH and not line.must_split and not line.has_comments:
        if not _LAST_COMMA.search(text):
            return [line]
        line.track()
        if not line.magic:
            return [line]
    line.track()
    if line.leaves[0].is_comment and len(line.leaves) == 1:
        return [line]
    splits: tuple[_Split, ...] = (_right_hand,)
    if line.leaves[0].text == "def":
        splits = (_left_hand,)
    elif line.inside:
        splits = (_at_delimiters, _at_comments, _right_hand)
    for split in splits:
        try:
            return _run(line, split, forced, text)
        except _CannotSplit:
            continue
    if line.has_comments:
        raise Unknown
    return [line]


def _run(line: _Line, split: _Split, forced: bool, text: str) -> list[_Line]:
    result: list[_Line] = []
    for part in split(line, forced):
        if part.text() == text:
            raise _CannotSplit
        result += _transform(part, forced)
    if (
        forced
        or split is not _right_hand
        or not line.hidden
        or any(leaf.text for leaf in line.outermost)
        or result[0].is_short()
    ):
        return result
    again = line.copy()
    again.track()
    second = _run(again, split, True, text)
    return second if all(each.is_short() for each in second) else result


def _at_delimiters(line: _Line, forced: bool) -> list[_Line]:
    """Break at the delimiters of the highest priority."""
    leaves = line.leaves
    priority = line.highest(without=leaves[-1])
    if not priority:
        raise _CannotSplit
    if priority == DOT and list(line.delimiters.values()).count(DOT) == 1:
        raise _CannotSplit
    parts = _parts(line, priority)
    if priority == COMMA:
        final = next(part for part in reversed(parts) if not part[0].is_comment)
        if final[-1].text != ",":
            final.append(Leaf(","))
    return [_Line(part, line.depth, line.inside) for part in parts]


def _at_comments(line: _Line, forced: bool) -> list[_Line]:
    """Break round comments that stand on lines of their own."""
    if not line.has_comments:
        raise _CannotSplit
    return [_Line(part, line.depth, line.inside) for part in _parts(line, 0)]


def _parts(line: _Line, priority: int) -> list[list[Leaf]]:
    """The leaves, parted round comments and behind delimiters of a priority."""
    parts: list[list[Leaf]] = [[]]
    depth = 0
    for leaf in line.leaves:
        if parts[-1] and depth == 0 and (leaf.is_comment or parts[-1][0].is_comment):
            parts.append([])
        parts[-1].append(leaf)
        depth += leaf.opens - leaf.closes
        if priority and line.delimiters.get(leaf) == priority:
            parts.append([])
    return [part for part in parts if part]


def _left_hand(line: _Line, forced: bool) -> list[_Line]:
    """Break a definition at the brackets of its parameters."""
    opening = next((leaf for leaf in line.leaves if leaf.bracket == "("), None)
    closing = next((leaf for leaf in line.leaves if leaf.opening is opening), None)
    if opening is None or closing is None:
        raise _CannotSplit
    return [*_broken(line, opening, closing).lines()]


@dataclass(frozen=True, slots=True)
class _Broken:
    """A line, broken at a pair of brackets."""

    head: _Line
    body: _Line
    tail: _Line
    opening: Leaf
    closing: Leaf

    def lines(self) -> Iterator[_Line]:
        return (each for each in (self.head, self.body, self.tail) if each.leaves)


def _broken(line: _Line, opening: Leaf, closing: Leaf) -> _Broken:
    start, end = line.places[opening] + 1, line.places[closing]
    leaves = line.leaves
    body = leaves[start:end]
    if not body:
        raise _CannotSplit
    first = leaves[0].text
    is_import = first == "from"
    alone = first == "def" and all(leaf.text != "," for leaf in body)
    if (is_import or alone) and body[-1].text != ",":
        body = [*body, Leaf(",")]
    middle = _Line(body, line.depth + 1, inside=True)
    middle.track()
    trailing = body[-1].text == ","
    if middle.highest(without=body[-1] if trailing else None) == COMMA:
        middle.must_split = trailing or opening.atom or is_import
    return _Broken(
        _Line(leaves[:start], line.depth, part="head"),
        middle,
        _Line(leaves[end:], line.depth, part="tail"),
        opening,
        closing,
    )


def _right_hand(line: _Line, forced: bool) -> list[_Line]:
    """Break at the last brackets, or at earlier ones where all behind them fits."""
    widths: dict[Leaf, int] = {}
    width = 4 * line.depth
    for leaf in line.leaves:
        widths[leaf] = width
        width += len(leaf.prefix) + len(leaf.text)
    first: list[_Line] | None = None
    for omit in _omissions(line):
        if omit:
            target = next(
                (x for x in reversed(line.leaves) if x.closes and x not in omit), None
            )
            opening = target.opening if target is not None else None
            if opening is not None and opening.text and widths.get(opening, 0) > WIDTH:
                continue
        lines = _split_last(line, forced, omit)
        if first is None and not omit:
            first = lines
        if lines[0].is_short():
            return lines
    return first if first is not None else _split_last(line, forced, frozenset())


def _omissions(line: _Line) -> Iterator[frozenset[Leaf]]:
    """Closing brackets that need not be broken at, since what follows fits."""
    omit: frozenset[Leaf] = frozenset()
    if not line.magic:
        yield omit
    width = 4 * line.depth
    opening: Leaf | None = None
    closing: Leaf | None = None
    inner: set[Leaf] = set()
    for place in range(len(line.leaves) - 1, -1, -1):
        leaf = line.leaves[place]
        width += len(leaf.prefix) + len(leaf.text)
        if width > WIDTH or leaf.is_comment:
            return
        last = line.leaves[place - 1] if place else None
        must_break = (
            last is not None
            and last.text == ","
            and leaf.opening in line.places
            and not line.is_one(leaf)
        )
        if opening is not None:
            if leaf is opening:
                opening = None
            elif leaf.closes:
                if must_break:
                    return
                inner.add(leaf)
        elif leaf.closes:
            if last is not None and last.opens:
                inner.add(leaf)
                continue
            if closing is not None:
                omit = omit | {closing} | inner
                inner = set()
                yield omit
            if must_break:
                return
            if leaf.text:
                opening, closing = leaf.opening, leaf


def _last_brackets(line: _Line, omit: frozenset[Leaf]) -> _Broken:
    place = len(line.leaves) - 1
    while place >= 0:
        leaf = line.leaves[place]
        if leaf.closes and leaf not in omit and leaf.opening in line.places:
            start = line.places[leaf.opening]
            if start < place - 1:
                return _broken(line, leaf.opening, leaf)
            place = start
        place -= 1
    raise _CannotSplit


def _split_last(line: _Line, forced: bool, omit: frozenset[Leaf]) -> list[_Line]:
    return _without_hidden(_last_brackets(line, omit), line, forced, omit)


def _without_hidden(
    broken: _Broken, line: _Line, forced: bool, omit: frozenset[Leaf]
) -> list[_Line]:
    """The lines of a break, or of one inside where hidden brackets need not show."""
    opening, closing = broken.opening, broken.closing
    if (
        not forced
        and opening.bracket == "("
        and not opening.text
        and not closing.text
        and line.leaves[0].text != "from"
        and _can_stay_hidden(broken)
    ):
        omit = omit | {closing}
        try:
            inner = _last_brackets(line, omit)
            if _is_better(inner, broken):
                return _without_hidden(inner, line, forced, omit)
        except _CannotSplit:
            chained = sum(leaf.text == "=" for leaf in line.leaves) > 1
            single = len(broken.body.leaves) < 2
            if single and not chained and not broken.body.is_short():
                raise
    opening.text, closing.text = opening.bracket, closing.bracket
    return list(broken.lines())


def _can_stay_hidden(broken: _Broken) -> bool:
    """Whether the body reads well without brackets of its own."""
    body = broken.body
    depth = 0
    for leaf in body.leaves:
        if leaf.is_comment and not depth:
            return False
        depth += bool(leaf.opens and leaf.text) - bool(leaf.closes and leaf.text)
    highest = body.highest()
    if not highest:
        return True
    if list(body.delimiters.values()).count(highest) > 1:
        return False
    if highest == DOT:
        return True
    leaves = body.leaves
    first, second, last = leaves[0], leaves[1], leaves[-1]
    if first.opens and not second.closes and _fits_behind(body, first):
        return True
    is_call = last.bracket == "]" and last.opening is not None and last.opening.atom
    if last.bracket in (")", "}") or is_call:
        return not leaves[-2].opens and _fits_before(body, last)
    return False


def _fits_behind(body: _Line, first: Leaf) -> bool:
    """Whether what follows the first brackets fits, up to further ones."""
    remainder = False
    width = 4 * body.depth
    for leaf in body.leaves:
        if leaf.is_comment:
            return False
        if leaf.closes and leaf.opening is first:
            remainder = True
        if remainder:
            width += len(leaf.prefix) + len(leaf.text)
            if width > WIDTH:
                return False
            if leaf.opens:
                remainder = False
    return True


def _fits_before(body: _Line, last: Leaf) -> bool:
    """Whether what precedes the last brackets fits, or has brackets too."""
    width = 4 * body.depth
    others = False
    for leaf in body.leaves:
        if leaf.is_comment:
            return False
        width += len(leaf.prefix) + len(leaf.text)
        if leaf is last.opening:
            return others or width <= WIDTH
        others = others or leaf.opens
    return False


def _is_better(inner: _Broken, outer: _Broken) -> bool:
    """Whether the break inside of hidden brackets is better than at them."""
    head = outer.head.leaves
    if len(head) < 2 or head[-2].text != "=":
        return True
    if not any(leaf.bracket for leaf in head[:-1]):
        return True
    outer.head.track()
    if not outer.head.is_short(WIDTH - 1) or outer.head.magic:
        return True
    signs = sum(leaf.text == "=" for leaf in head)
    if signs > 1 and signs > sum(leaf.text == "=" for leaf in inner.head.leaves):
        return False
    for leaf in reversed(inner.head.leaves):
        if leaf.text == "=":
            break
        if leaf.closes:
            return True
    has_sign = any(leaf.text == "=" for leaf in inner.head.leaves)
    return has_sign and inner.head.is_short()


_Split: TypeAlias = Callable[[_Line, bool], list[_Line]]
