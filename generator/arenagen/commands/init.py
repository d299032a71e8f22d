"""`arenagen init`: a small working schema to start from."""

from __future__ import annotations

from pathlib import Path

import click

from .console import count
from .options import exits


@click.command()
@click.argument("name")
@exits
def init(name: str) -> int:
    """Write NAME.yaml, a small working schema, and its tests into this folder.

    With them comes the Hugging Face family table that the schema reads, unless there
    is one. No file is ever written over.
    """
    from .. import disk
    from ..starter import FAMILIES, starter

    folder = Path()
    files = starter(name)
    if (folder / FAMILIES).is_file():
        del files[FAMILIES]
    disk.create(folder, files)
    for file in files:
        click.echo(f"wrote {file}")
    click.echo(f"{count(len(files), 'file')}; now run")
    click.echo(f"  arenagen generate {name}.yaml -o {name}_arena")
    click.echo(f"  python -m pytest test_{name}.py")
    return 0
