"""`arenagen init`: a small working schema to start from."""

from __future__ import annotations

from pathlib import Path

import click

from ..words import count
from .console import shown
from .options import exits


@click.command()
@click.argument("name")
@exits
def init(name: str) -> int:
    """Write NAME.yaml, a small working schema, and its tests into this folder.

    With them comes the Hugging Face family table that the schema reads, unless there
    is one, and a pyproject.toml that lists the schema, unless there is one here or
    above. No file is ever written over.
    """
    from .. import disk, project
    from ..starter import FAMILIES, PROJECT, listed, starter

    folder = Path()
    files = starter(name)
    if (folder / FAMILIES).is_file():
        del files[FAMILIES]
    above = project.nearest_file(str(Path.cwd()))
    if above is None:
        files[PROJECT] = listed(name)
    disk.create(folder, files)
    for file in files:
        click.echo(f"wrote {file}")
    click.echo(f"{count(len(files), 'file')}; now run")
    arguments = "" if above is None else f" {name}.yaml -o {name}_arena"
    click.echo(f"  arenagen generate{arguments}")
    click.echo(f"  python -m pytest test_{name}.py")
    if above is not None:
        click.echo(f"and, for commands without a schema, add to {shown(above)}")
        inside = Path.cwd().relative_to(Path(above).parent).as_posix()
        click.echo(listed(name, inside), nl=False)
    return 0
