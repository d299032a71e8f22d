"""Numbers and names as the page spells them."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterable

from ..report import human

# A value this long, such as the type of each layer, is cut.
MAX_VALUE = 48
# Controls, bidirectional marks and half characters: a browser would obey or drop them.
_INVISIBLE = {"Cc", "Cf", "Co", "Cs", "Zl", "Zp"}


def visible(text: str) -> str:
    """The text with every character that would not show spelled out."""
    return "".join(
        f"\\u{{{ord(each):x}}}" if unicodedata.category(each) in _INVISIBLE else each
        for each in text
    )


def exact(nbytes: int) -> str:
    """`1,234`."""
    return f"{nbytes:,}"


def whole(nbytes: int) -> str:
    """A byte count for an axis: without decimals where they are zero."""
    return human(nbytes).replace(".00", "")


def signed(nbytes: int) -> str:
    """A difference in its largest unit, with its sign."""
    sign = "+" if nbytes > 0 else "\N{MINUS SIGN}" if nbytes < 0 else ""
    return f"{sign}{human(abs(nbytes))}"


def share_of(nbytes: int, total: int) -> str:
    """A part of a total in percent, one decimal."""
    return f"{nbytes / total:.1%}" if total else "0.0%"


def counted(number: int, noun: str) -> str:
    """`1 memset`, `2 memsets`."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def value_text(value: object) -> str:
    """A value of an input; the elements of a list are counted where they are many."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return exact(value)
    if isinstance(value, tuple):
        text = "[" + ", ".join(map(str, value)) + "]"
        if len(text) <= MAX_VALUE:
            return text
        kinds = dict.fromkeys(map(str, value))
        counts = [f"{list(map(str, value)).count(kind)} {kind}" for kind in kinds]
        return ", ".join(counts)
    text = str(value)
    cut = text if len(text) <= MAX_VALUE else f"{text[: MAX_VALUE - 3]}..."
    return f"'{cut}'"


def assignments(values: Iterable[tuple[str, object]]) -> str:
    """`a = 1, b = 2`."""
    return ", ".join(f"{name} = {value_text(value)}" for name, value in values)
