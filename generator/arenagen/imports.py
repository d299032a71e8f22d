"""The relative imports of one emitted module, in isort's order."""

from __future__ import annotations

from collections import defaultdict

from .plan import import_key

_WIDTH = 88


class Imports:
    """Collects names and spells the import statements."""

    def __init__(self, package_depth: str = ".") -> None:
        self._dots = package_depth
        self._names: dict[str, set[str]] = defaultdict(set)

    def add(self, module: str, *names: str) -> None:
        """Import `names` from the sibling `module`."""
        self._names[module].update(names)

    def lines(self) -> tuple[str, ...]:
        """The statements, sorted, each within the line width."""
        return tuple(
            _statement(f"{self._dots}{module}", sorted(names, key=import_key))
            for module, names in sorted(self._names.items())
            if names
        )


def _statement(module: str, names: list[str]) -> str:
    line = f"from {module} import {', '.join(names)}"
    if len(line) <= _WIDTH:
        return line
    return "\n".join([f"from {module} import (", *(f"    {n}," for n in names), ")"])
