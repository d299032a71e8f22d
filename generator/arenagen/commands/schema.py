"""`arenagen schema`: the JSON Schema of the language, for editors."""

from __future__ import annotations

import click

from .options import exits


@click.command()
@click.option("--families", is_flag=True, help="That of a Hugging Face family table.")
@exits
def schema(families: bool) -> int:
    """Print the JSON Schema of the schema language.

    Editors complete and check schemas by it.
    """
    from .. import resources

    click.echo(resources.schema_text(families), nl=False)
    return 0
