"""Patterns of Python text that is in black's form already, as far as templates emit it.

What they do not match may be in the form all the same. All begin at the start of a
line, and know brackets in brackets up to a depth of three.
"""

from __future__ import annotations

import re

WIDTH = 88

STRING = r"""(?:"(?!"")(?:[ !#-\[\]-~]++|\\.)*+"|'(?!'')(?:[ -&(-\[\]-~]++|\\.)*+')"""
# What is ASCII, and no quote or bracket, and in an item no comma; and a string without
# an escape.
_SIMPLE = r'"(?!"")[ !#-\[\]-~]*+"'
_PLAIN = rf"[ !$-&*-Z\\^-z|~]++|{_SIMPLE}"
_NO_COMMA = rf"[ !$-&*+\--Z\\^-z|~]++|{_SIMPLE}"
_ONE_TUPLE = r'(?<![\w)\]])\((?:"\w*"|[\w.]++),\)'
_PAIR = r"[(\[{][)\]}]"
for _ in range(3):
    # Brackets and what is in them: black keeps no space at either end.
    _PAIR = rf"[(\[{{](?! )(?:{_PLAIN}|{_ONE_TUPLE}|{_PAIR})*+(?<![, ])[)\]}}]"
# Brackets round a whole value, which black removes unless they hold a tuple.
_IS_NO_VALUE = (
    r"(?:(?<!= )(?<!return )(?<! in )(?<!if )(?<!while )"
    r'|(?=\((?:"\w*"|[\w.]++),)|(?=[^#\n]*[^#):\n]\n))'
)
_COMMENT = r"#.*+"
_DOCSTRING = r'"""(?:[^"\\]++|\\[\s\S]|"(?!""))*+"""'
_CODE = (
    rf"(?!import |from |.{{{WIDTH + 1}}})"
    rf"(?:{_PLAIN}|{_IS_NO_VALUE}(?:{_ONE_TUPLE}|{_PAIR}))++"
    rf"(?:(?<=  ){_COMMENT})?"
)
# Two blank lines in a row at most, and one inside of a block.
_BLANK = r"\n(?!\n)|\n\n(?![ \n])"
# Lines of whole statements, imports apart.
LINES = re.compile(rf"(?:{_BLANK}|(?: *+(?:{_DOCSTRING}|{_COMMENT})|{_CODE})\n)*+")
_ITEM = rf"(?:{_NO_COMMA}|{_ONE_TUPLE}|{_PAIR})++"
# Lines behind the same indent, each of one element of a list.
ELEMENTS = re.compile(
    rf"(?=(?P<pad> *))"
    rf"(?:(?!.{{{WIDTH + 1}}})(?P=pad)(?! |for )(?:{_ITEM},|{_COMMENT})\n)*+"
)
# One element of a list on one line.
ITEM = re.compile(_ITEM)

_STRINGS = re.compile(STRING)
_INNER = re.compile(r"[(\[{][^()\[\]{}]*[)\]}]")
# What black could have to touch although the line is short and whole.
_SPACED = (",)", ",]", ",}", " )", " ]", "( ", "[ ")
_BRACKETED = ("= (", "return (", " in (", "if (", "while (")


def is_settled(line: str) -> bool:
    """Whether black leaves a line alone that is whole."""
    if len(line) > WIDTH or not line.isascii():
        return False
    if line[-1] in "):" and any(map(line.__contains__, _BRACKETED)):
        return False
    code = line.lstrip()
    return not any(map(code.__contains__, _SPACED))


def is_one_element(line: str) -> bool:
    """Whether a line of a list has no more than one of its elements."""
    bare = _STRINGS.sub("", line.strip()).removesuffix(",")
    if bare.startswith("#") or "," not in bare:
        return True
    while "," in bare and (inner := _INNER.sub("", bare)) != bare:
        bare = inner
    return "," not in bare


def end_of(text: str, at: int) -> int:
    """Where what begins here ends: with a line behind which no bracket is open.

    -1 where there is no such line.
    """
    depth = 0
    while True:
        start, at = at, text.find("\n", at) + 1
        if not at:
            return -1
        depth += _left_open(text[start : at - 1])
        if depth <= 0:
            return at if not depth else -1


def _left_open(line: str) -> int:
    """How many brackets a line opens that it does not close."""
    bare = _STRINGS.sub("", line) if '"' in line or "'" in line else line
    if "#" in bare:
        bare = bare.partition("#")[0]
    return sum(map(bare.count, "([{")) - sum(map(bare.count, ")]}"))
