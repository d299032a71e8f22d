"""`arenagen check`: whether packages are what their schemas emit."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from ..words import count
from .console import shown
from .inputs import find_pairs, load_checked
from .options import NO_CACHE, OUTPUT, SCHEMAS, exits
from .progress import Bar
from .recording import Recording

if TYPE_CHECKING:
    from ..disk import Difference


@click.command()
@SCHEMAS
@OUTPUT
@NO_CACHE
@click.option(
    "--full",
    is_flag=True,
    expose_value=False,
    help="Trust no earlier run; the default where CI=true.",
)
@exits
def check(schemas: tuple[Path, ...], output: Path | None, no_cache: bool) -> int:
    """Tell whether a package, and its reference, is what its SCHEMA emits.

    Changes no file of yours. Exits with 1 and a diff when it is not.
    """
    recording = Recording()
    from .. import disk
    from ..compile import emit
    from ..header import PAGE_MARK
    from ..reference import reference

    differ = False
    bar = Bar()
    for pair in find_pairs(schemas, output):
        seen: dict[str, bytes] = {}
        with bar:
            bar.stage(f"{pair.schema.name}: reading")
            checked = load_checked(pair.schema, seen)
            files = emit(checked, pair.schema.name, bar.stage)
            page = reference(checked.schema, pair.schema.name) if pair.docs else ""
        recording.add(pair, seen, files, page, checked.warnings)
        found = disk.compare(pair.output, files)
        folder, source = shown(pair.output), shown(pair.schema)
        again = "" if output is None else f" {source} -o {folder}"
        for each in found:
            _print_difference(pair.output, each)
        if found:
            differ = True
            click.echo(
                f"{folder}: {count(len(found), 'file')} of {len(files)} not as "
                f"{source} says; run `arenagen generate{again}`",
                err=True,
            )
        else:
            click.echo(f"{folder}: {len(files)} files, all as {source} says")
        if pair.docs is not None:
            if changed := disk.compare_file(pair.docs, page, PAGE_MARK):
                differ = True
                _print_difference(pair.docs.parent, changed)
                click.echo(
                    f"{shown(pair.docs)}: not as {source} says; "
                    "run `arenagen generate`",
                    err=True,
                )
            else:
                click.echo(f"{shown(pair.docs)}: as {source} says")
    if not differ and not no_cache and not schemas:
        recording.store()
    return 1 if differ else 0


def _print_difference(folder: Path, difference: Difference) -> None:
    match difference.kind:
        case "missing":
            click.echo(f"missing: {shown(folder / difference.path)}")
        case "extra":
            click.echo(f"extra: {shown(folder / difference.path)} is emitted no longer")
        case "foreign":
            click.echo(f"foreign: {shown(folder / difference.path)} is not arenagen's")
        case _:
            click.echo(difference.diff(), nl=False)
