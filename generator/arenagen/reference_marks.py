"""Names, links and formulas as the pages of a reference spell them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from .formula import spell
from .markdown import code
from .model import Formula

Lines: TypeAlias = Iterator[str]


def anchor(kind: str, name: str) -> str:
    """A name that links can lead to; GitHub's own anchors exist for headings alone."""
    return f'<a id="{kind}-{name}"></a>{code(name)}'


def link(kind: str, name: str) -> str:
    """A name that leads to its anchor."""
    return f"[{code(name)}](#{kind}-{name})"


def links(kind: str, names: Iterable[str]) -> str:
    """Several names that lead to their anchors."""
    return ", ".join(link(kind, name) for name in names)


def cell(words: str) -> str:
    """A code span in the cell of a table."""
    return code(words, in_cell=True)


def cell_of(formula: Formula | None) -> str:
    """A formula in the cell of a table, which is empty without one."""
    return "" if formula is None else cell(spell(formula.expr))
