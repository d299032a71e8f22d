"""Exact integer helpers of the sizing code, and the checks on its inputs."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Final

from .errors import ConfigError, SizeError

# The largest size in bytes that a device API takes.
MAX_SIZE: Final = 2**63 - 1

_SHOWN_CHARACTERS = 80


def align(value: int, multiple: int, what: str = "align") -> int:
    """Return `value` rounded up to a multiple of `multiple`, at least 1.

    `what` names the formula in the error.
    """
    if multiple < 1:
        why = f"{value} cannot be rounded to a multiple of {multiple}"
        raise SizeError(f"{what}: {why}")
    return -(-value // multiple) * multiple


def cdiv(value: int, divisor: int, what: str = "cdiv") -> int:
    """Return `value` divided by `divisor`, rounded up; `what` names the formula."""
    if divisor == 0:
        raise SizeError(f"{what}: {value} divided by 0 is undefined")
    return -(-value // divisor)


def clamp(value: int, low: int, high: int, what: str = "clamp") -> int:
    """Return the integer nearest to `value` from `low` to `high`.

    `what` names the formula in the error.
    """
    if low > high:
        raise SizeError(f"{what}: no integer is from {low} to {high}, for {value}")
    return max(low, min(value, high))


def floordiv(value: int, divisor: int, what: str) -> int:
    """Return `value // divisor`; `what` names the formula in the error."""
    if divisor == 0:
        raise SizeError(f"{what}: {value} // {divisor} is undefined")
    return value // divisor


def modulo(value: int, divisor: int, what: str) -> int:
    """Return `value % divisor`; `what` names the formula in the error."""
    if divisor == 0:
        raise SizeError(f"{what}: {value} % {divisor} is undefined")
    return value % divisor


def natural(value: int, what: str) -> int:
    """Return `value`, a size; `what` names the formula in the error.

    Raise SizeError when it is negative.
    """
    if value < 0:
        raise SizeError(f"{what}: {value} is negative")
    return value


def check_size(what: str, nbytes: int) -> int:
    """Return a size in bytes; raise SizeError for one that no device API takes."""
    if nbytes > MAX_SIZE:
        raise SizeError(f"{what}: {show(nbytes)} bytes is more than 2**63 - 1")
    return nbytes


def behind(offset: int, end: int, what: str) -> int:
    """Return the fixed `offset` of a region, in bytes; `what` names the region.

    Raise SizeError when it lies before `end`, where the region in front of it ends.
    """
    if offset < end:
        why = f"begins at byte {offset}, inside what ends at byte {end}"
        raise SizeError(f"{what}: {why}")
    return offset


def next_in(values: Sequence[int], value: int, name: str) -> int:
    """Return the smallest of `values` that is at least `value`.

    `values` ascend. Raise SizeError, which calls them `name`, when all are smaller.
    """
    place = bisect_left(values, value)
    if place == len(values):
        limit = f"its largest is {values[-1]}" if values else "it is empty"
        raise SizeError(f"{name}: nothing is at least {value}, {limit}")
    return values[place]


def check_int(
    name: str, value: object, minimum: int = 0, maximum: int | None = None
) -> int:
    """Return `value` when it is an int, not a bool, from `minimum` to `maximum`.

    Raise ConfigError otherwise. Without a maximum there is no upper bound.
    """
    if not isinstance(value, int) or isinstance(value, bool):
        raise _wrong(name, value, "an int")
    if maximum is None:
        if value < minimum:
            raise ConfigError(f"{name} is {show(value)}; at least {minimum}")
    elif not minimum <= value <= maximum:
        raise ConfigError(f"{name} is {show(value)}; from {minimum} to {maximum}")
    return value


def check_bool(name: str, value: object) -> bool:
    """Return `value` when it is a bool; raise ConfigError otherwise."""
    if isinstance(value, bool):
        return value
    raise _wrong(name, value, "True or False")


def check_str(name: str, value: object) -> str:
    """Return `value` when it is a str; raise ConfigError otherwise."""
    if isinstance(value, str):
        return value
    raise _wrong(name, value, "a str")


def check_strs(name: str, value: object) -> tuple[str, ...]:
    """Return a list or tuple of str as a tuple; raise ConfigError otherwise."""
    if not isinstance(value, (list, tuple)):
        raise _wrong(name, value, "a list of str")
    return tuple(
        check_str(f"{name}[{place}]", item) for place, item in enumerate(value)
    )


def _wrong(name: str, value: object, wanted: str) -> ConfigError:
    kind = type(value).__name__
    return ConfigError(f"{name} is {show(value)} ({kind}), not {wanted}")


def show(value: object) -> str:
    """Return a value as an error shows it, however long it is."""
    # str() of an int of more than 4300 digits raises; hex() does not.
    text = hex(value) if isinstance(value, int) and abs(value) > 2**128 else repr(value)
    if len(text) > _SHOWN_CHARACTERS:
        text = text[:_SHOWN_CHARACTERS] + "..."
    return text
