"""Totals of models by token limits, as a table or Markdown. Prints nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import markdown
from .model import Schema
from .report import human
from .sizing import ArenaSize

if TYPE_CHECKING:
    from rich.table import Table


def totals_as_table(schema: Schema, found: Sequence[tuple[str, ArenaSize]]) -> Table:
    """A row a config, a column a token limit, each the bytes of all buffers.

    `found` holds every limit of a config, one after the other, in the same order.
    """
    from rich.table import Table
    from rich.text import Text

    header, rows = _cells(schema, found)
    table = Table(title=Text(_title(schema, found)), title_justify="left")
    for place, column in enumerate(header):
        table.add_column(
            column, justify="right" if place else "left", no_wrap=True, overflow="fold"
        )
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def totals_as_markdown(schema: Schema, found: Sequence[tuple[str, ArenaSize]]) -> str:
    """The same in Markdown."""
    header, rows = _cells(schema, found)
    lines = [f"### {markdown.text(_title(schema, found))}", ""]
    cells = [[markdown.text(config), *totals] for config, *totals in rows]
    return "\n".join([*lines, *markdown.table(header, cells, header[1:])]) + "\n"


def _cells(
    schema: Schema, found: Sequence[tuple[str, ArenaSize]]
) -> tuple[list[str], list[list[str]]]:
    limit = schema.token_limit
    tokens = list(dict.fromkeys(size.inputs.limits[limit.name] for _, size in found))
    name = limit.symbol or limit.name
    rows = []
    for start in range(0, len(found), len(tokens)):
        part = found[start : start + len(tokens)]
        rows.append([part[0][0], *(human(size.total_bytes) for _, size in part)])
    return ["config", *(f"{name} = {each}" for each in tokens)], rows


def _title(schema: Schema, found: Sequence[tuple[str, ArenaSize]]) -> str:
    inputs = found[0][1].inputs
    said = [
        f"{name}={value}"
        for name, value in inputs.limits.items()
        if name != schema.token_limit.name
    ]
    if inputs.tp > 1:
        said.append(f"tp={inputs.tp}")
    return ", ".join(["all buffers together", *said])
