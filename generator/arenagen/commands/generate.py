"""`arenagen generate`: emit packages."""

from __future__ import annotations

from pathlib import Path

import click

from .emitting import emit_packages
from .options import NO_CACHE, OUTPUT, SCHEMAS, ModelOptions, exits, optional_inputs
from .watching import follow


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
        follow(options, lambda: emit_packages(schemas, output, no_cache))
    elif options.configs or options.tokens:
        raise click.UsageError("--config and --tokens go with --watch")
    else:
        emit_packages(schemas, output, no_cache)
    return 0
