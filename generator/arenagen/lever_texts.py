"""Texts that are typed for a lever.

A program reads what it does not know as the default, so that it starts; whoever types
one is told.
"""

from __future__ import annotations

from .errors import ArenagenError
from .model import Lever
from .sizing import read_lever

_BOOLS = {"true": True, "false": False}


def typed_lever(lever: Lever, text: str) -> int | bool | str:
    """What a lever means by a text; that of its variable, or true or false of a bool.

    Raises ArenagenError for a text that the lever does not know.
    """
    known = read_lever(lever, text)
    match lever.type:
        case "bool":
            texts = lever.on_when or lever.off_when
            if text in (*texts, _other_digit(lever)):
                return known
            if text.lower() in _BOOLS:
                return _BOOLS[text.lower()]
            accepted = [*texts, *(each for each in _BOOLS if each not in texts)]
        case _:
            words = [word for word, _, _ in lever.words]
            accepted = list(words)
            if text.strip().lower() in words or not (words or lever.clamp):
                return known
            if lever.clamp is not None:
                if _count(text) is not None:
                    return known
                low, high = lever.clamp
                accepted.append(f"a count from {low} to {high}")
    shown = text if len(text) <= 40 else f"{text[:40]}..."
    raise ArenagenError(
        f"--lever {lever.name}={shown}: give one of: {', '.join(accepted)}"
    )


def clamped(lever: Lever, text: str, value: int | bool | str) -> bool:
    """Whether a text is a count that was taken as another one, the value."""
    words = {word for word, _, _ in lever.words}
    count = _count(text)
    is_count = lever.type == "int" and text.strip().lower() not in words
    return is_count and count is not None and count != str(value)


def _count(text: str) -> str | None:
    """The digits of a count that matter, None of what is no count."""
    digits = text.strip().removeprefix("+")
    if not (digits.isascii() and digits.isdecimal()):
        return None
    return digits.lstrip("0") or "0"


def _other_digit(lever: Lever) -> str:
    """The digit that says plainly that a bool is not what its texts make it."""
    return "0" if lever.on_when else "1"
