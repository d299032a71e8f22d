"""Python text in black's form, for the part of Python that templates emit.

Finds the statements, and in long lists their elements; those that are in the form
already, as nearly all are, are only looked over. Raises Unknown where it meets anything
that is not known here, and never guesses; the tests hold what it makes against black.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from .breaking import WIDTH, Line, broken_lines
from .leaves import Unknown, element, statement

_STRINGS = re.compile(r"""[rbf]{0,2}"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'""")
_BRACKETS = re.compile(r"[()\[\]{}]")
_INNER = re.compile(r"[(\[{][^()\[\]{}]*[)\]}]")
# What black could have to touch although the line is short and whole.
_SPACED = (",)", ",]", ",}", " )", " ]", "( ", "[ ")
_BRACKETED = ("= (", "return (", " in (", "if (", "while (")
_IMPORTS = ("import ", "from ")
_DEFINITIONS = ("@", "class ", "def ")
# A line that ends in the bracket of a list whose elements have a line each.
_HEAD = re.compile(
    r"(?:def |class |return |(?:\w+=)|(?:[\w.]+(?:: [\w.\[\], |]+)? [-+*|]?= )"
    r'|(?:"[^"]*": ))?(?P<name>[\w.]*)(?P<bracket>[(\[{])(?:  # .*)?'
)
_TAIL = re.compile(r"[)\]}](?:,|:| -> [\w.\[\], |\"]+:)?")


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
            line = Line(statement(self.lines[at:end]), indent // 4)
            yield from broken_lines(line)

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
                yield from broken_lines(Line(leaves, indent // 4 + 1, inside=True))
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
