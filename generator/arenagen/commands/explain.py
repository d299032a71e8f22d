"""`arenagen explain`: everything about the bytes of one buffer."""

from __future__ import annotations

import click

from .inputs import asked_inputs
from .options import ModelOptions, exits, optional_model
from .schemas import default_schema, load_checked


@click.command()
@click.argument("buffer")
@optional_model
@click.option(
    "-t", "--pass-tokens", type=int, help="Tokens of a pass, worked out as well."
)
@click.option("--format", "style", type=click.Choice(["text", "json"]), default="text")
@exits
def explain(
    options: ModelOptions, buffer: str, pass_tokens: int | None, style: str
) -> int:
    """Explain the bytes of BUFFER, step by step.

    The gate, the uses and the winner, the formula with its numbers, what it depends
    on, and who reads the same. Without a config in symbols alone.
    """
    from .. import explain as explaining
    from ..explain_report import explanation_data, explanation_text
    from ..report import as_json

    if len(options.configs) > 1:
        raise click.UsageError("explain takes one --config")
    if pass_tokens is not None and not options.configs:
        raise click.UsageError("--pass-tokens goes with a --config")
    checked = load_checked(options.schema or default_schema())
    asked = asked_inputs(checked, options)
    config, inputs = asked[0] if asked else ("", None)
    found = explaining.explain(checked.schema, buffer, inputs, pass_tokens)
    if style == "json":
        data = explanation_data(found, checked.schema, config)
        click.echo(as_json([data]), nl=False)
    else:
        click.echo(explanation_text(found, config), nl=False)
    return 0
