"""`arenagen generate`: emit packages."""

from __future__ import annotations

from pathlib import Path

import click

from .console import print_problems, shown, written
from .inputs import find_pairs, load_checked
from .options import NO_CACHE, OUTPUT, SCHEMAS, ModelOptions, exits, optional_inputs
from .progress import Bar
from .recording import Recording
from .watching import Emitted, follow

# Files of somebody else that are named, of the many that a folder may hold.
_NAMED = 5


@click.command()
@SCHEMAS
@OUTPUT
@NO_CACHE
@optional_inputs
@click.option(
    "--watch",
    is_flag=True,
    help="Emit again whenever a schema is saved; with configs, tell what that costs.",
)
@exits
def generate(
    options: ModelOptions,
    schemas: tuple[Path, ...],
    output: Path | None,
    no_cache: bool,
    watch: bool,
) -> int:
    """Emit the package of each SCHEMA, and its reference.

    Without SCHEMA, of every one that pyproject.toml lists.

    Writes only what changed, the package whole or not at all, and removes files that
    an earlier run emitted and this one does not. Never touches a file that arenagen
    did not write.
    """
    if watch:
        follow(options, lambda: _emit(schemas, output, no_cache))
    elif options.configs or options.tokens:
        raise click.UsageError("--config and --tokens go with --watch")
    else:
        _emit(schemas, output, no_cache)
    return 0


def _emit(schemas: tuple[Path, ...], output: Path | None, no_cache: bool) -> Emitted:
    """Emit all packages; their schemas, and the files that those were read from."""
    recording = Recording()
    from .. import disk
    from ..compile import emit
    from ..header import PAGE_MARK
    from ..reference import reference

    # Everything is checked and rendered before the first file is written.
    packages = []
    emitted: Emitted = []
    bar = Bar()
    for pair in find_pairs(schemas, output):
        seen: dict[str, bytes] = {}
        with bar:
            bar.stage(f"{pair.schema.name}: reading")
            checked = load_checked(pair.schema, seen)
        print_problems(checked.warnings)
        with bar:
            page = reference(checked.schema, pair.schema.name) if pair.docs else ""
            files = emit(checked, pair.schema.name, bar.stage)
        packages.append((pair, files, page))
        recording.add(pair, seen, files, page, checked.warnings)
        emitted.append((checked, [*seen]))
    for pair, files, page in packages:
        changes = disk.write(pair.output, files)
        for each in changes:
            verb = {"missing": "added", "extra": "removed"}.get(each.kind, "changed")
            click.echo(f"{verb} {shown(pair.output / each.path)}")
        kept = len(files) - sum(each.kind != "extra" for each in changes)
        others = _named(disk.others(pair.output))
        click.echo(
            f"{shown(pair.output)}: {len(files)} files, {kept} unchanged{others}"
        )
        if pair.docs is not None:
            change = disk.write_file(pair.docs, page, PAGE_MARK)
            click.echo(f"{shown(pair.docs)}: {written(change)}")
    if not no_cache and not schemas:
        recording.store()
    return emitted


def _named(others: list[str]) -> str:
    if not others:
        return ""
    names = ", ".join(others[:_NAMED])
    more = len(others) - _NAMED
    return f"; not arenagen's, kept: {names}" + (f" and {more} more" * (more > 0))
