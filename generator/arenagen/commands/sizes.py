"""`arenagen sizes`: the bytes of every buffer for real model configs."""

from __future__ import annotations

import click

from .console import new_console
from .inputs import asked_inputs, default_schema, load_checked
from .options import ModelOptions, exits, model_options


@click.command()
@model_options
@click.option(
    "--format",
    "style",
    type=click.Choice(["table", "json", "csv", "md"]),
    default="table",
    show_default=True,
)
@exits
def sizes(
    options: ModelOptions,
    style: str,
) -> int:
    """Print the bytes of every buffer for real model configs.

    Limits that are not given take the schema's defaults, and levers too: the
    environment is not read.
    """
    from .. import report
    from ..sizing import size_arena

    checked = load_checked(options.schema or default_schema())
    model = checked.schema
    asked = asked_inputs(checked, options)
    found = [(name, size_arena(model, inputs)) for name, inputs in asked]
    match style:
        case "json":
            data = [report.as_data(model, name, size) for name, size in found]
            click.echo(report.as_json(data), nl=False)
        case "csv":
            click.echo(report.as_csv(model, found), nl=False)
        case "md":
            texts = (report.as_markdown(name, size) for name, size in found)
            click.echo("\n".join(texts), nl=False)
        case _:
            console = new_console()
            for name, size in found:
                console.print(report.as_table(name, size))
    return 0
