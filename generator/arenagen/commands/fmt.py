"""`arenagen fmt`: the layout of schemas."""

from __future__ import annotations

from pathlib import Path

import click

from .console import shown
from .options import SCHEMAS, exits
from .schemas import find_pairs


@click.command()
@SCHEMAS
@click.option(
    "--check",
    "only_check",
    is_flag=True,
    help="Write nothing; exit 1 when one differs.",
)
@exits
def fmt(schemas: tuple[Path, ...], only_check: bool) -> int:
    """Lay out each SCHEMA: indentation, blanks and blank lines.

    Words, comments and the order of lines stay as they are, and so does the meaning,
    which is looked at before anything is written. Family tables are laid out as well.
    """
    from .. import disk
    from ..tidy import tidy

    paths = schemas or [Path(pair.schema) for pair in find_pairs((), None)]
    texts = []
    for path in paths:
        data = disk.read(path)
        texts.append((path, data, tidy(data, shown(path))))
    differ = [(path, text) for path, data, text in texts if text.encode() != data]
    for path, text in differ:
        if not only_check:
            disk.rewrite(path, text)
        click.echo(f"{'differs: ' if only_check else 'laid out '}{shown(path)}")
    return 1 if only_check and differ else 0
