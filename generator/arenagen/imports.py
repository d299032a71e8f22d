"""The relative imports of one emitted module, in isort's order."""

from __future__ import annotations

import re
from collections import defaultdict
from functools import cache

from .settled import WIDTH


def isort_key(name: str, fold: bool = False) -> tuple[int, list[tuple[int, str]], str]:
    """Constants, then classes, then functions; each by the alphabet, numbers by value.

    The order that isort and ruff keep: `fold` for imports, without it for `__all__`.
    """
    kind = 0 if name.isupper() else 1 if name[0].isupper() else 2
    parts = re.findall(r"(\d+)|(\D+)", name.lower() if fold else name)
    natural = [(int(digits or 0), text) for digits, text in parts]
    return kind, natural, name


def import_key(name: str) -> tuple[int, list[tuple[int, str]], str]:
    """The order of names in an import."""
    return isort_key(name, fold=True)


class Imports:
    """Collects names and spells the import statements."""

    def __init__(self, package_depth: str = ".") -> None:
        self._dots = package_depth
        self._names: dict[str, set[str]] = defaultdict(set)

    def add(self, module: str, *names: str) -> None:
        """Import `names` from the sibling `module`."""
        self._names[module].update(names)

    def of(self, module: str) -> set[str]:
        """The names from the sibling `module`, to be added to."""
        return self._names[module]

    def update(self, other: Imports) -> None:
        """Import what another module does, too."""
        for module, names in other._names.items():
            self._names[module].update(names)

    def lines(self) -> tuple[str, ...]:
        """The statements, sorted, each within the line width."""
        return tuple(
            _statement(f"{self._dots}{module}", names)
            for module in sorted(self._names, key=_module_key)
            for names in _together(self._names[module])
        )


@cache
def _module_key(module: str) -> list[tuple[str, int]]:
    """The alphabet, numbers by value."""
    parts = re.findall(r"(\D+)(\d*)", module)
    return [(text, int(digits or 0)) for text, digits in parts]


def _together(names: set[str]) -> list[list[str]]:
    """The names of each statement: all of them, or everything, and each new name."""
    apart = {name for name in names if name == "*" or " as " in name}
    plain = sorted(names - apart, key=import_key)
    others = sorted(apart, key=_apart_key)
    return [each for each in (plain, *([name] for name in others)) if each]


def _apart_key(name: str) -> tuple[bool, object]:
    return name != "*", import_key(name.partition(" as ")[0])


def _statement(module: str, names: list[str]) -> str:
    if names == ["*"]:
        # What ruff says of it depends on its version.
        return f"from {module} import *  # noqa: F403, RUF100"
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= WIDTH:
        return line
    return "\n".join([f"from {module} import (", *(f"    {n}," for n in names), ")"])
