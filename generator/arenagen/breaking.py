"""Where a line breaks that is too long: black's rules, over leaves.

Break at the last brackets, then at the outermost delimiters, again and again.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterator
from typing import Literal, TypeAlias

from .leaves import COMMA, DOT, Leaf, Unknown
from .record import record
from .settled import WIDTH

_LAST_COMMA = re.compile(r",[)\]}]|,$")


class _CannotSplit(Exception):
    """A line that stays as it is."""


class Line:
    """Leaves that stand on one line, as long as it is not broken further.

    inside: whether it stands in brackets. part: whether it is all of what was broken,
    or a head or a tail, where only what is in brackets counts, or nothing does.
    must_split: whether it is broken at its commas although it is short.
    """

    __slots__ = (
        "delimiters",
        "depth",
        "hidden",
        "inside",
        "leaves",
        "magic",
        "must_split",
        "outermost",
        "part",
        "places",
    )

    def __init__(
        self,
        leaves: list[Leaf],
        depth: int,
        inside: bool = False,
        part: Literal["all", "head", "tail"] = "all",
        must_split: bool = False,
    ) -> None:
        self.leaves = leaves
        self.depth = depth
        self.inside = inside
        self.part = part
        self.must_split = must_split
        self.places: dict[Leaf, int] = {}
        # The leaves behind which a line may break, and the priorities of the breaks.
        self.delimiters: dict[Leaf, int] = {}
        # The brackets that show only where the line is broken: outermost ones, and all.
        self.outermost: list[Leaf] = []
        self.hidden: list[Leaf] = []
        # Whether a list ends in a comma that keeps it broken.
        self.magic = False

    def track(self) -> None:
        """Find the places where it may break."""
        if self.places:
            return
        self.places = {leaf: place for place, leaf in enumerate(self.leaves)}
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
        """Whether brackets are those of a tuple of one element."""
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

    def copy(self) -> Line:
        """The same line of leaves of its own."""
        twins: dict[Leaf, Leaf] = {}
        for leaf in self.leaves:
            twin = twins[leaf] = Leaf(leaf.text, leaf.prefix, leaf.bracket)
            twin.before, twin.atom = leaf.before, leaf.atom
            if leaf.opening is not None:
                twin.opening = twins.get(leaf.opening)
        return Line(list(twins.values()), self.depth, self.inside)


def broken_lines(line: Line) -> list[str]:
    """The lines that a line becomes, indented. Raises Unknown."""
    return _transform(line, line.text())


def _transform(line: Line, text: str, forced: bool = False) -> list[str]:
    """The lines that a line becomes. forced: hidden brackets show where they can."""
    if len(text) <= WIDTH and not line.must_split and not line.has_comments:
        if not _LAST_COMMA.search(text):
            return [text]
        line.track()
        if not line.magic:
            return [text]
    line.track()
    if line.leaves[0].is_comment and len(line.leaves) == 1:
        return [text]
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
    return [text]


def _run(line: Line, split: _Split, forced: bool, text: str) -> list[str]:
    result: list[str] = []
    for part in split(line, forced):
        part_text = part.text()
        if part_text == text:
            raise _CannotSplit
        result += _transform(part, part_text, forced)
    if (
        forced
        or split is not _right_hand
        or not line.hidden
        or any(leaf.text for leaf in line.outermost)
        or _is_short(result[0])
    ):
        return result
    again = line.copy()
    again.track()
    second = _run(again, split, True, text)
    return second if all(map(_is_short, second)) else result


def _is_short(text: str) -> bool:
    """Whether a line that was made fits, and is no comment."""
    return len(text) <= WIDTH and not text.lstrip().startswith("#")


def _at_delimiters(line: Line, forced: bool) -> list[Line]:
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
    return [Line(part, line.depth, line.inside) for part in parts]


def _at_comments(line: Line, forced: bool) -> list[Line]:
    """Break round comments that stand on lines of their own."""
    if not line.has_comments:
        raise _CannotSplit
    return [Line(part, line.depth, line.inside) for part in _parts(line, 0)]


def _parts(line: Line, priority: int) -> list[list[Leaf]]:
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


def _left_hand(line: Line, forced: bool) -> list[Line]:
    """Break a definition at the brackets of its parameters."""
    opening = next((leaf for leaf in line.leaves if leaf.bracket == "("), None)
    closing = next((leaf for leaf in line.leaves if leaf.opening is opening), None)
    if opening is None or closing is None:
        raise _CannotSplit
    return [*_broken(line, opening, closing).lines()]


@record
class _Broken:
    """A line, broken at a pair of brackets."""

    head: Line
    body: Line
    tail: Line
    opening: Leaf
    closing: Leaf

    def lines(self) -> Iterator[Line]:
        return (each for each in (self.head, self.body, self.tail) if each.leaves)


def _broken(line: Line, opening: Leaf, closing: Leaf) -> _Broken:
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
    middle = Line(body, line.depth + 1, inside=True)
    middle.track()
    trailing = body[-1].text == ","
    if middle.highest(without=body[-1] if trailing else None) == COMMA:
        middle.must_split = trailing or opening.atom or is_import
    return _Broken(
        Line(leaves[:start], line.depth, part="head"),
        middle,
        Line(leaves[end:], line.depth, part="tail"),
        opening,
        closing,
    )


def _right_hand(line: Line, forced: bool) -> list[Line]:
    """Break at the last brackets, or at earlier ones where all behind them fits."""
    widths: dict[Leaf, int] = {}
    width = 4 * line.depth
    for leaf in line.leaves:
        widths[leaf] = width
        width += len(leaf.prefix) + len(leaf.text)
    first: list[Line] | None = None
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


def _omissions(line: Line) -> Iterator[frozenset[Leaf]]:
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


def _last_brackets(line: Line, omit: frozenset[Leaf]) -> _Broken:
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


def _split_last(line: Line, forced: bool, omit: frozenset[Leaf]) -> list[Line]:
    return _without_hidden(_last_brackets(line, omit), line, forced, omit)


def _without_hidden(
    broken: _Broken, line: Line, forced: bool, omit: frozenset[Leaf]
) -> list[Line]:
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


def _fits_behind(body: Line, first: Leaf) -> bool:
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


def _fits_before(body: Line, last: Leaf) -> bool:
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


_Split: TypeAlias = Callable[[Line, bool], list[Line]]
