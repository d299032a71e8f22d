"""`arenagen sizes`: the bytes of every buffer for real model configs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import click

from ..record import replace
from .console import new_console
from .inputs import asked_inputs
from .options import ModelCommand, ModelOptions, exits, model_options
from .progress import progress
from .schemas import default_schema, load_checked

if TYPE_CHECKING:
    from ..accounts import By
    from ..model import Schema
    from ..sizing import ArenaSize, Inputs


@click.command(cls=ModelCommand)
@model_options("The limit of tokens in a pass; several with commas, as in 512,8192.")
@click.option(
    "--format",
    "style",
    type=click.Choice(["table", "json", "csv", "md"]),
    default="table",
    show_default=True,
)
@click.option(
    "--by",
    type=click.Choice(["limit", "gate", "group", "use"]),
    help="What the bytes depend on, instead of every buffer.",
)
@click.option(
    "--trim/--no-trim",
    "trimmed",
    default=True,
    help="Whether trims empty their buffers.",
)
@exits
def sizes(options: ModelOptions, style: str, by: By | None, trimmed: bool) -> int:
    """Print the bytes of every buffer for real model configs.

    Limits that are not given take the schema's defaults, and levers too: the
    environment is not read. Several token limits give a table of totals, models by
    limits, and in JSON and CSV every buffer for each.
    """
    from .. import report, totals

    checked = load_checked(options.schema or default_schema())
    model = checked.schema if trimmed else replace(checked.schema, trims=())
    asked = asked_inputs(checked, options, several=True)
    if by is not None:
        _print_accounts(model, asked, by, style)
        return 0
    found = list(_sized(model, asked, len(options.tokens)))
    grid = len(options.tokens) > 1
    match style:
        case "json":
            data = [report.as_data(model, name, size) for name, size in found]
            click.echo(report.as_json(data), nl=False)
        case "csv":
            click.echo(report.as_csv(model, found), nl=False)
        case "md" if grid:
            click.echo(totals.totals_as_markdown(model, found), nl=False)
        case "md":
            texts = (report.as_markdown(name, size) for name, size in found)
            click.echo("\n".join(texts), nl=False)
        case _ if grid:
            new_console().print(totals.totals_as_table(model, found))
        case _:
            console = new_console()
            for name, size in found:
                console.print(report.as_table(name, size, console.width))
    return 0


def _sized(
    schema: Schema, asked: list[tuple[str, Inputs]], several: int
) -> Iterator[tuple[str, ArenaSize]]:
    """The sizes under all inputs; `several` in a row differ by their tokens alone."""
    from ..points import Points
    from ..sizing import size_arena

    limit = schema.token_limit.name
    for place, (name, inputs) in enumerate(progress(asked, "sizing")):
        if several < 2:
            yield name, size_arena(schema, inputs)
            continue
        if place % several == 0:
            points = Points(schema, inputs, limit)
            row = asked[place : place + several]
            points.prepare(each.limits[limit] for _, each in row)
        yield name, points.arena(inputs.limits[limit])


def _print_accounts(
    schema: Schema, asked: list[tuple[str, Inputs]], by: By, style: str
) -> None:
    from .. import grid, report
    from ..accounts import account

    found = [(name, inputs, account(schema, inputs, by)) for name, inputs in asked]
    match style:
        case "json":
            data: list[dict[str, object]] = [
                {
                    "schema": schema.arena.package,
                    "config": name,
                    "limits": dict(inputs.limits),
                    "tp": inputs.tp,
                    "by": by,
                    "rows": grid.grid_as_data(each),
                    "note": each.note,
                }
                for name, inputs, each in found
            ]
            click.echo(report.as_json(data), nl=False)
        case "csv":
            rows = [(name, each) for name, _, each in found]
            click.echo(grid.grid_as_csv(rows), nl=False)
        case "md":
            texts = (
                grid.grid_as_markdown(report.title(name, inputs), each)
                for name, inputs, each in found
            )
            click.echo("\n".join(texts), nl=False)
        case _:
            console = new_console()
            for name, inputs, each in found:
                title = report.title(name, inputs)
                console.print(grid.grid_as_table(title, each))
