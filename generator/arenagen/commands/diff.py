"""`arenagen diff`: what changes from one schema to another."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from .inputs import asked_inputs, narrowed
from .options import ModelOptions, exits, optional_inputs
from .schemas import load_anywhere

if TYPE_CHECKING:
    from ..compile import Checked
    from ..diff import SchemaDiff


@click.command()
@click.argument("old")
@click.argument("new")
@optional_inputs
@click.option("--exit-code", is_flag=True, help="Exit with 1 when anything differs.")
@click.option(
    "--format", "style", type=click.Choice(["text", "md", "json"]), default="text"
)
@exits
def diff(options: ModelOptions, old: str, new: str, exit_code: bool, style: str) -> int:
    """Tell what changes from the schema OLD to the schema NEW.

    Either is a file, or a file of a git revision, as in HEAD~1:schema/arena.yaml, which
    is read with the family table of that revision. With configs, their bytes too.
    """
    from .. import diff_report
    from ..report import as_json

    found = compared(options, load_anywhere(old), load_anywhere(new))
    match style:
        case "json":
            data = diff_report.diff_as_data(old, new, found)
            click.echo(as_json([data]), nl=False)
        case "md":
            click.echo(diff_report.diff_as_markdown(old, new, found), nl=False)
        case _:
            click.echo(diff_report.diff_as_text(old, new, found), nl=False)
    return int(exit_code and found.differs)


def compared(options: ModelOptions, before: Checked, after: Checked) -> SchemaDiff:
    """What changes from one schema to another, in bytes too for the given configs."""
    from .. import diff as differing
    from ..sizing import size_arena

    sizes = [
        (name, size_arena(before.schema, first), size_arena(after.schema, second))
        for (name, first), (_, second) in zip(
            asked_inputs(before, narrowed(options, before.schema, after.schema)),
            asked_inputs(after, narrowed(options, after.schema, before.schema)),
            strict=True,
        )
    ]
    return differing.diff(before.schema, after.schema, sizes)
