"""How levers are read from environment variables."""

from __future__ import annotations

from collections.abc import Mapping


def switch_on(
    environ: Mapping[str, str], variable: str, words: tuple[str, ...], default: bool
) -> bool:
    """Return whether the variable is exactly one of `words`; unset, `default`."""
    value = environ.get(variable)
    return default if value is None else value in words


def switch_off(
    environ: Mapping[str, str], variable: str, words: tuple[str, ...], default: bool
) -> bool:
    """Return False when the variable is exactly one of `words`; unset, `default`."""
    value = environ.get(variable)
    return default if value is None else value not in words


def count_or_word(
    environ: Mapping[str, str],
    variable: str,
    words: Mapping[str, int],
    bounds: tuple[int, int] | None,
    default: int,
) -> int:
    """Return what the variable's word means, or its count clamped to `bounds`.

    Blanks around the text and its case do not count; without bounds there are no
    counts. Anything else, and an unset variable, is `default`.
    """
    text = environ.get(variable, "").strip().lower()
    if text in words:
        return words[text]
    digits = text.removeprefix("+")
    # More digits than any bound has: int() would only make a huge number of them.
    if bounds is None or not digits.isascii() or not digits.isdecimal():
        return default
    low, high = bounds
    significant = digits.lstrip("0")
    if len(significant) > 19:
        return high
    return max(low, min(int(significant or "0"), high))


def text_or_word(
    environ: Mapping[str, str],
    variable: str,
    words: Mapping[str, str],
    default: str,
) -> str:
    """Return the variable's text or, where words are given, what the word means.

    With words, blanks around the text and its case do not count, and anything else
    is `default`, as an unset variable is.
    """
    value = environ.get(variable)
    if value is None:
        return default
    return words.get(value.strip().lower(), default) if words else value
