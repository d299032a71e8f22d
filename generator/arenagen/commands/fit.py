"""`arenagen fit`: the largest limit whose arena fits into a budget."""

from __future__ import annotations

import click

from .console import new_console
from .inputs import asked_inputs
from .options import ModelCommand, ModelOptions, exits, model_options
from .schemas import default_schema, load_checked


@click.command(cls=ModelCommand)
@model_options("The limit of tokens in a pass, where --limit-name names another limit.")
@click.option("--budget", metavar="BYTES", help="Memory for the arena, such as 24GiB.")
@click.option("--gpu", metavar="NAME", help="The memory of a device, such as h200.")
@click.option(
    "--reserve",
    metavar="BYTES",
    default="0",
    help="What the budget must hold beside the arena: weights, KV cache, the context.",
)
@click.option(
    "--limit-name",
    metavar="NAME",
    help="The limit to find; that of tokens in a pass when absent.",
)
@click.option(
    "--format",
    "style",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
)
@exits
def fit(
    options: ModelOptions,
    budget: str | None,
    gpu: str | None,
    reserve: str,
    limit_name: str | None,
    style: str,
) -> int:
    """Print the largest limit whose arena fits into a budget.

    For real model configs; the budget is that of one device. Other limits that are not
    given take the schema's defaults. Exit 1 when nothing fits.
    """
    from .. import fit as fitting
    from .. import fit_report
    from ..devices import find_device, parse_bytes
    from ..report import as_json

    if (budget is None) == (gpu is None):
        raise click.UsageError("give one of --budget and --gpu")
    device = None if gpu is None else find_device(gpu)
    memory = device.nbytes if device is not None else parse_bytes(budget or "")
    kept = parse_bytes(reserve)
    if kept >= memory:
        raise click.UsageError(f"--reserve keeps all of {memory:,} bytes")
    checked = load_checked(options.schema or default_schema())
    model = checked.schema
    limit = fitting.find_limit(model, limit_name)
    found = [
        (name, fitting.fit(model, inputs, limit, memory - kept))
        for name, inputs in asked_inputs(checked, options, sought=limit)
    ]
    if style == "json":
        source = None if device is None else device.source
        data = [fit_report.fit_as_data(model, *each, kept, source) for each in found]
        click.echo(as_json(data), nl=False)
    else:
        console = new_console()
        title = fit_report.budget_in_words(memory, kept)
        if device is not None:
            click.echo(fit_report.device_in_words(str(gpu).lower(), device))
        console.print(fit_report.fits_as_table(found, title))
        if len(found) == 1:
            console.print(fit_report.fit_as_table(*found[0]))
        for each in found:
            click.echo(fit_report.fit_in_words(*each))
    return 0 if all(each.value is not None for _, each in found) else 1
