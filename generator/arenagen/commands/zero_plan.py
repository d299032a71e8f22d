"""`arenagen zero-plan`: the memsets of a zeroing method."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .console import new_console
from .inputs import asked_inputs
from .options import ModelCommand, ModelOptions, exits, model_options
from .schemas import default_schema, load_checked

if TYPE_CHECKING:
    from ..zeroing import Placement


@click.command("zero-plan", cls=ModelCommand)
@model_options()
@click.option(
    "-t", "--pass-tokens", type=int, help="Tokens of the pass; all when absent."
)
@click.option("--method", help="The zeroing method; the first group's when absent.")
@click.option(
    "--placement",
    type=click.Choice(["separate", "slab"]),
    default="separate",
    show_default=True,
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
)
@exits
def zero_plan(
    options: ModelOptions,
    pass_tokens: int | None,
    method: str | None,
    placement: Placement,
    style: str,
) -> int:
    """Print the memsets of a zeroing method.

    For real model configs, in full or of a pass of some tokens.
    """
    from .. import report, zeroing

    checked = load_checked(options.schema or default_schema())
    group = zeroing.find_group(checked.schema, method)
    asked = asked_inputs(checked, options)
    plans = [
        (
            name,
            zeroing.zero_plan(checked.schema, inputs, group, pass_tokens, placement),
        )
        for name, inputs in asked
    ]
    called = group.method
    if pass_tokens is not None:
        called = f"{group.rows_method}, tokens={pass_tokens}"
    limit = checked.schema.token_limit.name
    if style == "json":
        data = [report.plan_as_data(name, called, plan) for name, plan in plans]
        click.echo(report.as_json(data), nl=False)
    else:
        console = new_console()
        for (name, plan), (_, inputs) in zip(plans, asked, strict=True):
            most = inputs.limits[limit]
            beyond = pass_tokens is not None and pass_tokens > most
            note = f" (more than the limit of {most}: in full)" if beyond else ""
            console.print(report.plan_as_table(name, f"{called}{note}", plan))
    return 0
