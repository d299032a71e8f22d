"""`arenagen docs`: the reference of an arena as Markdown."""

from __future__ import annotations

from pathlib import Path

import click

from .console import shown, written
from .options import exits
from .schemas import default_schema, load_checked


@click.command()
@click.argument("schema", required=False, type=click.Path(path_type=Path))
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    help="The file to write, where arenagen wrote it or there is none.",
)
@exits
def docs(schema: Path | None, output: Path | None) -> int:
    """Print the reference of an arena as Markdown, or write it.

    Everything that SCHEMA declares. A pair of pyproject.toml that names a file in
    `docs` has it written by generate and held by check.
    """
    from .. import disk
    from ..header import PAGE_MARK
    from ..reference import reference

    path = schema or Path(default_schema())
    page = reference(load_checked(path).schema, path.name)
    if output is None:
        click.echo(page, nl=False)
    else:
        click.echo(
            f"{shown(output)}: {written(disk.write_file(output, page, PAGE_MARK))}"
        )
    return 0
