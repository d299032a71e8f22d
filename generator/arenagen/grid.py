"""Rows under columns as a table, JSON, CSV or Markdown. Data in, text out."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import TYPE_CHECKING

from . import markdown
from .accounts import Account, Cell

if TYPE_CHECKING:
    from rich.table import Table


def grid_as_data(found: Account) -> list[dict[str, object]]:
    """The rows as plain data, a mapping each."""
    return [
        {
            column: list(cell) if isinstance(cell, tuple) else cell
            for column, cell in zip(found.columns, row, strict=True)
        }
        for row in found.rows
    ]


def grid_as_csv(found: Sequence[tuple[str, Account]]) -> str:
    """The rows of several configs below one header; names of a cell by blanks."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(["config", *found[0][1].columns])
    for config, each in found:
        for row in each.rows:
            cells = (" ".join(c) if isinstance(c, tuple) else c for c in row)
            writer.writerow([config, *cells])
    return text.getvalue()


def grid_as_markdown(title: str, found: Account) -> str:
    """A Markdown table with a title above and the note below."""
    rows = [[markdown.text(_shown(cell)) for cell in row] for row in found.rows]
    lines = [f"### {markdown.text(title)}", ""]
    lines += markdown.table(found.columns, rows, _numbers(found))
    return "\n".join([*lines, "", markdown.text(found.note)]) + "\n"


def grid_as_table(title: str, found: Account) -> Table:
    """A rich table with the note below."""
    from rich.table import Table
    from rich.text import Text

    table = Table(
        title=Text(title),
        caption=Text(found.note),
        title_justify="left",
        caption_justify="left",
        title_style="bold",
    )
    numbers = _numbers(found)
    for column in found.columns:
        number = column in numbers
        # A narrow terminal folds the other columns; a cut number tells nothing.
        table.add_column(
            column,
            justify="right" if number else "left",
            no_wrap=number,
            overflow="fold",
        )
    for row in found.rows:
        table.add_row(*(Text(_shown(cell)) for cell in row))
    return table


def _numbers(found: Account) -> list[str]:
    """The columns that hold numbers, or nothing."""
    return [
        column
        for place, column in enumerate(found.columns)
        if all(isinstance(row[place], int | None) for row in found.rows)
    ]


def _shown(cell: Cell) -> str:
    if isinstance(cell, tuple):
        return ", ".join(cell) or "none"
    if cell is None:
        return ""
    return f"{cell:,}" if isinstance(cell, int) else cell
