"""`arenagen report`: one HTML page about the arenas of real model configs."""

from __future__ import annotations

from pathlib import Path

import click

from ..words import count
from .console import shown
from .inputs import asked_inputs
from .options import ModelCommand, ModelOptions, exits, model_options
from .schemas import default_schema, load_checked


@click.command(cls=ModelCommand)
@model_options()
@click.option(
    "-o",
    "--output",
    type=click.Path(path_type=Path),
    required=True,
    help="The page. A file that is no page of arenagen's is not overwritten.",
)
@exits
def report(options: ModelOptions, output: Path) -> int:
    """Write one HTML page about the arenas of real model configs.

    It shows sizes, the layout of a slab, zeroing, growth with the token limit, and what
    each lever would change. It is a single file, and loads nothing.
    """
    from .. import disk
    from ..page.describe import page_view
    from ..page.facts import as_data, find_facts
    from ..page.render import MARK, render_page

    checked = load_checked(options.schema or default_schema())
    model = checked.schema
    asked = asked_inputs(checked, options)
    found = [find_facts(model, name, inputs) for name, inputs in asked]
    data = [as_data(model, facts) for facts in found]
    text = render_page(page_view(model, found, options.overrides), data)
    disk.write_file(output, text, MARK)
    size = len(text.encode("utf-8"))
    click.echo(f"{shown(output)}: {count(len(found), 'config')}, {size:,} bytes")
    return 0
